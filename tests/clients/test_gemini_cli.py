"""Gemini CLI, the real program, at a task with tools. `make test-clients` runs this.

When it resumes it writes its first message anew (the files of the folder stand in it), repeats results, leaves out
thoughts, and sends a sentinel for each signature. The provider can't know the conversation again, so what it gets is
compared with what it gave.
"""

from __future__ import annotations

import pytest

from tests.clients.agents import GEMINI_CLI
from tests.clients.programs import Place, Task, run
from tests.clients.upstreams import Upstream, reach, start

pytestmark = pytest.mark.programs

ROWS = (
    ("gemini", "gemini-3-pro-preview", None),
    ("deepseek", "deepseek-v4-pro", None),
    ("kimi", "kimi-k2.6", None),
    ("anthropic", "claude-opus-4-8", "adaptive"),
)


@pytest.mark.parametrize(("simulator", "model", "profile"), ROWS, ids=[row[0] for row in ROWS])
def test_a_task_with_tools(simulator: str, model: str, profile: str | None, place: Place) -> None:
    """Tools run, the answers come, also of a second process that resumes; no request is refused, nobody else is asked,
    and the reasoning of every turn goes back: of all turns that the program still shows, after it resumed too."""
    upstream = start(simulator, profile, GEMINI_CLI.script(place.work))
    task = Task(reach(upstream), model)

    first = run(GEMINI_CLI, GEMINI_CLI.begin("Write a note and look at it."), place, task)
    assert (first.status, first.answer) == (0, "The note says kept."), first.remarks
    assert (place.work / "note.txt").read_text() == "kept"
    assert upstream.verdicts() == [["whole"] * turns for turns in range(3)]

    second = run(GEMINI_CLI, GEMINI_CLI.resume("Now a copy."), place, task)
    assert (second.status, second.answer) == (0, "The copy is there."), second.remarks
    assert (place.work / "copy.txt").read_text() == "kept"

    assert upstream.refusals() == []
    before, after = _thoughts(upstream, 2), _thoughts(upstream, 3)
    assert after[:2] == before
    assert len(after) == 3
    assert after[2]
    assert "skip" not in str(after)
    assert place.trap.asked == []


def _thoughts(upstream: Upstream, request: int) -> list[list[str]]:
    """What of the model's own thoughts, or their signatures, stood in a request, turn by turn."""
    messages = upstream.watched.app.simulation.log[request]["messages"]
    return [message["thoughts"] for message in messages if message["role"] == "assistant"]
