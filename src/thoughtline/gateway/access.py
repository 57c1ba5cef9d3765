"""Identifies callers by request headers, before anything else is read, and decides which providers are nearby.

A web page can make a browser send requests to this machine under a name of its own (DNS rebinding), and then read the
answers. So host names are checked: always on loopback, elsewhere if `hosts` lists some. Pages of other sites are
recognised by headers that browsers set and pages can't (`Origin`, `Sec-Fetch-Site`), requests of a reverse proxy by the
headers that proxies add.
"""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any
from urllib.parse import urlsplit

from msgspec import Struct

from thoughtline.destinations.addresses import host_name, hosts_of, is_private, is_private_address, is_this_machine
from thoughtline.destinations.catalogue import Provider
from thoughtline.destinations.credentials import (
    CREDENTIALS,
    credentials_of,
    is_signed,
    query_keys,
    signed_tenant,
    tenant_of,
)
from thoughtline.settings import ServerSettings, is_loopback
from thoughtline.values.errors import Declined

LOCAL_NAMES = frozenset({"localhost", "127.0.0.1", "::1"})
"""Names that only this machine can have: no foreign DNS server is asked for them."""

PROBES = frozenset({"/healthz", "/readyz"})
"""Kubernetes requests these by the pod's address, HAProxy in HTTP/1.0 without a host. They reveal nothing."""

_ONCE = frozenset({*CREDENTIALS, b"host", b"origin", b"sec-fetch-site"})
_SITES = (b"cross-site", b"same-site")
_FORWARDED = frozenset(
    {
        b"forwarded",
        b"via",
        b"x-real-ip",
        b"x-client-ip",
        b"x-cluster-client-ip",
        b"x-original-host",
        b"x-original-forwarded-for",
        b"x-envoy-external-address",
        b"true-client-ip",
        b"cf-connecting-ip",
        b"fastly-client-ip",
        b"cdn-loop",
    }
)
"""RFC 7239, RFC 9110, and the headers that nginx, Apache, Caddy, Traefik, Envoy, Cloudflare and Fastly add."""

LOOKED_AT = _ONCE | _FORWARDED


class Visitor(Struct, frozen=True, gc=False):
    """What headers alone show about a caller: the credentials in `shown`, and its tenant if it has no client key."""

    shown: tuple[str, ...]
    tenant: str
    is_website: bool
    is_direct: bool
    is_signed: bool = False


def visitor_of(head: Head, server: ServerSettings) -> Visitor:
    """Return the caller that these headers show. Raises if the request must not be served."""
    check_head(head, server)
    return visitor(dict(head.headers), head.query.decode("latin-1"), head.peer, head.http_version)


def visitor(headers: Mapping[bytes, bytes], query: str, peer: str, http_version: str) -> Visitor:
    shown, signed = credentials_of(headers, query), is_signed(headers)
    # Many clients send the same placeholder: the tenant is derived from all credentials together.
    tenant = signed_tenant(shown, peer) if signed else tenant_of("\0".join(shown), peer)
    return Visitor(
        tuple(shown),
        tenant,
        is_website=is_website(headers),
        is_direct=is_direct(headers, peer, http_version),
        is_signed=signed,
    )


class Head(Struct, frozen=True, gc=False):
    """The parts of a request that are read here."""

    headers: tuple[tuple[bytes, bytes], ...]
    query: bytes
    peer: str
    http_version: str
    authority: bytes | None
    server: str
    is_probe: bool

    @property
    def size(self) -> int:
        return len(self.query) + sum(len(name) + len(value) for name, value in self.headers)


def check_head(head: Head, server: ServerSettings) -> None:
    """Raise 400 for ambiguous headers, and 421 for a request to another server."""
    repeatable = [name for name, _ in head.headers if name in _ONCE]
    if len(set(repeatable)) < len(repeatable):
        twice = next(name for name in repeatable if repeatable.count(name) > 1).decode()
        raise Declined(400, "repeated_header", f"The header {twice} occurs twice.", "Send it once.")
    if len(query_keys(head.query.decode("latin-1"))) > 1:
        raise Declined(400, "repeated_key", "There are two keys in the query.", "Send one.")
    _check_host(head, server)


def _check_host(head: Head, server: ServerSettings) -> None:
    given = next((value for name, value in head.headers if name == b"host"), None)
    if given is None:
        if head.is_probe and head.http_version == "1.0":
            return
        raise Declined(400, "no_host", "The request names no host.", "Send a Host header.")
    if head.is_probe:
        return
    named = given if head.authority is None else head.authority
    for authority in (given, named):  # the host in a request target takes precedence: RFC 9112
        name = host_name(authority.decode("latin-1"))
        if name is None:
            raise Declined(400, "bad_host", "The Host header names no host.", "Send host, or host:port.")
        if name not in LOCAL_NAMES and not _is_ours(name, head, server):
            raise Declined(
                421,
                "unknown_host",
                f"This gateway does not answer for the host {name}.",
                "Use 127.0.0.1 or localhost, or add the name to hosts in [server].",
            )


def authority_of(target: bytes) -> bytes:
    """Return the host in a request's target: `GET http://host:port/path HTTP/1.1`."""
    return target.partition(b"://")[2].partition(b"/")[0].partition(b"?")[0]


def _is_ours(name: str, head: Head, server: ServerSettings) -> bool:
    if not server.hosts and not is_loopback(server.host):
        return True
    return name in server.hosts or name == head.server


def is_website(headers: Mapping[bytes, bytes]) -> bool:
    """Whether a browser sends it for a page that is not from this machine. Any site may have made that page.

    Editors built on browsers have schemes of their own (`vscode-file://`, `app://`); programs send no origin. `null` is
    the origin of a sandboxed page, which any site can make.
    """
    origin = headers.get(b"origin", b"").strip()
    try:
        site = urlsplit(origin.decode("latin-1"))
        host = site.hostname or ""
    except ValueError:
        return True
    if origin == b"null":
        return True
    if origin and site.scheme not in ("http", "https"):
        return False
    if origin and host != "localhost" and not is_this_machine(host or "?"):
        return True
    return headers.get(b"sec-fetch-site", b"").strip().lower() in _SITES


def opens_from_page(headers: Mapping[bytes, bytes]) -> bool:
    """Whether a page that is not the gateway's own opens a WebSocket.

    In a handshake browsers send only `Origin` (Chromium sends no `Sec-Fetch-*`), so every other port of this machine
    counts as another site. The gateway's own pages have the host and port of the request as their origin.
    """
    scheme, _, authority = headers.get(b"origin", b"").strip().lower().partition(b"://")
    is_page = scheme in (b"http", b"https") and authority != headers.get(b"host", b"").strip().lower()
    return is_page or is_website(headers)


def is_direct(headers: Mapping[bytes, bytes], peer: str, http_version: str = "1.1") -> bool:
    """Whether a program on this machine sends it itself, rather than a reverse proxy on it for another client.

    nginx adds no header by default, but uses HTTP/1.0, which programs have long stopped using.
    """
    if not peer or not is_this_machine(peer) or http_version == "1.0":
        return False
    return not any(name in _FORWARDED or name.startswith(b"x-forwarded-") for name in headers)


def peer_of(scope: Mapping[str, Any]) -> str:
    """Return the address that a request came from."""
    return str((scope.get("client") or ("", 0))[0])


# --- which providers are on this machine or its network ---------------------------------------------------------------
# A caller that can't reach those directly must not reach them through the gateway. An address decides by itself, and so
# do some names; other names are resolved, and the result is cached for a minute. Only remote callers have to wait for
# that.


KEPT_SECONDS = 60.0
LOOKUP_SECONDS = 5.0

Lookup = Callable[[str], Awaitable[Iterable[str]]]


async def look_up(host: str) -> list[str]:
    """Resolve a name. Raises `OSError` if it has no address."""
    loop = asyncio.get_running_loop()
    async with asyncio.timeout(LOOKUP_SECONDS):
        found = await loop.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    return [str(address[0]) for *_, address in found]


class Neighbours:
    """What is known of providers' hosts. They come from settings, so there are few."""

    def __init__(self, lookup: Lookup = look_up, clock: Callable[[], float] = time.monotonic) -> None:
        self._lookup, self._clock = lookup, clock
        self._known: dict[str, tuple[float, bool]] = {}

    async def has(self, provider: Provider) -> bool:
        """Whether any of a provider's addresses is nearby."""
        return any([await self._is_near(host) for host in hosts_of(provider)])

    async def _is_near(self, host: str) -> bool:
        if is_private(host) or is_private_address(host) is not None:
            return is_private(host)
        until, is_near = self._known.get(host, (0.0, False))
        if self._clock() < until:
            return is_near
        try:
            found = await self._lookup(host)
        except (OSError, TimeoutError, UnicodeError):
            return False  # it has no address; a forward proxy may know it, and that is not nearby
        is_near = any(is_private_address(address) for address in found)
        self._known[host] = self._clock() + KEPT_SECONDS, is_near
        return is_near
