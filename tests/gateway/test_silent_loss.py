"""Reasoning that a provider reports as not read: a finding, a journal line and a metric."""

from __future__ import annotations

import json

import httpx
import pytest

from tests.gateway.gateways import Json, running
from tests.gateway.upstreams import EVENTS, Got, Out, upstream

DROPPED = [
    {"type": "thinking_dropped", "path": "messages.1.content.0", "reason": "model_binding_mismatch"},
    {"type": "thinking_mismatch_allowed", "path": "messages.3.content.0", "reason": "prefix_binding_mismatch"},
]
MESSAGE: Json = {"id": "msg_1", "type": "message", "role": "assistant", "model": "claude-opus-5-5", "content": []}


async def answer(got: Got, out: Out) -> None:
    usage = {"input_tokens": 5, "output_tokens": 2}
    if not json.loads(got.body).get("stream"):
        said = MESSAGE | {"content": [{"type": "text", "text": "Hi."}], "stop_reason": "end_turn", "usage": usage}
        await out.whole(200, json.dumps(said | {"input_transformations": DROPPED}).encode())
        return
    events: list[Json] = [
        {"type": "message_start", "message": MESSAGE | {"usage": usage, "input_transformations": DROPPED}},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": "Hi."}},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": usage},
        {"type": "message_stop"},
    ]
    text = "".join(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in events)
    await out.whole(200, text.encode(), EVENTS)


@pytest.mark.parametrize("is_streaming", [False, True])
def test_what_was_dropped_is_counted(is_streaming: bool) -> None:
    """Dropped reasoning counts, merely unchecked reasoning does not."""
    body: Json = {"model": "claude-opus-5-5", "max_tokens": 64, "messages": [{"role": "user", "content": "Hi"}]}
    with upstream(answer) as up, running({"anthropic": up.url}) as gateway:
        url = f"{gateway.url}/anthropic/v1/messages"
        response = httpx.post(url, json=body | {"stream": is_streaming}, headers={"x-api-key": "a-key"}, timeout=30)
        assert response.status_code == 200
        line = gateway.lines[-1]
    assert line["dropped"] == 1
    assert ["dropped", "/messages/1/content/0"] in [list(one) for one in line["findings"]]


THOUGHT = {"prompt_tokens": 900, "prompt_tokens_details": {"cached_tokens": 512}, "completion_tokens": 80}
THOUGHT |= {"completion_tokens_details": {"reasoning_tokens": 64}}


@pytest.mark.parametrize("is_streaming", [False, True])
@pytest.mark.parametrize(("shown", "withheld"), [({}, 1), ({"reasoning_content": "I look."}, 0)])
def test_thinking_that_a_response_does_not_show(shown: Json, withheld: int, is_streaming: bool) -> None:
    """The provider counts reasoning tokens and returns none, not even sealed: nothing can be restored."""

    async def think(got: Got, out: Out) -> None:
        message = {"role": "assistant", "content": "Hi.", **shown}
        if not json.loads(got.body).get("stream"):
            choice = {"index": 0, "message": message, "finish_reason": "stop"}
            await out.whole(200, json.dumps({"choices": [choice], "usage": THOUGHT}).encode())
            return
        chunks: list[Json] = [
            {"choices": [{"index": 0, "delta": message}]},
            {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]},
            {"choices": [], "usage": THOUGHT},
        ]
        text = "".join(f"data: {json.dumps(chunk)}\n\n" for chunk in chunks) + "data: [DONE]\n\n"
        await out.whole(200, text.encode(), EVENTS)

    body: Json = {"model": "o4-mini", "messages": [{"role": "user", "content": "Hi"}], "stream": is_streaming}
    with upstream(think) as up, running({"openai": up.url}) as gateway:
        response = httpx.post(f"{gateway.url}/openai/v1/chat/completions", json=body, timeout=30)
        assert response.status_code == 200
        line, page = gateway.lines[-1], httpx.get(f"{gateway.url}/metrics", timeout=30).text
    assert line["withheld"] == withheld
    assert (["withheld", ""] in [list(one) for one in line["findings"]]) is bool(withheld)
    assert (line["input_tokens"], line["cached_tokens"], line["reasoning_tokens"]) == (900, 512, 64)
    assert ('outcome="withheld"' in page) is bool(withheld)
    assert 'thoughtline_tokens_total{kind="cached",provider="openai"} 512.0' in page
