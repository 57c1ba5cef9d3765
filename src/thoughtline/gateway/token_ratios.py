"""How many tokens a model counts for one of our estimates: learned from its answers, to correct the next estimate.

Only of models whose tokens somebody asks for, and of one answer in ten: an estimate reads a whole request.
"""

from __future__ import annotations

import math

from msgspec import Struct

EVERY = 10
_MOST_TARGETS = 256
_MARGIN = 1.05
"""A client that hears too little compacts too late."""

_LEAST, _MOST = 0.25, 4.0
"""Beyond them something else is counted: pictures by another measure, a prompt that the provider adds."""

_WEIGHT = 0.3


class _Ratio(Struct):
    value: float = 0.0
    answers: int = 0


class TokenRatios:
    """By the name of a target."""

    def __init__(self) -> None:
        self.targets: dict[str, _Ratio] = {}

    def corrected(self, target: str, estimate: int) -> int:
        """An estimate that somebody asked for, as the model would count; the same until something was learned."""
        known = self.targets.get(target)
        if known is None and len(self.targets) < _MOST_TARGETS:
            self.targets[target] = _Ratio()
        return math.ceil(estimate * known.value * _MARGIN) if known is not None and known.value else estimate

    def wants(self, target: str) -> bool:
        """Whether the next answer of a target is to be learned from."""
        known = self.targets.get(target)
        if known is None:
            return False
        known.answers += 1
        return known.answers % EVERY == 1

    def learn(self, target: str, estimate: int, counted: int) -> None:
        """What a provider counted for a request that was estimated so."""
        known = self.targets.get(target)
        if known is None or estimate <= 0 or counted <= 0:
            return
        ratio = min(max(counted / estimate, _LEAST), _MOST)
        known.value = ratio if not known.value else known.value + _WEIGHT * (ratio - known.value)
