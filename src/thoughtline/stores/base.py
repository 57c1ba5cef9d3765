"""The protocol of all stores, and the values it uses."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from enum import Enum
from typing import Protocol, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from thoughtline.values.errors import StoreRefused
from thoughtline.values.records import MAX_PER_KEY as MAX_PER_KEY
from thoughtline.values.records import Key, Record

Clock: TypeAlias = Callable[[], float]
"""Seconds since the epoch."""

Found: TypeAlias = dict[Key, tuple[Record, ...]]
"""For each requested key its records, newest first. Every key is present."""

Generation: TypeAlias = tuple[int, ...]
"""The number of changes, and the number of the period. Only equality has a meaning."""

MAX_PAGE = 200
"""Entries per page, as in the admin API."""

RENEW_AFTER = 0.25
"""The share of its life after which a use renews a record: a record in daily use is renewed about once in two days."""

PERIOD = RENEW_AFTER / 4
"""The share of a life for which memory may keep uses of a record to itself. Renewal can be late by this much."""

STALE_SECONDS = 1.0
"""How long a process may use records that another process has deleted, if asking takes a round trip. SQLite: zero."""

MAX_CURSOR = 2**63 - 1
"""The maximum of an integer column. Beyond it a database reports an error, which would look like a failure."""

MAIN = "thoughtline"
"""The store of turns. One of another name at the same address shares nothing with it: it has a file, a schema or a
prefix of its own."""

DELETION_KEPT_SECONDS = 24 * 3600.0
"""How long deletions are kept to stop slow writers. Retries give up long before that (layered.py)."""


class Saved(Enum):
    """How safe a record is when `save` returns."""

    DURABLE = "durable"
    FIRST = "first"
    """Durable, and each of its lineages has no other record. Reported to the memory in front by durable stores that
    know it."""
    IN_MEMORY = "in_memory"


class Filter(Struct, frozen=True):
    """Selects the records that match every member that is set. With no member set, selects all."""

    tenant: str | None = None
    provider: str | None = None
    model: str | None = None
    session: str | None = None
    call_id: str | None = None

    def fits(self, record: Record) -> bool:
        where = record.provenance
        covers = self.covers(where.tenant, where.session, where.provider, record.model)
        return covers and (self.call_id is None or self.call_id in record.call_ids)

    def covers(self, tenant: str, session: str | None, provider: str, model: str) -> bool:
        """Whether it can select records with these values."""
        return (
            self.tenant in (None, tenant)
            and self.session in (None, session)
            and self.provider in (None, provider)
            and self.model in (None, model)
        )


class Deletion(Struct, frozen=True):
    """A deletion. It also applies to records that were created before it and are written after it."""

    where: Filter
    at: float

    def bars(self, record: Record, now: float) -> bool:
        """Whether the record must not be written. A deletion in the future means that our clock went back; it is
        ignored."""
        return record.created_at < self.at <= now and self.where.fits(record)


class Entry(Struct, frozen=True):
    """A record with the end of its life."""

    record: Record
    expires_at: float


class Page(Struct, frozen=True):
    """Entries, newest first. `cursor` requests the next page; it is None on the last page."""

    entries: tuple[Entry, ...]
    cursor: str | None = None


SessionPlace: TypeAlias = tuple[str, str]
"""A tenant, and the name of a session."""


class SessionSummary(Struct, frozen=True):
    """A session, and how much of it is stored. `models` are `provider/model`, sorted."""

    tenant: str
    session: str
    entries: int
    chars: int
    newest_at: float
    models: tuple[str, ...] = ()


class Share(Struct, frozen=True):
    """How much of a store belongs to one provider or model."""

    entries: int
    chars: int


class Stats(Struct, frozen=True):
    """What a store holds, and what it has done since this process opened it."""

    memory_entries: int = 0
    memory_chars: int = 0
    disk_entries: int = 0
    disk_chars: int = 0
    disk_bytes: int = 0
    by_provider: dict[str, Share] = {}
    by_model: dict[str, Share] = {}
    oldest_at: float | None = None
    newest_at: float | None = None
    hits: int = 0
    misses: int = 0
    replays: int = 0
    unreadable: int = 0
    failures: int = 0
    waiting: int = 0
    lost: int = 0
    last_failure: str | None = None

    @property
    def total_entries(self) -> int:
        """Records on disk plus those still in memory only (`waiting`). A record in both counts once."""
        return self.disk_entries + self.waiting if self.disk_entries or self.waiting else self.memory_entries

    @property
    def total_chars(self) -> int:
        return max(self.disk_chars, self.memory_chars)


class StoreHealth(Struct, frozen=True):
    """The state of a store, without asking it. `lost` turns could not be written, `waiting` ones will be."""

    is_settled: bool = True
    waiting: int = 0
    failures: int = 0
    lost: int = 0


class Counters:
    """Counts since the store was opened. Callers report how many turns needed reasoning: `hits` got their own back,
    `misses` did not; each hit is a replay."""

    def __init__(self) -> None:
        self.hits = self.misses = self.replays = self.unreadable = 0

    def add(self, restored: int, missed: int) -> None:
        """Add the results of one request."""
        self.hits += restored
        self.replays += restored
        self.misses += missed

    def into(self, stats: Stats) -> Stats:
        return replace(
            stats,
            hits=self.hits,
            misses=self.misses,
            replays=self.replays,
            unreadable=self.unreadable + stats.unreadable,
        )


class Note(Struct, frozen=True):
    """A small value that belongs to no tenant, such as a correction of a provider's contract."""

    namespace: str
    key: str
    value: bytes
    expires_at: float


class Store(Protocol):
    """Stores and finds records. Every method may raise `StoreError`, and no other error deliberately."""

    counters: Counters

    async def open(self) -> None:
        """Connect, and update the layout. Calling it twice is allowed."""

    async def save(self, records: Sequence[Record]) -> Saved:
        """Store all records, or none. Returns how safe they are."""

    async def find(self, tenant: str, keys: Sequence[Key]) -> Found:
        """Return the records of one tenant, at most `MAX_PER_KEY` per key. Finding a record renews it."""

    async def generation(self, tenant: str) -> Generation:
        """Return a value that stays equal as long as everything `find` returned to this tenant by lineage still holds.
        It changes when a record is deleted, evicted or expires, or a lineage gets another record; and in every
        `PERIOD`, so that a cached result is used and renewed. Changes by other processes count within `STALE_SECONDS`.
        """

    async def expired(self, tenant: str, keys: Sequence[Key]) -> frozenset[Key]:
        """Return the keys whose records have expired and are not cleaned up yet."""

    async def list_entries(self, where: Filter, limit: int = 50, cursor: str | None = None) -> Page:
        """Return entries, newest first. Pages are stable: a record that existed before the first page appears once."""

    async def sessions(self, tenant: str | None = None, limit: int = MAX_PAGE) -> tuple[SessionSummary, ...]:
        """Return stored sessions, those with the newest records first."""

    async def openings(self, places: Sequence[SessionPlace]) -> dict[SessionPlace, Record]:
        """The oldest record of each of these sessions. Looking at it does not make it live longer."""

    async def delete(self, where: Filter) -> int:
        """Delete matching records, also those created earlier and written later. Returns the number of deleted
        records."""

    async def stats(self) -> Stats:
        """Return what the store holds and has done."""

    async def clean(self) -> int:
        """Remove expired records, and those beyond the size cap, least recently used first. Returns how many were
        removed."""

    async def put_note(self, note: Note) -> None:
        """Store a note, replacing one with the same key."""

    async def notes(self, namespace: str) -> tuple[Note, ...]:
        """Return the notes of a namespace that have not expired, sorted by key."""

    async def delete_notes(self, namespace: str, key: str | None = None) -> int:
        """Delete one note, or all of a namespace. Returns how many were deleted."""

    async def close(self) -> None:
        """Finish running work and release all resources."""


class Channel(Protocol):
    """Messages between processes that share a store. All subscribers of a topic receive them, including the sender;
    they are not stored.

    Every method may raise `StoreUnavailable`. A channel that is opened again has missed the messages sent in between.
    """

    max_bytes: int
    """Maximum size of one message."""

    async def open(self) -> None:
        """Connect, replacing an existing connection."""

    async def follow(self, topic: str) -> None:
        """Subscribe to a topic."""

    async def leave(self, topic: str) -> None:
        """Unsubscribe from a topic."""

    async def publish(self, topic: str, message: bytes) -> None:
        """Send a message to all subscribers of a topic."""

    async def next(self) -> tuple[str, bytes]:
        """Return the next message and its topic."""

    async def close(self) -> None:
        """Disconnect. Raises nothing."""


def period_seconds(ttl_seconds: float) -> float:
    """Return the length of a period for this lifetime."""
    return max(ttl_seconds * PERIOD, 0.001)


def shares(parts: Iterable[tuple[str, int, int]]) -> dict[str, Share]:
    """Sum up entries and characters by name."""
    total: dict[str, Share] = {}
    for name, entries, chars in parts:
        known = total.get(name, Share(0, 0))
        total[name] = Share(known.entries + entries, known.chars + chars)
    return total


def sum_sessions(parts: Iterable[SessionSummary], limit: int) -> tuple[SessionSummary, ...]:
    """Merge parts of sessions; those with the newest records come first."""
    total: dict[tuple[str, str], SessionSummary] = {}
    for part in parts:
        if part.session:
            place = part.tenant, part.session
            known = total.get(place, SessionSummary(*place, 0, 0, part.newest_at))
            entries, chars = known.entries + part.entries, known.chars + part.chars
            models = tuple(sorted({*known.models, *part.models}))
            total[place] = SessionSummary(*place, entries, chars, max(known.newest_at, part.newest_at), models)
    return tuple(sorted(total.values(), key=lambda one: (-one.newest_at, one.tenant, one.session))[:limit])


def decode_cursor(text: str | None) -> int:
    """Return the number that a page ended with, or one beyond all for the first page. Raises for any other text."""
    if text is None:
        return MAX_CURSOR
    if not (text.isascii() and text.isdecimal() and len(text) < 20 and int(text) <= MAX_CURSOR):
        raise StoreRefused("this cursor belongs to no page")
    return int(text)


def checked_limit(limit: int) -> int:
    if not 1 <= limit <= MAX_PAGE:
        raise StoreRefused(f"a page holds 1 to {MAX_PAGE} entries, not {limit}")
    return limit


def newest_first(records: Sequence[Record]) -> tuple[Record, ...]:
    if len(records) < 2:
        return tuple(records)
    return tuple(sorted(records, key=lambda record: (record.created_at, record.id), reverse=True))[:MAX_PER_KEY]
