"""The key of envelopes: the same for all that share a store, as soon as a store is available."""

from __future__ import annotations

import time

from tests.gateway.gateways import running
from thoughtline.gateway.state import envelope_key, with_envelope_key
from thoughtline.settings import Settings
from thoughtline.stores import MemoryStore, Note, StoreSettings
from thoughtline.values.errors import StoreUnavailable


def test_replicas_that_begin_at_the_same_moment_seal_alike(shared_url: str) -> None:
    """Each may have found no key and made one: the stored one soon applies to all."""
    with running({}, store_url=shared_url) as one, running({}, store_url=shared_url) as other:
        assert one.state.services.envelope_key == other.state.services.envelope_key != b""
        one.app.state = with_envelope_key(one.state, b"made in the same moment")
        for gateway in (one, other):
            gateway.wait_for(gateway.app.refresh())
        assert one.state.services.envelope_key == other.state.services.envelope_key != b"made in the same moment"


class Ailing(MemoryStore):
    """Returns no notes while it is down."""

    is_down = True

    async def notes(self, namespace: str) -> tuple[Note, ...]:
        if self.is_down:
            raise StoreUnavailable("nobody answers")
        return await super().notes(namespace)


async def test_a_store_that_is_down_at_the_start() -> None:
    """A process seals with its own key, which is stored when the store is back; the next one finds it there."""
    store = Ailing(StoreSettings(), time.time)
    own = await envelope_key(Settings(), store)
    assert await envelope_key(Settings(), store, own) == own
    store.is_down = False
    assert await envelope_key(Settings(), store, own) == own
    assert await envelope_key(Settings(), store) == own


async def test_the_key_of_an_encrypted_store() -> None:
    """All gateways with it use the same key, with nothing in the store."""
    settings = Settings(store=StoreSettings(encryption_key="0123456789abcdef0123456789abcdef"))
    store = Ailing(StoreSettings(), time.time)
    assert await envelope_key(settings, store) == await envelope_key(settings, store, b"own")
