"""Records that the durable store acknowledged shortly before it failed.

An engine that fails over to a replica may come back without them, because replication is mostly asynchronous. They are
written again when it is back; a store that still has them changes nothing.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence

from thoughtline.stores.base import Filter
from thoughtline.values.records import Record

SECONDS = 30.0
"""Replicas lag by a second or less. A primary that is cut off still accepts writes, which are lost when it is
replaced."""

MOST = 4000
"""Some ten megabytes, most of which memory holds anyway."""


class Acknowledged:
    """The latest records, and those that a failure has made doubtful."""

    def __init__(self) -> None:
        self._latest: deque[tuple[float, Record]] = deque(maxlen=MOST)
        self._doubted: deque[Record] = deque(maxlen=MOST)

    def add(self, records: Iterable[Record], now: float) -> None:
        latest = self._latest
        while latest and latest[0][0] <= now - SECONDS:
            latest.popleft()
        for record in records:
            latest.append((now, record))

    def doubt(self, now: float) -> None:
        """The store has failed: it may come back without the latest records."""
        self._doubted.extend(record for at, record in self._latest if at > now - SECONDS)
        self._latest.clear()

    def doubted(self, count: int) -> list[Record]:
        """Return the first records to write again."""
        return [self._doubted[at] for at in range(min(count, len(self._doubted)))]

    def settle(self, written: Sequence[Record]) -> None:
        """Drop these records, which were the first in doubt, except those that were deleted in the meantime."""
        for record in written:
            if self._doubted and self._doubted[0] is record:
                self._doubted.popleft()

    def drop_fitting(self, where: Filter) -> None:
        self._latest = deque((one for one in self._latest if not where.fits(one[1])), maxlen=MOST)
        self._doubted = deque((one for one in self._doubted if not where.fits(one)), maxlen=MOST)
