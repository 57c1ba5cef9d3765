"""Fixtures of the programs."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.clients.programs import Place, Trap


@pytest.fixture
def place(tmp_path: Path) -> Place:
    """A home and a folder to work in, for one test."""
    home, work = tmp_path / "home", tmp_path / "work"
    home.mkdir()
    work.mkdir()
    return Place(home, work, Trap())
