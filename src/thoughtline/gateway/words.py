"""Users' words and results of tools, where `[dashboard] keep_text` asks for them: a store beside that of the turns,
with its own time and size. It is written behind the answers; nothing waits for it, and nothing is restored from it.

A note in the store of turns says that there are words, so that nothing is opened where there never were any.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

from msgspec.structs import replace

from thoughtline.engine.said import said_record, shown
from thoughtline.settings import Settings
from thoughtline.stores import Clock, Filter, MemoryStore, Note, Store, durable_store, is_in_memory
from thoughtline.stores.base import MAX_PAGE, SessionPlace
from thoughtline.values.errors import StoreError
from thoughtline.values.items import Item
from thoughtline.values.records import Record

log = logging.getLogger(__name__)
Result = TypeVar("Result")

NAME = "words"
"""Of the store, and of the note."""

MOST_WAITING = 64
"""Saves under way. More means that the store is slower than the words come; those go."""

_FOREVER = 4_000_000_000.0


class Words:
    """Those of all sessions. Opened by the first who has or wants some."""

    def __init__(self, settings: Settings, turns: Store, clock: Clock) -> None:
        self.settings = settings
        self._turns = turns
        self._clock = clock
        self._store: Store | None = None
        self._opening, self._order = asyncio.Lock(), asyncio.Lock()
        self._saving: set[asyncio.Task[None]] = set()
        self._is_noted = self._has_failed = False

    @property
    def are_kept(self) -> bool:
        return self.settings.dashboard.keep_text

    def follow(self, settings: Settings) -> None:
        """Other settings. Address, time and size stay until a restart."""
        self.settings = replace(settings, store=self.settings.store, store_url=self.settings.store_url)

    def keep(self, records: Sequence[Record], words: tuple[Item, ...]) -> None:
        """What was said before these turns, soon."""
        if words and len(self._saving) < MOST_WAITING:
            saving = asyncio.create_task(self._keep([said_record(record, words) for record in records]))
            self._saving.add(saving)
            saving.add_done_callback(self._saving.discard)

    async def written(self) -> None:
        """Returns when all that was given so far is written, or given up."""
        await asyncio.gather(*self._saving, return_exceptions=True)

    async def of(self, tenant: str, session: str, turns: Sequence[Record]) -> dict[str, tuple[Item, ...]]:
        """What was said before each of these turns of a session, by the turn's id."""
        wanted = {record.id for record in turns}
        found: dict[str, tuple[Item, ...]] = {}

        async def read(store: Store) -> None:
            cursor = None
            while len(found) < len(wanted):
                page = await store.list_entries(Filter(tenant=tenant, session=session), MAX_PAGE, cursor)
                found.update(
                    {one.record.since: shown(one.record) for one in page.entries if one.record.since in wanted}
                )
                oldest = page.entries[-1].record.created_at if page.entries else 0.0
                if (cursor := page.cursor) is None or oldest < min(record.created_at for record in turns):
                    return

        if wanted:
            await self._ask(read, None)
        return found

    async def openings(self, places: Sequence[SessionPlace]) -> dict[SessionPlace, tuple[Item, ...]]:
        """The first words of each of these sessions."""
        nothing: dict[SessionPlace, Record] = {}
        found = await self._ask(lambda store: store.openings(places), nothing)
        return {place: shown(record) for place, record in found.items()}

    async def forget(self, where: Filter) -> int:
        """Raises where that can't be done now."""
        await self.written()
        store = await self._opened() if await self._may_be_there() else None
        return await store.delete(where) if store is not None else 0

    async def settle(self) -> None:
        """Where words are no longer kept, those of before go."""
        if self.are_kept or not await self._may_be_there():
            return
        try:
            await (await self._opened()).delete(Filter())
            await self._turns.delete_notes(NAME)
            await self.close()
            self._is_noted = False
        except StoreError as error:
            log.warning("the words of sessions are still there: %s", error)

    async def close(self) -> None:
        await self.written()
        store, self._store = self._store, None
        if store is not None:
            await store.close()

    async def _keep(self, records: list[Record]) -> None:
        async with self._order:  # the first words of a session are those that were written first
            try:
                store = await self._opened()
                if not self._is_noted:
                    await self._turns.put_note(Note(NAME, "kept", b"1", _FOREVER))
                    self._is_noted = True
                await store.save(records)
                self._has_failed = False
            except StoreError as error:
                self._fail(error)

    async def _ask(self, ask: Callable[[Store], Awaitable[Result]], otherwise: Result) -> Result:
        """For a page, which does without where the store is down."""
        try:
            if self.are_kept and await self._may_be_there():
                return await ask(await self._opened())
        except StoreError as error:
            self._fail(error)
        return otherwise

    async def _may_be_there(self) -> bool:
        if not self._is_noted and self._store is None:
            self._is_noted = bool(await self._turns.notes(NAME))
        return self._is_noted or self._store is not None

    async def _opened(self) -> Store:
        async with self._opening:
            if self._store is None:
                store = words_store(self.settings, self._clock)
                await store.open()
                self._store = store
            return self._store

    def _fail(self, error: StoreError) -> None:
        """Once, until it works again."""
        if not self._has_failed:
            log.warning("the words of sessions can't be kept or read: %s", error)
        self._has_failed = True


def words_store(settings: Settings, clock: Clock) -> Store:
    """Beside the store of turns, under the same keys, with its own time and size; not yet open."""
    terms, kept = settings.dashboard, settings.store
    own = replace(
        kept,
        ttl_seconds=terms.keep_text_ttl_seconds,
        max_bytes=terms.keep_text_bytes,
        memory_bytes=terms.keep_text_bytes,
    )
    if is_in_memory(settings.store_url):
        return MemoryStore(own, clock)
    return durable_store(settings.store_url, own, clock, NAME)


async def forget_in(settings: Settings, turns: Store, where: Filter, clock: Clock) -> int:
    """For a command, which opens the store itself."""
    words = Words(settings, turns, clock)
    try:
        return await words.forget(where)
    finally:
        await words.close()
