"""One budget for all that is in flight in a process: client connections, requests to providers, abandoned requests.

Each takes a file descriptor. A client connection counts twice, because its request needs a connection to a provider. A
request is abandoned when its client has left and the answer is read on for its record (`relay.py`). One whose answer
has not begun is cancelled instead, and so is one that there is no room for: by tenant, by address and in all. A made-up
credential makes a new tenant, so tenants without a client key share the limit of their address.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable

from msgspec import Struct

from thoughtline.settings import ServerSettings

try:
    import resource
except ImportError:  # pragma: no cover  # Windows has no such limit
    resource = None  # type: ignore[assignment]  # no name stands for a module that is missing

RESERVED_DESCRIPTORS = 256
"""For the store, the log, idle connections to providers and what the libraries open."""

LAST_DESCRIPTORS = 64
"""No client gets one of these, whatever has opened the others."""

MAX_OF_TENANT = 64
"""Abandoned requests. People who press Escape leave a few in the minutes that an answer may take to begin."""

LOG_SECONDS = 10.0
_WANTED_DESCRIPTORS = 65_536

Say = Callable[[str, str], None]


class Owner(Struct, frozen=True, gc=False):
    """Who a request is counted for. `has_key`: the tenant has a client key of this gateway."""

    address: str = ""
    tenant: str = ""
    has_key: bool = False


GATEWAY = Owner()
"""The gateway itself, for requests of its own."""


class InFlight:
    """The budget of one process. `held` are client connections, `abandoned` answers that are read on without one."""

    def __init__(self, say: Say = lambda what, words: None, descriptors: int | None = None) -> None:
        self._say = say
        self._descriptors = available_descriptors() if descriptors is None else descriptors
        self._held_by_address: Counter[str] = Counter()
        self._abandoned_by_address: Counter[str] = Counter()
        self._abandoned_by_tenant: Counter[str] = Counter()
        self._refused: Counter[str] = Counter()
        self._logged_at: dict[str, float] = {}
        self.held = self.abandoned = 0

    @property
    def size(self) -> int:
        """How many descriptors there are for all of it."""
        return max(8, self._descriptors - RESERVED_DESCRIPTORS)

    @property
    def most_abandoned(self) -> int:
        return self.size // 2

    @property
    def most_of_address(self) -> int:
        """Limit for abandoned requests of tenants without a client key: anyone can make up other credentials."""
        return self.size // 4

    @property
    def most_idle(self) -> int:
        """Connections to providers that are kept for later requests: they fit into what is reserved."""
        return max(8, self.size // 8)

    def most_held(self, server: ServerSettings) -> int:
        """Client connections, as things stand."""
        return max(1, min(server.max_connections, (self.size - self.abandoned) // 2))

    # --- client connections

    def admit(self, address: str, server: ServerSettings, descriptor: int = -1) -> bool:
        """Whether there is room for one more; if so, `leave` returns it. The system assigns the lowest free descriptor:
        a high one shows that few are left."""
        most, most_of_address = self.most_held(server), server.max_connections_per_address
        if self.held >= most or descriptor >= self._descriptors - LAST_DESCRIPTORS:
            self._log("connections refused", f"{self.held} are open, which is as many as may be")
            return False
        if self._held_by_address[address] >= most_of_address:
            self._log("connections refused", f"{address}: {most_of_address} are open, which is as many as may be")
            return False
        self.held += 1
        self._held_by_address[address] += 1
        return True

    def leave(self, address: str) -> None:
        self.held -= 1
        _decrement(self._held_by_address, address)

    # --- abandoned requests

    def abandon(self, owner: Owner) -> bool:
        """A client has left: whether its answer may be read on; then `release` when that has ended."""
        of_address = self._abandoned_by_address[owner.address]
        has_room = (
            self.abandoned < self.most_abandoned
            and self._abandoned_by_tenant[owner.tenant] < min(MAX_OF_TENANT, self.most_of_address)
            and (owner.has_key or of_address < self.most_of_address)
        )
        if has_room:
            self.abandoned += 1
            self._abandoned_by_address[owner.address] += 1
            self._abandoned_by_tenant[owner.tenant] += 1
        if not has_room or of_address >= self.most_of_address // 2:
            self._log("requests abandoned" if has_room else "requests cancelled", self._words(owner))
        return has_room

    def release(self, owner: Owner) -> None:
        self.abandoned -= 1
        _decrement(self._abandoned_by_address, owner.address)
        _decrement(self._abandoned_by_tenant, owner.tenant)

    # --- how things stand

    def problem(self, server: ServerSettings) -> str:
        """Why no further client can be served; empty if one can."""
        if self.held >= self.most_held(server):
            return f"{self.held} client connections are open, which is as many as may be."
        if self.abandoned >= self.most_abandoned:
            return f"{self.abandoned} abandoned requests are under way, which is as many as may be."
        return ""

    @property
    def is_crowded(self) -> bool:
        """Whether abandoned requests take much of the budget."""
        return self.abandoned >= self.most_of_address // 2

    def _words(self, owner: Owner) -> str:
        of_tenant, of_address = self._abandoned_by_tenant[owner.tenant], self._abandoned_by_address[owner.address]
        words = f"{self.abandoned} abandoned requests, {of_address} from {owner.address or 'the gateway'}"
        return f"{words}, {of_tenant} of this tenant, are under way"

    def _log(self, what: str, words: str) -> None:
        """At most one line of a kind every `LOG_SECONDS`, with the number of cases so far."""
        self._refused[what] += 1
        now = time.monotonic()
        if now - self._logged_at.get(what, float("-inf")) >= LOG_SECONDS:
            self._logged_at[what] = now
            self._say(what, f"{self._refused[what]} so far; {words}")


def _decrement(counts: Counter[str], name: str) -> None:
    counts[name] -= 1
    if not counts[name]:
        del counts[name]


def available_descriptors() -> int:
    """How many this process may open, after it has asked for more."""
    if resource is None:  # pragma: no cover
        return _WANTED_DESCRIPTORS
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _WANTED_DESCRIPTORS if hard == resource.RLIM_INFINITY else min(hard, _WANTED_DESCRIPTORS)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
        soft = wanted
    return _WANTED_DESCRIPTORS if soft == resource.RLIM_INFINITY else soft
