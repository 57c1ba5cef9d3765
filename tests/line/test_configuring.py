"""The arguments of a line: an address or a path, and settings; others are reported."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from thoughtline import Line
from thoughtline.library.configuring import settings_of
from thoughtline.values.errors import SettingsError


def test_a_store_is_an_address_or_a_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A path is the file of a SQLite store."""
    monkeypatch.chdir(tmp_path)
    for store in (tmp_path / "own.db", "own.db", str(tmp_path / "own.db"), Path("own.db")):
        assert settings_of(store, None).store_url == f"sqlite:///{tmp_path / 'own.db'}"
    for url in ("memory://", "redis://127.0.0.1:6379/0", "sqlite:///thoughts.db"):
        assert settings_of(url, None).store_url == url


def test_config_is_a_path_or_settings(tmp_path: Path) -> None:
    """Settings that were read once may be used for several lines."""
    file = tmp_path / "own.toml"
    file.write_text('[store]\nurl = "memory://"\n[replay]\nheal = false\n')
    for config in (file, str(file)):
        assert not settings_of(None, config).replay.heal
    settings = settings_of(None, file)
    assert settings_of(None, settings) is settings


def test_mistakes_are_named() -> None:
    """With the correct form."""
    wrong: Any
    for wrong in ({"replay": {}}, 5, b"a.toml"):
        with pytest.raises(TypeError, match="config is a path or Settings, not"):
            settings_of(None, wrong)
        with pytest.raises(TypeError, match=r"store is an address such as 'sqlite:///thoughts\.db', or a path, not"):
            Line(wrong)
    wrong = 7
    with pytest.raises(TypeError, match="tenant is text, not int"):
        Line("memory://", tenant=wrong)
    with pytest.raises(TypeError, match="which name a store"):
        settings_of("memory://", settings_of("memory://", None))
    with pytest.raises(SettingsError, match="mysql is no such store"):
        Line("mysql://x")
