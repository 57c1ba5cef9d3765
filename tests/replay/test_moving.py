"""Steps at another place than before: what they mean there, and when they may belong to another conversation."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from thoughtline.replay.frames import Scope
from thoughtline.replay.keys import Standing, outlined, walk
from thoughtline.replay.moving import Movable, moved
from thoughtline.values.identity import Identity
from thoughtline.values.items import Item, Text, ToolCall
from thoughtline.values.outcome import TurnNote
from thoughtline.values.records import RecordId
from thoughtline.values.turns import Transcript, Turn

WHO = Identity("t")
SYSTEM = Turn("system", (Text("Be brief."),), 0)


def said(role: str, *items: Item, at: int) -> Turn:
    return Turn("user" if role == "user" else "assistant", items, at)


def conversation(opening: str) -> Transcript:
    """Three steps, with user messages between them."""
    turns = [SYSTEM, said("user", Text(opening), at=1)]
    for number in range(3):
        call = ToolCall("read", "{}", f"call_{number}x0Ab3dE")
        turns += [
            said("model", Text("Let me look."), call, at=2 + 2 * number),
            said("user", Text(f"go on, {number}"), at=3 + 2 * number),
        ]
    return Transcript("openai_chat", tuple(turns))


def start_of(transcript: Transcript) -> Standing:
    return walk(transcript, WHO).steps[0].standing


def movable(transcript: Transcript, number: int) -> Movable:
    """A step and what follows it, from its record and its request."""
    steps = walk(transcript, WHO).steps
    step, following = steps[number], steps[number + 1]
    assert step.lineage is not None
    return Movable(
        step.names,
        RecordId(f"record {number}"),
        RecordId(f"record {number - 1}" if number else ""),
        bytes.fromhex(step.lineage.partition(":")[2]),
        texts=tuple(step.texts[step.texts_before : following.texts_before]),
        outlined=outlined(step.outline.turns[step.mark : following.mark]),
        calls=following.spot.calls_before,
        elements=2,
        counts={"restored": 1},
        note=TurnNote(0, "restored", "lineage", f"record {number}"),
        evidence="call",
        carrier="reasoning_content",
        was_in_loop=number > 0,
        is_in_loop=False,
        sample=b"",
    )


@pytest.mark.parametrize("opening", ["Read it.", "It is noon. Read it."])
def test_they_stand_where_a_walk_finds_them(opening: str) -> None:
    """By digests, by the outline, and with the turns counted; a step known by its history only if that is unchanged."""
    before, now = conversation("Read it."), conversation(opening)
    done = moved([movable(before, 0), movable(before, 1)], start_of(now), 2, counts_loops=False)
    assert done is not None
    standing, past = done
    expected = walk(now, WHO).steps[2].standing
    assert standing.spot == expected.spot
    assert [one.digest() for one in standing.outline] == [one.digest() for one in expected.outline]
    assert (past.elements, past.parent, past.carrier) == (6, "record 1", "reasoning_content")
    assert past.counts.restored == 2
    why = "lineage" if opening == "Read it." else "call"
    assert [(note.at, note.why) for note in past.notes or ()] == [(2, why), (4, why)]


def test_they_are_one_chain() -> None:
    """A record occurs once, and comes after its parent, if it names one."""
    whole = conversation("Read it.")
    first, second, start = movable(whole, 0), movable(whole, 1), start_of(whole)
    orphan = replace(second, parent=RecordId(""))
    cases: list[tuple[list[Movable | None], bool]] = [
        ([first, orphan], True),
        ([second], True),
        ([second, first], True),
        ([first, replace(second, parent=RecordId("another"))], False),
        ([first, replace(orphan, record=first.record)], False),
        ([first, None, second], False),
        ([], False),
    ]
    for steps, is_good in cases:
        assert (moved(steps, start, 2, counts_loops=False) is not None) is is_good


def test_where_tool_loops_count_they_stand_as_deep_in_one() -> None:
    whole = conversation("Read it.")
    first, second, start = movable(whole, 0), movable(whole, 1), start_of(whole)
    assert moved([first], start, 2, counts_loops=True) is not None
    assert moved([second], start, 2, counts_loops=True) is None


def test_another_scope_is_another_lineage() -> None:
    """The same steps under another system prompt are identified by their calls."""
    whole = conversation("Read it.")
    start = start_of(whole)
    other = start._replace(spot=replace(start.spot, lineage=b"another", scope=Scope("another")))
    done = moved([movable(whole, 0)], other, 2, counts_loops=False)
    assert done is not None
    assert [note.why for note in done[1].notes or ()] == ["call"]
