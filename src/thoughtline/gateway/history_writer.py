"""Requests that are over, on their way into the history and back.

    Served ─ keep ─▶ queue ─ once a second, in a thread ─▶ HistoryEntry ─▶ the store's history
    Served ◀─ unpacked ── Kept ◀─ page, find ─┘

Serving a request adds a reference to a list. What the store does not take is tried again, and the oldest of it is lost
beyond `MAX_WAITING`. Nothing that a user, a model or a tool said is written: of a provider's refusal only what does not
quote the request.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Sequence
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import astuple, replace

from thoughtline.gateway.admin.answers import moment
from thoughtline.gateway.explaining import client_named, outcome_of
from thoughtline.gateway.journal import Line
from thoughtline.gateway.recent import AttemptNote, Served, TokenCounts
from thoughtline.stores.background import Periodic
from thoughtline.stores.history import Group, History, HistoryEntry, HistorySettings, Kept, Sums
from thoughtline.stores.packing import Packer
from thoughtline.values.errors import StoreError, ThoughtlineError
from thoughtline.values.outcome import NoteChain, Reason, Treatment, TurnNote

log = logging.getLogger(__name__)

FLUSH_SECONDS = 0.8
"""How long a request waits to be written: what a `kill -9` loses of the history."""

RETRY_SECONDS = 5.0
CLEAN_SECONDS = 600.0
MAX_WAITING = 20_000
"""Requests that wait for a store that is down, some kilobytes each."""

EARLY = 20
"""Cleaning comes early when a twentieth of what the history may take was written."""

RECORDS_KEPT = 8
"""Of how many turns of a request it is kept which record they were found by: requests before tell of the others."""

LAYOUT = 1
MAX_NAME = 200

_LINE = Line.__struct_fields__
_encode = msgspec.msgpack.Encoder().encode


class StoredTurns(Struct, frozen=True, array_like=True):
    """Turns of one treatment, for one reason: their positions."""

    treatment: Treatment
    why: Reason
    at: list[int]


class Stored(Struct, frozen=True, array_like=True):
    """A request as it is written. `line` has the values of a `Line` in its order; `records` those of the last turns."""

    layout: int
    worker: str
    line: list[Any]
    began_at: float
    seconds: float
    first_byte_seconds: float | None
    path: str
    user_agent: str
    client_key: str
    caller: str
    message: str
    tokens: TokenCounts | None
    attempts: tuple[AttemptNote, ...]
    turns: tuple[StoredTurns, ...] = ()
    records: dict[int, str] = {}
    ended_seconds: float | None = None
    end_seconds: float = 0.0
    save_seconds: float = 0.0


_decode = msgspec.msgpack.Decoder(Stored).decode


class HistoryWriter:
    """What this process has to write. `history` is where it goes, and where all of it is read."""

    def __init__(self, history: History, packer: Packer, settings: HistorySettings) -> None:
        self.history, self.is_kept = history, history.is_kept
        self.packer = packer
        self._room = settings.max_bytes / EARLY
        self._waiting: deque[Served] = deque(maxlen=MAX_WAITING)
        self._timer: asyncio.TimerHandle | None = None
        self._writing = asyncio.Lock()
        self._tasks: set[asyncio.Task[None]] = set()
        self._cleaner = Periodic(history.clean, lambda: CLEAN_SECONDS)
        self._written = 0
        self._is_failing = False
        self.lost = 0

    async def open(self) -> None:
        """A history that can't be opened is tried again with the first that is to be written."""
        if self.history.is_kept:
            try:
                await self.history.open()
            except StoreError as problem:
                self._note_failure(problem)
            self._cleaner.start()
            self._cleaner.wake()

    async def close(self) -> None:
        if self.history.is_kept:
            await self._cleaner.stop()
            if self._timer is not None:
                self._timer.cancel()
            await self.flush()
            try:
                await self.history.close()
            except StoreError as problem:
                self._note_failure(problem)

    def keep(self, served: Served) -> None:
        """A request is over."""
        if len(self._waiting) == MAX_WAITING:
            self.lost += 1
        self._waiting.append(served)
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(FLUSH_SECONDS, self._begin)

    def forget(self, tenant: str) -> None:
        """Drop what waits of a tenant."""
        left = [served for served in self._waiting if served.line.tenant != tenant]
        self._waiting.clear()
        self._waiting.extend(left)

    def _begin(self) -> None:
        task = asyncio.get_running_loop().create_task(self._flush_in_background())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _flush_in_background(self) -> None:
        self._timer = None
        await self.flush()
        if self._waiting and self._timer is None:
            seconds = RETRY_SECONDS if self._is_failing else FLUSH_SECONDS
            self._timer = asyncio.get_running_loop().call_later(seconds, self._begin)

    async def flush(self) -> None:
        """Write what waits. A store that fails is logged once, and what waits goes on waiting."""
        async with self._writing:
            batch = list(self._waiting)
            if not batch:
                return
            try:
                entries = await asyncio.to_thread(entries_of, batch, self.packer.aside())
                await self.history.write(entries)
            except StoreError as problem:
                self._note_failure(problem)
                return
            self._is_failing = False
            written = {id(one) for one in batch}
            while self._waiting and id(self._waiting[0]) in written:
                self._waiting.popleft()
            self._written += sum(len(one.data) for one in entries)
            if self._written > self._room:
                self._written = 0
                self._cleaner.wake()

    def _note_failure(self, problem: StoreError) -> None:
        if not self._is_failing:
            log.warning("the history can't be written, and is tried again: %s", problem)
        self._is_failing = True

    def served(self, kept: Kept) -> Served | None:
        """A request as it was; None if another version or another key has written it."""
        return unpacked(kept, self.packer)


def entries_of(batch: Sequence[Served], packer: Packer) -> list[HistoryEntry]:
    """Requests as they are written."""
    return [entry_of(one, packer) for one in batch]


def entry_of(served: Served, packer: Packer) -> HistoryEntry:
    line = served.line
    return HistoryEntry(
        round(moment(served.began_at).timestamp() * 1_000_000),  # as rows tell it: pages go on from there
        line.request,
        group_of(served),
        session=(line.session or "")[:MAX_NAME].replace("\0", ""),
        sums=sums_of(served),
        data=packer.seal(packed(served), line.request.encode()),
    )


def group_of(served: Served) -> Group:
    """What a request has in common with others."""
    line = served.line
    names = (line.tenant, served.caller, client_named(served.user_agent), line.provider, line.model, line.via)
    tenant, caller, client, provider, model, route = (name[:MAX_NAME].replace("\0", "") for name in names)
    last = served.attempts[-1] if served.attempts else None
    code = line.code or (last.refusals[-1].code if last is not None and last.refusals else "")
    return Group(
        tenant,
        caller,
        client,
        provider,
        model,
        route=route,
        action=line.route,
        mode=line.mode,
        outcome=outcome_of(served),
        status=line.status,
        code=code[:60].replace("\0", ""),
    )


def sums_of(served: Served) -> Sums:
    """What a request adds to the figures."""
    line, tokens = served.line, served.tokens
    is_error = line.status >= 500 or (bool(line.code) and line.code != "client_gone")
    return Sums(
        requests=1,
        avoided=int(line.avoided),
        **line.counted,
        dropped=line.dropped,
        withheld=line.withheld,
        refused=int(line.status >= 400 and not is_error),
        errors=int(is_error),
        slow=int(line.store == "slow"),
        degraded=int(line.store == "degraded"),
        own_ms=line.own_ms,
        upstream_ms=line.upstream_ms,
        input_tokens=line.input_tokens,
        cached_tokens=line.cached_tokens,
        output_tokens=tokens[1] if tokens is not None else 0,
        reasoning_tokens=line.reasoning_tokens,
    )


def packed(served: Served) -> bytes:
    """Return all that explains a request, without words."""
    notes = served.attempts[-1].notes if served.attempts else None
    turns, records = _stored_turns(notes) if notes is not None else ((), {})
    stored = Stored(
        LAYOUT,
        served.worker,
        list(astuple(served.line)),
        began_at=served.began_at,
        seconds=served.seconds,
        first_byte_seconds=served.first_byte_seconds,
        path=served.path,
        user_agent=served.user_agent,
        client_key=served.client_key,
        caller=served.caller,
        message=served.message,
        tokens=served.tokens,
        attempts=tuple(map(_without_words, served.attempts)),
        turns=turns,
        records=records,
        ended_seconds=served.ended_seconds,
        end_seconds=served.end_seconds,
        save_seconds=served.save_seconds,
    )
    return _encode(stored)


def unpacked(kept: Kept, packer: Packer) -> Served | None:
    """The request again."""
    try:
        stored = _decode(packer.unseal(kept.data, kept.id.encode()))
        if stored.layout != LAYOUT:
            return None
        line = msgspec.convert(dict(zip(_LINE, stored.line, strict=False)), Line)
    except (msgspec.DecodeError, msgspec.ValidationError, ThoughtlineError) as problem:
        log.warning("a request of the history can't be read: %s", type(problem).__name__)
        return None
    attempts = stored.attempts
    if stored.turns and attempts:
        records = stored.records
        every = (TurnNote(at, some.treatment, some.why, records.get(at, "")) for some in stored.turns for at in some.at)
        notes = sorted(every, key=lambda note: note.at)
        attempts = (*attempts[:-1], replace(attempts[-1], notes=NoteChain(None, tuple(notes))))
    return Served(
        line,
        True,
        stored.began_at,
        stored.seconds,
        stored.first_byte_seconds,
        path=stored.path,
        user_agent=stored.user_agent,
        client_key=stored.client_key,
        caller=stored.caller,
        message=stored.message,
        tokens=stored.tokens,
        attempts=attempts,
        worker=stored.worker,
        ended_seconds=stored.ended_seconds,
        end_seconds=stored.end_seconds,
        save_seconds=stored.save_seconds,
    )


def _without_words(one: AttemptNote) -> AttemptNote:
    refusals = tuple(replace(each, words=each.unquoted) for each in one.refusals)
    return replace(one, notes=None, refusals=refusals)


def _stored_turns(notes: NoteChain) -> tuple[tuple[StoredTurns, ...], dict[int, str]]:
    """Notes by what was done and why: a long conversation has many alike."""
    places: dict[tuple[Treatment, Reason], list[int]] = {}
    every = list(notes)
    for note in every:
        places.setdefault((note.treatment, note.why), []).append(note.at)
    turns = tuple(StoredTurns(treatment, why, at) for (treatment, why), at in places.items())
    last = sorted(every, key=lambda note: note.at)[-RECORDS_KEPT:]
    return turns, {note.at: note.record for note in last if note.record}
