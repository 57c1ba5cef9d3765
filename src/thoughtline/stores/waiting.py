"""Records that the durable store has not acknowledged yet: being saved, or waiting for a retry.

    begin ─▶ on its way ─▶ settle               the durable store has it
                     └────────▶ put_off ─▶ queue     not saved; tried again, in order of arrival

The number of records on their way is limited by concurrent saves. The queue is bounded: the oldest are dropped first,
and losses are counted.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable
from itertools import islice
from typing import TypeAlias

from thoughtline.stores.base import MAX_PER_KEY, Filter
from thoughtline.stores.memory import Place
from thoughtline.values.records import Key, Record, encode_record

MAX_ENTRIES = 10_000
MAX_BYTES = 64 * 2**20
MAX_SECONDS = 3600.0
"""Bridges an outage of an hour. It is shorter than deletions are kept, so they outlast all waiting records."""


_Held: TypeAlias = tuple[Record, float, int]
"""A record, since when it waits, and its size if it waits for a retry."""


class Waiting:
    """Records, each once, found by their keys."""

    def __init__(self) -> None:
        self._on_its_way: dict[Place, _Held] = {}
        self._queue: OrderedDict[Place, _Held] = OrderedDict()
        self._by_key: dict[tuple[str, Key], dict[Place, _Held]] = {}
        self._bytes = 0
        self.lost = 0

    def __len__(self) -> int:
        return len(self._on_its_way) + len(self._queue)

    def __contains__(self, place: Place) -> bool:
        return place in self._on_its_way or place in self._queue

    def find(self, tenant: str, key: Key, since: float) -> list[Record]:
        """Return the latest records of a key that arrived after `since`."""
        sharing = self._by_key.get((tenant, key))
        latest = islice(reversed(sharing.values()), MAX_PER_KEY) if sharing else ()
        return [record for record, at, _ in latest if at > since]

    def begin(self, records: Iterable[Record], now: float) -> None:
        """Add records that are being saved. One that is already waiting stays so until it is settled."""
        for record in records:
            place = _place(record)
            if place not in self:
                held = self._on_its_way[place] = (record, now, 0)
                for key in record.keys:
                    self._by_key.setdefault((place[0], key), {})[place] = held

    def put_off(self, records: Iterable[Record]) -> None:
        """Queue records that were not saved for a retry, except those that were deleted in the meantime."""
        for record in records:
            place = _place(record)
            if (held := self._on_its_way.pop(place, None)) is not None:
                size = len(encode_record(record))
                self._queue[place] = (record, held[1], size)
                self._bytes += size
        while len(self._queue) > MAX_ENTRIES or self._bytes > MAX_BYTES:
            self._remove(next(iter(self._queue)))
            self.lost += 1

    def put_off_all(self) -> None:
        """Queue all records being saved, because no caller waits for them any more."""
        self.put_off([record for record, _, _ in self._on_its_way.values()])

    def first(self, count: int) -> list[Record]:
        """Return the first records to retry."""
        return [record for record, _, _ in islice(self._queue.values(), count)]

    def settle(self, records: Iterable[Record]) -> None:
        """Remove records that are written, or need not be written any more."""
        for record in records:
            self._remove(_place(record))

    def postpone(self, record: Record) -> None:
        """Move a record to the end, so that one the store refuses does not block all others."""
        if (place := _place(record)) in self._queue:
            self._queue.move_to_end(place)

    def drop_fitting(self, where: Filter) -> None:
        records = [held[0] for held in (*self._on_its_way.values(), *self._queue.values())]
        self.settle([record for record in records if where.fits(record)])

    def drop_old(self, now: float) -> None:
        old = [place for place, (_, since, _) in self._queue.items() if now - since > MAX_SECONDS]
        for place in old:
            self._remove(place)
        self.lost += len(old)

    def _remove(self, place: Place) -> None:
        held = self._on_its_way.pop(place, None) or self._queue.pop(place, None)
        if held is not None:
            self._bytes -= held[2]
            for key in held[0].keys:
                sharing = self._by_key.get((place[0], key), {})
                sharing.pop(place, None)
                if not sharing:
                    self._by_key.pop((place[0], key), None)


def _place(record: Record) -> Place:
    return (record.provenance.tenant, record.id)
