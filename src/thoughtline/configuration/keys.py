"""Every key that can be set, as rows: its table, its name, what may stand there, what it means."""

from __future__ import annotations

from typing import NamedTuple, get_args

from thoughtline.catalogue import ContentWord, ContinuityWord, TagWord
from thoughtline.configuration.kinds import (
    ANY_TEXT,
    DURATION,
    FLAG,
    HOSTS,
    KEYS,
    SECRET,
    SIZE,
    TEXT,
    TEXTS,
    TOKEN,
    URL,
    WEIGHTS,
    Kind,
    one_of,
    some_of,
    whole,
)
from thoughtline.providers import CONTRACTS, DIALECTS, AuthStyle, Held, Rung, Scope, Takes
from thoughtline.providers import Kind as ContractKind
from thoughtline.values.options import MissingTools
from thoughtline.values.turns import FormatName

PREFIX = "THOUGHTLINE_"

FACES: tuple[str, ...] = tuple(name for name in get_args(FormatName) if name != "ai_sdk_ui")
"""Formats that a server can be asked in."""

RUNGS = some_of(get_args(Rung))
CONTINUITY_WORDS = one_of(get_args(ContinuityWord))
TAG_WORDS = one_of(get_args(TagWord))
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


SERVER = (
    Key("host", TEXT, "the address to listen on", short="HOST"),
    Key("port", whole(0, 65535), "the port to listen on; 0 lets the system choose", short="PORT"),
    Key("workers", whole(1, 256), "processes that share the port and the store", short="WORKERS"),
    Key("max_body", SIZE, "the largest request that is read; beyond it a client gets 413", "max_body_bytes"),
    Key("max_header", SIZE, "the largest head of a request", "max_header_bytes"),
    Key("max_connections", whole(1, 1_000_000), "connections that each process holds; fewer if descriptors run short"),
    Key(
        "max_connections_per_address",
        whole(1, 1_000_000),
        "connections of one address; a reverse proxy is one address",
    ),
    Key(
        "head_timeout",
        DURATION,
        "how long the head of a request may take, or nothing come at all",
        "head_timeout_seconds",
    ),
    Key(
        "body_timeout",
        DURATION,
        "how long a body may bring less than 4 KiB before the connection is closed",
        "body_timeout_seconds",
    ),
    Key(
        "admin_token",
        TOKEN,
        "opens the admin API; one is made at the first start if none is set",
        short="ADMIN_TOKEN",
    ),
    Key(
        "require_client_keys",
        FLAG,
        "let nobody in without a client key of the gateway's own; if unset, from the first `thoughtline keys add` on",
    ),
    Key("insecure", FLAG, "start even if anybody on the network could spend the keys of the providers"),
    Key(
        "hosts",
        HOSTS,
        "names by which clients may call the gateway, beside localhost; on loopback no other is taken, elsewhere only "
        "if some are listed",
    ),
    Key("open_metrics", FLAG, "answer `/metrics` without the admin token, whoever asks"),
    Key(
        "upstream",
        URL,
        "the provider that is asked where a request names none, by its address",
        short="UPSTREAM",
    ),
    Key("provider", TEXT, "the same by its name; with `upstream`, whose address that is", short="PROVIDER"),
)
STORE = (
    Key("url", TEXT, "where turns are kept (see [stores](stores.md))", short="STORE"),
    Key("ttl", DURATION, "how long after its last use a turn is kept", "ttl_seconds"),
    Key("memory_entries", whole(1, 10_000_000), "turns kept in memory in front of the store"),
    Key("memory_size", SIZE, "how much memory they may take", "memory_bytes"),
    Key("max_size", SIZE, "how large the store may grow before what was used longest ago goes", "max_bytes"),
    Key("encryption_key", SECRET, "encrypts what is kept", short="ENCRYPTION_KEY"),
    Key(
        "previous_encryption_key",
        SECRET,
        "still opens what was kept before the key was changed",
        short="PREVIOUS_ENCRYPTION_KEY",
    ),
    Key("clean_every", DURATION, "how often what has expired is taken out", "clean_seconds"),
    Key("timeout", DURATION, "how long the store may take before memory goes on alone", "timeout_seconds"),
    Key("trust", DURATION, "how long memory answers without asking the store again", "trust_seconds"),
)
REPLAY = (
    Key(
        "on_miss",
        one_of(("blank", "inherit")),
        "for a turn whose reasoning nobody has: the least that is taken, or the latest reasoning before it; or a table",
        "miss",
    ),
    Key("learn", FLAG, "remember what a refusal taught about a provider"),
    Key("heal", FLAG, "mend and send again what was refused for its reasoning"),
    Key("hold_ms", whole(0, 10_000), "how long the end of a turn may wait until the turn is saved"),
)
CONTINUITY = (
    Key("enabled", FLAG, "quote earlier reasoning to a model that can't take it natively"),
    Key("count", whole(1, 100), "how many checkpoints are quoted"),
    Key("mode", one_of(("handoff", "always")), "only where native replay can't carry it, or always"),
    Key("max_chars", whole(1, 10_000_000), "the longest checkpoint; a longer one is left out, never cut"),
    Key(
        "after_compaction",
        FLAG,
        "quote a session's last thoughts where no turn of it is left, if the client tells its session and agent",
    ),
)
TRANSLATION = (
    Key(
        "missing_tools",
        one_of(get_args(MissingTools)),
        "tools that the provider lacks: leave them out, refuse the request, or pass them on in the client's own format",
    ),
)
TAGS = (
    Key(
        "mode",
        TAG_WORDS,
        "thinking tags in visible text: leave them, remove the markers, or move the text into the reasoning field; "
        "if unset, markers where continuity is on",
    ),
)
CONTENT = (
    Key(
        "mode",
        CONTENT_WORDS,
        "chat answers whose content is a list of parts (Mistral): as they come, or as plain text with the thoughts in "
        "`reasoning_content`",
    ),
)
TABLES: dict[str, tuple[Key, ...]] = {
    "server": SERVER,
    "store": STORE,
    "replay": REPLAY,
    "continuity": CONTINUITY,
    "translation": TRANSLATION,
    "tags": TAGS,
    "content": CONTENT,
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
    Key("auth", one_of(get_args(AuthStyle)), "how the key is shown"),
    Key("streams_only", FLAG, "it answers only streams; whole answers are put together from one"),
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
ROUTE = (
    Key("targets", TEXTS, 'models to try in order, as `"provider/model"`'),
    Key("weights", WEIGHTS, "how often each target comes first, one number each"),
    Key(
        "continuity",
        CONTINUITY_WORDS,
        "checkpoints for its conversations, over all that `[continuity]` and its models say",
    ),
)
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
