"""Packed records: compact, and readable only with a known key."""

from __future__ import annotations

import os
import random
import re
import threading
from base64 import b64encode
from pathlib import Path
from typing import ClassVar

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from tests.stores.places import SETTINGS, START, Place, found, sqlite_url, turn
from thoughtline.stores import open_store
from thoughtline.stores.durable import LONG_BYTES
from thoughtline.stores.packing import COMPRESS_ABOVE, MAX_UNPACKED, Packer, decode_key
from thoughtline.stores.sqlite import SqliteStore
from thoughtline.values.errors import DecodeError, StoreRefused, WrongKey
from thoughtline.values.records import encode_record

A, B, C = (b64encode(bytes([letter]) * 32).decode() for letter in b"ABC")
WORDS = "the quick brown fox jumps over the lazy dog and thinks about it "


@given(st.text(max_size=3000), st.sampled_from([(None, None), (A, None), (B, A)]))
def test_what_is_packed_comes_back(thought: str, keys: tuple[str | None, str | None]) -> None:
    """Of any length, with and without a key."""
    record = turn(1, thought=thought.encode("utf-8", "replace").decode())
    packer = Packer(*keys)
    assert packer.unpack(packer.pack(record, b"id"), b"id") == record


def test_long_records_are_compressed() -> None:
    """Short ones are not changed."""
    short, long = turn(1), turn(1, thought=WORDS * 40)
    assert len(encode_record(short)) < COMPRESS_ABOVE < len(encode_record(long))
    assert Packer().pack(short, b"")[1:] == encode_record(short)
    assert len(Packer().pack(long, b"")) < len(encode_record(long)) / 3


def test_no_content_shows_in_an_encrypted_record() -> None:
    """And the same record looks different each time."""
    packer = Packer(A)
    packed = packer.pack(turn(1, thought="secret"), b"id")
    assert b"secret" not in packed
    assert packed != packer.pack(turn(1, thought="secret"), b"id")


def test_the_previous_key_still_opens() -> None:
    """A record packed with it counts as stale."""
    old, both, new = Packer(A), Packer(B, A), Packer(B)
    packed = old.pack(turn(1), b"id")
    assert both.unpack(packed, b"id") == turn(1)
    assert old.is_current(packed)
    assert not both.is_current(packed)
    assert new.unpack(both.pack(turn(1), b"id"), b"id") == turn(1)


@pytest.mark.parametrize("packer", [Packer(), Packer(B), Packer(C, B)], ids=["none", "other", "two others"])
def test_a_wrong_key_is_named(packer: Packer) -> None:
    """The error names the record's key and the known ones; it never shows a key."""
    packed = Packer(A).pack(turn(1), b"id")
    with pytest.raises(WrongKey, match=r"encrypted with key [0-9a-f]{8}; the keys we have: ") as caught:
        packer.unpack(packed, b"id")
    assert not re.search("|".join(re.escape(key) for key in (A, B, C)), str(caught.value))


def test_bodies_cannot_be_exchanged() -> None:
    """A body belongs to its row."""
    with pytest.raises(DecodeError):
        Packer(A).unpack(Packer(A).pack(turn(1), b"one row"), b"another row")


@given(st.data(), st.sampled_from([None, A]))
def test_damage_is_an_error_with_a_name(data: st.DataObject, key: str | None) -> None:
    """Cut or changed anywhere: `DecodeError` or `WrongKey`, or (unencrypted) another record, but no other error."""
    packed = bytearray(Packer(key).pack(turn(1, thought=WORDS * 20), b"id"))
    at = data.draw(st.integers(0, len(packed) - 1))
    packed[at] ^= data.draw(st.integers(1, 255))
    packed = packed[: data.draw(st.integers(0, len(packed)))]
    try:
        assert Packer(key).unpack(bytes(packed), b"id") is not None
        assert key is None
    except (DecodeError, WrongKey):
        pass


@pytest.mark.parametrize("size", [MAX_UNPACKED + 1, 2 * MAX_UNPACKED])
def test_a_record_that_claims_to_be_huge_is_not_read(size: int) -> None:
    """A few bytes can't fill the memory."""
    body = zstandard.ZstdCompressor().compress(bytes(size))
    assert len(body) < size / 1000
    with pytest.raises(DecodeError, match="claims"):
        Packer().unpack(b"\x01" + body, b"id")


@pytest.mark.parametrize("text", ["", "short", "x" * 64, b64encode(b"x" * 31).decode(), b64encode(b"x" * 33).decode()])
def test_a_key_that_is_none_is_refused(text: str) -> None:
    """The error says how to make one, without showing the value."""
    with pytest.raises(StoreRefused, match="openssl rand") as caught:
        decode_key(text)
    assert not text or text not in str(caught.value)


def test_keys_are_read_in_both_writings() -> None:
    """Base64 and hexadecimal."""
    key = os.urandom(32)
    assert decode_key(key.hex()) == decode_key(b64encode(key).decode()) == key


def test_a_previous_key_alone_is_refused() -> None:
    """It would encrypt nothing."""
    with pytest.raises(StoreRefused):
        Packer(None, A)


async def test_keys_change_without_loss(durable: Place) -> None:
    """With both keys everything is readable; records used in the meantime also with the new key alone."""
    old = await durable.open(replace(SETTINGS, encryption_key=A))
    await old.save([turn(1), turn(2)])
    await old.close()
    both = await durable.open(replace(SETTINGS, encryption_key=B, previous_encryption_key=A))
    assert await found(both, 1) == (turn(1),)
    await both.close()
    new = await durable.open(replace(SETTINGS, encryption_key=B))
    assert await found(new, 1) == (turn(1),)
    assert await found(new, 2) == ()
    assert (await new.stats()).unreadable == 1


@pytest.mark.parametrize("keys", [(None, None), (B, None), (C, B)], ids=["none", "other", "two others"])
async def test_a_store_does_not_open_with_a_wrong_key(shared: Place, keys: tuple[str | None, str | None]) -> None:
    """A clear refusal at the start, not a miss on every request."""
    store = await shared.open(replace(SETTINGS, encryption_key=A))
    await store.close()
    with pytest.raises(WrongKey):
        await shared.make(replace(SETTINGS, encryption_key=keys[0], previous_encryption_key=keys[1])).open()


async def test_encryption_can_be_switched_on(durable: Place) -> None:
    """Unencrypted records are readable, and repacked on their first use."""
    await (await durable.open()).save([turn(1)])
    store = await durable.open(replace(SETTINGS, encryption_key=A))
    assert await found(store, 1) == (turn(1),)
    await store.save([turn(2)])
    assert await found(store, 2) == (turn(2),)


@pytest.mark.parametrize("key", [None, A], ids=["clear", "encrypted"])
async def test_files_are_for_their_owner_alone(tmp_path: Path, key: str | None) -> None:
    """Mode 0600 for each; with a key none of them shows reasoning."""
    store = await open_store(sqlite_url(tmp_path), replace(SETTINGS, encryption_key=key))
    await store.save([turn(1, thought="xyzzy")])
    files = [path for path in (tmp_path / "deep").iterdir() if path.is_file()]
    names = {path.name.partition("-arrivals-")[0] for path in files}
    assert (names, len(files)) == ({"thoughts.db", "thoughts.db-wal", "thoughts.db-shm"}, 6)
    assert {path.stat().st_mode & 0o777 for path in files} == {0o600}
    assert any(b"xyzzy" in path.read_bytes() for path in files) is (key is None)
    await store.close()


async def test_long_records_are_packed_and_unpacked_in_a_thread(tmp_path: Path) -> None:
    """So they block no other request; they are found unchanged, with and without a key."""

    class Watched(Packer):
        threads: ClassVar[set[str]] = set()

        def seal(self, body: bytes, identity: bytes) -> bytes:
            self.threads.add(threading.current_thread().name)
            return super().seal(body, identity)

        def unseal(self, data: bytes, identity: bytes) -> bytes:
            self.threads.add(threading.current_thread().name)
            return super().unseal(data, identity)

    long = turn(1, thought=random.Random(1).randbytes(LONG_BYTES).hex())
    here = threading.current_thread().name
    for key in (None, A):
        store = SqliteStore(f"sqlite:///{tmp_path}/{bool(key)}.db", SETTINGS, lambda: START, Watched(key))
        await store.open()
        Watched.threads.clear()
        await store.save([long])
        assert (await store.find("tenant", long.keys))[long.keys[0]] == (long,)
        assert here not in Watched.threads
        await store.save([turn(2)])
        assert here in Watched.threads
        await store.close()
