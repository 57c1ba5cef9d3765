"""The common part of all durable stores. An engine adds its connection, and the abstract operations at the end.

Layouts change by numbered, named steps that are never edited after a release. Each engine has its own list.
"""

from __future__ import annotations

import asyncio
from abc import abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple, TypeAlias

from msgspec import Struct

from thoughtline.stores.background import Periodic
from thoughtline.stores.base import (
    MAX_PAGE,
    RENEW_AFTER,
    STALE_SECONDS,
    Clock,
    Counters,
    Entry,
    Filter,
    Found,
    Generation,
    Page,
    Saved,
    SessionPlace,
    SessionSummary,
    Stats,
    Store,
    checked_limit,
    newest_first,
    period_seconds,
)
from thoughtline.stores.packing import Packer
from thoughtline.stores.rows import Hit, Row, column, columns, key_digest, rows_of
from thoughtline.stores.settings import StoreSettings
from thoughtline.values.errors import DecodeError, NewerStore, StoreUnavailable, WrongKey
from thoughtline.values.items import ReasoningText, Text
from thoughtline.values.records import Key, Record

MAX_COUNTED = 1000
"""Tenants whose number of changes is cached. Beyond this, the cache is cleared."""

CLEANING_SECONDS = 600.0
"""How long other processes wait for one that cleans. If it is killed in the meantime, only some work is left over."""

EARLY = 20
"""Cleaning starts early after writing a twentieth of the store's maximum: it exceeds its cap by little more than
that."""

MAX_RENEWALS = 100_000
"""Some megabytes of numbers. Cleaning runs every minute, and early after many writes."""

MAX_REPACKED_BYTES = 16 * 2**20

LONG_BYTES = 2**20
"""Larger amounts are packed and unpacked in a thread: on the event loop, they would block all other requests for 8
ms."""

PageRow: TypeAlias = tuple[str, bytes, float, bytes]
"""A record on a page: the cursor for the records after it, its identity, its expiry, its packed bytes."""

OpeningRow: TypeAlias = tuple[SessionPlace, bytes, bytes]
"""A session, and the identity and the packed bytes of its oldest record."""


@contextmanager
def wrap_failures(engine: str, failures: tuple[type[Exception], ...]) -> Iterator[None]:
    """Raise errors of a driver as store errors."""
    try:
        yield
    except failures as error:
        raise StoreUnavailable(f"{engine}: {type(error).__name__}: {error}") from error


class Migration(Struct, frozen=True):
    """One migration. `statements` are for the engine that lists it."""

    number: int
    name: str
    statements: tuple[str, ...]


def missing(migrations: tuple[Migration, ...], version: int) -> tuple[Migration, ...]:
    """Return the migrations that a store of this version lacks. Raises if it is newer than the last one."""
    newest = migrations[-1].number
    if version > newest:
        raise NewerStore(
            f"the store has layout {version}, but this program knows layouts up to {newest} only: use a newer version"
        )
    return tuple(step for step in migrations if step.number > version)


class Batch(NamedTuple):
    """Numbers of records to renew, and new bytes for others, both in order."""

    renewals: list[int]
    repacked: list[tuple[int, bytes]]


class Uses:
    """Work that finds leave for the next cleaning: renewals, and records repacked with the current key.

    It is kept until it is written, within limits. Beyond them, a later use notes it again.
    """

    def __init__(self, packer: Packer, ttl_seconds: float) -> None:
        self._packer = packer
        self._renew_below = ttl_seconds * (1 - RENEW_AFTER)
        self._renewals: set[int] = set()
        self._repacked: dict[int, bytes] = {}
        self._repacked_bytes = 0

    def note(self, hits: Iterable[Hit], now: float) -> None:
        fresh_after = now + self._renew_below
        for hit in hits:
            if hit.expires_at < fresh_after and len(self._renewals) < MAX_RENEWALS:
                self._renewals.add(hit.seq)
            if not self._packer.is_current(hit.data):
                self._repack(hit)

    def batch(self) -> Batch:
        return Batch(sorted(self._renewals), sorted(self._repacked.items()))

    def settle(self, batch: Batch) -> None:
        """Drop the batch, which has been written."""
        self._renewals.difference_update(batch.renewals)
        for seq, data in batch.repacked:
            if self._repacked.pop(seq, None) is not None:
                self._repacked_bytes -= len(data)

    def _repack(self, hit: Hit) -> None:
        if hit.seq in self._repacked or self._repacked_bytes + len(hit.data) > MAX_REPACKED_BYTES:
            return
        packed = self._packer.repack(hit.data, hit.identity)
        if packed is not None:
            self._repacked[hit.seq] = packed
            self._repacked_bytes += len(packed)


def _unpacked(packed: list[tuple[bytes, bytes]], packer: Packer) -> list[Record | None]:
    records: list[Record | None] = []
    for identity, data in packed:
        try:
            records.append(packer.unpack(data, identity))
        except (WrongKey, DecodeError):
            records.append(None)
    return records


def is_long(records: Sequence[Record]) -> bool:
    """Whether packing them takes long."""
    size = 0
    for record in records:
        for item in record.items:
            size += len(item.raw)
            if isinstance(item, Text | ReasoningText):
                size += len(item.text)
    return size > LONG_BYTES


class DurableStore(Store):
    """Stores records as rows and keys as digests, and cleans in the background. Engines get filters in the form of
    their columns."""

    STALE_SECONDS = STALE_SECONDS

    def __init__(self, settings: StoreSettings, clock: Clock, packer: Packer) -> None:
        self.counters = Counters()
        self._settings = settings
        self._clock = clock
        self._packer = packer
        self._cleaner = Periodic(self._clean_in_background, lambda: settings.clean_seconds)
        self._cleaning = asyncio.Lock()
        self._room = settings.max_bytes / EARLY
        self._written = 0
        self._is_early = False
        self._counted: dict[str, tuple[float, int]] = {}
        self._counted_seconds = min(self.STALE_SECONDS, settings.trust_seconds)
        self._period_seconds = period_seconds(settings.ttl_seconds)

    async def save(self, records: Sequence[Record]) -> Saved:
        if is_long(records):
            rows = await asyncio.to_thread(rows_of, records, self._packer.aside())
        else:
            rows = rows_of(records, self._packer)
        if not rows:
            return Saved.DURABLE
        saved = await self._save(rows, self._clock())
        for row in rows:
            self._written += row.size
        if self._written > self._room:
            self._written, self._is_early = 0, True
            self._cleaner.wake()
        return saved

    async def find(self, tenant: str, keys: Sequence[Key]) -> Found:
        digests = {key_digest(tenant, key): key for key in keys}
        if not digests:
            return {}
        found: dict[Key, list[Record]] = {key: [] for key in keys}
        hits = await self._find(tenant, digests, self._clock())
        records = await self._unpack([(hit.identity, hit.data) for hit in hits])
        for hit, record in zip(hits, records, strict=True):
            if record is None or record.provenance.tenant != tenant:
                continue
            for digest in hit.digests:
                key = digests[digest]
                if key in record.keys:
                    found[key].append(record)
        return {key: newest_first(records) for key, records in found.items()}

    async def generation(self, tenant: str) -> Generation:
        now = self._clock()
        asked_at, changes = self._counted.get(tenant, (0.0, 0))
        if not 0.0 <= now - asked_at < self._counted_seconds:
            changes = await self._changes(column(tenant))
            if len(self._counted) >= MAX_COUNTED:
                self._counted.clear()
            self._counted[tenant] = (now, changes)
        return changes, int(now / self._period_seconds)

    async def expired(self, tenant: str, keys: Sequence[Key]) -> frozenset[Key]:
        digests, now = {key_digest(tenant, key): key for key in keys}, self._clock()
        hits = await self._find(tenant, digests, 0.0) if digests else []  # as if no time had passed: renews nothing
        return frozenset(digests[one] for hit in hits if hit.expires_at <= now for one in hit.digests)

    async def list_entries(self, where: Filter, limit: int = 50, cursor: str | None = None) -> Page:
        limit = checked_limit(limit)
        rows = await self._page(columns(where), cursor, limit + 1)
        records = await self._unpack([(row[1], row[3]) for row in rows[:limit]])
        ends = [row[2] for row in rows[:limit]]
        entries = tuple(Entry(one, end) for one, end in zip(records, ends, strict=True) if one is not None)
        return Page(entries, rows[limit - 1][0] if len(rows) > limit else None)

    async def sessions(self, tenant: str | None = None, limit: int = MAX_PAGE) -> tuple[SessionSummary, ...]:
        return await self._sessions(None if tenant is None else column(tenant), checked_limit(limit))

    async def openings(self, places: Sequence[SessionPlace]) -> dict[SessionPlace, Record]:
        by_columns = {(column(tenant), column(session)): (tenant, session) for tenant, session in places}
        rows = await self._openings(list(by_columns)) if by_columns else []
        records = await self._unpack([(identity, data) for _, identity, data in rows])
        return {by_columns[place]: one for (place, _, _), one in zip(rows, records, strict=True) if one is not None}

    async def delete(self, where: Filter) -> int:
        try:
            return await self._delete(columns(where), self._clock())
        finally:
            self._counted.clear()

    async def stats(self) -> Stats:
        return self.counters.into(await self._stats())

    async def clean(self) -> int:
        async with self._cleaning:
            self._counted.clear()
            return await self._clean(self._clock())

    async def _clean_in_background(self) -> None:
        """Clean at once if much was written."""
        is_early, self._is_early = self._is_early, False
        await (self.clean() if is_early else self.clean_in_turn())

    async def clean_in_turn(self) -> int:
        """Clean, unless another process that shares the store has done so recently."""
        if not await self._take_turn(self._clock(), CLEANING_SECONDS, if_free=True):
            return 0
        try:
            return await self.clean()
        finally:
            await self._take_turn(self._clock(), self._settings.clean_seconds / 2, if_free=False)

    async def _take_turn(self, now: float, seconds: float, *, if_free: bool) -> bool:
        """Take the cleaning lock for `seconds`. With `if_free`, take it only if it is free, and return whether it
        was."""
        return True

    async def _unpack(self, packed: list[tuple[bytes, bytes]]) -> list[Record | None]:
        """Unpack records from their identities and bytes. Unreadable ones are counted as misses, and never crash."""
        packed_bytes = 0
        for _, data in packed:
            packed_bytes += len(data)
        if packed_bytes > LONG_BYTES:
            records = await asyncio.to_thread(_unpacked, packed, self._packer.aside())
        else:
            records = _unpacked(packed, self._packer)
        self.counters.unreadable += records.count(None)
        return records

    @abstractmethod
    async def _save(self, rows: list[Row], now: float) -> Saved:
        """Write the rows that no deletion matches."""

    @abstractmethod
    async def _find(self, tenant: str, digests: Iterable[bytes], now: float) -> list[Hit]:
        """Return the newest `MAX_PER_KEY` live records of each digest."""

    @abstractmethod
    async def _changes(self, tenant: str) -> int:
        """Return how often a record of this tenant was removed or a lineage got another one, counted in the same
        transaction."""

    @abstractmethod
    async def _page(self, where: Filter, cursor: str | None, limit: int) -> list[PageRow]:
        """Return live records after a cursor, newest first."""

    @abstractmethod
    async def _sessions(self, tenant: str | None, limit: int) -> tuple[SessionSummary, ...]: ...

    @abstractmethod
    async def _openings(self, places: list[SessionPlace]) -> list[OpeningRow]:
        """The oldest live record of each session, as far as there is one."""

    @abstractmethod
    async def _delete(self, where: Filter, now: float) -> int:
        """Note the deletion, then remove the matching records."""

    @abstractmethod
    async def _stats(self) -> Stats:
        """Return what the store holds."""

    @abstractmethod
    async def _clean(self, now: float) -> int: ...
