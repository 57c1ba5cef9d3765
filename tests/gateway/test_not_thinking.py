"""Models that can't think: they are not asked in a way that they refuse, and a refusal is healed and learned."""

from __future__ import annotations

import json
from typing import Any

import httpx
import pytest

from tests.gateway.gateways import Running, running
from tests.gateway.test_healing import acme, told
from tests.gateway.upstreams import Got, Out, upstream
from tests.sim.served_simulators import served

Body = dict[str, Any]
CIPHERTEXT = "reasoning.encrypted_content"
ASK = {"role": "user", "content": "hi"}
CLIENTS: dict[str, tuple[str, Body]] = {
    "anthropic_messages": ("/v1/messages", {"max_tokens": 999, "messages": [ASK]}),
    "gemini_generate": (
        "/v1beta/models/{}:generateContent",
        {"contents": [{"role": "user", "parts": [{"text": "hi"}]}]},
    ),
    "ollama_chat": ("/api/chat", {"messages": [ASK], "stream": False}),
}
PLAIN = ["gpt-4.1", "gpt-4.1-mini-2025-04-14", "gpt-4o", "gpt-4o-mini", "chatgpt-4o-latest", "gpt-5-chat-latest"]


def ask(gateway: Running, format: str, model: str, **more: Any) -> httpx.Response:
    path, body = CLIENTS[format]
    name = f"openai/{model}"
    return httpx.post(gateway.url + path.format(name), json={"model": name, **body, **more})


@pytest.mark.parametrize("format", CLIENTS)
@pytest.mark.parametrize("model", PLAIN)
def test_a_translated_request_asks_only_where_it_gets(model: str, format: str) -> None:
    """A model that does not reason is not asked for encrypted reasoning: no attempt is wasted."""
    with running({"openai": served("openai").url}) as gateway:
        response = ask(gateway, format, model)
        assert response.status_code == 200, response.text
        assert told(response, "healed") == 0


@pytest.mark.parametrize("format", CLIENTS)
@pytest.mark.parametrize("model", ["gpt-5", "gpt-5-mini", "o4-mini", "codex-mini-latest", "my-deployment"])
def test_a_translated_request_asks_where_it_may_get(model: str, format: str) -> None:
    """Others are asked, including unknown models."""
    with upstream(_openai(refuses=False)) as up, running({"openai": up.url}) as gateway:
        ask(gateway, format, model)
        assert json.loads(up.got[0].body)["include"] == [CIPHERTEXT]


WHOLE = {"id": "resp_1", "object": "response", "status": "completed", "model": "m", "output": []}


def _openai(*, refuses: bool) -> Any:
    """OpenAI with a model that nobody knows."""

    async def answer(got: Got, out: Out) -> None:
        if refuses and (b"encrypted_content" in got.body):
            message = "Encrypted content is not supported with this model."
            error = {"message": message, "type": "invalid_request_error", "param": "include", "code": None}
            await out.whole(400, json.dumps({"error": error}).encode())
        else:
            await out.whole(200, json.dumps(WHOLE).encode())

    return answer


@pytest.mark.parametrize("format", CLIENTS)
def test_a_model_that_refuses_to_be_asked(format: str) -> None:
    """Healed once, and the next request does not ask."""
    with upstream(_openai(refuses=True)) as up, running({"openai": up.url}) as gateway:
        answers = [ask(gateway, format, "my-deployment") for _ in range(2)]
        assert [answer.status_code for answer in answers] == [200, 200], answers[0].text
        assert [told(answer, "healed") for answer in answers] == [1, 0]
        assert [one.change for one in gateway.state.lessons.corrections] == ["never_thinks"]
        assert len(up.got) == 3


@pytest.mark.parametrize("model", ["gpt-4.1", "my-deployment"])
def test_a_client_that_asks_by_itself(model: str) -> None:
    """The other values of its `include` stay, and so does everything else."""
    more = ["file_search_call.results", CIPHERTEXT]
    body = {"model": model, "store": False, "include": more, "input": [{"role": "user", "content": "hi"}]}
    with upstream(_openai(refuses=True)) as up, running({"openai": up.url}) as gateway:
        assert httpx.post(f"{gateway.url}/openai/v1/responses", json=body).status_code == 200
        assert json.loads(up.got[-1].body) == body | {"include": more[:1]}


@pytest.mark.parametrize("is_stored", [True, False], ids=["stored", "stateless"])
@pytest.mark.parametrize("is_kept", [True, False], ids=["kept", "forgotten"])
def test_from_a_model_that_reasons_to_one_that_does_not(*, is_kept: bool, is_stored: bool) -> None:
    """Its items are sent without their reasoning. Where items are stored, also without the ids that would refer to
    it."""
    opening = 'hi {mark}\nscript:\nthink: Look.\ncall: weather {{"city": "Rome"}}\n---\nsay: Warm.\n'
    tools = [{"type": "function", "name": "weather", "parameters": {"type": "object", "properties": {}}}]
    said: list[Body] = [{"role": "user", "content": opening.format(mark=(is_kept, is_stored))}]
    body: Body = {"model": "gpt-5", "store": is_stored, "include": [CIPHERTEXT], "tools": tools, "input": said}
    with running({"openai": served("openai").url}) as gateway:
        url = f"{gateway.url}/openai/v1/responses"
        output = httpx.post(url, json=body).json()["output"]
        call = next(item for item in output if item["type"] == "function_call")
        kept = [item for item in output if is_kept or item["type"] != "reasoning"]
        result = {"type": "function_call_output", "call_id": call["call_id"], "output": "warm"}
        response = httpx.post(url, json=body | {"model": "gpt-4.1", "input": [*said, *kept, result]})
        assert response.status_code == 200, response.text
        is_refused = is_stored and not is_kept  # which ids had a partner, the gateway doesn't know here
        assert told(response, "healed") == int(is_refused)
        changes = [one.change for one in gateway.state.lessons.corrections]
        assert "requires" not in changes


def test_a_compaction_stays_where_the_model_does_not_reason() -> None:
    """Its encrypted content is no reasoning: OpenAI's gpt-4.1 returns it, and accepts it back."""
    compaction = {"type": "compaction", "id": "cmp_1", "encrypted_content": "gAAAAone"}
    body = {"model": "gpt-4.1", "store": False, "input": [{"role": "user", "content": "hi"}, compaction]}
    with upstream(_openai(refuses=False)) as up, running({"openai": up.url}) as gateway:
        httpx.post(f"{gateway.url}/openai/v1/responses", json=body)
        assert json.loads(up.got[-1].body) == body


def test_ollama_before_a_model_that_cant_think() -> None:
    """`think` is removed, the history stays unchanged, and the next request does not ask."""
    thought = {"role": "assistant", "content": "Hello.", "thinking": "They greet."}
    body = {"model": "llama3.2", "think": True, "stream": False, "messages": [ASK, thought, ASK]}
    with running({"ollama": served("ollama").url}) as gateway:
        answers = [httpx.post(f"{gateway.url}/ollama/api/chat", json=body) for _ in range(2)]
    assert [answer.status_code for answer in answers] == [200, 200], answers[0].text
    assert [told(answer, "healed") for answer in answers] == [1, 0]


CANT: dict[str, tuple[str, str, Body, str]] = {
    "anthropic_messages": (
        "/v1/messages",
        "'m' does not support thinking.",
        {"max_tokens": 9999, "thinking": {"type": "enabled", "budget_tokens": 2048}, "messages": [ASK]},
        "thinking",
    ),
    "openai_chat": (
        "/v1/chat/completions",
        "This model does not support reasoning.",
        {"reasoning_effort": "high", "messages": [ASK]},
        "reasoning_effort",
    ),
    "openai_responses": (
        "/v1/responses",
        "Unsupported parameter: 'reasoning.effort' is not supported with this model.",
        {"reasoning": {"effort": "high"}, "input": "hi"},
        "effort",
    ),
    "gemini_generate": (
        "/v1beta/models/m:generateContent",
        "Thinking is not enabled for models/m",
        {
            "generationConfig": {"temperature": 1, "thinkingConfig": {"thinkingBudget": 1024}},
            "contents": [{"role": "user", "parts": [{"text": "hi"}]}],
        },
        "thinkingConfig",
    ),
    "bedrock_converse": (
        "/model/m/converse",
        "This model does not support thinking.",
        {
            "additionalModelRequestFields": {"top_k": 5, "thinking": {"type": "enabled", "budget_tokens": 2048}},
            "messages": [{"role": "user", "content": [{"text": "hi"}]}],
        },
        "thinking",
    ),
}


@pytest.mark.parametrize("format", CANT)
def test_other_formats_before_a_model_that_cant_think(format: Any) -> None:
    """Whatever asks for thinking is removed, nothing else, and for later requests too."""
    path, sentence, body, asked = CANT[format]

    async def answer(got: Got, out: Out) -> None:
        if f'"{asked}"'.encode() in got.body:
            await out.whole(400, json.dumps({"error": {"message": sentence}, "message": sentence}).encode())
        else:
            await out.whole(200, b"{}")

    with upstream(answer) as up, acme(up.url, format) as gateway:
        url = f"{gateway.url}/acme{path}"
        answers = [httpx.post(url, json={"model": "m", **body}) for _ in range(2)]
        assert [answer.status_code for answer in answers] == [200, 200], answers[0].text
        assert len(up.got) == 3
        assert b"hi" in up.got[1].body
        assert (b"temperature" in up.got[1].body, b"top_k" in up.got[1].body) == (
            "temperature" in str(body),
            "top_k" in str(body),
        )
