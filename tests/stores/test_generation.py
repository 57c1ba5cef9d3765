"""One value shows whether earlier results are still valid, whichever process changed the store."""

from __future__ import annotations

import asyncio

from msgspec.structs import replace

from tests.stores.places import SETTINGS, START, TRUST, Place, found, lineage, room_for, turn, visible
from thoughtline.stores import Filter, Store
from thoughtline.stores.base import PERIOD, STALE_SECONDS
from thoughtline.values.records import RecordId

A_PERIOD = SETTINGS.ttl_seconds * PERIOD


async def seen_by_all(place: Place, store: Store) -> None:
    """Wait until all see it: SQLite has to count new arrivals, which a read of the tables does; other stores are
    asked."""
    await store.stats()
    place.clock.advance(STALE_SECONDS)


async def test_it_stays_while_nothing_is_lost(anywhere: Place) -> None:
    """New turns, those that share a weaker key, a repeated save, uses, notes: earlier results are still valid."""
    store = await anywhere.open()
    await store.save([turn(1, shared=("ok",))])
    await found(store, 1)
    before = await store.generation("tenant")
    await store.save([turn(1, shared=("ok",)), turn(2, at=START + 1, shared=("ok",))])
    await store.find("tenant", [lineage(1), visible("ok"), lineage(3)])
    await store.clean()
    anywhere.clock.advance(TRUST)
    assert await store.generation("tenant") == before


async def test_a_deletion_changes_it(anywhere: Place) -> None:
    """At once, in the process that deletes."""
    store = await anywhere.open()
    await store.save([turn(1), turn(2)])
    before = await store.generation("tenant")
    await store.delete(Filter(call_id="call_1"))
    assert await store.generation("tenant") != before


async def test_a_deletion_changes_it_though_nothing_was_there(shared: Place) -> None:
    """Another process may have an unwritten record in its memory, which is now deleted."""
    one, two = await shared.open(), await shared.open()
    before = await two.generation("tenant")
    await one.delete(Filter(tenant="tenant", session="nobody"))
    shared.clock.advance(STALE_SECONDS)
    assert await two.generation("tenant") != before


async def test_an_end_of_life_changes_it(anywhere: Place) -> None:
    """Even if no cleaning ran yet: in time for processes that would continue with it."""
    store = await anywhere.open()
    await store.save([turn(1)])
    before = await store.generation("tenant")
    anywhere.clock.advance(SETTINGS.ttl_seconds)
    assert await store.generation("tenant") != before


async def test_it_changes_before_a_use_is_forgotten(anywhere: Place) -> None:
    """A process that caches results asks again long before they expire, and renews them."""
    store = await anywhere.open()
    await store.save([turn(1)])
    before = await store.generation("tenant")
    anywhere.clock.advance(A_PERIOD)
    assert await store.generation("tenant") != before


async def test_what_is_pushed_out_changes_it(anywhere: Place) -> None:
    """By size or by age, unless it was only evicted from the memory in front."""
    store = await anywhere.open(replace(SETTINGS, memory_bytes=room_for(turn(1)), max_bytes=10))
    await store.save([turn(1)])
    before = await store.generation("tenant")
    await store.save([turn(2)])
    await store.clean()
    anywhere.clock.advance(STALE_SECONDS)
    assert await store.generation("tenant") != before


async def test_a_second_turn_of_a_lineage_changes_it(anywhere: Place) -> None:
    """The first turn of that lineage is no longer the only one."""
    store = await anywhere.open()
    await store.save([turn(1)])
    await found(store, 1)
    before = await store.generation("tenant")
    await store.save([replace(turn(1, thought="another thought"), id=RecordId("another"))])
    await seen_by_all(anywhere, store)
    assert await store.generation("tenant") != before
    assert len(await found(store, 1)) == 2


async def test_what_another_process_does_changes_it(shared: Place) -> None:
    """A deletion, and a second turn of a lineage; a turn of another conversation does not."""
    one, two = await shared.open(), await shared.open()
    await one.save([turn(1), turn(2)])
    seen = [await two.generation("tenant")]
    await one.save([turn(3)])
    shared.clock.advance(STALE_SECONDS)
    assert await two.generation("tenant") == seen[0]
    await one.save([replace(turn(1, thought="another thought"), id=RecordId("another"))])
    await seen_by_all(shared, one)
    seen.append(await two.generation("tenant"))
    await one.delete(Filter(call_id="call_2"))
    shared.clock.advance(STALE_SECONDS)
    seen.append(await two.generation("tenant"))
    assert len(set(seen)) == 3


async def test_two_turns_of_a_lineage_that_are_saved_at_once(shared: Place) -> None:
    """Saved by several processes: one that saw only the first learns of the second."""
    stores = [await shared.open() for _ in range(4)]
    watcher = await shared.open()
    before = await watcher.generation("tenant")
    turns = [replace(turn(1, thought=f"thought {number}"), id=RecordId(str(number))) for number in range(4)]
    await asyncio.gather(*(store.save([one]) for store, one in zip(stores, turns, strict=True)))
    await seen_by_all(shared, watcher)
    assert await watcher.generation("tenant") != before


async def test_a_deletion_by_another_process_is_seen_by_the_next_look_up(shared: Place) -> None:
    """However long memory has known the turn; in one file at once, over a network within a second."""
    one, two = await shared.open(), await shared.open()
    await one.save([turn(1, shared=("ok",))])
    keys = [lineage(1), visible("ok")]
    for _ in range(3):
        assert all((await two.find("tenant", keys)).values())
    await one.delete(Filter())
    shared.clock.advance(0 if shared.url.startswith("sqlite") else STALE_SECONDS)
    assert await two.find("tenant", keys) == dict.fromkeys(keys, ())


async def test_a_second_turn_of_a_lineage_elsewhere_is_seen(shared: Place) -> None:
    """Memory does not keep using the one it knew."""
    one, two = await shared.open(), await shared.open()
    await one.save([turn(1)])
    for _ in range(2):
        assert len(await found(two, 1)) == 1
    await one.save([replace(turn(1, thought="another thought"), id=RecordId("another"))])
    await seen_by_all(shared, one)
    assert len(await found(two, 1)) == 2
