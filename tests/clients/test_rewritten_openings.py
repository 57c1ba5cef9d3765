"""Programs that write their first message anew when they resume, at a task with tools. `make test-clients` runs this.

Gemini CLI puts the files of the folder there, repeats results, leaves out thoughts, and sends a sentinel for each
signature; Qwen Code puts the date there. The provider can't know the conversation again, so what it gets is compared
with what it gave.
"""

from __future__ import annotations

import pytest

from tests.clients.agents import GEMINI_CLI, GEMINI_CLI_LOGIN, QWEN_CODE
from tests.clients.programs import Place, Program, Task, run
from tests.clients.upstreams import Upstream, reach, start

pytestmark = pytest.mark.programs

ROWS = (
    (GEMINI_CLI, "gemini", "gemini-3-pro-preview", None),
    (GEMINI_CLI_LOGIN, "code-assist", "gemini-3-pro-preview", None),
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


def test_ten_turns_after_a_login(place: Place) -> None:
    """Gemini CLI in Code Assist's envelope: nine calls, one after the other, and every signature is back each time."""
    turns = [f'think: Step {at}.|call: run_shell_command {{"command": "echo {at}"}}' for at in range(9)]
    upstream = start("code-assist", None, "|---|".join([*turns, "think: That is all.|say: Nine steps."]))
    task = Task(reach(upstream), "gemini-3-pro-preview")

    outcome = run(GEMINI_CLI_LOGIN, GEMINI_CLI_LOGIN.begin("Take nine steps."), place, task)
    assert (outcome.status, outcome.answer) == (0, "Nine steps."), outcome.remarks
    assert upstream.refusals() == []
    assert upstream.verdicts() == [["whole"] * before for before in range(10)]
    assert place.trap.strangers(GEMINI_CLI_LOGIN) == []


def test_what_a_login_loses_without_the_gateway(place: Place) -> None:
    """At the provider itself, resumed, it has no signature left: a sentinel stands for each, which is none."""
    upstream = start("code-assist", None, GEMINI_CLI_LOGIN.script(place.work))
    task = Task(upstream.url, "gemini-3-pro-preview")
    assert GEMINI_CLI_LOGIN.resume is not None
    for words in (GEMINI_CLI_LOGIN.begin("Write a note and look at it."), GEMINI_CLI_LOGIN.resume("Now a copy.")):
        outcome = run(GEMINI_CLI_LOGIN, words, place, task)
        assert outcome.status == 0, outcome.remarks
    assert _thoughts(upstream, 3)[:2] == [[], []]


def _thoughts(upstream: Upstream, request: int) -> list[list[str]]:
    """What of the model's own thoughts, or their signatures, stood in a request, turn by turn."""
    messages = upstream.watched.app.simulation.log[request]["messages"]
    return [message["thoughts"] for message in messages if message["role"] == "assistant"]
