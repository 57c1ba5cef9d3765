"""Claude Code's attribution line reaches Anthropic's models unchanged, and no other model."""

from __future__ import annotations

import httpx
import pytest

from tests.gateway.gateways import Json, running
from tests.gateway.upstreams import Got, Out, upstream

LINE = "x-anthropic-billing-header: cc_version=2.1.326; cc_entrypoint=cli; cch=ab12c;"
SYSTEM = [{"type": "text", "text": LINE}, {"type": "text", "text": "Be brief."}]


async def refuse(_: Got, out: Out) -> None:
    await out.whole(400, b'{"error":{"message":"enough seen"}}')


@pytest.mark.parametrize(
    ("provider", "model", "is_sent"),
    [("anthropic", "claude-opus-5-5", True), ("deepseek", "deepseek-v4-pro", False), ("openai", "gpt-5", False)],
)
def test_the_line_reaches_claude_alone(provider: str, model: str, is_sent: bool) -> None:
    """In its own format and translated; the rest of the prompt is always kept."""
    body: Json = {"model": model, "max_tokens": 4096, "system": SYSTEM, "messages": [{"role": "user", "content": "Hi"}]}
    with upstream(refuse) as up, running({provider: up.url}) as gateway:
        httpx.post(f"{gateway.url}/{provider}/v1/messages", json=body, headers={"x-api-key": "a-key"}, timeout=30)
    assert (LINE.encode() in up.got[0].body) is is_sent
    assert b"Be brief." in up.got[0].body
