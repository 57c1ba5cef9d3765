"""Records that could not be written yet, in the order they came: bounded, oldest out first, losses counted."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable

from thoughtline.records import Record, encode_record
from thoughtline.stores.base import Filter
from thoughtline.stores.memory_index import Place

MAX_ENTRIES = 10_000
MAX_BYTES = 64 * 2**20
MAX_SECONDS = 3600.0
"""An outage of an hour is bridged. Less than a deletion is remembered, which so outlives all that waits."""


class Waiting:
    """A queue of records, each once."""

    def __init__(self, max_entries: int = MAX_ENTRIES, max_bytes: int = MAX_BYTES) -> None:
        self._max_entries = max_entries
        self._max_bytes = max_bytes
        self._records: OrderedDict[Place, tuple[Record, int, float]] = OrderedDict()
        self._bytes = 0
        self.lost = 0

    def __len__(self) -> int:
        return len(self._records)

    def __contains__(self, place: Place) -> bool:
        return place in self._records

    def add(self, records: Iterable[Record], now: float) -> None:
        for record in records:
            place = (record.provenance.tenant, record.id)
            if place not in self._records:
                size = len(encode_record(record))
                self._records[place] = (record, size, now)
                self._bytes += size
        while len(self._records) > self._max_entries or self._bytes > self._max_bytes:
            self._remove(next(iter(self._records)))
            self.lost += 1

    def first(self, count: int) -> list[Record]:
        return [record for record, _, _ in list(self._records.values())[:count]]

    def settle(self, records: Iterable[Record]) -> None:
        """They are written, or no longer to be written."""
        for record in records:
            self._remove((record.provenance.tenant, record.id))

    def postpone(self, records: Iterable[Record]) -> None:
        """Others first: one that the store will not take must not stand before all the rest."""
        for record in records:
            place = (record.provenance.tenant, record.id)
            if place in self._records:
                self._records.move_to_end(place)

    def drop_fitting(self, where: Filter) -> None:
        self.settle([record for record, _, _ in list(self._records.values()) if where.fits(record)])

    def drop_old(self, now: float) -> None:
        old = [place for place, (_, _, since) in self._records.items() if now - since > MAX_SECONDS]
        for place in old:
            self._remove(place)
        self.lost += len(old)

    def _remove(self, place: Place) -> None:
        held = self._records.pop(place, None)
        if held is not None:
            self._bytes -= held[1]
