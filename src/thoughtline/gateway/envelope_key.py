"""The key that envelopes are sealed with: the one that encrypts the store, else one that is kept in the store.

Replicas on one store, or with one `encryption_key`, open each other's envelopes.
"""

from __future__ import annotations

import logging
import secrets

from thoughtline.settings import Settings
from thoughtline.stores import Note, Store
from thoughtline.values.errors import StoreError

log = logging.getLogger(__name__)

NAMESPACE = "envelopes"
_NAME = "key"
_KEPT_UNTIL = 4_000_000_000.0


async def envelope_key(settings: Settings, store: Store, own: bytes = b"") -> bytes:
    """The key. While the store fails it is this process's own, or a new one.

    It is asked for again and again: of two replicas that began at the same moment the later one's note stands, and a
    store that failed at the start comes back.
    """
    if settings.store.encryption_key:
        return b"store " + settings.store.encryption_key.encode()
    own = own or secrets.token_bytes(32)
    try:
        found = await _kept(store)
        if found is None:
            await store.put_note(Note(NAMESPACE, _NAME, own, _KEPT_UNTIL))
            found = await _kept(store)
    except StoreError as error:
        log.warning("envelopes are sealed for this process alone: %s", error)
        found = None
    return found or own


async def _kept(store: Store) -> bytes | None:
    return next((note.value for note in await store.notes(NAMESPACE) if note.key == _NAME), None)
