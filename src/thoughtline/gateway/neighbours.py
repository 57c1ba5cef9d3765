"""Which providers are on this machine or its network: who can't reach those directly must not reach them through us.

An address tells by itself, and so do some names; for the others the resolver is asked, and what it says is kept for a
minute. Only callers from elsewhere have to wait for that.
"""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import Awaitable, Callable, Iterable

from thoughtline.addresses import hosts_of, is_private, is_private_address
from thoughtline.catalogue import Provider

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
