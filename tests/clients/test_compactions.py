"""Codex, the real program, as it compacts its conversations by the provider it takes for OpenAI's."""

from __future__ import annotations

import pytest

from tests.clients.agents import CODEX_CONFIG
from tests.clients.programs import KEY, Place, Task

pytestmark = pytest.mark.programs

CONFIG = CODEX_CONFIG.replace('name = "here"', 'name = "OpenAI"') + ""
LIMIT = "model_auto_compact_token_limit = 15000\n"
SCRIPT = "|".join(
    (
        "think: First I look.",
        'call: exec_command {"cmd": "if test -e note.txt; then cat note.txt; else seq 9000; echo kept > note.txt; fi"}',
        "---",
        "think: It is there.",
        "say: The note says kept.",
    )
)


def compacting(place: Place, task: Task) -> dict[str, str]:
    """Settings that make Codex ask its provider to compact, and soon."""
    folder = place.home / ".codex"
    folder.mkdir(exist_ok=True)
    (folder / "config.toml").write_text(LIMIT + CONFIG.format(task=task))
    return {"HERE_KEY": KEY}
