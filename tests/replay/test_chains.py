"""Steps whose own history has changed: results were cleared, or several steps were merged into one turn."""

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
    """If a client has cleared the oldest results, every later call and plain answer still gets its reasoning."""
    world = World(*provider)
    history = told(world, *talk(names))
    sent = world.send(chat(*cleared(stripped(history), notice, count)))
    assert thoughts(sent.messages) == thoughts(history)
    assert not sent.rules & {"missing", "ambiguous"}


@pytest.mark.parametrize("names", [counted, unique])
def test_a_conversation_goes_on_after_its_results_were_cleared(names: Callable[[int], str]) -> None:
    """Answers made after the clearing are found, whatever was cleared when, and by what it was replaced."""
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
    """Two conversations with equal words, and different or no results: neither gets the other's reasoning."""
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
    """Counted ids, equal words, and results that the record's conversation did not have: its plain answers are not
    used."""
    world = World(*KIMI)
    told(world, *talk())
    sent = world.send(chat(*stripped(talk(results="x y z"))))
    assert thoughts(sent.messages)[0] == "Call 0."
    assert "Call 1." not in str(sent.body)
    assert "Plain" not in str(sent.body)


def test_results_of_a_repeated_call_that_were_cleared() -> None:
    """Two answers in equal words after one call, with different results: neither is used if only a notice replaces
    them."""
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
    """Signed thinking of a plain answer is restored although the results before it were cleared."""
    world = World("anthropic", "claude-opus-4-6", "anthropic_messages")
    full = _claude("a b c", strips=False)
    world.answer(claude(full[0]), claude_reply(*full[1]["content"]))
    world.answer(claude(*full[:3]), claude_reply(*full[3]["content"]))
    sent = world.send(claude(*_claude("[cleared]", strips=True)))
    assert [sent.messages[1], sent.messages[3]] == [full[1], full[3]]


def test_cleared_results_on_bound_claude() -> None:
    """If thinking is bound to everything before it, clearing invalidates what follows: only earlier thinking is
    restored."""
    world = World("anthropic", "claude-opus-5-5", "anthropic_messages")
    full = _claude("a b c", strips=False)
    world.answer(claude(full[0]), claude_reply(*full[1]["content"]))
    world.answer(claude(*full[:3]), claude_reply(*full[3]["content"]))
    sent = world.send(claude(*_claude("[cleared]", strips=True)))
    assert sent.messages[1] == full[1]
    assert "EsigB" not in str(sent.body)
    assert "bound-prefix-changed" in sent.rules


def test_cleared_results_in_responses() -> None:
    """Encrypted reasoning of a plain answer is restored although the results before it were cleared."""
    world = World("openai", "gpt-5.4", "openai_responses")
    full = _responses("a b c", strips=False)
    world.answer(responses(full[0]), responses_reply(*full[1:3]))
    world.answer(responses(*full[:4]), responses_reply(*full[4:6]))
    sent = world.send(responses(*_responses("[cleared]", strips=True)))
    found = [item["encrypted_content"] for item in sent.messages if item.get("type") == "reasoning"]
    assert found == ["EsigA", "EsigB"]


def test_cleared_results_on_gemini() -> None:
    """The signature of a plain answer is restored although the results before it were cleared."""
    world = World("gemini", "gemini-3-pro-preview", "gemini_generate")
    full = _gemini("a b c", strips=False)
    world.answer(gemini(full[0]), gemini_reply(*full[1]["parts"]))
    world.answer(gemini(*full[:3]), gemini_reply(*full[3]["parts"]))
    sent = world.send(gemini(*_gemini("[cleared]", strips=True)))
    assert [sent.messages[1], sent.messages[3]] == [full[1], full[3]]


# --- several steps in one turn ---------------------------------------------------------------------------------------


def merged(history: list[Json]) -> list[Json]:
    """The history with the calls of each loop in one turn, followed by their results."""
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
    """If each loop's calls are in one turn, it gets the reasoning of all of them, and later turns get their own."""
    world = World(*provider)
    history = told(world, *talk(names))
    sent = world.send(chat(*merged(stripped(history))))
    assert thoughts(sent.messages) == ["Call 0.Call 1.", "Plain 0.", "Call 2.Call 3.", "Plain 1."]


def test_steps_of_another_conversation_written_into_one() -> None:
    """Counted ids and equal calls after another question get no reasoning."""
    world = World(*KIMI)
    told(world, *talk())
    shown = merged(stripped(talk()))
    shown[0] = user("Another question.")
    sent = world.send(chat(*shown))
    assert "Call 0." not in str(sent.body)


def test_twins_written_into_one() -> None:
    """Two conversations with equal calls and different results: neither gets the other's reasoning."""
    world = World(*KIMI)
    one, two = told(world, *talk()), talk(results="x y z")
    for message in two:
        if message["role"] == "assistant":
            message["reasoning_content"] += " Theirs."
    told(world, *two)
    sent = thoughts(world.send(chat(*merged(stripped(one)))).messages)
    assert "Theirs" not in str(sent)


# --- turns whose own record was never captured ------------------------------------------------------------------------

LISTING = "\n".join(f"-rw-r--r-- 1 ann staff {size} report-{size}.txt" for size in range(8000, 8008))


@pytest.mark.parametrize("provider", [KIMI, DEEPSEEK])
def test_the_same_words_behind_another_opening(provider: tuple[str, str]) -> None:
    """Another conversation ends in the same turns, and this one has no records: it gets none of the other's."""
    world = World(*provider)
    turns = [said("Hello.", reasoning="Of Ann."), user("Ready?"), said("Yes.", reasoning="Ann's PIN."), user("Go on.")]
    history = told(world, user("I am Ann."), *turns, said("Done.", reasoning="Ann's."), user("Thanks."))
    sent = world.send(chat(user("I am Bert."), *stripped(history[1:])))
    assert not "".join(one or "" for one in thoughts(sent.messages)).strip()
    assert world.send(chat(*stripped(history))).messages == history


def test_a_record_that_only_looks_the_same_is_named() -> None:
    """A finding reports a record without proof."""
    world = World(*KIMI)
    history = told(world, user("One."), *talk()[1:])
    sent = world.send(chat(user("Two."), *stripped(history[4:])))
    assert "ambiguous" in sent.rules
    assert any("nothing proves" in finding.message for finding in sent.plan.findings)


@pytest.mark.parametrize("shown", ["call_7Yh3Tn65VbW0cXs8dQ", "k3J9x0048"])
def test_ids_of_a_twin_without_records(shown: str) -> None:
    """Two conversations in the same words: an id of the model's own form is another call of it. One of a different form
    was rewritten by the client, and proves nothing."""
    world = World(*DEEPSEEK)
    name = "call_9fQ2mZx81LkPq7RtAb"
    told(world, user("Look."), said(None, call(name), reasoning="Ann's."), result(name))
    sent = world.send(chat(user("Look."), said(None, call(shown)), result(shown)))
    assert ("Ann's." in str(sent.body)) == (shown == "k3J9x0048")


def test_a_turn_after_a_twins_call() -> None:
    """A turn after another conversation's call belongs to that conversation, too."""
    world = World(*DEEPSEEK)
    ann, bert = "call_9fQ2mZx81LkPq7RtAb", "call_7Yh3Tn65VbW0cXs8dQ"
    step, answer = said(None, call(ann), reasoning="Ann's."), said("Three files.", reasoning="Ann counts.")
    told(world, user("Look."), step, result(ann), answer, user("Thanks."))
    shown = [said(None, call(bert)), result(bert), said("Three files."), user("Thanks.")]
    assert "Ann" not in str(world.send(chat(user("Look."), *shown)).body)


def test_a_session_with_records_of_its_own() -> None:
    """A twin's turn is not taken into a session that already has turns; a resumed conversation names a new one."""
    world = World(*KIMI)
    hello, more = said("Hello.", reasoning="Ann's."), said("More.", reasoning="Bert's.")
    world.answer(chat(user("Hi.")), chat_reply(hello), session="ann")
    shown = [user("Hi."), said("Hello."), user("Go on.")]
    assert "Ann's." in str(world.send(chat(*shown), session="resumed").body)
    world.answer(chat(user("Other."), said("Well."), user("Go on.")), chat_reply(more), session="bert")
    assert "Ann's." not in str(world.send(chat(*shown), session="bert").body)


def test_a_long_run_behind_a_rewritten_opening() -> None:
    """Unique calls and results identify their turns, even with counted ids and without a session; a few words don't."""
    for results, is_known in ((LISTING, True), ("ok", False)):
        world = World(*KIMI)
        history = told(world, *talk(results=results))
        sent = world.send(chat(user("Question 0, asked in other words."), *stripped(history[1:])))
        assert (thoughts(sent.messages)[-1] == "Plain 1.") == is_known
