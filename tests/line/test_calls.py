"""What a line adds to a call of an SDK, counted: `python -m bench.library` tells how long it takes."""

from __future__ import annotations

from typing import Any

import openai
import pytest

from bench.library import MODEL, TOOL, Call, functions, history, server, teach
from thoughtline import Line

KEY, TURNS = "key-of-a-bench", 10


@pytest.mark.parametrize("is_streamed", [False, True])
def test_a_call_that_restores_ten_turns(line: Line, is_streamed: bool) -> None:
    """A twentieth of the SDK's own function calls, all in the caller's thread."""
    asked: Any = {"model": MODEL, "messages": history(TURNS), "tools": [TOOL], "stream": is_streamed}
    with server(TURNS) as url:
        teach(line, url, KEY, TURNS)
        bare, kept = (Call(openai.OpenAI(base_url=url, api_key=KEY), asked) for _ in range(2))
        line.remember(kept.client)
        counts = [functions(call) for call in (bare, kept)]
    assert counts[1] - counts[0] <= 0.05 * counts[0]
    assert line.report.restored >= 30
