"""`previous_response_id` at providers that store nothing: the gateway rebuilds the conversation."""

from __future__ import annotations

from typing import Any

import openai
import pytest

from tests.clients.upstreams import Upstream, start
from tests.gateway.gateways import Running, running
from thoughtline.gateway import stored_responses

SCRIPT = """Weather?
script:
think: look
call: weather {"city": "Oslo"}
---
think: seen
say: It is cold.
---
think: x
say: Bye."""
SCRIPT_TURN = {"role": "user", "content": SCRIPT}
TOOL: Any = {
    "type": "function",
    "name": "weather",
    "parameters": {"type": "object", "properties": {"city": {"type": "string"}}},
}


def client(gateway: Running, upstream: Upstream, key: str = "a-key") -> openai.OpenAI:
    return openai.OpenAI(base_url=f"{gateway.url}/{upstream.provider}/v1", api_key=key, max_retries=0)


def ask(sdk: openai.OpenAI, way: str, **body: Any) -> Any:
    body = {"model": "kimi-k2.6", "tools": [TOOL], "reasoning": {"effort": "high"}, **body}
    if way == "whole":
        return sdk.responses.create(**body)
    with sdk.responses.stream(**body) as stream:
        for _ in stream:
            pass
        return stream.get_final_response()


@pytest.mark.parametrize("way", ["whole", "streamed"])
def test_a_conversation_by_ids_alone(way: str) -> None:
    """Each request names the previous response and brings only new elements; the provider sees all, reasoning
    included."""
    upstream = start("kimi")
    with running({"kimi": upstream.url}) as gateway:
        sdk = client(gateway, upstream)
        first = ask(sdk, way, input=SCRIPT)
        call = next(item for item in first.output if item.type == "function_call")
        result = {"type": "function_call_output", "call_id": call.call_id, "output": "-5"}
        second = ask(sdk, way, input=[result], previous_response_id=first.id)
        third = ask(sdk, way, input="Thanks.", previous_response_id=second.id)
    assert (second.output_text, third.output_text) == ("It is cold.", "Bye.")
    assert upstream.refusals() == []
    assert upstream.verdicts()[-1] == ["whole", "whole"]


def test_a_response_that_another_replica_kept(shared_url: str) -> None:
    """Every gateway with the same store knows it, at once."""
    upstream = start("kimi")
    row = {"kimi": upstream.url}
    with running(row, store_url=shared_url) as gateway, running(row, store_url=shared_url) as replica:
        first = ask(client(gateway, upstream), "streamed", input=SCRIPT)
        call = next(item for item in first.output if item.type == "function_call")
        result = {"type": "function_call_output", "call_id": call.call_id, "output": "-5"}
        second = ask(client(replica, upstream), "whole", input=[result], previous_response_id=first.id)
    assert second.output_text == "It is cold."
    assert upstream.verdicts()[-1] == ["whole"]


def test_an_unstored_response_is_reported() -> None:
    """An unknown id, one of another tenant, and one whose client wanted nothing stored: OpenAI's own code."""
    upstream = start("kimi")
    with running({"kimi": upstream.url}) as gateway:
        kept = ask(client(gateway, upstream), "whole", input=SCRIPT)
        unkept = ask(client(gateway, upstream), "whole", input=SCRIPT, store=False)
        for key, name in (("a-key", "resp_nobody"), ("another-key", kept.id), ("a-key", unkept.id)):
            with pytest.raises(openai.BadRequestError) as refusal:
                ask(client(gateway, upstream, key), "whole", input="And?", previous_response_id=name)
            assert refusal.value.code == "previous_response_not_found"


def test_elements_by_reference() -> None:
    """A client that refers to elements instead of sending them: the provider sees the elements themselves."""
    upstream = start("kimi")
    with running({"kimi": upstream.url}) as gateway:
        sdk = client(gateway, upstream)
        first = ask(sdk, "whole", input=SCRIPT)
        call = next(item for item in first.output if item.type == "function_call")
        named = [{"type": "item_reference", "id": item.id} for item in first.output]
        result = {"type": "function_call_output", "call_id": call.call_id, "output": "-5"}
        second = ask(sdk, "whole", input=[{"role": "user", "content": SCRIPT}, *named, result])
        with pytest.raises(openai.BadRequestError):
            ask(sdk, "whole", input=[{"type": "item_reference", "id": "msg_nobody"}])
        with pytest.raises(openai.BadRequestError):
            ask(client(gateway, upstream, "another-key"), "whole", input=[*named, result])
    assert second.output_text == "It is cold."
    assert upstream.verdicts()[-1] == ["whole"]


def test_many_references_are_looked_up_together(monkeypatch: pytest.MonkeyPatch) -> None:
    """The record of the last reference has the earlier ones: one look-up, not one for each."""
    upstream = start("kimi")
    with running({"kimi": upstream.url}) as gateway:
        sdk = client(gateway, upstream)
        first = ask(sdk, "whole", input=SCRIPT)
        named = [{"type": "item_reference", "id": item.id} for item in first.output]
        looked_up: list[str] = []
        kept = stored_responses._kept

        async def counted(store: Any, tenant: str, name: str, *rest: Any) -> Any:
            looked_up.append(name)
            return await kept(store, tenant, name, *rest)

        monkeypatch.setattr(stored_responses, "_kept", counted)
        call = next(item for item in first.output if item.type == "function_call")
        result = {"type": "function_call_output", "call_id": call.call_id, "output": "-5"}
        assert ask(sdk, "whole", input=[SCRIPT_TURN, *named, result]).output_text == "It is cold."
        assert len(looked_up) == 1 < len(named)
        looked_up.clear()
        strangers = [{"type": "item_reference", "id": f"msg_{number}"} for number in range(500)]
        with pytest.raises(openai.BadRequestError):
            ask(sdk, "whole", input=strangers)
        assert len(looked_up) == stored_responses.MAX_LOOKED_UP
