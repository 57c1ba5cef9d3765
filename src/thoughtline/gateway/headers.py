"""Which headers are forwarded, in each direction, and what they must not contain."""

from __future__ import annotations

import binascii
import re
from base64 import b64decode
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from functools import lru_cache
from itertools import chain
from urllib.parse import unquote

from thoughtline.destinations.catalogue import Provider
from thoughtline.destinations.credentials import CREDENTIALS, signed_headers
from thoughtline.formats import FORMATS
from thoughtline.formats.encodings import ACCEPTED
from thoughtline.gateway.client_keys import has_checksum
from thoughtline.providers.betas import BETA_HEADER
from thoughtline.values.errors import Declined
from thoughtline.values.outcome import FINDINGS_HEADER, REPLAY_HEADER, finding_words
from thoughtline.values.turns import FormatName

Headers = list[tuple[bytes, bytes]]

_HOP_BY_HOP = frozenset(
    {
        b"connection",
        b"keep-alive",
        b"proxy-authenticate",
        b"proxy-authorization",
        b"proxy-connection",
        b"te",
        b"trailer",
        b"transfer-encoding",
        b"upgrade",
    }
)
"""RFC 9110, 7.6.1, in addition to those that a `connection` header names."""

_SINGLE = frozenset({*CREDENTIALS, b"user-agent", b"content-type"})
"""Headers that occur once (RFC 9110, 5.3): the last is forwarded, which is the one that was read here."""

_NOT_UP = _HOP_BY_HOP | {b"host", b"content-length", b"content-encoding", b"accept-encoding", b"expect"}
_NOT_UP_ALL = frozenset({*_NOT_UP, b"forwarded", b"via", b"x-real-ip"})
_NEVER_UP = (b"x-thoughtline-", b"x-forwarded-")
_NEVER_DOWN = (b"x-thoughtline-", b"access-control-")
"""Headers that only we set: the gateway's settings decide who may read answers, not a provider."""

_OF_AN_ORIGIN = frozenset(
    {
        b"accept-ch",
        b"alt-svc",
        b"clear-site-data",
        b"nel",
        b"origin-agent-cluster",
        b"report-to",
        b"reporting-endpoints",
        b"service-worker-allowed",
        b"strict-transport-security",
    }
)
"""Headers that a browser applies to a whole origin. That is the gateway here, with its dashboard, not the provider."""

_NOT_DOWN = _HOP_BY_HOP | _OF_AN_ORIGIN

_SHOWN = frozenset({*CREDENTIALS, b"x-amz-date", b"x-amz-content-sha256"})
"""A client's credentials, and the headers that its signature needs."""

_PAGES = (b"", b"text/html", b"application/xhtml+xml", b"image/svg+xml", b"text/xml", b"application/xml")
"""Types in which a browser runs scripts, or might: a provider's must not run in the dashboard's origin."""

ADMIN_COOKIE = "thoughtline_admin"

_BASIC = re.compile(r"\bbasic\s+([A-Za-z0-9+/_-]+)", re.IGNORECASE)
"""Also after another scheme, as for a provider of another format."""

_CLIENT_KEY = re.compile(r"tl-[A-Za-z0-9_-]{49}")
_ALONE = re.compile(r"(?<![A-Za-z0-9_-])tl-[A-Za-z0-9_-]{49}(?![A-Za-z0-9_-])")
"""A key that is a token of its own is rejected even if its checksum is wrong: a mistyped key gives away most of a good
one. Inside another token these letters can occur by chance."""

_MOST_ESCAPES = 3
"""How many layers of percent-encoding are removed."""

_CONTROLS = re.compile(rb"[\x00-\x1f\x7f]")


def request_headers(
    received: Iterable[tuple[bytes, bytes]], provider: Provider, key: str, *, is_signed: bool = False
) -> list[tuple[str, str]]:
    """Return the headers to send: the client's own, without ours and those of its connection, with the provider's key.

    With `key` empty the client's credential is forwarded unchanged; `is_signed`: it is a signature over some of these.
    """
    received = list(received)
    last = dict(received)
    is_given = is_signed and b"accept-encoding" in signed_headers(last)
    accepted, connection, kept = [], [], []
    for name, value in received:
        if name == b"accept-encoding":
            accepted.append(value)
        if name == b"connection":
            connection.append(value)
        if name in _SINGLE:
            if name not in last:
                continue
            value = last.pop(name)
        if name in _NOT_UP_ALL or name.startswith(_NEVER_UP) or (key and name in _SHOWN):
            continue
        if name == b"cookie" and not (value := _without_own_cookie(value)):
            continue
        kept.append((str(name, "latin-1"), value.decode() if value.isascii() else _text(value)))
    if connection and (named := _listed(b",".join(connection)) - _NOT_UP_ALL):
        kept = [pair for pair in kept if pair[0].encode("latin-1") not in named]
    if key:
        kept += _credential(provider, key)
    if provider.headers:
        own = {name.lower() for name in provider.headers}
        kept = [pair for pair in kept if pair[0] not in own]
        kept += [(name.lower(), value) for name, value in provider.headers.items()]
    # Encodings that both the client and we can read: a response is passed on unchanged while a copy is read.
    readable = _readable(b",".join(accepted)) if accepted else "identity"
    kept.append(("accept-encoding", _text(b",".join(accepted)) if is_given else readable))
    return kept


OWN_AGENT = (b"user-agent", b"thoughtline")
"""For requests of the gateway's own: some providers' frontends refuse requests without it."""

_OF_A_FORMAT = (b"anthropic-", b"openai-", b"x-goog-", b"x-stainless-")
"""Headers that only a provider of the client's own format understands."""


def translated_headers(headers: Iterable[tuple[bytes, bytes]], format: FormatName) -> Headers:
    """Return a client's headers for a provider that speaks another format."""
    kept = []
    for name, value in headers:
        if not name.startswith(_OF_A_FORMAT) and name != b"accept":
            kept.append((name, value))
    return [*kept, *FORMATS[format].headers]


def without_credentials(headers: Iterable[tuple[bytes, bytes]], shown: Iterable[str] = ()) -> Headers:
    """Return headers without a caller's credentials, in any header, for a provider that must not see them."""
    secrets = [one.encode("latin-1", "replace") for one in shown]
    return [
        (name, value)
        for name, value in headers
        if name not in CREDENTIALS and not any(secret in value for secret in secrets)
    ]


def response_headers(received: Sequence[tuple[str, str]]) -> Headers:
    """Return the headers for the client: the provider's own, without those of its connection and those that only we
    set."""
    kept, kind, connection = [], None, []
    for text, words in received:
        name, value = _name_down(text), words.encode("latin-1", "replace")
        if name == b"content-type" and kind is None:
            kind = value
        if name == b"connection":
            connection.append(value)
        if name in _NOT_DOWN or name.startswith(_NEVER_DOWN):
            continue
        if name == b"set-cookie" and ADMIN_COOKIE.encode() in value.lower():
            continue  # also without a name: browsers send its value alone
        kept.append((name, value))
    if connection and (named := _listed(b",".join(connection)) - _HOP_BY_HOP):
        kept = [pair for pair in kept if pair[0] not in named]
    if (kind or b"").partition(b";")[0].lower() in _PAGES:
        kept.append((b"content-security-policy", b"sandbox"))
    return kept


FINDINGS = FINDINGS_HEADER.encode()


def with_findings(headers: Headers, rules: Iterable[str]) -> Headers:
    """Return these headers with more findings, counted by rule."""
    counts: Counter[str] = Counter()
    before = next((value for name, value in reversed(headers) if name == FINDINGS), b"")
    for part in before.decode("latin-1").split(", "):
        rule, _, count = part.partition("=")
        counts[rule] += int(count) if count.isdecimal() else 0
    counts.update(rules)
    summary = finding_words(counts)
    others = [(name, value) for name, value in headers if name != FINDINGS]
    return [*others, (FINDINGS, summary.encode())] if summary else headers


REPLAY = REPLAY_HEADER.encode()


def with_store(headers: Headers, word: str) -> Headers:
    """Return these headers with the store's status, unless they have one."""
    part = b", store=" + word.encode()
    return [(name, value + part if name == REPLAY and b", store=" not in value else value) for name, value in headers]


@lru_cache(1024)
def _name_down(name: str) -> bytes:
    """Cached: providers use a few dozen names."""
    return name.lower().encode("latin-1")


def header_value(text: str) -> bytes:
    """Return text from outside as a header value: no control character can end it early."""
    return _CONTROLS.sub(b"?", text.encode("latin-1", "replace"))


@lru_cache(32)
def _listed(value: bytes) -> frozenset[bytes]:
    """Return the names in a `connection` header."""
    return frozenset([part.strip().lower() for part in value.split(b",")])


def _without_own_cookie(value: bytes) -> bytes:
    """Return cookies without the dashboard's. A browser sends it to every address here; it opens the admin API, and
    must not reach a provider."""
    parts = [part.strip() for part in value.split(b";")]
    return b"; ".join(part for part in parts if part.partition(b"=")[0].strip() != ADMIN_COOKIE.encode())


def _text(value: bytes) -> str:
    """Return a header value for the HTTP client, which encodes it back to the same bytes."""
    return value.decode("utf-8", "surrogateescape")


def _credential(provider: Provider, key: str) -> list[tuple[str, str]]:
    match provider.auth:
        case "bearer":
            return [("authorization", f"Bearer {key}")]
        case "x-api-key" | "x-goog-api-key" | "api-key":
            return [(provider.auth, key)]
        case "query" | "none" | "aws":  # in the address, not at all, as a signature of the whole
            return []


@lru_cache(256)
def _readable(accepted: bytes) -> str:
    parts = [part.strip() for part in accepted.decode("latin-1").split(",")]
    return ", ".join(part for part in parts if part.split(";")[0].strip().lower() in ACCEPTED) or "identity"


# --- credentials of this gateway must not reach a provider, in any part of the request
# ---------------------------------


def check_what_goes_up(
    provider: Provider, key: str, url: str, *, headers: Sequence[tuple[str, str]], token: str | None
) -> None:
    """Raise if the admin token or a client key would reach a provider: a key of this gateway, known or not, or of
    another.

    `key` is the provider's key; if the provider is a gateway itself, that is a client key of its own.
    """
    joined = "\n".join((url, *chain.from_iterable(headers)))
    if not ("%" in joined or (token and token in joined) or _CLIENT_KEY.search(joined) or _BASIC.search(joined)):
        return  # nearly always
    ours = "\n".join((key, *provider.headers.values()))
    for text in _texts(url, headers):
        if token and token in text:
            raise Declined(
                403,
                "admin_token",
                f"This is the gateway's admin token, which {provider.name} must not see.",
                "Use a key of the provider; GET /api/openapi.json lists what the token is for.",
            )
        found = {*filter(has_checksum, _CLIENT_KEY.findall(text)), *_ALONE.findall(text)}
        if any(one not in ours for one in found):
            raise Declined(
                403,
                "client_key",
                f"A client key of the gateway is where {provider.name} would see it.",
                "Send it as a bearer token, and nowhere else.",
            )


def _texts(url: str, headers: Sequence[tuple[str, str]]) -> Iterator[str]:
    for value in (url, *(value for _, value in headers)):
        yield from _unescaped(value)
        for basic in _BASIC.findall(value):
            yield from _unescaped(_password(basic))


def _unescaped(text: str) -> Iterator[str]:
    """Yield the text, and the text without each layer of percent-encoding."""
    yield text
    for _ in range(_MOST_ESCAPES):
        if "%" not in text or (plain := unquote(text, "latin-1")) == text:
            return
        yield (text := plain)


def _password(basic: str) -> str:
    """Return the user and password in the clear; empty if it can't be decoded."""
    try:
        return b64decode(basic + "==", b"+/" if "+" in basic or "/" in basic else b"-_").decode("latin-1")
    except (binascii.Error, ValueError):
        return ""


def without_betas(headers: Iterable[tuple[bytes, bytes]], refused: AbstractSet[str]) -> Headers:
    """Return headers without the values of `anthropic-beta` that a server refuses; an empty header is removed."""
    kept: Headers = []
    for name, value in headers:
        if name == BETA_HEADER.encode():
            value = b",".join(one for one in value.split(b",") if one.strip().decode("latin-1") not in refused)
            if not value:
                continue
        kept.append((name, value))
    return kept
