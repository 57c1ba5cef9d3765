"""macOS and Windows by construction: the program with everything hidden that only POSIX, or only Linux, has.

Neither was tried on a real machine. A separate process hides the modules and functions before anything is imported,
then runs the demo, a gateway that is asked, and the library.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.stores.servers import free_port
from thoughtline.clients import CLIENTS, find
from thoughtline.commands.client_files import file_of
from thoughtline.commands.run import _link
from thoughtline.settings import own_files
from thoughtline.stores.settings import default_url

HIDING = """
import asyncio, importlib.abc, os, signal, socket, sys

class Hidden(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {"uvloop", "resource", "fcntl", "grp", "pwd", "termios", "tty", "pty"}:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

for name in ("resource", "fcntl", "grp", "pwd", "uvloop", "termios"):
    sys.modules.pop(name, None)
sys.meta_path.insert(0, Hidden())
for name in ("SIGHUP", "SIGUSR1", "SIGUSR2", "SIGQUIT", "SIGPIPE", "SIGCHLD", "SIGALRM", "SIGKILL"):
    if hasattr(signal, name):
        delattr(signal, name)
for name in (
    "getuid", "geteuid", "getgid", "fork", "chown", "fchmod", "sched_getaffinity", "getpgid", "killpg",
    "register_at_fork", "getloadavg", "pread", "pwrite", "sendfile", "setsid",
):
    if hasattr(os, name):
        delattr(os, name)
# Modes say nothing: whatever is made, others may read it.
os.umask(0)
os.chmod = lambda *arguments, **named: None
plain_open, plain_mkdir = os.open, os.mkdir
os.open = lambda path, flags, mode=0o777, **named: plain_open(path, flags, 0o666, **named)
os.mkdir = lambda path, mode=0o777, **named: plain_mkdir(path, 0o777, **named)
os.symlink = lambda *arguments, **named: refuse()

def socketpair(*arguments, **named):  # as it is made on Windows
    listener = socket.create_server(("127.0.0.1", 0))
    one = socket.create_connection(listener.getsockname())
    other, _ = listener.accept()
    listener.close()
    return one, other

socket.socketpair = socketpair
del socket.AF_UNIX
for name in ("SO_REUSEPORT", "TCP_DEFER_ACCEPT", "TCP_USER_TIMEOUT"):
    if hasattr(socket, name):
        delattr(socket, name)

def refuse(*arguments, **named):
    raise NotImplementedError

for name in ("add_signal_handler", "add_reader", "add_writer"):
    setattr(asyncio.SelectorEventLoop, name, refuse)
"""

DEMO = """
from thoughtline.cli import main
sys.exit(main(["demo"]))
"""

GATEWAY = """
import asyncio
import msgspec
from thoughtline.commands.http_client import answer_to
from thoughtline.commands.loopback import gateway_for, listening
from thoughtline.commands.serve import start_sim
from thoughtline.settings import Flags, load_settings
from pathlib import Path

async def ask():
    sim = start_sim("deepseek")
    settings = load_settings(None, {}, Flags(upstream=sim.url, provider="deepseek"), Path(sys.argv[1]))
    async with listening(gateway_for(settings)) as url:
        body = {"model": sim.model, "messages": [{"role": "user", "content": "hi"}]}
        address, headers = f"{url}/v1/chat/completions", [("authorization", "Bearer k")]
        async with answer_to("POST", address, headers, msgspec.json.encode(body)) as response:
            assert response.status == 200, response.status
            print(response.header("x-thoughtline-replay"))

asyncio.run(ask())
sys.stdout.flush()
os._exit(0)
"""

DOCTOR = """
from thoughtline.cli import main
sys.exit(main(["doctor", "--port", sys.argv[1]]))
"""

WORKERS = """
from thoughtline.cli import main
assert main(["serve", "--port", "0", "--workers", "2"]) != 0
print("declined")
"""

SERVE = """
from thoughtline.cli import main
import threading, time, urllib.request
def look():
    for _ in range(200):
        try:
            opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
            opener.open("http://127.0.0.1:" + sys.argv[1] + "/healthz")
        except OSError:
            time.sleep(0.05)
        else:
            print("served", flush=True)
            os._exit(0)
threading.Thread(target=look, daemon=True).start()
sys.exit(main(["serve", "--port", sys.argv[1], "--store", "memory://"]))
"""

LIBRARY = """
import httpx
import thoughtline
client = thoughtline.remember(httpx.Client())
assert client is not None
print("remembered")
"""


def hidden(script: str, folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("THOUGHTLINE_", "XDG_"))}
    return subprocess.run(
        [sys.executable, "-c", HIDING + script, *arguments],
        env=kept | {"HOME": str(folder), "COLUMNS": "120"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


@pytest.mark.parametrize(
    ("script", "arguments", "expected"),
    [
        (DEMO, (), "restored="),
        (GATEWAY, ("{home}",), "restored=0"),
        (SERVE, ("{port}",), "served"),
        (LIBRARY, (), "remembered"),
        (DOCTOR, ("{port}",), "ok    store file"),
        (WORKERS, (), "declined"),
    ],
    ids=["demo", "gateway", "serve", "library", "doctor", "workers"],
)
def test_it_works_without_posix(script: str, arguments: tuple[str, ...], expected: str, tmp_path: Path) -> None:
    """No uvloop, no `resource` or `fcntl`, no SIGHUP, no Unix sockets, no `getuid`, no modes, no links."""
    given = [one.format(home=tmp_path, port=free_port()) for one in arguments]
    done = hidden(script, tmp_path, *given)
    assert done.returncode == 0, done.stderr
    assert expected in done.stdout
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("words", [["doctor", "vllm"], ["audit", "request.json", "--provider", "deepseek"], ["demo"]])
def test_a_pipe_of_windows_takes_every_report(words: list[str], tmp_path: Path) -> None:
    """Its code page has no arrows and no frames: they are replaced, and the report is whole."""
    body = (
        '{"model":"deepseek-v4-pro","tools":[{"type":"function","function":{"name":"f"}}],"messages":[{"role":"user"}'
    )
    (tmp_path / "request.json").write_text(f'{body},{{"role":"assistant","content":"Hi"}}]}}')
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("THOUGHTLINE_", "XDG_"))}
    done = subprocess.run(
        [sys.executable, "-m", "thoughtline.cli", *words],
        env=kept | {"HOME": str(tmp_path), "PYTHONIOENCODING": "cp1252", "THOUGHTLINE_PORT": str(free_port())},
        cwd=tmp_path,
        capture_output=True,
        check=False,
    )
    assert b"Traceback" not in done.stderr, done.stderr
    assert re.search(rb"admin token|1 finding|restored=4", done.stdout)


@pytest.mark.parametrize(
    ("platform", "environment", "data", "settings"),
    [
        ("linux", {}, ".local/share/thoughtline", ".config/thoughtline"),
        ("darwin", {}, "Library/Application Support/thoughtline", ".config/thoughtline"),
        ("win32", {}, "AppData/Local/thoughtline", "AppData/Roaming/thoughtline"),
    ],
)
def test_folders(platform: str, environment: dict[str, str], data: str, settings: str, tmp_path: Path) -> None:
    """Each system's own places."""
    assert default_url(environment, tmp_path, platform) == f"sqlite:///{tmp_path / data / 'thoughtline.db'}"
    assert own_files(environment, tmp_path, platform)[0] == tmp_path / settings / "thoughtline.toml"


@pytest.mark.parametrize(
    ("platform", "client", "place"),
    [
        ("linux", "vscode-copilot", ".config/Code/User/chatLanguageModels.json"),
        ("darwin", "vscode-copilot", "Library/Application Support/Code/User/chatLanguageModels.json"),
        ("win32", "vscode-copilot", "AppData/Roaming/Code/User/chatLanguageModels.json"),
        ("darwin", "zed", ".config/zed/settings.json"),
        ("win32", "zed", "AppData/Roaming/Zed/settings.json"),
        ("win32", "claude-code", ".claude/settings.json"),
        ("win32", "codex", ".codex/config.toml"),
    ],
)
def test_the_files_of_clients(
    platform: str, client: str, place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where each program has its settings on that system."""
    monkeypatch.setattr(sys, "platform", platform)
    found = find(client)
    assert found is not None
    assert {file_of(step, tmp_path) for step in found.steps if step.file} == {tmp_path / place}


def test_where_links_are_not_allowed_files_are_copied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Windows asks for a right to make them."""

    def refuse(*arguments: object, **named: object) -> None:
        raise OSError("[WinError 1314] A required privilege is not held by the client")

    monkeypatch.setattr(Path, "symlink_to", refuse)
    (tmp_path / "own/extensions").mkdir(parents=True)
    (tmp_path / "own/extensions/one.json").write_text("{}")
    (tmp_path / "own/oauth_creds.json").write_text("{}")
    for name in ("extensions", "oauth_creds.json"):
        _link(tmp_path / name, tmp_path / "own" / name)
    assert (tmp_path / "extensions/one.json").read_text() == "{}"
    assert (tmp_path / "oauth_creds.json").read_text() == "{}"


def test_the_files_of_clients_are_below_the_home(tmp_path: Path) -> None:
    """So that they are found on every system."""
    for client in CLIENTS:
        for step in client.steps:
            if step.file:
                assert file_of(step, tmp_path).is_relative_to(tmp_path) or not step.file.startswith("~")
