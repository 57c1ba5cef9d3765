"""Overlays that are put beside the store, and taken away again."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from tests.facts.overlay_texts import KIMI_9
from thoughtline.facts.files import installed
from thoughtline.facts.updating import check, install, undo
from thoughtline.values.errors import Declined, SettingsError

RAW = KIMI_9.encode()


def test_from_a_check_to_an_undo(tmp_path: Path) -> None:
    """Each is numbered behind the others, and the latest is taken away first."""
    folder = tmp_path / "facts"
    first = install(check(RAW, "https://example.com/a/new facts.toml", folder), folder)
    second = install(check(b"[contracts.kimi]\nfiller = '-'\nunverified = true\n", "../../b", folder), folder)
    assert [one.name for one in installed(folder)] == ["0001-new-facts.toml", "0002-b.toml"]
    assert folder.stat().st_mode & 0o777 == 0o700
    assert undo(folder) == second
    assert installed(folder) == [first]
    assert (undo(folder), undo(folder)) == (first, None)
    assert install(check(RAW, "again", folder), folder).name == "0001-again.toml"


def test_a_change_is_one_over_what_is_installed(tmp_path: Path) -> None:
    """The same overlay again changes nothing."""
    checked = check(RAW, "k9.toml", tmp_path)
    assert {one.name for one in checked.changes} == {"kimi-9"}
    install(checked, tmp_path)
    assert not check(RAW, "k9.toml", tmp_path).changes


def test_what_does_not_fit_is_not_checked(tmp_path: Path) -> None:
    """A mistake, or another digest than was pinned."""
    with pytest.raises(SettingsError):
        check(b"[contracts.kimi]\nfillr = ''\n", "bad.toml", tmp_path)
    with pytest.raises(Declined, match="--sha256"):
        check(RAW, "k9.toml", tmp_path, digest="0" * 64)
    assert check(RAW, "k9.toml", tmp_path, digest=hashlib.sha256(RAW).hexdigest().upper()).raw == RAW
