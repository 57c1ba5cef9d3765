"""Memory in front of a durable store. It makes lookups fast, and works alone while the durable store fails.

    save    memory, then the durable store; if that fails, tried again later
    find    memory for keys it has complete, the durable store for the others, which memory then has complete

From the start of its save until the durable store has acknowledged it, a record is `Waiting`: it is found here whatever
the durable store returns, and even if memory had to evict it.

Memory has a key complete if the durable store has returned its records, none was deleted or overwritten there since
then (`Store.generation`, asked once per lookup), and none was evicted here (`KnownKeys`).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Sequence
from time import monotonic
from typing import TypeVar

from msgspec.structs import replace

from thoughtline.stores.acknowledged import Acknowledged
from thoughtline.stores.background import Periodic
from thoughtline.stores.base import (
    MAX_PAGE,
    Clock,
    Counters,
    Filter,
    Found,
    Generation,
    Note,
    Page,
    Saved,
    SessionPlace,
    SessionSummary,
    Stats,
    Store,
    StoreHealth,
    newest_first,
)
from thoughtline.stores.memory import MemoryStore
from thoughtline.stores.settings import StoreSettings
from thoughtline.stores.timing import TOO_LONG, within
from thoughtline.stores.waiting import Waiting
from thoughtline.values.errors import StoreDamaged, StoreError, StoreUnavailable
from thoughtline.values.records import Key, Record, is_lineage

log = logging.getLogger(__name__)
Result = TypeVar("Result")

BATCH = 200
"""Maximum number of records per retried write. After a failure the first retry writes one record, and each next one
twice as many: a store may be too slow for 200 at once."""

FIRST_RETRY_SECONDS, LAST_RETRY_SECONDS, IDLE_SECONDS = 0.1, 1.0, 60.0
"""A replica finds another one's records only when both have noticed that the store is back: within a second."""

FINDS_AT_ONCE = 64
"""Concurrent lookups in the durable store. Each asks twice: if thousands started at once, as after an outage, all their
first questions would come before any second one, and all would time out. The others wait without asking."""

PROBE = "thoughtline.probe"


class KnownKeys:
    """The complete keys of one tenant under one generation. The next generation has its own; entries added to this one
    later are lost.

    Lineages stay complete as long as the generation is the same. Other keys may be shared by several records and get
    more from other processes: they stay complete for `trust_seconds`.
    """

    __slots__ = ("_lineages", "_others", "generation")

    def __init__(self, generation: Generation) -> None:
        self.generation = generation
        self._lineages: set[Key] = set()
        self._others: dict[Key, float] = {}

    def __bool__(self) -> bool:
        return bool(self._lineages or self._others)

    def missing(self, found: Found, now: float) -> list[Key]:
        """Return the keys that the durable store has to be asked for, given what was found here."""
        lineages, others = self._lineages, self._others
        if lineages.issuperset(found) and () not in found.values():
            return []
        return [
            key
            for key, records in found.items()
            if not records or (key not in lineages and others.get(key, 0.0) <= now)
        ]

    def add(self, key: Key, until: float) -> None:
        if is_lineage(key):
            self._lineages.add(key)
        else:
            self._others[key] = until

    def forget(self, keys: Iterable[Key]) -> None:
        for key in keys:
            self._lineages.discard(key)
            self._others.pop(key, None)


class LayeredStore:
    """The store that `open_store` returns for every durable address."""

    def __init__(self, durable: Store, settings: StoreSettings, clock: Clock) -> None:
        self.counters = Counters()
        self._durable = durable
        self._settings = settings
        self._clock = clock
        self._front = MemoryStore(settings, clock)
        self._front.index.on_drop = self._forget_known
        self._known: dict[str, KnownKeys] = {}
        self._changes = 0
        self._last_generation: Generation = ()
        self._finds: dict[int, set[tuple[str, Key]]] = {}
        self._turns = asyncio.Semaphore(FINDS_AT_ONCE)
        self._waiting = Waiting()
        self._acknowledged = Acknowledged()
        self._waiting_notes: dict[tuple[str, str], Note] = {}
        self._can_read = self._can_write = True
        self._failures = 0
        self.last_failure: str | None = None
        """The last error of the durable store; it may work again by now."""
        self._retry_seconds = FIRST_RETRY_SECONDS
        self._batch = BATCH
        self.is_settled = True
        """Whether the durable store works and no records wait for it."""
        self.is_damaged = False
        self.partial_finds = 0
        """How often only memory was asked because the durable store failed."""
        self._retrier = Periodic(self._retry, lambda: IDLE_SECONDS if self.is_settled else self._retry_seconds)

    async def open(self) -> None:
        """Open both stores. Raises if a person has to change something. A store that is only down is opened when it is
        back."""
        self._retrier.start()
        await self._front.open()
        try:
            await self._within_time(self._durable.open())
        except StoreUnavailable as error:
            self._can_read = False
            self._fail_write(error)
        except StoreError:
            await self._retrier.stop()
            await self._front.close()
            raise

    async def close(self) -> None:
        await self._retrier.stop()
        await self._front.close()
        self._waiting.put_off_all()
        if self._waiting or self._waiting_notes:
            await self._retry()
        self._waiting.lost += len(self._waiting)
        if self._waiting:
            log.error("turns that could not be written before closing: %d", len(self._waiting))
        try:
            await self._durable.close()
        except StoreError as error:
            log.warning("a store could not be closed: %s", error)

    @property
    def health(self) -> StoreHealth:
        return StoreHealth(self.is_settled, len(self._waiting), self._failures, self._waiting.lost)

    async def save(self, records: Sequence[Record]) -> Saved:
        self._note_shared_lineages(records)
        now, is_written = self._clock(), False
        admitted = self._front.put(records, now)
        known = [(record, self._known.get(record.provenance.tenant)) for record in records]
        self._waiting.begin(admitted, now)
        try:
            if self._can_write:
                saved = await self._within_time(self._durable.save(records))
                is_written = True
                if saved is Saved.FIRST:
                    self._know_lineages(known)
        except StoreError as error:
            self._fail_write(error)
        finally:
            if is_written:
                self._settle(records)
            else:
                self._put_off(records)
        return Saved.DURABLE if is_written else Saved.IN_MEMORY

    async def find(self, tenant: str, keys: Sequence[Key]) -> Found:
        if self._can_read:
            try:
                return await self._in_time(self._find_fresh(tenant, keys))
            except StoreError as error:
                self._fail_read(error)
        self.partial_finds += 1
        return self._find_here(tenant, keys, self._clock())

    async def generation(self, tenant: str) -> Generation:
        """Return the generation; while the durable store fails, the last known one, so that memory continues with what
        it has."""
        if self._can_read:
            try:
                self._last_generation = (await self._in_time(self._refresh(tenant))).generation
            except StoreError as error:
                self._fail_read(error)
        return *self._last_generation, self._changes

    async def _find_fresh(self, tenant: str, keys: Sequence[Key]) -> Found:
        async with self._turns:
            known, now = await self._refresh(tenant), self._clock()
            found = self._find_here(tenant, keys, now)
            if ask := known.missing(found, now):
                found.update(await self._find_durable(tenant, ask, known))
            return found

    async def _refresh(self, tenant: str) -> KnownKeys:
        """Return the complete keys, after asking whether they are still valid."""
        generation = await self._durable.generation(tenant)
        known = self._known.get(tenant)
        if known is None or known.generation != generation:
            self._known.pop(tenant, None)
            known = KnownKeys(generation)
        return known

    def _find_here(self, tenant: str, keys: Sequence[Key], now: float) -> Found:
        """Find records in this process: in memory, or waiting to be saved."""
        found = self._front.index.find(tenant, keys, now)
        if self._waiting:
            for key, records in found.items():
                if waiting := self._waiting.find(tenant, key, now - self._settings.ttl_seconds):
                    found[key] = newest_first(list({record.id: record for record in (*records, *waiting)}.values()))
        return found

    async def expired(self, tenant: str, keys: Sequence[Key]) -> frozenset[Key]:
        return await self._read(lambda store: store.expired(tenant, keys))

    async def list_entries(self, where: Filter, limit: int = 50, cursor: str | None = None) -> Page:
        return await self._read(lambda store: store.list_entries(where, limit, cursor))

    async def sessions(self, tenant: str | None = None, limit: int = MAX_PAGE) -> tuple[SessionSummary, ...]:
        return await self._read(lambda store: store.sessions(tenant, limit))

    async def openings(self, places: Sequence[SessionPlace]) -> dict[SessionPlace, Record]:
        return await self._read(lambda store: store.openings(places))

    async def delete(self, where: Filter) -> int:
        """Delete here and in the durable store. Raises if the durable store fails: then only memory has deleted."""
        gone = await self._front.delete(where)
        self._waiting.drop_fitting(where)
        self._acknowledged.drop_fitting(where)
        self._known.clear()
        self._changes += 1
        return max(gone, await self._durable.delete(where))

    async def stats(self) -> Stats:
        stats = await self._read(lambda store: store.stats())
        return replace(
            self.counters.into(stats),
            memory_entries=len(self._front.index),
            memory_chars=self._front.index.chars,
            failures=self._failures,
            waiting=len(self._waiting),
            lost=self._waiting.lost,
            last_failure=self.last_failure,
        )

    async def clean(self) -> int:
        await self._front.clean()
        return await self._durable.clean()

    async def put_note(self, note: Note) -> None:
        await self._front.put_note(note)
        self._waiting_notes[note.namespace, note.key] = note
        if self._can_write:
            try:
                await self._write_notes()
            except StoreError as error:
                self._fail_write(error)

    async def notes(self, namespace: str) -> tuple[Note, ...]:
        """Return the notes, including those not written yet."""
        notes = {note.key: note for note in await self._read(lambda store: store.notes(namespace))}
        now = self._clock()
        for (name, key), note in self._waiting_notes.items():
            if name == namespace and note.expires_at > now:
                notes[key] = note
        return tuple(sorted(notes.values(), key=lambda note: note.key))

    async def delete_notes(self, namespace: str, key: str | None = None) -> int:
        gone = await self._front.delete_notes(namespace, key)
        for place in [place for place in self._waiting_notes if place[0] == namespace and key in (None, place[1])]:
            del self._waiting_notes[place]
        return max(gone, await self._durable.delete_notes(namespace, key))

    async def _find_durable(self, tenant: str, keys: list[Key], known: KnownKeys) -> Found:
        before, touched = self._front.deletions, set[tuple[str, Key]]()
        self._finds[id(touched)] = touched
        try:
            answer = await self._durable.find(tenant, keys)
        finally:
            del self._finds[id(touched)]
        since = [one.where for one in self._front.deletions if not any(one is other for other in before)]
        if since:
            answer = {
                key: tuple(record for record in records if not any(where.fits(record) for where in since))
                for key, records in answer.items()
            }
        return {
            key: self._promote(tenant, key, records, None if (tenant, key) in touched else known)
            for key, records in answer.items()
        }

    async def _in_time(self, call: Awaitable[Result]) -> Result:
        """Wait for a lookup, for as long as one call may take. A late answer is used, but counts as a failure."""
        began, limit = monotonic(), self._settings.timeout_seconds
        answer = await self._within_time(call, limit)
        if monotonic() - began > limit:
            self._fail_read(StoreUnavailable(TOO_LONG))
        return answer

    def _promote(
        self, tenant: str, key: Key, records: tuple[Record, ...], known: KnownKeys | None
    ) -> tuple[Record, ...]:
        """Copy the durable store's records of a key into memory, and remove those it no longer has. `known` is None if
        the key got records during the lookup."""
        now, index = self._clock(), self._front.index
        mine = self._find_here(tenant, (key,), now)[key]
        if known is None or [record.id for record in records] != [record.id for record in mine]:
            there = {record.id for record in records}
            own = [record for record in mine if record.id not in there]
            if known is not None:
                for record in own:
                    if (tenant, record.id) not in self._waiting:
                        index.drop((tenant, record.id))
            for record in reversed(records):
                index.put(record, now)
            places = ((record, (tenant, record.id)) for record in own)
            mine = newest_first((*records, *(record for record, at in places if at in index or at in self._waiting)))
        if known is not None and records and all((tenant, record.id) in index for record in records):
            known.add(key, now + self._settings.trust_seconds)
            self._known.setdefault(tenant, known)
        return mine

    def _know_lineages(self, saved: list[tuple[Record, KnownKeys | None]]) -> None:
        """Mark the lineages of records that are alone in them as complete, each in the keys known before it was
        saved."""
        for record, known in saved:
            is_here = (record.provenance.tenant, record.id) in self._front.index
            if known is not None and is_here and record.keys and is_lineage(record.keys[0]):
                known.add(record.keys[0], 0.0)

    def _settle(self, records: Sequence[Record]) -> None:
        """The durable store has saved these records. A lookup that is running may have asked it before: it keeps all of
        them."""
        for touched in self._finds.values():
            touched.update((record.provenance.tenant, key) for record in records for key in record.keys)
        self._waiting.settle(records)
        self._acknowledged.add(records, monotonic())
        for record in records:
            if (record.provenance.tenant, record.id) not in self._front.index:
                self._forget_known(record)

    def _put_off(self, records: Sequence[Record]) -> None:
        """Save these records later: when the store works again, or at once if only the caller was cancelled."""
        self._waiting.put_off(records)
        if self.is_settled:
            self.is_settled = False
            self._retrier.wake()

    def _forget_known(self, record: Record) -> None:
        tenant = record.provenance.tenant
        if (known := self._known.get(tenant)) is not None:
            known.forget(record.keys)
            if not known:
                del self._known[tenant]

    def _forget_all_known(self) -> None:
        """Forget all complete keys. After an outage, another store may have taken over, with change counts of its
        own."""
        self._known.clear()
        self._changes += 1

    def _note_shared_lineages(self, records: Sequence[Record]) -> None:
        """A lineage gets another record: this counts from now on, even before the durable store has it."""
        index = self._front.index
        for record in records:
            if index.has_lineage_of(record) and (record.provenance.tenant, record.id) not in index:
                self._changes += 1

    async def _read(self, ask: Callable[[Store], Awaitable[Result]]) -> Result:
        """Read from the durable store, or from memory while that fails."""
        if self._can_read:
            try:
                return await self._within_time(ask(self._durable))
            except StoreUnavailable as error:
                self._fail_read(error)
        return await ask(self._front)

    async def _within_time(self, call: Awaitable[Result], seconds: float | None = None) -> Result:
        """Wait twice the driver's own time limit, so that a driver which keeps to it can report the problem."""
        return await within(call, 2 * self._settings.timeout_seconds if seconds is None else seconds)

    def _fail_read(self, error: StoreError) -> None:
        self._can_read = False
        self._fail(error)

    def _fail_write(self, error: StoreError) -> None:
        self._can_write = False
        self._fail(error)

    def _fail(self, error: StoreError) -> None:
        self._failures += 1
        self.last_failure = str(error)  # text only, so that kept log records hold no frames
        self.is_damaged = isinstance(error, StoreDamaged)
        if self.is_settled:
            log.warning("turns are kept in memory only until the store works again: %s", self.last_failure)
            self._acknowledged.doubt(monotonic())
        self.is_settled = False
        self._retrier.wake()

    async def _retry(self) -> None:
        """Probe the store like a request, then write what is waiting. It is back when all of this succeeds."""
        self._waiting.drop_old(self._clock())
        try:
            await self._within_time(self._durable.open())
            await self._within_time(self._durable.find(PROBE, [Key(PROBE)]), self._settings.timeout_seconds)
            if not self._can_read:
                self._forget_all_known()
            self._can_read = True
            await self._write_waiting()
        except StoreError as error:
            self._failures += 1
            self.last_failure = str(error)
            self._retry_seconds = min(self._retry_seconds * 2, LAST_RETRY_SECONDS)
            return
        if not self.is_settled:
            log.warning("the durable store works again")
        self._retry_seconds = FIRST_RETRY_SECONDS
        self._can_write = True
        self.is_settled = True

    async def _write_waiting(self) -> None:
        """Write what is waiting, after the records that were acknowledged shortly before the failure."""
        while doubted := self._acknowledged.doubted(self._batch):
            await self._write_batch(doubted)
            self._acknowledged.settle(doubted)
        while batch := self._waiting.first(self._batch):
            try:
                await self._write_batch(batch)
            except StoreError:
                self._waiting.postpone(batch[0])
                raise
            self._settle(batch)
            self._retry_seconds = FIRST_RETRY_SECONDS
        await self._write_notes()

    async def _write_batch(self, records: Sequence[Record]) -> None:
        size, self._batch = self._batch, 1
        await self._within_time(self._durable.save(records))
        self._batch = min(2 * size, BATCH)

    async def _write_notes(self) -> None:
        for place, note in tuple(self._waiting_notes.items()):
            await self._within_time(self._durable.put_note(note))
            if self._waiting_notes.get(place) is note:
                del self._waiting_notes[place]
