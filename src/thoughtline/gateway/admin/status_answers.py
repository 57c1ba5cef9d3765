"""The admin API's answers about the gateway itself: figures over time, client keys, routes, providers, clients."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from thoughtline.destinations.catalogue import ReplayMode
from thoughtline.gateway.admin.answers import AdminAnswer
from thoughtline.values.turns import FormatName


class Series(AdminAnswer, frozen=True):
    """The last 24 hours in steps of `stepSeconds`, oldest first, all workers of this start together. Figures begin with
    the start, at `startedAt` in seconds since the epoch.

    Each list has one number for each step of `times` (the beginning of a step, in seconds since the epoch). `avoided`
    are requests that were answered and would have been refused for their reasoning as the client sent them; `restored`
    are turns; `healed`, `refused` (a provider's 4xx) and `errors` (5xx, no answer, the gateway's own) are requests.
    `ownMs` and `upstreamMs` are means, null without requests. `store` is 0 ok, 1 slow, 2 degraded.
    """

    step_seconds: int
    started_at: int
    times: list[int]
    requests: list[int]
    avoided: list[int]
    restored: list[int]
    missing: list[int]
    healed: list[int]
    refused: list[int]
    errors: list[int]
    own_ms: list[float | None]
    upstream_ms: list[float | None]
    store: list[int]


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
