"""All settings as one frozen value, each with its meaning and bounds next to its type."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Struct

from thoughtline.destinations.catalogue import (
    CompactedBy,
    ContentWord,
    ContinuityMode,
    ContinuityWord,
    Provider,
    ReplayMode,
    TagMode,
)
from thoughtline.providers import Contract, FactTable, Rung
from thoughtline.stores.history import HistorySettings
from thoughtline.stores.settings import StoreSettings
from thoughtline.values.options import MissingTools
from thoughtline.values.setting import setting

CheckpointCount = Annotated[int, setting("how many checkpoints are quoted", ge=1, le=100)]


class ServerSettings(Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """`[server]`. `admin_token` is None until the first start creates one."""

    host: Annotated[str, setting("the address to listen on", "text", short="HOST")] = "127.0.0.1"
    port: Annotated[int, setting("the port to listen on; 0 lets the system choose", short="PORT", ge=0, le=65535)] = (
        8642
    )
    workers: Annotated[int, setting("processes that share the port and the store", short="WORKERS", ge=1, le=256)] = 1
    max_body_bytes: Annotated[
        int, setting("the largest request body; a larger one gets 413", "size", key="max_body")
    ] = 32 * 2**20
    max_header_bytes: Annotated[int, setting("the largest request head", "size", key="max_header")] = 64 * 2**10
    max_connections: Annotated[
        int, setting("open connections per process; fewer if file descriptors run short", ge=1, le=1_000_000)
    ] = 4096
    max_connections_per_address: Annotated[
        int, setting("open connections per client address; a reverse proxy is one address", ge=1, le=1_000_000)
    ] = 2048
    head_timeout_seconds: Annotated[
        float,
        setting(
            "how long a request head may take, and a new connection may stay silent", "duration", key="head_timeout"
        ),
    ] = 30.0
    body_timeout_seconds: Annotated[
        float,
        setting(
            "a connection is closed if its body brings less than 4 KiB in this time", "duration", key="body_timeout"
        ),
    ] = 30.0
    admin_token: Annotated[
        str | None,
        setting("opens the admin API; if unset, one is made at the first start", "token", short="ADMIN_TOKEN"),
    ] = None
    require_client_keys: Annotated[
        bool | None,
        setting("reject requests without a client key; if unset, from the first `thoughtline keys add` on"),
    ] = None
    insecure: Annotated[bool, setting("start even if anybody on the network could use the provider keys")] = False
    hosts: Annotated[
        tuple[str, ...],
        setting(
            "host names by which clients may call the gateway, besides localhost; on loopback others are always "
            "refused, elsewhere only if this list is not empty",
            "hosts",
        ),
    ] = ()
    cors: Annotated[
        tuple[str, ...],
        setting("origins of websites whose pages may read answers; none by default", "origins"),
    ] = ()
    open_metrics: Annotated[bool, setting("serve `/metrics` to anybody, without the admin token")] = False
    upstream: Annotated[
        str | None,
        setting("the address of the default provider, for requests that name none", "url", short="UPSTREAM"),
    ] = None
    provider: Annotated[
        str | None,
        setting(
            "the name of the default provider; with `upstream`, which provider that address belongs to",
            "text",
            short="PROVIDER",
        ),
    ] = None

    def __repr__(self) -> str:
        return f"ServerSettings({self.host!r}, {self.port})"


class StoreTable(StoreSettings, frozen=True, rename="camel", forbid_unknown_fields=True, kw_only=True):
    """`[store]`: the settings of a store, and its location."""

    url: Annotated[str, setting("where turns are kept; docs/stores.md has all kinds", "text", short="STORE")]


class ReplaySettings(Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """`[replay]`. In a file `on_miss` is a word, here `miss`, or a table of ladders by contract name."""

    mode: Annotated[
        ReplayMode,
        setting(
            "put reasoning back; only observe: requests go up unchanged, and what would have been done is reported; or "
            "off: nothing is put back or captured"
        ),
    ] = "on"
    miss: Annotated[
        Literal["blank", "inherit"],
        setting(
            "what a turn without a record gets: the least that the provider accepts, or the latest reasoning before "
            "it; or a table",
            key="on_miss",
        ),
    ] = "blank"
    on_miss: dict[str, tuple[Rung, ...]] = {}
    any_system_prompt: Annotated[
        bool,
        setting(
            "find turns whatever the system prompt says. Only for keys that have one conversation each: two of them in "
            "the same words are one then"
        ),
    ] = False
    learn: Annotated[bool, setting("remember what a refusal taught about a provider")] = True
    heal: Annotated[bool, setting("correct a request that was refused for its reasoning, and send it again")] = True
    hold_ms: Annotated[
        int, setting("how long the end of a turn may be held back until the turn is saved", ge=0, le=10_000)
    ] = 250
    remembered_bytes: Annotated[
        int,
        setting(
            "memory for recent conversations, and a quarter as much for translated ones, so that only what is new in a "
            "request is worked through; `0` remembers none",
            "size_or_zero",
            key="remembered_size",
        ),
    ] = 64 * 2**20


class ContinuitySettings(Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """`[continuity]`. `models` overrides it for some models, by `PROVIDER/MODEL`, in which `*` matches anything."""

    enabled: Annotated[bool, setting("quote earlier reasoning to models that can't accept it natively")] = False
    count: CheckpointCount = 3
    mode: Annotated[ContinuityMode, setting("quote only what native replay can't carry, or always")] = "handoff"
    max_chars: Annotated[
        int, setting("the longest checkpoint; a longer one is left out, never cut", ge=1, le=10_000_000)
    ] = 64_000
    after_compaction: Annotated[
        bool,
        setting("quote a session's last thoughts after a compaction, if the client names session and agent"),
    ] = True
    after_compaction_by: Annotated[
        CompactedBy,
        setting(
            "whose last thoughts: those of an agent that the client names, or of a session alone, under the same "
            "system prompt (Claude Code's main line names no agent)"
        ),
    ] = "agent"
    models: dict[str, ContinuityWord] = {}


class TranslationSettings(Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """`[translation]`."""

    missing_tools: Annotated[
        MissingTools,
        setting(
            "tools that the provider lacks: leave them out, refuse the request, or pass them on in the client's own "
            "format"
        ),
    ] = "leave_out"
    cache_marks: Annotated[
        bool,
        setting(
            "mark prompts for caching: for clients whose own provider caches by itself, at models that need a mark"
        ),
    ] = True
    think: Annotated[
        bool,
        setting(
            "ask models that think only if asked (older Claude models): for clients that leave thinking to their "
            "provider, and whose own provider thinks unasked"
        ),
    ] = True
    pulse_seconds: Annotated[
        float,
        setting(
            "how long a translated answer may be silent before the client gets a sign of life", "duration", key="pulse"
        ),
    ] = 10.0


class TagsTable(Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """`[tags]`."""

    mode: Annotated[
        TagMode | None,
        setting(
            "thinking tags in visible text: leave them, remove the markers, or move the text into the reasoning field; "
            "if unset, markers where continuity is on"
        ),
    ] = None


class ContentTable(Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """`[content]`."""

    mode: Annotated[
        ContentWord,
        setting(
            "chat answers whose content is a list of parts (Mistral): leave them, or convert them to plain text with "
            "the thoughts in `reasoning_content`"
        ),
    ] = "native"


class DebugSettings(Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """`[debug]`."""

    keep_bodies: Annotated[
        bool, setting("keep the last 50 requests in memory for admins, as clients sent them and as they went up")
    ] = False


class DashboardSettings(Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """`[dashboard]`."""

    keep_text: Annotated[
        bool,
        setting(
            "store what users wrote and what tools returned, so that sessions can be read as conversations; a model's "
            "own turns are stored anyway"
        ),
    ] = False
    keep_text_ttl_seconds: Annotated[
        float, setting("how long such text is kept, whether it is read or not", "duration", key="keep_text_ttl")
    ] = 7 * 86400.0
    keep_text_bytes: Annotated[
        int, setting("how much of it is kept before the oldest is removed", "size", key="keep_text_size")
    ] = 256 * 2**20


class FactsSettings(Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """`[facts]`."""

    files: Annotated[
        tuple[str, ...],
        setting("overlays of the table of facts, in order; docs/facts.md says what they may change", "texts"),
    ] = ()


class RouteSettings(Struct, frozen=True):
    """`[routes.NAME]`: a model name that tries its targets in order."""

    name: str
    targets: Annotated[tuple[str, ...], setting('models to try in order, as `"provider/model"`', "texts")]
    weights: Annotated[
        tuple[int, ...], setting("how often each target comes first, one number per target", "weights")
    ] = ()
    continuity: Annotated[
        ContinuityWord | None,
        setting("checkpoints for its conversations; overrides `[continuity]` and its models"),
    ] = None


class Settings(Struct, frozen=True):
    """All settings. `providers` holds every built-in row, changed and extended by the file, by name.

    `table` is the table of facts with its overlays, None for the built-in one. `bus_directory` is the folder through
    which the workers of one start communicate; the process that starts them creates it.
    """

    server: ServerSettings = ServerSettings()
    store_url: str = "memory://"
    store: StoreSettings = StoreSettings()
    providers: dict[str, Provider] = {}
    configured: frozenset[str] = frozenset()
    default_provider: str | None = None
    routes: dict[str, RouteSettings] = {}
    replay: ReplaySettings = ReplaySettings()
    continuity: ContinuitySettings = ContinuitySettings()
    translation: TranslationSettings = TranslationSettings()
    tags: TagMode | None = None
    content: ContentWord = "native"
    debug: DebugSettings = DebugSettings()
    dashboard: DashboardSettings = DashboardSettings()
    history: HistorySettings = HistorySettings()
    facts: FactsSettings = FactsSettings()
    contracts: dict[str, Contract] = {}
    bus_directory: str | None = None
    table: FactTable | None = None

    def __repr__(self) -> str:
        """Nothing that may be secret: no keys, tokens, or passwords of URLs."""
        return f"Settings({self.server!r}, providers={sorted(self.configured)})"


class Flags(Struct, frozen=True):
    """The command line's values; they override everything."""

    host: str | None = None
    port: int | None = None
    workers: int | None = None
    store: str | None = None
    upstream: str | None = None
    provider: str | None = None
    observe: ReplayMode | None = None
