"""What finds leave to be written by the next cleaning: renewals, and records packed anew under the current key.

It is kept until it is written, within bounds: what is beyond them is noted by a later use.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from thoughtline.stores.base import RENEW_AFTER
from thoughtline.stores.packing import Packer
from thoughtline.stores.rows import Hit

MAX_RENEWALS = 100_000
"""Some megabytes of numbers; a cleaning comes every minute, and early after much writing."""

MAX_REPACKED_BYTES = 16 * 2**20


class Batch(NamedTuple):
    """Numbers of records to renew, and the new bytes of others, both in order."""

    renewals: list[int]
    repacked: list[tuple[int, bytes]]


class Uses:
    """The uses of one store since they were last written."""

    def __init__(self, packer: Packer, ttl_seconds: float) -> None:
        self._packer = packer
        self._renew_below = ttl_seconds * (1 - RENEW_AFTER)
        self._renewals: set[int] = set()
        self._repacked: dict[int, bytes] = {}
        self._repacked_bytes = 0

    def note(self, hits: Iterable[Hit], now: float) -> None:
        fresh_after = now + self._renew_below
        for hit in hits:
            if hit.expires_at < fresh_after and len(self._renewals) < MAX_RENEWALS:
                self._renewals.add(hit.seq)
            if not self._packer.is_current(hit.data):
                self._repack(hit)

    def batch(self) -> Batch:
        return Batch(sorted(self._renewals), sorted(self._repacked.items()))

    def settle(self, batch: Batch) -> None:
        """They are written."""
        self._renewals.difference_update(batch.renewals)
        for seq, data in batch.repacked:
            if self._repacked.pop(seq, None) is not None:
                self._repacked_bytes -= len(data)

    def _repack(self, hit: Hit) -> None:
        if hit.seq in self._repacked or self._repacked_bytes + len(hit.data) > MAX_REPACKED_BYTES:
            return
        packed = self._packer.repack(hit.data, hit.identity)
        if packed is not None:
            self._repacked[hit.seq] = packed
            self._repacked_bytes += len(packed)
