"""Overlays as files."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.facts.overlay_texts import ACME, KIMI_9
from thoughtline.facts.files import installed, overlays_folder, read_facts
from thoughtline.settings import Flags, load_settings
from thoughtline.toml.tree import Problems
from thoughtline.values.errors import SettingsError


def test_without_overlays_there_is_no_table_of_its_own(tmp_path: Path) -> None:
    """The built-in one is used as it is, at no cost."""
    problems = Problems()
    assert read_facts([], overlays_folder(tmp_path), problems) is None
    assert load_settings(None, {}, Flags(), tmp_path).table is None
    assert not problems.found


def test_fetched_overlays_come_before_those_that_settings_name(tmp_path: Path) -> None:
    """In the order of their numbers; other files in the folder are not read."""
    folder, own = overlays_folder(tmp_path), tmp_path / "own.toml"
    folder.mkdir()
    for name, filler in {"0002-b.toml": "2", "0001-a.toml": "1", "0003-c.undone": "3", "notes.toml": "4"}.items():
        (folder / name).write_text(f"[contracts.kimi]\nfiller = '{filler}'\nunverified = true\n")
    assert [one.name for one in installed(folder)] == ["0001-a.toml", "0002-b.toml"]
    problems = Problems()
    fetched = read_facts([], folder, problems)
    own.write_text("[contracts.kimi]\nfiller = 'own'\nunverified = true\n")
    over = read_facts([(own, "settings")], folder, problems)
    assert not problems.found
    assert fetched is not None
    assert over is not None
    assert (fetched.contracts["kimi"].filler, over.contracts["kimi"].filler) == ("2", "own")


def test_settings_name_overlays(tmp_path: Path) -> None:
    """A provider that one adds is there for the rest of the same file, and a mistake is named with its place."""
    overlay, file = tmp_path / "acme.toml", tmp_path / "thoughtline.toml"
    overlay.write_text(ACME + KIMI_9)
    file.write_text(
        f"[facts]\nfiles = ['{overlay}']\n[providers.acme]\napi_key = 'k'\ncontract = 'acme'\n"
        "[routes.r]\ntargets = ['acme/roadrunner']\n[contracts.acme]\nfiller = '+'\n"
    )
    settings = load_settings(file, {}, Flags(), tmp_path)
    assert settings.providers["acme"].api_keys == ("k",)
    assert settings.contracts["acme"].filler == "+"
    overlay.write_text(KIMI_9)
    with pytest.raises(SettingsError) as refused:
        load_settings(file, {}, Flags(), tmp_path)
    assert {one.place for one in refused.value.problems} >= {f"{file}:3", f"{file}:7"}
    overlay.unlink()
    with pytest.raises(SettingsError) as missing:
        load_settings(file, {}, Flags(), tmp_path)
    assert any(f"{file}:2" == one.place and os.strerror(2) in one.message for one in missing.value.problems)
