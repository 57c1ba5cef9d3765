"""Coding agents that are told nothing but what `thoughtline connect` prints, or that `thoughtline run` starts.

`make test-clients` runs this.
"""

from __future__ import annotations

import os
import sys

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
from tests.clients.programs import (
    KEY,
    Outcome,
    Place,
    Program,
    Task,
    environment_of,
    executable_of,
    finished,
    run,
)
from tests.clients.upstreams import Upstream, reach, start
from thoughtline.clients import DEFAULT_URL, Address, Client, address_of, find, lines_of
from thoughtline.clients.launching import shell_lines
from thoughtline.commands.client_files import file_of

pytestmark = pytest.mark.programs

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
every_row = pytest.mark.parametrize(("program", "simulator"), ROWS, ids=[f"{row[0].name}-{row[1]}" for row in ROWS])


def told(program: Program, simulator: str) -> tuple[Upstream, Client, Address]:
    """A simulator behind a gateway, and where the client is to go."""
    client = find(program.name)
    assert client is not None
    upstream = start(simulator, None, "think: A greeting.|say: Here is the answer you asked for.")
    return upstream, client, address_of(client, DEFAULT_URL, simulator)._replace(base=reach(upstream))


@every_row
def test_what_connect_prints(program: Program, simulator: str, place: Place) -> None:
    """The program gets its answer, and no request is refused."""
    upstream, client, address = told(program, simulator)
    variables: dict[str, str] = {}
    options: list[str] = []
    for step in client.steps:
        lines = lines_of(client, step, address)
        if step.language == "shell":
            shell = shell_lines(lines)
            variables |= shell.variables
            options += [word for words in shell.commands if words[1] != "auth" for word in words[1:]]
        elif step.file:
            file = file_of(step, place.home)
            file.parent.mkdir(parents=True)
            file.write_text(lines)
    connected = program._replace(settings=lambda place, task: variables)
    words = program.begin("Hello there.")
    outcome = run(connected, [*(word for word in options if word not in words), *words], place, Task("", ""))
    check(outcome, upstream)


@every_row
def test_what_run_starts(program: Program, simulator: str, place: Place) -> None:
    """With the client's own arguments behind `--`, its exit status, and no file of its own made or changed."""
    upstream, client, address = told(program, simulator)
    if client.program is None:
        pytest.skip("only its own file can set it")
    command = place.home / "bin" / client.program.command
    command.parent.mkdir()
    command.symlink_to(executable_of(program))
    words = [word for word in program.begin("Hello there.") if word not in ("--auth-type", "openai")]
    gateway = address.base.rpartition("/")[0]
    started = [sys.executable, "-m", "thoughtline.cli", "run", client.name, "--provider", simulator, "--url", gateway]
    environment = environment_of(place) | {"THOUGHTLINE_KEY": KEY}
    environment["PATH"] = f"{command.parent}{os.pathsep}{environment['PATH']}"
    check(finished([*started, "--", *words], place, environment), upstream)


@pytest.mark.parametrize("program", [CLINE], ids=["cline"])
def test_a_command_that_connect_prints(program: Program, place: Place) -> None:
    """Cline has a command that writes its file."""
    upstream, client, address = told(program, "deepseek")
    (step,) = (step for step in client.steps if step.language == "shell")
    ((_, *words),) = shell_lines(lines_of(client, step, address)).commands
    connected = program._replace(settings=lambda place, task: {})
    assert run(connected, words, place, Task("", "")).status == 0
    check(run(connected, program.begin("Hello there."), place, Task("", "")), upstream)


def check(outcome: Outcome, upstream: Upstream) -> None:
    """The answer came, and no request was refused."""
    assert (outcome.status, upstream.refusals()) == (0, []), outcome.remarks
    assert outcome.answer == "Here is the answer you asked for.", outcome.remarks
    assert upstream.watched.seen
