"""A settings file to begin with."""

from __future__ import annotations

import re
import stat
from pathlib import Path

import pytest

from thoughtline.cli import main
from thoughtline.settings import Flags, load_settings
from thoughtline.settings.structs import Settings


def loaded(file: Path | None, home: Path) -> Settings:
    return load_settings(file, {}, Flags(), home)


def test_it_sets_nothing(tmp_path: Path) -> None:
    """A gateway with that file is the gateway without one, and only its owner can read it."""
    file = tmp_path / "deep" / "thoughtline.toml"
    assert main(["init", str(file)]) == 0
    assert loaded(file, tmp_path) == loaded(None, tmp_path)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_the_written_file_can_be_used(tmp_path: Path) -> None:
    """Without the comment sign a line is a setting."""
    file = tmp_path / "thoughtline.toml"
    main(["init", str(file)])
    text = file.read_text().replace("# [server]", "[server]").replace("# # port = 8642", "port = 9000")
    file.write_text(re.sub(r"(?m)^# port = 8642", "port = 9000", text))
    assert loaded(file, tmp_path).server.port == 9000


def test_a_file_that_is_there_stays(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Nothing is lost, and the way out is said."""
    file = tmp_path / "thoughtline.toml"
    file.write_text("mine")
    assert main(["init", str(file)]) == 2
    assert file.read_text() == "mine"
    assert "was not changed. Name another: thoughtline init FILE" in capsys.readouterr().err


def test_a_user_s_own_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a name it is where `serve` looks."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    assert main(["init"]) == 0
    assert (tmp_path / "thoughtline" / "thoughtline.toml").is_file()
