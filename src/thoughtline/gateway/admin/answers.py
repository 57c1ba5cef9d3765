"""The admin API's answers, as structs: their JSON is the answer, their schema is part of the OpenAPI document."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Literal, Self

from msgspec import Struct

from thoughtline.replay.findings import Finding
from thoughtline.settings import (
    ContentTable,
    ContinuitySettings,
    DashboardSettings,
    DebugSettings,
    ReplaySettings,
    ServerSettings,
    StoreTable,
    TagsTable,
    TranslationSettings,
)
from thoughtline.values.turns import FormatName


class AdminAnswer(Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """Base class: members in camel case, and no unknown ones."""

    @classmethod
    def of(cls, value: object, **others: object) -> Self:
        """Make an answer from a value's members of the same names, and `others`."""
        make: Callable[..., Self] = cls
        return make(**{name: getattr(value, name) for name in cls.__struct_fields__ if name not in others}, **others)


class Problem(AdminAnswer, frozen=True):
    """What is wrong. `code` is stable; `remedy` is for people, and empty if there is none."""

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
    """Whether requests can be served: `ready`, `crowded` while many requests of disconnected clients are active, or
    `not_ready` (503). `store` is `ok`, `slow` while turns are saved too late for the end of their answers to wait, or
    `degraded` while memory works without the durable store. `detail` has more."""

    status: str
    store: str
    detail: str


class Deleted(AdminAnswer, frozen=True):
    """How many were deleted."""

    deleted: int


class Share(AdminAnswer, frozen=True):
    """How much of the store belongs to one provider or model."""

    entries: int
    chars: int


class CacheStats(AdminAnswer, frozen=True):
    """What is stored, and how often it was used since the start, for all workers of this machine together.

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
    """A finding about a request: its rule, and a JSON pointer to the place."""

    rule: str
    place: str


class Done(AdminAnswer, frozen=True):
    """What was done for the request of a turn, and the milliseconds spent here and upstream.

    `handoff` is the target that made the previous turn, if it was another one; `addedChars` is the length of the
    checkpoints.
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
    """A stored turn. `kinds` are those of its reasoning, in order; `toolCallId` is that of its first call."""

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
    """A turn with its readable reasoning; encrypted reasoning is counted and not shown."""

    reasoning: str


class CachePage(AdminAnswer, frozen=True):
    """Entries, newest first. `cursor` requests the next page; it is null on the last."""

    stats: CacheStats
    entries: list[CacheEntry]
    cursor: str | None


class SessionRow(AdminAnswer, frozen=True):
    """A session and how much of it is stored. An `id` that begins with `~` was made by the gateway.

    `title` is the name that the client gave the session, or with `[dashboard] keep_text` the user's first words
    (`titledBy`); where it is null, `clientTitle`, `model` and `startedAt` tell sessions apart. `client` is a name that
    `/api/connect` lists, or empty; `model` made the first turn, `models` are all, as `provider/model`. `startedAt` is
    when the oldest turn was made that is still stored.
    """

    id: str
    tenant: str
    title: str | None
    titled_by: Literal["client", "words", ""]
    client: str
    client_title: str
    model: str
    models: list[str]
    entries: int
    chars: int
    started_at: datetime | None
    newest_entry: datetime


class SessionPage(AdminAnswer, frozen=True):
    """Sessions, those with the newest turns first."""

    sessions: list[SessionRow]


SayingKind = Literal["user", "result", "thought", "sealed", "answer", "call", "other"]


class Saying(AdminAnswer, frozen=True):
    """A piece of a conversation. `text` is the words, the result, or the arguments of a call; `name` the tool.

    `kind`: `user` (what a user wrote), `result` (what a tool returned), `thought` (reasoning that can be read),
    `sealed` (reasoning that can't; `text` is empty), `answer` (what the model said), `call` (a tool it called), `other`
    (an image, a file; `name` says which).
    """

    kind: SayingKind
    text: str
    name: str = ""
    call_id: str = ""
    chars: int = 0


class DialogueTurn(SessionTurn, frozen=True):
    """A turn as it can be read. `before` is what was said since the turn before it, null where that is not stored;
    `says` what the model thought, said and called, in order. Texts are cut at 32,768 characters; `chars` is how many
    there were. `record` of a turn in `/api/requests/{id}` is the `id` of one of these.
    """

    before: list[Saying] | None
    says: list[Saying]


class SessionView(SessionRow, frozen=True):
    """The turns of a session in their order. `cursor` asks for those before the first; it is null if there are none.

    `keepsText` says whether `[dashboard] keep_text` is on.
    """

    keeps_text: bool
    turns: list[DialogueTurn]
    cursor: str | None


class HandoffRow(AdminAnswer, frozen=True):
    """The handoffs of a route, with checkpoints or without.

    `addedTokens` is estimated from the characters. `finishes` are the finish reasons of the turns before a handoff. For
    the `followed` turns after them, at most three each: tool results that were errors, calls with unreadable arguments,
    repeated turns.
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
    """From the newest `turns` that are stored; `isWhole` says whether these are all."""

    handoffs: list[HandoffRow]
    turns: int
    is_whole: bool


class ProviderView(AdminAnswer, frozen=True):
    """`[providers.NAME]`. Keys are counted; of headers, only the names are shown."""

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
    """`[continuity]`. `available`: this version supports it; always true."""

    available: bool = True


class TagsView(TagsTable, frozen=True, kw_only=True):
    """`[tags]`. `available`: this version supports it; always true."""

    available: bool = True


class SettingsView(AdminAnswer, frozen=True):
    """The settings in effect. Secrets are `***`. `shared` names those that were set here and override file and
    environment."""

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
    dashboard: DashboardSettings
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
    """Why a correction is believed, without any content of a request or an answer: `fingerprint` is a digest."""

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
    """Every contract with the changes from settings, and learned corrections."""

    contracts: list[ContractView]
    learned: list[CorrectionView]
    refused_seals: int


class Audit(AdminAnswer, frozen=True):
    """What a provider would refuse in a request."""

    findings: list[Finding]


def moment(seconds: float) -> datetime:
    """Return seconds since the epoch as a date in UTC."""
    return datetime.fromtimestamp(seconds, UTC)
