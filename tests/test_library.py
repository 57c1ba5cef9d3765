"""The examples of `docs/library.md`, run as they stand there, against a strict provider."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, TypeAlias

import httpx
import pytest

from tests.sim.serving import served
from thoughtline import Destination, Replayer

PAGE = Path(__file__).parents[1] / "docs" / "library.md"
WHOLE, STREAM, AUDIT, CORE = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)

Json: TypeAlias = dict[str, Any]

TOOLS = [{"type": "function", "function": {"name": "weather", "parameters": {"type": "object"}}}]
USER = {"role": "user", "content": "How is the weather?"}


def example(code: str, **given: object) -> Json:
    """The names of an example after it has run."""
    names = dict(given)
    exec(compile(code, str(PAGE), "exec"), names)
    return names


def request(*messages: Json, **more: object) -> bytes:
    return json.dumps({"model": "deepseek-v4-pro", "tools": TOOLS, "messages": [USER, *messages], **more}).encode()


def forgetful(message: Json) -> tuple[Json, Json]:
    """The model's message without its reasoning, and the result of its call."""
    kept = {name: value for name, value in message.items() if name != "reasoning_content"}
    return kept, {"role": "tool", "tool_call_id": message["tool_calls"][0]["id"], "content": "sunny"}


@pytest.fixture
async def client() -> AsyncIterator[httpx.AsyncClient]:
    async with httpx.AsyncClient(base_url=served("deepseek").url, headers={"authorization": "Bearer k"}) as client:
        yield client


@pytest.fixture
async def replayer(tmp_path: Path) -> Replayer:
    opened: Replayer = await example(WHOLE)["open_replayer"](f"sqlite:///{tmp_path / 'thoughts.db'}")
    return opened


async def test_what_a_client_forgets_is_restored(client: httpx.AsyncClient, replayer: Replayer) -> None:
    """The provider refuses the history as it is, and takes it through the example."""
    names = example(WHOLE)
    ask = names["ask"]
    first = await ask(replayer, client, request())
    history = forgetful(first.json()["choices"][0]["message"])
    assert (await client.post("/v1/chat/completions", content=request(*history))).status_code == 400
    assert (await ask(replayer, client, request(*history))).status_code == 200
    prepared = await replayer.prepare(request(*history), names["DEEPSEEK"], names["Identity"]("ann"))
    assert prepared.counts.restored == 1


async def test_a_refusal_is_healed(client: httpx.AsyncClient, replayer: Replayer) -> None:
    """A provider that nobody knows refuses a turn without its reasoning, once, and takes what is sent then."""
    names = example(WHOLE)
    names["DEEPSEEK"] = Destination("elsewhere", "https://elsewhere.example", "a-model", "openai_chat", "my-account")
    answer = await client.post("/v1/chat/completions", content=request())
    history = forgetful(answer.json()["choices"][0]["message"])
    prepared = await replayer.prepare(request(*history), names["DEEPSEEK"], names["Identity"]("ann"))
    assert (await client.post("/v1/chat/completions", content=prepared.body)).status_code == 400
    assert (await names["ask"](replayer, client, request(*history))).status_code == 200


async def test_a_stream_is_remembered(client: httpx.AsyncClient, replayer: Replayer) -> None:
    """What was thought in a stream stands in the next request."""
    whole, streaming = example(WHOLE), example(STREAM)
    body = request(stream=True)
    pieces = [piece async for piece in streaming["stream"](replayer, client, body, whole["DEEPSEEK"])]
    events = [json.loads(line[6:]) for line in b"".join(pieces).splitlines() if line.startswith(b"data: {")]
    calls = [call for event in events for call in event["choices"][0]["delta"].get("tool_calls") or []]
    call = {**calls[0], "function": {"name": "weather", "arguments": "{}"}}
    history = forgetful({"role": "assistant", "content": "", "tool_calls": [call]})
    prepared = await replayer.prepare(request(*history), whole["DEEPSEEK"], whole["Identity"]("ann"))
    assert prepared.counts.restored == 1


def test_the_audit_names_what_would_be_refused(capsys: pytest.CaptureFixture[str]) -> None:
    """A turn without its reasoning, and where it stands."""
    call = {"id": "a", "type": "function", "function": {"name": "weather", "arguments": "{}"}}
    message = {"role": "assistant", "content": "", "tool_calls": [call]}
    example(AUDIT, body=request(*forgetful(message)))
    assert "missing /messages/1" in capsys.readouterr().out


def test_the_core_needs_no_store() -> None:
    """Nothing was lost and nothing found: the body goes out as it came."""
    assert example(CORE, body=request(), my_records={})["body"] == request()
