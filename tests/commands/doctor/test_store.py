"""The store under the doctor's eye."""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace

import pytest

from thoughtline.commands.doctor import Check
from thoughtline.commands.doctor.store import NAMESPACE, look_at_store
from thoughtline.gateway.client_keys import ClientKeys
from thoughtline.settings import Settings
from thoughtline.stores import StoreSettings, open_store
from thoughtline.stores.sqlite_schema import MIGRATIONS
from thoughtline.stores.sqlite_writer import unavailable


def at(folder: Path, settings: StoreSettings | None = None) -> Settings:
    return Settings(store_url=f"sqlite:///{folder}/turns.db", store=settings or StoreSettings())


async def looked(settings: Settings) -> dict[str, Check]:
    return {check.name: check for check in (await look_at_store(settings)).checks}


async def test_a_store_that_is_well(tmp_path: Path) -> None:
    """It is opened, written, read back, and left without a trace; layout, size and free space are reported."""
    found = await looked(at(tmp_path))
    assert {name: check.state for name, check in found.items()} == {"store": "ok", "store file": "ok", "disk": "ok"}
    assert f"layout {MIGRATIONS[-1].number}" in found["store file"].message
    store = await open_store(at(tmp_path).store_url)
    assert await store.notes(NAMESPACE) == ()
    await store.close()


async def test_a_remedy_that_the_store_gives_is_not_said_twice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A full disk: the cause, then what helps."""
    full = sqlite3.OperationalError("database or disk is full")
    full.sqlite_errorcode = sqlite3.SQLITE_FULL
    place = tmp_path / "turns.db"

    async def refuse(*arguments: object) -> None:
        raise unavailable(full, place)

    monkeypatch.setattr("thoughtline.commands.doctor.store._used", refuse)
    found = (await looked(at(tmp_path)))["store"]
    assert found.message == f"sqlite: {place}: database or disk is full"
    assert found.remedy == "free space on its disk"


async def test_client_keys_are_seen(tmp_path: Path) -> None:
    """Whether the gateway is open depends on them."""
    assert not (await look_at_store(at(tmp_path))).has_client_keys
    store = await open_store(at(tmp_path).store_url)
    await (await ClientKeys.load(store)).add("ann")
    await store.close()
    assert (await look_at_store(at(tmp_path))).has_client_keys


async def test_memory_forgets() -> None:
    """It works, and is not what one wants for long."""
    [check] = (await look_at_store(Settings(store_url="memory://"))).checks
    assert check.state == "warn"


async def test_a_folder_that_is_a_file(tmp_path: Path) -> None:
    """The store's own message is reported, with a remedy."""
    (tmp_path / "file").touch()
    found = await looked(at(tmp_path / "file"))
    assert found["store"].state == "fail"
    assert found["store"].remedy == "make it writable, or name another with --store"


async def test_a_store_of_a_newer_program(tmp_path: Path) -> None:
    """It is not touched."""
    await look_at_store(at(tmp_path))
    with closing(sqlite3.connect(tmp_path / "turns.db")) as connection:
        connection.execute("INSERT INTO migrations VALUES (999, 'of tomorrow')")
        connection.commit()
    found = await looked(at(tmp_path))
    assert (found["store"].state, found["store"].remedy) == ("fail", "upgrade, or name another store")


async def test_another_key(tmp_path: Path) -> None:
    """A store that was encrypted with a key that is not set any more."""
    first, second = (StoreSettings(encryption_key=letter * 43 + "=") for letter in "AB")
    assert (await looked(at(tmp_path, first)))["store"].state == "ok"
    found = await looked(at(tmp_path, second))
    assert (found["store"].state, "previous_encryption_key" in found["store"].remedy) == ("fail", True)
    assert "BBBB" not in f"{found}"


async def test_a_server_that_is_down() -> None:
    """Nothing listens on port 1."""
    for url in ("redis://127.0.0.1:1", "postgresql://127.0.0.1:1/x"):
        [check] = (await look_at_store(Settings(store_url=url))).checks
        assert check.state == "fail"
        assert check.remedy


async def test_little_room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A store that may outgrow the disk is reported before the disk is full, and a full disk is a failure."""
    found = await looked(at(tmp_path, StoreSettings(max_bytes=2**60)))
    assert (found["disk"].state, "max_size" in found["disk"].remedy) == ("warn", True)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=0))
    assert (await looked(at(tmp_path)))["disk"].state == "fail"
