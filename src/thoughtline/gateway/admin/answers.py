"""What the admin API answers, as structs: their JSON is the answer, their schema stands in the OpenAPI document."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Self

from msgspec import Struct

from thoughtline.replay.findings import Finding
from thoughtline.settings import (
    ContentTable,
    ContinuitySettings,
    DebugSettings,
    ReplaySettings,
    ServerSettings,
    StoreTable,
    TagsTable,
    TranslationSettings,
)
from thoughtline.stores.history import HistorySettings
from thoughtline.values.turns import FormatName


class AdminAnswer(Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """Base of all: members in camel case, and no others."""

    @classmethod
    def of(cls, value: object, **others: object) -> Self:
        """What a value has by the same names, beside `others`."""
        make: Callable[..., Self] = cls
        return make(**{name: getattr(value, name) for name in cls.__struct_fields__ if name not in others}, **others)


class Problem(AdminAnswer, frozen=True):
    """What is wrong. `code` is stable; `remedy` is for people, and empty where there is none."""

    code: str
    message: str
    remedy: str


class Failure(AdminAnswer, frozen=True):
    """An error."""

    error: Problem


class Health(AdminAnswer, frozen=True):
    """The process answers."""

    status: str


class Readiness(AdminAnswer, frozen=True):
    """Whether requests can be served: `ready`, `crowded` while many are under way whose clients have left, or
    `not_ready` (503). `store` is `ok`, `slow` while turns are saved too late for the end of their
    answers to wait, or `degraded` while memory goes on without the durable store. `detail` says more."""

    status: str
    store: str
    detail: str


class Deleted(AdminAnswer, frozen=True):
    """How many went."""

    deleted: int


class Share(AdminAnswer, frozen=True):
    """What of the memory belongs to one provider or model."""

    entries: int
    chars: int


class CacheStats(AdminAnswer, frozen=True):
    """What is remembered, and how often it was of use since the start, all workers of this machine together.

    `hits` are turns that needed reasoning and got their own back, each a replay; `misses` those that did not. A turn
    whose client kept its reasoning is neither. `replayRate` is `replays` of both.
    """

    memory_entries: int
    db_entries: int
    total_entries: int
    total_chars: int
    hits: int
    misses: int
    replays: int
    replay_rate: str
    by_provider: dict[str, Share]
    by_model: dict[str, Share]
    oldest_entry: datetime | None
    newest_entry: datetime | None


class Place(AdminAnswer, frozen=True):
    """A finding about a request: which rule, and a JSON pointer to where."""

    rule: str
    place: str


class Done(AdminAnswer, frozen=True):
    """What was done about the request that a turn answers, and the milliseconds spent here and upstream.

    `handoff` is the target that made the turn before, if it was another one; `addedChars` those of the checkpoints.
    """

    request: str
    restored: int
    inherited: int
    blank: int
    stripped: int
    missing: int
    healed: int
    checkpoints: int
    route: str
    attempts: int
    handoff: str
    added_chars: int
    tool_errors: int
    finish: str
    findings: list[Place]
    upstream_ms: float
    own_ms: float


class SessionTurn(AdminAnswer, frozen=True):
    """A turn that is remembered. `kinds` are those of its reasoning, in order; `toolCallId` is its first call's."""

    id: str
    tool_call_id: str | None
    tool_call_ids: list[str]
    provider: str
    endpoint: str
    model: str
    format: FormatName
    tenant: str
    session: str | None
    agent: str | None
    kinds: list[str]
    char_count: int
    is_complete: bool
    created_at: datetime
    expires_at: datetime
    outcome: Done | None


class CacheEntry(SessionTurn, frozen=True):
    """A turn with what can be read of its reasoning; what is encrypted is counted and not shown."""

    reasoning: str


class CachePage(AdminAnswer, frozen=True):
    """Entries, newest first. `cursor` asks for the next page; it is null after the last."""

    stats: CacheStats
    entries: list[CacheEntry]
    cursor: str | None


class SessionRow(AdminAnswer, frozen=True):
    """A session and how much of it is remembered. A name that begins with `~` is one that no client told."""

    id: str
    tenant: str
    entries: int
    chars: int
    newest_entry: datetime


class SessionPage(AdminAnswer, frozen=True):
    """Sessions, those with the newest turns first."""

    sessions: list[SessionRow]


class SessionView(AdminAnswer, frozen=True):
    """The turns of a session in their order. `cursor` asks for those before the first; it is null if there are none."""

    id: str
    tenant: str
    turns: list[SessionTurn]
    cursor: str | None


class HandoffRow(AdminAnswer, frozen=True):
    """The handoffs of a route, with checkpoints or without.

    `addedTokens` is estimated from the characters. `finishes` are how the turns ended at which it changed hands. In the
    `followed` turns after them, three each at most: results of tools that were errors, calls whose arguments can't be
    read, turns that were asked for again.
    """

    route: str
    has_checkpoints: bool
    count: int
    added_chars: int
    added_tokens: int
    finishes: dict[str, int]
    followed: int
    tool_errors: int
    bad_calls: int
    retries: int


class HandoffReport(AdminAnswer, frozen=True):
    """By the newest `turns` that are remembered; `isWhole` says whether these are all."""

    handoffs: list[HandoffRow]
    turns: int
    is_whole: bool


class ProviderView(AdminAnswer, frozen=True):
    """`[providers.NAME]`. Of its keys, how many; of its headers, their names."""

    base_url: str
    formats: list[FormatName]
    auth: str
    api_keys: int
    headers: list[str]
    contract: str | None
    dialect: str | None
    continuity: str | None
    tags: str | None
    content: str | None
    is_configured: bool


class ContinuityView(ContinuitySettings, frozen=True, kw_only=True):
    """`[continuity]`. `available`: whether this version does anything with it."""

    available: bool = True


class TagsView(TagsTable, frozen=True, kw_only=True):
    """`[tags]`. `available`: whether this version does anything with it."""

    available: bool = True


class SettingsView(AdminAnswer, frozen=True):
    """What is in force. Secrets are `***`. `shared` names what was set here and stands over file and environment."""

    server: ServerSettings
    store: StoreTable
    providers: dict[str, ProviderView]
    routes: dict[str, list[str]]
    route_continuity: dict[str, str]
    default_provider: str | None
    replay: ReplaySettings
    continuity: ContinuityView
    translation: TranslationSettings
    tags: TagsView
    content: ContentTable
    debug: DebugSettings
    history: HistorySettings
    contracts: list[str]
    shared: list[str]


class ContractView(AdminAnswer, frozen=True):
    """What a provider demands back."""

    name: str
    kind: str
    scope: str
    takes: str
    dialect: str
    carrier: str
    format: FormatName
    ladder: list[str]
    thinks_by_default: bool
    only_when_thinking: bool
    binds_prefix: bool
    binds_model: bool
    source: str
    is_overridden: bool


class EvidenceView(AdminAnswer, frozen=True):
    """Why a correction is believed: nothing of a request or an answer is in it, `fingerprint` is a digest."""

    status: int
    code: str
    fingerprint: str
    is_wrapped: bool


class CorrectionView(AdminAnswer, frozen=True):
    """What a refusal taught about one provider, endpoint and model. `key` resets it."""

    key: str
    provider: str
    endpoint: str
    model: str
    change: str
    field: str
    scope: str
    filler: str | None
    evidence: EvidenceView
    learned_at: datetime
    expires_at: datetime


class ContractsView(AdminAnswer, frozen=True):
    """Every contract as settings have it, and what was learned."""

    contracts: list[ContractView]
    learned: list[CorrectionView]
    refused_seals: int


class Audit(AdminAnswer, frozen=True):
    """What a provider would refuse in a request."""

    findings: list[Finding]


def moment(seconds: float) -> datetime:
    """Seconds since the epoch as a date in UTC."""
    return datetime.fromtimestamp(seconds, UTC)
