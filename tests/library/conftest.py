"""Run by `make test-library`, in environments that have the packages: each test skips what its own lacks."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from thoughtline import Line

os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")  # else its loggers ask the network for prices first


@pytest.fixture
def line(tmp_path: Path) -> Iterator[Line]:
    with Line(f"sqlite:///{tmp_path / 'thoughts.db'}") as opened:
        yield opened
