"""The connections of clients: how many are held, in all and by one address, and whether a client is still there.

One that has left may still be served for a while: for its record's sake.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Callable
from typing import Any

from thoughtline.gateway.asgi import Receive, Scope
from thoughtline.settings import ServerSettings

try:
    import resource
except ImportError:  # pragma: no cover  # Windows has no such bound
    resource = None  # type: ignore[assignment]  # no name stands for a module that is missing

ON_DISCONNECT, HAS_LEFT = "on_disconnect", False
"""Where our own server is told whom to call when a client leaves; and what stands there when it has already left. An
open stream needs no task that listens (2 kB) then."""

LISTEN_AFTER_SECONDS = 0.05
"""For other servers. An exchange that is over by then has cost a timer (0.7 µs) instead of a task that is cancelled
(5 µs). Nothing is missed: the server tells whoever asks later, too, that a client has left."""

DRAIN_SECONDS = 120.0
"""How long an exchange may go on without its client. A model's longest answers take a minute or two."""

MOST_ABANDONED_BYTES = 64 * 2**20
"""What is kept of all answers whose clients have left. A model's longest are a few hundred kilobytes."""

RESERVED_DESCRIPTORS = 256
"""For the store, the log and what the libraries open."""

LOG_SECONDS = 10.0
_WANTED_DESCRIPTORS = 65_536

Say = Callable[[str, str], None]


def tell_disconnect(scope: Scope) -> None:
    """The client of this request has left: whoever serves it hears of it, now or when it begins to listen."""
    leave = scope.get(ON_DISCONNECT)
    if leave is None:
        scope[ON_DISCONNECT] = HAS_LEFT
    else:
        leave()


class Abandoned:
    """The answers that are read on without a client, the newest last: it is the first that is given up."""

    def __init__(self) -> None:
        self._held: dict[Disconnect, int] = {}
        self._bytes = 0

    def hold(self, one: Disconnect, size: int) -> None:
        """So many bytes of an answer are kept now."""
        self._bytes += size - self._held.get(one, 0)
        self._held[one] = size
        while self._bytes > MOST_ABANDONED_BYTES:
            newest = next(reversed(self._held))
            self.release(newest)
            newest.give_up()

    def release(self, one: Disconnect) -> None:
        self._bytes -= self._held.pop(one, 0)


class Disconnect:
    """Listens for the client's leaving, and ends the task that serves it when its time is over.

    Who leaves before the provider has begun to answer is not waited for: `has_answer` says when it has.
    """

    def __init__(self, seconds: float, abandoned: Abandoned) -> None:
        self._seconds = seconds
        self._abandoned = abandoned
        self._serving: asyncio.Task[Any] | None = None
        self._scope: Scope | None = None
        self.has_answer = False
        self._listening: asyncio.Task[None] | None = None
        self._waiting: asyncio.TimerHandle | None = None
        self._deadline: asyncio.TimerHandle | None = None
        self.has_left = False
        self.is_over = False

    def listen(self, scope: Scope, receive: Receive) -> None:
        """From when the whole request was read: all that can still be heard of the client is that it leaves."""
        self._serving = asyncio.current_task()
        if ON_DISCONNECT not in scope:
            self._waiting = asyncio.get_running_loop().call_later(LISTEN_AFTER_SECONDS, self._begin, receive)
        elif scope[ON_DISCONNECT] is HAS_LEFT:
            self._leave()
        else:
            self._scope, scope[ON_DISCONNECT] = scope, self._leave

    def _begin(self, receive: Receive) -> None:
        self._listening = asyncio.ensure_future(self._listen(receive))

    def stop(self) -> None:
        if self._waiting is not None:
            self._waiting.cancel()
        if self._listening is not None:
            self._listening.cancel()
        if self._deadline is not None:
            self._deadline.cancel()
        if self._scope is not None:
            self._scope[ON_DISCONNECT] = None
        if self.has_left:
            self._abandoned.release(self)

    def hold(self, size: int) -> None:
        """So much of the answer is kept by now; without a client that is counted."""
        if self.has_left and not self.is_over:
            self._abandoned.hold(self, size)

    async def _listen(self, receive: Receive) -> None:
        while (await receive())["type"] != "http.disconnect":
            pass
        self._leave()

    def _leave(self) -> None:
        self.has_left = True
        seconds = self._seconds if self.has_answer else 0.0
        self._deadline = asyncio.get_running_loop().call_later(seconds, self.give_up)

    def give_up(self) -> None:
        """For who waits, and for who is between two waits: a cancellation can be lost in what is awaited."""
        self.is_over = True
        if self._serving is not None:
            self._serving.cancel()


class Connections:
    """Those of one process."""

    def __init__(self) -> None:
        self._by_address: Counter[str] = Counter()
        self._descriptors = _descriptors()
        self._refused = 0
        self._told_at = float("-inf")
        self.held = 0

    def admit(self, address: str, server: ServerSettings, say: Say) -> bool:
        """Whether there is room for one more; if so, `leave` gives it back."""
        # Each connection may need another one to a provider.
        most = max(1, min(server.max_connections, (self._descriptors - RESERVED_DESCRIPTORS) // 2))
        if self.held >= most:
            self._refuse("all", most, say)
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
