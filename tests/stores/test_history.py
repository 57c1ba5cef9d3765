"""History: one suite for all engines."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import asyncpg
import pytest

from tests.stores.places import SETTINGS, START, Clock, sqlite_url, wipe
from thoughtline.stores.history import (
    DAY,
    HOUR,
    MINUTE,
    Group,
    History,
    HistoryEntry,
    HistorySettings,
    Kept,
    Sums,
    Where,
    history_at,
)
from thoughtline.stores.history.sqlite_history import SUFFIX

DURABLE = ("sqlite", "redis", "redis-cluster", "postgres")
MICRO = 1_000_000
DEFAULT = HistorySettings()

ANN = Group("k-ann", "Ann", "claude-code", "deepseek", "deepseek-v4", outcome="restored", status=200)
BEN = Group("k-ben", "Ben", "codex", "openai", "gpt-6", outcome="refused", status=400, code="invalid")


class Place:
    """An address. Each `open` is another process's view of it."""

    def __init__(self, url: str) -> None:
        self.url, self.clock = url, Clock()
        self.opened: list[History] = []

    async def open(self, settings: HistorySettings = DEFAULT) -> History:
        history = history_at(self.url, SETTINGS, settings, self.clock)
        await history.open()
        self.opened.append(history)
        return history


@pytest.fixture(params=DURABLE)
async def place(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Place]:
    fixtures = {"redis": "redis_url", "redis-cluster": "cluster_url", "postgres": "postgres_url"}
    url = request.getfixturevalue(fixtures[request.param]) if request.param in fixtures else sqlite_url(tmp_path)
    await wipe(url)
    made = Place(url)
    yield made
    for history in made.opened:
        await history.close()


def entry(
    number: int, group: Group = ANN, *, session: str = "", at: float | None = None, size: int = 40
) -> HistoryEntry:
    """The entry of a second of its own."""
    moment = int((START + number if at is None else at) * MICRO)
    sums = Sums(requests=1, restored=number, own_ms=0.5, input_tokens=10)
    return HistoryEntry(moment, f"{number:016x}", group, session, sums, f"data of {number} ".encode().ljust(size, b"."))


def numbers(found: Sequence[Kept]) -> list[int]:
    return [int(one.id, 16) for one in found]


async def test_pages_are_newest_first(place: Place) -> None:
    """What one process writes, another reads in pages that neither repeat nor leave out anything."""
    one, other = await place.open(), await place.open()
    await one.write([entry(number) for number in range(5)])
    await other.write([entry(number, BEN) for number in range(5, 10)])
    assert numbers(await other.page(Where(), 4)) == [9, 8, 7, 6]
    last = (await other.page(Where(), 4))[-1]
    assert numbers(await one.page(Where(before=last[:2]), 100)) == [5, 4, 3, 2, 1, 0]
    assert (await one.page(Where(), 1))[0].data.startswith(b"data of 9 ")


async def test_entries_of_one_moment_are_all_there(place: Place) -> None:
    """Entries that began in the same microsecond are told apart by their ids."""
    history = await place.open()
    await history.write([entry(number, at=START) for number in range(7)])
    found, before = [], None
    while some := await history.page(Where(before=before), 3):
        found += numbers(some)
        before = some[-1][:2]
    assert found == [6, 5, 4, 3, 2, 1, 0]


async def test_a_retried_write_is_one(place: Place) -> None:
    """An entry written twice stands there once."""
    history = await place.open()
    await history.write([entry(1)])
    await history.write([entry(1)])
    assert numbers(await history.page(Where(), 9)) == [1]


async def test_filters(place: Place) -> None:
    """By groups, by range, by session or its beginning, and by all of them."""
    history = await place.open()
    await history.write([entry(n, (ANN, BEN)[n % 2], session=f"task-{n // 4}") for n in range(12)])
    assert set((await history.groups()).values()) == {ANN, BEN}
    assert numbers(await history.page(Where(groups=frozenset([BEN.id])), 3)) == [11, 9, 7]
    assert numbers(await history.page(Where(groups=frozenset([ANN.id, BEN.id])), 3)) == [11, 10, 9]
    assert numbers(await history.page(Where(groups=frozenset()), 3)) == []
    start = int(START * MICRO)
    assert numbers(await history.page(Where(start + 2 * MICRO, start + 5 * MICRO), 9)) == [4, 3, 2]
    assert numbers(await history.page(Where(session="task-1"), 9)) == [7, 6, 5, 4]
    assert numbers(await history.page(Where(session="task", is_prefix=True), 3)) == [11, 10, 9]
    assert numbers(await history.page(Where(session="task"), 3)) == []
    both = Where(session="task-1", groups=frozenset([ANN.id]))
    assert numbers(await history.page(both, 9)) == [6, 4]


async def test_many_groups_are_looked_for_among_all(place: Place) -> None:
    """A filter that means more groups than are asked for one by one finds the same."""
    history = await place.open()
    groups = [Group(f"k-{number}", outcome="ok", status=200) for number in range(450)]
    await history.write([entry(number, one) for number, one in enumerate(groups)])
    chosen = frozenset(one.id for one in groups if one.tenant != "k-448")
    assert numbers(await history.page(Where(groups=chosen), 3)) == [449, 447, 446]


async def test_an_id_or_its_beginning(place: Place) -> None:
    history = await place.open()
    await history.write([entry(number) for number in range(0x10, 0x30)])
    found = await history.find(f"{0x11:016x}")
    assert found is not None
    assert found.id.endswith("11")
    found = await history.find(f"{0x2:015x}")
    assert found is not None
    assert found.id == f"{0x2F:016x}"
    assert await history.find("feed") is None


async def test_sums_by_time_and_by_group(place: Place) -> None:
    """Two processes add to the same minutes, hours and days."""
    one, other = await place.open(), await place.open()
    day = START // DAY * DAY
    await one.write([entry(1, at=day), entry(2, at=day + MINUTE)])
    await other.write([entry(3, BEN, at=day + MINUTE + 1), entry(4, at=day + HOUR)])
    start = int(day)
    by_minute = await one.sums(MINUTE, start, start + HOUR, None, "time")
    assert {at - start: sums.requests for at, sums in by_minute.items()} == {0: 1, 60: 2}
    assert by_minute[start + 60].restored == 5
    by_hour = await other.sums(HOUR, start, start + DAY, frozenset([ANN.id]), "time")
    assert {at - start: (sums.requests, sums.own_ms) for at, sums in by_hour.items()} == {0: (2, 1.0), HOUR: (1, 0.5)}
    by_group = await one.sums(DAY, start, start + DAY, None, "group")
    assert {key: sums.input_tokens for key, sums in by_group.items()} == {ANN.id: 30, BEN.id: 10}


async def test_sessions(place: Place) -> None:
    """When each began and ended, and what it is made of."""
    history = await place.open()
    await history.write([entry(n, (ANN, BEN)[n == 5], session="ab"[n > 3]) for n in range(8)])
    await history.write([entry(9)])
    second, first = await history.sessions(0, 9)
    assert (first.session, second.session) == ("a", "b")
    assert second.last_at - second.first_at == 3 * MICRO
    assert second.groups == {ANN.id: 3, BEN.id: 1}
    assert [one.session for one in await history.sessions(0, 1)] == ["b"]


async def test_a_person_is_forgotten(place: Place) -> None:
    """Entries, groups and sums go, what was under way at that moment is refused, and what begins later is kept."""
    one, other = await place.open(), await place.open()
    day = int(START // DAY * DAY)
    await one.write([entry(n, (ANN, BEN)[n % 2], session=f"of-{'ab'[n % 2]}") for n in range(6)])
    place.clock.advance(10)
    assert await other.forget("k-ann") == 3
    assert numbers(await one.page(Where(), 9)) == [5, 3, 1]
    assert list((await one.groups()).values()) == [BEN]
    assert set(await one.sums(DAY, day, day + DAY, None, "group")) == {BEN.id}
    assert await one.page(Where(session="of-a"), 9) == []
    assert [session.session for session in await one.sessions(0, 9)] == ["of-b"]
    await one.write([entry(8), entry(9, BEN)])
    await one.write([entry(11)])
    assert numbers(await other.page(Where(), 9)) == [11, 9, 5, 3, 1]
    assert (await one.sums(DAY, day, day + DAY, None, "group"))[ANN.id].requests == 1


async def test_what_is_too_old_goes(place: Place) -> None:
    """Entries, sums and groups that nothing is left of."""
    history = await place.open(HistorySettings(ttl_seconds=10 * DAY))
    await history.write([entry(1, BEN, session="old"), entry(2, at=START + 9 * DAY)])
    place.clock.advance(11 * DAY)
    await history.clean()
    place.clock.advance(2)
    await history.clean()
    assert numbers(await history.page(Where(), 9)) == [2]
    start = int(START)
    assert await history.sums(MINUTE, start - DAY, start + 5 * DAY, None, "time") == {}
    place.clock.advance(20 * DAY)
    await history.clean()
    assert (await history.size()).entries == 0
    assert await history.groups() == {}


async def test_what_is_too_much_goes(place: Place) -> None:
    """The oldest entries go until the rest fits; what is left is the newest."""
    history = await place.open(HistorySettings(max_bytes=400_000))
    for start in range(0, 3000, 500):
        await history.write([entry(number, size=400) for number in range(start, start + 500)])
    await history.clean()
    size = await history.size()
    assert 200 < size.entries < 1500
    assert numbers(await history.page(Where(), 2)) == [2999, 2998]
    assert len(await history.page(Where(), 5000)) == size.entries


async def test_nothing_of_a_person_stays_in_the_file(tmp_path: Path) -> None:
    """Neither in free pages nor in the log beside it."""
    place = Place(sqlite_url(tmp_path))
    history = await place.open()
    group = Group("k-zoe", "Zoe Zebra", "claude-code", "deepseek", "a-model-of-zoe", outcome="ok", status=200)
    await history.write([entry(n, group, session="session-of-zoe", size=400) for n in range(500)])
    await history.write([entry(n, BEN, size=400) for n in range(500, 900)])
    place.clock.advance(1000)
    assert await history.forget("k-zoe") == 500
    for file in (tmp_path / "deep").iterdir():
        content = file.read_bytes()
        assert not [word for word in (b"zoe", b"Zebra", b"data of 77 ") if word in content], file
    await history.close()
    place.opened.clear()
    assert Path(place.url.removeprefix("sqlite:///") + SUFFIX).exists()


async def test_two_processes_make_one_layout(postgres_url: str) -> None:
    """Gateways that start at once, before there is a table."""
    await wipe(postgres_url)
    connection = await asyncpg.connect(postgres_url)
    await connection.execute("DROP SCHEMA IF EXISTS thoughtline_history CASCADE")
    await connection.close()
    place = Place(postgres_url)
    for history in [await place.open(), await place.open()]:
        assert await history.groups() == {}
        await history.close()
