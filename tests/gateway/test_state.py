"""Cached results: bounded, and only of these settings."""

from __future__ import annotations

from msgspec.structs import replace

from tests.gateway.call_counts import Client, MadeUp, with_gateway
from thoughtline.gateway.state import MAX_ENTRIES, MAX_ENTRY_BYTES, BoundedCache, with_settings

ANSWER = b'{"id":"1","model":"m","choices":[{"index":0,"message":{"content":"hi"},"finish_reason":"stop"}]}'
ASKED = b'{"model":"deepseek-v4-pro","messages":[{"role":"user","content":"hi"}]}'


def test_it_is_emptied_when_it_is_full() -> None:
    """With any number of different values, no more than the limit are kept."""
    cache: BoundedCache[int, str] = BoundedCache()
    for number in range(3 * MAX_ENTRIES):
        assert cache.keep(number, str(number)) == str(number)
        assert cache[number] == str(number)
        assert len(cache) <= MAX_ENTRIES


def test_what_is_made_of_long_values_is_not_kept() -> None:
    """Clients choose the values, and must not decide how much memory is used."""
    cache: BoundedCache[str, int] = BoundedCache()
    assert cache.keep("a", 1, MAX_ENTRY_BYTES + 1) == 1
    assert not cache
    cache.keep("a", 1, MAX_ENTRY_BYTES)
    assert cache == {"a": 1}


def test_other_settings_begin_with_empty_caches() -> None:
    """Choices and targets are computed again after a reload."""

    async def use(client: Client) -> None:
        await client.ask(ASKED)
        before = client.app.state
        caches = before.caches
        assert all((caches.routes, caches.visitors, caches.choices, caches.accounts, caches.addresses))
        client.app.state = with_settings(before, replace(before.settings, tags="lift"))
        caches = client.app.state.caches
        assert not any((caches.routes, caches.visitors, caches.choices, caches.accounts, caches.addresses))
        await client.ask(ASKED)
        (chosen,) = client.app.state.caches.choices.values()
        assert chosen.targets[0].tags == "lift"

    with_gateway(MadeUp([ANSWER]), use)
