"""One store, the gateway and a line in turn on one conversation."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.clients.apps import APPS, OPENING, Setup
from tests.clients.test_sdks import Row
from tests.clients.upstreams import start
from tests.gateway.gateways import running
from thoughtline import Line

ROWS = (
    Row("openai-chat", "deepseek", "deepseek-v4-pro"),
    Row(
        "anthropic",
        "anthropic",
        "claude-opus-4-8",
        None,
        {"thinking": {"type": "adaptive"}, "max_tokens": 8000},
        "adaptive",
    ),
    Row("google-genai", "gemini", "gemini-3-pro-preview"),
)


@pytest.mark.filterwarnings("ignore:The model:DeprecationWarning")
@pytest.mark.parametrize("row", ROWS, ids=[row.id for row in ROWS])
@pytest.mark.parametrize("first", ["gateway", "line"])
def test_each_finds_the_others_turns(row: Row, first: str, tmp_path: Path) -> None:
    """The application alternates between the two: signed or not, all reasoning is restored."""
    upstream = start(row.simulator, row.profile)
    config = tmp_path / "thoughtline.toml"
    config.write_text(f'[providers.{row.simulator}]\nbase_url = "{upstream.url}"\n')
    store_url = f"sqlite:///{tmp_path / 'thoughts.db'}"
    setup = Setup(upstream.url, row.model, "strips", "whole", row.extra)
    with running({row.simulator: upstream.url}, store_url=store_url) as gateway, Line(store_url, config=config) as line:
        app: Any = APPS[row.app](setup)
        asked: Any = APPS[row.app](setup._replace(base_url=f"{gateway.url}/{row.simulator}"))
        through = {"gateway": asked.client, "line": line.remember(app.client)}
        turn = list(through).index(first)
        app.hear(OPENING)
        for step in range(3):
            app.client = list(through.values())[(turn + step) % 2]
            app.step()
        assert upstream.refusals() == []
        assert upstream.verdicts() == [["whole"] * turns for turns in range(3)]
