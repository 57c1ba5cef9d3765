"""A request as it arrived: its caller, the provider keys it may use, and its body, decompressed if it is read.

Without client keys of our own, a caller's credential is forwarded, and its tenant is derived from it. With them, only a
known key is admitted, and the providers' keys stay inside.
"""

from __future__ import annotations

import time
from functools import partial

from msgspec import Struct, field

from thoughtline.destinations.catalogue import Provider
from thoughtline.destinations.credentials import account_of
from thoughtline.engine.sessions import first_model, who_asks
from thoughtline.engine.threads import WORK_SHARE, WorkShare, at_once
from thoughtline.failover.health import TargetHealth
from thoughtline.formats.encodings import is_soon_unpacked, unpacked
from thoughtline.formats.weighing import check_weight, is_light
from thoughtline.gateway.access import LOOKED_AT, PROBES, Head, Visitor, visitor_of
from thoughtline.gateway.asgi import Receive, Scope
from thoughtline.gateway.choosing import ChoiceKey, Choices, Conversation, choices_of, conversation_of
from thoughtline.gateway.client_keys import PREFIX, ClientKey, KnowsKeys, has_checksum
from thoughtline.gateway.in_flight import GATEWAY, Owner
from thoughtline.gateway.routing import Route
from thoughtline.gateway.state import State
from thoughtline.gateway.tracing import ExchangeTrace
from thoughtline.providers import host_named
from thoughtline.replay.remembering import Cut
from thoughtline.settings import ServerSettings
from thoughtline.values.errors import Declined, Fault, LimitExceeded
from thoughtline.values.identity import Identity

IS_COUNTED = "thoughtline.is_counted"
"""In the scope of a request that already counts towards its caller's limits."""


class ClientGone(Exception):
    """The client disconnected before the end of its request."""


class Caller(Struct, frozen=True, gc=False):
    """The caller. `credential` is what it sent; `key` is set if that is a client key.

    `is_free`: callers certainly need no client key. `is_website`: a page of another site made a browser send it.
    `is_local`: a program on this machine sends it, or remote callers have the same rights. `is_signed`: it has an AWS
    signature, whose key stays with the caller. `shows_client_key`: it sent something that looks like a client key, but
    is not a known one.
    """

    tenant: str
    credential: str
    key: ClientKey | None = None
    is_free: bool = False
    is_website: bool = False
    is_local: bool = False
    is_signed: bool = False
    shows_client_key: bool = False


class Incoming(Struct):
    """A request; its body is released when no further target will be asked.

    `began` is its arrival, by the performance counter. `is_passed_on`: it is for an address that is not read here.
    `cuts` are the recent conversations that it continues; `short` is the body without the cached part of its
    conversation, but with everything else. `encoding` is set if the body is passed on compressed.
    """

    state: State
    scope: Scope
    receive: Receive
    route: Route
    headers: dict[bytes, bytes]
    query: str
    is_passed_on: bool = False
    user_agent: bytes = b""
    caller: Caller = Caller("", "")
    identity: Identity = Identity("")
    body: bytes = b""
    cuts: tuple[Cut, ...] = ()
    short: bytes = b""
    encoding: str = ""
    model: str = ""
    choices: Choices = Choices(())
    conversation: Conversation = Conversation()
    began: float = field(default_factory=time.perf_counter)
    trace: ExchangeTrace | None = None
    owner: Owner = GATEWAY

    async def take_in(self) -> None:
        """Determine the caller, the model and the possible targets. Raises if there are none."""
        state, route = self.state, self.route
        self.is_passed_on = route.action == "passthrough" and self.scope["method"] == "POST"
        self.user_agent = self.headers.get(b"user-agent", b"")
        if state.tracing is not None and route.action == "generate":
            self.trace = state.tracing.begin(self.headers)
        caller = self.caller = await admitted(state, self.scope)
        self.identity = Identity(caller.tenant)
        client = self.scope.get("client")
        self.owner = Owner(client[0] if client else "", caller.tenant, caller.key is not None)
        if caller.key is not None and IS_COUNTED not in self.scope:
            state.limits.admit(caller.key, time.monotonic())
        await self._read()
        if route.format is None or route.action not in ("generate", "count_tokens", "compact"):
            return
        known = state.caches.choices
        key = ChoiceKey(
            route.provider,
            route.format,
            route.model or self.model,
            tenant=caller.tenant,
            has_client_key=caller.key is not None,
            has_credential=bool(caller.credential),
        )
        choices = self.choices = known.get(key) or known.keep(key, choices_of(key, state.settings))
        if choices.are_several:
            self.conversation = await conversation_of(choices, self)

    async def _read(self) -> None:
        """Read the whole body. Large ones are processed in a thread."""
        replayer, limit = self.state.replayer, self.state.settings.server.max_body_bytes
        body = self.body = await read_body(self.receive, self.headers.get(b"content-length", b""), limit)
        self._share_work(body)
        encoding = self.headers.get(b"content-encoding", b"").decode("latin-1")
        if self.route.action == "passthrough" or self.route.format is None:
            self.encoding = encoding
            return
        if encoding and self.caller.is_signed:
            self.encoding = encoding  # its signature is over these bytes
        elif encoding:
            work = at_once if is_soon_unpacked(body) else self.state.background.work
            body = self.body = await work(partial(unpacked, body, encoding, limit))
            self._share_work(body)
        self.cuts = replayer.cuts(body, self.route.format, self.caller.tenant)
        short = self.short = self.cuts[0].short if self.cuts else body
        if is_light(short):
            self.identity, self.model = who_asks(self.caller.tenant, self.headers, short)
        else:
            self.identity, self.model = await self.state.background.work(partial(self._who_asks, short))

    def _share_work(self, body: bytes) -> None:
        WORK_SHARE.set(WorkShare(self.caller.tenant, len(body)))

    def _who_asks(self, short: bytes) -> tuple[Identity, str]:
        """Identify the caller; for a body that exceeds the limits, only by what is visible at once."""
        tenant, headers = self.caller.tenant, self.headers
        try:
            check_weight(short)
        except LimitExceeded:
            return who_asks(tenant, headers, b"")[0], first_model(self.body)
        return who_asks(tenant, headers, short)


async def read_body(receive: Receive, declared: bytes, limit: int) -> bytes:
    """Read the whole body of a request, or refuse it as soon as it is known to be too large."""
    if declared.isdigit() and int(declared) > limit:
        raise _too_large(limit)
    message = await receive()
    if not message.get("more_body", False) and message["type"] == "http.request":
        body = message.get("body", b"")
        if len(body) > limit:
            raise _too_large(limit)
        return bytes(body)
    parts: list[bytes] = []
    size = 0
    while True:
        if message["type"] == "http.disconnect":
            raise ClientGone
        parts.append(message.get("body", b""))
        size += len(parts[-1])
        if size > limit:
            raise _too_large(limit)
        if not message.get("more_body", False):
            return b"".join(parts)
        message = await receive()


def _too_large(limit: int) -> Declined:
    return Declined(
        413,
        "body_too_large",
        f"The body of this request is larger than {limit} bytes.",
        'Set [server] max_body = "64MiB", or compact the conversation.',
    )


# --- the caller, and the keys to use ----------------------------------------------------------------------------------


def visitor_at(state: State, scope: Scope) -> Visitor:
    """Return the caller that a request's headers show. Raises if it must not be served."""
    looked_at = []
    for pair in scope["headers"]:
        if pair[0] in LOOKED_AT or pair[0].startswith(b"x-forwarded-"):
            looked_at.append(pair)
    client, server = scope.get("client"), scope.get("server")
    head = Head(
        tuple(looked_at),
        scope["query_string"],
        str(client[0]) if client else "",
        http_version=scope["http_version"],
        authority=scope.get("authority"),
        server=server[0] if server else "",
        is_probe=scope["path"] in PROBES,
    )
    known = state.caches.visitors
    return known.get(head) or known.keep(head, visitor_of(head, state.settings.server), head.size)


async def admitted(state: State, scope: Scope) -> Caller:
    """Return the caller of a request. An unknown client key may have been made a moment ago, so it is looked up."""
    visitor = visitor_at(state, scope)
    if visitor.shown and visitor.shown[0].startswith(PREFIX) and state.keys.find(visitor.shown[0]) is None:
        await state.keys.look_again(visitor.shown[0])
    return admit(visitor, state.keys, state.settings.server)


def admit(visitor: Visitor, keys: KnowsKeys, server: ServerSettings) -> Caller:
    """Return the caller, or refuse without revealing what is wrong with its key. Keys come and go, so nothing is
    cached."""
    shown = visitor.shown
    credential = shown[0] if shown else ""
    known = keys.find(credential) if credential.startswith(PREFIX) else None
    if known is not None:
        return Caller(known.tenant, credential, known)
    is_required = keys.are_required
    if is_required is not False and not keys.are_known and any(map(has_checksum, shown)):
        raise _keys_unknown()  # it may be valid, and must not be forwarded
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
        is_local=server.insecure or visitor.is_direct,
        is_signed=visitor.is_signed,
        shows_client_key=any(one.startswith(PREFIX) for one in shown),
    )


def _keys_unknown() -> Declined:
    return Declined(
        503,
        "keys_unknown",
        "The client keys of this gateway are not known: its store can't be reached, or is not the one that has them.",
        "Start that store, or name it in [store]. `thoughtline keys` makes new keys, or opens the gateway.",
    )


def key_variable(name: str) -> str:
    """Return the environment variable that usually holds a provider's key."""
    row = host_named(name)
    usual = row.key_variables if row is not None else ()
    return usual[0] if usual else f"{name.upper().replace('-', '_')}_API_KEY"


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
    """Return the keys for a provider, in order; an empty one means that the caller's own is forwarded unchanged.

    `account` is the one that made the latest turn. `is_near`: the provider is on this machine or its network.
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
            f'Set [providers.{provider.name}] api_key = "${{{key_variable(provider.name)}}}" in thoughtline.toml.',
            fault=Fault.OURS,
        )
    _require_own(caller, provider)
    return [""]


async def keys_to_ask_with(incoming: Incoming, provider: Provider) -> list[str]:
    """Return the keys for a provider. Raises if this caller may not use it."""
    state, caller, conversation = incoming.state, incoming.caller, incoming.conversation
    if caller.key is None and caller.is_local and not (provider.api_keys or provider.headers):
        _require_own(caller, provider)
        return [""]  # it needs nothing of ours
    is_near = caller.key is None and not caller.is_local and await state.upstreams.neighbours.has(provider)
    account = conversation.made.account if conversation.made else ""
    return keys_for(caller, provider, conversation.name, state.health, state.clock(), account=account, is_near=is_near)


def _require_own(caller: Caller, provider: Provider) -> None:
    """Raise if a key that was made for a gateway would be sent to a provider."""
    if caller.shows_client_key:
        raise Declined(
            401,
            "unknown_key",
            f"This looks like a client key of a gateway, is not known here, and does not go to {provider.name}.",
            "`thoughtline keys list` shows which are. One that was made just now is known within a second.",
        )


def _require_open(caller: Caller, provider: Provider, *, is_near: bool) -> None:
    """Raise if a caller without a client key would reach something worth protecting."""
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
