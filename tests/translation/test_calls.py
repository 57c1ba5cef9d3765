"""Ids of calls: valid on both sides, both halves of a pair alike, and back again."""

from __future__ import annotations

import re

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw

from thoughtline import providers
from thoughtline.formats import FORMATS
from thoughtline.providers import Dialect
from thoughtline.translation.calls import CallIds, OutgoingIds, fitted, rule_of, unwrapped, upstream_rule, with_own_ids
from thoughtline.values.items import ToolCall, ToolResult
from thoughtline.values.records import Record, RecordId
from thoughtline.values.turns import FormatName, Provenance, Transcript, Turn

PATTERNS: list[tuple[FormatName, Dialect, str]] = [
    ("anthropic_messages", providers.ANTHROPIC, r"[a-zA-Z0-9_-]{1,64}"),
    ("bedrock_converse", providers.BEDROCK_CLAUDE, r"[a-zA-Z0-9_-]{1,64}"),
    ("openai_responses", providers.OPENAI_RESPONSES, r"(?s).{1,64}"),
    ("openai_chat", providers.DEEPSEEK, r"(?s).{1,40}"),
    ("openai_chat", providers.MISTRAL, r"[a-zA-Z0-9]{9}"),
]
wires = pytest.mark.parametrize(("format", "dialect", "pattern"), PATTERNS)
ids = st.text(st.characters(codec="utf-8"), min_size=1, max_size=200)


@wires
@given(name=ids)
def test_any_id_fits(format: FormatName, dialect: Dialect, pattern: str, name: str) -> None:
    """Whatever an id looks like, each wire gets one that it takes, and the same one each time."""
    rule = rule_of(format, dialect)
    assert re.fullmatch(pattern, fitted(name, rule))
    assert fitted(name, rule) == fitted(name, rule)


@wires
@given(name=ids)
def test_an_id_that_fits_is_left_alone(format: FormatName, dialect: Dialect, pattern: str, name: str) -> None:
    """No id is renamed that need not be."""
    assert (fitted(name, rule_of(format, dialect)) == name) == bool(re.fullmatch(pattern, name))


@given(name=st.text(st.characters(codec="utf-8"), min_size=1, max_size=10), turn=st.integers(0, 500))
def test_what_goes_out_comes_back(name: str, turn: int) -> None:
    """An id that a client can't have is wrapped, and read back from what the client sends."""
    rule = rule_of("anthropic_messages", providers.ANTHROPIC)
    shown = CallIds(rule, turn).for_client(name, "0.0", "look")
    assert shown is not None
    assert rule.pattern.fullmatch(shown)
    assert unwrapped(shown) == name


def test_ids_that_repeat_in_a_conversation_are_distinguished() -> None:
    """Kimi counts from zero in every turn: a client sees two ids, Kimi its own."""
    rule = rule_of("openai_responses", providers.OPENAI_RESPONSES)
    first = CallIds(rule, 0).for_client("functions.look:0", "0.0", "look")
    second = CallIds(rule, 1, frozenset({"functions.look:0"})).for_client("functions.look:0", "0.0", "look")
    assert first != second
    assert [unwrapped(str(name)) for name in (first, second)] == ["functions.look:0", "functions.look:0"]


def test_a_call_without_an_id_gets_one_that_says_so() -> None:
    """Gemini may send none: the client gets one, and Gemini none back."""
    shown = CallIds(rule_of("anthropic_messages", providers.ANTHROPIC), 0, frozenset(), "salt").for_client(
        None, "0.0", "look"
    )
    assert shown is not None
    outgoing = OutgoingIds(rule_of("gemini_generate", providers.GEMINI))
    assert outgoing.call(ToolCall("look", "{}", shown)) is None
    assert outgoing.result(ToolResult(Raw(b'"x"'), shown))[:2] == (None, "look")


def test_both_halves_of_a_pair_are_renamed_alike() -> None:
    """A call and its result under a foreign id, for Mistral's nine characters."""
    outgoing = OutgoingIds(rule_of("openai_chat", providers.MISTRAL))
    name = outgoing.call(ToolCall("look", "{}", "toolu_01ABCDEFGHIJKLMNOP"))
    assert outgoing.result(ToolResult(Raw(b'"x"'), "toolu_01ABCDEFGHIJKLMNOP"))[0] == name


def test_a_repeated_id_for_a_wire_that_rejects_it() -> None:
    """The second call gets another id, and the result that follows it too."""
    outgoing = OutgoingIds(rule_of("anthropic_messages", providers.ANTHROPIC))
    names = []
    for _ in range(2):
        outgoing.begin_turn()
        call = outgoing.call(ToolCall("look", "{}", "call_1"))
        names.append(call)
        assert outgoing.result(ToolResult(Raw(b'"x"'), "call_1"))[0] == call
    assert len(set(names)) == 2


def test_an_id_too_long_to_wrap_comes_back_from_the_record() -> None:
    """A digest can't be read back: the record of the turn tells what it was."""
    name = "call_" + "x" * 300
    client = CallIds(rule_of("openai_chat", FORMATS["openai_chat"].dialect), 0)
    shown = client.for_client(name, "0.0", "look")
    assert shown is not None
    assert len(shown) <= 40
    call, result = ToolCall("look", "{}", shown), ToolResult(Raw(b'"x"'), shown)
    transcript = Transcript("gemini_generate", (Turn("assistant", (call,), 0), Turn("user", (result,), 1)))
    where = Provenance("t", "p", "e", "a", "m", "m", "gemini_generate", "gemini")
    record = Record(RecordId("r"), where, (ToolCall("look", "{}", name),), (), 0.0)
    own = with_own_ids(transcript, [record], client)
    assert [item.id for turn in own.turns for item in turn.items if isinstance(item, ToolCall)] == [name]
    assert [item.call_id for turn in own.turns for item in turn.items if isinstance(item, ToolResult)] == [name]


WHERE = Provenance("t", "p", "e", "a", "m", "m", "gemini_generate", "gemini")
LONG = "call_" + "x" * 60


def by_trying_all(transcript: Transcript, records: list[Record], client: CallIds) -> Transcript:
    """What `with_own_ids` gives, found by trying every turn number for every id."""
    known = {
        client._replace(turn=turn).for_client(name, "", ""): name
        for record in records
        for name in record.call_ids
        for turn in range(client.turn + 1)
    }
    for at, turn in enumerate(transcript.turns):
        items = tuple(
            msgspec.structs.replace(item, id=known.get(item.id, item.id)) if isinstance(item, ToolCall) else item
            for item in turn.items
        )
        if items != turn.items:
            transcript = transcript.with_items(at, items)
    return transcript


def shown_turns(names: list[tuple[str, int]]) -> tuple[Turn, ...]:
    """The model's turns of a chat client: each id as it was shown when so many turns had been before it."""
    rule = rule_of("openai_chat", FORMATS["openai_chat"].dialect)
    shown = [CallIds(rule, turn).for_client(name, "0.0", "look") for name, turn in names]
    return tuple(Turn("assistant", (ToolCall("look", "{}", name),), at) for at, name in enumerate(shown))


def records_of(names: list[str]) -> list[Record]:
    calls = [ToolCall("look", "{}", name) for name in names]
    return [Record(RecordId(str(at)), WHERE, (call,), (), float(at)) for at, call in enumerate(calls)]


@given(
    calls=st.lists(st.tuples(st.integers(0, 9), st.integers(0, 60), st.sampled_from(["kept", "lost", "again"]))),
    is_backwards=st.booleans(),
)
def test_ids_behind_digests_are_those_that_trying_all_would_find(
    calls: list[tuple[int, int, str]], is_backwards: bool
) -> None:
    """Whatever turns a client cut or doubled, which records are left, and in which order they come."""
    names = [(f"{LONG}{number}" if fate != "again" else LONG, turn) for number, turn, fate in calls]
    kept = [name for (name, _), (_, _, fate) in zip(names, calls, strict=True) if fate != "lost"]
    records = records_of(kept)[:: -1 if is_backwards else 1]
    client = CallIds(rule_of("openai_chat", FORMATS["openai_chat"].dialect), 61)
    transcript = Transcript("gemini_generate", shown_turns(names))
    assert with_own_ids(transcript, records, client) == by_trying_all(transcript, records, client)


def test_a_long_conversation_has_all_of_its_ids_back() -> None:
    """Also where the client dropped turns at the beginning and in the middle, and every other answer came twice."""
    turns = [*range(300, 900), *range(1000, 1600)]
    transcript = Transcript("gemini_generate", shown_turns([(f"{LONG}{turn}", turn) for turn in turns]))
    answers = [f"{LONG}{turn}{again}" for turn in turns for again in (("", "again") if turn % 2 else ("",))]
    client = CallIds(rule_of("openai_chat", FORMATS["openai_chat"].dialect), 1700)
    own = with_own_ids(transcript, records_of(answers), client)
    assert [item.id for turn in own.turns for item in turn.items if isinstance(item, ToolCall)] == [
        f"{LONG}{turn}" for turn in turns
    ]


@pytest.mark.parametrize(
    ("dialect", "is_kept"),
    [
        (providers.REASONING, True),
        (providers.QWEN, True),
        (providers.REASONING_CONTENT, True),
        (providers.NO_REASONING, False),
        (providers.REASONING_DETAILS, False),
        (providers.MISTRAL, False),
    ],
)
def test_long_ids_go_back_as_they_came(dialect: Dialect, is_kept: bool) -> None:
    """vLLM's have 46 characters, more than OpenAI takes; a client of Messages shows them as they are."""
    name = "chatcmpl-tool-" + "0123456789abcdef" * 2
    shown = CallIds(rule_of("anthropic_messages", providers.ANTHROPIC), 0).for_client(name, "0.0", "look")
    assert shown == name
    outgoing = OutgoingIds(upstream_rule("openai_chat", dialect))
    assert (outgoing.call(ToolCall("look", "{}", shown)) == name) is is_kept
    assert (outgoing.result(ToolResult(Raw(b'"x"'), shown))[0] == name) is is_kept
