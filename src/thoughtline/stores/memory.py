"""Records in this process: bounded by entries and bytes, least recently used out first.

`MemoryIndex` is the structure, `MemoryStore` the store made of it alone; the layered store has one in front of a
durable store.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from typing import TypeAlias

from thoughtline.records import Key, Record, RecordId, encode_record
from thoughtline.stores.background import Periodic
from thoughtline.stores.base import (
    DELETION_KEPT_SECONDS,
    MAX_PAGE,
    Clock,
    Counters,
    Deletion,
    Entry,
    Filter,
    Found,
    Note,
    Page,
    Saved,
    SessionSummary,
    Stats,
    checked_limit,
    newest_first,
    shares,
    unique,
)
from thoughtline.stores.paging import decode_cursor, encode_cursor
from thoughtline.stores.settings import StoreSettings

Place: TypeAlias = tuple[str, RecordId]
"""A record's tenant and id."""


class _Held:
    """A record in memory. `arrival` counts up; `size` is what it would be on a wire."""

    __slots__ = ("arrival", "chars", "expires_at", "record", "size")

    def __init__(self, record: Record, arrival: int, expires_at: float) -> None:
        self.record = record
        self.arrival = arrival
        self.expires_at = expires_at
        self.chars = record.reasoning_chars
        self.size = len(encode_record(record))


class MemoryIndex:
    """Records by place in order of last use, and the places of each key. Plain calls, one thread."""

    def __init__(self, max_entries: int, max_bytes: int, ttl_seconds: float) -> None:
        self._max_entries = max_entries
        self._max_bytes = max_bytes
        self._ttl_seconds = ttl_seconds
        self._held: OrderedDict[Place, _Held] = OrderedDict()
        self._places: dict[tuple[str, Key], dict[Place, None]] = {}
        self._arrivals = 0
        self.bytes = 0
        self.chars = 0
        self.on_drop: Callable[[Record], None] = lambda record: None

    def __len__(self) -> int:
        return len(self._held)

    def __contains__(self, place: Place) -> bool:
        return place in self._held

    def put(self, record: Record, now: float) -> None:
        place = (record.provenance.tenant, record.id)
        held = self._held.get(place)
        if held is None:
            self._arrivals += 1
            held = self._held[place] = _Held(record, self._arrivals, 0.0)
            self.bytes += held.size
            self.chars += held.chars
            for key in record.keys:
                self._places.setdefault((place[0], key), {})[place] = None
        self._use(place, held, now)
        self._make_room()

    def get(self, tenant: str, key: Key, now: float) -> tuple[Record, ...]:
        """The records of a key that still live; they are used by it."""
        alive = []
        for place in tuple(self._places.get((tenant, key), ())):
            held = self._held[place]
            if held.expires_at > now:
                self._use(place, held, now)
                alive.append(held.record)
        return newest_first(alive)

    def drop(self, place: Place) -> None:
        held = self._held.pop(place, None)
        if held is None:
            return
        self.bytes -= held.size
        self.chars -= held.chars
        for key in held.record.keys:
            places = self._places.get((place[0], key), {})
            places.pop(place, None)
            if not places:
                self._places.pop((place[0], key), None)
        self.on_drop(held.record)

    def drop_expired(self, now: float) -> int:
        return self._drop_all([place for place, held in self._held.items() if held.expires_at <= now])

    def drop_fitting(self, where: Filter) -> int:
        return self._drop_all([place for place, held in self._held.items() if where.fits(held.record)])

    def held(self) -> Iterator[_Held]:
        """Newest arrival first."""
        return iter(sorted(self._held.values(), key=lambda held: -held.arrival))

    def _drop_all(self, places: list[Place]) -> int:
        for place in places:
            self.drop(place)
        return len(places)

    def _use(self, place: Place, held: _Held, now: float) -> None:
        held.expires_at = max(held.expires_at, now + self._ttl_seconds)
        self._held.move_to_end(place)

    def _make_room(self) -> None:
        while self._held and (len(self._held) > self._max_entries or self.bytes > self._max_bytes):
            self.drop(next(iter(self._held)))


class MemoryStore:
    """`memory://`: nothing survives the process, by choice."""

    def __init__(self, settings: StoreSettings, clock: Clock) -> None:
        self.counters = Counters()
        self._clock = clock
        self.index = MemoryIndex(settings.memory_entries, settings.memory_bytes, settings.ttl_seconds)
        self._notes: dict[tuple[str, str], Note] = {}
        self.deletions: tuple[Deletion, ...] = ()
        self._cleaner = Periodic(self.clean, lambda: settings.clean_seconds)

    async def open(self) -> None:
        self._cleaner.start()

    async def close(self) -> None:
        await self._cleaner.stop()

    async def save(self, records: Sequence[Record]) -> Saved:
        now = self._clock()
        for record in records:
            if not any(deletion.bars(record, now) for deletion in self.deletions):
                self.index.put(record, now)
        return Saved.IN_MEMORY

    async def find(self, tenant: str, keys: Sequence[Key]) -> Found:
        now = self._clock()
        return self.counters.count({key: self.index.get(tenant, key, now) for key in unique(keys)})

    async def list_entries(self, where: Filter, limit: int = 50, cursor: str | None = None) -> Page:
        limit, before = checked_limit(limit), decode_cursor(cursor)
        now = self._clock()
        fitting = [
            held
            for held in self.index.held()
            if (before is None or held.arrival < before) and held.expires_at > now and where.fits(held.record)
        ]
        page = fitting[:limit]
        more = encode_cursor(page[-1].arrival) if len(fitting) > limit else None
        return Page(tuple(Entry(held.record, held.expires_at) for held in page), more)

    async def sessions(self, tenant: str | None = None, limit: int = MAX_PAGE) -> tuple[SessionSummary, ...]:
        return summarize(self.index, tenant, checked_limit(limit))

    async def delete(self, where: Filter) -> int:
        now = self._clock()
        self.deletions = (*self.deletions, Deletion(where, now))
        return self.index.drop_fitting(where)

    async def stats(self) -> Stats:
        return self.counters.into(describe(self.index))

    async def clean(self) -> int:
        now = self._clock()
        self.deletions = tuple(one for one in self.deletions if one.at > now - DELETION_KEPT_SECONDS)
        self._notes = {place: note for place, note in self._notes.items() if note.expires_at > now}
        return self.index.drop_expired(now)

    async def put_note(self, note: Note) -> None:
        self._notes[note.namespace, note.key] = note

    async def notes(self, namespace: str) -> tuple[Note, ...]:
        now = self._clock()
        alive = [note for note in self._notes.values() if note.namespace == namespace and note.expires_at > now]
        return tuple(sorted(alive, key=lambda note: note.key))

    async def delete_notes(self, namespace: str, key: str | None = None) -> int:
        gone = [place for place in self._notes if place[0] == namespace and key in (None, place[1])]
        for place in gone:
            del self._notes[place]
        return len(gone)


def describe(index: MemoryIndex) -> Stats:
    """What an index holds."""
    all_held = tuple(index.held())
    made = [held.record.created_at for held in all_held]
    return Stats(
        memory_entries=len(index),
        memory_chars=index.chars,
        by_provider=shares((held.record.provenance.provider, 1, held.chars) for held in all_held),
        by_model=shares((held.record.model, 1, held.chars) for held in all_held),
        oldest_at=min(made, default=None),
        newest_at=max(made, default=None),
    )


def summarize(index: MemoryIndex, tenant: str | None, limit: int) -> tuple[SessionSummary, ...]:
    """The sessions in an index."""
    groups: dict[tuple[str, str], list[_Held]] = {}
    for held in index.held():
        where = held.record.provenance
        if where.session and tenant in (None, where.tenant):
            groups.setdefault((where.tenant, where.session), []).append(held)
    summaries = [
        SessionSummary(*place, len(group), sum(held.chars for held in group), max(h.record.created_at for h in group))
        for place, group in groups.items()
    ]
    return tuple(sorted(summaries, key=lambda one: (-one.newest_at, one.tenant, one.session))[:limit])
