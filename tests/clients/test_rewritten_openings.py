"""Programs that write their first message anew when they resume, at a task with tools. `make test-clients` runs this.

Gemini CLI puts the files of the folder there, repeats results, leaves out thoughts, and sends a sentinel for each
signature; Qwen Code puts the date there. The provider can't know the conversation again, so what it gets is compared
with what it gave.
"""

from __future__ import annotations

import pytest

from tests.clients.agents import GEMINI_CLI, QWEN_CODE
from tests.clients.programs import Place, Program, Task, run
from tests.clients.upstreams import Upstream, reach, start

pytestmark = pytest.mark.programs

ROWS = (
    (GEMINI_CLI, "gemini", "gemini-3-pro-preview", None),
    (GEMINI_CLI, "deepseek", "deepseek-v4-pro", None),
    (GEMINI_CLI, "kimi", "kimi-k2.6", None),
    (GEMINI_CLI, "anthropic", "claude-opus-5-5", "bound"),
    (QWEN_CODE, "qwen", "qwen3.7-max", None),
    (QWEN_CODE, "deepseek", "deepseek-v4-pro", None),
    (QWEN_CODE, "anthropic", "claude-opus-5-5", "bound"),
)


@pytest.mark.parametrize(
    ("program", "simulator", "model", "profile"), ROWS, ids=[f"{row[0].name}-{row[1]}" for row in ROWS]
)
def test_a_task_with_tools(program: Program, simulator: str, model: str, profile: str | None, place: Place) -> None:
    """Tools run, the answers come, also of a second process that resumes; no request is refused, nobody else is asked,
    and the reasoning of every turn goes back: of all turns that the program still shows, after it resumed too. Only
    what is bound to the opening that was rewritten does not: it would be refused."""
    upstream = start(simulator, profile, program.script(place.work))
    task = Task(reach(upstream), model)

    first = run(program, program.begin("Write a note and look at it."), place, task)
    assert (first.status, first.answer) == (0, "The note says kept."), first.remarks
    assert (place.work / "note.txt").read_text() == "kept"
    assert upstream.verdicts() == [["whole"] * turns for turns in range(3)]

    assert program.resume is not None
    second = run(program, program.resume("Now a copy."), place, task)
    assert (second.status, second.answer) == (0, "The copy is there."), second.remarks
    assert (place.work / "copy.txt").read_text() == "kept"

    assert upstream.refusals() == []
    before, after = _thoughts(upstream, 2), _thoughts(upstream, 3)
    assert len(after) == 3
    if profile == "bound":
        assert after == [[], [], []]
    else:
        assert after[:2] == before
        assert after[2]
    assert "skip" not in str(after)
    assert place.trap.strangers(program) == []


def _thoughts(upstream: Upstream, request: int) -> list[list[str]]:
    """What of the model's own thoughts, or their signatures, stood in a request, turn by turn."""
    messages = upstream.watched.app.simulation.log[request]["messages"]
    return [message["thoughts"] for message in messages if message["role"] == "assistant"]
