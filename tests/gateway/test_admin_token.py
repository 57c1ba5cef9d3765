"""The admin token: generated once, for its owner only, the same for concurrent starts."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

import pytest

from thoughtline.gateway.admin_token import FILE_NAME, admin_token
from thoughtline.settings import ServerSettings, Settings
from thoughtline.values.errors import SettingsError


def test_a_token_that_is_set_is_the_token(tmp_path: Path) -> None:
    """No file is written then."""
    settings = Settings(server=ServerSettings(admin_token="0123456789abcdef"))
    assert admin_token(settings, tmp_path / "data") == "0123456789abcdef"
    assert not (tmp_path / "data").exists()


def test_a_token_is_made_once(tmp_path: Path) -> None:
    """In a file and folder that only its owner can read."""
    folder = tmp_path / "data" / "thoughtline"
    token = admin_token(Settings(), folder)
    assert len(token) >= 43
    assert admin_token(Settings(), folder) == token
    assert (folder / FILE_NAME).stat().st_mode & 0o777 == 0o600
    assert folder.stat().st_mode & 0o777 == 0o700
    assert os.listdir(folder) == [FILE_NAME]
    assert admin_token(Settings(), tmp_path / "other") != token


def test_a_file_that_others_can_read_is_closed(tmp_path: Path) -> None:
    """A copy or a backup may have opened it."""
    token = admin_token(Settings(), tmp_path)
    (tmp_path / FILE_NAME).chmod(0o644)
    assert admin_token(Settings(), tmp_path) == token
    assert (tmp_path / FILE_NAME).stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("text", ["", "short", "naïve-but-long-enough"])
def test_a_file_without_a_token_is_reported(tmp_path: Path, text: str) -> None:
    """An empty or guessable token is not accepted."""
    (tmp_path / FILE_NAME).write_text(text, "utf-8")
    with pytest.raises(SettingsError, match="delete the file"):
        admin_token(Settings(), tmp_path)


def test_workers_that_start_at_once_agree(tmp_path: Path) -> None:
    """The first one makes it, and all others get the same one."""
    for turn in range(50):
        folder, gate = tmp_path / str(turn), Barrier(8)

        def ask(_: int, folder: Path = folder, gate: Barrier = gate) -> str:
            gate.wait()
            return admin_token(Settings(), folder)

        with ThreadPoolExecutor(8) as workers:
            assert len(set(workers.map(ask, range(8)))) == 1
        assert os.listdir(folder) == [FILE_NAME]


def test_a_folder_that_can_not_be_written(tmp_path: Path) -> None:
    """The folder, the reason and two remedies are named; a gateway that stores nothing on disk starts anyway."""
    (tmp_path / "file").write_text("")
    folder = tmp_path / "file" / "thoughtline"
    with pytest.raises(SettingsError, match=r"file/thoughtline.*XDG_DATA_HOME.*--store memory://"):
        admin_token(Settings(store_url="sqlite:///somewhere.db"), folder)
    assert len(admin_token(Settings(store_url="memory://"), folder)) >= 43
