"""Which record is used if several look alike: ids tell twins apart, and indistinguishable turns get nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

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
    responses,
    responses_reply,
    result,
    returned,
    rs,
    runs,
    said,
    says,
    thinking,
    use,
    user,
    words,
)

PAIRS = {
    "without digits": ("call_NKBrzaRfgcLAkvIldhIYsqtH", "call_QwErTyUiOpAsDfGhJkLzXcVb"),
    "digits alone": ("call_77278669", "call_30717015"),
    "Mistral's nine": ("uWqVbNzKd", "kPmXrTyHs"),
    "short": ("whznt", "grbsc"),
    "counted on": ("call_1", "call_2"),
    "letters and digits": ("call_00_Qx7Lm2Zp", "call_00_Ab3Cd4Ef"),
}


class Wire(NamedTuple):
    """How one format shows a call with its reasoning, and continues without it."""

    world: Callable[[], World]
    ask: Json
    answer: Callable[[str, str], Json]
    go_on: Callable[[str], Json]


WIRES = {
    "chat": Wire(
        lambda: World("deepseek", "deepseek-v4-pro"),
        chat(user("Look.")),
        lambda name, thought: chat_reply(said(None, call(name), reasoning=thought)),
        lambda name: chat(user("Look."), said(None, call(name)), result(name)),
    ),
    "messages": Wire(
        lambda: World("anthropic", "claude-opus-4-6", "anthropic_messages"),
        claude(user("Look.")),
        lambda name, thought: claude_reply(thinking(thought, f"E{thought}"), use(name)),
        lambda name: claude(user("Look."), says(use(name)), asks(returned(name))),
    ),
    "bound messages": Wire(
        lambda: World("anthropic", "claude-opus-5-5", "anthropic_messages"),
        claude(user("Look.")),
        lambda name, thought: claude_reply(thinking(thought, f"E{thought}"), use(name)),
        lambda name: claude(user("Look."), says(use(name)), asks(returned(name))),
    ),
    "responses": Wire(
        lambda: World("openai", "gpt-5.4", "openai_responses"),
        responses(user("Look.")),
        lambda name, thought: responses_reply(rs(f"rs_{thought}", f"gAAA{thought}"), fc(f"fc_{thought}", name)),
        lambda name: responses(user("Look."), fc(None, name), output(name)),
    ),
    "gemini": Wire(
        lambda: World("gemini", "gemini-3-pro-preview", "gemini_generate"),
        gemini(asked({"text": "Look."})),
        lambda name, thought: gemini_reply(runs("ls", f"E{thought}", id=name)),
        lambda name: gemini(asked({"text": "Look."}), model(runs("ls", id=name)), asked(ran(id=name))),
    ),
}


@pytest.mark.parametrize("pair", PAIRS)
@pytest.mark.parametrize("wire", WIRES)
def test_equal_ids_beat_unequal_ones(wire: str, pair: str) -> None:
    """Two conversations with equal words: each gets the reasoning under its own ids, even the older one."""
    spoken, world = WIRES[wire], WIRES[wire].world()
    for name, thought in zip(PAIRS[pair], ("older", "newer"), strict=True):
        world.answer(spoken.ask, spoken.answer(name, thought))
    for name, own, other in zip(PAIRS[pair], ("older", "newer"), ("newer", "older"), strict=True):
        sent = str(world.send(spoken.go_on(name)).body)
        assert own in sent
        assert other not in sent


@pytest.mark.parametrize("wire", WIRES)
def test_more_twins_than_a_store_gives_for_a_key(wire: str) -> None:
    """Forty conversations with equal words: the ids find the right one among more than a lookup by history returns."""
    spoken, world = WIRES[wire], WIRES[wire].world()
    names = [f"call_{at:02d}kQzRtPmWx" for at in range(40)]
    for name in names:
        world.answer(spoken.ask, spoken.answer(name, f"of{name[5:7]}."))
    for name in (names[0], names[20], names[-1]):
        sent = str(world.send(spoken.go_on(name)).body)
        assert f"of{name[5:7]}." in sent
        assert sent.count("kQzRtPmWx") == str(spoken.go_on(name)).count("kQzRtPmWx")


@pytest.mark.parametrize("wire", WIRES)
def test_ids_of_neither_twin(wire: str) -> None:
    """A client rewrote the ids, and there are two possible records: neither is used, with a finding."""
    spoken, world = WIRES[wire], WIRES[wire].world()
    for name, thought in zip(PAIRS["without digits"], ("older", "newer"), strict=True):
        world.answer(spoken.ask, spoken.answer(name, thought))
    sent = world.send(spoken.go_on("k3J9x0048"))
    assert "older" not in str(sent.body)
    assert "newer" not in str(sent.body)
    assert "ambiguous" in sent.rules


@pytest.mark.parametrize("wire", WIRES)
def test_new_ids_of_the_only_one(wire: str) -> None:
    """A client rewrote the ids, and nothing contradicts the only record: it is used."""
    spoken, world = WIRES[wire], WIRES[wire].world()
    world.answer(spoken.ask, spoken.answer(PAIRS["without digits"][0], "only"))
    assert "only" in str(world.send(spoken.go_on("k3J9x0048")).body)


HABITS: dict[str, Callable[[str], str]] = {
    "cut": lambda name: name[:20],
    "lengthened": lambda name: f"{name}-9b2f7c1e",
    "without marks": lambda name: name.replace("_", ""),
    "in small letters": str.lower,
    "with another front": lambda name: name.replace("call_", "toolu_"),
}


@pytest.mark.parametrize("habit", HABITS)
def test_ids_that_were_made_of_a_twins(habit: str) -> None:
    """An id that was cut, extended or respelled still shows which of two twins it came from."""
    spoken, world = WIRES["chat"], WIRES["chat"].world()
    for name, thought in zip(PAIRS["without digits"], ("older", "newer"), strict=True):
        world.answer(spoken.ask, spoken.answer(name, thought))
    for name, own, other in zip(PAIRS["without digits"], ("older", "newer"), ("newer", "older"), strict=True):
        sent = str(world.send(spoken.go_on(HABITS[habit](name))).body)
        assert own in sent
        assert other not in sent


def test_a_turn_asked_again_under_a_counted_id() -> None:
    """Kimi counts its ids, so a repeated turn has the same: the client has the one whose end it received."""
    world = World("kimi", "kimi-k2.6")
    for thought, is_seen in (("first try", False), ("second try", True), ("third try", False)):
        reply = chat_reply(said(None, call("functions.bash:0"), reasoning=thought))
        world.answer(chat(user("Look.")), reply, is_seen=is_seen)
    sent = world.send(chat(user("Look."), said(None, call("functions_bash_0")), result("functions_bash_0")))
    assert sent.messages[1]["reasoning_content"] == "second try"


def test_two_turns_that_nothing_tells_apart() -> None:
    """Equal words and counted ids, both seen to their end: neither is used, with a finding."""
    world = World("kimi", "kimi-k2.6")
    for thought in ("one's", "the other's"):
        world.answer(chat(user("Look.")), chat_reply(said(None, call("functions.bash:0"), reasoning=thought)))
    sent = world.send(chat(user("Look."), said(None, call("functions.bash:0")), result("functions.bash:0")))
    assert sent.messages[1]["reasoning_content"].strip() == ""
    assert "ambiguous" in sent.rules


# --- item ids --------------------------------------------------------------------------------------------------------

ONE, TWO = "msg_68e1b2c3d4e5f607", "msg_kKqPzRtYuIoLmNbVcXzAsDfG"


@pytest.mark.parametrize(("own", "other"), [(ONE, TWO), (TWO, ONE)])
def test_the_id_of_a_message_tells_answers_apart(own: str, other: str) -> None:
    """Two answers in equal words to equal questions: the message id shows which one a client has."""
    world = World("openai", "gpt-5.4", "openai_responses")
    for name in (ONE, TWO):
        world.answer(responses(user("Ready?")), responses_reply(rs(f"rs_{name}", f"gAAA{name}"), msg(name, "Yes.")))
    sent = str(world.send(responses(user("Ready?"), msg(own, "Yes."), user("Go."))).body)
    assert f"gAAA{own}" in sent
    assert f"gAAA{other}" not in sent


@pytest.mark.parametrize("named", ["fc", "call"])
def test_the_item_id_of_a_call_is_evidence(named: str) -> None:
    """Calls under equal ids in two conversations: the second id of Responses tells them apart."""
    world = World("openai", "gpt-5.4", "openai_responses")
    for thought in ("older", "newer"):
        step = [rs(f"rs_{thought}", f"gAAA{thought}"), fc(f"fc_{thought}", "call_1")]
        world.answer(responses(user("Look.")), responses_reply(*step))
    shown = fc("fc_older", "call_1" if named == "call" else "call_renamed")
    sent = str(world.send(responses(user("Look."), shown, output(shown["call_id"]))).body)
    assert "gAAAolder" in sent
    assert "gAAAnewer" not in sent


def test_the_id_of_a_message_behind_another_history() -> None:
    """The opening was rewritten: a message with a globally unique id is found by it."""
    world = World("openai", "gpt-5.4", "openai_responses")
    world.answer(responses(user("Ready?")), responses_reply(rs("rs_1", "gAAAone"), msg(ONE, "Yes.")))
    sent = world.send(responses(user("Summary: all is ready."), msg(ONE, "Yes."), user("Go.")))
    assert "gAAAone" in str(sent.body)
    other = world.send(responses(user("Summary: all is ready."), msg(ONE, "No."), user("Go.")))
    assert "gAAAone" not in str(other.body)


def test_words_tell_claude_twins_apart_no_more_than_ids_do() -> None:
    """Text next to a call is equal, too: the id decides, whichever came last."""
    world = World("anthropic", "claude-opus-4-6", "anthropic_messages")
    names = PAIRS["without digits"]
    for name in names:
        world.answer(claude(user("Look.")), claude_reply(thinking("T", f"E{name}"), words("I look."), use(name)))
    for name in names:
        sent = world.send(claude(user("Look."), says(words("I look."), use(name)), asks(returned(name))))
        assert [block.get("signature") for block in sent.messages[1]["content"]] == [f"E{name}", None, None]


AGENTS: dict[str, Json] = {
    "another system prompt": claude(user("Go."), system="You are another agent."),
    "other tools": claude(user("Go."), tools=[{"name": "grep", "input_schema": {"type": "object"}}]),
    "another system message": claude(user("Go."), {"role": "system", "content": "You are another agent."}),
}


@pytest.mark.parametrize("other", AGENTS)
def test_what_stands_around_tells_bound_twins_apart(other: str) -> None:
    """Two agents have the same dialogue under different orders: bound reasoning goes back to its own."""
    world = World("anthropic", "claude-opus-5-5", "anthropic_messages")
    world.answer(claude(user("Go.")), claude_reply(thinking("Mine.", "Emine"), words("Done.")))
    world.answer(AGENTS[other], claude_reply(thinking("Its own.", "Eother"), words("Done.")))
    sent = world.send(claude(user("Go."), says(words("Done.")), user("Thanks.")))
    assert sent.messages[1] == says(thinking("Mine.", "Emine"), words("Done."))


# --- end users -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("session", [None, "app"])
@pytest.mark.parametrize("ids", [("call_9fQ2mZx81LkPq7Rt", "call_Yh3Tn65VbW0cXs8d"), ("bash:0", "bash:1")])
def test_merged_turns_of_another_end_user(ids: tuple[str, str], session: str | None) -> None:
    """Steps that a client merged into one turn never match another end user's, whatever their ids and session."""
    first, second = ids
    calls = [call(first, "ls a"), call(second, "ls b")]
    history = [user("Look."), said(None, calls[0], reasoning="for Ann 1"), result(first, "a")]
    merged = [user("Look."), said(None, *calls), result(first, "a"), result(second, "b")]

    def sent(name: str) -> str:
        world = World("kimi", "kimi-k2.6")
        world.answer({**chat(history[0]), "user": "ann"}, chat_reply(history[1]), session=session)
        answer = chat_reply(said(None, calls[1], reasoning="for Ann 2"))
        world.answer({**chat(*history), "user": "ann"}, answer, session=session)
        return str(world.send({**chat(*merged), "user": name}, session=session).body)

    assert "for Ann 1" in sent("ann")
    assert "for Ann" not in sent("bob")
