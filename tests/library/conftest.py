"""Run by `make test-library`, in environments that have the packages: each test skips what its own lacks."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from thoughtline import Line

os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")  # else its loggers ask the network for prices first


@pytest.fixture
def line(tmp_path: Path) -> Iterator[Line]:
    with Line(f"sqlite:///{tmp_path / 'thoughts.db'}") as opened:
        yield opened


@pytest.fixture(autouse=True)
def no_callbacks() -> Iterator[None]:
    """LiteLLM copies its callbacks into several lists: what one test has set, the next one does not find."""
    yield
    litellm = sys.modules.get("litellm")
    if litellm is not None:
        for name in ("callbacks", "input_callback", "success_callback", "failure_callback"):
            for one in (name, f"_async_{name}"):
                if hasattr(litellm, one):
                    setattr(litellm, one, [])
