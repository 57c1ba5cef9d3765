"""Every key that can be set, as rows: its table, its name, what may stand there, what it means."""

from __future__ import annotations

import itertools
from typing import Any, NamedTuple, get_args, get_type_hints

from msgspec import Meta, Struct

from thoughtline.catalogue import ContentWord, ContinuityWord, TagMode
from thoughtline.providers import CONTRACTS, DIALECTS, AuthStyle, Held, Rung, Scope, Takes
from thoughtline.providers import Kind as ContractKind
from thoughtline.settings.kinds import ANY_TEXT, DURATION, FLAG, KEYS, NAMED, URL, Kind, one_of, some_of, whole
from thoughtline.settings.structs import (
    ContentTable,
    ContinuitySettings,
    DebugSettings,
    ReplaySettings,
    RouteSettings,
    ServerSettings,
    StoreTable,
    TagsTable,
    TranslationSettings,
)
from thoughtline.values.turns import FormatName

PREFIX = "THOUGHTLINE_"

FACES: tuple[str, ...] = get_args(FormatName)
"""Formats that a server can be asked in."""

RUNGS = some_of(get_args(Rung))
CONTINUITY_WORDS = one_of(get_args(ContinuityWord))
TAG_WORDS = one_of(get_args(TagMode))
CONTENT_WORDS = one_of(get_args(ContentWord))


class Key(NamedTuple):
    """A row. `member` is the value's name where it is not the key's; `short` the environment's shorter name for it."""

    name: str
    kind: Kind
    meaning: str
    member: str = ""
    short: str = ""

    @property
    def stands_in(self) -> str:
        return self.member or self.name


def keys_of(table: type[Struct]) -> tuple[Key, ...]:
    """The rows of a table's struct: its members that say what they mean."""
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


TABLES: dict[str, tuple[Key, ...]] = {
    "server": keys_of(ServerSettings),
    "store": keys_of(StoreTable),
    "replay": keys_of(ReplaySettings),
    "continuity": keys_of(ContinuitySettings),
    "translation": keys_of(TranslationSettings),
    "tags": keys_of(TagsTable),
    "content": keys_of(ContentTable),
    "debug": keys_of(DebugSettings),
}
NAMED_TABLES = ("providers", "routes", "contracts")

PROVIDER = (
    Key("base_url", URL, "the address that the provider's own SDK takes; a new provider needs one"),
    Key("formats", some_of(FACES, least=1), "what it speaks, preferred first; `openai_chat` if nothing is said"),
    Key("dialect", one_of(DIALECTS), "where it keeps reasoning in chat, if that can't be told from its name and model"),
    Key(
        "contract", one_of(CONTRACTS), "what it demands back, whatever the model, in the format that the contract is of"
    ),
    Key(
        "api_key",
        KEYS,
        "its key, or several; without one, or with an empty one, the caller's own credential goes up",
        "api_keys",
    ),
    Key(
        "auth",
        one_of(get_args(AuthStyle)),
        "how the key is shown; `aws` signs each request: `api_key` is then `ACCESS_KEY_ID:SECRET_ACCESS_KEY`, "
        "`profile:NAME` or `chain`, where AWS's own tools look",
    ),
    Key("streams_only", FLAG, "it answers only streams; whole answers are put together from one"),
    Key("websocket", FLAG, "clients that come over WebSocket have one to its Responses API; on for openai, azure, xai"),
    Key("continuity", CONTINUITY_WORDS, "checkpoints for its models, over `[continuity]`, below `[continuity.models]`"),
    Key("tags", TAG_WORDS, "thinking tags in its answers, over `[tags]`"),
    Key("content", CONTENT_WORDS, "the content of its chat answers, over `[content]`"),
    Key("keeps", some_of(get_args(Held)), "what it holds for clients that send only the new part of a conversation"),
)
PROVIDER_TABLES: dict[str, str] = {
    "bases": "addresses of formats that it speaks elsewhere, by format",
    "paths": "paths that it has in place of a format's own, by format",
    "headers": "headers that go with every request",
    "timeout": "one length of time for all of it, or `connect`, `first_byte`, `read` and `total`, one each",
}
TIMEOUT = tuple(
    Key(name, DURATION, meaning)
    for name, meaning in (
        ("connect", "until there is a connection"),
        ("first_byte", "until the status line"),
        ("read", "between two pieces of a body"),
        ("total", "for all of it"),
    )
)
ROUTE = keys_of(RouteSettings)
CONTRACT = (
    Key(
        "kind",
        one_of(get_args(ContractKind)),
        "whether reasoning must be there, must be its own, may be there, must not",
    ),
    Key("scope", one_of(get_args(Scope)), "which turns must have it"),
    Key("takes", one_of(get_args(Takes)), "what may be sent: any text, only its own, nothing"),
    Key("dialect", one_of(DIALECTS), "where it stands"),
    Key("ladder", RUNGS, "what to do for a turn whose reasoning nobody has, in order"),
    Key("filler", ANY_TEXT, "the least that is accepted where it must be there"),
    Key("thinks_by_default", FLAG, "whether the model thinks when a request doesn't say"),
    Key("only_when_thinking", FLAG, "whether the demand holds only for requests that have the model think"),
    Key("binds_prefix", FLAG, "whether its reasoning holds only while all before it is unchanged"),
    Key("binds_model", FLAG, "whether its reasoning holds only for the model that made it"),
)


def names(keys: tuple[Key, ...]) -> list[str]:
    """The names of some rows."""
    return [key.name for key in keys]
