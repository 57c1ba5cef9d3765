"""The file that marks a gateway with client keys."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from thoughtline.gateway.client_keys import KeyMark


def test_it_is_there_from_set_to_clear(tmp_path: Path) -> None:
    """Made with its folder, for its owner only; setting it again keeps its date."""
    mark = KeyMark(tmp_path / "data")
    assert (mark.is_set, mark.made_at) == (False, None)
    mark.set()
    made = mark.made_at
    assert mark.is_set
    assert mark.path.stat().st_mode & 0o777 == 0o600
    mark.path.write_text("older")
    mark.set()
    assert mark.path.read_text() == "older"
    assert made is not None
    mark.clear()
    mark.clear()
    assert not mark.is_set


def test_an_unwritable_folder_is_reported_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """A file is in place of the folder: there is no marker, and the log says what to set."""
    (tmp_path / "data").write_text("")
    mark = KeyMark(tmp_path / "data")
    with caplog.at_level(logging.WARNING):
        mark.set()
        mark.set()
    assert not mark.is_set
    assert [record.getMessage().count("require_client_keys = true") for record in caplog.records] == [1]


def test_a_mark_that_can_t_be_looked_at_counts(tmp_path: Path) -> None:
    """A link to itself: an unreadable marker must not open the gateway."""
    mark = KeyMark(tmp_path)
    mark.path.symlink_to(mark.path)
    assert mark.is_set
