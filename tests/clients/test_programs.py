"""Coding agents, the real programs, at a task with tools. `make test-clients` runs this."""

from __future__ import annotations

from typing import NamedTuple

import pytest

from tests.clients.agents import (
    CLAUDE_CODE,
    CLAUDE_CODE_BEDROCK,
    CLAUDE_CODE_VERTEX,
    CLINE,
    CLINE_MESSAGES,
    CODEX,
    CONTINUE,
    CONTINUE_MESSAGES,
    COPILOT_CLI,
    COPILOT_CLI_RESPONSES,
    OPENCODE,
    OPENCODE_MESSAGES,
    PI,
    PI_GEMINI,
    PI_MESSAGES,
)
from tests.clients.programs import Place, Program, Task, run
from tests.clients.upstreams import reach, start
from thoughtline.values.turns import FormatName

pytestmark = pytest.mark.programs


class Row(NamedTuple):
    """A program, the provider that it talks to, and the model it asks for. `refusals` are healed before the program
    hears of them: each teaches what to leave out from then on."""

    program: Program
    simulator: str
    model: str
    profile: str | None = None
    formats: tuple[FormatName, ...] | None = None
    refusals: int = 0

    @property
    def id(self) -> str:
        return "-".join(part for part in (self.program.name, self.simulator, self.profile) if part)


ROWS = (
    Row(CLAUDE_CODE, "anthropic", "claude-sonnet-4-5", "classic"),
    Row(CLAUDE_CODE, "anthropic", "claude-opus-4-8", "adaptive"),
    Row(CLAUDE_CODE, "anthropic", "claude-opus-5-5", "bound"),
    # each run asks for `/inference-profiles` first, which Bedrock has at another host: a 404 that it takes
    Row(CLAUDE_CODE_BEDROCK, "bedrock", "us.anthropic.claude-sonnet-4-5-20250929-v1:0", "classic", refusals=2),
    Row(CLAUDE_CODE_BEDROCK, "bedrock", "us.anthropic.claude-opus-4-8", "adaptive", refusals=2),
    Row(CLAUDE_CODE_VERTEX, "vertex", "claude-sonnet-4-5@20250929", "classic"),
    Row(CLAUDE_CODE_VERTEX, "vertex", "claude-opus-4-8", "adaptive"),
    Row(CLAUDE_CODE, "deepseek", "deepseek-v4-pro"),
    Row(CLAUDE_CODE, "kimi", "kimi-k2.6"),
    Row(CLAUDE_CODE, "minimax", "MiniMax-M3"),
    Row(CODEX, "openai", "gpt-5"),
    Row(CODEX, "azure", "gpt-5-mini"),
    Row(CODEX, "xai", "grok-4.7"),
    Row(CODEX, "deepseek", "deepseek-v4-pro"),
    Row(CODEX, "copilot", "gpt-5.3-codex"),
    Row(OPENCODE, "deepseek", "deepseek-v4-pro"),
    Row(OPENCODE_MESSAGES, "anthropic", "claude-opus-5-5", "bound"),
    Row(COPILOT_CLI, "deepseek", "deepseek-v4-pro"),
    Row(COPILOT_CLI, "groq", "openai/gpt-oss-120b", refusals=2),
    Row(COPILOT_CLI, "mistral", "magistral-medium-2607", refusals=2),
    Row(COPILOT_CLI_RESPONSES, "openai", "gpt-5"),
    Row(CLINE, "deepseek", "deepseek-v4-pro"),
    Row(CLINE_MESSAGES, "anthropic", "claude-opus-5-5", "bound"),
    Row(CONTINUE, "deepseek", "deepseek-v4-pro"),
    Row(CONTINUE_MESSAGES, "deepseek", "deepseek-v4-pro"),
    Row(PI, "deepseek", "deepseek-v4-pro"),
    Row(PI_GEMINI, "gemini", "gemini-3-pro-preview"),
    # of another format than the program's: translated
    Row(CLAUDE_CODE, "openai", "gpt-5"),
    Row(CLAUDE_CODE, "gemini", "gemini-3-pro-preview"),
    Row(CODEX, "anthropic", "claude-opus-5-5", "bound"),
    Row(CODEX, "gemini", "gemini-3-pro-preview"),
    Row(CODEX, "kimi", "kimi-k2.6"),
    Row(CLAUDE_CODE, "openrouter", "anthropic/claude-sonnet-4.5", formats=("openai_chat",)),
    Row(OPENCODE, "anthropic", "claude-opus-5-5", "bound"),
    Row(COPILOT_CLI, "gemini", "gemini-3-pro-preview"),
    Row(COPILOT_CLI_RESPONSES, "anthropic", "claude-opus-4-8", "adaptive"),
    Row(CLINE_MESSAGES, "kimi", "kimi-k2.6"),
    Row(CLINE_MESSAGES, "openai", "gpt-5"),
    Row(CONTINUE, "anthropic", "claude-opus-5-5", "bound"),
    Row(PI_MESSAGES, "openai", "gpt-5"),
    Row(PI_GEMINI, "kimi", "kimi-k2.6"),
)


@pytest.mark.parametrize("row", ROWS, ids=[row.id for row in ROWS])
def test_a_task_with_tools(row: Row, place: Place) -> None:
    """Tools run, the answers come, also of a second process that resumes; no request is refused, nobody else is asked,
    and of every turn that is sent again the reasoning is whole."""
    upstream = start(row.simulator, row.profile, row.program.script(place.work))
    task = Task(reach(upstream, row.formats), row.model)

    first = run(row.program, row.program.begin("Write a note and look at it."), place, task)
    assert (first.status, first.answer) == (0, "The note says kept."), first.remarks
    assert (place.work / "note.txt").read_text() == "kept"

    turns = 3
    if row.program.resume is not None:
        second = run(row.program, row.program.resume("Now a copy."), place, task)
        assert (second.status, second.answer) == (0, "The copy is there."), second.remarks
        assert (place.work / "copy.txt").read_text() == "kept"
        turns = 5

    assert len(upstream.refusals()) == row.refusals
    answered = [verdicts for verdicts, status in upstream.judged() if status == 200]
    assert answered == [["whole"] * before for before in range(turns)]
    assert place.trap.strangers(row.program) == []
