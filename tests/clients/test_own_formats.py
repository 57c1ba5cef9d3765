"""Coding agents that `thoughtline run` starts, at a task with tools: in the provider's own format where they speak it,
thinking where the model thinks only if asked, with plain content where they can't read lists.

`make test-clients` runs this.
"""

from __future__ import annotations

import os
import sys
from typing import NamedTuple

import pytest

from tests.clients.agents import CLINE, CONTINUE, COPILOT_CLI, GEMINI_CLI, OPENCODE, PI, QWEN_CODE
from tests.clients.programs import KEY, Outcome, Place, Program, environment_of, executable_of, finished
from tests.clients.upstreams import reach, start
from tests.gateway.gateways import running
from thoughtline.clients import find

pytestmark = pytest.mark.programs

QUIET = {
    "OPENCODE_DISABLE_MODELS_FETCH": "1",
    "COPILOT_OFFLINE": "true",
    "CONTINUE_TELEMETRY_ENABLED": "0",
    "PI_OFFLINE": "1",
    "CLINE_SESSION_BACKEND_MODE": "local",  # otherwise it leaves a daemon behind
    "QWEN_CODE_SUPPRESS_YOLO_WARNING": "1",
}


class Row(NamedTuple):
    """A program, the provider and the model it is started with, and where its requests arrive. `verdict` is what the
    simulator says of every turn: `none` where a provider shows no reasoning in this format."""

    program: Program
    simulator: str
    model: str
    path: str
    profile: str | None = None
    verdict: str = "whole"

    @property
    def id(self) -> str:
        return f"{self.program.name}-{self.simulator}"


# These rewrite what a resumed conversation begins with: tests/clients/test_rewritten_openings.py
GEMINI_ONCE, QWEN_ONCE = GEMINI_CLI._replace(resume=None), QWEN_CODE._replace(resume=None)

CHAT, MESSAGES, RESPONSES = "/v1/chat/completions", "/v1/messages", "/v1/responses"
GEMINI = "/v1beta/models/gemini-3-pro-preview:streamGenerateContent"
ROWS = (
    Row(OPENCODE, "mistral", "magistral-medium-2607", CHAT),
    Row(CLINE, "mistral", "magistral-medium-2607", CHAT),
    Row(CONTINUE, "mistral", "magistral-medium-2607", CHAT),
    Row(PI, "mistral", "magistral-medium-2607", CHAT),
    Row(OPENCODE, "anthropic", "claude-sonnet-4-5", MESSAGES, "classic"),
    Row(CLINE, "anthropic", "claude-sonnet-4-5", MESSAGES, "classic"),
    Row(CONTINUE, "anthropic", "claude-sonnet-4-5", MESSAGES, "classic"),
    Row(COPILOT_CLI, "anthropic", "claude-sonnet-4-5", MESSAGES, "classic"),
    Row(GEMINI_ONCE, "anthropic", "claude-sonnet-4-5", MESSAGES, "classic"),
    Row(QWEN_ONCE, "anthropic", "claude-sonnet-4-5", MESSAGES, "classic"),
    Row(OPENCODE, "openrouter", "anthropic/claude-sonnet-4.5", CHAT),
    Row(GEMINI_ONCE, "openrouter", "anthropic/claude-sonnet-4.5", CHAT),
    Row(OPENCODE, "openai", "gpt-5", RESPONSES),
    Row(QWEN_ONCE, "openai", "gpt-5", CHAT, verdict="none"),
    Row(OPENCODE, "gemini", "gemini-3-pro-preview", GEMINI),
    Row(CLINE, "gemini", "gemini-3-pro-preview", GEMINI),
)


def started(program: Program, place: Place, words: list[str], *options: str) -> Outcome:
    """The program as `thoughtline run` starts it, with its own arguments."""
    client = find(program.name)
    assert client is not None
    assert client.program is not None
    command = place.home / "bin" / client.program.command
    if not command.exists():
        command.parent.mkdir()
        command.symlink_to(executable_of(program))
    environment = environment_of(place) | {"THOUGHTLINE_KEY": KEY} | QUIET
    environment["PATH"] = f"{command.parent}{os.pathsep}{environment['PATH']}"
    words = [word for word in words if word not in ("--auth-type", "openai")]
    run = [sys.executable, "-m", "thoughtline.cli", "run", client.name, *options]
    return finished([*run, "--", *words], place, environment)


@pytest.mark.parametrize("row", ROWS, ids=[row.id for row in ROWS])
def test_a_task_with_tools(row: Row, place: Place) -> None:
    """Tools run and the answers come, also of a second process that resumes; the model thinks, and whatever is sent
    again of its turns is whole."""
    program = row.program
    upstream = start(row.simulator, row.profile, program.script(place.work))
    gateway = reach(upstream).rpartition("/")[0]
    options = ("--provider", row.simulator, "--model", row.model, "--url", gateway)

    first = started(program, place, program.begin("Write a note and look at it."), *options)
    assert (first.status, first.answer) == (0, "The note says kept."), first.remarks
    if program.resume is not None:
        second = started(program, place, program.resume("Now a copy."), *options)
        assert (second.status, second.answer) == (0, "The copy is there."), second.remarks

    answered = [entry["verdicts"] for entry in upstream.watched.app.simulation.log if entry["status"] == 200]
    assert {verdict for verdicts in answered for verdict in verdicts} == {row.verdict}
    assert max(map(len, answered)) == (4 if program.resume is not None else 2)
    assert {seen.path for seen in upstream.watched.seen if seen.method == "POST"} == {row.path}


def test_a_session_of_opencode_goes_on_with_another_provider(place: Place) -> None:
    """The one that `run` names, whichever model the session began with."""
    names = ("deepseek", "kimi", "deepseek")
    sims = {name: start(name, None, "|---|".join([f"think: Hm.|say: This is {name}."] * 3)) for name in set(names)}
    with running({name: sim.url for name, sim in sims.items()}) as gateway:
        for number, name in enumerate(names):
            words = ["run", *(["-c"] if number else []), "Hello there."]
            outcome = started(OPENCODE, place, words, "--provider", name, "--url", gateway.url)
            assert (outcome.status, outcome.answer) == (0, f"This is {name}."), outcome.remarks
