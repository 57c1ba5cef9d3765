"""What every store does, and the values that go in and out of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from enum import Enum
from typing import Protocol, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from thoughtline.values.errors import StoreRefused
from thoughtline.values.records import Key, Record

Clock: TypeAlias = Callable[[], float]
"""Seconds since the epoch."""

Found: TypeAlias = dict[Key, tuple[Record, ...]]
"""For each key asked for, its records, newest first; every key is there."""

Generation: TypeAlias = tuple[int, ...]
"""What has changed, counted, and the number of the period. Only whether two are equal means anything."""

MAX_PER_KEY = 16
"""Records that one key gives back. More than a few can't be told apart by anything weaker than their lineage."""

MAX_PAGE = 200
"""Entries of one page, as the admin address allows (design.md 3.2)."""

RENEW_AFTER = 0.25
"""The part of its life after which a use renews a record: a record in daily use is renewed about once in two days."""

PERIOD = RENEW_AFTER / 4
"""The part of a life for which memory may keep a record's uses to itself: so much later is it renewed."""

STALE_SECONDS = 1.0
"""How long a process may go on with what another one has deleted, where asking takes a round trip. In one file none."""

MAX_CURSOR = 2**63 - 1
"""What a column of whole numbers holds: beyond it a database has an error, which would look like a failure of it."""

DELETION_KEPT_SECONDS = 24 * 3600.0
"""How long a deletion is remembered against slow writers. Retries give up long before (layered.py)."""


class Saved(Enum):
    """What is true of a record when `save` returns."""

    DURABLE = "durable"
    FIRST = "first"
    """Durable, and no lineage of theirs has another record: told by a durable store that knows, to memory in front."""
    IN_MEMORY = "in_memory"


class Filter(Struct, frozen=True):
    """Which records: all that agree with every member that is set. None set: all."""

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
        """Whether records of these can be meant."""
        return (
            self.tenant in (None, tenant)
            and self.session in (None, session)
            and self.provider in (None, provider)
            and self.model in (None, model)
        )


class Deletion(Struct, frozen=True):
    """A deletion that was asked for. What was made before it and comes to be written after it stays deleted."""

    where: Filter
    at: float

    def bars(self, record: Record, now: float) -> bool:
        """A deletion in the future of our clock says that the clock went back: it bars nothing."""
        return record.created_at < self.at <= now and self.where.fits(record)


class Entry(Struct, frozen=True):
    """A record as the store holds it."""

    record: Record
    expires_at: float


class Page(Struct, frozen=True):
    """Entries, newest first. `cursor` asks for the next page; there is none after the last."""

    entries: tuple[Entry, ...]
    cursor: str | None = None


class SessionSummary(Struct, frozen=True):
    """A session and how much of it is remembered."""

    tenant: str
    session: str
    entries: int
    chars: int
    newest_at: float


class Share(Struct, frozen=True):
    """What of a store belongs to one provider or model."""

    entries: int
    chars: int


class Stats(Struct, frozen=True):
    """What a store holds, and what it has done since it was opened in this process."""

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
        """What is in memory alone (`waiting`) or on disk; what is in both counts once."""
        return self.disk_entries + self.waiting if self.disk_entries or self.waiting else self.memory_entries

    @property
    def total_chars(self) -> int:
        return max(self.disk_chars, self.memory_chars)


class StoreHealth(Struct, frozen=True):
    """How a store is, told without asking it. `lost` turns could not be written, `waiting` ones will be."""

    is_settled: bool = True
    waiting: int = 0
    failures: int = 0
    lost: int = 0


class Counters:
    """What a store has done since it was opened. Who restores tells how many turns needed reasoning: `hits` got their
    own back, `misses` did not; each hit is a replay."""

    def __init__(self) -> None:
        self.hits = self.misses = self.replays = self.unreadable = 0

    def tell(self, restored: int, missed: int) -> None:
        """What became of the turns of one request."""
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
    """A small value that belongs to no tenant, such as what was learned of a provider's contract."""

    namespace: str
    key: str
    value: bytes
    expires_at: float


class Store(Protocol):
    """Records in, records out. Every method may raise `StoreError`, and nothing else on purpose."""

    counters: Counters

    async def open(self) -> None:
        """Connect, and bring the layout up to date. Doing it twice is fine."""

    async def save(self, records: Sequence[Record]) -> Saved:
        """Keep records, all or none; returns when they are as safe as the answer says."""

    async def find(self, tenant: str, keys: Sequence[Key]) -> Found:
        """The records of one tenant, at most `MAX_PER_KEY` for each key. What is found lives on."""

    async def generation(self, tenant: str) -> Generation:
        """Equal to what it was before: all that `find` told this tenant by lineage still holds. It differs where a
        record was deleted, pushed out or has expired, or a lineage has got another one; and in every `PERIOD`, so that
        who remembers what was found comes to use it. What others did counts within `STALE_SECONDS`."""

    async def expired(self, tenant: str, keys: Sequence[Key]) -> frozenset[Key]:
        """Those of the keys whose records have expired, as far as they are not cleaned away yet."""

    async def list_entries(self, where: Filter, limit: int = 50, cursor: str | None = None) -> Page:
        """Newest first. Pages are stable: a record that was there before the first is seen once."""

    async def sessions(self, tenant: str | None = None, limit: int = MAX_PAGE) -> tuple[SessionSummary, ...]:
        """Sessions that are remembered, those with the newest records first."""

    async def delete(self, where: Filter) -> int:
        """Forget what fits, and refuse what fits and was made before. How many records went."""

    async def scrub(self) -> None:
        """Leave nothing of what was deleted in files of our own. It may take seconds; saves go on."""

    async def stats(self) -> Stats:
        """What is held, and what was done."""

    async def clean(self) -> int:
        """Take out what has expired and what is beyond the size cap, oldest use first. How many records went."""

    async def put_note(self, note: Note) -> None:
        """Keep a note, in place of an older one of the same key."""

    async def notes(self, namespace: str) -> tuple[Note, ...]:
        """The notes of a namespace that have not expired, by key."""

    async def delete_notes(self, namespace: str, key: str | None = None) -> int:
        """Forget one note, or all of a namespace. How many went."""

    async def close(self) -> None:
        """Finish what was begun, and let go."""


class Channel(Protocol):
    """What processes that share a store tell each other: heard by all who follow the topic, its sender too; not kept.

    Every method may raise `StoreUnavailable`; whoever opens it again has missed what was said meanwhile.
    """

    max_bytes: int
    """Of one message."""

    async def open(self) -> None:
        """Connect, in place of a connection that there was."""

    async def follow(self, topic: str) -> None:
        """Hear of a topic from now on."""

    async def leave(self, topic: str) -> None:
        """No longer."""

    async def publish(self, topic: str, message: bytes) -> None:
        """Tell everybody who follows a topic."""

    async def next(self) -> tuple[str, bytes]:
        """The next message, and its topic."""

    async def close(self) -> None:
        """Let go. Raises nothing."""


def period_seconds(ttl_seconds: float) -> float:
    """How long a period is, where records live so long."""
    return max(ttl_seconds * PERIOD, 0.001)


def shares(parts: Iterable[tuple[str, int, int]]) -> dict[str, Share]:
    """The share of each name, from its parts: name, entries, characters."""
    total: dict[str, Share] = {}
    for name, entries, chars in parts:
        known = total.get(name, Share(0, 0))
        total[name] = Share(known.entries + entries, known.chars + chars)
    return total


def sum_sessions(parts: Iterable[SessionSummary], limit: int) -> tuple[SessionSummary, ...]:
    """The sessions that these are parts of, those with the newest records first."""
    total: dict[tuple[str, str], SessionSummary] = {}
    for part in parts:
        if part.session:
            place = part.tenant, part.session
            known = total.get(place, SessionSummary(*place, 0, 0, part.newest_at))
            entries, chars = known.entries + part.entries, known.chars + part.chars
            total[place] = SessionSummary(*place, entries, chars, max(known.newest_at, part.newest_at))
    return tuple(sorted(total.values(), key=lambda one: (-one.newest_at, one.tenant, one.session))[:limit])


def decode_cursor(text: str | None) -> int:
    """The number that a page ended with; one beyond all for the first. Raises for text that no page gave."""
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
