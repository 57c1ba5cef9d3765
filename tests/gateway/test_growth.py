"""Ten times the messages cost about ten times as much: counted in calls, which don't depend on the machine's load.

`python -m bench.growth` measures all pairs of clients and providers.
"""

from __future__ import annotations

import pytest

from tests.gateway.long_conversations import Cell, calls_of

FEW, MANY = 40, 400
CELLS = (
    Cell("openai_chat", "kimi", "lost"),
    Cell("openai_chat", "anthropic", "mixed"),
    Cell("openai_chat", "bedrock", "repeated"),
    Cell("openai_responses", "anthropic", "unseen"),
    Cell("openai_responses", "gemini", "repeated"),
    Cell("anthropic_messages", "anthropic", "kept"),
    Cell("anthropic_messages", "mistral", "lost"),
    Cell("anthropic_messages", "openai", "kept"),
    Cell("gemini_generate", "openrouter", "rewritten"),
    Cell("ollama_chat", "ollama", "cleared"),
)


@pytest.mark.parametrize("cell", CELLS, ids=lambda cell: cell.id)
def test_ten_times_the_messages_cost_at_most_twelve_times_the_calls(cell: Cell) -> None:
    """For every client and provider, and every kind of history."""
    assert calls_of(cell, MANY) <= 12 * calls_of(cell, FEW)
