"""A separate line for each test, with its own database."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from thoughtline import Line


@pytest.fixture
def store_url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'thoughts.db'}"


@pytest.fixture
def line(store_url: str) -> Iterator[Line]:
    with Line(store_url) as opened:
        yield opened
