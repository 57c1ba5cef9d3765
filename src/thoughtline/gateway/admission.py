"""How many connections are held: in all, and by one address. What is refused is logged, not each but now and then."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable

from thoughtline.settings import ServerSettings

try:
    import resource
except ImportError:  # pragma: no cover  # Windows has no such bound
    resource = None  # type: ignore[assignment]  # no name stands for a module that is missing

RESERVED_DESCRIPTORS = 256
"""For the store, the log and what the libraries open."""

LOG_SECONDS = 10.0
_WANTED_DESCRIPTORS = 65_536

Say = Callable[[str, str], None]


class Connections:
    """Those of one process."""

    def __init__(self, descriptors: int | None = None) -> None:
        self._by_address: Counter[str] = Counter()
        self._descriptors = descriptors if descriptors is not None else _descriptors()
        self._refused = 0
        self._told_at = float("-inf")
        self.held = 0

    def admit(self, address: str, server: ServerSettings, say: Say) -> bool:
        """Whether there is room for one more; if so, `leave` gives it back."""
        if self.held >= self.most(server):
            self._refuse("all", self.most(server), say)
            return False
        if self._by_address[address] >= server.max_connections_per_address:
            self._refuse(address, server.max_connections_per_address, say)
            return False
        self.held += 1
        self._by_address[address] += 1
        return True

    def leave(self, address: str) -> None:
        self.held -= 1
        self._by_address[address] -= 1
        if not self._by_address[address]:
            del self._by_address[address]

    def most(self, server: ServerSettings) -> int:
        """Each connection may need another one to a provider."""
        return max(1, min(server.max_connections, (self._descriptors - RESERVED_DESCRIPTORS) // 2))

    def _refuse(self, who: str, most: int, say: Say) -> None:
        self._refused += 1
        now = time.monotonic()
        if now - self._told_at >= LOG_SECONDS:
            self._told_at = now
            say("connections refused", f"{self._refused} so far; {who}: {most} are open, which is as many as may be")


def _descriptors() -> int:
    """As many as this process may open, after it has asked for more."""
    if resource is None:  # pragma: no cover
        return _WANTED_DESCRIPTORS
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _WANTED_DESCRIPTORS if hard == resource.RLIM_INFINITY else min(hard, _WANTED_DESCRIPTORS)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
        soft = wanted
    return _WANTED_DESCRIPTORS if soft == resource.RLIM_INFINITY else soft
