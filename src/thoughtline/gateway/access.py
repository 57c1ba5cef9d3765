"""Who is asking, and with which key to ask on.

Without client keys of our own, a caller's credential passes through and is what its tenant is derived from. With them,
only a known key gets in, and the providers' keys stay inside.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import NamedTuple, Protocol

from thoughtline.catalogue import Provider
from thoughtline.errors import Declined
from thoughtline.fallover.health import Health
from thoughtline.gateway.client_keys import ClientKey
from thoughtline.gateway.door import is_this_machine, is_website
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
    return "local" if is_this_machine(peer) else "a-" + _hashed(b"address", peer)


def account_of(credential: str) -> str:
    """A name for the account that a credential belongs to, as the provider sees it."""
    return _hashed(b"account", credential)


def admit(headers: Mapping[bytes, bytes], query: str, peer: str, keys: KnowsKeys) -> Caller:
    """The caller, or a refusal that doesn't tell what was wrong with its key."""
    shown = credentials_of(headers, query)
    credential = shown[0] if shown else ""
    if keys.is_empty:  # a placeholder that many send is nobody's: the tenant is who shows all of this
        tenant = tenant_of("\0".join(shown), peer)
        return Caller(tenant, credential, None, keys.is_certain, is_website(headers))
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
