"""Behaviour of all stores: one suite, with real servers."""

from __future__ import annotations

import asyncio

import pytest
from msgspec.structs import replace

from tests.stores.places import SETTINGS, START, TRUST, Place, found, lineage, turn, visible
from thoughtline.stores import Filter, Note, Saved, Share, durable_store
from thoughtline.stores.base import MAX_PAGE, MAX_PER_KEY
from thoughtline.stores.durable import EARLY
from thoughtline.values.errors import StoreRefused
from thoughtline.values.items import ReasoningText
from thoughtline.values.records import Key, Record

DAY = 86400.0
PATIENCE_SECONDS = 60
"""Background work that has not run by then counts as missing."""


async def test_a_turn_is_found_by_each_of_its_keys(anywhere: Place) -> None:
    """The saved turn is returned for each key."""
    store = await anywhere.open()
    record = turn(1, shared=("a", "b"))
    saved = await store.save([record])
    assert saved in ({Saved.IN_MEMORY} if anywhere.url.startswith("memory") else {Saved.DURABLE, Saved.FIRST})
    assert await store.find("tenant", record.keys) == dict.fromkeys(record.keys, (record,))


async def test_every_key_asked_for_is_answered(anywhere: Place) -> None:
    """Many keys in one call, including unknown and repeated ones; no keys give no records."""
    store = await anywhere.open()
    await store.save([turn(1), turn(2)])
    answer = await store.find("tenant", [lineage(1), lineage(9), lineage(2), lineage(1)])
    assert list(answer) == [lineage(1), lineage(9), lineage(2)]
    assert [len(records) for records in answer.values()] == [1, 0, 1]
    assert await store.find("tenant", []) == {}
    await store.save([])


async def test_tenants_never_mix(anywhere: Place) -> None:
    """The same turn of two tenants is two entries, and each tenant sees its own."""
    store = await anywhere.open()
    mine, theirs = turn(1, tenant="mine"), turn(1, tenant="theirs")
    await store.save([mine, theirs])
    assert await found(store, 1, "mine") == (mine,)
    assert await found(store, 1, "theirs") == (theirs,)
    assert await found(store, 1, "nobody") == ()
    assert await found(store, 1, "") == ()
    await store.delete(Filter(tenant="theirs"))
    assert await found(store, 1, "mine") == (mine,)


async def test_a_shared_key_gives_all_its_turns_newest_first(anywhere: Place) -> None:
    """Several records may share a weaker key; a store returns all of them."""
    store = await anywhere.open()
    turns = [turn(number, at=START + number, shared=("ok",)) for number in range(4)]
    anywhere.clock.advance(10)
    for record in turns:
        await store.save([record])
    assert (await store.find("tenant", [visible("ok")]))[visible("ok")] == tuple(reversed(turns))
    await store.save([turn(4, at=START + 4, shared=("ok",))])
    assert len((await store.find("tenant", [visible("ok")]))[visible("ok")]) == 5


async def test_a_key_gives_a_bounded_number(anywhere: Place) -> None:
    """The newest ones."""
    store = await anywhere.open()
    anywhere.clock.advance(100)
    await store.save([turn(number, at=START + number, shared=("ok",)) for number in range(MAX_PER_KEY + 5)])
    records = (await store.find("tenant", [visible("ok")]))[visible("ok")]
    assert [record.id for record in records] == [f"record-{n}" for n in range(MAX_PER_KEY + 4, 4, -1)]


async def test_the_same_turn_twice_is_one_entry(anywhere: Place) -> None:
    """Two writers may save one turn, one after the other or at once."""
    store = await anywhere.open()
    record = turn(1, shared=("a",))
    await store.save([record, record])
    await asyncio.gather(*(store.save([record]) for _ in range(10)))
    assert (await store.find("tenant", [visible("a")]))[visible("a")] == (record,)
    stats = await store.stats()
    assert stats.total_entries == 1
    assert stats.total_chars == record.reasoning_chars


async def test_many_saves_at_once(anywhere: Place) -> None:
    """Each is acknowledged, each is found."""
    store = await anywhere.open()
    await asyncio.gather(*(store.save([turn(number)]) for number in range(200)))
    answer = await store.find("tenant", [lineage(number) for number in range(200)])
    assert all(answer.values())


async def test_an_unused_turn_expires(anywhere: Place) -> None:
    """And disappears from every view of the store once it was cleaned."""
    store = await anywhere.open()
    await store.save([turn(1)])
    anywhere.clock.advance(SETTINGS.ttl_seconds - 1)
    await store.save([turn(2)])
    anywhere.clock.advance(2)
    assert await found(store, 1) == ()
    assert len(await found(store, 2)) == 1
    assert [entry.record.id for entry in (await store.list_entries(Filter())).entries] == ["record-2"]
    assert await store.clean() == 1
    stats = await store.stats()
    assert (stats.total_entries, stats.by_provider) == (1, {"deepseek": Share(1, turn(2).reasoning_chars)})


async def test_cleaning_happens_by_itself(anywhere: Place) -> None:
    """Expired turns are removed without a request."""
    store = await anywhere.open(replace(SETTINGS, clean_seconds=0.01))
    await store.save([turn(1)])
    anywhere.clock.advance(SETTINGS.ttl_seconds + 1)
    async with asyncio.timeout(PATIENCE_SECONDS):
        while (await store.stats()).total_entries:
            anywhere.clock.advance(1)  # a cleaning that began before is over, and it is somebody's turn again
            await asyncio.sleep(0)
    assert await store.clean() == 0


async def test_much_writing_is_cleaned_early(durable: Place) -> None:
    """The size cap is restored long before the next regular cleaning, except for writes since the last one."""
    limit = 20_000
    store = await durable.open(replace(SETTINGS, max_bytes=limit))
    for number in range(100):
        await store.save([turn(number, at=START + number)])
    async with asyncio.timeout(PATIENCE_SECONDS):
        while (await store.stats()).disk_bytes > limit + limit / EARLY:
            await asyncio.sleep(0)
    assert 0 < (await store.stats()).disk_entries < 100


async def test_use_renews(anywhere: Place) -> None:
    """The time to live counts from the last use, not from the save."""
    store = await anywhere.open()
    await store.save([turn(1), turn(2)])
    for _ in range(4):
        anywhere.clock.advance(SETTINGS.ttl_seconds / 2)
        assert len(await found(store, 1)) == 1
        await store.clean()
    assert await found(store, 2) == ()


async def test_the_oldest_go_first_when_there_is_too_much(anywhere: Place) -> None:
    """By last use; the rest fits."""
    limit = 20_000
    store = await anywhere.open(replace(SETTINGS, max_bytes=limit, memory_bytes=limit))
    for number in range(50):
        anywhere.clock.advance(DAY / 10)
        await store.save([turn(number, at=anywhere.clock.now, thought="".join(str(number * k) for k in range(200)))])
        if number % 10 == 0:
            assert len(await found(store, 0)) == 1
            await store.clean()
    await store.clean()
    ids = [entry.record.id for entry in (await store.list_entries(Filter(), MAX_PAGE)).entries]
    assert 5 < len(ids) < 49
    assert "record-49" in ids
    assert "record-1" not in ids
    assert (await store.stats()).disk_bytes <= limit


LISTED = [
    (Filter(), {1, 2, 3, 4}),
    (Filter(provider="kimi"), {2, 4}),
    (Filter(model="k3"), {4}),
    (Filter(session="s2"), {2}),
    (Filter(tenant="other"), {3}),
    (Filter(tenant="other", provider="kimi"), set()),
    (Filter(call_id="call_1"), {1}),
    (Filter(call_id="call_1", tenant="other"), set()),
    (Filter(provider="nobody"), set()),
]


def _mixed() -> list[Record]:
    return [
        turn(1, at=START + 1),
        turn(2, at=START + 2, provider="kimi", model="k2", session="s2"),
        turn(3, at=START + 3, tenant="other"),
        turn(4, at=START + 4, provider="kimi", model="k3", session=None),
    ]


@pytest.mark.parametrize(("where", "numbers"), LISTED, ids=lambda value: str(value)[:60])
async def test_list_shows_what_fits(anywhere: Place, where: Filter, numbers: set[int]) -> None:
    """Newest first, with the time each expires."""
    store = await anywhere.open()
    anywhere.clock.advance(10)
    for record in _mixed():
        await store.save([record])
    entries = (await store.list_entries(where)).entries
    assert [entry.record.id for entry in entries] == [f"record-{n}" for n in sorted(numbers, reverse=True)]
    assert all(entry.expires_at == START + 10 + SETTINGS.ttl_seconds for entry in entries)


@pytest.mark.parametrize(("where", "numbers"), LISTED, ids=lambda value: str(value)[:60])
async def test_delete_takes_out_what_list_shows(anywhere: Place, where: Filter, numbers: set[int]) -> None:
    """Exactly those; no view of the store shows them again."""
    store = await anywhere.open()
    anywhere.clock.advance(10)
    records = _mixed()
    await store.save(records)
    assert await store.delete(where) == len(numbers)
    left = {1, 2, 3, 4} - numbers
    for number in (1, 2, 3, 4):
        assert bool(await found(store, number, "other" if number == 3 else "tenant")) is (number in left)
    ids = {entry.record.id for entry in (await store.list_entries(Filter())).entries}
    assert ids == {f"record-{number}" for number in left}
    stats = await store.stats()
    assert stats.total_entries == len(left) == sum(share.entries for share in stats.by_model.values())
    assert stats.total_chars == sum(share.chars for share in stats.by_provider.values())


async def test_pages_are_stable(anywhere: Place) -> None:
    """Saves and deletions between pages neither repeat an entry nor hide an older one."""
    store = await anywhere.open()
    anywhere.clock.advance(100)
    for number in range(25):
        await store.save([turn(number, at=START + number, tenant=f"tenant-{number % 3}")])
    seen, cursor = [], None
    while True:
        page = await store.list_entries(Filter(), 7, cursor)
        seen += [entry.record.id for entry in page.entries]
        await store.save([turn(100 + len(seen), at=START + 90 + len(seen) / 100)])
        cursor = page.cursor
        if cursor is None:
            break
    assert seen == [f"record-{number}" for number in range(24, -1, -1)]


@pytest.mark.parametrize("limit", [0, -1, MAX_PAGE + 1])
async def test_a_page_has_bounds(anywhere: Place, limit: int) -> None:
    """Other values raise a named error; so does a cursor that is not from a page."""
    store = await anywhere.open()
    with pytest.raises(StoreRefused):
        await store.list_entries(Filter(), limit)
    with pytest.raises(StoreRefused):
        await store.list_entries(Filter(), 10, "'; DROP TABLE records")
    with pytest.raises(StoreRefused):
        await store.sessions(limit=limit)


async def test_a_slow_writer_does_not_bring_back_what_was_deleted(anywhere: Place) -> None:
    """A turn created before a matching deletion is not written after it; a later one is."""
    store = await anywhere.open()
    slow, never_seen, other = turn(1), turn(2), turn(3, session="another")
    await store.save([slow])
    anywhere.clock.advance(5)
    await store.delete(Filter(session="session"))
    anywhere.clock.advance(5)
    fresh = turn(4, at=anywhere.clock.now)
    await store.save([slow, never_seen, other, fresh])
    anywhere.clock.advance(2 * TRUST)
    assert [len(await found(store, number)) for number in (1, 2, 3, 4)] == [0, 0, 1, 1]


@pytest.mark.parametrize(
    "where", [Filter(), Filter(tenant="tenant"), Filter(provider="deepseek"), Filter(call_id="call_1")], ids=str
)
async def test_every_kind_of_deletion_holds(anywhere: Place, where: Filter) -> None:
    """Also for a tenant that is new to the store."""
    store = await anywhere.open()
    await store.save([turn(9, tenant="known")])
    anywhere.clock.advance(5)
    await store.delete(where)
    anywhere.clock.advance(5)
    await store.save([turn(1)])
    anywhere.clock.advance(2 * TRUST)
    assert await found(store, 1) == ()
    assert (await store.list_entries(Filter(tenant="tenant"))).entries == ()


async def test_a_clock_that_goes_back_loses_nothing(anywhere: Place) -> None:
    """Even after a deletion: saved turns are found, and existing ones stay."""
    store = await anywhere.open()
    await store.save([turn(1), turn(5, session="gone")])
    anywhere.clock.advance(10)
    await store.delete(Filter(session="gone"))
    anywhere.clock.advance(-DAY)
    await store.save([turn(2, at=anywhere.clock.now), turn(6, at=anywhere.clock.now, session="gone")])
    await store.clean()
    for number in (1, 2, 6):
        assert len(await found(store, number)) == 1
    anywhere.clock.advance(2 * DAY)
    assert len(await found(store, 1)) == 1
    assert await store.delete(Filter()) == 3


async def test_what_has_expired_is_known_until_it_is_cleaned_away(anywhere: Place) -> None:
    """Its key finds nothing, but differs from an unknown one; a lookup does not restore it."""
    store = await anywhere.open()
    await store.save([turn(1)])
    assert await store.expired("tenant", [lineage(1), lineage(2)]) == frozenset()
    anywhere.clock.advance(8 * DAY)
    known = frozenset() if "redis" in anywhere.url else frozenset({lineage(1)})
    for _ in range(2):
        assert await store.expired("tenant", [lineage(1), lineage(2)]) == known
        assert await found(store, 1) == ()
    assert await store.expired("other", [lineage(1)]) == frozenset()


async def test_stats_tell_what_there_is(anywhere: Place) -> None:
    """Entries and characters in memory and on disk, by provider and by model, the oldest and newest, and counts."""
    store = await anywhere.open()
    anywhere.clock.advance(10)
    records = [
        turn(1, at=START + 1),
        turn(2, at=START + 2, provider="kimi", model="k2", thought="longer, one"),
        turn(3, at=START + 3),
    ]
    await store.save(records)
    await store.find("tenant", [lineage(1), lineage(2), lineage(8)])
    store.counters.add(restored=2, missed=1)
    stats = await store.stats()
    chars = sum(record.reasoning_chars for record in records)
    first, second, third = (record.reasoning_chars for record in records)
    assert stats.by_provider == {"deepseek": Share(2, first + third), "kimi": Share(1, second)}
    assert stats.by_model == {"deepseek-v4": Share(2, first + third), "k2": Share(1, second)}
    assert (stats.oldest_at, stats.newest_at) == (START + 1, START + 3)
    assert (stats.hits, stats.misses, stats.replays) == (2, 1, 2)
    assert (stats.total_entries, stats.total_chars) == (3, chars)
    in_memory = anywhere.is_layered or anywhere.url.startswith("memory")
    assert (stats.memory_entries, stats.memory_chars) == ((3, chars) if in_memory else (0, 0))
    on_disk = not anywhere.url.startswith("memory")
    assert (stats.disk_entries, stats.disk_chars) == ((3, chars) if on_disk else (0, 0))
    assert (stats.disk_bytes > 0) is on_disk
    assert (stats.failures, stats.waiting, stats.lost, stats.last_failure) == (0, 0, 0, None)


async def test_an_empty_store_says_so(anywhere: Place) -> None:
    """No entries, no dates."""
    stats = await (await anywhere.open()).stats()
    assert (stats.total_entries, stats.oldest_at, stats.newest_at) == (0, None, None)


async def test_sessions_with_what_they_hold(anywhere: Place) -> None:
    """Newest first, of one tenant or of all; turns without a session are in none."""
    store = await anywhere.open()
    anywhere.clock.advance(10)
    await store.save(
        [
            turn(1, at=START + 1, session="a"),
            turn(2, at=START + 2, session="b"),
            turn(3, at=START + 3, session="a", provider="kimi"),
            turn(4, at=START + 4, session="a", tenant="other"),
            turn(5, at=START + 5, session=None),
        ]
    )
    mine = await store.sessions("tenant")
    assert [(one.session, one.entries, one.newest_at) for one in mine] == [("a", 2, START + 3), ("b", 1, START + 2)]
    assert [one.models for one in mine] == [
        ("deepseek/deepseek-v4", "kimi/deepseek-v4"),
        ("deepseek/deepseek-v4",),
    ]
    assert mine[0].chars == turn(1).reasoning_chars + turn(3).reasoning_chars
    everyone = await store.sessions()
    assert [(one.tenant, one.session) for one in everyone] == [("other", "a"), ("tenant", "a"), ("tenant", "b")]
    assert len(await store.sessions(limit=1)) == 1
    await store.delete(Filter(session="a", tenant="tenant"))
    assert [one.session for one in await store.sessions("tenant")] == ["b"]


async def test_a_session_is_known_by_its_oldest_turn(anywhere: Place) -> None:
    """Of each session that is asked for, whatever others are called; looking does not make a turn live longer."""
    store = await anywhere.open()
    anywhere.clock.advance(10)
    turns = [
        turn(1, at=START + 1, session="a"),
        turn(2, at=START + 2, session="b", provider="kimi"),
        turn(3, at=START + 3, session="a", provider="kimi"),
        turn(4, at=START + 4, session="a", tenant="other"),
        turn(5, at=START + 5, session="c"),
    ]
    for one in turns:
        await store.save([one])
    places = [("tenant", "a"), ("tenant", "b"), ("other", "a"), ("tenant", "none")]
    found = await store.openings(places)
    assert found == {("tenant", "a"): turns[0], ("tenant", "b"): turns[1], ("other", "a"): turns[3]}
    assert await store.openings([]) == {}
    anywhere.clock.advance(SETTINGS.ttl_seconds * 0.9)
    assert len(await store.openings(places)) == 3
    anywhere.clock.advance(SETTINGS.ttl_seconds * 0.2)
    await store.clean()
    assert await store.openings(places) == {}


async def test_a_store_of_another_name_shares_nothing(durable: Place) -> None:
    """At the same address: neither turns nor notes, nor what is deleted."""
    store, beside = await durable.open(), durable_store(durable.url, SETTINGS, durable.clock, "words")
    await beside.open()
    try:
        await store.save([turn(1)])
        await beside.save([turn(2)])
        await beside.put_note(Note("learned", "a", b"1", START + 1000))
        assert [one.record for one in (await store.list_entries(Filter())).entries] == [turn(1)]
        assert [one.record for one in (await beside.list_entries(Filter())).entries] == [turn(2)]
        assert await store.notes("learned") == ()
        assert await beside.delete(Filter()) == 1
        assert await beside.clean() == 0
        assert len((await store.list_entries(Filter())).entries) == 1
    finally:
        await beside.close()


async def test_notes_are_kept_until_they_expire(anywhere: Place) -> None:
    """A small area for values that belong to no tenant."""
    store = await anywhere.open()
    first, second = Note("learned", "b", b"\x00\xff", START + 10), Note("learned", "a", b"2", START + 20)
    for note in (first, replace(first, value=b"old"), first, second, Note("other", "a", b"3", START + 20)):
        await store.put_note(note)
    assert await store.notes("learned") == (second, first)
    anywhere.clock.advance(10)
    assert await store.notes("learned") == (second,)
    await store.clean()
    assert await store.delete_notes("learned", "none") == 0
    assert await store.delete_notes("learned", "a") == 1
    assert await store.notes("learned") == ()
    assert await store.delete_notes("other") == 1
    assert await store.notes("other") == ()


STRANGE = ["", "a b", "{tag}", "}{", "é漢😀", "a\x00b", "x" * 5000, "'; DROP TABLE records; --", '"\\', "=", "%_*?[a]"]


@pytest.mark.parametrize("name", STRANGE, ids=range(len(STRANGE)))
async def test_names_may_be_anything(anywhere: Place, name: str) -> None:
    """Tenants, sessions, models and keys come from outside."""
    store = await anywhere.open()
    record = turn(1, tenant=name, session=name or None, model=name, shared=(name,), thought=name)
    await store.save([record])
    assert await store.find(name, [visible(name), lineage(1)]) == {visible(name): (record,), lineage(1): (record,)}
    assert await store.find(f"{name}!", [visible(name)]) == {visible(name): ()}
    assert await store.delete(Filter(tenant=name)) == 1


@pytest.mark.parametrize("size", [0, 400, 600, 1_000_000])
async def test_turns_of_any_size(anywhere: Place, size: int) -> None:
    """Small ones are stored uncompressed, long ones compressed; all are returned unchanged."""
    store = await anywhere.open()
    record = replace(turn(1), items=(ReasoningText("".join(chr(97 + i * i % 26) for i in range(size))),))
    await store.save([record])
    assert await found(store, 1) == (record,)


async def test_a_turn_without_keys_is_kept_and_listed(anywhere: Place) -> None:
    """It is never found, only listed."""
    store = await anywhere.open()
    await store.save([replace(turn(1), keys=())])
    assert len((await store.list_entries(Filter())).entries) == 1
    assert await store.find("tenant", [Key("")]) == {Key(""): ()}
