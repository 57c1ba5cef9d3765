"""Memory in front of a durable store: what it answers alone, when it asks, and what happens in between."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from tests.stores.places import (
    SETTINGS,
    START,
    TRUST,
    Clock,
    found,
    lineage,
    room_for,
    sqlite_url,
    turn,
    until_settled,
    visible,
)
from thoughtline.stores import (
    Filter,
    Found,
    LayeredStore,
    Note,
    Saved,
    Store,
    durable_store,
    open_store,
    sqlite,
    waiting,
)
from thoughtline.stores.background import Periodic
from thoughtline.stores.base import PERIOD
from thoughtline.stores.layered import FINDS_AT_ONCE, PROBE
from thoughtline.stores.waiting import MAX_SECONDS
from thoughtline.values.errors import StoreUnavailable
from thoughtline.values.records import Key, Record, RecordId


class Gate:
    """A real SQLite store behind a gate, which can refuse a call, or delay its answer."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.finds = self.saves = 0
        self.most_saved = 1000
        self.blocks_seconds = 0.0
        self.refuses = self.refuses_late = False
        self.refuses_ids: set[str] = set()
        self.holds: asyncio.Event | None = None
        self.holds_saves: asyncio.Event | None = None
        self.is_held = asyncio.Event()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    async def find(self, tenant: str, keys: Sequence[Key]) -> Found:
        self.finds += tenant != PROBE
        self._check()
        answer = await self._store.find(tenant, keys)
        until = time.monotonic() + self.blocks_seconds
        while time.monotonic() < until:
            pass
        await self._hold()
        self._check_late()
        return answer

    async def save(self, records: Sequence[Record]) -> Saved:
        self.saves += 1
        self._check()
        if len(records) > self.most_saved:
            raise StoreUnavailable("too many at once")
        if self.refuses_ids & {record.id for record in records}:
            raise StoreUnavailable("not this one")
        if self.holds_saves is not None:
            await self.holds_saves.wait()
        self._check_late()
        saved = await self._store.save(records)
        await self._hold()
        return saved

    async def notes(self, namespace: str) -> tuple[Note, ...]:
        self._check()
        return await self._store.notes(namespace)

    async def put_note(self, note: Note) -> None:
        self._check()
        if self.holds_saves is not None:
            await self.holds_saves.wait()
        await self._store.put_note(note)

    def _check(self) -> None:
        if self.refuses:
            raise StoreUnavailable("refused")

    def _check_late(self) -> None:
        if self.refuses_late:
            raise StoreUnavailable("refused late")

    async def _hold(self) -> None:
        if self.holds is not None:
            self.is_held.set()
            await self.holds.wait()


class Bench:
    """A layered store, its gate and its clock."""

    def __init__(self, gate: Gate, clock: Clock, **settings: float) -> None:
        self.gate = gate
        self.clock = clock
        self.store = LayeredStore(gate, replace(SETTINGS, **settings), clock)
        self.waiting = self.store._waiting


@pytest.fixture
async def bench(tmp_path: Path) -> AsyncIterator[Bench]:
    clock = Clock()
    made = Bench(Gate(durable_store(sqlite_url(tmp_path), SETTINGS, clock)), clock)
    await made.store.open()
    yield made
    await made.store.close()


async def test_memory_answers_what_it_knows(bench: Bench) -> None:
    """A lineage is looked up once, and again after a deletion anywhere, or after part of its life."""
    await bench.store.save([turn(1), turn(2)])
    for _ in range(3):
        assert len(await found(bench.store, 1)) == 1
        bench.clock.advance(TRUST)
    assert bench.gate.finds == 1
    await bench.gate._store.delete(Filter(call_id="call_2"))
    for _ in range(2):
        assert len(await found(bench.store, 1)) == 1
    assert bench.gate.finds == 2
    bench.clock.advance(SETTINGS.ttl_seconds * PERIOD)
    assert len(await found(bench.store, 1)) == 1
    assert bench.gate.finds == 3


async def test_a_key_that_several_turns_share_is_trusted_for_a_while(bench: Bench) -> None:
    """Another process may save another turn under it, which only a lookup shows."""
    await bench.store.save([turn(1, shared=("ok",))])
    for expected in (1, 1, 2):
        assert len((await bench.store.find("tenant", [visible("ok")]))[visible("ok")]) == 1
        assert bench.gate.finds == expected
        bench.clock.advance(TRUST / 2)


async def test_a_deletion_elsewhere_while_a_find_is_under_way(bench: Bench) -> None:
    """The find may still return the turn, but memory does not keep it, and the next find asks again."""
    await bench.store.save([turn(1)])
    bench.gate.holds = asyncio.Event()
    asking = asyncio.create_task(found(bench.store, 1))
    await bench.gate.is_held.wait()
    await bench.gate._store.delete(Filter())
    await bench.store.generation("tenant")
    bench.gate.holds.set()
    await asking
    bench.gate.holds = None
    assert await found(bench.store, 1) == ()


async def test_a_known_key_takes_up_what_is_saved_here(bench: Bench) -> None:
    """Without another lookup."""
    await bench.store.save([turn(1, shared=("ok",))])
    await bench.store.find("tenant", [visible("ok")])
    await bench.store.save([turn(2, at=START + 1, shared=("ok",))])
    assert len((await bench.store.find("tenant", [visible("ok")]))[visible("ok")]) == 2
    assert bench.gate.finds == 1


async def test_a_turn_that_is_the_first_of_its_lineage_is_not_asked_for(bench: Bench) -> None:
    """Its save has reported that; but not for a tenant without earlier lookups, nor for a second turn."""
    await bench.store.save([turn(1)])
    await found(bench.store, 1)
    for number in (2, 3):
        assert await bench.store.save([turn(number)]) is Saved.DURABLE
        assert await found(bench.store, number) == (turn(number),)
    assert bench.gate.finds == 1
    elsewhere = replace(turn(4, thought="another thought"), id=RecordId("another"))
    await bench.gate._store.save([elsewhere])
    await bench.store.save([turn(4)])
    assert len(await found(bench.store, 4)) == 2
    assert bench.gate.finds == 2


async def test_a_first_turn_that_another_process_deletes(bench: Bench) -> None:
    """During its save, or after it: its save's result is no longer used."""
    await bench.store.save([turn(1)])
    await found(bench.store, 1)
    bench.gate.holds = asyncio.Event()
    saving = asyncio.create_task(bench.store.save([turn(2)]))
    await bench.gate.is_held.wait()
    bench.clock.advance(1)
    await bench.gate._store.delete(Filter(call_id="call_2"))
    bench.gate.holds.set()
    await saving
    bench.gate.holds = None
    assert await found(bench.store, 2) == ()


async def test_a_record_pushed_out_makes_its_keys_unknown(tmp_path: Path) -> None:
    """A key whose records are no longer all in memory is looked up."""
    clock = Clock()
    small = Bench(
        Gate(durable_store(sqlite_url(tmp_path), SETTINGS, clock)),
        clock,
        memory_bytes=room_for(*(turn(number, shared=("ok",)) for number in range(2))),
    )
    await small.store.open()
    for number in range(3):
        await small.store.save([turn(number, at=START + number, shared=("ok",))])
    for _ in range(2):
        assert len((await small.store.find("tenant", [visible("ok")]))[visible("ok")]) == 3
    assert small.gate.finds == 2
    assert (await small.store.stats()).memory_entries == 2
    await small.store.close()


async def test_a_deletion_while_a_find_is_under_way(bench: Bench) -> None:
    """The find does not add the record to memory again."""
    await bench.store.save([turn(1)])
    bench.gate.holds = asyncio.Event()
    asking = asyncio.create_task(found(bench.store, 1))
    await bench.gate.is_held.wait()
    await bench.store.delete(Filter())
    bench.gate.holds.set()
    assert await asking == ()
    bench.gate.holds = None
    assert await found(bench.store, 1) == ()
    assert (await bench.store.stats()).memory_entries == 0


async def test_two_finds_under_way_at_once(bench: Bench) -> None:
    """Each gets its own answer, and afterwards the key is known."""
    await bench.store.save([turn(1)])
    bench.gate.holds = asyncio.Event()
    asking = [asyncio.create_task(found(bench.store, 1)) for _ in range(2)]
    while bench.gate.finds < 2:
        await asyncio.sleep(0)
    bench.gate.holds.set()
    assert await asyncio.gather(*asking) == [(turn(1),), (turn(1),)]
    bench.gate.holds = None
    assert await found(bench.store, 1) == (turn(1),)
    assert bench.gate.finds == 2


async def test_a_save_while_a_find_is_under_way(bench: Bench) -> None:
    """The key is not marked as known: the next find returns both."""
    await bench.store.save([turn(1, shared=("ok",))])
    bench.gate.holds = asyncio.Event()
    asking = asyncio.create_task(bench.store.find("tenant", [visible("ok")]))
    await bench.gate.is_held.wait()
    saving = asyncio.create_task(bench.store.save([turn(2, at=START + 1, shared=("ok",))]))
    bench.gate.holds.set()
    await asyncio.gather(asking, saving)
    bench.gate.holds = None
    assert len((await bench.store.find("tenant", [visible("ok")]))[visible("ok")]) == 2


async def begun(bench: Bench, *records: Record) -> asyncio.Task[Saved]:
    """Start a save that the durable store does not answer until it is released."""
    bench.gate.holds_saves = bench.gate.holds_saves or asyncio.Event()
    saving = asyncio.create_task(bench.store.save(records))
    await asyncio.sleep(0)
    return saving


def let_go(bench: Bench) -> None:
    assert bench.gate.holds_saves is not None
    bench.gate.holds_saves.set()
    bench.gate.holds_saves = None


async def test_a_turn_is_found_while_its_save_is_under_way(bench: Bench) -> None:
    """However often it is looked up, although the durable store does not have it; and afterwards."""
    saving = await begun(bench, turn(1))
    for _ in range(3):
        assert await found(bench.store, 1) == (turn(1),)
    assert (await bench.store.stats()).waiting == 1
    let_go(bench)
    assert await saving is Saved.DURABLE
    bench.clock.advance(TRUST)
    assert await found(bench.store, 1) == (turn(1),)
    assert (await bench.store.stats()).waiting == 0


async def test_a_save_that_ends_while_a_find_is_under_way(bench: Bench) -> None:
    """The find asked before the turn was written, and its empty answer arrives after: the turn stays."""
    await bench.store.save([turn(1, shared=("ok",))])
    saving = await begun(bench, turn(2, at=START + 1, shared=("ok",)))
    bench.gate.holds = asyncio.Event()
    asking = asyncio.create_task(bench.store.find("tenant", [visible("ok")]))
    await bench.gate.is_held.wait()
    let_go(bench)
    while len((await bench.gate._store.find("tenant", [visible("ok")]))[visible("ok")]) < 2:
        await asyncio.sleep(0)
    bench.gate.holds.set()
    await asyncio.gather(asking, saving)
    bench.gate.holds = None
    for _ in range(2):
        assert len((await bench.store.find("tenant", [visible("ok")]))[visible("ok")]) == 2


async def test_memory_that_is_too_small_for_what_waits(tmp_path: Path) -> None:
    """A turn that memory had to evict is found while it waits, and after it is written."""
    clock = Clock()
    small = Bench(
        Gate(durable_store(sqlite_url(tmp_path), SETTINGS, clock)),
        clock,
        memory_bytes=room_for(*(turn(number, shared=("ok",)) for number in range(2))),
    )
    await small.store.open()
    saves = [await begun(small, turn(number, at=START + number, shared=("ok",))) for number in range(6)]
    for _ in range(2):
        assert [await found(small.store, number) for number in range(6)] == [
            (turn(number, at=START + number, shared=("ok",)),) for number in range(6)
        ]
        assert len((await small.store.find("tenant", [visible("ok")]))[visible("ok")]) == 6
    let_go(small)
    assert await asyncio.gather(*saves) == [Saved.DURABLE] * 6
    assert len((await small.store.find("tenant", [visible("ok")]))[visible("ok")]) == 6
    await small.store.close()


async def test_a_key_that_was_asked_for_while_a_turn_of_it_waited(tmp_path: Path) -> None:
    """What memory learned of the key then is incomplete: the turn, evicted in the meantime, is found when written."""
    clock = Clock()
    small = Bench(
        Gate(durable_store(sqlite_url(tmp_path), SETTINGS, clock)),
        clock,
        memory_bytes=room_for(turn(1, shared=("ok",))),
    )
    await small.store.open()
    await small.store.save([turn(1, shared=("ok",))])
    saving = await begun(small, turn(2, at=START + 1, shared=("ok",)))
    for _ in range(2):
        assert len((await small.store.find("tenant", [visible("ok")]))[visible("ok")]) == 2
    let_go(small)
    await saving
    assert len((await small.store.find("tenant", [visible("ok")]))[visible("ok")]) == 2
    await small.store.close()


@pytest.mark.parametrize("ends", ["well", "refused", "stopped"])
async def test_a_deletion_while_a_save_is_under_way(bench: Bench, ends: str) -> None:
    """A turn deleted during its save is not found: neither during the save nor after it, however it ends."""
    saving = await begun(bench, turn(1))
    bench.clock.advance(1)
    await bench.store.delete(Filter(session="session"))
    assert await found(bench.store, 1) == ()
    if ends == "stopped":
        saving.cancel()
    elif ends == "refused":
        bench.gate.refuses_late = True
    let_go(bench)
    await asyncio.wait([saving])
    bench.gate.refuses_late = False
    await until_settled(bench.store)
    assert (await found(bench.store, 1), await found(bench.gate._store, 1)) == ((), ())
    assert (await bench.store.stats()).waiting == 0


async def test_a_turn_that_was_deleted_before_its_save_began(bench: Bench) -> None:
    """It does not come back by waiting for a store that is down."""
    bench.clock.advance(1)
    await bench.store.delete(Filter())
    bench.gate.refuses = True
    await bench.store.save([turn(1)])
    assert await found(bench.store, 1) == ()
    bench.gate.refuses = False
    await until_settled(bench.store)
    assert await found(bench.store, 1) == ()


async def test_what_waits_expires(bench: Bench) -> None:
    """Like any unused turn."""
    saving = await begun(bench, turn(1))
    bench.clock.advance(SETTINGS.ttl_seconds)
    assert await found(bench.store, 1) == ()
    let_go(bench)
    await saving


async def test_a_save_whose_caller_is_stopped(bench: Bench) -> None:
    """The turn is still found, and written."""
    saving = await begun(bench, turn(1))
    saving.cancel()
    await asyncio.wait([saving])
    assert await found(bench.store, 1) == (turn(1),)
    let_go(bench)
    await until_settled(bench.store)
    assert await found(bench.gate._store, 1) == (turn(1),)


async def test_a_deletion_while_a_find_fails(bench: Bench) -> None:
    """What memory knew when the find began is no longer used."""
    await bench.store.save([turn(1)])
    bench.gate.holds = asyncio.Event()
    bench.gate.refuses_late = True
    asking = asyncio.create_task(found(bench.store, 1))
    await bench.gate.is_held.wait()
    await bench.store.delete(Filter())
    bench.gate.holds.set()
    assert await asking == ()
    bench.gate.refuses_late, bench.gate.holds = False, None


async def test_a_note_is_read_while_it_is_being_written(bench: Bench) -> None:
    """In this process."""
    note = Note("learned", "a", b"1", START + 10)
    bench.gate.holds_saves = asyncio.Event()
    putting = asyncio.create_task(bench.store.put_note(note))
    await asyncio.sleep(0)
    assert await bench.store.notes("learned") == (note,)
    let_go(bench)
    await putting
    assert await bench.store.notes("learned") == (note,)


async def test_a_deletion_while_a_save_fails(bench: Bench) -> None:
    """A deleted turn is not retried."""
    bench.gate.refuses_ids = {"record-1"}
    bench.gate.holds = asyncio.Event()
    saving = asyncio.create_task(bench.store.save([turn(2)]))
    await bench.gate.is_held.wait()
    await bench.store.delete(Filter())
    bench.gate.holds.set()
    await saving
    assert await found(bench.store, 2) == ()


async def test_a_find_that_takes_too_long(tmp_path: Path) -> None:
    """It is a failure: memory answers alone, until a find, not any other call, is answered in time."""
    clock = Clock()
    slow = Bench(Gate(durable_store(sqlite_url(tmp_path), SETTINGS, clock)), clock, timeout_seconds=0.5)
    await slow.store.open()
    await slow.store.save([turn(1)])
    slow.gate.holds = asyncio.Event()
    assert await found(slow.store, 1) == (turn(1),)
    while (await slow.store.stats()).failures < 3:
        await asyncio.sleep(0)
        assert await found(slow.store, 1) == (turn(1),)
    assert slow.gate.finds == 1
    assert (await slow.store.stats()).last_failure == "the store took too long"
    slow.gate.holds.set()
    await until_settled(slow.store)
    assert await found(slow.store, 1) == (turn(1),)
    assert slow.gate.finds == 2
    await slow.store.close()


async def test_an_answer_that_comes_late_is_used(tmp_path: Path) -> None:
    """An answer that could not be interrupted is used; it still counts as a failure."""
    clock = Clock()
    late = Bench(Gate(durable_store(sqlite_url(tmp_path), SETTINGS, clock)), clock, timeout_seconds=0.5)
    await late.store.open()
    elsewhere = durable_store(sqlite_url(tmp_path), SETTINGS, clock)
    await elsewhere.open()
    await elsewhere.save([turn(1)])
    await elsewhere.close()
    late.gate.blocks_seconds = 0.6
    assert await found(late.store, 1) == (turn(1),)
    late.gate.blocks_seconds = 0.0
    assert (await late.store.stats()).failures == 1
    await until_settled(late.store)
    await late.store.close()


async def test_what_waits_is_bounded(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """The oldest is lost first, and counted."""
    monkeypatch.setattr(waiting, "MAX_ENTRIES", 5)
    bench.gate.refuses = True
    for number in range(8):
        assert await bench.store.save([turn(number)]) is Saved.IN_MEMORY
    stats = await bench.store.stats()
    assert (stats.waiting, stats.lost) == (5, 3)
    assert stats.failures > 0
    assert stats.last_failure == "refused"
    bench.gate.refuses = False
    await until_settled(bench.store)
    stats = await bench.store.stats()
    assert (stats.waiting, stats.disk_entries, stats.total_entries) == (0, 5, 5)


async def test_what_waits_too_long_is_given_up(bench: Bench) -> None:
    """Before a deletion that could match it is forgotten."""
    bench.waiting.begin([turn(1)], START)
    bench.waiting.put_off([turn(1)])
    bench.waiting.drop_old(START + MAX_SECONDS)
    assert len(bench.waiting) == 1
    bench.waiting.drop_old(START + MAX_SECONDS + 1)
    assert (len(bench.waiting), bench.waiting.lost) == (0, 1)


async def test_one_bad_record_does_not_hold_up_the_others(bench: Bench) -> None:
    """It moves to the end of the queue."""
    bench.gate.refuses = True
    for number in range(4):
        await bench.store.save([turn(number)])
    bench.gate.refuses_ids, bench.gate.refuses = {"record-0"}, False
    other = bench.gate._store
    while len(bench.waiting) > 1:
        await asyncio.sleep(0)
    assert (await other.stats()).disk_entries == 3
    bench.gate.refuses_ids = set()
    await until_settled(bench.store)
    assert (await other.stats()).disk_entries == 4


@pytest.mark.parametrize("were_acknowledged", [False, True], ids=["waiting", "in doubt"])
async def test_a_store_that_is_too_slow_for_many_at_once(bench: Bench, were_acknowledged: bool) -> None:
    """It gets smaller batches, but not single records."""
    records = [turn(number) for number in range(60)]
    bench.gate.refuses = not were_acknowledged
    await bench.store.save(records)
    bench.gate.refuses = True
    await bench.store.save([turn(60)])
    bench.gate.most_saved, bench.gate.refuses, bench.gate.saves = 16, False, 0
    while not bench.store.is_settled and bench.gate.saves < 60:
        await asyncio.sleep(0)
    assert bench.store.is_settled
    assert (await bench.gate._store.stats()).disk_entries == 61


async def test_many_finds_at_once_do_not_all_ask_at_once(bench: Bench) -> None:
    """Each asks twice; waiting ones ask nothing."""
    bench.gate.holds = asyncio.Event()
    asking = [asyncio.ensure_future(found(bench.store, number)) for number in range(FINDS_AT_ONCE + 10)]
    while bench.gate.finds < FINDS_AT_ONCE:
        await asyncio.sleep(0)
    for _ in range(100):
        await asyncio.sleep(0)
    assert bench.gate.finds == FINDS_AT_ONCE
    bench.gate.holds.set()
    assert await asyncio.gather(*asking) == [()] * (FINDS_AT_ONCE + 10)
    assert bench.gate.finds == FINDS_AT_ONCE + 10


async def test_notes_wait_too(bench: Bench) -> None:
    """They are read from memory in the meantime."""
    note = Note("learned", "a", b"1", START + 10)
    bench.gate.refuses = True
    await bench.store.put_note(note)
    assert await bench.store.notes("learned") == (note,)
    bench.gate.refuses = False
    await until_settled(bench.store)
    assert await bench.gate._store.notes("learned") == (note,)


async def test_closing_writes_what_waits(tmp_path: Path) -> None:
    """If the store accepts it by then."""
    clock = Clock()
    made = Bench(Gate(durable_store(sqlite_url(tmp_path), SETTINGS, clock)), clock)
    await made.store.open()
    made.gate.refuses = True
    await made.store.save([turn(1)])
    made.gate.refuses = False
    await made.store.close()
    again = durable_store(sqlite_url(tmp_path), SETTINGS, clock)
    await again.open()
    assert await again.find("tenant", [lineage(1)]) == {lineage(1): (turn(1),)}
    await again.close()


async def test_background_work_that_fails_in_any_way_is_tried_again() -> None:
    """A driver may raise unexpected errors; the retry loop of a store continues."""
    failed: list[Exception] = []
    works = asyncio.Event()

    async def fail_at_first() -> None:
        for error in (StoreUnavailable("down"), ValueError("another operation is in progress")):
            if not any(type(one) is type(error) for one in failed):
                failed.append(error)
                raise error
        works.set()

    periodic = Periodic(fail_at_first, lambda: 0.0)
    periodic.start()
    async with asyncio.timeout(30):
        await works.wait()
    await periodic.stop()
    assert len(failed) == 2


async def test_background_work_that_swallows_its_cancellation_still_ends() -> None:
    """A driver that catches the cancellation of a query does not prevent its store from closing."""
    begun = asyncio.Event()
    ended: list[bool] = []

    async def stubborn() -> None:
        begun.set()
        with suppress(asyncio.CancelledError):
            await asyncio.Event().wait()
        ended.append(True)

    periodic = Periodic(stubborn, lambda: 3600.0)
    periodic.start()
    periodic.wake()
    await begun.wait()
    await periodic.stop()
    assert ended == [True]


async def test_a_slow_file_is_read_aside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """After a slow lookup, the event loop does not wait for the next; the answers are the same."""
    monkeypatch.setattr(sqlite, "SLOW_SECONDS", -1.0)
    store = durable_store(sqlite_url(tmp_path), SETTINGS, Clock())
    await store.open()
    turns = [turn(number, shared=("ok",)) for number in range(3)]
    await store.save(turns)
    for _ in range(2):
        answers = await asyncio.gather(*(found(store, number) for number in range(3)))
        assert answers == [(record,) for record in turns]
    answer = await store.find("tenant", [visible("ok"), lineage(1)])
    assert [len(answer[key]) for key in (visible("ok"), lineage(1))] == [3, 1]
    await store.close()


async def test_a_record_is_encoded_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Once for memory, which limits its bytes, and for the durable store, which writes it."""
    encoded: list[object] = []
    encode = msgspec.json.encode

    def note(value: object) -> bytes:
        encoded.append(value)
        return encode(value)

    store = await open_store(sqlite_url(tmp_path), SETTINGS)
    try:
        monkeypatch.setattr(msgspec.json, "encode", note)
        await store.save([turn(1)])
        assert [value for value in encoded if isinstance(value, Record)] == [turn(1)]
    finally:
        monkeypatch.undo()
        await store.close()
