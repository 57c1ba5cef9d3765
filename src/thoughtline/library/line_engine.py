"""The engine of a line: the store, the replayer and the lessons. All of it runs on the background loop."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Sequence
from operator import add
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from thoughtline.engine.capture import log_problem
from thoughtline.engine.contracts import contract_book
from thoughtline.engine.learned import Lessons
from thoughtline.engine.replayer import Replayer
from thoughtline.engine.request import Prepared
from thoughtline.engine.threads import InThreads
from thoughtline.library.history import translated
from thoughtline.library.telling import Listeners
from thoughtline.replay.refusals import Refusal
from thoughtline.settings import Settings
from thoughtline.stores import LayeredStore, Store, open_store
from thoughtline.values.destination import Destination
from thoughtline.values.errors import StoreError, StoreUnavailable
from thoughtline.values.identity import Identity
from thoughtline.values.outcome import COUNTED, Counts, counts_of
from thoughtline.values.records import Record

log = logging.getLogger(__name__)

REFRESH_SECONDS = 30.0
"""How often lessons of other processes are loaded."""


class LineReport(Counts, frozen=True, kw_only=True):
    """What a line has done since it was made: requests, saved turns, and the summed counts of `x-thoughtline-replay`.

    `late` are turns whose end no longer waited for their record. `store` is `ok`; `degraded` while turns are kept in
    memory until it works again; or `memory` if it could not be opened. `problem` says why.
    """

    requests: int = 0
    saved: int = 0
    late: int = 0
    store: str = "ok"
    problem: str = ""


class _Open(Struct):
    """The parts of an engine that need an open store."""

    store: Store
    replayer: Replayer
    lessons: Lessons


class Engine:
    """One for each line and process."""

    def __init__(self, settings: Settings, listeners: Listeners) -> None:
        self.settings = settings
        self.listeners = listeners
        self.hold_seconds = settings.replay.hold_ms / 1000
        self._opening: asyncio.Task[_Open] | None = None
        self._opened: _Open | None = None
        self._work = InThreads()
        self._saves: set[asyncio.Task[Any]] = set()
        self._refreshed_at = 0.0
        self._requests = self._healed = self._saved = self._late = 0
        self._counts = [0] * len(COUNTED)
        self._problem = ""
        self._store: Store | None = None
        self._is_closed = False

    @property
    def report(self) -> LineReport:
        done = LineReport(*self._counts, requests=self._requests, saved=self._saved, late=self._late)
        return replace(done, healed=self._healed, store=self.store_word, problem=self._problem or self._failure)

    @property
    def store_word(self) -> str:
        if self._problem:
            return "memory"
        return "degraded" if self._failure else "ok"

    @property
    def _failure(self) -> str:
        """Why the store is degraded."""
        store = self._store
        if not isinstance(store, LayeredStore) or store.is_settled:
            return ""
        return store.last_failure or "turns wait to be written"

    async def open_whole(self) -> None:
        """Open the store. Raises if it does not work now, even if it might later."""
        await self.open()
        if self._failure:
            failure = self._failure
            await self.close()
            raise StoreUnavailable(failure)

    async def open(self) -> _Open:
        """Open the store. Raises its error if that is not possible."""
        if self._opened is None:
            if self._opening is None:
                self._opening = asyncio.ensure_future(self._open(self.settings.store_url))
            self._opened = await asyncio.shield(self._opening)
        return self._opened

    async def _open(self, url: str) -> _Open:
        store = await open_store(url, self.settings.store)
        self._store = store
        lessons = Lessons(store, time.time)
        await lessons.refresh()
        self._refreshed_at = time.monotonic()
        book, terms = contract_book(self.settings, lessons), self.settings.replay
        replayer = Replayer(
            store,
            lessons,
            book,
            time.time,
            work=self._work,
            remembered_bytes=terms.remembered_bytes,
            any_frame=terms.any_system_prompt,
        )
        return _Open(store, replayer, lessons)

    async def _ready(self) -> Replayer:
        opened = self._opened or await self._open_anyway()
        if time.monotonic() - self._refreshed_at > REFRESH_SECONDS:
            self._refreshed_at = time.monotonic()
            await opened.lessons.refresh()
        return opened.replayer

    async def _open_anyway(self) -> _Open:
        """Open the store, or continue with memory alone and report that: a store that a person has to fix must not fail
        a request."""
        try:
            return await self.open()
        except (StoreError, OSError) as error:
            if not self._problem:
                self._problem = f"{type(error).__name__}: {error}"
                log.error("the store could not be opened, memory goes on alone: %s", self._problem)
                self._opening = asyncio.ensure_future(self._open("memory://"))
            return await self.open()

    async def prepare(self, body: bytes, destination: Destination, identity: Identity) -> Prepared:
        prepared = await (await self._ready()).prepare(body, destination, identity)
        self._requests += 1
        if prepared.plan is not None:
            self._counts = list(map(add, self._counts, counts_of(prepared.plan.counts)))
        return prepared

    async def heal(self, prepared: Prepared, status: int, answer: bytes) -> tuple[Refusal | None, Prepared | None]:
        """Return what a refusal is about, if it is about reasoning, and the corrected request."""
        replayer = await self._ready()
        refusal = replayer.read_refusal(prepared, status, answer)
        return refusal, await replayer.heal(prepared, status, answer) if self.settings.replay.heal else None

    async def accept(self, prepared: Prepared) -> None:
        """Note that a healed request was accepted."""
        self._healed += 1
        if self.settings.replay.learn:
            await (await self._ready()).keep_lessons(prepared)

    async def save(self, records: Sequence[Record]) -> None:
        """Save records, unless the line is closed: then the rest is dropped."""
        task = asyncio.current_task()
        if self._is_closed or task is None:
            return
        self._saves.add(task)
        try:
            saved = await (await self._ready()).save(records, learns=self.settings.replay.learn)
            self._saved += len(records) if saved is not None else 0
        except Exception as problem:
            log_problem("a turn could not be remembered", problem)
        finally:
            self._saves.discard(task)

    def count_late(self) -> None:
        """Count a turn whose end was shown before it was saved; the save continues in the background."""
        self._late += 1

    async def translate(self, body: bytes, to: Destination, who: Identity) -> dict[str, Any]:
        """Return the members of a request with a history that another model accepts."""
        replayer, store = await self._ready(), self._store
        assert store is not None
        return await translated(replayer, store, self.settings, body=body, to=to, who=who)

    async def settle(self) -> None:
        """Wait for running saves."""
        if self._saves:
            await asyncio.wait(self._saves)

    async def close(self) -> None:
        self._is_closed = True
        await self.settle()
        opening, self._opening, self._opened, self._store = self._opening, None, None, None
        if opening is not None:
            await (await opening).store.close()
        self._work.close()
