"""Claude Code, the real program, with context management on: Anthropic gets the edits, others don't."""

from __future__ import annotations

import json

import pytest

from tests.clients.agents import CLAUDE_CODE
from tests.clients.programs import Place, Task, run
from tests.clients.upstreams import reach, start

pytestmark = pytest.mark.programs


def managing(place: Place, task: Task) -> dict[str, str]:
    return CLAUDE_CODE.settings(place, task) | {"USE_API_CONTEXT_MANAGEMENT": "1"}


@pytest.mark.parametrize(
    ("simulator", "profile", "model"),
    [
        ("anthropic", "adaptive", "claude-opus-4-8"),
        ("openai", None, "gpt-5"),
    ],
)
def test_claude_code_manages_its_context(simulator: str, profile: str | None, model: str, place: Place) -> None:
    """At Anthropic the edits go up as they came, and thinking that is sent again is whole; elsewhere they are left out.
    Nothing is refused."""
    program = CLAUDE_CODE._replace(settings=managing)
    upstream = start(simulator, profile, program.script(place.work))
    done = run(program, program.begin("Write a note and look at it."), place, Task(reach(upstream), model))
    assert (done.status, done.answer) == (0, "The note says kept."), done.remarks
    managed = [b"context_management" in body for body in upstream.watched.bodies if body]
    assert any(managed) is (simulator == "anthropic")
    assert upstream.refusals() == []
    assert upstream.verdicts()[-1] == ["whole", "whole"]
    if simulator == "anthropic":
        last = json.loads(upstream.watched.bodies[-1])
        assert last["context_management"]["edits"][0]["type"] == "clear_thinking_20251015"
