"""Identifies callers by their credentials: the tenant whose turns are stored, and the account."""

from __future__ import annotations

import re
from collections.abc import Mapping
from urllib.parse import unquote

from thoughtline.destinations.addresses import is_this_machine
from thoughtline.values.digests import named_digest

CREDENTIALS = (b"authorization", b"x-api-key", b"x-goog-api-key", b"api-key", b"x-amz-security-token")

_SIGNED = re.compile(rb"AWS4-\S+\s.*?\bCredential=([^/,\s]*)")
_SIGNED_HEADERS = re.compile(rb"\bSignedHeaders=([^,\s]*)")


def is_signed(headers: Mapping[bytes, bytes]) -> bool:
    """Whether a request has a signature of AWS: it covers these exact bytes and differs each time."""
    return headers.get(b"authorization", b"").lstrip().startswith(b"AWS4-")


def signed_headers(headers: Mapping[bytes, bytes]) -> frozenset[bytes]:
    """The headers that a signature covers."""
    found = _SIGNED_HEADERS.search(headers.get(b"authorization", b"")) if is_signed(headers) else None
    return frozenset(found[1].lower().split(b";")) if found else frozenset()


def credential_of(headers: Mapping[bytes, bytes], query: str = "") -> str:
    """The client's credential, or ""."""
    return next(iter(credentials_of(headers, query)), "")


def credentials_of(headers: Mapping[bytes, bytes], query: str) -> list[str]:
    """All credentials of a client. Some send a placeholder next to their key.

    For a signature of AWS, the id of its key.
    """
    shown = [headers[name].decode("latin-1").strip() for name in CREDENTIALS if name in headers]
    if b"authorization" in headers:
        scheme, _, rest = shown[0].partition(" ")
        shown[0] = rest.strip() if scheme.lower() == "bearer" else shown[0]
        if (signed := _SIGNED.match(headers[b"authorization"].strip())) is not None:
            shown[0] = signed[1].decode("latin-1")
    if query:
        shown += query_keys(query)
    return [one for one in dict.fromkeys(shown) if one]


def query_keys(query: str) -> list[str]:
    """The keys in a query, as Google's clients send them."""
    pairs = (part.partition("=") for part in query.split("&")) if query else ()
    return [unquote(value) for name, _, value in pairs if unquote(name) == "key"]


def tenant_of(credential: str, peer: str = "") -> str:
    """The tenant of a credential. Without one, all callers on this machine are one tenant, others are identified by
    address.
    """
    if credential:
        return "t-" + _hashed(b"tenant", credential)
    return "local" if is_this_machine(peer) else "a-" + _hashed(b"address", peer)


def signed_tenant(shown: list[str], peer: str) -> str:
    """The tenant of a client that signs with an AWS key from an address. The key's id is no secret, and signatures
    can't be checked here: the same id from another address is another tenant.
    """
    where = "local" if is_this_machine(peer) else peer
    return "s-" + _hashed(b"signed", "\0".join((*shown, where)))


def account_of(credential: str) -> str:
    """The account of a credential, as the provider sees it."""
    return _hashed(b"account", credential)


def _hashed(purpose: bytes, value: str) -> str:
    # Keys of providers are long and random, so a plain digest can't be reversed by guessing.
    return named_digest(value, purpose).hex()
