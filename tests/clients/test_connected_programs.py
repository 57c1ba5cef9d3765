"""Coding agents that are told nothing but what `thoughtline connect` prints. `make test-clients` runs this."""

from __future__ import annotations

import shlex
from typing import NamedTuple

import pytest

from tests.clients.agents import (
    CLAUDE_CODE,
    CLINE,
    CODEX,
    CONTINUE,
    COPILOT_CLI,
    GEMINI_CLI,
    OPENCODE,
    PI,
    QWEN_CODE,
)
from tests.clients.programs import Place, Program, Task, run
from tests.clients.upstreams import reach, start
from thoughtline.clients import DEFAULT_URL, address_of, fill, find

pytestmark = pytest.mark.programs

FILES = {
    "codex": ".codex/config.toml",
    "gemini-cli": ".gemini/settings.json",
    "opencode": ".config/opencode/opencode.json",
    "continue": ".continue/config.yaml",
    "pi": ".pi/agent/models.json",
}
"""Where the lines that are no shell commands go: as `connect` says in words."""

ROWS = (
    (CLAUDE_CODE, "anthropic"),
    (CLAUDE_CODE, "deepseek"),
    (CODEX, "openai"),
    (CODEX, "deepseek"),
    (CODEX, "kimi"),
    (CODEX, "anthropic"),
    (CODEX, "gemini"),
    (COPILOT_CLI, "deepseek"),
    (CLINE, "deepseek"),
    (OPENCODE, "deepseek"),
    (GEMINI_CLI, "gemini"),
    (GEMINI_CLI, "anthropic"),
    (QWEN_CODE, "qwen"),
    (CONTINUE, "deepseek"),
    (PI, "deepseek"),
)


class Told(NamedTuple):
    """What a shell was told: variables, a command that sets something up, and how the program is to be started."""

    environment: dict[str, str]
    before: list[str]
    options: list[str]


def _obey(shell: str) -> Told:
    environment: dict[str, str] = {}
    before: list[str] = []
    options: list[str] = []
    for line in shell.strip().splitlines():
        words = shlex.split(line)
        if words[0] == "export":
            environment |= dict(word.split("=", 1) for word in words[1:])
        elif words[1] == "auth":
            before = words[1:]
        else:
            options = words[1:]
    return Told(environment, before, options)


@pytest.mark.parametrize(("program", "simulator"), ROWS, ids=[f"{row[0].name}-{row[1]}" for row in ROWS])
def test_what_connect_prints(program: Program, simulator: str, place: Place) -> None:
    """The program gets its answer, and no request is refused."""
    client = find(program.name)
    assert client is not None
    upstream = start(simulator, None, "think: A greeting.|say: Here is the answer you asked for.")
    reached = reach(upstream)
    address = address_of(client, DEFAULT_URL, simulator)._replace(base=reached)
    steps = {step.language: fill(step.lines, address) for step in client.steps if step.language != "words"}
    told = _obey(steps.pop("shell", ""))
    for lines in steps.values():
        file = place.home / FILES[program.name]
        file.parent.mkdir(parents=True)
        file.write_text(lines)

    connected = program._replace(settings=lambda place, task: told.environment)
    if told.before:
        assert run(connected, told.before, place, Task("", "")).status == 0
    words = program.begin("Hello there.")
    outcome = run(connected, [*(word for word in told.options if word not in words), *words], place, Task("", ""))
    assert (outcome.status, upstream.refusals()) == (0, []), outcome.remarks
    assert outcome.answer == "Here is the answer you asked for.", outcome.remarks
    assert upstream.watched.seen
