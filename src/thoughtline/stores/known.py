"""What memory knows all about: keys whose records in the durable store are all in memory too.

lineages   known for as long as the durable store's generation stays what it was
others     several records may share them, and get one more from elsewhere: known for `trust_seconds`
"""

from __future__ import annotations

from collections.abc import Iterable

from thoughtline.stores.base import Found, Generation
from thoughtline.values.records import Key, is_lineage


class KnownKeys:
    """The keys of one tenant under one generation. The next has its own; what still comes into this one is lost."""

    __slots__ = ("_lineages", "_others", "generation")

    def __init__(self, generation: Generation) -> None:
        self.generation = generation
        self._lineages: set[Key] = set()
        self._others: dict[Key, float] = {}

    def __bool__(self) -> bool:
        return bool(self._lineages or self._others)

    def missing(self, found: Found, now: float) -> list[Key]:
        """The keys of what was found here that the durable store has to be asked for."""
        lineages, others = self._lineages, self._others
        if lineages.issuperset(found) and () not in found.values():
            return []
        return [
            key
            for key, records in found.items()
            if not records or (key not in lineages and others.get(key, 0.0) <= now)
        ]

    def add(self, key: Key, until: float) -> None:
        if is_lineage(key):
            self._lineages.add(key)
        else:
            self._others[key] = until

    def forget(self, keys: Iterable[Key]) -> None:
        for key in keys:
            self._lineages.discard(key)
            self._others.pop(key, None)
