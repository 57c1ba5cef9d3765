"""Whose request it is, by the credential that it shows: the tenant that its turns are kept for, and the account."""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import unquote

from thoughtline.addresses import is_this_machine
from thoughtline.values.digests import named_digest

CREDENTIALS = (b"authorization", b"x-api-key", b"x-goog-api-key", b"api-key")


def credential_of(headers: Mapping[bytes, bytes], query: str) -> str:
    """Whatever a client shows who it is with; empty if nothing."""
    return next(iter(credentials_of(headers, query)), "")


def credentials_of(headers: Mapping[bytes, bytes], query: str) -> list[str]:
    """All that a client shows who it is with. Some send a placeholder beside their key."""
    shown = [headers[name].decode("latin-1").strip() for name in CREDENTIALS if name in headers]
    if b"authorization" in headers:
        scheme, _, rest = shown[0].partition(" ")
        shown[0] = rest.strip() if scheme.lower() == "bearer" else shown[0]
    if query:
        shown += query_keys(query)
    return [one for one in dict.fromkeys(shown) if one]


def query_keys(query: str) -> list[str]:
    """The keys that stand in a query, as Google's clients show them."""
    pairs = (part.partition("=") for part in query.split("&")) if query else ()
    return [unquote(value) for name, _, value in pairs if unquote(name) == "key"]


def tenant_of(credential: str, peer: str = "") -> str:
    """A name for whoever holds a credential. Without one, callers of this machine are one, others are their address."""
    if credential:
        return "t-" + _hashed(b"tenant", credential)
    return "local" if is_this_machine(peer) else "a-" + _hashed(b"address", peer)


def account_of(credential: str) -> str:
    """A name for the account that a credential belongs to, as the provider sees it."""
    return _hashed(b"account", credential)


def _hashed(purpose: bytes, value: str) -> str:
    # Keys of providers are long and random, so a plain digest can't be undone by guessing.
    return named_digest(value, purpose).hex()
