"""The log of `thoughtline serve` as text on a terminal."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.gateway.test_serving import WAIT_SECONDS, command, home
from tests.sim.served_simulators import served
from tests.terminals import CTRL_C, Terminal, on_terminal

Json = dict[str, Any]
SHELL = {"type": "function", "function": {"name": "shell", "parameters": {"type": "object", "properties": {}}}}
KEY = "sk-0123456789abcdef"


@contextmanager
def serving(tmp_path: Path, *more: str, **environment: str) -> Iterator[tuple[Terminal, str]]:
    """The gateway in front of DeepSeek's simulator, and its address."""
    arguments = ["serve", "--port", "0", "--store", "memory://", "--upstream", served("deepseek").url]
    arguments += ["--provider", "deepseek", *more]
    with on_terminal(*arguments, environment={**home(tmp_path), **environment}, cwd=str(tmp_path)) as terminal:
        found = re.search(r"http://[\d.]+:\d+", terminal.wait_for(lambda line: "listening" in line))
        assert found is not None
        assert httpx.get(f"{found[0]}/healthz", timeout=WAIT_SECONDS).status_code == 200
        yield terminal, found[0]


def ask(url: str, messages: Any, **more: Any) -> httpx.Response:
    body = {"model": "deepseek-v4-pro", "messages": messages, "tools": [SHELL], **more}
    headers = {"authorization": f"Bearer {KEY}"}
    return httpx.post(f"{url}/v1/chat/completions", json=body, headers=headers, timeout=WAIT_SECONDS)


def forgotten(url: str) -> list[Json]:
    """A conversation whose client has dropped the reasoning."""
    history: list[Json] = [{"role": "user", "content": "script:\nthink: deep down\ncall: shell {}\nsay: done"}]
    message = ask(url, history).json()["choices"][0]["message"]
    assert message.pop("reasoning_content")
    return [*history, message, {"role": "tool", "tool_call_id": message["tool_calls"][0]["id"], "content": "x"}]


def test_the_outcome_is_described_in_words(tmp_path: Path) -> None:
    """Time, status, seconds, model, format, what was done, and the id of the header; no reasoning."""
    with serving(tmp_path) as (terminal, url):
        answer = ask(url, forgotten(url))
        request = answer.headers["x-thoughtline-request"]
        line = terminal.wait_for(lambda line: request in line)
        assert re.match(r"\d\d:\d\d:\d\d  200 +\d+\.\d\ds  deepseek/deepseek-v4-pro +openai_chat ", line)
        assert "restored 1 turn" in line
        assert "\x1b[32m200\x1b[0m" in terminal.raw
        assert "deep down" not in terminal.raw
        assert KEY not in terminal.raw


def test_a_stream_has_a_line_where_it_begins(tmp_path: Path) -> None:
    """And another where it ends, with the same id."""
    with serving(tmp_path) as (terminal, url):
        answer = ask(url, forgotten(url), stream=True)
        request = answer.headers["x-thoughtline-request"]
        end = terminal.wait_for(lambda line: request in line and "  200  " in line)
        lines = [line for line in terminal.lines if request in line]
        assert len(lines) == 2
        assert "streaming, restored 1 turn" in lines[0]
        assert lines[1] == end


def test_a_refusal_is_passed_on_in_the_providers_words(tmp_path: Path) -> None:
    """So that people need not look in the client."""
    with serving(tmp_path) as (terminal, url):
        answer = ask(url, 5)
        line = terminal.wait_for(lambda line: answer.headers["x-thoughtline-request"] in line)
        assert answer.status_code == 400
        assert f"It says: {answer.json()['error']['message']}" in line
        assert answer.headers["x-thoughtline-verdict"] in line


def test_what_a_client_writes_can_not_take_the_terminal(tmp_path: Path) -> None:
    """A model's name with an escape sequence is shown without it."""
    with serving(tmp_path, NO_COLOR="1") as (terminal, url):
        ask(url, [], model="deepseek-v4-pro\x1b[2J\x1b]0;title\x07")
        terminal.wait_for(lambda line: "deepseek/deepseek-v4-pro [2J" in line)
        _, _, log = terminal.raw.partition("connect CLIENT")
        assert "\x1b" not in log


@pytest.mark.parametrize("workers", ["1", "2"])
def test_ctrl_c_says_goodbye(tmp_path: Path, workers: str) -> None:
    """With the totals of all workers."""
    with serving(tmp_path, "--workers", workers) as (terminal, url):
        history = forgotten(url)
        for number in range(5):
            ask(url, history, seed=number)
        terminal.press(CTRL_C)
        terminal.wait()
        line = next(line for line in terminal.lines if "goodbye" in line)
        assert re.search(r"goodbye: 6 requests, restored \d turns?, healed 0, avoided \d refusals?, up \d+ s", line)


def test_quiet_and_verbose(tmp_path: Path) -> None:
    """Quiet: only failures. Verbose: with sizes and the session."""
    with serving(tmp_path, "--verbose") as (terminal, url):
        ask(url, forgotten(url), prompt_cache_key="session-7")
        assert "session session-7" in terminal.wait_for(lambda line: "restored 1 turn" in line and "own" in line)
    process = subprocess.Popen(
        command(tmp_path, "--log", "text", "--quiet", "--port", "0"), stderr=subprocess.PIPE, env=home(tmp_path)
    )
    process.terminate()
    _, told = process.communicate(timeout=WAIT_SECONDS)
    assert told == b""


def test_json_without_a_terminal_and_on_request(tmp_path: Path) -> None:
    """`--log json` on a terminal gives the same line as in a file, without the provider's sentence."""
    with serving(tmp_path, "--log", "json") as (terminal, url):
        answer = ask(url, 5)
        line = json.loads(terminal.wait_for(lambda line: answer.headers["x-thoughtline-request"] in line))
        assert line["status"] == 400
        assert answer.json()["error"]["message"] not in json.dumps(line)
        terminal.press(CTRL_C)
        assert json.loads(terminal.wait_for(lambda line: "goodbye" in line).removeprefix("^C"))["event"] == "goodbye"
