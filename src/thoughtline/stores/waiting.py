"""Records that the durable store has not acknowledged yet: on their way to it, or waiting to be tried again.

    begin ─▶ on its way ─▶ settle               the durable store has it
                └────────▶ put_off ─▶ queue     it did not take it; tried again, in the order they came

What is on its way is as much as there are saves at once. The queue is bounded: oldest out first, losses counted.
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
"""An outage of an hour is bridged. Less than a deletion is remembered, which so outlives all that waits."""


_Held: TypeAlias = tuple[Record, float, int]
"""A record, since when it waits, and its size where it is to be tried again."""


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
        """The latest records of a key that came after `since`."""
        sharing = self._by_key.get((tenant, key))
        latest = islice(reversed(sharing.values()), MAX_PER_KEY) if sharing else ()
        return [record for record, at, _ in latest if at > since]

    def begin(self, records: Iterable[Record], now: float) -> None:
        """They are on their way. One that waits already goes on waiting until it is settled."""
        for record in records:
            place = _place(record)
            if place not in self:
                held = self._on_its_way[place] = (record, now, 0)
                for key in record.keys:
                    self._by_key.setdefault((place[0], key), {})[place] = held

    def put_off(self, records: Iterable[Record]) -> None:
        """They did not arrive, and are to be tried again; but for those that were deleted on their way."""
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
        """Nobody waits any more for what is on its way."""
        self.put_off([record for record, _, _ in self._on_its_way.values()])

    def first(self, count: int) -> list[Record]:
        """Of those that are to be tried again."""
        return [record for record, _, _ in islice(self._queue.values(), count)]

    def settle(self, records: Iterable[Record]) -> None:
        """They are written, or no longer to be written."""
        for record in records:
            self._remove(_place(record))

    def postpone(self, record: Record) -> None:
        """Others first: one that the store will not take must not stand before all the rest."""
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
