"""Session files as Claude Code and Codex write them: read whole, their requests are what was sent."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.clients.agents import CLAUDE_CODE, CODEX
from tests.clients.programs import Place, Program, Task, run
from tests.clients.upstreams import start
from thoughtline.commands.audit import read_inputs
from thoughtline.engine.audit import audit

pytestmark = pytest.mark.programs

ROWS = [
    (CLAUDE_CODE, "anthropic", "claude-opus-5-5", "bound", ".claude/projects/*/*.jsonl"),
    (CODEX, "openai", "gpt-5.3-codex", None, ".codex/sessions/**/rollout-*.jsonl"),
]


@pytest.mark.parametrize(("program", "simulator", "model", "profile", "files"), ROWS, ids=["claude-code", "codex"])
def test_a_session_is_read(
    program: Program, simulator: str, model: str, profile: str | None, files: str, place: Place
) -> None:
    """One request for each prompt; nothing is wrong with it, and without its reasoning it is the line that says so."""
    upstream = start(simulator, profile, program.script(place.work))
    assert program.resume is not None
    for arguments in (program.begin("Write a note and look at it."), program.resume("Now a copy.")):
        assert run(program, arguments, place, Task(upstream.url, model)).status == 0
    (file,) = place.home.glob(files)
    inputs = read_inputs(file.read_bytes())
    assert len(inputs) == 2
    for one in inputs:
        assert audit(one.body, simulator, format=one.format) == []
    _without_reasoning(file)
    for one in read_inputs(file.read_bytes()):
        for finding in audit(one.body, "deepseek", "deepseek-v4-pro", one.format):
            line = file.read_text().splitlines()[one.locate(finding.place)[0] - 1]
            assert '"assistant"' in line or '"function_call"' in line


def _without_reasoning(file: Path) -> None:
    lines = file.read_text().splitlines(keepends=True)
    file.write_text("".join(line for line in lines if '"type":"thinking"' not in line and '"reasoning"' not in line))
