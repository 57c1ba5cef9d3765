"""`thoughtline keys` as a person meets it."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from thoughtline.gateway.client_keys import ClientKeys
from thoughtline.stores import open_store


def keys(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "thoughtline.cli", "keys", *arguments, "--store", f"sqlite:///{folder}/turns.db"],
        capture_output=True,
        text=True,
        check=False,
        cwd=folder,
    )


async def test_from_making_a_key_to_revoking_it(tmp_path: Path) -> None:
    """The key alone goes to standard output, once; a gateway on that store takes it until it is revoked."""
    made = keys(tmp_path, "add", "ann", "--requests-per-minute", "60", "--streams", "2", "--expires", "30d")
    assert made.returncode == 0, made.stderr
    secret = made.stdout.strip()
    assert re.fullmatch(r"tl-[\w-]{49}", secret)
    assert secret not in made.stderr
    store = await open_store(f"sqlite:///{tmp_path}/turns.db")
    gateway = await ClientKeys.load(store)
    found = gateway.find(secret)
    assert found is not None
    assert (found.name, found.requests_per_minute, found.concurrent_streams) == ("ann", 60, 2)
    assert found.expires_at is not None
    assert found.expires_at - found.created_at == pytest.approx(30 * 86400, abs=60)

    listed = keys(tmp_path, "list")
    assert "ann" in listed.stdout
    assert found.id in listed.stdout
    assert secret not in listed.stdout
    revoked = keys(tmp_path, "revoke", found.id)
    assert (revoked.returncode, found.id in revoked.stdout) == (0, True)
    await gateway.refresh()
    assert gateway.find(secret) is None
    [entry] = json.loads(keys(tmp_path, "list", "--json").stdout)["keys"]
    assert (entry["id"], entry["revoked"]) == (found.id, True)
    await store.close()


def test_what_the_first_key_the_last_and_none_mean(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each is said: what closes the gateway, what keeps it closed, what opens it, and that before it is done."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    mark = tmp_path / "data" / "thoughtline" / "client-keys-required"
    first = keys(tmp_path, "add", "ann")
    assert ("first client key" in first.stderr, mark.exists()) == (True, True)
    assert "first client key" not in keys(tmp_path, "add", "bob").stderr
    assert "stays closed" not in keys(tmp_path, "revoke", "ann").stderr
    last = keys(tmp_path, "revoke", "bob")
    assert ("stays closed" in last.stderr, "keys clear" in last.stderr, mark.exists()) == (True, True, True)
    refused = keys(tmp_path, "open")
    assert (refused.returncode, "without one" in refused.stderr, "Nothing was done" in refused.stderr) == (
        2,
        True,
        True,
    )
    assert len(json.loads(keys(tmp_path, "list", "--json").stdout)["keys"]) == 2
    opened = keys(tmp_path, "open", "--yes")
    assert (opened.returncode, "without one" in opened.stderr, mark.exists()) == (0, True, False)
    assert json.loads(keys(tmp_path, "list", "--json").stdout)["keys"] == []


def test_clearing_where_there_are_no_keys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It asks nothing. If the store has lost the keys, callers still need one, and it can be lifted."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    none = keys(tmp_path, "clear")
    assert (none.returncode, none.stderr) == (0, "There are no client keys to delete.\n")
    keys(tmp_path, "add", "ann")
    (tmp_path / "turns.db").unlink()
    lost = keys(tmp_path, "clear", "--yes")
    assert (lost.returncode, "there were some once" in lost.stderr) == (0, True)
    assert "to delete" in keys(tmp_path, "clear").stderr


WARNINGS = [
    ("[server]\nrequire_client_keys = true", "open", "stays closed"),
    ('[server]\nhost = "0.0.0.0"\n[providers.kimi]\napi_key = "k"', "open", "serve no caller"),
    ("[server]\nrequire_client_keys = false", "add", "still get in"),
]


@pytest.mark.parametrize(("settings", "action", "warning"), WARNINGS)
def test_what_the_settings_make_of_it(tmp_path: Path, settings: str, action: str, warning: str) -> None:
    """A gateway that stays closed by settings, one that would serve no caller, and a key that is not needed."""
    file = tmp_path / "settings.toml"
    file.write_text(settings)
    more = ("ann",) if action == "add" else ()
    assert warning in keys(tmp_path, action, *more, "--config", str(file)).stderr


def test_what_can_t_be_done(tmp_path: Path) -> None:
    """No such key is 1; a store that keeps nothing, or can't be opened, is 2 with a reason."""
    assert keys(tmp_path, "revoke", "nobody").returncode == 1
    assert "keys add" in keys(tmp_path, "list").stdout
    command = [sys.executable, "-m", "thoughtline.cli", "keys", "add", "ann", "--store"]
    forgetful = subprocess.run([*command, "memory://"], capture_output=True, text=True, check=False)
    assert (forgetful.returncode, forgetful.stdout) == (2, "")
    assert "an in-memory store can't keep keys" in forgetful.stderr
    (tmp_path / "file").touch()
    broken = subprocess.run([*command, f"sqlite:///{tmp_path}/file/db"], capture_output=True, text=True, check=False)
    assert (broken.returncode, broken.stdout) == (2, "")
    assert "Traceback" not in broken.stderr


@pytest.mark.parametrize(
    "arguments",
    [("add",), ("add", " "), ("add", "a\nb"), ("add", "a", "--streams", "0"), ("add", "a", "--expires", "soon"), ()],
)
def test_what_can_t_be_meant(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    """An unprintable name, a limit of zero, an invalid time: reported before the store is opened."""
    result = keys(tmp_path, *arguments)
    assert result.returncode == 2
    assert "usage" in result.stderr
    assert not (tmp_path / "turns.db").exists()
