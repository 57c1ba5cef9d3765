"""Everything a process knows about its targets and keys, and how to report the result of an attempt.

for target in health.targets(route, targets, weights, conversation, now):
    for key in health.keys.order(provider, keys, conversation, now):
        health.attempted(target, now)        the attempt begins
        health.answered(…) or health.failed(…)

The target that answered a conversation last comes first: only it can read its sealed reasoning. Otherwise the route's
order decides, or a draw by weights and the conversation's name: the same in every process. Targets with an open
breaker come last, but are tried if no other target answers.

Conversations are spread over the keys of a provider by their names, and stay with the key they began with: ciphertext
can be read only on the account that made it. A rejected or rate-limited key is suspended for a while; its conversations
use the other keys until then. Keys are identified by a digest and never shown.
"""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Callable, Sequence, Set
from hashlib import sha256

from thoughtline.failover.breakers import Breakers
from thoughtline.failover.failures import TargetFailure
from thoughtline.values.digests import secret_digest

MAX_CONVERSATIONS = 10_000

REJECTED_SECONDS = 600.0
"""How long a rejected key is suspended: someone has to pay a bill or change a setting."""

LIMITED_SECONDS = 20.0
"""How long a rate-limited key is suspended, unless the provider says otherwise."""

MAX_KEYS = 4096
"""Of other processes; this process's own keys come from settings."""


class Affinity:
    """The target or key that each conversation used last; the least recently used conversations are forgotten."""

    def __init__(self, most: int = MAX_CONVERSATIONS) -> None:
        self._most = most
        self._known: OrderedDict[str, str] = OrderedDict()

    def get(self, conversation: str) -> str | None:
        found = self._known.get(conversation)
        if found is not None:
            self._known.move_to_end(conversation)
        return found

    def keep(self, conversation: str, name: str) -> None:
        self._known[conversation] = name
        self._known.move_to_end(conversation)
        if len(self._known) > self._most:
            self._known.popitem(last=False)

    def forget(self, conversation: str, name: str) -> None:
        """It failed there: the conversation stays with the next one that answers."""
        if self._known.get(conversation) == name:
            del self._known[conversation]


def ranked(names: Sequence[str], weights: Sequence[int], conversation: str) -> list[str]:
    """Names by weight, drawn for a conversation: over many, each comes first as often as its weight says.

    Without weights they stay in their order. A name of weight 0 comes after all others. The draw of one name does not
    depend on the others: removing one moves only its own conversations.
    """
    if not weights:
        return list(names)
    draws = [_draw(name, weight, conversation) for name, weight in zip(names, weights, strict=True)]
    return [names[at] for at in sorted(range(len(names)), key=draws.__getitem__)]


def _draw(name: str, weight: int, conversation: str) -> float:
    """Weighted rendezvous hashing (Schindelhauer and Schomaker, 2005): smaller is sooner."""
    if weight <= 0:
        return math.inf
    number = int.from_bytes(sha256(f"{len(name)}:{name}{conversation}".encode()).digest()[:8], "big")
    return -math.log((number + 1) / (2**64 + 1)) / weight


def arranged(names: list[str], stays_with: str | None, ready: Set[str], *, until: Callable[[str], float]) -> list[str]:
    """Names with the preferred one in front; those that are not ready come last, the soonest first."""
    if stays_with in names:
        names.remove(stays_with)
        names.insert(0, stays_with)
    return [name for name in names if name in ready] + sorted((name for name in names if name not in ready), key=until)


class KeyRing:
    """The known state of the keys of all providers.

    `aside` says until when keys are suspended, by name. `on_change` is called with the name of a key that is suspended
    or good again.
    """

    def __init__(self) -> None:
        self.aside: dict[str, float] = {}
        self._affinity = Affinity()
        self.on_change: Callable[[str], None] = lambda name: None

    def adopt(self, name: str, until: float) -> None:
        """Adopt the state of a key from another process: until when it is suspended, or 0 if it is good again."""
        if not until:
            self.aside.pop(name, None)
        elif name in self.aside or len(self.aside) < MAX_KEYS:
            self.aside[name] = until

    def order(
        self, provider: str, keys: Sequence[str], conversation: str, now: float, made_with: str | None = None
    ) -> list[str]:
        """All keys of a provider, the one to try in front; suspended ones last, the soonest first.

        `made_with` is the key that made the latest turn, if its record says so.
        """
        names = {_name(provider, key): key for key in keys}
        drawn = ranked(list(names), [1] * len(names), conversation)
        known = self._affinity.get(f"{provider}/{conversation}")
        stays_with = known if made_with is None else _name(provider, made_with)
        ready = {name for name in names if self.aside.get(name, 0.0) <= now}
        return [names[name] for name in arranged(drawn, stays_with, ready, until=self.aside.__getitem__)]

    def is_aside(self, provider: str, key: str, now: float) -> bool:
        return self.aside.get(_name(provider, key), 0.0) > now

    def succeeded(self, provider: str, key: str, conversation: str) -> None:
        name = _name(provider, key)
        if self.aside.pop(name, 0.0):
            self.on_change(name)
        self._affinity.keep(f"{provider}/{conversation}", name)

    def failed(self, provider: str, key: str, failure: TargetFailure, now: float) -> bool:
        """Suspend a key if the failure was its fault; returns whether it was."""
        if failure.kind not in ("key_rejected", "busy"):
            return False
        usual = REJECTED_SECONDS if failure.kind == "key_rejected" else LIMITED_SECONDS
        pause = failure.pause_seconds if failure.pause_seconds is not None else usual
        name = _name(provider, key)
        self.aside[name] = now + pause
        self.on_change(name)
        return True


def _name(provider: str, key: str) -> str:
    return f"{provider}:{secret_digest(key).hex()[:32]}"


class TargetHealth:
    """Breakers, the affinity of each conversation, and keys."""

    def __init__(self) -> None:
        self.breakers = Breakers()
        self.attempted = self.breakers.attempted
        self.keys = KeyRing()
        self._affinity = Affinity()

    def targets(
        self,
        route: str,
        targets: Sequence[str],
        weights: Sequence[int],
        conversation: str,
        now: float,
        made_by: str | None = None,
    ) -> list[str]:
        """The targets of a route in the order to try them. `made_by` made the latest turn, if its record says so."""
        stays_with = made_by if made_by in targets else self._affinity.get(f"{route}/{conversation}")
        names = ranked(targets, weights, conversation)
        ready = {name for name in names if self.breakers.admits(name, now)}
        return arranged(names, stays_with, ready, until=self.breakers.opens_at)

    def answered(self, route: str, target: str, conversation: str) -> None:
        """The conversation, if it has a name, stays with this target."""
        self.breakers.succeeded(target)
        if conversation:
            self._affinity.keep(f"{route}/{conversation}", target)

    def refused(self, target: str) -> None:
        """The target rejected the request: it is healthy, but the conversation does not have to stay with it."""
        self.breakers.succeeded(target)

    def failed(self, route: str, target: str, conversation: str, failure: TargetFailure, now: float) -> None:
        """The next one is tried; a rejected key says nothing about its target."""
        if failure.kind != "key_rejected":
            self.breakers.failed(target, failure, now)
        self._affinity.forget(f"{route}/{conversation}", target)
