"""gunicorn, which loads an application once and forks: each worker goes on with what was made before."""

from __future__ import annotations

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest

from tests.library.ten_turns import ANSWER, KEY, MODEL, OPENING, RESULT, TURNS, deepseek

pytest.importorskip("gunicorn")
pytest.importorskip("openai")

CALLS = 6
APPLICATION = f"""
import json, os, openai, thoughtline
from tests.library.ten_turns import TOOL

client = thoughtline.remember(openai.OpenAI(max_retries=0))

def ask(history, client=client):
    return client.chat.completions.create(model={MODEL!r}, messages=history, tools=[TOOL]).choices[0].message

with thoughtline.remember(openai.OpenAI(max_retries=0)) as other:  # no connection may be open when it forks
    ask([dict(role="user", content="The loop and the store are made before.")], other)

def application(environ, start_response):
    history = [dict(role="user", content=environ["QUERY_STRING"] + {OPENING!r})]
    for _ in range({TURNS}):
        said = ask(history)
        if not said.tool_calls:
            break
        calls = [call.model_dump(include={{"id", "type", "function"}}) for call in said.tool_calls]
        history.append(dict(role="assistant", content=said.content, tool_calls=calls))
        history += [dict(role="tool", tool_call_id=call["id"], content={RESULT!r}) for call in calls]
    start_response("200 OK", [("content-type", "text/plain"), ("x-worker", str(os.getpid()))])
    return [(said.content or "").encode()]
"""


def test_workers_that_were_forked(tmp_path: Path) -> None:
    """Two at once, over one store and one client made before: every thought of every conversation comes back."""
    upstream = deepseek()
    (tmp_path / "application.py").write_text(APPLICATION)
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(tmp_path), str(Path(__file__).parents[2])]),
        "OPENAI_API_KEY": KEY,
        "OPENAI_BASE_URL": f"{upstream.url}/v1",
        "THOUGHTLINE_STORE": f"sqlite:///{tmp_path / 'thoughts.db'}",
    }
    command = [sys.executable, "-m", "gunicorn", "--preload", "--workers", "2", "--bind", "127.0.0.1:0", "application"]
    process = subprocess.Popen(command, cwd=tmp_path, env=environment, stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    said: list[str] = []
    try:
        for line in process.stderr:
            said.append(line)
            if "Booting worker" in line:
                break
        url = next(line.split("Listening at: ")[1].split()[0] for line in said if "Listening at: " in line)
        with ThreadPoolExecutor(CALLS) as pool:
            answers = list(pool.map(lambda number: httpx.get(f"{url}/?{number}", timeout=120), range(CALLS)))
    finally:
        process.terminate()
        rest = process.stderr.read()
        process.wait(30)
    assert [answer.text for answer in answers] == [ANSWER] * CALLS
    assert upstream.refusals() == []
    judged = [entry["verdicts"] for entry in upstream.watched.app.simulation.log]
    assert len(judged) == 1 + CALLS * TURNS
    assert all(verdict == "whole" for verdicts in judged for verdict in verdicts)
    assert "Traceback" not in "".join(said) + rest
