"""Servers that no list has: their answers show what applies to the following requests."""

from __future__ import annotations

import json
from typing import Any

import httpx
import pytest

from tests.gateway.test_healing import acme, told
from tests.gateway.upstreams import Answer, Got, Out, upstream
from thoughtline.settings import ReplaySettings

Body = dict[str, Any]

CALL: Body = {"id": "call_9fK2mQ7x", "type": "function", "function": {"name": "bash", "arguments": '{"command": "ls"}'}}
LOST: Body = {
    "id": "call_7aB3xY1z",
    "type": "function",
    "function": {"name": "bash", "arguments": '{"command": "pwd"}'},
}
TOOLS = [{"type": "function", "function": {"name": "bash", "parameters": {"type": "object", "properties": {}}}}]
FIELDS = ["reasoning_content", "reasoning", "thinking"]
CHAT = "/acme/v1/chat/completions"


def answering(field: str, *, streams: bool = False) -> Answer:
    """A server that thinks in this member, and calls a tool."""

    async def answer(got: Got, out: Out) -> None:
        message = {"role": "assistant", "content": None, field: "Look first.", "tool_calls": [CALL]}
        if not streams:
            choice = {"index": 0, "message": message, "finish_reason": "tool_calls"}
            await out.whole(200, json.dumps({"id": "c", "model": "m", "choices": [choice]}).encode())
            return
        await out.stream()
        for delta, finish in (
            ({"role": "assistant"}, None),
            ({field: "Look "}, None),
            ({field: "first."}, None),
            ({"tool_calls": [CALL | {"index": 0}]}, None),
            ({}, "tool_calls"),
        ):
            choice = {"index": 0, "delta": delta, "finish_reason": finish}
            await out.chunk(b"data: " + json.dumps({"id": "c", "model": "m", "choices": [choice]}).encode() + b"\n\n")
        await out.chunk(b"data: [DONE]\n\n")
        await out.end()

    return answer


def asked(model: str, *turns: tuple[Body, ...], stream: bool = False) -> Body:
    messages = [{"role": "user", "content": "How many?"}, *(message for turn in turns for message in turn)]
    return {"model": model, "messages": messages, "tools": TOOLS, "stream": stream}


def step(call: Body) -> tuple[Body, ...]:
    """A tool turn without its reasoning, and its result."""
    return (
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": call["id"], "content": "a"},
    )


def thought(body: bytes, at: int = 1) -> Body:
    """The members of a message besides its text and calls."""
    message = json.loads(body)["messages"][at]
    return {name: value for name, value in message.items() if name not in ("role", "content", "tool_calls")}


@pytest.mark.parametrize("streams", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("field", FIELDS)
@pytest.mark.parametrize("model", ["gpt-oss-120b", "glm-5", "kimi-k2.6", "novel-9"])
def test_reasoning_goes_back_in_the_member_it_came_in(model: str, field: str, *, streams: bool) -> None:
    """Whatever the model's name: a server's own answer shows what it reads."""
    with upstream(answering(field, streams=streams)) as up, acme(up.url, "openai_chat") as gateway:
        httpx.post(gateway.url + CHAT, json=asked(model, stream=streams))
        response = httpx.post(gateway.url + CHAT, json=asked(model, step(CALL), stream=streams))
        assert told(response, "restored") == 1
        assert thought(up.got[-1].body) == {field: "Look first."}


def test_a_translated_client_is_served_the_same() -> None:
    """A client of another format never sees the member, and it is still the right one."""
    ask = {"role": "user", "content": "How many?"}
    tools = [{"name": "bash", "input_schema": {"type": "object"}}]
    body: Body = {"model": "acme/gpt-oss-120b", "max_tokens": 999, "tools": tools, "messages": [ask]}
    with upstream(answering("reasoning_content")) as up, acme(up.url, "openai_chat") as gateway:
        first = httpx.post(f"{gateway.url}/v1/messages", json=body).json()
        uses = [block for block in first["content"] if block["type"] == "tool_use"]
        results = [{"type": "tool_result", "tool_use_id": block["id"], "content": "a"} for block in uses]
        body["messages"] = [ask, {"role": "assistant", "content": uses}, {"role": "user", "content": results}]
        assert told(httpx.post(f"{gateway.url}/v1/messages", json=body), "restored") == 1
        assert thought(up.got[-1].body) == {"reasoning_content": "Look first."}


@pytest.mark.parametrize("field", FIELDS)
def test_a_blank_stands_where_the_server_would_have_written(field: str) -> None:
    """Learned from any answer of that model, for conversations that have no turn of it; shown, and reset."""
    with upstream(answering(field)) as up, acme(up.url, "openai_chat") as gateway:
        httpx.post(gateway.url + CHAT, json=asked("kimi-k2.6"))
        httpx.post(gateway.url + CHAT, json=asked("kimi-k2.6", step(LOST)))
        assert thought(up.got[-1].body) == {field: " "}
        lessons = gateway.state.lessons
        known = [(one.change, one.field) for one in lessons.corrections]
        assert known == ([] if field == "reasoning_content" else [("answers_in", field)])
        gateway.wait_for(lessons.forget())
        httpx.post(gateway.url + CHAT, json=asked("kimi-k2.6", step(LOST)))
        assert thought(up.got[-1].body) == {"reasoning_content": " "}


def test_answers_teach_nothing_where_learning_is_off() -> None:
    """`learn = false`: records still say where each turn's reasoning belongs, and nothing else is known."""
    with upstream(answering("reasoning")) as up, acme(up.url, "openai_chat", ReplaySettings(learn=False)) as gateway:
        httpx.post(gateway.url + CHAT, json=asked("kimi-k2.6"))
        httpx.post(gateway.url + CHAT, json=asked("kimi-k2.6", step(LOST)))
        assert thought(up.got[-1].body) == {"reasoning_content": " "}
        httpx.post(gateway.url + CHAT, json=asked("kimi-k2.6", step(CALL)))
        assert thought(up.got[-1].body) == {"reasoning": "Look first."}
        assert gateway.state.lessons.corrections == ()
