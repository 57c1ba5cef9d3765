"""Turns in which a provider ran its own tools: searches, code, MCP calls come between the model's reasoning.

A row of `TURNS` is such a turn, as the provider wrote it; each is captured whole and from a stream, and sent back by
clients with the habits below. What is sent has the record's order, whatever kinds of items are in it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.replay.dialogues import (
    ON,
    Json,
    World,
    claude,
    claude_reply,
    fc,
    output,
    responses,
    responses_reply,
    rs,
    says,
    thinking,
    user,
    words,
)
from tests.replay.provider_turns import TURNS, bare, found, hosted, is_plain, is_thought, ran_there
from tests.replay.turn_wires import WIRES, Elements, Wire

# --- what clients do --------------------------------------------------------------------------------------------------


def keeps_all(turn: Elements) -> Elements:
    return turn


def drops_thoughts(turn: Elements) -> Elements:
    return bare(turn)


def puts_tools_last(turn: Elements) -> Elements:
    return sorted(bare(turn), key=lambda element: not is_plain(element))


def puts_thoughts_first(turn: Elements) -> Elements:
    return sorted(turn, key=lambda element: not is_thought(element))


def writes_nulls(turn: Elements) -> Elements:
    """Like a typed library that knows members which the provider omitted."""
    return [element if is_plain(element) else {**element, "caller": None} for element in bare(turn)]


def spells_anew(turn: Elements) -> Elements:
    return [dict(reversed(element.items())) for element in bare(turn)]


HABITS: dict[str, Callable[[Elements], Elements]] = {
    habit.__name__: habit
    for habit in (keeps_all, drops_thoughts, puts_tools_last, puts_thoughts_first, writes_nulls, spells_anew)
}


def without_nulls(element: Json) -> Json:
    return {name: held for name, held in element.items() if held is not None}


def answered(wire: Wire, turn: Elements, capture: str) -> World:
    world = wire.world()
    world.answer(wire.request(wire.ask), wire.reply(*turn) if capture == "whole" else wire.stream(turn))
    return world


@pytest.mark.parametrize("capture", ["whole", "streamed"])
@pytest.mark.parametrize("habit", HABITS)
@pytest.mark.parametrize("name", TURNS)
def test_the_turn_goes_out_as_the_provider_made_it(name: str, habit: str, capture: str) -> None:
    """Whatever a client did to reasoning, seals and order, each reasoning item is back between its neighbours."""
    spoken, turn = TURNS[name]
    wire = WIRES[spoken]
    world = answered(wire, turn, capture)
    sent = world.send(wire.request(wire.ask, *wire.sends(HABITS[habit](turn)), *wire.back(turn)))
    assert [without_nulls(one) for one in wire.element(sent.body)] == [without_nulls(one) for one in turn]
    if habit == "keeps_all":
        assert sent.plan.edits == ()


DROPPED: dict[str, list[Any]] = {
    "search": [None, "rs_2", "msg_1"],
    "two equal searches": [None, None, "rs_3", "msg_1"],
    "search, then a call": [None, "rs_2", "fc_1"],
    "file search, then parallel calls": [None, "rs_2", "fc_1", "fc_2"],
    "MCP": [None, "rs_2", "msg_1"],
    "said between": ["rs_1", "msg_1", None, "rs_3", "msg_2"],
}
"""The ids that are sent if a client drops a provider's tools: reasoning keeps its own if its element does."""


@pytest.mark.parametrize("capture", ["whole", "streamed"])
@pytest.mark.parametrize("name", TURNS)
def test_the_thoughts_stand_in_order_where_the_tools_are_gone(name: str, capture: str) -> None:
    """A client that also drops a provider's tools gets its reasoning back, in order around what it shows; no tool is
    restored that it did not send, and OpenAI sees no reasoning id without the element that it led to."""
    spoken, turn = TURNS[name]
    wire = WIRES[spoken]
    world = answered(wire, turn, capture)
    shown = [element for element in bare(turn) if is_plain(element)]
    sent = world.send(wire.request(wire.ask, *wire.sends(shown), *wire.back(turn)))
    expected = [element for element in turn if is_thought(element) or is_plain(element)]
    assert [unnamed(one) for one in wire.element(sent.body)] == [unnamed(one) for one in expected]
    if name in DROPPED:
        assert [one.get("id") for one in wire.element(sent.body)] == DROPPED[name]


def unnamed(element: Json) -> Json:
    return {key: value for key, value in element.items() if key != "id"} if "type" in element else element


BOUND = [name for name, (wire, _) in TURNS.items() if wire == "openai_responses"]
PAIRED = ("message", "function_call")
"""Kinds that OpenAI accepts without an id."""


def drops_own_names(turn: Elements) -> Elements:
    return [unnamed(element) if element["type"] in PAIRED else element for element in bare(turn)]


def drops_all_names(turn: Elements) -> Elements:
    """Except for an output, which is the client's own without one, and a screen, which has no other identity."""
    kept = ("shell_call_output", "computer_call")
    return [element if element["type"] in kept else unnamed(element) for element in bare(turn)]


def named_with_tools(turn: Elements) -> Elements:
    """The turn with the ids of reasoning that led to a tool of the provider, and of all that followed it."""
    stretches: list[Elements] = [[]]
    for element in turn:
        stretches += [[]] if is_thought(element) else []
        stretches[-1].append(element)
    kept = [any("id" in one and one["type"] not in (*PAIRED, "reasoning") for one in stretch) for stretch in stretches]
    return [
        element if is_kept else unnamed(element)
        for stretch, is_kept in zip(stretches, kept, strict=True)
        for element in stretch
    ]


@pytest.mark.parametrize("capture", ["whole", "streamed"])
@pytest.mark.parametrize("habit", [drops_own_names, drops_all_names])
@pytest.mark.parametrize("name", BOUND)
def test_the_providers_tools_have_the_thoughts_that_they_need(
    name: str, habit: Callable[[Elements], Elements], capture: str
) -> None:
    """A tool that OpenAI ran is identified by its id and needs the reasoning that led to it, with its id, too: if a
    client drops ids, those that belong to a tool are restored, and no others."""
    wire, turn = WIRES["openai_responses"], TURNS[name][1]
    world = answered(wire, turn, capture)
    sent = world.send(wire.request(wire.ask, *wire.sends(habit(turn)), *wire.back(turn)))
    assert wire.element(sent.body) == named_with_tools(turn)


@pytest.mark.parametrize("name", BOUND)
def test_thoughts_that_a_client_kept_with_text_without_ids(name: str) -> None:
    """The same for a client that keeps reasoning and tools, and drops only the ids of text and calls."""
    wire, turn = WIRES["openai_responses"], TURNS[name][1]
    world = answered(wire, turn, "whole")
    shown = [unnamed(element) if element["type"] in PAIRED else element for element in turn]
    sent = world.send(wire.request(wire.ask, *wire.sends(shown), *wire.back(turn)))
    assert wire.element(sent.body) == named_with_tools(turn)


SPLIT = [name for name, (wire, _) in TURNS.items() if wire in ("anthropic_messages", "gemini_generate")]


@pytest.mark.parametrize("capture", ["whole", "streamed"])
@pytest.mark.parametrize("name", SPLIT)
def test_a_turn_in_several_messages_has_each_thought_where_it_led(name: str, capture: str) -> None:
    """A client that writes a message for each block gets all reasoning in the message of the block it led to."""
    spoken, turn = TURNS[name]
    wire = WIRES[spoken]
    world = answered(wire, turn, capture)
    messages = [message for element in bare(turn) for message in wire.sends([element])]
    sent = world.send(wire.request(wire.ask, *messages, *wire.back(turn)))
    listed, member = ("contents", "parts") if spoken == "gemini_generate" else ("messages", "content")
    blocks = [block for message in sent.body[listed][1:-1] for block in message[member]]
    assert blocks == turn
    assert all(not is_thought(message[member][-1]) for message in sent.body[listed][1:-1])


def test_what_the_record_does_not_know_never_parts_a_thought_from_its_element() -> None:
    """A compaction that a client puts before a step comes before its reasoning: OpenAI wants the pair together."""
    world = World("openai", "gpt-5.4", "openai_responses")
    ask = user("Look it up.")
    world.answer(responses(ask), responses_reply(rs("rs_1", "gA1"), fc("fc_1", "call_aB3dE5gH")))
    history = {"type": "compaction", "encrypted_content": "gAcompact"}
    sent = world.send(responses(ask, history, fc("fc_1", "call_aB3dE5gH"), output("call_aB3dE5gH")))
    assert sent.messages[1:-1] == [history, rs("rs_1", "gA1"), fc("fc_1", "call_aB3dE5gH")]


def test_steps_of_two_screens_are_distinguished() -> None:
    """Calls of unknown tools are identified by their ids: no step gets another's reasoning."""
    world = World("openai", "gpt-5.4", "openai_responses")
    ask = user("Look.")
    first, second = (hosted("computer_call", f"cu_{n}", call_id=f"call_{n}", action={"type": "wait"}) for n in "12")
    world.answer(responses(ask), responses_reply(rs("rs_1", "gA1"), first))
    world.answer(responses(ask), responses_reply(rs("rs_2", "gA2"), second))
    for thought_of, screen in ((rs("rs_1", "gA1"), first), (rs("rs_2", "gA2"), second)):
        back = {"type": "computer_call_output", "call_id": screen["call_id"], "output": {}}
        assert world.send(responses(ask, screen, back)).messages[1:-1] == [thought_of, screen]


@pytest.mark.parametrize("name", ["reordered", "client's own"])
def test_an_item_of_the_clients_own_keeps_its_place(name: str) -> None:
    """An item that the record does not have stays after the item it followed, between the reasoning of others."""
    world = WIRES["anthropic_messages"].world()
    turn = [thinking("A", "Es1"), ran_there("srvtoolu_1"), found("srvtoolu_1"), thinking("B", "Es2"), words("Three.")]
    ask = user("Look it up.")
    world.answer(claude(ask, **ON), claude_reply(*turn))
    own = {"type": "fallback", "note": "mine"}
    shown = [turn[4], turn[1], turn[2], own] if name == "reordered" else [turn[1], turn[2], own, turn[4]]
    sent = world.send(claude(ask, says(*shown), user("And?"), **ON))
    at = 5 if name == "reordered" else 3
    assert sent.messages[1]["content"] == [*turn[:at], own, *turn[at:]]


PAUSED = [thinking("A", "Es1"), ran_there("srvtoolu_1")]
RESUMED = [found("srvtoolu_1"), thinking("B", "Es2"), words("Three.")]


@pytest.mark.parametrize("habit", ["keeps_all", "drops_thoughts"])
@pytest.mark.parametrize("is_joined", [False, True], ids=["two messages", "one message"])
def test_a_turn_that_paused_and_went_on(habit: str, is_joined: bool) -> None:
    """Claude may pause while its own tool runs and continue in the next request: both halves get their reasoning."""
    world = WIRES["anthropic_messages"].world()
    ask = user("Look it up.")
    world.answer(claude(ask, **ON), claude_reply(*PAUSED, stop_reason="pause_turn"))
    world.answer(claude(ask, says(*PAUSED), **ON), claude_reply(*RESUMED))
    halves = [[*PAUSED, *RESUMED]] if is_joined else [PAUSED, RESUMED]
    shown = [says(*HABITS[habit](half)) for half in halves]
    sent = world.send(claude(ask, *shown, user("And?"), **ON))
    blocks = [block for message in sent.messages[1:-1] for block in message["content"]]
    if habit == "keeps_all":
        assert sent.plan.edits == ()
    if not is_joined:
        assert blocks == [*PAUSED, *RESUMED]
