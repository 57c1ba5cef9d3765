"""`memory://`: records in this process. The layered store uses it in front of a durable store."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from heapq import heapify, heappop, heappush, heapreplace
from itertools import chain, islice
from typing import TypeAlias

from msgspec import Struct

from thoughtline.stores.background import Periodic
from thoughtline.stores.base import (
    DELETION_KEPT_SECONDS,
    MAX_PAGE,
    MAX_PER_KEY,
    Clock,
    Counters,
    Deletion,
    Entry,
    Filter,
    Found,
    Generation,
    Note,
    Page,
    Saved,
    SessionPlace,
    SessionSummary,
    Stats,
    checked_limit,
    decode_cursor,
    newest_first,
    period_seconds,
    shares,
    sum_sessions,
)
from thoughtline.stores.settings import StoreSettings
from thoughtline.values.records import Key, Record, RecordId, encode_record, is_lineage


class MemoryStore:
    """`memory://`: nothing is kept after the process ends, by choice."""

    def __init__(self, settings: StoreSettings, clock: Clock) -> None:
        self.counters = Counters()
        self._clock = clock
        self._period_seconds = period_seconds(settings.ttl_seconds)
        self.index = MemoryIndex(settings.memory_bytes, settings.ttl_seconds)
        self._notes: dict[str, dict[str, Note]] = {}
        self.deletions: tuple[Deletion, ...] = ()
        self._cleaner = Periodic(self.clean, lambda: settings.clean_seconds)

    async def open(self) -> None:
        self._cleaner.start()

    async def close(self) -> None:
        await self._cleaner.stop()

    async def save(self, records: Sequence[Record]) -> Saved:
        self.put(records, self._clock())
        return Saved.IN_MEMORY

    def put(self, records: Sequence[Record], now: float) -> Sequence[Record]:
        """Add the records that no deletion matches, and return them."""
        if self.deletions:
            records = [record for record in records if not any(one.bars(record, now) for one in self.deletions)]
        for record in records:
            self.index.put(record, now)
        return records

    async def find(self, tenant: str, keys: Sequence[Key]) -> Found:
        return self.index.find(tenant, keys, self._clock())

    async def expired(self, tenant: str, keys: Sequence[Key]) -> frozenset[Key]:
        return self.index.expired(tenant, keys, self._clock())

    async def generation(self, tenant: str) -> Generation:
        now = self._clock()
        self.index.drop_expired(now)
        return self.index.changes, int(now / self._period_seconds)

    async def list_entries(self, where: Filter, limit: int = 50, cursor: str | None = None) -> Page:
        limit, before = checked_limit(limit), decode_cursor(cursor)
        now = self._clock()
        fitting = [
            held
            for held in self.index.held(where.tenant)
            if held.arrival < before and held.expires_at > now and where.fits(held.record)
        ]
        page = fitting[:limit]
        more = str(page[-1].arrival) if len(fitting) > limit else None
        return Page(tuple(Entry(held.record, held.expires_at) for held in page), more)

    async def sessions(self, tenant: str | None = None, limit: int = MAX_PAGE) -> tuple[SessionSummary, ...]:
        parts = [_part(held) for held in self.index.held(tenant)]
        return sum_sessions(parts, checked_limit(limit))

    async def openings(self, places: Sequence[SessionPlace]) -> dict[SessionPlace, Record]:
        found: dict[SessionPlace, Record] = {}
        wanted, now = set(places), self._clock()
        for tenant in dict.fromkeys(tenant for tenant, _ in places):
            for held in self.index.held(tenant):
                record = held.record
                place = tenant, record.provenance.session or ""
                if place in wanted and held.expires_at > now:
                    known = found.get(place, record)
                    found[place] = record if record.created_at <= known.created_at else known
        return found

    async def delete(self, where: Filter) -> int:
        now = self._clock()
        self.deletions = (*self.deletions, Deletion(where, now))
        return self.index.drop_fitting(where)

    async def stats(self) -> Stats:
        all_held = self.index.held()
        made = [held.record.created_at for held in all_held]
        stats = Stats(
            memory_entries=len(all_held),
            memory_chars=self.index.chars,
            by_provider=shares((held.record.provenance.provider, 1, held.chars) for held in all_held),
            by_model=shares((held.record.model, 1, held.chars) for held in all_held),
            oldest_at=min(made, default=None),
            newest_at=max(made, default=None),
        )
        return self.counters.into(stats)

    async def clean(self) -> int:
        now = self._clock()
        self.deletions = tuple(one for one in self.deletions if one.at > now - DELETION_KEPT_SECONDS)
        alive = {
            name: {key: note for key, note in some.items() if note.expires_at > now}
            for name, some in self._notes.items()
        }
        self._notes = {name: some for name, some in alive.items() if some}
        return self.index.drop_expired(now)

    async def put_note(self, note: Note) -> None:
        self._notes.setdefault(note.namespace, {})[note.key] = note

    async def notes(self, namespace: str) -> tuple[Note, ...]:
        now = self._clock()
        alive = [note for note in self._notes.get(namespace, {}).values() if note.expires_at > now]
        return tuple(sorted(alive, key=lambda note: note.key))

    async def delete_notes(self, namespace: str, key: str | None = None) -> int:
        if key is None:
            return len(self._notes.pop(namespace, {}))
        return int(self._notes.get(namespace, {}).pop(key, None) is not None)


# --- the index: limited by bytes, evicts least recently used records first ----------------------------------
# The least recently used record is also the next to expire, so one timestamp serves both. A use only updates that
# timestamp in the record's holder. The queue is corrected when something has to be evicted.


Place: TypeAlias = tuple[str, RecordId]
"""A record's tenant and id."""

_GONE = float("-inf")
_SPARE = 64
"""Holders of dropped records allowed in the queue, in addition to as many as there are records."""

_RECORD_BYTES, _KEY_BYTES = 250, 190
"""Overhead per record and per key, measured."""


class Held(Struct, eq=False, gc=False):
    """A record in memory, kept as a one-record result. `arrival` counts up; `size` is its memory use."""

    alone: tuple[Record]
    expires_at: float
    arrival: int
    chars: int
    size: int

    @property
    def record(self) -> Record:
        return self.alone[0]


class _Shelf:
    """The records of one tenant. Most keys have one record and map to its holder; others map to several, by arrival."""

    __slots__ = ("by_id", "by_key")

    def __init__(self) -> None:
        self.by_id: dict[RecordId, Held] = {}
        self.by_key: dict[Key, Held | dict[Held, None]] = {}

    def add(self, held: Held) -> None:
        self.by_id[held.record.id] = held
        for key in held.record.keys:
            there = self.by_key.setdefault(key, held)
            if isinstance(there, dict):
                there[held] = None
            elif there is not held:
                self.by_key[key] = {there: None, held: None}

    def remove(self, held: Held) -> None:
        del self.by_id[held.record.id]
        for key in held.record.keys:
            there = self.by_key.get(key)
            if isinstance(there, dict):
                there.pop(held, None)
                if len(there) == 1:
                    (self.by_key[key],) = there
            elif there is held:
                del self.by_key[key]


class MemoryIndex:
    """Records by tenant and key. Synchronous, for one thread."""

    def __init__(self, max_bytes: int, ttl_seconds: float) -> None:
        self._max_bytes = max_bytes
        self._ttl_seconds = ttl_seconds
        self._shelves: dict[str, _Shelf] = {}
        self._queue: list[tuple[float, int, Held]] = []
        self._arrivals = self._entries = 0
        self.bytes = 0
        self.chars = 0
        self.changes = 0
        """How often a record was removed or a lineage got another one."""
        self.on_drop: Callable[[Record], None] = lambda record: None

    def __len__(self) -> int:
        return self._entries

    def __contains__(self, place: Place) -> bool:
        return self._at(place) is not None

    def has_lineage_of(self, record: Record) -> bool:
        """Whether another record has the lineage of this one, which is not in the index."""
        shelf = self._shelves.get(record.provenance.tenant)
        first = record.keys[0] if record.keys else None
        return shelf is not None and first in shelf.by_key and is_lineage(first)

    def put(self, record: Record, now: float) -> None:
        held = self._at((record.provenance.tenant, record.id))
        if held is None:
            self._add(record, now + self._ttl_seconds)
        else:
            held.expires_at = max(held.expires_at, now + self._ttl_seconds)

    def find(self, tenant: str, keys: Iterable[Key], now: float) -> Found:
        """Return the live records of each key, newest first, and renew them."""
        shelf = self._shelves.get(tenant)
        if shelf is None:
            return dict.fromkeys(keys, ())
        by_key, until = shelf.by_key, now + self._ttl_seconds
        found: Found = {}
        for key in keys:  # no calls for a key with one record: a conversation has hundreds of them
            held = by_key.get(key)
            if isinstance(held, Held):
                if held.expires_at < until:
                    if held.expires_at <= now:
                        found[key] = ()
                        continue
                    held.expires_at = until
                found[key] = held.alone
            else:
                found[key] = _use_several(held, now, until) if held else ()
        return found

    def expired(self, tenant: str, keys: Iterable[Key], now: float) -> frozenset[Key]:
        """Return the keys whose records are still here but have expired."""
        shelf = self._shelves.get(tenant)
        here = {key: shelf.by_key.get(key) for key in keys} if shelf is not None else {}
        held = {key: tuple(one) if isinstance(one, dict) else (one,) for key, one in here.items() if one is not None}
        return frozenset(key for key, some in held.items() if all(one.expires_at <= now for one in some))

    def drop(self, place: Place) -> None:
        held = self._at(place)
        if held is not None:
            self._drop(held)

    def drop_expired(self, now: float) -> int:
        gone = 0
        while (held := self._oldest()) is not None and held.expires_at <= now:
            self._drop(held)
            gone += 1
        return gone

    def drop_fitting(self, where: Filter) -> int:
        fitting = [held for held in self._all(where.tenant) if where.fits(held.record)]
        for held in fitting:
            self._drop(held)
        return len(fitting)

    def held(self, tenant: str | None = None) -> list[Held]:
        """Return holders, newest arrival first."""
        return sorted(self._all(tenant), key=lambda held: -held.arrival)

    def _at(self, place: Place) -> Held | None:
        shelf = self._shelves.get(place[0])
        return shelf.by_id.get(place[1]) if shelf is not None else None

    def _all(self, tenant: str | None) -> Iterator[Held]:
        shelves = [self._shelves[name] for name in self._shelves if tenant in (None, name)]
        return chain.from_iterable(shelf.by_id.values() for shelf in shelves)

    def _add(self, record: Record, expires_at: float) -> None:
        self._arrivals += 1
        size = len(encode_record(record)) + _RECORD_BYTES + _KEY_BYTES * len(record.keys)
        chars = record.reasoning_chars
        held = Held((record,), expires_at, self._arrivals, chars, size)
        self.changes += self.has_lineage_of(record)
        self._shelves.setdefault(record.provenance.tenant, _Shelf()).add(held)
        self._entries += 1
        self.bytes += size
        self.chars += chars
        heappush(self._queue, (expires_at, held.arrival, held))
        while self.bytes > self._max_bytes:
            if (oldest := self._oldest()) is None:
                break
            self._drop(oldest)

    def _drop(self, held: Held) -> None:
        tenant = held.record.provenance.tenant
        shelf = self._shelves[tenant]
        shelf.remove(held)
        if not shelf.by_id:
            del self._shelves[tenant]
        held.expires_at = _GONE
        self.changes += 1
        self._entries -= 1
        self.bytes -= held.size
        self.chars -= held.chars
        self.on_drop(held.record)
        if len(self._queue) > 2 * self._entries + _SPARE:
            self._queue = [(held.expires_at, held.arrival, held) for held in self._all(None)]
            heapify(self._queue)

    def _oldest(self) -> Held | None:
        """Return the least recently used record. Records used since they were queued move to their new place first."""
        queue = self._queue
        while queue:
            expires_at, arrival, held = queue[0]
            if held.expires_at == expires_at:
                return held
            elif held.expires_at == _GONE:
                heappop(queue)
            else:
                heapreplace(queue, (held.expires_at, arrival, held))
        return None


def _part(held: Held) -> SessionSummary:
    where, record = held.record.provenance, held.record
    models = (f"{where.provider}/{record.model}",)
    return SessionSummary(
        where.tenant, where.session or "", entries=1, chars=held.chars, newest_at=record.created_at, models=models
    )


def _use_several(several: dict[Held, None], now: float, until: float) -> tuple[Record, ...]:
    """Return the newest records of a key with several of them, and renew them."""
    alive = list(islice((held for held in reversed(several) if held.expires_at > now), MAX_PER_KEY))
    for held in alive:
        held.expires_at = max(held.expires_at, until)
    return newest_first([held.record for held in alive])
