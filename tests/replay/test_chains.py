"""Steps whose own history is not as it was: results were cleared, or several steps stand in one turn."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.replay.dialogues import (
    Json,
    World,
    asked,
    asks,
    call,
    chat,
    chat_reply,
    claude,
    claude_reply,
    fc,
    gemini,
    gemini_reply,
    model,
    msg,
    output,
    ran,
    reasoning_of,
    responses,
    responses_reply,
    result,
    returned,
    rs,
    runs,
    said,
    says,
    stripped,
    thinking,
    told,
    use,
    user,
    words,
)

NOTICES = (
    "[cleared]",
    "[Old tool result content cleared]",
    "[[NOTE] This file read has been removed to save space in the context window.]",
    "<MASKED>",
    "[output removed]",
    "... (42 lines omitted)",
    "(result truncated)",
)
KIMI = ("kimi", "kimi-k2.6")
DEEPSEEK = ("deepseek", "deepseek-v4-pro")


def counted(number: int) -> str:
    return f"functions.bash:{number}"


def unique(number: int) -> str:
    return f"call_{number:02d}kQzRtPmWx"


def talk(name: Callable[[int], str] = counted, results: str = "a b c") -> list[Json]:
    """Two loops of two calls and a plain answer each."""
    history: list[Json] = []
    for loop in range(2):
        history.append(user(f"Question {loop}."))
        for at in range(2):
            number = 2 * loop + at
            history.append(said(None, call(name(number), f"ls {number}"), reasoning=f"Call {number}."))
            history.append(result(name(number), f"{results} {number}"))
        history.append(said(f"Answer {loop}.", reasoning=f"Plain {loop}."))
    return [*history, user("Thanks.")]


def cleared(history: list[Json], notice: str, count: int = 9) -> list[Json]:
    """The history with its first results cleared."""
    left = [count]

    def one(message: Json) -> Json:
        if message["role"] != "tool" or not left[0]:
            return message
        left[0] -= 1
        return message | {"content": notice}

    return [one(message) for message in history]


def thoughts(messages: list[Json]) -> list[str | None]:
    return [reasoning_of(message) for message in messages if message["role"] == "assistant"]


@pytest.mark.parametrize("count", [1, 2, 3, 4])
@pytest.mark.parametrize("notice", NOTICES)
@pytest.mark.parametrize("names", [counted, unique])
@pytest.mark.parametrize("provider", [KIMI, DEEPSEEK])
def test_cleared_results_hide_no_turn(
    provider: tuple[str, str], names: Callable[[int], str], notice: str, count: int
) -> None:
    """A client has cleared the oldest results: every call and every plain answer after them has its thought."""
    world = World(*provider)
    history = told(world, *talk(names))
    sent = world.send(chat(*cleared(stripped(history), notice, count)))
    assert thoughts(sent.messages) == thoughts(history)
    assert not sent.rules & {"missing", "ambiguous"}


@pytest.mark.parametrize("names", [counted, unique])
def test_a_conversation_goes_on_after_its_results_were_cleared(names: Callable[[int], str]) -> None:
    """Answers that were made after the clearing are found, however many results were cleared when, and with what."""
    world = World(*KIMI)
    history = told(world, *talk(names))
    now = cleared(history, "[cleared]")
    more = [said("Welcome.", reasoning="Be polite."), user("One more."), said("Sure.", reasoning="Fine.")]
    for at in (0, 2):
        world.answer(chat(*stripped(now), *stripped(more[:at])), chat_reply(more[at]))
    for shown in (now, cleared(now, "[output removed]", 2), cleared(history, "[cleared]", 1)):
        sent = world.send(chat(*stripped(shown), *stripped(more), user("Bye.")))
        assert thoughts(sent.messages)[-2:] == ["Be polite.", "Fine."]


OTHERS = {"another conversation": "x y z", "the same results": "a b c"}


@pytest.mark.parametrize("shown", ["[cleared]", "q r s"])
@pytest.mark.parametrize("names", [counted, unique])
@pytest.mark.parametrize("results", OTHERS.values(), ids=OTHERS)
def test_twins_under_cleared_results(results: str, names: Callable[[int], str], shown: str) -> None:
    """Two conversations with equal words, and with other results or none to tell by: never the other one's thought."""
    world = World(*KIMI)
    mine = told(world, *talk(names))
    own = thoughts(mine)
    for message in (theirs := talk(lambda number: names(number + 40), results)):
        if message["role"] == "assistant":
            message["reasoning_content"] += " Theirs."
    told(world, *theirs)
    found = thoughts(world.send(chat(*cleared(stripped(mine), shown))).messages)
    assert all((now or "").strip() in ("", was) for now, was in zip(found, own, strict=True))
    if names is unique:
        assert found == own


def test_other_results_are_another_conversation() -> None:
    """Counted ids, equal words, and results that are not what the record's conversation had: no plain answer of it."""
    world = World(*KIMI)
    told(world, *talk())
    sent = world.send(chat(*stripped(talk(results="x y z"))))
    assert thoughts(sent.messages)[0] == "Call 0."
    assert "Call 1." not in str(sent.body)
    assert "Plain" not in str(sent.body)


def test_results_of_a_repeated_call_that_were_cleared() -> None:
    """Two answers in equal words after one call, with other results: neither, where only a notice stands for them."""
    world = World(*KIMI)
    for number in range(2):
        history = [
            user("Look."),
            said(None, call(counted(0)), reasoning="Look."),
            result(counted(0), f"{number} files"),
        ]
        told(world, *history, said("Done.", reasoning=f"I saw {number}."))
    shown = [*stripped(history[:2]), result(counted(0), "[cleared]"), said("Done."), user("Go.")]
    sent = world.send(chat(*shown))
    assert "I saw" not in str(sent.body)
    assert "ambiguous" in sent.rules


# --- other wires -----------------------------------------------------------------------------------------------------


def _claude(text: str, *, strips: bool) -> list[Json]:
    step = [thinking("List.", "EsigA"), use("toolu_01AbCdEfGh")]
    plain = [thinking("Count.", "EsigB"), words("Three.")]
    turns = [step[strips:], plain[strips:]]
    return [user("How many?"), says(*turns[0]), asks(returned("toolu_01AbCdEfGh", text)), says(*turns[1]), user("So?")]


def _responses(text: str, *, strips: bool) -> list[Json]:
    step = [rs("rs_1", "EsigA"), fc("fc_1", unique(0))][strips:]
    plain = [rs("rs_2", "EsigB"), msg("msg_2", "Three.")][strips:]
    return [user("How many?"), *step, output(unique(0), text), *plain, user("So?")]


def _gemini(text: str, *, strips: bool) -> list[Json]:
    name = {"id": unique(0)}
    step = model(runs("ls", None if strips else "EsigA", **name))
    plain = model({"text": "Three."} if strips else {"text": "Three.", "thoughtSignature": "EsigB"})
    return [asked({"text": "How many?"}), step, asked(ran(text, **name)), plain, asked({"text": "So?"})]


def test_cleared_results_on_claude() -> None:
    """Signed thinking of a plain answer comes back where the results before it were cleared."""
    world = World("anthropic", "claude-opus-4-6", "anthropic_messages")
    full = _claude("a b c", strips=False)
    world.answer(claude(full[0]), claude_reply(*full[1]["content"]))
    world.answer(claude(*full[:3]), claude_reply(*full[3]["content"]))
    sent = world.send(claude(*_claude("[cleared]", strips=True)))
    assert [sent.messages[1], sent.messages[3]] == [full[1], full[3]]


def test_cleared_results_on_bound_claude() -> None:
    """Where thinking is bound to all before it, clearing unbinds what follows: only what stands before comes back."""
    world = World("anthropic", "claude-opus-5-5", "anthropic_messages")
    full = _claude("a b c", strips=False)
    world.answer(claude(full[0]), claude_reply(*full[1]["content"]))
    world.answer(claude(*full[:3]), claude_reply(*full[3]["content"]))
    sent = world.send(claude(*_claude("[cleared]", strips=True)))
    assert sent.messages[1] == full[1]
    assert "EsigB" not in str(sent.body)
    assert "bound-prefix-changed" in sent.rules


def test_cleared_results_in_responses() -> None:
    """Encrypted reasoning of a plain answer comes back where the results before it were cleared."""
    world = World("openai", "gpt-5.4", "openai_responses")
    full = _responses("a b c", strips=False)
    world.answer(responses(full[0]), responses_reply(*full[1:3]))
    world.answer(responses(*full[:4]), responses_reply(*full[4:6]))
    sent = world.send(responses(*_responses("[cleared]", strips=True)))
    found = [item["encrypted_content"] for item in sent.messages if item.get("type") == "reasoning"]
    assert found == ["EsigA", "EsigB"]


def test_cleared_results_on_gemini() -> None:
    """The signature of a plain answer comes back where the results before it were cleared."""
    world = World("gemini", "gemini-3-pro-preview", "gemini_generate")
    full = _gemini("a b c", strips=False)
    world.answer(gemini(full[0]), gemini_reply(*full[1]["parts"]))
    world.answer(gemini(*full[:3]), gemini_reply(*full[3]["parts"]))
    sent = world.send(gemini(*_gemini("[cleared]", strips=True)))
    assert [sent.messages[1], sent.messages[3]] == [full[1], full[3]]


# --- several steps in one turn ---------------------------------------------------------------------------------------


def merged(history: list[Json]) -> list[Json]:
    """The history with the calls of each loop in one turn, and their results behind it."""
    shown: list[Json] = []
    calls: list[Json] = []
    results: list[Json] = []
    for message in history:
        if message["role"] == "tool":
            results.append(message)
        elif message.get("tool_calls"):
            calls += message["tool_calls"]
        else:
            if calls:
                shown += [said(None, *calls), *results]
                calls, results = [], []
            shown.append(message)
    return shown


@pytest.mark.parametrize("names", [counted, unique])
@pytest.mark.parametrize("provider", [KIMI, DEEPSEEK])
def test_steps_that_a_client_wrote_into_one(provider: tuple[str, str], names: Callable[[int], str]) -> None:
    """Each loop's calls stand in one turn: it has the thoughts of all of them, and what follows has its own."""
    world = World(*provider)
    history = told(world, *talk(names))
    sent = world.send(chat(*merged(stripped(history))))
    assert thoughts(sent.messages) == ["Call 0.Call 1.", "Plain 0.", "Call 2.Call 3.", "Plain 1."]


def test_steps_of_another_conversation_written_into_one() -> None:
    """Counted ids and equal calls, but after another question: nobody's thoughts."""
    world = World(*KIMI)
    told(world, *talk())
    shown = merged(stripped(talk()))
    shown[0] = user("Another question.")
    sent = world.send(chat(*shown))
    assert "Call 0." not in str(sent.body)


def test_twins_written_into_one() -> None:
    """Two conversations with equal calls and other results: never the other one's thought."""
    world = World(*KIMI)
    one, two = told(world, *talk()), talk(results="x y z")
    for message in two:
        if message["role"] == "assistant":
            message["reasoning_content"] += " Theirs."
    told(world, *two)
    sent = thoughts(world.send(chat(*merged(stripped(one)))).messages)
    assert "Theirs" not in str(sent)
