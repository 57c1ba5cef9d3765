"""Run by `make test-library`, in environments that have the packages: each test skips what its own lacks."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from thoughtline import Line


@pytest.fixture
def line(tmp_path: Path) -> Iterator[Line]:
    with Line(f"sqlite:///{tmp_path / 'thoughts.db'}") as opened:
        yield opened
