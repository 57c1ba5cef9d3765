"""The index of records in memory, compared with a simple model."""

from __future__ import annotations

import tracemalloc
from collections import OrderedDict

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.stores.places import START, lineage, room_for, turn, visible
from thoughtline.stores import Filter
from thoughtline.stores.base import MAX_PER_KEY
from thoughtline.stores.memory import MemoryIndex
from thoughtline.values.records import Record

TTL = 100.0
ROOM = 2


class Simple:
    """The same in a few lines: records in order of last use."""

    def __init__(self) -> None:
        self.records: OrderedDict[str, tuple[Record, float]] = OrderedDict()

    def put(self, record: Record, now: float) -> None:
        self.use(record, now)
        while len(self.records) > ROOM:
            self.records.popitem(last=False)

    def find(self, number: int, now: float) -> tuple[Record, ...]:
        record, expires_at = self.records.get(f"record-{number}", (turn(number), now))
        if expires_at <= now:
            return ()
        self.use(record, now)
        return (record,)

    def use(self, record: Record, now: float) -> None:
        self.records[record.id] = (record, now + TTL)
        self.records.move_to_end(record.id)

    def clean(self, now: float) -> None:
        for name in [name for name, (_, expires_at) in self.records.items() if expires_at <= now]:
            del self.records[name]


STEPS = st.lists(
    st.tuples(st.sampled_from(["put", "find", "drop", "clean"]), st.integers(0, 3), st.sampled_from([1, 2, 40])),
    min_size=20,
    max_size=60,
)


@given(STEPS)
def test_what_was_used_longest_ago_goes_first(steps: list[tuple[str, int, int]]) -> None:
    """Whatever is put, found, dropped and cleaned, in any order: the same records are there."""
    index, simple, now = MemoryIndex(room_for(*map(turn, range(ROOM))), TTL), Simple(), START
    for step, number, seconds in steps:
        now += seconds
        match step:
            case "put":
                index.put(turn(number), now)
                simple.put(turn(number), now)
            case "find":
                assert index.find("tenant", [lineage(number)], now)[lineage(number)] == simple.find(number, now)
            case "drop":
                index.drop(("tenant", turn(number).id))
                simple.records.pop(turn(number).id, None)
            case _:
                index.drop_expired(now)
                simple.clean(now)
        assert {held.record.id for held in index.held()} == set(simple.records)
    there = [record for record, _ in simple.records.values()]
    assert (len(index), index.chars) == (len(there), sum(record.reasoning_chars for record in there))


def test_bytes_are_bounded() -> None:
    """A record larger than the limit leaves nothing."""
    index = MemoryIndex(10_000, TTL)
    for number in range(50):
        index.put(turn(number), START + number)
        assert index.bytes <= 10_000
    assert 2 < len(index) < 50
    index.put(turn(99, thought="x" * 11_000), START + 99)
    assert (len(index), index.bytes, index.chars) == (0, 0, 0)


@pytest.mark.parametrize("kept", [1, 2, 3])
def test_a_shared_key_follows_its_records(kept: int) -> None:
    """One record, several, and one or none again."""
    index = MemoryIndex(2**30, TTL)
    turns = [turn(number, at=START + number, shared=("ok", "ok")) for number in range(3)]
    for record in turns:
        index.put(record, START)
    for record in turns[kept:]:
        index.drop(("tenant", record.id))
    assert index.find("tenant", [visible("ok")], START)[visible("ok")] == tuple(reversed(turns[:kept]))
    assert index.drop_fitting(Filter(tenant="tenant")) == kept
    assert index.find("tenant", [visible("ok")], START) == {visible("ok"): ()}


def test_of_a_key_that_very_many_share_the_newest_live_on() -> None:
    """Only the returned ones are renewed."""
    index = MemoryIndex(2**30, TTL)
    for number in range(MAX_PER_KEY + 3):
        index.put(turn(number, at=START + number, shared=("ok",)), START)
    given_back = index.find("tenant", [visible("ok")], START + 1)[visible("ok")]
    assert len(given_back) == MAX_PER_KEY
    assert index.drop_expired(START + TTL) == 3
    assert {held.record.id for held in index.held()} == {record.id for record in given_back}


def test_what_comes_and_goes_leaves_nothing() -> None:
    """Dropped records do not pile up, even without evictions."""
    index = MemoryIndex(2**30, TTL)
    tracemalloc.start()
    for number in range(1000):
        index.put(turn(number, thought="x" * 10_000), START + number)
        index.drop(("tenant", turn(number).id))
    held, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert (len(index), index.bytes) == (0, 0)
    assert held < 200 * 10_000
