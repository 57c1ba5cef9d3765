"""The examples of `docs/applications.md`, run as they stand there; that with FastAPI by `make test-library`."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

import thoughtline
from tests.clients.apps import APPS, KEY, Setup, converse
from tests.clients.test_sdks import check_whole
from tests.clients.upstreams import Upstream, start
from tests.examples import APPLICATIONS, blocks, example
from tests.line.chats import CALL, HEADERS, PATH, Answer, Told, request, whole
from thoughtline import Line

TOOLS = [{"type": "function", "function": {"name": "weather", "parameters": {"type": "object"}}}]


@pytest.fixture
def upstream(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Upstream]:
    """A strict DeepSeek that the environment names, and a store of its own."""
    started = start("deepseek")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("thoughtline.library.door._default", [])
    given = {"OPENAI_API_KEY": KEY, "OPENAI_BASE_URL": f"{started.url}/v1"}
    for name, value in {**given, "THOUGHTLINE_STORE": f"sqlite:///{tmp_path / 'own.db'}"}.items():
        monkeypatch.setenv(name, value)
    yield started
    thoughtline.uninstall()


def test_every_example_is_run() -> None:
    """Here, or with the frameworks."""
    assert set(blocks(APPLICATIONS)) == {
        *("Notebooks", "A server with many users", "Workers that are spawned", "Serverless functions", "Tests")
    }


async def test_notebooks(upstream: Upstream) -> None:
    """With a loop that runs, as in a cell; twice changes nothing."""
    example("Notebooks", APPLICATIONS)
    example("Notebooks", APPLICATIONS)
    setup = Setup(upstream.url, "deepseek-v4-pro", "strips", "whole", {})
    check_whole(upstream, converse(APPS["openai-chat"](setup)))
    assert "restored" in Line.default().explain()


def test_workers_that_are_spawned(upstream: Upstream, tmp_path: Path) -> None:
    """Each says what its line did."""
    (tmp_path / "program.py").write_text(blocks(APPLICATIONS)["Workers that are spawned"])
    done = subprocess.run([sys.executable, "program.py"], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("ok upstream/deepseek-v4-pro") == 2


def test_serverless_functions(upstream: Upstream) -> None:
    """What one call of the handler heard, the next one finds."""
    made = example("Serverless functions", APPLICATIONS)
    user = {"role": "user", "content": "How is the weather?"}
    message = made["handler"]({"messages": [user], "tools": TOOLS}, None)
    result = {"role": "tool", "tool_call_id": message["tool_calls"][0]["id"], "content": "sunny"}
    made["handler"]({"messages": [user, {"role": "assistant", **message}, result], "tools": TOOLS}, None)
    assert made["line"].report.restored == 1
    assert upstream.refusals() == []


OF_A_USER = """
import httpx2
from conftest import thoughts

client = httpx2.Client()

def ask(url, body):
    client.post(url, headers={"authorization": "Bearer k"}, content=body)

def test_one(thoughts):
    ask("URL", BODY)
    assert thoughts.report.saved == 1

def test_two(thoughts):
    assert thoughts.report.saved == 0
    ask("URL", BODY)
    assert thoughts.report.saved == 1
"""


def test_tests(tmp_path: Path) -> None:
    """Each has its own store; a client that lives longer goes with the test."""
    told = Told(lambda body: Answer(whole()))
    (tmp_path / "conftest.py").write_text(blocks(APPLICATIONS)["Tests"])
    written = OF_A_USER.replace("URL", f"{told.url}{PATH}").replace("BODY", repr(request()))
    (tmp_path / "test_app.py").write_text(written)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_app.py"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False)
    assert "2 passed" in done.stdout, done.stdout + done.stderr


@pytest.mark.parametrize("names", [("u1", "u2"), ("a/b", "a%2Fb"), ("一", "二")])
def test_end_users_never_share(names: tuple[str, str], tmp_path: Path) -> None:
    """The same words under the same key: only who said them gets the thought back."""
    told = Told(lambda body: Answer(whole().replace(b"call_1", b"0")))
    following: Any = request(
        {"role": "assistant", "content": "", "tool_calls": [{**CALL, "id": "0"}]},
        {"role": "tool", "tool_call_id": "0", "content": "sunny"},
    )
    with Line(tmp_path / "thoughts.db") as line:
        client = line.http_client(httpx2, base_url=told.url, headers=HEADERS)
        with line.conversation(user=names[0], session=names[0]):
            client.post(PATH, content=request())
        with line.conversation(user=names[1], session=names[1]):
            client.post(PATH, content=following)
            assert line.exchanges[-1].counts.restored == 0
        with line.conversation(user=names[0]), line.session(names[0]):
            client.post(PATH, content=following)
        assert line.exchanges[-1].counts.restored == 1
        assert line.exchanges[0].session == line.exchanges[-1].session != line.exchanges[1].session
