"""The last requests of other replicas, by a store that they share: each process writes its own there now and then.

What is written is what the admin API tells of them, without bodies, packed as records are: encrypted if the store is.
A process writes its newest into a few notes that take turns, so what it has there is bounded.
"""

from __future__ import annotations

import logging

import msgspec

from thoughtline.gateway.admin.request_answers import RequestView
from thoughtline.stores import Note, Store, is_shared
from thoughtline.stores.packing import Packer
from thoughtline.values.errors import ThoughtlineError

log = logging.getLogger(__name__)

NAMESPACE = "requests"
KEPT_SECONDS = 24 * 3600.0
PER_NOTE = 32
NOTES = 8

_decoder = msgspec.json.Decoder(list[RequestView])


class Replicas:
    """This process among those that share its store. `told` is how many of its requests it has written."""

    def __init__(self, name: str, store_url: str, keys: tuple[str | None, str | None]) -> None:
        self._name = name
        self._packer = Packer(*keys) if is_shared(store_url) else None
        self._page: list[RequestView] = []
        self._number = 0
        self.told = 0

    @property
    def are_there(self) -> bool:
        """Whether the store is one that others may share."""
        return self._packer is not None

    async def tell(self, store: Store, views: list[RequestView], now: float) -> None:
        """Write requests that are over, oldest first."""
        assert self._packer is not None
        if len(self._page) + len(views) > PER_NOTE:
            self._page, self._number = [], (self._number + 1) % NOTES
        self._page = [*self._page, *views][-PER_NOTE:]
        value = self._packer.seal(msgspec.json.encode(self._page), NAMESPACE.encode())
        await store.put_note(Note(NAMESPACE, f"{self._name}.{self._number}", value, now + KEPT_SECONDS))

    async def views(self, store: Store) -> list[RequestView]:
        """The requests of all processes but this one."""
        if self._packer is None:
            return []
        found: list[RequestView] = []
        for note in await store.notes(NAMESPACE):
            if not note.key.startswith(f"{self._name}."):
                try:
                    found += _decoder.decode(self._packer.unseal(note.value, NAMESPACE.encode()))
                except (msgspec.DecodeError, ThoughtlineError) as problem:  # of another version, or another key
                    log.warning("requests of a replica can't be read: %s", type(problem).__name__)
        return found
