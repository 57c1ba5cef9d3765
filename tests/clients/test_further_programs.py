"""Programs from npm that cut turns apart or stand in front of others, each as `thoughtline run` or `connect` sets it.

Their histories don't show where a model's turn began, so the simulator's turns answer one request after the other.
`make test-clients` runs this, `make test-clients-all` also what takes long. Seen of the versions on 2026-11-18.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.clients.agents import CLAUDE_CODE, shell_calls
from tests.clients.programs import CLIENTS, KEY, Calls, Outcome, Place, Task, environment_of, finished, run
from tests.clients.upstreams import Upstream, reach, start
from thoughtline.clients import DEFAULT_URL, address_of, find, lines_of

pytestmark = pytest.mark.programs


class Further(NamedTuple):
    """A program: where it is installed, the calls of the task, its command lines, and variables that keep it quiet."""

    name: str
    executable: str
    calls: Calls
    begin: tuple[str, ...]
    resume: tuple[str, ...]
    variables: dict[str, str]

    def script(self) -> str:
        turns = [
            ("think: First I write the note.", "say: Writing it now.", f"call: {self.calls.write}"),
            ("think: Two ways at once.", f"call: {self.calls.read}", f"call: {self.calls.measure}"),
            ("think: It says what I wrote.", "say: The note says kept."),
            ("think: The user wants a second one.", f"call: {self.calls.copy}"),
            ("think: Both are there.", "say: The copy is there."),
        ]
        return "|---|".join(map("|".join, turns))


def calls_of(tool: str, **others: str) -> Calls:
    return shell_calls(tool, **others)(Path())


_GOOSE = ("run", "--no-profile", "--with-builtin", "developer", "--name", "task")

GOOSE = Further(
    "goose",
    "node_modules/.bin/goose",
    calls_of("shell"),
    (*_GOOSE, "--text"),
    (*_GOOSE, "--resume", "--text"),
    {"GOOSE_DISABLE_KEYRING": "1", "GOOSE_MODE": "auto", "GOOSE_DISABLE_SESSION_NAMING": "true"},
)
KIMI_CODE = Further(
    "kimi-code",
    "node_modules/.bin/kimi",
    calls_of("Bash"),
    ("--prompt",),
    ("--continue", "--prompt"),
    {"KIMI_CODE_NO_AUTO_UPDATE": "1"},
)
ROWS = (
    (GOOSE, "deepseek"),
    (GOOSE, "kimi"),
    (GOOSE, "gemini"),
    (KIMI_CODE, "deepseek"),
    (KIMI_CODE, "kimi"),
)


@pytest.mark.parametrize(("program", "provider"), ROWS)
def test_a_task_by_run(program: Further, provider: str, place: Place) -> None:
    """Tools run, also in a session that is resumed; nothing is refused, and every part of a turn that is sent again has
    the reasoning of that turn."""
    upstream = start(provider, None, program.script(), by_request=True)
    gateway = reach(upstream).rpartition("/")[0]
    outcome = begun(program, provider, gateway, place, [*program.begin, "Write a note and look at it."])
    assert (outcome.status, upstream.refusals()) == (0, []), outcome.remarks
    assert (place.work / "note.txt").read_text() == "kept"
    outcome = begun(program, provider, gateway, place, [*program.resume, "Now a copy."])
    assert (outcome.status, upstream.refusals()) == (0, []), outcome.remarks
    assert outcome.answer.endswith("The copy is there.")
    assert (place.work / "copy.txt").read_text() == "kept"
    assert_whole(upstream, program.script(), requests=5)


def test_goose_in_geminis_format_on_another_provider(place: Place) -> None:
    """goose writes `tools` as one object there, and Google takes that: so does what translates it."""
    upstream = start("openai", None, GOOSE.script(), by_request=True)
    variables = {"GOOSE_PROVIDER": "google", "GOOSE_MODEL": "gpt-5", "GOOGLE_HOST": reach(upstream)}
    environment = environment_of(place) | GOOSE.variables | variables | {"GOOGLE_API_KEY": KEY}
    words = [str(CLIENTS / GOOSE.executable), *GOOSE.begin, "Write a note and look at it."]
    outcome = finished(words, place, environment)
    assert (outcome.status, upstream.refusals()) == (0, []), outcome.remarks
    assert outcome.answer.endswith("The note says kept.")


def test_goose_in_geminis_own_format(place: Place) -> None:
    """What goose keeps of signatures goes up, and what it drops comes back: no skip value stands for a real one."""
    upstream = start("gemini", None, GOOSE.script(), by_request=True)
    variables = {"GOOSE_PROVIDER": "google", "GOOSE_MODEL": "gemini-3-pro-preview", "GOOGLE_HOST": reach(upstream)}
    environment = environment_of(place) | GOOSE.variables | variables | {"GOOGLE_API_KEY": KEY}
    for words in ([*GOOSE.begin, "Write a note and look at it."], [*GOOSE.resume, "Now a copy."]):
        outcome = finished([str(CLIENTS / GOOSE.executable), *words], place, environment)
        assert (outcome.status, upstream.refusals()) == (0, []), outcome.remarks
    assert not any(b"skip_thought_signature_validator" in body for body in upstream.watched.bodies)


def begun(program: Further, provider: str, gateway: str, place: Place, words: list[str]) -> Outcome:
    """The program as `thoughtline run` starts it."""
    client = find(program.name)
    assert client is not None
    assert client.program is not None
    command = place.home / "bin" / client.program.command
    command.parent.mkdir(exist_ok=True)
    if not command.is_symlink():
        command.symlink_to(CLIENTS / program.executable)
    environment = environment_of(place) | program.variables | {"THOUGHTLINE_KEY": KEY}
    environment["PATH"] = f"{command.parent}{os.pathsep}{environment['PATH']}"
    started = [sys.executable, "-m", "thoughtline.cli", "run", program.name, "--provider", provider, "--url", gateway]
    return finished([*started, "--", *words], place, environment)


def assert_whole(upstream: Upstream, script: str, requests: int) -> None:
    """Each part of a turn has the thoughts of its turn, or Gemini's signature; a call that the model did not sign, and
    that stands behind results, has the skip value."""
    thoughts = dict[str, str]()
    for turn in script.split("|---|"):
        think, *rest = turn.split("|")
        for line in rest:
            shown = line.removeprefix("say: ")
            thoughts[command_of(line.split(" ", 2)[2]) if line.startswith("call: ") else shown] = think[7:]
    bodies = [json.loads(body) for body in upstream.watched.bodies if body]
    assert len(bodies) == requests
    parts = [message for message in bodies[-1]["messages"] if message["role"] == "assistant"]
    assert parts
    for body in bodies:
        for message in body["messages"]:
            if message["role"] == "assistant":
                calls = [command_of(call["function"]["arguments"]) for call in message.get("tool_calls") or ()]
                own = {thoughts[shown] for shown in (words_of(message), *calls) if shown}
                if upstream.provider != "gemini":
                    assert own == {message.get("reasoning_content")}
    made = [call for part in parts for call in part.get("tool_calls") or ()]
    seals = [call["extra_content"]["google"]["thought_signature"] for call in made if call.get("extra_content")]
    if upstream.provider == "gemini":  # goose, when it resumes, may have lost a turn of parallel calls
        turns = {thoughts[command_of(call["function"]["arguments"])] for call in made}
        assert sum(not seal.startswith("skip_") for seal in seals) == len(turns) >= 2


def words_of(message: dict[str, Any]) -> str:
    """What a chat message says, in a text or in parts."""
    content = message.get("content") or ""
    return content if isinstance(content, str) else "".join(part.get("text", "") for part in content)


def command_of(arguments: str) -> str:
    return str(json.loads(arguments)["command"])


# --- a router in front of the gateway -------------------------------------------------------------------------------


@contextmanager
def routed(base: str, model: str, place: Place) -> Iterator[str]:
    """claude-code-router, set as `connect` prints it; gives its address."""
    client = find("claude-code-router")
    assert client is not None
    address = address_of(client, DEFAULT_URL, "deepseek", model=model)._replace(base=base)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    folder = place.home / ".claude-code-router"
    folder.mkdir()
    lines = json.loads(lines_of(client, client.steps[0], address, key=KEY))
    (folder / "config.json").write_text(json.dumps({"PORT": port, "LOG": False, **lines}))
    words = [str(CLIENTS / "node_modules" / ".bin" / "ccr"), "start"]
    with subprocess.Popen(
        words, cwd=place.work, env=environment_of(place), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL
    ) as process:
        while process.poll() is None:
            with suppress(OSError), socket.create_connection(("127.0.0.1", port)):
                break
            with suppress(subprocess.TimeoutExpired):
                process.wait(0.1)
        yield f"http://127.0.0.1:{port}"
        process.terminate()


ROUTED = (
    ("deepseek", "deepseek-v4-pro"),
    pytest.param("kimi", "kimi-k2.6", marks=pytest.mark.all_programs),
    pytest.param("glm", "glm-5", marks=pytest.mark.all_programs),
)


@pytest.mark.parametrize(("provider", "model"), ROUTED)
def test_claude_code_behind_a_router(provider: str, model: str, place: Place) -> None:
    """It strips reasoning and says `reasoning.enabled: false`, which these providers don't read: they think, and get
    every turn's reasoning back."""
    upstream = start(provider, None, CLAUDE_CODE.script(place.work))
    assert CLAUDE_CODE.resume is not None
    with routed(reach(upstream), model, place) as url:
        for words in (CLAUDE_CODE.begin("Write a note and look at it."), CLAUDE_CODE.resume("Now a copy.")):
            outcome = run(CLAUDE_CODE, words, place, Task(url, model))
            assert (outcome.status, upstream.refusals()) == (0, []), outcome.remarks
    assert upstream.verdicts() == [["whole"] * before for before in range(5)]
    assert b'"enabled":false' in b"".join(upstream.watched.bodies)
