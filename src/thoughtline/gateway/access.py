"""Who is asking, and with which key to ask on: by what the head of a request says, before anything else is looked at.

A web page can make a browser ask this machine under a name of its own (DNS rebinding), and then it reads the answers.
So names are checked: on loopback always, elsewhere where `hosts` lists some. Pages of other sites are told by what
browsers say and pages can't (`Origin`, `Sec-Fetch-Site`), requests of a reverse proxy by what proxies add.

Without client keys of our own, a caller's credential passes through and is what its tenant is derived from. With them,
only a known key gets in, and the providers' keys stay inside.
"""

from __future__ import annotations

import binascii
import re
from base64 import b64decode
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any, Protocol
from urllib.parse import unquote, urlsplit

from msgspec import Struct

from thoughtline.addresses import host_name, is_this_machine
from thoughtline.catalogue import Provider
from thoughtline.credentials import (
    CREDENTIALS,
    account_of,
    credentials_of,
    is_signed,
    query_keys,
    signed_tenant,
    tenant_of,
)
from thoughtline.failover.health import TargetHealth
from thoughtline.gateway.client_keys import PREFIX, ClientKey, has_checksum
from thoughtline.settings import ServerSettings, Settings, is_loopback
from thoughtline.values.errors import Declined

if TYPE_CHECKING:
    from thoughtline.gateway.incoming import Incoming

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

_LOOKED_AT = _ONCE | _FORWARDED

_BASIC = re.compile(r"\bbasic\s+([A-Za-z0-9+/]+)", re.IGNORECASE)
"""Also behind another scheme, which is what becomes of it for a provider of another format."""


_CLIENT_KEY = re.compile(r"tl-[A-Za-z0-9_-]{49}")


class KnowsKeys(Protocol):
    """The client keys. Whether they `are_required` is None while nobody knows; they `are_known` when the store was
    asked, and has those that once were made."""

    @property
    def are_required(self) -> bool | None: ...

    @property
    def are_known(self) -> bool: ...

    def would_be_required(self, said: bool | None) -> bool | None: ...

    def follow(self, settings: Settings) -> None: ...

    def find(self, credential: str) -> ClientKey | None: ...

    async def refresh(self) -> None: ...


class NoKeys:
    """Nobody needs a key of ours."""

    are_required = False
    are_known = True

    def would_be_required(self, said: bool | None) -> bool | None:
        return bool(said)

    def follow(self, settings: Settings) -> None:
        """Whatever they say."""

    def find(self, credential: str) -> None:
        return None

    async def refresh(self) -> None:
        """There is nothing to learn."""


class Caller(Struct, frozen=True, gc=False):
    """Who is asking. `credential` is what it showed; `key` is set if that was one of our own.

    `is_free` where nobody needs a key of ours, as far as we know for certain. `is_website` where a page of another
    site made a browser ask. `is_local` where a program of this machine asks for itself, or strangers may do as it does.
    `is_signed` where it shows a signature of AWS, whose key stays with it.
    """

    tenant: str
    credential: str
    key: ClientKey | None = None
    is_free: bool = False
    is_website: bool = False
    is_local: bool = False
    is_signed: bool = False


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


def admit(visitor: Visitor, keys: KnowsKeys, *, is_insecure: bool = False) -> Caller:
    """The caller, or a refusal that doesn't tell what was wrong with its key. Keys come and go: they are looked up."""
    shown = visitor.shown
    credential = shown[0] if shown else ""
    known = keys.find(credential) if credential.startswith(PREFIX) else None
    if known is not None:
        return Caller(known.tenant, credential, known)
    is_required = keys.are_required
    if is_required is not False and not keys.are_known and any(map(has_checksum, shown)):
        raise _keys_unknown()  # it may well be good, and must not go up
    if is_required:
        raise Declined(
            401,
            "unknown_key",
            "This gateway accepts only its own client keys.",
            "`thoughtline keys add NAME` makes one.",
        )
    return Caller(
        visitor.tenant,
        credential,
        None,
        is_free=is_required is False,
        is_website=visitor.is_website,
        is_local=is_insecure or visitor.is_direct,
        is_signed=visitor.is_signed,
    )


def _keys_unknown() -> Declined:
    return Declined(
        503,
        "keys_unknown",
        "The client keys of this gateway are not known: its store can't be reached, or is not the one that has them.",
        "Start that store, or name it in [store]. `thoughtline keys` makes new keys, or opens the gateway.",
    )


def keys_for(
    caller: Caller,
    provider: Provider,
    conversation: str,
    health: TargetHealth,
    now: float,
    account: str = "",
    *,
    is_near: bool = False,
) -> list[str]:
    """The keys to ask a provider with, in this order; an empty one if the caller's own goes up as it came.

    `account` is the one that made the latest turn. `is_near`: the provider is of this machine or its network.
    """
    if caller.key is None and (provider.api_keys or provider.headers or is_near):
        _require_open(caller, provider, is_near=is_near)
    if len(provider.api_keys) == 1:
        return [provider.api_keys[0]]
    if provider.api_keys:
        made_with = next((key for key in provider.api_keys if account and account_of(key) == account), None)
        return health.keys.order(provider.name, provider.api_keys, conversation, now, made_with)
    if caller.key is not None and provider.needs_callers_key:
        raise Declined(
            403,
            "no_provider_key",
            f"The gateway has no key for {provider.name}.",
            f'Set [providers.{provider.name}] api_key = "${{ENV}}".',
        )
    return [""]


async def keys_to_ask_with(incoming: Incoming, provider: Provider) -> list[str]:
    """The keys to ask a provider with. Raises where this caller may not ask it."""
    state, caller, conversation = incoming.state, incoming.caller, incoming.conversation
    is_near = caller.key is None and not caller.is_local and await state.upstreams.neighbours.has(provider)
    account = conversation.made.account if conversation.made else ""
    return keys_for(caller, provider, conversation.name, state.health, state.clock(), account=account, is_near=is_near)


def _require_open(caller: Caller, provider: Provider, *, is_near: bool) -> None:
    """Raises where a caller without a key of ours would get at what is worth protecting."""
    has_secrets = provider.has_secrets
    if has_secrets and caller.is_website:
        raise Declined(
            403,
            "cross_site",
            "A website may not spend the keys of this gateway.",
            "Give its users client keys: `thoughtline keys add NAME`.",
        )
    if has_secrets and not caller.is_free:
        raise _keys_unknown()
    if is_near and not caller.is_local:
        raise Declined(
            403,
            "provider_not_open",
            f"{provider.name} is on the gateway's own network, and closed to callers from elsewhere.",
            "Use a client key: `thoughtline keys add NAME` makes one.",
        )


# --- the head of a request: which host it means, who shows it, what led here -----------------------------------------


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


def head_of(scope: Mapping[str, Any]) -> Head:
    looked_at = []
    for pair in scope["headers"]:
        if pair[0] in _LOOKED_AT or pair[0].startswith(b"x-forwarded-"):
            looked_at.append(pair)
    client, server = scope.get("client"), scope.get("server")
    return Head(
        tuple(looked_at),
        scope["query_string"],
        str(client[0]) if client else "",
        http_version=scope["http_version"],
        authority=scope.get("authority"),
        server=server[0] if server else "",
        is_probe=scope["path"] in PROBES,
    )


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


# --- what opens this gateway is no provider's business, wherever in a head it stands ----------------------------------


def check_what_goes_up(
    provider: str, url: str, headers: Sequence[tuple[str, str]], token: str | None, keys: KnowsKeys
) -> None:
    """Raises if the admin token or a client key would reach a provider."""
    joined = "\n".join((url, *chain.from_iterable(headers)))
    if not ("%" in url or (token and token in joined) or _CLIENT_KEY.search(joined) or _BASIC.search(joined)):
        return  # as nearly always
    for text in _texts(url, headers):
        if token and token in text:
            raise Declined(
                403,
                "admin_token",
                f"This is the gateway's admin token, which {provider} must not see.",
                "Use a key of the provider; GET /api/openapi.json lists what the token is for.",
            )
        if any(keys.find(found) for found in _CLIENT_KEY.findall(text)):
            raise Declined(
                403,
                "client_key",
                f"A client key of the gateway is where {provider} would see it.",
                "Send it as a bearer token, and nowhere else.",
            )


def _texts(url: str, headers: Sequence[tuple[str, str]]) -> Iterator[str]:
    yield url
    if "%" in url:
        yield unquote(url)
    for _, value in headers:
        yield value
        yield from map(_password, _BASIC.findall(value))


def _password(basic: str) -> str:
    """Who asks and with which password, in the clear; empty if that can't be told."""
    try:
        return b64decode(basic + "==").decode("latin-1")
    except (binascii.Error, ValueError):
        return ""
