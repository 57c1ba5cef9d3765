"""What a simulator says of its requests."""

from __future__ import annotations

import io
import json
import os
from pathlib import Path

import httpx
import pytest

from tests.terminals import CTRL_C, on_terminal
from thoughtline.terminal import LogOptions
from thoughtline_sim.log import SimLog

ENTRY = {"at": 0.0, "method": "POST", "path": "/v1/x", "model": "m", "status": 200, "is_streaming": False}
ENTRY |= {"refusal": None, "verdicts": ["whole", "missing", "none"]}
ENTRY |= {"messages": [{}, {}], "conversation": "0123456789abcdef"}
REFUSED = {**ENTRY, "status": 400, "refusal": "thinking is missing"}


def logged(options: LogOptions) -> list[str]:
    out = io.StringIO()
    log = SimLog(options, out)
    log.begun(ENTRY)
    log.ended(ENTRY, 0.5)
    log.ended(REFUSED, 0.1)
    log.goodbye(61.0)
    return out.getvalue().splitlines()


def test_words() -> None:
    """What came back of earlier reasoning, and why a request was refused."""
    begun, answered, refused, goodbye = logged(LogOptions("text"))
    assert "streaming" in begun
    assert "reasoning of turns: 1 whole, 1 missing" in answered
    assert refused.endswith("thinking is missing")
    assert goodbye == "goodbye: 2 requests, refused 1, up 1 min 1 s"


def test_verbose() -> None:
    """Which conversation, and how long it is."""
    assert "2 messages of conversation 01234567" in logged(LogOptions("text", "verbose"))[1]


def test_json() -> None:
    """The same for machines, without what was said."""
    answered, refused, goodbye = (json.loads(line) for line in logged(LogOptions("json")))
    assert answered["verdicts"] == {"whole": 1, "missing": 1, "none": 1}
    assert (refused["status"], refused["refusal"]) == (400, "thinking is missing")
    assert goodbye["event"] == "goodbye"


@pytest.mark.parametrize("format", ["text", "json"])
def test_quiet(format: str) -> None:
    """Refusals alone."""
    options = LogOptions("text" if format == "text" else "json", "quiet")
    assert len(logged(options)) == 1


def test_on_a_terminal(tmp_path: Path) -> None:
    """The command logs each request, and says goodbye."""
    with on_terminal("sim", "kimi", "--port", "0", environment=os.environ, cwd=str(tmp_path)) as terminal:
        url = terminal.wait_for(lambda line: "kimi on" in line).split()[2]
        httpx.post(f"{url}/v1/chat/completions", json={"model": "kimi-k3", "messages": 1}, timeout=60)
        terminal.wait_for(lambda line: "  400  " in line and "/v1/chat/completions" in line)
        terminal.press(CTRL_C)
        terminal.wait()
        assert any("goodbye: 1 request, refused 1" in line for line in terminal.lines)
