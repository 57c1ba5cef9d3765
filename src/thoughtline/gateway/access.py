"""Who is asking, and with which key to ask on.

Without client keys of our own, a caller's credential passes through and is what its tenant is derived from. With them,
only a known key gets in, and the providers' keys stay inside.
"""

from __future__ import annotations

import hashlib
import ipaddress
from collections.abc import Mapping
from typing import NamedTuple, Protocol
from urllib.parse import urlsplit

from thoughtline.catalogue import Provider
from thoughtline.errors import Declined
from thoughtline.fallover.health import Health
from thoughtline.gateway.client_keys import ClientKey
from thoughtline.gateway.headers import credentials_of


class KnowsKeys(Protocol):
    """The client keys. `is_certain` is whether the store has been asked: until then there may be keys that nobody
    here knows."""

    @property
    def is_empty(self) -> bool: ...

    @property
    def is_certain(self) -> bool: ...

    def find(self, credential: str) -> ClientKey | None: ...

    async def refresh(self) -> None: ...


class NoKeys:
    """Nobody needs a key of ours."""

    is_empty = True
    is_certain = True

    def find(self, credential: str) -> None:
        return None

    async def refresh(self) -> None:
        """There is nothing to learn."""


class Caller(NamedTuple):
    """Who is asking. `credential` is what it showed; `key` is set if that was one of our own.

    `is_free` where nobody needs a key of ours, as far as we know for certain. `is_website` where a page of another
    site made a browser ask.
    """

    tenant: str
    credential: str
    key: ClientKey | None = None
    is_free: bool = False
    is_website: bool = False


def tenant_of(credential: str, peer: str) -> str:
    """A name for whoever holds a credential. Without one, callers of this machine are one, others are their address."""
    if credential:
        return "t-" + _hashed(b"tenant", credential)
    return "local" if _is_loopback(peer) else "a-" + _hashed(b"address", peer)


def account_of(credential: str) -> str:
    """A name for the account that a credential belongs to, as the provider sees it."""
    return _hashed(b"account", credential)


def admit(headers: Mapping[bytes, bytes], query: str, peer: str, keys: KnowsKeys) -> Caller:
    """The caller, or a refusal that doesn't tell what was wrong with its key."""
    shown = credentials_of(headers, query)
    credential = shown[0] if shown else ""
    if keys.is_empty:  # a placeholder that many send is nobody's: the tenant is who shows all of this
        is_website = _is_website(headers.get(b"origin", b""))
        return Caller(tenant_of("\0".join(shown), peer), credential, None, keys.is_certain, is_website)
    known = keys.find(credential)
    if known is None:
        raise Declined(
            401, "unknown_key", "This gateway takes its own client keys.", "`thoughtline keys add NAME` makes one."
        )
    return Caller(known.tenant, credential, known)


def keys_for(
    caller: Caller, provider: Provider, conversation: str, health: Health, now: float, account: str = ""
) -> list[str]:
    """The keys to ask a provider with, in this order; an empty one if the caller's own goes up as it came.

    `account` is the one that made the latest turn.
    """
    if provider.api_keys:
        if caller.key is None and caller.is_website:
            raise Declined(
                403,
                "cross_site",
                "A website may not spend the keys of this gateway.",
                "Give its users client keys: `thoughtline keys add NAME`.",
            )
        if caller.key is None and not caller.is_free:
            raise Declined(
                503,
                "keys_unknown",
                "The store can't be reached, and with it the client keys that this gateway may have.",
                "Start the store; nothing else has to be done.",
            )
        if len(provider.api_keys) == 1:
            return [provider.api_keys[0]]
        made_with = next((key for key in provider.api_keys if account and account_of(key) == account), None)
        return health.keys.order(provider.name, provider.api_keys, conversation, now, made_with)
    if caller.key is not None and provider.auth != "none":
        raise Declined(
            403,
            "no_provider_key",
            f"The gateway has no key for {provider.name}.",
            f'Set [providers.{provider.name}] api_key = "${{ENV}}".',
        )
    return [""]


def _hashed(purpose: bytes, value: str) -> str:
    # Keys of providers are long and random, so a plain digest can't be undone by guessing.
    return hashlib.blake2b(value.encode("utf-8", "replace"), digest_size=16, person=purpose[:16]).hexdigest()


def _is_website(origin: bytes) -> bool:
    """Whether a browser asks for a page that is not of this machine: any site may make it, whoever sits before it.

    Editors built on browsers name schemes of their own (`vscode-file://`, `app://`); programs name no origin. `null` is
    what a page in a sandbox names, which any site can make.
    """
    if origin.strip() == b"null":
        return True
    site = urlsplit(origin.decode("latin-1"))
    host = site.hostname or ""
    return site.scheme in ("http", "https") and host != "localhost" and not _is_loopback(host or "?")


def _is_loopback(peer: str) -> bool:
    try:
        return not peer or ipaddress.ip_address(peer).is_loopback
    except ValueError:
        return False
