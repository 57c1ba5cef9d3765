"""Anthropic's members and blocks that refer to its own state: they are passed on with their bytes."""

from __future__ import annotations

import json

import httpx
import pytest

from tests.gateway.gateways import running
from tests.gateway.upstreams import Got, Out, upstream

# Spaces, escapes and orders of members that nobody but a provider writes: what is opaque must come back byte by byte.
SEARCH = rb'{"type": "server_tool_use",  "id":"srvtoolu_1","name":"web_search","input":{"query":"\u00e9"}}'
RESULT = (
    rb'{"type":"web_search_tool_result","tool_use_id":"srvtoolu_1","content":[{"encrypted_content":"Eo\/8=", '
    rb'"type":"web_search_result","url":"https://example.com","title":"t","page_age":null}]}'
)
RAN = (
    rb'{"type":"code_execution_tool_result","tool_use_id":"srvtoolu_2",'
    rb'"content":{"type":"encrypted_code_execution_result","encrypted_stdout":"Zm9v\/","stderr":"","return_code":0,"content":[]}}'
)
FALLBACK = rb'{"type":"fallback","from":{"model":"a"},"to":{"model":"b"},"trigger":{"type":"refusal"}}'
COMPACTION = rb'{"type":"compaction","content":"They spoke.","encrypted_content":"Eq\/8"}'
CITED = (
    rb'{"type":"text","text":"It is so.","citations":[{"type":"web_search_result_location","encrypted_index":"Ab\/9",'
    rb'"url":"https://example.com","title":null,"cited_text":"so"}]}'
)
THOUGHT = rb'{"type":"thinking","thinking":"Hm.","signature":"c2ln"}'
CALL = rb'{"type":"tool_use","id":"toolu_1","name":"look","input":{}}'
BLOCKS = (THOUGHT, SEARCH, RESULT, RAN, FALLBACK, COMPACTION, CITED, CALL)
MEMBERS = {
    "context_management": {
        "edits": [{"type": "clear_thinking_20251015", "keep": {"type": "thinking_turns", "value": 1}}]
    },
    "container": {"id": "container_1", "skills": [{"type": "anthropic", "skill_id": "xlsx", "version": "latest"}]},
    "diagnostics": {"previous_message_id": "msg_1"},
    "fallbacks": [{"model": "claude-opus-4-8"}],
    "thinking": {"type": "adaptive"},
}


def answer_with(blocks: tuple[bytes, ...]) -> bytes:
    applied = b'{"applied_edits":[{"type":"clear_thinking_20251015","cleared_thinking_turns":2}]}'
    head = b'{"id":"msg_1","type":"message","role":"assistant","model":"m","stop_reason":"tool_use","content":['
    return head + b",".join(blocks) + b'],"context_management":' + applied + b',"container":{"id":"container_1"}}'


def request_with(blocks: list[bytes]) -> bytes:
    said = b'{"role":"assistant","content":[' + b", ".join(blocks) + b"]}"
    result = b'{"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_1","content":"x"}]}'
    messages = b'[{"role":"user","content":"Hi"}' + (b"," + said + b"," + result if blocks else b"") + b"]"
    members = json.dumps({"model": "claude-opus-4-8", "max_tokens": 9, **MEMBERS})[:-1].encode()
    return members + b', "messages":' + messages + b"}"


@pytest.mark.parametrize("dropped", [None, THOUGHT])
def test_they_pass_as_they_came(dropped: bytes | None) -> None:
    """Even if lost reasoning is restored next to them. What Anthropic clears is no loss: there are no findings."""

    async def answer(got: Got, out: Out) -> None:
        await out.whole(200, answer_with(BLOCKS))

    with upstream(answer) as up, running({"anthropic": up.url}) as gateway:
        url, key = f"{gateway.url}/anthropic/v1/messages", {"x-api-key": "a-key"}
        first = httpx.post(url, content=request_with([]), headers=key)
        assert first.content == answer_with(BLOCKS)
        kept = [block for block in BLOCKS if block != dropped]
        second = httpx.post(url, content=request_with(kept), headers=key)
    assert up.got[0].body == request_with([])
    assert "x-thoughtline-findings" not in second.headers
    if dropped is None:
        assert up.got[1].body == request_with(list(BLOCKS))
    else:
        assert "restored=1" in second.headers["x-thoughtline-replay"]
        assert b", ".join(BLOCKS[1:]) in up.got[1].body.replace(b"},{", b"}, {")
        assert up.got[1].body.index(THOUGHT) < up.got[1].body.index(SEARCH)
    assert json.loads(up.got[1].body)["context_management"] == MEMBERS["context_management"]
