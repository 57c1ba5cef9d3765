"""The keys by which steps are found, and what an id proves."""

from __future__ import annotations

import pytest
from msgspec import Raw
from msgspec.structs import replace

from thoughtline.replay.bounds import bound_of
from thoughtline.replay.ids import is_distinctive
from thoughtline.replay.keys import (
    ModelStep,
    evidence_of,
    place_after,
    said_between,
    seal_key,
    walk,
)
from thoughtline.values.identity import Identity
from thoughtline.values.items import Item, ReasoningText, Role, Text, ToolCall, ToolResult
from thoughtline.values.records import Key, Record, RecordId
from thoughtline.values.turns import Provenance, Transcript, Turn

ONE_IN_THE_WORLD = (
    "call_00_Qx7Lm2Zp",
    "call_NKBrzaRfgcLAkvIldhIYsqtH",
    "toolu_01AbCdEfGhIjKlMnOpQrStUv",
    "toolu_bdrk_QwErTyUiOpAsDfGhJkLzXcVb",
    "tooluse_kZJMlvQmRJ6eAyJE5GIl7Q",
    "chatcmpl-tool-9d3c1f0e0a7b4c58a7de3f1f0e0c9a11",
    "call_77278669",
    "call_-7807255211226955507",
    "call_blqyt530",
    "uWqVbNzKd",
    "fc_68e1b2c3d4e5f60718293a4b5c6d7e8f",
    "msg_kKqPzRtYuIoLmNbVcXzAsDfG",
)
SAYS_NOTHING = (
    "",
    "call_1",
    "functions.bash:0",
    "functions_bash_0",
    "functionsbash0",
    "functionsread12",
    "Bash:0",
    "call_00000001",
    "toolcall_a",
    "getCurrentWeather",
    "readManyFiles",
    "msg_1",
)


@pytest.mark.parametrize("name", ONE_IN_THE_WORLD)
def test_random_ids_mean_one_call(name: str) -> None:
    """A globally unique id: letters and digits, many digits, or many letters of both cases."""
    assert is_distinctive(name)


@pytest.mark.parametrize("name", SAYS_NOTHING)
def test_counts_and_names_mean_nothing(name: str) -> None:
    """An id that is a counter, a word or the name of a tool occurs in many conversations."""
    assert not is_distinctive(name)


def test_the_name_of_a_tool_is_not_random() -> None:
    """The tool's own name in an id proves nothing about the call."""
    assert is_distinctive("functions.kDBQueryV2Xa:0")
    assert not is_distinctive("functions.kDBQueryV2Xa:0", "kDBQueryV2Xa")
    assert is_distinctive("call_lookup_9fK2mQ7z", "lookup")


# Keys of steps: which of them what is changed, changes.

ME = Identity("t", "s")
Said = tuple[Role, *tuple[Item, ...]]
SYSTEM: Said = ("system", Text("Be kind."))
ASKED: Said = ("user", Text("List."))
CALL: Said = ("assistant", Text("Look."), ToolCall("ls", "{}", "call_9fK2mQ7x"))
GAVE: Said = ("user", ToolResult(Raw(b'"a"'), "call_9fK2mQ7x"))
GO: Said = ("user", Text("Go on."))
DONE: Said = ("assistant", Text("Done."))
TALK = [SYSTEM, ASKED, CALL, GAVE, GO, DONE]


def request(*said: Said) -> Transcript:
    return Transcript("openai_chat", tuple(Turn(one[0], one[1:]) for one in said))


def last(*said: Said, identity: Identity = ME) -> ModelStep:
    return walk(request(*said), identity).steps[-1]


def kinds(keys: tuple[Key, ...]) -> set[str]:
    return {evidence_of(key) for key in keys}


def test_the_keys_of_a_step() -> None:
    """One for each kind of available evidence; the strongest is computed at once."""
    step, call = last(*TALK), last(SYSTEM, ASKED, CALL)
    assert kinds(step.keys) == {"lineage", "outline", "context", "before", "session", "place"}
    assert kinds(call.keys) == {"lineage", "outline", "call", "before", "session", "place"}
    assert step.lineage == step.keys[0]
    assert kinds(last(*TALK, identity=Identity("t")).keys) == kinds(step.keys) - {"session"}


@pytest.mark.parametrize(
    ("at", "said", "changed"),
    [
        (0, ("system", Text("Be quick.")), {"lineage", "context", "before", "place"}),
        (1, ("user", Text(" List.\n")), set()),
        (1, ("user", Text("Count.")), {"lineage", "outline", "place"}),
        (2, ("assistant", Text("Look."), ToolCall("ls", "{}", "call_8aB3cD4e")), {"outline"}),
        (2, ("assistant", Text("Look."), ToolCall("ls", " { } ", "call_9fK2mQ7x")), set()),
        (2, ("assistant", ToolCall("ls", "{}", "call_9fK2mQ7x")), {"lineage", "outline", "context", "place"}),
        (3, ("user", ToolResult(Raw(b'"b"'), "call_9fK2mQ7x")), {"lineage", "outline", "context", "place"}),
        (4, ("user", Text("Stop.")), {"lineage", "outline", "context", "before", "place"}),
        (5, ("assistant", Text("Over.")), {"lineage", "outline", "context", "before", "session"}),
        (5, ("assistant", ReasoningText("Thought."), Text("Do ne.")), set()),
    ],
    ids=[
        "another system prompt",
        "white space",
        "another first message",
        "another id",
        "spaces in arguments",
        "words dropped",
        "another result",
        "another question",
        "other words",
        "reasoning and a space",
    ],
)
def test_what_changes_which_key(at: int, said: Said, changed: set[str]) -> None:
    """Clients' habits change no key; any other change affects the keys that depend on it, and no others."""
    before, after = set(last(*TALK).keys), set(last(*TALK[:at], said, *TALK[at + 1 :]).keys)
    assert kinds(tuple(before - after)) == changed
    assert kinds(tuple(after - before)) == changed


def test_sessions_and_their_agents_are_apart() -> None:
    own = set(last(*TALK).keys)
    for other in (Identity("t", "s2"), Identity("t", "s", "a")):
        assert kinds(tuple(own - set(last(*TALK, identity=other).keys))) == {"session"}


def test_a_system_message_inside_is_part_of_the_outline() -> None:
    """Thinking is bound to it, too; clients that add one there keep the lineage."""
    frame = bound_of(request(*TALK))
    note: Said = ("system", Text("Mind the time."))
    plain = walk(request(*TALK), ME, frame).steps[-1]
    noted = walk(request(*TALK[:4], note, *TALK[4:]), ME, frame).steps[-1]
    assert kinds(tuple(set(plain.keys) - set(noted.keys))) == {"outline"}
    assert plain.prefix != noted.prefix


def test_results_in_another_order() -> None:
    """Tools finish in any order, in one message or several, and clients repeat results: each belongs to its call."""
    one, two = ToolResult(Raw(b'"1"'), "a"), ToolResult(Raw(b'"2"'), "b")
    orders: list[list[Said]] = [
        [("user", one, two)],
        [("user", two), ("user", one)],
        [("user", one, two), ("user", one)],
    ]
    assert len({last(ASKED, CALL, *order, DONE).lineage for order in orders}) == 1
    assert last(ASKED, CALL, ("user", one), DONE).lineage != last(ASKED, CALL, *orders[0], DONE).lineage


def test_neighbouring_turns_of_the_model_are_one_step() -> None:
    """Together as one; and each by itself, if the next continues the one before."""
    split = last(ASKED, ("assistant", Text("Look.")), ("assistant", ToolCall("ls", "{}", "call_9fK2mQ7x")))
    assert split.lineage == last(ASKED, CALL).lineage
    assert split.positions == (1, 2)
    assert [part.positions for part in split.parts] == [(1,), (2,)]
    assert split.parts[0].lineage == last(ASKED, ("assistant", Text("Look."))).lineage


def test_a_step_that_shows_nothing_has_only_its_seals() -> None:
    """In any base64 alphabet."""
    step = last(ASKED, ("assistant", ReasoningText("Thought.", "ab-_" * 8)))
    assert step.keys == (seal_key("ab+/" * 8),)
    assert step.lineage is None
    assert last(ASKED, ("assistant",)).keys == ()


def test_what_thinking_is_bound_to() -> None:
    """System prompt and tools, without cache markers."""
    tools = (Raw(b'{"name":"ls"}'), Raw(b'{"name":"ls","cache_control":{}}'), Raw(b'{"name":"pwd"}'))
    frames = [bound_of(replace(request(*TALK), tools=(tool,))) for tool in tools]
    assert frames[0] == frames[1] != frames[2]
    assert bound_of(request(*TALK)) != bound_of(request(*TALK[1:])) != frames[0]


def test_a_walk_that_begins_in_the_middle() -> None:
    """Steps after the starting point have the same keys as in the whole conversation."""
    whole = walk(request(*TALK), ME)
    rest = walk(request(*TALK[2:]), ME, start=whole.steps[0].standing)
    assert [step.keys for step in rest.steps] == [step.keys for step in whole.steps]
    assert rest.end == whole.end


def test_where_the_step_after_a_record_stands() -> None:
    """By the record's own lineage and the messages since; unknown if those are too many."""
    first, second = walk(request(*TALK), ME).steps
    where = Provenance("t", "p", "e", "a", "m", "m", "openai_chat", "d")
    record = Record(RecordId("r"), where, first.items, first.keys, 0.0)
    said = said_between(first, second)
    assert said is not None
    assert place_after(record, said) == second.spot.place()
    assert place_after(replace(record, keys=()), said) is None
    assert said_between(first, last(*TALK[:5], GO, GO, DONE)) is None


def test_the_answer_stands_where_the_request_ends() -> None:
    """So a captured turn has the keys that the next request looks up."""
    end = walk(request(*TALK[:5]), ME).end
    assert end.keys((Text("Done."),), ME) == last(*TALK).keys
