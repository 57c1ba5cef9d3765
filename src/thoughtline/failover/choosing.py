"""In which order the targets of a route are asked for one conversation.

First the one that answered it last: sealed reasoning can be read only where it was made. Else by the route's order, or
by weights, as the conversation's name decides: the same in every process. Targets that are open come last, never not
at all: if nobody else answers, they are asked.
"""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Sequence
from hashlib import sha256

from thoughtline.failover.breakers import Breakers

MOST_CONVERSATIONS = 10_000


class Affinity:
    """What each conversation was last answered by; the least recently used are forgotten."""

    def __init__(self, most: int = MOST_CONVERSATIONS) -> None:
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
        """It failed there: whoever answers next is the one to stay with."""
        if self._known.get(conversation) == name:
            del self._known[conversation]


def ranked(names: Sequence[str], weights: Sequence[int], conversation: str) -> list[str]:
    """Names by weight, as a conversation draws them: over many, each comes first as often as its weight says.

    Without weights they stay in their order. A name of weight 0 comes after all others. The draw of one name does not
    depend on the others: taking one out moves only the conversations that it had.
    """
    if not weights:
        return list(names)
    drawn = [
        (_draw(name, weight, conversation), at) for at, (name, weight) in enumerate(zip(names, weights, strict=True))
    ]
    return [names[at] for _, at in sorted(drawn)]


def order(
    targets: Sequence[str],
    weights: Sequence[int],
    conversation: str,
    stays_with: str | None,
    breakers: Breakers,
    now: float,
) -> list[str]:
    """All targets of a route, the one to ask first in front."""
    names = ranked(targets, weights, conversation)
    if stays_with in names:
        names.remove(stays_with)
        names.insert(0, stays_with)
    ready = [name for name in names if breakers.admits(name, now)]
    rest = [name for name in names if name not in ready]
    return ready + sorted(rest, key=breakers.opens_at)


def _draw(name: str, weight: int, conversation: str) -> float:
    """Weighted rendezvous hashing (Schindelhauer and Schomaker, 2005): smaller is sooner."""
    if weight <= 0:
        return math.inf
    number = int.from_bytes(sha256(f"{len(name)}:{name}{conversation}".encode()).digest()[:8], "big")
    return -math.log((number + 1) / (2**64 + 1)) / weight
