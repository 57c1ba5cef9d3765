"""Client keys: their form, their validity, and that revoked keys stay revoked."""

from __future__ import annotations

import hashlib
import re
import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from thoughtline.gateway.client_keys import NAMESPACE, ClientKeys, KeyMark, has_checksum, make_secret
from thoughtline.stores import LayeredStore, MemoryStore, Note, Store, StoreSettings, durable_store, open_store
from thoughtline.values.errors import StoreUnavailable

ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"


class Clock:
    def __init__(self) -> None:
        self.now = 1_763_200_000.0

    def __call__(self) -> float:
        return self.now


class Breakable(MemoryStore):
    """A store that can be down."""

    is_down = False

    async def notes(self, namespace: str) -> tuple[Note, ...]:
        if self.is_down:
            raise StoreUnavailable("down")
        return await super().notes(namespace)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
async def store(tmp_path: Path, clock: Clock) -> AsyncIterator[Store]:
    opened = await open_store(f"sqlite:///{tmp_path}/keys.db", clock=clock)
    yield opened
    await opened.close()


def test_what_a_key_looks_like() -> None:
    """A prefix that identifies it, 256 random bits, a checksum; all are different."""
    made = {make_secret() for _ in range(100)}
    assert len(made) == 100
    assert all(re.fullmatch(r"tl-[\w-]{43}[\w-]{6}", secret, re.ASCII) for secret in made)
    assert all(map(has_checksum, made))


@given(st.binary(min_size=32, max_size=32), st.integers(0, 51), st.sampled_from(ALPHABET))
def test_a_mistyped_key_is_detected_by_its_checksum(random: bytes, position: int, letter: str) -> None:
    """One wrong character anywhere is enough."""
    secret = make_secret(lambda _: random)
    mistyped = secret[:position] + letter + secret[position + 1 :]
    assert has_checksum(mistyped) is (mistyped == secret)


@given(st.text(max_size=60))
def test_anything_else_is_no_key(credential: str) -> None:
    """Any input is safe to check."""
    keys = ClientKeys(MemoryStore(StoreSettings(), Clock()), Clock())
    assert keys.find(credential) is None
    assert keys.find(f"tl-{credential}") is None


async def test_a_key_gets_in_until_it_is_revoked(store: Store, clock: Clock) -> None:
    """Added, found by its secret, revoked by its id or name; a second revocation does nothing."""
    keys = await ClientKeys.load(store, clock)
    assert keys.is_empty
    secret, key = await keys.add("ann", requests_per_minute=60, concurrent_streams=2)
    other = await keys.add("bob")
    assert keys.find(secret) == key
    assert (key.name, key.requests_per_minute, key.concurrent_streams) == ("ann", 60, 2)
    assert [each.name for each in await keys.revoke(key.id)] == ["ann"]
    assert await keys.revoke(key.id) == ()
    assert keys.find(secret) is None
    assert keys.find(other.secret) == other.key
    assert [each.name for each in await keys.revoke("bob")] == ["bob"]
    assert keys.find(other.secret) is None


async def test_a_gateway_whose_last_key_was_revoked_is_closed(store: Store, clock: Clock) -> None:
    """It does not become open, and neither does one that starts later."""
    keys = await ClientKeys.load(store, clock)
    await keys.add("ann", expires_at=clock() + 1)
    await keys.revoke("ann")
    clock.now += 10
    assert not keys.is_empty
    assert not (await ClientKeys.load(store, clock)).is_empty


@pytest.mark.parametrize(
    ("said", "has_key", "is_marked", "is_exposed", "expected"),
    [
        (None, False, False, False, (False, True)),
        (None, True, False, False, (True, True)),
        (None, False, True, False, (True, False)),
        (None, False, False, True, (True, True)),
        (True, False, False, False, (True, True)),
        (True, False, True, False, (True, False)),
        (False, True, True, False, (False, True)),
    ],
)
async def test_whether_a_key_is_needed(
    store: Store,
    clock: Clock,
    tmp_path: Path,
    said: bool | None,
    has_key: bool,
    is_marked: bool,
    is_exposed: bool,
    expected: tuple[bool, bool],
) -> None:
    """The setting decides; otherwise a key, or the marker of one. With the marker and no key, the keys are unknown."""
    mark = KeyMark(tmp_path / "data")
    if has_key:
        await (await ClientKeys.load(store, clock)).add("ann")
    if is_marked:
        mark.set()
    keys = await ClientKeys.load(store, clock, mark)
    keys.obey(said, is_exposed=is_exposed)
    assert (keys.are_required, keys.are_known) == expected


async def test_keys_make_the_mark_and_the_open_door_takes_it(store: Store, clock: Clock, tmp_path: Path) -> None:
    """Each gateway makes its own, wherever the key was made; and forgets its keys when there are none."""
    here, there = KeyMark(tmp_path / "here"), KeyMark(tmp_path / "there")
    gateway = await ClientKeys.load(store, clock, there)
    command = await ClientKeys.load(store, clock, here)
    secret, _ = await command.add("ann")
    assert (here.is_set, there.is_set) == (True, False)
    await gateway.refresh()
    assert (there.is_set, gateway.find(secret) is not None) == (True, True)
    assert here.path.stat().st_mode & 0o077 == 0
    clock.now = time.time() + 60  # the mark's own time is that of its file
    assert await command.open_door() == 1
    await gateway.refresh()
    assert (here.is_set, there.is_set) == (False, False)
    assert (gateway.are_required, gateway.find(secret)) == (False, None)
    again, _ = await command.add("bob")
    await gateway.refresh()
    assert (gateway.are_required, gateway.find(again) is not None, there.is_set) == (True, True, True)


async def test_a_mark_that_can_not_be_made(
    store: Store, clock: Clock, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """If nothing can be written, keys still work; the log says once what to set."""
    (tmp_path / "file").touch()
    keys = await ClientKeys.load(store, clock, KeyMark(tmp_path / "file"))
    secret, _ = await keys.add("ann")
    await keys.refresh()
    assert (keys.find(secret) is not None, keys.are_required) == (True, True)
    assert caplog.text.count("require_client_keys = true") == 1


async def test_a_mark_that_can_not_be_looked_at(store: Store, clock: Clock, tmp_path: Path) -> None:
    """It may exist: the gateway stays closed."""
    (tmp_path / "data").symlink_to(tmp_path / "data")  # a path without an end
    keys = await ClientKeys.load(store, clock, KeyMark(tmp_path / "data"))
    assert (keys.is_empty, keys.are_required, keys.are_known) == (True, True, False)


async def test_a_door_that_was_opened_before_takes_no_later_mark(store: Store, clock: Clock, tmp_path: Path) -> None:
    """Keys made since then are lost with the store that had them, but still required."""
    mark = KeyMark(tmp_path / "data")
    await (await ClientKeys.load(store, clock)).open_door()
    mark.set()  # the mark's own time is that of its file, which is later
    keys = await ClientKeys.load(store, clock, mark)
    assert (keys.is_empty, keys.are_required, mark.is_set) == (True, True, True)


async def test_a_key_expires(store: Store, clock: Clock) -> None:
    """At its time, not after it."""
    keys = await ClientKeys.load(store, clock)
    secret, _ = await keys.add("ann", expires_at=clock() + 60)
    clock.now += 59.9
    assert keys.find(secret) is not None
    clock.now += 0.1
    assert keys.find(secret) is None


async def test_replicas_share_keys(shared_url: str, clock: Clock) -> None:
    """A key added or revoked by one process is known to another at its next refresh."""
    here, there = await open_store(shared_url, clock=clock), await open_store(shared_url, clock=clock)
    ours, theirs = await ClientKeys.load(here, clock), await ClientKeys.load(there, clock)
    secret, key = await ours.add("ann")
    assert theirs.find(secret) is None
    await theirs.refresh()
    assert theirs.find(secret) == key
    await ours.revoke("ann")
    await theirs.refresh()
    assert theirs.find(secret) is None
    await here.close()
    await there.close()


async def test_a_late_writer_brings_no_revoked_key_back(store: Store, clock: Clock) -> None:
    """An older copy of a key, written after its revocation, changes nothing."""
    keys = await ClientKeys.load(store, clock)
    secret, _ = await keys.add("ann")
    [before] = await store.notes(NAMESPACE)
    await keys.revoke("ann")
    await store.put_note(before)
    await keys.refresh()
    assert keys.find(secret) is None
    assert (await ClientKeys.load(store, clock)).find(secret) is None


async def test_only_digests_are_kept(store: Store, clock: Clock) -> None:
    """Neither the store nor the list has a key, or enough of one to guess the rest."""
    keys = await ClientKeys.load(store, clock)
    secret, _ = await keys.add("ann")
    kept = b"".join(note.key.encode() + note.value for note in await store.notes(NAMESPACE))
    assert hashlib.sha256(secret.encode()).hexdigest().encode() in kept
    assert not any(secret[at : at + 6].encode() in kept for at in range(3, len(secret) - 6))
    assert secret not in repr(keys.listed())


async def test_each_key_is_a_tenant_and_a_changed_key_stays_one(store: Store, clock: Clock) -> None:
    """Callers are separate; a second key with the name of a valid one belongs to the same caller, and only then."""
    keys = await ClientKeys.load(store, clock)
    ann, bob = (await keys.add("ann")).key, (await keys.add("bob")).key
    assert ann.tenant != bob.tenant
    changed = (await keys.add("ann")).key
    assert (changed.tenant, changed.id != ann.id) == (ann.tenant, True)
    await keys.revoke("ann")
    assert (await keys.add("ann")).key.tenant != ann.tenant


async def test_a_failing_store_forgets_no_key(clock: Clock) -> None:
    """While it is down, memory answers without keys: known ones stay, and the gateway stays closed."""
    durable = Breakable(StoreSettings(), clock)
    first, second = (LayeredStore(durable, StoreSettings(), clock) for _ in range(2))
    secret, _ = await (await ClientKeys.load(first, clock)).add("ann")
    keys = await ClientKeys.load(second, clock)
    durable.is_down = True
    assert await second.notes(NAMESPACE) == ()
    await keys.refresh()
    assert keys.find(secret) is not None
    assert not keys.is_empty


async def test_a_store_that_was_never_asked_is_not_certain(tmp_path: Path, clock: Clock) -> None:
    """A gateway that starts while its store is down can't know that there are no keys."""
    (tmp_path / "in the way").touch()
    broken = LayeredStore(
        durable_store(f"sqlite:///{tmp_path}/in the way/keys.db", StoreSettings(), clock), StoreSettings(), clock
    )
    await broken.open()
    keys = await ClientKeys.load(broken, clock)
    assert (keys.is_certain, keys.is_empty) == (False, True)
    await broken.close()
    sound = await open_store("memory://", clock=clock)
    assert (await ClientKeys.load(sound, clock)).is_certain
    await sound.close()


async def test_an_unreadable_note_admits_no_one(store: Store, clock: Clock) -> None:
    """Perhaps from a newer version: there is a key, so a key is required, and this is not it."""
    await store.put_note(Note(NAMESPACE, "0" * 64, b'{"v":2}', clock() + 1000))
    keys = await ClientKeys.load(store, clock)
    assert not keys.is_empty
    assert keys.listed() == ()
