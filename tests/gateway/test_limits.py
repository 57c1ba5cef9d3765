"""Limits of keys: laws for any sequence of requests and streams, for every way of counting."""

from __future__ import annotations

import contextlib
import math
import multiprocessing
import sqlite3
import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from thoughtline.gateway import limits
from thoughtline.gateway.client_keys import ClientKey
from thoughtline.gateway.fleet_counts import FleetCounts, RequestsFact
from thoughtline.gateway.limits import FILE, KeyLimits, LimitCounts, OwnCounts, SharedCounts, make_counts
from thoughtline.values.errors import Declined

GONE = 2**22 + 1
"""No process has this number: Linux counts to 2^22 at most."""


def key(name: str, rate: int | None = None, streams: int | None = None) -> ClientKey:
    return ClientKey(name, name, f"k-{name}", 0.0, None, rate, streams)


@contextlib.contextmanager
def alone() -> Iterator[list[LimitCounts]]:
    yield [OwnCounts()]


@contextlib.contextmanager
def workers() -> Iterator[list[LimitCounts]]:
    """Three that count together."""
    with tempfile.TemporaryDirectory() as folder:
        make_counts(Path(folder))
        with contextlib.ExitStack() as stack:
            counts: list[LimitCounts] = [SharedCounts(Path(folder), worker) for worker in (1, 2, 3)]
            for one in counts:
                stack.callback(one.close)
            yield counts


class Replica:
    """One of several on a shared store, whose messages arrive at once."""

    def __init__(self, own: FleetCounts, everybody: list[FleetCounts]) -> None:
        self._own, self._everybody, self._now = own, everybody, 0.0

    def take(self, key: str, per_minute: int, now: float) -> float:
        self._now = now
        wait = self._own.take(key, per_minute, now)
        self._tell()
        return wait

    def begin(self, key: str, most: int) -> bool:
        has_room = self._own.begin(key, most)
        self._tell()
        return has_room

    def end(self, key: str) -> None:
        self._own.end(key)
        self._tell()

    def close(self) -> None:
        self._own.close()

    def _tell(self) -> None:
        facts = self._own.news()
        for other in self._everybody:
            if other is not self._own:
                other.receive(str(id(self)), facts, self._now)
                other.clean(self._now)


@contextlib.contextmanager
def replicas() -> Iterator[list[LimitCounts]]:
    """Three on a shared store."""
    everybody = [FleetCounts() for _ in range(3)]
    yield [Replica(own, everybody) for own in everybody]


Make = Callable[[], AbstractContextManager[list[LimitCounts]]]
whoever = pytest.mark.parametrize("make", [alone, workers, replicas])


@whoever
@given(per_minute=st.integers(1, 5), steps=st.lists(st.tuples(st.integers(0, 40), st.integers(0, 2)), max_size=60))
def test_never_more_than_so_many_in_any_minute(make: Make, per_minute: int, steps: list[tuple[int, int]]) -> None:
    """In any rhythm, at any process: no minute has more; a key below its limit is never refused."""
    now, passed = 0.0, list[float]()
    with make() as counts:
        for gap, which in steps:
            now += gap
            recent = [at for at in passed if at > now - 60]
            is_free = counts[which % len(counts)].take("a", per_minute, now) == 0
            assert is_free is (len(recent) < per_minute)
            if is_free:
                passed.append(now)


@whoever
@given(per_minute=st.integers(1, 5), gaps=st.lists(st.integers(0, 40), max_size=40))
def test_the_reported_wait_is_long_enough_and_no_longer(make: Make, per_minute: int, gaps: list[int]) -> None:
    """A retry after that time succeeds, and no earlier one."""
    now = 0.0
    with make() as (limit, *_):
        for gap in gaps:
            now += gap
            wait = limit.take("a", per_minute, now)
            if wait:
                assert limit.take("a", per_minute, math.nextafter(now + wait, 0)) > 0
                now += wait
                assert limit.take("a", per_minute, now) == 0


@whoever
def test_a_refused_request_does_not_count(make: Make) -> None:
    """Repeated attempts don't extend the wait."""
    with make() as (limit, *_):
        assert limit.take("a", 1, 0.0) == 0
        assert [limit.take("a", 1, at) for at in (10.0, 20.0, 59.0)] == [50.0, 40.0, 1.0]
        assert limit.take("a", 1, 60.0) == 0


@whoever
def test_keys_are_apart_and_may_be_without_limits(make: Make) -> None:
    """One key's requests and streams don't count for another."""
    with make() as (counts, *_):
        limits, narrow, other, free = KeyLimits(counts), key("a", 1, 1), key("b", 1, 1), key("c")
        limits.admit(narrow, 0.0)
        limits.admit(other, 0.0)
        with pytest.raises(Declined) as refusal:
            limits.admit(narrow, 0.0)
        assert (refusal.value.code, refusal.value.retry_after_seconds) == ("too_many_requests", 60.0)
        with contextlib.ExitStack() as held:
            for one in (narrow, other, *[free] * 100):
                limits.admit(free, 0.0)
                if limits.begin_stream(one):
                    held.callback(limits.end_stream, one)
            with pytest.raises(Declined) as refusal:
                limits.begin_stream(narrow)
            assert refusal.value.code == "too_many_streams"
        assert limits.begin_stream(narrow)
        limits.end_stream(narrow)


@whoever
@given(most=st.integers(1, 4), steps=st.lists(st.tuples(st.booleans(), st.integers(0, 2)), max_size=50))
def test_streams_begun_and_ended(make: Make, most: int, steps: list[tuple[bool, int]]) -> None:
    """Never more at once than allowed; an ended one makes room; nothing is left behind."""
    with make() as counts, pytest.MonkeyPatch.context() as patch:
        patch.setattr(limits, "is_alive", lambda worker: True)
        held: list[LimitCounts] = []
        for is_begin, which in steps:
            one = counts[which % len(counts)]
            if is_begin:
                has_room = len(held) < most
                assert one.begin("a", most) is has_room
                held += [one] if has_room else []
            elif one in held:
                one.end("a")
                held.remove(one)
        for one in held:
            one.end("a")
        assert [counts[-1].begin("a", most) for _ in range(most + 1)] == [True] * most + [False]


def test_a_worker_that_was_killed_holds_nothing(tmp_path: Path) -> None:
    """Its streams ended with it, without a message."""
    make_counts(tmp_path)
    with contextlib.closing(SharedCounts(tmp_path, GONE)) as gone, contextlib.closing(SharedCounts(tmp_path)) as mine:
        assert gone.begin("a", 2)
        assert gone.begin("a", 2)
        assert [mine.begin("a", 2), mine.begin("a", 2), mine.begin("a", 2)] == [True, True, False]


def _ask(folder: Path, times: int, answers: multiprocessing.SimpleQueue[int]) -> None:
    limits.BUSY_SECONDS = 60.0  # on a busy machine whoever has the file may be made to wait
    with contextlib.closing(SharedCounts(folder)) as counts:
        answers.put(sum(counts.take("a", 100, 1.0) == 0 for _ in range(times)))


def test_processes_that_ask_at_once(tmp_path: Path) -> None:
    """Together they get exactly as many as one key may have."""
    make_counts(tmp_path)
    context = multiprocessing.get_context("spawn")
    answers: multiprocessing.SimpleQueue[int] = context.SimpleQueue()
    asking = [context.Process(target=_ask, args=(tmp_path, 80, answers)) for _ in range(3)]
    for process in asking:
        process.start()
    got = [answers.get() for _ in asking]
    for process in asking:
        process.join()
    assert sum(got) == 100


def test_where_the_file_cant_be_used_each_counts_for_itself(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """The file is locked, or is something else: requests continue, limited, and this is logged once."""
    make_counts(tmp_path)
    with contextlib.closing(sqlite3.connect(tmp_path / FILE)) as other:
        other.execute("BEGIN IMMEDIATE")
        for folder in (tmp_path, tmp_path / "not there"):
            with contextlib.closing(SharedCounts(folder)) as counts:
                assert [counts.take("a", 2, 0.0) for _ in range(3)] == [0.0, 0.0, 60.0]
                assert [counts.begin("a", 1), counts.begin("a", 1)] == [True, False]
                counts.end("a")
                assert counts.begin("a", 1)
    assert [record.message.partition(":")[0] for record in caplog.records] == ["workers count each for itself"] * 2


def test_a_late_process_gets_everything() -> None:
    """Everything admitted within the last minute, once, and the open streams."""
    old, new = FleetCounts(), FleetCounts()
    for at in (0.0, 50.0, 50.2, 70.0):
        assert old.take("a", 9, at) == 0
    assert old.begin("a", 2)
    for _ in range(2):
        new.forget("old")
        new.receive("old", old.everything(100.0), 100.0)
    assert [new.take("a", 4, 100.0) == 0, new.take("a", 4, 100.0) == 0] == [True, False]
    assert [new.begin("a", 2), new.begin("a", 2)] == [True, False]
    assert old.news() == []


def test_a_process_without_contact_takes_its_share() -> None:
    """The limit divided by the number of processes, and at least one; their admitted requests are no longer known."""
    counts = FleetCounts()
    counts.receive("other", [RequestsFact("a", 0.0, 5)], 0.0)
    counts.take_share(3)
    assert [counts.take("a", 6, 1.0) == 0 for _ in range(3)] == [True, True, False]
    assert [counts.begin("a", 2), counts.begin("a", 2)] == [True, False]
    counts.rejoin()
    assert [counts.take("a", 6, 2.0) == 0 for _ in range(5)] == [True] * 4 + [False]
