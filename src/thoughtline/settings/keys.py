"""Every setting as a row: its table, its name, its allowed values, its meaning."""

from __future__ import annotations

import itertools
from typing import Any, NamedTuple, get_args, get_type_hints

from msgspec import Meta, Struct

from thoughtline.destinations.catalogue import ContentWord, ContinuityWord, ReplayMode, TagMode
from thoughtline.providers import AuthStyle, Held, Rung, Scope, Takes, facts
from thoughtline.providers import Kind as ContractKind
from thoughtline.settings.kinds import (
    ANY_TEXT,
    DURATION,
    FLAG,
    KEYS,
    NAMED,
    URL,
    Kind,
    one_known,
    one_of,
    some_of,
    whole,
)
from thoughtline.settings.structs import (
    ContentTable,
    ContinuitySettings,
    DashboardSettings,
    DebugSettings,
    FactsSettings,
    ReplaySettings,
    RouteSettings,
    ServerSettings,
    StoreTable,
    TagsTable,
    TranslationSettings,
)
from thoughtline.values.turns import FormatName

PREFIX = "THOUGHTLINE_"

FORMAT_NAMES: tuple[str, ...] = get_args(FormatName)
"""Formats that a server may speak."""

RUNGS = some_of(get_args(Rung))
CONTINUITY_WORDS = one_of(get_args(ContinuityWord))
TAG_WORDS = one_of(get_args(TagMode))
CONTENT_WORDS = one_of(get_args(ContentWord))
REPLAY_WORDS = one_of(get_args(ReplayMode))


class Key(NamedTuple):
    """A row. `member` is the value's name if it differs from the key; `short` the shorter name of its environment
    variable.
    """

    name: str
    kind: Kind
    meaning: str
    member: str = ""
    short: str = ""

    @property
    def stands_in(self) -> str:
        return self.member or self.name


def keys_of(table: type[Struct]) -> tuple[Key, ...]:
    """The rows of a table's struct: the members with a description."""
    hints = get_type_hints(table, include_extras=True)
    return tuple(_key(name, hints[name]) for name in table.__struct_fields__ if hasattr(hints[name], "__metadata__"))


def _key(member: str, hint: Any) -> Key:
    meta: Meta = hint.__metadata__[0]
    extra = meta.extra or {}
    return Key(extra["key"] or member, _kind(hint.__origin__, meta), meta.description or "", member, extra["short"])


def _kind(type_: Any, meta: Meta) -> Kind:
    """By its name, else by its type: a number with bounds, a word of a closed set, a flag."""
    if name := (meta.extra or {})["kind"]:
        return NAMED[name]
    if isinstance(meta.ge, int) and isinstance(meta.le, int):
        return whole(meta.ge, meta.le)
    parts = get_args(type_)  # of `Literal["a", "b"]`, or of `Literal["a", "b"] | None`
    words = [word for word in (*parts, *itertools.chain.from_iterable(map(get_args, parts))) if isinstance(word, str)]
    return one_of(words) if words else FLAG


DEFAULTS: dict[str, Struct] = {
    "server": ServerSettings(),
    "store": StoreTable(url="sqlite:///…/thoughtline.db"),
    "replay": ReplaySettings(),
    "continuity": ContinuitySettings(),
    "translation": TranslationSettings(),
    "tags": TagsTable(mode="off"),
    "content": ContentTable(),
    "facts": FactsSettings(),
    "debug": DebugSettings(),
    "dashboard": DashboardSettings(),
}
"""The default of each table."""
TABLES: dict[str, tuple[Key, ...]] = {name: keys_of(type(table)) for name, table in DEFAULTS.items()}
NAMED_TABLES = ("providers", "routes", "contracts")

PROVIDER = (
    Key("base_url", URL, "the base URL, as the provider's own SDK takes it; a new provider needs one"),
    Key("formats", some_of(FORMAT_NAMES, least=1), "the formats it speaks, preferred first; `openai_chat` by default"),
    Key(
        "door",
        one_of(FORMAT_NAMES),
        "the one format to ask it in; if unset, requests go up in their own format, or in the one that can carry their "
        "reasoning",
    ),
    Key(
        "dialect",
        one_known(lambda: facts().dialects),
        "where it keeps reasoning in chat, if its name and model don't tell",
    ),
    Key(
        "contract",
        one_known(lambda: facts().contracts),
        "what it demands back, for every model, in the format of that contract",
    ),
    Key(
        "api_key",
        KEYS,
        "its key, or several; if unset or empty, the caller's own credential goes up",
        "api_keys",
    ),
    Key(
        "auth",
        one_of(get_args(AuthStyle)),
        "how the key is sent; `aws` signs each request, and `api_key` is then `ACCESS_KEY_ID:SECRET_ACCESS_KEY`, "
        "`profile:NAME` or `chain` (where AWS's own tools look)",
    ),
    Key("streams_only", FLAG, "it answers only with streams; whole answers are assembled from them"),
    Key("websocket", FLAG, "use WebSockets to its Responses API for clients that use them; on for openai, azure, xai"),
    Key(
        "continuity",
        CONTINUITY_WORDS,
        "checkpoints for its models; overrides `[continuity]`, not `[continuity.models]`",
    ),
    Key("tags", TAG_WORDS, "thinking tags in its answers; overrides `[tags]`"),
    Key("content", CONTENT_WORDS, "the content of its chat answers; overrides `[content]`"),
    Key("replay", REPLAY_WORDS, "whether reasoning is put back into its requests; overrides `mode` of `[replay]`"),
    Key("keeps", some_of(get_args(Held)), "what it stores for clients that send only the new part of a conversation"),
)
PROVIDER_TABLES: dict[str, str] = {
    "bases": "addresses of formats that are served elsewhere, by format",
    "paths": "paths that replace a format's usual ones, by format",
    "headers": "headers that are sent with every request",
    "timeout": "one duration for the whole request, or one each for `connect`, `first_byte`, `read` and `total`",
}
TIMEOUT = (
    Key("connect", DURATION, "until there is a connection"),
    Key("first_byte", DURATION, "until the status line"),
    Key("read", DURATION, "between two pieces of a body"),
    Key("total", DURATION, "for the whole request"),
)
ROUTE = keys_of(RouteSettings)
CONTRACT = (
    Key(
        "kind",
        one_of(get_args(ContractKind)),
        "whether reasoning must be present, must be authentic, may be present, or must not be sent",
    ),
    Key("scope", one_of(get_args(Scope)), "which turns must have it"),
    Key("takes", one_of(get_args(Takes)), "what may be sent: any text, only its own reasoning, nothing"),
    Key("dialect", one_known(lambda: facts().dialects), "where reasoning is kept"),
    Key("ladder", RUNGS, "what to try for a turn without a record, in order"),
    Key("filler", ANY_TEXT, "the least that is accepted where reasoning must be present"),
    Key("thinks_by_default", FLAG, "whether the model thinks when a request doesn't say"),
    Key("only_when_thinking", FLAG, "whether it demands reasoning only in requests that make the model think"),
    Key("binds_prefix", FLAG, "whether its reasoning is valid only while everything before it is unchanged"),
    Key("binds_model", FLAG, "whether its reasoning is valid only for the model that made it"),
)


def names(keys: tuple[Key, ...]) -> list[str]:
    return [key.name for key in keys]
