"""Behaviour of all stores that several processes share: one suite, with real servers."""

from __future__ import annotations

import asyncio

from tests.stores.places import SETTINGS, START, TRUST, Place, found, lineage, turn, visible
from thoughtline.stores import Filter
from thoughtline.stores.durable import DurableStore


async def test_another_process_finds_what_was_saved(shared: Place) -> None:
    """At once, and after the first is gone."""
    one, two = await shared.open(), await shared.open()
    await one.save([turn(1)])
    assert len(await found(two, 1)) == 1
    await one.close()
    three = await shared.open()
    assert len(await found(three, 1)) == 1


async def test_a_shared_key_is_complete_after_a_restart(shared: Place) -> None:
    """A turn in memory does not hide another one in the durable store."""
    await (await shared.open()).save([turn(1, shared=("ok",))])
    store = await shared.open()
    await store.save([turn(2, at=START + 1, shared=("ok",))])
    records = (await store.find("tenant", [visible("ok")]))[visible("ok")]
    assert [record.id for record in records] == ["record-2", "record-1"]


async def test_what_another_process_does_is_seen_in_time(shared: Place) -> None:
    """Its saves under a known key, and its deletions, within `trust_seconds`."""
    one, two = await shared.open(), await shared.open()
    await one.save([turn(1, shared=("ok",)), turn(2)])
    assert len((await two.find("tenant", [visible("ok"), lineage(2)]))[visible("ok")]) == 1
    shared.clock.advance(1)
    await one.save([turn(3, at=shared.clock.now, shared=("ok",))])
    await one.delete(Filter(call_id="call_2"))
    shared.clock.advance(TRUST)
    answer = await two.find("tenant", [visible("ok"), lineage(2)])
    assert [len(answer[key]) for key in (visible("ok"), lineage(2))] == [2, 0]


async def test_a_slow_writer_in_another_process(shared: Place) -> None:
    """A deletion applies to all processes."""
    one, two = await shared.open(), await shared.open()
    await one.save([turn(1)])
    shared.clock.advance(1)
    await one.delete(Filter())
    shared.clock.advance(1)
    await two.save([turn(1)])
    shared.clock.advance(2 * TRUST)
    assert await found(one, 1) == ()
    assert await found(two, 1) == ()


async def test_several_processes_write_at_once(shared: Place) -> None:
    """The same and different turns, with deletions in between: nothing is lost, nothing counted twice."""
    stores = [await shared.open() for _ in range(4)]
    work = [store.save([turn(number, session=f"s{number % 5}")]) for number in range(40) for store in stores]
    await asyncio.gather(*work, *(store.delete(Filter(provider="nobody")) for store in stores))
    for store in stores:
        assert (await store.stats()).total_entries == 40
        assert sum(one.entries for one in await store.sessions()) == 40


async def test_opening_at_once_is_safe(shared: Place) -> None:
    """The first creates the layout, the others wait for it."""
    stores = [shared.make() for _ in range(8)]
    await asyncio.gather(*(store.open() for store in stores))
    await asyncio.gather(*(store.open() for store in stores))
    for number, store in enumerate(stores):
        await store.save([turn(number)])
    assert (await stores[0].stats()).total_entries == 8
    for store in stores:
        await store.close()


async def test_one_of_several_cleans(durable: Place) -> None:
    """A background cleaning by one process is enough for a while; files on one machine are cleaned by each."""
    one, two = await durable.open(), await durable.open()
    assert isinstance(one, DurableStore)
    assert isinstance(two, DurableStore)
    await one.save([turn(1)])
    durable.clock.advance(SETTINGS.ttl_seconds + 1)
    assert await one._take_turn(durable.clock(), 60, if_free=True)
    is_shared = not durable.url.startswith("sqlite")
    assert await two.clean_in_turn() == (0 if is_shared else 1)
    assert await two.clean() == (1 if is_shared else 0)
    assert await two._take_turn(durable.clock(), 0.001, if_free=False)
    durable.clock.advance(1)
    while not await one._take_turn(durable.clock(), 60, if_free=True):  # a server that has its own clock
        pass
