r"""Clients that cut text in the middle of a character: a lone `\ud83d` in a history must not prevent restoring."""

from __future__ import annotations

import json

import pytest

from tests.gateway.gateways import running
from tests.gateway.test_bytes import CHAT, behind
from tests.gateway.upstreams import Got, Out, upstream
from tests.sim.faces import HTTP

CALL = {"id": "call_00_9a8b7c6d", "type": "function", "function": {"name": "read", "arguments": "{}"}}
TOOLS = [{"type": "function", "function": {"name": "read", "parameters": {"type": "object"}}}]
ASKED = {"role": "user", "content": "Read it."}
MADE = {"role": "assistant", "content": "", "tool_calls": [CALL]}
RESULT = {"role": "tool", "tool_call_id": CALL["id"], "content": "a long file, cut here \ud83d"}
WITH_CHOICES = {"model": "deepseek-v4-pro", "object": "chat.completion"}


async def call_then_answer(got: Got, out: Out) -> None:
    last = json.loads(got.body)["messages"][-1]["role"]
    message = {**MADE, "reasoning_content": "First I read it."} if last == "user" else {"content": "Done."}
    choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", **message}}
    await out.whole(200, json.dumps({**WITH_CHOICES, "choices": [choice]}).encode())


@pytest.mark.parametrize("order", [("model", "messages"), ("messages", "model")], ids=["model first", "model last"])
def test_what_was_thought_before_a_cut_result_comes_back(order: tuple[str, str]) -> None:
    """The reasoning is restored, and the half character is sent in its original bytes."""
    with upstream(call_then_answer) as up, running(behind(up)) as gateway:
        for messages in ([ASKED], [ASKED, MADE, RESULT]):
            members = {"model": "deepseek-v4-pro", "messages": messages}
            body = json.dumps({**{name: members[name] for name in order}, "tools": TOOLS})
            response = HTTP.post(gateway.url + CHAT, content=body, headers={"content-type": "application/json"})
            assert response.status_code == 200
        assert response.headers["x-thoughtline-replay"].startswith("restored=1,")
        assert response.headers["x-thoughtline-target"] == "deepseek/deepseek-v4-pro"
    sent = up.got[-1].body
    assert json.loads(sent)["messages"][1]["reasoning_content"] == "First I read it."
    assert b'cut here \\ud83d"' in sent


def test_a_request_that_lost_nothing_keeps_its_bytes() -> None:
    """Halves in upper and lower case, next to whole characters and private use."""
    said = rb'"\ud83d\ude00 \uD83D \ude00 \ue0b0 \\ud83d"'
    body = b'{"messages":[{"role":"user","content":%b}],"model":"deepseek-v4-pro"}' % said
    with upstream(call_then_answer) as up, running(behind(up)) as gateway:
        assert HTTP.post(gateway.url + CHAT, content=body).status_code == 200
    assert up.got[-1].body == body


READ = {"id": "c1", "type": "function", "function": {"name": "read", "arguments": "{}"}}
ARGUMENTS = {"path": "@"}
HISTORIES: dict[str, dict[str, object]] = {
    "/v1/chat/completions": {
        "messages": [
            {"role": "user", "content": [{"type": "text", "text": "@"}, {"type": "image_url", "image_url": "@"}]},
            {"role": "assistant", "content": "@", "tool_calls": [READ]},
            {"role": "tool", "tool_call_id": "c1", "content": "@"},
        ]
    },
    "/v1/responses": {
        "instructions": "@",
        "input": [
            {"role": "user", "content": "@"},
            {"type": "function_call", "call_id": "c1", "name": "read", "arguments": "@"},
            {"type": "function_call_output", "call_id": "c1", "output": "@"},
        ],
    },
    "/v1/messages": {
        "system": "@",
        "messages": [
            {"role": "user", "content": "@"},
            {"role": "assistant", "content": [{"type": "tool_use", "id": "c1", "name": "read", "input": ARGUMENTS}]},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c1", "content": "@"}]},
        ],
    },
    "/v1beta/models/MODEL:generateContent": {
        "systemInstruction": "@",
        "contents": [
            {"role": "user", "parts": [{"text": "@"}, {"inlineData": {"mimeType": "@", "data": "@"}}]},
            {"role": "model", "parts": [{"functionCall": {"name": "read", "args": ARGUMENTS}}]},
            {"role": "user", "parts": [{"functionResponse": {"name": "read", "response": {"output": "@"}}}]},
        ],
    },
    "/api/chat": {
        "messages": [
            {"role": "user", "content": "@", "images": ["@"]},
            {"role": "assistant", "content": "@", "tool_calls": [{"function": {"name": "read", "arguments": {}}}]},
            {"role": "tool", "tool_name": "read", "content": "@"},
        ]
    },
}
PROVIDERS = ("deepseek", "gemini", "anthropic", "ollama", "openai")


@pytest.mark.parametrize("half", [rb"\ud83d", b"\xed\xa0\x80", b"\xff"])
@pytest.mark.parametrize("path", HISTORIES)
def test_half_a_character_is_no_error_of_ours(path: str, half: bytes) -> None:
    """Escaped or as bytes, at any place and for any provider: it is passed on, or refused as the client's fault."""
    with upstream(refuse) as up, running(dict.fromkeys(PROVIDERS, up.url)) as gateway:
        for provider in PROVIDERS:
            model = f"{provider}/some-model"
            pieces = json.dumps({"model": model, **HISTORIES[path]}).encode().split(b"@")
            for at in range(1, len(pieces)):
                body = b"x".join(pieces[:at]) + half + b"x".join(pieces[at:])
                response = HTTP.post(gateway.url + path.replace("MODEL", model), content=body)
                assert response.status_code == 400, (provider, at, response.text)


async def refuse(got: Got, out: Out) -> None:
    await out.whole(400, b'{"error":{"message":"no"}}')
