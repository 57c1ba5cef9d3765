"""Who is asking, by what the head of a request says, before anything else is looked at; and who is near.

A web page can make a browser ask this machine under a name of its own (DNS rebinding), and then it reads the answers.
So names are checked: on loopback always, elsewhere where `hosts` lists some. Pages of other sites are told by what
browsers say and pages can't (`Origin`, `Sec-Fetch-Site`), requests of a reverse proxy by what proxies add.
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
"""What only this machine can be called: no DNS server of somebody else's is asked for these."""

PROBES = frozenset({"/healthz", "/readyz"})
"""Kubernetes asks these by the pod's address, HAProxy in HTTP/1.0 without a host. They say nothing worth reading."""

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
"""RFC 7239, RFC 9110, and what nginx, Apache, Caddy, Traefik, Envoy, Cloudflare and Fastly add."""

LOOKED_AT = _ONCE | _FORWARDED


class Visitor(Struct, frozen=True, gc=False):
    """What a head alone says of who is asking: all that it `shows`, and the tenant that it is without a key of ours."""

    shown: tuple[str, ...]
    tenant: str
    is_website: bool
    is_direct: bool
    is_signed: bool = False


def visitor_of(head: Head, server: ServerSettings) -> Visitor:
    """Who shows a head, if it may be taken at all."""
    check_head(head, server)
    return visitor(dict(head.headers), head.query.decode("latin-1"), head.peer, head.http_version)


def visitor(headers: Mapping[bytes, bytes], query: str, peer: str, http_version: str) -> Visitor:
    shown, signed = credentials_of(headers, query), is_signed(headers)
    # A placeholder that many send is nobody's: the tenant is who shows all of this.
    tenant = signed_tenant(shown, peer) if signed else tenant_of("\0".join(shown), peer)
    return Visitor(
        tuple(shown),
        tenant,
        is_website=is_website(headers),
        is_direct=is_direct(headers, peer, http_version),
        is_signed=signed,
    )


class Head(Struct, frozen=True, gc=False):
    """All that is looked at here, as it came."""

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
    """Raises 400 for a head that means two things, and 421 for one that means another server."""
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
    for authority in (given, named):  # a target that names its host means that one: RFC 9112
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
    """The host that a request's target names itself: `GET http://host:port/path HTTP/1.1`."""
    return target.partition(b"://")[2].partition(b"/")[0].partition(b"?")[0]


def _is_ours(name: str, head: Head, server: ServerSettings) -> bool:
    if not server.hosts and not is_loopback(server.host):
        return True
    return name in server.hosts or name == head.server


def is_website(headers: Mapping[bytes, bytes]) -> bool:
    """Whether a browser asks for a page that is not of this machine: any site may make it, whoever sits before it.

    Editors built on browsers name schemes of their own (`vscode-file://`, `app://`); programs name no origin. `null` is
    what a page in a sandbox names, which any site can make.
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

    Browsers say nothing but `Origin` with a handshake (Chromium sends no `Sec-Fetch-*`), so that every other port of
    this machine is another site here. The gateway's own pages name the host and port that they ask.
    """
    scheme, _, authority = headers.get(b"origin", b"").strip().lower().partition(b"://")
    is_page = scheme in (b"http", b"https") and authority != headers.get(b"host", b"").strip().lower()
    return is_page or is_website(headers)


def is_direct(headers: Mapping[bytes, bytes], peer: str, http_version: str = "1.1") -> bool:
    """Whether a program of this machine asks for itself, not a reverse proxy on it for somebody else.

    nginx adds nothing by itself, but asks in HTTP/1.0 unless it is told otherwise, which programs have long not done.
    """
    if not peer or not is_this_machine(peer) or http_version == "1.0":
        return False
    return not any(name in _FORWARDED or name.startswith(b"x-forwarded-") for name in headers)


def peer_of(scope: Mapping[str, Any]) -> str:
    """The address that a request came from."""
    return str((scope.get("client") or ("", 0))[0])


# --- which providers are on this machine or its network ---------------------------------------------------------------
# Who can't reach those directly must not reach them through us. An address tells by itself, and so do some names; for
# the others the resolver is asked, and what it says is kept for a minute. Only callers from elsewhere have to wait for
# that.


KEPT_SECONDS = 60.0
LOOKUP_SECONDS = 5.0

Lookup = Callable[[str], Awaitable[Iterable[str]]]


async def look_up(host: str) -> list[str]:
    """The addresses of a name. Raises `OSError` where it has none."""
    loop = asyncio.get_running_loop()
    async with asyncio.timeout(LOOKUP_SECONDS):
        found = await loop.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    return [str(address[0]) for *_, address in found]


class Neighbours:
    """What is known of the hosts of providers. They come from settings, so there are few."""

    def __init__(self, lookup: Lookup = look_up, clock: Callable[[], float] = time.monotonic) -> None:
        self._lookup, self._clock = lookup, clock
        self._known: dict[str, tuple[float, bool]] = {}

    async def has(self, provider: Provider) -> bool:
        """Whether any of a provider's addresses is near."""
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
            return False  # nobody reaches a name that nobody knows; a forward proxy may, and that is not near
        is_near = any(is_private_address(address) for address in found)
        self._known[host] = self._clock() + KEPT_SECONDS, is_near
        return is_near
