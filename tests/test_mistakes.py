"""Mistakes of the first ten minutes, and what is printed: what is wrong, where, and a way that works.

Each in one form: `thoughtline COMMAND: …`, or the words of the argument parser, and exit status 2.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.gateway.gateways import running
from thoughtline.cli import main
from thoughtline.commands import serve as serving
from thoughtline.gateway.admin.table import TABLE
from thoughtline.gateway.choosing import CLIENT_PATHS, MANAGEMENT_PATHS
from thoughtline.settings import ServerSettings, Settings

ROOT = Path(__file__).parents[1]
TOKEN = "0123456789abcdef0123"
SHORT = {"THOUGHTLINE_STORE": "memory://"}

TYPED = [
    ("a command", "srve", {}, "invalid choice: 'srve'", "; did you mean serve?"),
    ("an option", "serve --prot 9000", {}, "unrecognized arguments: --prot; did you mean --port?", ""),
    ("an option like --help", "demo --hlp", {}, "unrecognized arguments: --hlp\n", ""),
    ("an action", "keys lst", {}, "invalid choice: 'lst'", "; did you mean list?"),
    ("a word of an option", "serve --log xml", {}, "invalid choice: 'xml'", ""),
    ("a shell", "completion zhs", {}, "invalid choice: 'zhs'", "; did you mean zsh?"),
    ("a port that is none", "serve --port http", {}, "argument --port: invalid int value: 'http'", ""),
    (
        "a port that is too high",
        "serve --port 80000",
        {},
        "serve: --port: server.port: 80000 is not a port (0 to 65,535)",
        "",
    ),
    (
        "a port that is taken",
        "serve --port TAKEN",
        SHORT,
        "serve: 127.0.0.1:TAKEN can't be used: Address already in use.",
        "Is a gateway running there? Choose another with --port.",
    ),
    (
        "a host that is none",
        "serve --host 256.1.1.1 --port 0",
        SHORT,
        "serve: 256.1.1.1:0 can't be used: ",
        "Choose an address of this machine with --host.",
    ),
    (
        "a number of workers",
        "serve --workers 0",
        {},
        "serve: --workers: server.workers: 0 is out of range (1 to 256)",
        "",
    ),
    (
        "a provider",
        "serve --provider depseek",
        {},
        "serve: --provider: server.provider: there is no such provider (did you mean deepseek?)",
        "",
    ),
    ("an address without its scheme", "serve --upstream localhost:1234", {}, "serve: --upstream: ", "http"),
    ("a simulator", "serve --sim depseek", {}, "serve: no simulator depseek; did you mean deepseek?", ""),
    ("a simulator by itself", "sim depseek", {}, "sim: no simulator depseek; did you mean deepseek?", ""),
    ("a profile", "sim deepseek --profile tool", {}, "sim: no profile tool; did you mean tools?", ""),
    (
        "a store",
        "serve --store mysql://x",
        {},
        "serve: --store: store.url: mysql is no such store (it begins with one of memory, sqlite, redis",
        "",
    ),
    (
        "a store's folder",
        "serve --store sqlite:////dev/null/x/y.db",
        {},
        "serve: /dev/null/x: store.url: this folder can't be created: Not a directory",
        "--store memory://",
    ),
    (
        "a driver that is missing",
        "serve --store redis://127.0.0.1:1",
        {},
        "serve: ",
        "pip install 'thoughtline[redis]'",
    ),
    ("a settings file", "serve --config /no/such.toml", {}, "serve: /no/such.toml: ", ""),
    ("a settings file that is no TOML", "serve --config BROKEN", {}, "serve: BROKEN:2: ", ""),
    (
        "a key in a settings file",
        "serve --config MISSPELLED",
        {},
        "serve: MISSPELLED:2: server.prot: there is no such key (did you mean port?)",
        "",
    ),
    (
        "a variable",
        "serve --port 80000",
        {"THOUGHTLINE_PROT": "9000"},
        "thoughtline: THOUGHTLINE_PROT sets nothing; did you mean THOUGHTLINE_PORT?",
        "",
    ),
    (
        "a variable of a table",
        "keys list",
        {"THOUGHTLINE_SERVER__PROT": "1"},
        "keys: THOUGHTLINE_SERVER__PROT: there is no such variable (did you mean THOUGHTLINE_SERVER__PORT?)",
        "",
    ),
    (
        "a variable's value",
        "serve",
        {"THOUGHTLINE_PORT": "many"},
        'serve: THOUGHTLINE_PORT: server.port: "many" is not a port (0 to 65,535',
        "",
    ),
    (
        "a key that encrypts",
        "serve --store sqlite:///x.db",
        {"THOUGHTLINE_ENCRYPTION_KEY": "short"},
        "serve: ",
        "ENCRYPTION_KEY",
    ),
    (
        "an admin token",
        "serve",
        {"THOUGHTLINE_ADMIN_TOKEN": "short"},
        "serve: THOUGHTLINE_ADMIN_TOKEN: server.admin_token: found something else (expected at least 16 characters",
        "",
    ),
    (
        "keys for everybody",
        "serve --host 0.0.0.0",
        {**SHORT, "THOUGHTLINE_PROVIDERS__DEEPSEEK__API_KEY": "sk-1"},
        "serve: settings: server.host: anybody who reaches this address can use the keys of deepseek",
        "thoughtline keys add NAME",
    ),
    (
        "a home that can't be written",
        "serve",
        {"HOME": "/dev/null"},
        "serve: /dev/null/.local/share/thoughtline: this folder can't be written: Not a directory",
        "--store memory://",
    ),
    (
        "a gateway that is not there",
        "cache stats --url http://127.0.0.1:9",
        {},
        "cache: No gateway answers at http://127.0.0.1:9. Start it, name it with --url, or use --store.",
        "",
    ),
    ("a file to audit", "audit /no/such.json", {}, "audit: /no/such.json: No such file or directory\n", ""),
    (
        "a provider to audit for",
        "audit BROKEN --provider depseek",
        {},
        "audit: no provider depseek; did you mean deepseek?",
        "",
    ),
    ("a client", "connect claud-code", {}, "connect: no client claud-code; did you mean claude-code?", ""),
    (
        "a client's provider",
        "connect codex --provider depseek",
        {},
        "connect: no provider depseek; did you mean deepseek?",
        "",
    ),
    (
        "a model's provider",
        "connect codex --model depseek/x",
        {},
        "connect: no provider depseek; did you mean deepseek?",
        "",
    ),
    (
        "a model with a blank",
        "connect codex --model a,b",
        {},
        "argument --model: 'a,b' can't be written into a settings file",
        "",
    ),
    (
        "a program that is not installed",
        "run codex",
        {"PATH": ""},
        "run: no program codex in PATH; install it: npm install --global @openai/codex",
        "",
    ),
    ("a key's end", "keys add ann --expires soon", {}, "argument --expires: ", ""),
    (
        "a settings file that is there",
        "init MISSPELLED",
        {},
        "init: MISSPELLED already exists, and was not changed. Name another: thoughtline init FILE",
        "",
    ),
    (
        "the model that takes over",
        "eval handoff --from depseek/x --to kimi/y",
        {},
        "no simulator of depseek; did you mean deepseek?",
        "--gateway",
    ),
]


@pytest.mark.parametrize(
    ("line", "variables", "said", "also"), [row[1:] for row in TYPED], ids=[row[0] for row in TYPED]
)
def test_what_is_printed(
    line: str,
    variables: dict[str, str],
    said: str,
    also: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """On standard error, with status 2, and no traceback."""
    (tmp_path / "broken.toml").write_text("[server]\nport 1\n")
    (tmp_path / "misspelled.toml").write_text("[server]\nprot = 1\n")
    for name in [name for name in os.environ if name.startswith(("THOUGHTLINE_", "XDG_"))]:
        monkeypatch.delenv(name)
    for name, value in {"HOME": str(tmp_path), **variables}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(serving, "serve", lambda *given, **named: pytest.fail("it started"))  # and would never end
    for name in ("redis", "redis.asyncio"):
        monkeypatch.setitem(sys.modules, name, None)
    for name in [name for name in sys.modules if name.startswith("thoughtline.stores.redis")]:
        monkeypatch.delitem(sys.modules, name)  # what other tests have loaded already
    with socket.create_server(("127.0.0.1", 0)) as taken:
        names = {
            "TAKEN": str(taken.getsockname()[1]),
            "BROKEN": str(tmp_path / "broken.toml"),
            "MISSPELLED": str(tmp_path / "misspelled.toml"),
        }
        for name, value in names.items():
            line, said = line.replace(name, value), said.replace(name, value)
        assert status_of(line.split()) == 2
    printed = capsys.readouterr().err
    assert said in printed
    assert also in printed
    if not printed.startswith("usage: "):
        assert all(part.startswith("thoughtline") for part in printed.splitlines())


def status_of(words: list[str]) -> int:
    try:
        return main(words)
    except SystemExit as error:
        return int(error.code or 0)


def test_a_python_that_is_too_old(tmp_path: Path) -> None:
    """`make` says which one it needs, and how to name another."""
    old = tmp_path / "python3"
    code = "import sys; sys.version_info = (3, 9, 2); exec(sys.argv[1])"
    old.write_text(f'#!/bin/sh\nexec "{sys.executable}" -c "{code}" "$2"\n')
    old.chmod(0o755)
    command = ["make", "-f", str(ROOT / "Makefile"), "run", f"PYTHON={old}", "VENV=venv"]
    for name in ("run.lock", "pyproject.toml"):
        (tmp_path / name).touch()
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert "thoughtline needs Python 3.11 or newer; name one: make PYTHON=python3.11" in done.stderr
    assert done.returncode == 2


def test_nowhere_to_write(tmp_path: Path) -> None:
    """A gateway that keeps nothing needs no file: no home, nothing that can be written, and it answers."""
    command = [sys.executable, "-m", "thoughtline.cli", "serve", "--store", "memory://", "--port", "0"]
    environment = {"HOME": "/dev/null", "PATH": os.environ["PATH"], "TMPDIR": "/dev/null"}
    with subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True, cwd="/") as server:
        assert server.stderr is not None
        said = next(line for line in server.stderr if "listening" in line)
        url = said.split()[1].removesuffix("/PROVIDER,")
        assert httpx.get(f"{url}/healthz").status_code == 200  # the banner speaks when it listens
        server.terminate()


@pytest.fixture(scope="module")
def gateway() -> Iterator[str]:
    with running({}, Settings(server=ServerSettings(admin_token=TOKEN))) as started:
        yield started.url


ASKED = [
    ("a provider", "/depseek/v1/chat/completions", "x/y", 404, "Did you mean /deepseek/v1/chat/completions?"),
    ("an alias", "/moonshoot/v1/messages", "x/y", 404, "Did you mean /kimi/v1/messages?"),
    ("a path", "/v1/chat/completion", "x/y", 404, "Did you mean /v1/chat/completions?"),
    ("a path of Anthropic's", "/v1/mesages", "x/y", 404, "Did you mean /v1/messages?"),
    ("a management path", "/api/setings", "x/y", 404, "Did you mean /api/settings?"),
    (
        "a model's provider",
        "/v1/chat/completions",
        "depseek/deepseek-v4-pro",
        404,
        "Did you mean deepseek/deepseek-v4-pro?",
    ),
    ("a model alone", "/v1/chat/completions", "kimi-k3", 404, "Did you mean kimi/kimi-k3?"),
    ("no model", "/v1/chat/completions", "", 400, 'Set "model" to "provider/model".'),
]


@pytest.mark.parametrize(("path", "model", "status", "said"), [row[1:] for row in ASKED], ids=[row[0] for row in ASKED])
def test_what_is_answered(path: str, model: str, status: int, said: str, gateway: str) -> None:
    """The nearest name that is known, over HTTP as on the command line."""
    body = {"model": model, "messages": [{"role": "user", "content": "Hi"}]}
    answer = httpx.post(f"{gateway}{path}", json=body, headers={"authorization": "Bearer x"})
    message = answer.json()["error"]["message"]
    assert answer.status_code == status
    assert said in message
    assert not ("Did you mean /kimi" in message and "Start the path" in message)  # one remedy is enough


MANAGED = [
    ("a parameter", "/api/requests?limt=3", 400, "Did you mean limit?"),
    ("a client", "/api/connect?client=claud", 404, "Did you mean claude-code?"),
    ("a provider", "/api/connect?client=codex&provider=depseek", 404, "Did you mean deepseek?"),
]


@pytest.mark.parametrize(("path", "status", "said"), [row[1:] for row in MANAGED], ids=[row[0] for row in MANAGED])
def test_what_the_admin_api_answers(path: str, status: int, said: str, gateway: str) -> None:
    """Likewise."""
    answer = httpx.get(f"{gateway}{path}", headers={"authorization": f"Bearer {TOKEN}"})
    assert (answer.status_code, answer.json()["error"]["remedy"]) == (status, said)


def test_the_paths_that_may_be_meant_are_there() -> None:
    """Those of the table; of each folder at least the first."""
    known = {row.path for row in TABLE}
    assert set(MANAGEMENT_PATHS) <= known
    assert {path for path in known if path.startswith("/api/") and "{" not in path} <= set(MANAGEMENT_PATHS)
    assert len(set(CLIENT_PATHS)) == len(CLIENT_PATHS)
