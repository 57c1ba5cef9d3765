"""The admin API's answers about the gateway itself: figures over time, client keys, routes, providers, clients."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from thoughtline.destinations.catalogue import ReplayMode
from thoughtline.gateway.admin.answers import AdminAnswer
from thoughtline.values.turns import FormatName


class Figures(AdminAnswer, frozen=True):
    """Sums of some requests, as in `Series`. `dropped` are blocks of reasoning that a provider does not read,
    `withheld` turns whose reasoning it did not show. Tokens are as providers count them: `inputTokens` include
    `cachedTokens`, `outputTokens` include `reasoningTokens`. `ownMs` and `upstreamMs` are means."""

    requests: int
    avoided: int
    restored: int
    inherited: int
    blank: int
    stripped: int
    missing: int
    healed: int
    checkpoints: int
    dropped: int
    withheld: int
    refused: int
    errors: int
    input_tokens: int
    cached_tokens: int
    output_tokens: int
    reasoning_tokens: int
    own_ms: float | None
    upstream_ms: float | None
    at: datetime | None = None


class Series(AdminAnswer, frozen=True):
    """A range in steps of `stepSeconds`, oldest first, all workers and replicas together: by minutes up to a day, by
    hours up to two weeks, else by days. Without a history it is the last 24 hours of the workers of this start, at
    `startedAt` in seconds since the epoch, and `isKept` is false.

    Each list has one number for each step of `times` (seconds since the epoch, when a step begins). `avoided` are
    requests that were answered and would have been refused for their reasoning as the client sent them; `restored`,
    `inherited`, `blank`, `stripped` and `missing` are turns; `healed`, `refused` (a provider's 4xx), `errors` (5xx,
    no answer, the gateway's own) are requests. `ownMs` and `upstreamMs` are means, null where there was no
    request. `store` is 0 ok, 1 slow, 2 degraded. `total` is the range, `before` one as long before it.
    """

    step_seconds: int
    started_at: int
    times: list[int]
    requests: list[int]
    avoided: list[int]
    restored: list[int]
    inherited: list[int]
    blank: list[int]
    stripped: list[int]
    missing: list[int]
    healed: list[int]
    dropped: list[int]
    withheld: list[int]
    refused: list[int]
    errors: list[int]
    own_ms: list[float | None]
    upstream_ms: list[float | None]
    store: list[int]
    input_tokens: list[int]
    cached_tokens: list[int]
    output_tokens: list[int]
    reasoning_tokens: list[int]
    total: Figures
    before: Figures
    is_kept: bool


class NumberRow(Figures, frozen=True, kw_only=True):
    """Sums of the requests that share a `name`."""

    name: str


class NumbersView(AdminAnswer, frozen=True):
    """Sums of a range, by provider, model, client, caller, tenant, route, outcome, code, action or day. `total` is all
    of it, `before` a range as long before it. `keptRequests` and `keptBytes` are the size of the history."""

    by: str
    since: datetime
    until: datetime
    rows: list[NumberRow]
    total: Figures
    before: Figures
    is_kept: bool
    kept_requests: int
    kept_bytes: int


class PersonRow(AdminAnswer, frozen=True):
    """A person who makes requests. `id` is the tenant, by which all that is theirs is kept; `name` that of a client
    key, or empty for those who come with a provider's key. `models` are `provider/model`."""

    id: str
    name: str
    clients: list[str]
    models: list[str]
    last_seen: datetime | None
    figures: Figures


class PeopleView(AdminAnswer, frozen=True):
    """Those with the most requests first. Without a history (`isKept`) only those with a client key are known."""

    people: list[PersonRow]
    is_kept: bool


class PersonKey(AdminAnswer, frozen=True):
    """A client key of a person. `state` is `good`, `expired` or `revoked`."""

    id: str
    name: str
    state: str


class NameShare(AdminAnswer, frozen=True):
    """How much of it is of one name; `tokens` are input and output."""

    name: str
    requests: int
    restored: int
    tokens: int


class PersonView(PersonRow, frozen=True):
    """A person: their keys, figures of the range, whom they asked with what, and how many turns are remembered."""

    keys: list[PersonKey]
    by_provider: list[NameShare]
    by_model: list[NameShare]
    by_client: list[NameShare]
    by_outcome: list[NameShare]
    turns: int
    is_kept: bool


class PersonDeleted(AdminAnswer, frozen=True):
    """What was deleted: turns with their reasoning, the sessions they belonged to, requests of the history with all
    figures. `note` says what is left to do, for people."""

    id: str
    name: str
    turns: int
    sessions: int
    requests: int
    note: str


class KeyView(AdminAnswer, frozen=True):
    """A client key, without its secret. `state` is `good`, `expired` or `revoked`; `lastUsed` is since the start."""

    id: str
    name: str
    tenant: str
    state: Literal["good", "expired", "revoked"]
    created_at: datetime
    expires_at: datetime | None
    last_used: datetime | None
    requests_per_minute: int | None
    concurrent_streams: int | None
    plain_content: bool
    replay: ReplayMode | None


class KeysView(AdminAnswer, frozen=True):
    """All keys, oldest first. `areRequired`: every caller needs one. `canChange` is false if the store keeps none;
    `note` says what a change would mean, for people."""

    keys: list[KeyView]
    are_required: bool
    can_change: bool
    note: str


class KeyMade(AdminAnswer, frozen=True):
    """A new key. `secret` is shown here and never again."""

    key: KeyView
    secret: str
    note: str


class KeysRevoked(AdminAnswer, frozen=True):
    """The keys that were valid until now."""

    revoked: list[KeyView]
    note: str


class RouteTarget(AdminAnswer, frozen=True):
    """`breaker` is `closed` while it is asked, `open` until `opensAt`, then `half_open`: one request tries it.

    Targets asked with the callers' own keys have a breaker for each caller; the worst is shown. `hasKey`: the gateway
    has a key for it, or it needs none.
    """

    name: str
    provider: str
    model: str
    weight: int | None
    breaker: Literal["closed", "open", "half_open"]
    failures: int
    opens_at: datetime | None
    has_key: bool


class RouteView(AdminAnswer, frozen=True):
    """`[routes.NAME]`, with this worker's view of its targets."""

    name: str
    targets: list[RouteTarget]
    continuity: str | None


class RoutesView(AdminAnswer, frozen=True):
    """All routes; `others` are targets that no route names and whose breaker is not closed."""

    routes: list[RouteView]
    others: list[RouteTarget]


class ProviderAbout(AdminAnswer, frozen=True):
    """An available provider. `hasKey`: with the gateway's own key; otherwise with the caller's, or it needs none."""

    name: str
    aliases: list[str]
    base_url: str
    formats: list[FormatName]
    auth: str
    has_key: bool
    is_configured: bool
    is_default: bool
    example_model: str
    contract: str
    contract_source: str


class ProvidersView(AdminAnswer, frozen=True):
    """All of them, by name."""

    providers: list[ProviderAbout]


class ClientAbout(AdminAnswer, frozen=True):
    """A client that `thoughtline connect` knows. `lastSeen` is its last request since the start, by its user agent;
    `provider` is its default."""

    name: str
    title: str
    formats: list[FormatName]
    provider: str
    habit: str
    tried: str
    last_seen: datetime | None


class SetupText(AdminAnswer, frozen=True):
    """Lines, and where to put them. `language` is `shell`, `json`, `toml`, `yaml`, `python` or `words`."""

    where: str
    language: str
    lines: str


class Setup(AdminAnswer, frozen=True):
    """The settings for one client. `text` is what `thoughtline connect` prints: the steps and notes together."""

    client: str
    base: str
    model: str
    steps: list[SetupText]
    notes: list[str]
    text: str


class ConnectView(AdminAnswer, frozen=True):
    """The clients; with `client` in the query, also its settings."""

    clients: list[ClientAbout]
    setup: Setup | None
