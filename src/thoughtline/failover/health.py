"""All that a process knows about its targets and keys, and the two things that can be told of an attempt.

for target in health.targets(route, targets, weights, conversation, now):
    for key in health.keys.order(provider, keys, conversation, now):
        health.asked(target, now)            the attempt begins
        health.answered(…) or health.failed(…)
"""

from __future__ import annotations

from collections.abc import Sequence

from thoughtline.failover.breakers import Breakers
from thoughtline.failover.choosing import Affinity, order
from thoughtline.failover.failures import TargetFailure
from thoughtline.failover.keys import KeyRing


class TargetHealth:
    """Breakers, what each conversation stays with, and keys."""

    def __init__(self) -> None:
        self.breakers = Breakers()
        self.asked = self.breakers.asked
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
        """The targets of a route in the order to ask them. `made_by` made the latest turn, if its record says so."""
        stays_with = made_by if made_by in targets else self._affinity.get(f"{route}/{conversation}")
        return order(targets, weights, conversation, stays_with=stays_with, breakers=self.breakers, now=now)

    def answered(self, route: str, target: str, conversation: str) -> None:
        """The conversation, if it has a name, stays with this target."""
        self.breakers.succeeded(target)
        if conversation:
            self._affinity.keep(f"{route}/{conversation}", target)

    def refused(self, target: str) -> None:
        """It answered that the request is wrong: nothing against the target, and nothing to stay with it for."""
        self.breakers.succeeded(target)

    def failed(self, route: str, target: str, conversation: str, failure: TargetFailure, now: float) -> None:
        """The next one is asked; a rejected key says nothing about its target."""
        if failure.kind != "key_rejected":
            self.breakers.failed(target, failure, now)
        self._affinity.forget(f"{route}/{conversation}", target)
