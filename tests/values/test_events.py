"""Folding: the reply that a stream of events amounts to."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import Raw

from thoughtline.values.events import (
    CallDelta,
    Event,
    Failed,
    ItemDone,
    Other,
    ReasoningDelta,
    Started,
    TextDelta,
    TurnDone,
    UsageReported,
    fold,
)
from thoughtline.values.items import Item, ReasoningText, Text, ToolCall
from thoughtline.values.turns import Candidate, Finish, Reply, Turn, Usage

STOP = Finish("stop", "end_turn")
THOUGHT = ReasoningText("why", "c2ln")
CALL = ToolCall("look", "{}", "call_1")
ERROR = Raw(b'{"type":"overloaded_error"}')


def candidate(*items: Item, index: int = 0, finish: Finish | None = STOP) -> Candidate:
    return Candidate(Turn("assistant", items), index, finish)


def reply(*candidates: Candidate, usage: Usage | None = None, error: Raw | None = None) -> Reply:
    return Reply("openai_chat", candidates, usage=usage, error=error)


STREAMS: dict[str, tuple[list[Event], Reply]] = {
    "nothing": ([], reply()),
    "only a start": ([Started()], reply()),
    "one item": ([ItemDone(0, 0, Text("a")), TurnDone(0, STOP)], reply(candidate(Text("a")))),
    "items in the order in which they were done": (
        [ItemDone(0, 2, Text("a")), ItemDone(0, 0, THOUGHT), ItemDone(0, 1, CALL), TurnDone(0, STOP)],
        reply(candidate(Text("a"), THOUGHT, CALL)),
    ),
    "equal items": (
        [ItemDone(0, 0, Text("a")), ItemDone(0, 1, Text("a")), TurnDone(0, STOP)],
        reply(candidate(Text("a"), Text("a"))),
    ),
    "an item after the end": (
        [TurnDone(0, STOP), ItemDone(0, 0, Text("a"))],
        reply(candidate(Text("a"))),
    ),
    "deltas and other events say nothing": (
        [
            TextDelta(0, 0, "a"),
            ReasoningDelta(0, 1, "b"),
            CallDelta(1, 2, "{}"),
            Other(Raw(b"{}")),
            ItemDone(0, 0, Text("x")),
            TurnDone(0, STOP),
        ],
        reply(candidate(Text("x"))),
    ),
    "an empty answer": ([TurnDone(0, STOP)], reply(candidate())),
    "several answers, mixed": (
        [
            ItemDone(1, 0, Text("b")),
            ItemDone(0, 0, Text("a")),
            ItemDone(1, 1, CALL),
            TurnDone(1, Finish("tool_calls", "tool_calls")),
            TurnDone(0, STOP),
        ],
        reply(candidate(Text("a")), candidate(Text("b"), CALL, index=1, finish=Finish("tool_calls", "tool_calls"))),
    ),
    "an answer that is missing": (
        [ItemDone(2, 0, Text("c")), TurnDone(2, STOP), ItemDone(0, 0, Text("a")), TurnDone(0, STOP)],
        reply(candidate(Text("a")), candidate(Text("c"), index=2)),
    ),
    "cut before the end": ([ItemDone(0, 0, THOUGHT)], reply(candidate(THOUGHT, finish=None))),
    "cut, and said so": ([ItemDone(0, 0, THOUGHT), TurnDone(0, None)], reply(candidate(THOUGHT, finish=None))),
    "one answer cut, the other whole": (
        [ItemDone(0, 0, Text("a")), ItemDone(1, 0, Text("b")), TurnDone(1, STOP)],
        reply(candidate(Text("a"), finish=None), candidate(Text("b"), index=1)),
    ),
    "an end said twice": (
        [TurnDone(0, Finish("length", "max_tokens")), ItemDone(0, 0, Text("a")), TurnDone(0, STOP)],
        reply(candidate(Text("a"))),
    ),
    "usage": (
        [ItemDone(0, 0, Text("a")), UsageReported(Usage(1, 2, 3, 4)), TurnDone(0, STOP)],
        reply(candidate(Text("a")), usage=Usage(1, 2, 3, 4)),
    ),
    "the last usage": (
        [UsageReported(Usage(1, 1)), TurnDone(0, STOP), UsageReported(Usage(1, 9))],
        reply(candidate(), usage=Usage(1, 9)),
    ),
    "an error alone": ([Failed(ERROR)], reply(error=ERROR)),
    "an error in mid-stream": (
        [ItemDone(0, 0, Text("a")), Failed(ERROR), TurnDone(0, None)],
        reply(candidate(Text("a"), finish=None), error=ERROR),
    ),
}


@pytest.mark.parametrize("name", STREAMS)
def test_a_stream_amounts_to_a_reply(name: str) -> None:
    """Items, finishes, usage and error, each where it belongs."""
    events, expected = STREAMS[name]
    assert fold(events, "openai_chat") == expected


@pytest.mark.parametrize("name", STREAMS)
def test_an_answer_is_complete_if_the_provider_said_so(name: str) -> None:
    """A finish, and nothing else, makes it so."""
    events, _ = STREAMS[name]
    ends = {event.choice: event.finish for event in events if isinstance(event, TurnDone)}
    for answer in fold(events, "openai_chat").candidates:
        assert (answer.finish is not None) is (ends.get(answer.index) is not None)


def test_the_start_names_the_reply() -> None:
    """Its id and model, and the format that was asked for; a reply from a stream has no body."""
    folded = fold([Started("msg_1", "model-1"), TurnDone(0, STOP)], "anthropic_messages")
    assert (folded.id, folded.model, folded.format, folded.body) == ("msg_1", "model-1", "anthropic_messages", b"")


def test_a_folded_reply_is_new() -> None:
    """Its turns were on no wire and are unedited."""
    folded = fold([ItemDone(0, 0, Text("a"))], "openai_chat")
    assert not folded.is_edited
    assert folded.candidates[0].turn == Turn("assistant", (Text("a"),))


def test_events_may_come_one_by_one() -> None:
    """Any iterable will do."""
    events: list[Event] = [ItemDone(0, 0, Text("a")), TurnDone(0, STOP)]
    assert fold(iter(events), "openai_chat") == fold(events, "openai_chat")


@settings(max_examples=100, deadline=None)
@given(said=st.lists(st.tuples(st.integers(0, 3) | st.integers(0, 127), st.text(max_size=3)), max_size=12))
def test_any_mixture_of_answers(said: list[tuple[int, str]]) -> None:
    """Each answer has its own items in the order in which they were done; answers are in the order of their index."""
    folded = fold([ItemDone(choice, 0, Text(text)) for choice, text in said], "openai_chat")
    assert [answer.index for answer in folded.candidates] == sorted({choice for choice, _ in said})
    for answer in folded.candidates:
        assert answer.turn.items == tuple(Text(text) for choice, text in said if choice == answer.index)
