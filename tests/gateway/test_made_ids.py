"""Calls without ids from Gemini, found again by the ids that the gateway gave them, after a changed history."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import httpx
import pytest
from msgspec.structs import replace

from tests.gateway.gateways import Running, moved, running
from tests.sim.served_simulators import served
from thoughtline.settings import Settings

MODEL = "gemini-3-pro-preview"
SCRIPT = """{mark}
script:
think: first
no-ids
call: look {{"at": "one"}}
---
think: second
no-ids
call: look {{"at": "one"}}
---
think: third
say: Done."""
Body = dict[str, Any]


class Client(NamedTuple):
    """A client format: how it sends a request, what it keeps of an answer, how it answers a call."""

    path: str
    ask: Callable[[list[Any], bool], Body]
    kept: Callable[[Body], list[Any]]
    results: Callable[[list[Any]], list[Any]]


SCHEMA = {"type": "object", "properties": {"at": {"type": "string"}}}
CHAT_TOOLS = [{"type": "function", "function": {"name": "look", "parameters": SCHEMA}}]


def _chat_kept(answer: Body) -> list[Any]:
    message = answer["choices"][0]["message"]
    return [{"role": "assistant", "content": message.get("content"), "tool_calls": message.get("tool_calls")}]


def _chat_results(kept: list[Any]) -> list[Any]:
    return [{"role": "tool", "tool_call_id": call["id"], "content": "seen"} for call in kept[0]["tool_calls"]]


def _messages_kept(answer: Body) -> list[Any]:
    shown = [block for block in answer["content"] if block["type"] in ("text", "tool_use")]
    return [{"role": "assistant", "content": shown}]


def _messages_results(kept: list[Any]) -> list[Any]:
    calls = [block for block in kept[0]["content"] if block["type"] == "tool_use"]
    results = [{"type": "tool_result", "tool_use_id": call["id"], "content": "seen"} for call in calls]
    return [{"role": "user", "content": results}]


def _responses_kept(answer: Body) -> list[Any]:
    return [item for item in answer["output"] if item["type"] != "reasoning"]


def _responses_results(kept: list[Any]) -> list[Any]:
    calls = [item for item in kept if item["type"] == "function_call"]
    return [{"type": "function_call_output", "call_id": call["call_id"], "output": "seen"} for call in calls]


CLIENTS = {
    "chat": Client(
        "/v1/chat/completions",
        lambda messages, _: {"model": MODEL, "messages": messages, "tools": CHAT_TOOLS},
        _chat_kept,
        _chat_results,
    ),
    "messages": Client(
        "/v1/messages",
        lambda messages, _: {
            "model": MODEL,
            "max_tokens": 9000,
            "messages": messages,
            "tools": [{"name": "look", "input_schema": SCHEMA}],
        },
        _messages_kept,
        _messages_results,
    ),
    "responses": Client(
        "/v1/responses",
        lambda items, _: {
            "model": MODEL,
            "input": items,
            "store": False,
            "tools": [{"type": "function", "name": "look", "parameters": SCHEMA}],
        },
        _responses_kept,
        _responses_results,
    ),
}


def _ask(gateway: Running, client: Client, messages: list[Any]) -> httpx.Response:
    body = client.ask(messages, False)
    response = httpx.post(f"{gateway.url}/gemini{client.path}", json=body, headers={"authorization": "Bearer k"})
    assert response.status_code == 200, response.text
    return response


def _thoughts(request: int) -> list[list[str]]:
    messages = served("gemini").app.simulation.log[request]["messages"]
    return [message["thoughts"] for message in messages if message["role"] == "assistant"]


@pytest.mark.parametrize("change", ["edited opening", "oldest turns dropped"])
@pytest.mark.parametrize("name", CLIENTS)
def test_the_ids_we_gave_are_evidence(name: str, change: str) -> None:
    """Two equal calls in a row: each gets its own signature back, although the opening was edited or removed."""
    client = CLIENTS[name]
    opening = {"role": "user", "content": SCRIPT.format(mark=f"Look around, {name}, {change}.")}
    row = replace(moved("gemini", served("gemini").url), formats=("gemini_generate",))
    with running({}, Settings(providers={"gemini": row})) as gateway:
        history: list[Any] = [opening]
        for _ in range(2):
            kept = client.kept(_ask(gateway, client, history).json())
            history += [*kept, *client.results(kept)]
        _ask(gateway, client, history)
        before = _thoughts(-1)
        assert len(before) == 2
        assert before[0] != before[1]

        another = {"role": "user", "content": "Something else.\nscript:\nthink: hm\nsay: Fine."}
        start = 1 if change == "edited opening" else 1 + len(history[1:]) // 2
        told = _ask(gateway, client, [another, *history[start:]]).headers["x-thoughtline-replay"]
        after = _thoughts(-1)
    assert after == before[-len(after) :]
    assert (len(after), "blank=0" in told, "missing=0" in told) == (2 if change == "edited opening" else 1, True, True)
