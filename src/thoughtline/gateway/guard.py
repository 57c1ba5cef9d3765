"""Protects the admin side: counts wrong tokens by address, and remembers login links that were used."""

from __future__ import annotations

import asyncio
import os
import secrets
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from pathlib import Path

from msgspec import Struct

from thoughtline.values.digests import secret_digest
from thoughtline.values.errors import Declined

FREE_TRIES = 10
"""Wrong tokens allowed per address before each further one has to wait."""

PAUSE_SECONDS = 1.0
MAX_WAITING = 16
"""How many requests of an address may wait at once. Further wrong tokens are refused immediately."""

FORGET_SECONDS = 600.0
MAX_ADDRESSES = 1000

Sleep = Callable[[float], Awaitable[object]]


class _Tries(Struct):
    wrong: int = 0
    waiting: int = 0
    latest: float = 0.0


class Guard:
    """The guard of one process. With several workers, `folder` is where they record used links.

    `code` is what the login link of this start contains in place of the admin token.
    """

    def __init__(
        self,
        code: str = "",
        folder: Path | None = None,
        sleep: Sleep = asyncio.sleep,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.code = code or secrets.token_urlsafe(24)
        self._folder, self._sleep, self._clock = folder, sleep, clock
        self._tries: OrderedDict[str, _Tries] = OrderedDict()
        self._used: set[str] = set()

    async def judge(self, address: str, *, is_right: bool) -> None:
        """Return at once for a right token; for a wrong one after a pause, if too many came from that address.

        Many clients may share an address (a reverse proxy's): wrong tokens don't lock out right ones.
        """
        if is_right:
            return
        tries = self._tries_of(address)
        if tries.waiting >= MAX_WAITING:
            raise Declined(
                429,
                "too_many_attempts",
                "Too many wrong tokens came from this address.",
                "Wait a second, then try again.",
                retry_after_seconds=PAUSE_SECONDS,
            )
        tries.wrong, tries.latest = tries.wrong + 1, self._clock()
        self._tries[address] = tries
        self._tries.move_to_end(address)
        if len(self._tries) > MAX_ADDRESSES:
            self._tries.popitem(last=False)
        if tries.wrong > FREE_TRIES:
            tries.waiting += 1
            try:
                await self._sleep(PAUSE_SECONDS)
            finally:
                tries.waiting -= 1

    def _tries_of(self, address: str) -> _Tries:
        found = self._tries.get(address)
        is_old = found is not None and not found.waiting and self._clock() - found.latest > FORGET_SECONDS
        return _Tries() if found is None or is_old else found

    def use_link(self, token: str) -> bool:
        """Whether a login link with this code is used for the first time since the start."""
        name = secret_digest(f"link {token}").hex()
        if self._folder is None:
            is_first = name not in self._used
            self._used.add(name)
            return is_first
        try:
            os.close(os.open(self._folder / f"used-{name}", os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        except FileExistsError:
            return False
        return True
