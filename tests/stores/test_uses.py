"""Work that finds leave for later: kept until it is written, within limits."""

from __future__ import annotations

import sqlite3
from base64 import b64encode
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import asyncpg
import pytest
from msgspec.structs import replace

from tests.stores.places import SETTINGS, START, found, place, sqlite_url, turn
from thoughtline.stores import Filter
from thoughtline.stores.durable import MAX_RENEWALS, MAX_REPACKED_BYTES, Uses
from thoughtline.stores.packing import Packer
from thoughtline.stores.rows import Hit
from thoughtline.values.errors import StoreUnavailable

QUICK = replace(SETTINGS, timeout_seconds=2.0)
KEY = b64encode(b"K" * 32).decode()
OLD = START + SETTINGS.ttl_seconds / 2


@asynccontextmanager
async def locked(url: str) -> AsyncIterator[None]:
    """Another program locks the records."""
    if url.startswith("sqlite"):
        file = sqlite3.connect(url.removeprefix("sqlite:///"), isolation_level=None)
        file.execute("BEGIN IMMEDIATE")
        yield
        file.close()
    else:
        server = await asyncpg.connect(url)
        async with server.transaction():
            await server.execute("LOCK TABLE thoughtline.records IN EXCLUSIVE MODE")
            yield
        await server.close()


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
async def test_a_use_is_not_forgotten_when_it_cannot_be_written(
    kind: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """The next cleaning renews the record, and packs it with the current key."""
    url = sqlite_url(tmp_path) if kind == "sqlite" else str(request.getfixturevalue("postgres_url"))
    async with place(kind, url) as here:
        await (await here.open()).save([turn(1)])
        store = await here.open(replace(QUICK, encryption_key=KEY))
        here.clock.advance(SETTINGS.ttl_seconds / 2)
        assert await found(store, 1) == (turn(1),)
        async with locked(url):
            with pytest.raises(StoreUnavailable):
                await store.clean()
        await store.clean()
        here.clock.advance(SETTINGS.ttl_seconds / 2 + 1)
        assert await found(store, 1) == (turn(1),)
        (entry,) = (await store.list_entries(Filter())).entries
        assert entry.expires_at == OLD + SETTINGS.ttl_seconds


def test_uses_are_kept_until_they_are_settled() -> None:
    """Later uses stay."""
    uses = Uses(Packer(KEY), SETTINGS.ttl_seconds)
    data = Packer().pack(turn(1), b"id")
    for seq in (3, 1):
        uses.note([Hit(b"id", data, [], seq, START + 1)], START)
    batch = uses.batch()
    assert batch.renewals == [1, 3]
    assert [seq for seq, _ in batch.repacked] == [1, 3]
    assert [Packer(KEY).unpack(packed, b"id") for _, packed in batch.repacked] == [turn(1), turn(1)]
    uses.note([Hit(b"id", data, [], 2, START + 1)], START)
    uses.settle(batch)
    assert (uses.batch().renewals, [seq for seq, _ in uses.batch().repacked]) == ([2], [2])
    uses.settle(uses.batch())
    assert uses.batch() == ([], [])


def test_a_fresh_record_under_the_current_key_leaves_nothing() -> None:
    """A record is renewed when a quarter of its life has passed."""
    uses = Uses(Packer(), 100.0)
    data = Packer().pack(turn(1), b"id")
    uses.note([Hit(b"id", data, [], 1, START + 75)], START)
    assert uses.batch() == ([], [])
    uses.note([Hit(b"id", data, [], 1, START + 74)], START)
    assert uses.batch() == ([1], [])


def test_uses_are_bounded() -> None:
    """In number and in bytes; settled ones make room."""
    uses = Uses(Packer(KEY), SETTINGS.ttl_seconds)
    data = Packer().pack(turn(1, thought=" ".join(map(str, range(100_000)))), b"id")
    for seq in range(MAX_RENEWALS + 10):
        uses.note([Hit(b"id", data, [], seq, START + 1)], START)
    batch = uses.batch()
    assert len(batch.renewals) == MAX_RENEWALS
    assert 0 < sum(len(packed) for _, packed in batch.repacked) <= MAX_REPACKED_BYTES
    uses.settle(batch)
    uses.note([Hit(b"id", data, [], MAX_RENEWALS + 5, START + 1)], START)
    assert (len(uses.batch().renewals), len(uses.batch().repacked)) == (1, 1)
