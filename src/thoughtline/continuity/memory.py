"""Remembers quotes in small notes in the store, so that the same text is quoted again.

    namespace continuity            one note for each session with quotes, for counting them
    namespace continuity:SESSION    the quotes of a request, by the place of the request and its target

A place is a digest of everything visible before an answer, so a note is found through the answer to its request and by
no other conversation. Notes refer to records without copying them: a deleted text is not quoted again. If the store
fails, quotes may change between requests, but no request fails.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from itertools import islice

import msgspec
from msgspec import Struct

from thoughtline.continuity.checkpoints import MAX_CHECKPOINTS, Checkpoint, checkpoint_of
from thoughtline.continuity.handover import NOTHING_QUOTED, Handover, HandoverLine, Quotation, Quoted, line_of
from thoughtline.continuity.terms import Terms
from thoughtline.engine.threads import Work, at_once
from thoughtline.formats.json_text import read_or_none
from thoughtline.replay.frames import Scope, scope_of
from thoughtline.replay.known import known_steps
from thoughtline.replay.planner import Needs
from thoughtline.replay.plans import Found
from thoughtline.replay.visible import packed
from thoughtline.stores import Clock, Filter, Note, Store
from thoughtline.values.destination import Destination
from thoughtline.values.errors import StoreError
from thoughtline.values.identity import Identity
from thoughtline.values.records import Key, Record, RecordId, digest
from thoughtline.values.turns import Transcript

SESSIONS = "continuity"
MAX_SESSIONS = 1000
MAX_PLACES = 16
"""Notes of one session: a client continues from one of its last answers. Parallel agents of one session share them."""

MAX_LOOKED_AT = 50
"""Turns of a session, newest first, that are searched for the last ones of an agent."""

TTL_SECONDS = 7 * 86400.0
"""As long as an unused record lives."""

_COUNTED_SECONDS = 400 * 86400.0
"""Sessions are counted for longer than their notes live: a session that is no longer counted can't be removed."""

_TOUCHED_SECONDS = 60.0
"""Precision of the order of use: a session that was counted a minute ago is not counted again."""


class Quote(Struct, frozen=True, gc=False, array_like=True):
    """A checkpoint: its record, and a key that finds it."""

    record: RecordId
    key: Key


class QuotedNote(Struct, frozen=True, gc=False):
    """The quotes of one request, oldest first. `at` is the time in seconds since the epoch."""

    at: float
    quotes: tuple[Quote, ...]


_decoder = msgspec.json.Decoder(QuotedNote)


class Memory:
    """Notes of earlier quotes, in a store."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._touched: dict[str, float] = {}

    async def recall(
        self,
        needed: Needs,
        found: Found,
        transcript: Transcript,
        *,
        target: Destination,
        terms: Terms,
        work: Work = at_once,
    ) -> Handover:
        """Fetch everything that is needed. For a request without known turns and without a named session nothing is
        looked up.
        """
        known, who = await work(partial(known_steps, needed, found)), needed.identity
        line = await work(partial(line_of, needed, known, transcript, target))
        is_named = who.session is not None and (who.agent is not None or terms.after_compaction_by == "session")
        looks_back = not known and terms.after_compaction and is_named
        before = await self.quoted(line) if known or looks_back else NOTHING_QUOTED
        scope = scope_of(transcript, who)
        past = await self._past(who, scope, terms) if looks_back and not before.is_known else ()
        return Handover(known, line, before, target=target, terms=terms, past=past)

    async def remember(self, handover: Handover, quotation: Quotation) -> None:
        """The request was answered: remember its quotes for the requests that continue from the answer."""
        if quotation.quotes:
            await self.keep(handover.line, quotation.quotes)

    async def quoted(self, line: HandoverLine) -> Quoted:
        """The quotes in the latest request that this one continues from."""
        try:
            notes = {note.key: note for note in await self._store.notes(_namespace(line))}
            found = next((note for place in line.places if (note := notes.get(_key(place, line)))), None)
            # An unreadable note, of another version, counts as none.
            noted = read_or_none(_decoder, found.value) if found is not None else None
            return await self._recalled(line.tenant, noted) if noted is not None else NOTHING_QUOTED
        except StoreError:
            return NOTHING_QUOTED

    async def _past(self, who: Identity, scope: Scope, terms: Terms) -> tuple[Checkpoint, ...]:
        """The last reasoning of a session and agent, oldest first: for a request without any of their turns.

        Never reasoning for another end user; and if no agent is named, only under the same system prompt, because
        requests for titles share the session's name.
        """
        try:
            page = await self._store.list_entries(Filter(tenant=who.tenant, session=who.session), MAX_LOOKED_AT)
        except StoreError:
            return ()
        records = (one.record for one in page.entries if not scope.is_of_other_user(one.record))
        own = (record for record in records if record.provenance.agent == who.agent)
        if who.agent is None:
            own = (record for record in own if scope.has(record))
        found = (checkpoint for record in own if (checkpoint := checkpoint_of(record)) is not None)
        fitting = (checkpoint for checkpoint in found if len(checkpoint.text) <= terms.max_chars)
        return tuple(reversed(list(islice(fitting, terms.count))))

    async def keep(self, line: HandoverLine, quotes: Sequence[Checkpoint]) -> None:
        """Remember the quotes of a request."""
        if not line.places:
            return
        now = self._clock()
        named = tuple(Quote(one.record, one.key) for one in quotes[-MAX_CHECKPOINTS:])
        value = msgspec.json.encode(QuotedNote(now, named))
        try:
            await self._store.put_note(Note(_namespace(line), _key(line.places[0], line), value, now + TTL_SECONDS))
            await self._prune(_namespace(line))
            await self._touch(_name(line), now)
        except StoreError:
            pass  # the store counts and reports it

    async def _recalled(self, tenant: str, noted: QuotedNote) -> Quoted:
        found = await self._store.find(tenant, [quote.key for quote in noted.quotes]) if noted.quotes else {}
        quotes = [_checkpoint(quote, found.get(quote.key, ())) for quote in noted.quotes]
        there = tuple(one for one in quotes if one is not None)
        return Quoted(there, True, len(there) == len(quotes))

    async def _prune(self, namespace: str) -> None:
        notes = await self._store.notes(namespace)
        oldest = sorted(notes, key=lambda note: note.expires_at)[: max(0, len(notes) - MAX_PLACES)]
        for note in oldest:
            await self._store.delete_notes(namespace, note.key)

    async def _touch(self, session: str, now: float) -> None:
        """Count a session, and remove the least recently used ones."""
        if now - self._touched.get(session, 0.0) < _TOUCHED_SECONDS:
            return
        await self._store.put_note(Note(SESSIONS, session, b"", now + _COUNTED_SECONDS))
        notes = sorted(await self._store.notes(SESSIONS), key=lambda note: note.expires_at)
        stale = sum(1 for note in notes if note.expires_at < now + _COUNTED_SECONDS - TTL_SECONDS)
        for note in notes[: max(stale, len(notes) - MAX_SESSIONS)]:
            await self._store.delete_notes(f"{SESSIONS}:{note.key}")
            await self._store.delete_notes(SESSIONS, note.key)
            self._touched.pop(note.key, None)
        if len(self._touched) >= 2 * MAX_SESSIONS:
            self._touched.clear()
        self._touched[session] = now


def _name(line: HandoverLine) -> str:
    return digest(packed("session", line.tenant, line.session)).hex()


def _namespace(line: HandoverLine) -> str:
    return f"{SESSIONS}:{_name(line)}"


def _key(place: Key, line: HandoverLine) -> str:
    return f"{place}/{line.target}"


def _checkpoint(quote: Quote, records: Iterable[Record]) -> Checkpoint | None:
    record = next((one for one in records if one.id == quote.record), None)
    return checkpoint_of(record) if record is not None else None
