r"""Clients that cut a text in the middle of a character: a lone `\ud83d` in a history is no reason to forget."""

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
    """The reasoning is put back, and the half goes up in the bytes that it came in."""
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
    """Halves in either case, beside whole characters and private use."""
    said = rb'"\ud83d\ude00 \uD83D \ude00 \ue0b0 \\ud83d"'
    body = b'{"messages":[{"role":"user","content":%b}],"model":"deepseek-v4-pro"}' % said
    with upstream(call_then_answer) as up, running(behind(up)) as gateway:
        assert HTTP.post(gateway.url + CHAT, content=body).status_code == 200
    assert up.got[-1].body == body
