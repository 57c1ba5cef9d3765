"""Stored turns: pages of them with statistics, and deleting them."""

from __future__ import annotations

from collections.abc import Collection
from typing import TypeVar, assert_never

from msgspec import Struct
from msgspec.structs import replace

from thoughtline.gateway.admin import answers
from thoughtline.gateway.admin.answers import (
    CacheEntry,
    CachePage,
    CacheStats,
    DialogueTurn,
    Done,
    Place,
    Saying,
    SessionTurn,
    moment,
)
from thoughtline.gateway.admin.requests import AdminRequest, Whole, decode_query
from thoughtline.gateway.bus import StoreCounts
from thoughtline.gateway.masking import masked_url
from thoughtline.gateway.state import State
from thoughtline.providers import canonical_name
from thoughtline.stores import Entry, Filter, Page, Stats, Store
from thoughtline.stores.base import MAX_PAGE
from thoughtline.terminal import counted
from thoughtline.values.errors import Declined, StoreRefused
from thoughtline.values.items import (
    Reasoning,
    ReasoningEncrypted,
    ReasoningServerToolCall,
    ReasoningSummary,
    ReasoningText,
    readable_text,
    reasoning_of,
)
from thoughtline.values.outcome import Outcome

Turn = TypeVar("Turn", bound=SessionTurn)


class CacheFilter(Struct, frozen=True, rename="camel"):
    """Selects the turns that match every given value."""

    provider: str | None = None
    model: str | None = None
    session: str | None = None
    tenant: str | None = None
    tool_call_id: str | None = None

    @property
    def where(self) -> Filter:
        return Filter(self.tenant, self.provider, self.model, self.session, self.tool_call_id)


class CacheQuery(CacheFilter, frozen=True, rename="camel"):
    """Selects a page of them. `limit` is clamped to 1 to 200."""

    limit: int = 50
    cursor: str | None = None


async def cache_page(request: AdminRequest) -> Whole:
    state, query = request.state, decode_query(request.query, CacheQuery)
    where = await as_kept(state.store, query.where)
    page = await entries_page(state, where, query.limit, query.cursor)
    stats = stats_answer(await state.store.stats(), state.bus.counts)
    return Whole(CachePage(stats, [entry_answer(entry) for entry in page.entries], page.cursor))


async def forget_entries(request: AdminRequest) -> Whole:
    deleted = await forget(request.state, decode_query(request.query, CacheFilter).where)
    return Whole(answers.Deleted(deleted), done=f"{counted(deleted, 'turn')} deleted")


async def forget(state: State, where: Filter) -> int:
    """Delete turns, and return how many there were. If all are deleted, the counts are reset."""
    kept = await as_kept(state.store, where)
    gone = await state.store.delete(kept)
    await state.words.forget(kept)
    state.replayer.forget_conversations()
    if where == Filter():
        state.bus.reset_counts()
    return gone


async def as_kept(store: Store, where: Filter) -> Filter:
    """Return the filter with the names in the store: callers may write them in any case, or use an alias."""
    if where.provider is None and where.model is None:
        return where
    stats = await store.stats()
    provider, model = where.provider, where.model
    if provider is not None:
        provider = _known(provider, stats.by_provider) or _known(canonical_name(provider), stats.by_provider)
    if model is not None:
        model = _known(model, stats.by_model)
    return replace(where, provider=provider or where.provider, model=model or where.model)


def _known(name: str, names: Collection[str]) -> str | None:
    if name in names:
        return name
    return next((one for one in names if one.lower() == name.lower()), None)


async def entries_page(state: State, where: Filter, limit: int, cursor: str | None) -> Page:
    try:
        return await state.store.list_entries(where, min(max(limit, 1), MAX_PAGE), cursor)
    except StoreRefused:
        raise Declined(400, "bad_cursor", "This cursor belongs to no page.", "Begin without one.") from None


def stats_answer(stats: Stats, counts: StoreCounts) -> CacheStats:
    lookups = counts.hits + counts.misses
    return CacheStats(
        memory_entries=stats.memory_entries,
        db_entries=stats.disk_entries,
        total_entries=stats.total_entries,
        total_chars=stats.total_chars,
        hits=counts.hits,
        misses=counts.misses,
        replays=counts.replays,
        replay_rate=f"{100 * counts.replays / lookups if lookups else 0:.1f}%",
        by_provider={name: answers.Share(one.entries, one.chars) for name, one in stats.by_provider.items()},
        by_model={name: answers.Share(one.entries, one.chars) for name, one in stats.by_model.items()},
        oldest_entry=None if stats.oldest_at is None else moment(stats.oldest_at),
        newest_entry=None if stats.newest_at is None else moment(stats.newest_at),
    )


def entry_answer(entry: Entry) -> CacheEntry:
    texts = (readable_text(item) for item in reasoning_of(entry.record.items))
    return _turn(CacheEntry, entry, reasoning="\n\n".join(text for text in texts if text))


def dialogue_turn(entry: Entry, *, before: list[Saying] | None, says: list[Saying]) -> DialogueTurn:
    return _turn(DialogueTurn, entry, before=before, says=says)


def _turn(kind: type[Turn], entry: Entry, **more: object) -> Turn:
    record, outcome = entry.record, entry.record.outcome
    where = record.provenance
    return kind(
        id=record.id,
        tool_call_id=next(iter(record.call_ids), None),
        tool_call_ids=list(record.call_ids),
        provider=where.provider,
        endpoint=masked_url(where.endpoint),
        model=record.model,
        format=where.format,
        tenant=where.tenant,
        session=where.session,
        agent=where.agent,
        kinds=[_kind(item) for item in reasoning_of(record.items)],
        char_count=record.reasoning_chars,
        is_complete=record.is_complete,
        created_at=moment(record.created_at),
        expires_at=moment(entry.expires_at),
        outcome=None if outcome is None else Done.of(outcome, findings=_places(outcome)),
        **more,
    )


def _places(outcome: Outcome) -> list[Place]:
    return [Place(rule, place) for rule, place in outcome.findings]


def _kind(item: Reasoning) -> str:
    match item:
        case ReasoningText():
            return "text"
        case ReasoningSummary():
            return "summary"
        case ReasoningEncrypted():
            return "encrypted"
        case ReasoningServerToolCall():
            return "server_tool_call"
        case _:
            assert_never(item)
