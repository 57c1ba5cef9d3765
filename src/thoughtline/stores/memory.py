"""`memory://`: records in this process. The layered store has one in front of a durable store."""

from __future__ import annotations

from collections.abc import Sequence

from thoughtline.stores.background import Cleaner
from thoughtline.stores.base import (
    DELETION_KEPT_SECONDS,
    MAX_PAGE,
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
    SessionSummary,
    Stats,
    checked_limit,
    period,
    shares,
)
from thoughtline.stores.memory_index import Held, MemoryIndex
from thoughtline.stores.paging import decode_cursor, encode_cursor
from thoughtline.stores.settings import StoreSettings
from thoughtline.values.records import Key, Record


class MemoryStore:
    """`memory://`: nothing survives the process, by choice."""

    def __init__(self, settings: StoreSettings, clock: Clock) -> None:
        self.counters = Counters()
        self._clock = clock
        self._ttl_seconds = settings.ttl_seconds
        self.index = MemoryIndex(settings.memory_entries, settings.memory_bytes, settings.ttl_seconds)
        self._notes: dict[str, dict[str, Note]] = {}
        self.deletions: tuple[Deletion, ...] = ()
        self._cleaner = Cleaner(self.clean, settings)

    async def open(self) -> None:
        self._cleaner.start()

    async def close(self) -> None:
        await self._cleaner.stop()

    async def save(self, records: Sequence[Record]) -> Saved:
        now = self._clock()
        for record in records:
            if self.admits(record, now):
                self.index.put(record, now)
        return Saved.IN_MEMORY

    def admits(self, record: Record, now: float) -> bool:
        """Whether no deletion meant it."""
        return not self.deletions or not any(deletion.bars(record, now) for deletion in self.deletions)

    async def find(self, tenant: str, keys: Sequence[Key]) -> Found:
        now = self._clock()
        return self.index.find(tenant, keys, now)

    async def expired(self, tenant: str, keys: Sequence[Key]) -> frozenset[Key]:
        return self.index.expired(tenant, keys, self._clock())

    async def generation(self, tenant: str) -> Generation:
        now = self._clock()
        self.index.drop_expired(now)
        return self.index.changes, period(now, self._ttl_seconds)

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
    groups: dict[tuple[str, str], list[Held]] = {}
    for held in index.held():
        where = held.record.provenance
        if where.session and tenant in (None, where.tenant):
            groups.setdefault((where.tenant, where.session), []).append(held)
    summaries = [
        SessionSummary(*place, len(group), sum(held.chars for held in group), max(h.record.created_at for h in group))
        for place, group in groups.items()
    ]
    return tuple(sorted(summaries, key=lambda one: (-one.newest_at, one.tenant, one.session))[:limit])
