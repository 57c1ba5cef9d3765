"""Which of a provider's keys a conversation is asked with.

Conversations are spread over the keys by their names, and stay with the key they began with: ciphertext can be read
only on the account that made it. A key that is rejected is put aside for a while, and so is one that is told to wait;
the conversations it had go to the others until then. Keys are known by a digest: none is ever told.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from thoughtline.failover.choosing import Affinity, ranked
from thoughtline.failover.failures import TargetFailure
from thoughtline.values.digests import secret_digest

REJECTED_SECONDS = 600.0
"""How long a key that was refused is left alone: somebody has to pay a bill or change a setting."""

LIMITED_SECONDS = 20.0
"""How long one that hit its rate limit is, unless the provider says otherwise."""

MOST_KEYS = 4096
"""Of other processes; a provider's own come from settings."""


class KeyRing:
    """The keys of all providers, as far as anything is known about them.

    `on_change` is called with the name of a key that was put aside, or is good again.
    """

    def __init__(self) -> None:
        self._aside: dict[str, float] = {}
        self._affinity = Affinity()
        self.on_change: Callable[[str], None] = lambda name: None

    @property
    def aside(self) -> Mapping[str, float]:
        """Until when keys are left alone, by their names."""
        return self._aside

    def adopt(self, name: str, until: float) -> None:
        """What another process knows of a key: until when it is left alone, or 0 if it is good again."""
        if not until:
            self._aside.pop(name, None)
        elif name in self._aside or len(self._aside) < MOST_KEYS:
            self._aside[name] = until

    def order(
        self, provider: str, keys: Sequence[str], conversation: str, now: float, made_with: str | None = None
    ) -> list[str]:
        """All keys of a provider, the one to ask with in front; those that are put aside last, the soonest first.

        `made_with` made the latest turn, if its record says so.
        """
        names = {_name(provider, key): key for key in keys}
        drawn = ranked(list(names), [1] * len(names), conversation)
        known = self._affinity.get(f"{provider}/{conversation}")
        stays_with = known if made_with is None else _name(provider, made_with)
        if stays_with in names:
            drawn.remove(stays_with)
            drawn.insert(0, stays_with)
        ready = [name for name in drawn if self._aside.get(name, 0.0) <= now]
        rest = sorted((name for name in drawn if name not in ready), key=lambda name: self._aside[name])
        return [names[name] for name in (*ready, *rest)]

    def is_aside(self, provider: str, key: str, now: float) -> bool:
        return self._aside.get(_name(provider, key), 0.0) > now

    def succeeded(self, provider: str, key: str, conversation: str) -> None:
        name = _name(provider, key)
        if self._aside.pop(name, 0.0):
            self.on_change(name)
        self._affinity.keep(f"{provider}/{conversation}", name)

    def failed(self, provider: str, key: str, failure: TargetFailure, now: float) -> bool:
        """Put a key aside if it was the key that failed; whether it was."""
        if failure.kind not in ("key_rejected", "busy"):
            return False
        usual = REJECTED_SECONDS if failure.kind == "key_rejected" else LIMITED_SECONDS
        pause = failure.pause_seconds if failure.pause_seconds is not None else usual
        name = _name(provider, key)
        self._aside[name] = now + pause
        self.on_change(name)
        return True


def _name(provider: str, key: str) -> str:
    return f"{provider}:{secret_digest(key).hex()[:32]}"
