"""Clients that leave their conversation at the provider, with providers that store none."""

from __future__ import annotations

from typing import Any

import anthropic
import httpx
import openai
import pytest
from anthropic import beta_tool

from tests.clients.upstreams import start
from tests.gateway.gateways import Running, moved, running
from tests.gateway.upstreams import Got, Out, upstream
from thoughtline.settings import Settings

SCRIPT = """Weather?
script:
think: look
call: weather {"city": "Oslo"}
---
think: again
call: weather {"city": "Bergen"}
---
think: seen
say: It is cold."""
CONTINUED = {"type": "continue", "previous_message_id": "msg_1"}


@beta_tool
def weather(city: str) -> str:
    """The weather.

    Args:
        city: where
    """
    return f"-5 in {city}"


def run_tools(gateway: Running, provider: str, model: str, way: str) -> str:
    sdk = anthropic.Anthropic(base_url=f"{gateway.url}/{provider}", api_key="a-key", max_retries=0)
    body: dict[str, Any] = {"model": model, "max_tokens": 4000, "tools": [weather]}
    messages: list[Any] = [{"role": "user", "content": SCRIPT}]
    if way == "whole":
        message: Any = sdk.beta.messages.tool_runner(messages=messages, **body).until_done()
    else:
        for stream in sdk.beta.messages.tool_runner(messages=messages, stream=True, **body):
            message = stream.get_final_message()
    return "".join(block.text for block in message.content if block.type == "text")


@pytest.mark.parametrize("way", ["whole", "streamed"])
@pytest.mark.parametrize(
    ("provider", "model"),
    [
        ("deepseek", "deepseek-v4-pro"),
        ("kimi", "kimi-k2.6"),
        ("mistral", "magistral-medium-latest"),
        ("openai", "gpt-5"),
        ("gemini", "gemini-3-pro-preview"),
        ("anthropic", "claude-opus-5"),
    ],
)
def test_the_sdks_tool_runner_sends_all_of_its_conversation(provider: str, model: str, way: str) -> None:
    """It begins a thread, and continues with new messages: every step reaches the model with the whole history."""
    simulator = start(provider)
    with running({provider: simulator.url}) as gateway:
        assert run_tools(gateway, provider, model, way) == "It is cold."
    last = simulator.watched.app.simulation.log[-1]
    assert last["status"] == 200
    assert last["verdicts"] == ["whole", "whole"]


@pytest.mark.parametrize("thread", [{"type": "create"}, CONTINUED])
@pytest.mark.parametrize("provider", ["deepseek", "kimi", "glm", "openrouter", "mistral", "openai"])
def test_a_thread_where_none_is_stored(provider: str, thread: Any) -> None:
    """Refused before the provider sees it, with the error that Anthropic's clients handle."""

    async def answer(got: Got, out: Out) -> None:
        await out.whole(200, b"{}")

    with upstream(answer) as up, running({provider: up.url}) as gateway:
        body = {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "And?"}], "thread": thread}
        response = httpx.post(f"{gateway.url}/{provider}/v1/messages", json=body)
        assert up.got == []
    error = response.json()["error"]
    assert (response.status_code, error["type"]) == (400, "invalid_request_error")
    assert error["details"] == {"error_code": "thread_unsupported_request"}


def test_a_thread_where_it_is_kept() -> None:
    """Anthropic gets it unchanged; so does a self-hosted server that is configured to store them."""

    async def answer(got: Got, out: Out) -> None:
        await out.whole(200, b"{}")

    with upstream(answer) as up:
        own = moved("anthropic", up.url)
        settings = Settings(
            providers={"anthropic": own, "mine": type(own)("mine", up.url, own.formats, keeps=("threads",))}
        )
        with running({}, settings) as gateway:
            body = b'{"model": "m", "messages": [], "thread": {"type": "continue", "previous_message_id": "msg_1"}}'
            for name in ("anthropic", "mine"):
                assert httpx.post(f"{gateway.url}/{name}/v1/messages", content=body).status_code == 200
        assert [got.body for got in up.got] == [body, body]


@pytest.mark.parametrize("told", ["conv_1", {"id": "conv_1"}])
@pytest.mark.parametrize("provider", ["kimi", "anthropic", "gemini", "deepseek", "ollama"])
def test_a_conversation_where_none_is_stored(provider: str, told: Any) -> None:
    """Translated or not: the same error as for an unknown response, and no answer without the history."""

    async def answer(got: Got, out: Out) -> None:
        await out.whole(200, b"{}")

    with upstream(answer) as up, running({provider: up.url}) as gateway:
        sdk = openai.OpenAI(base_url=f"{gateway.url}/{provider}/v1", api_key="a-key", max_retries=0)
        with pytest.raises(openai.BadRequestError) as refusal:
            sdk.responses.create(model="m", input="And?", conversation=told)
        assert up.got == []
    assert refusal.value.code == "conversation_not_found"


def test_a_conversation_where_it_is_kept() -> None:
    """OpenAI looks it up itself; an unknown server decides itself."""
    simulator = start("openai")
    mine = type(moved("openai", ""))("mine", simulator.url, ("openai_responses",))
    with running({"openai": simulator.url}, Settings(providers={"mine": mine})) as gateway:
        for name in ("openai", "mine"):
            sdk = openai.OpenAI(base_url=f"{gateway.url}/{name}/v1", api_key="a-key", max_retries=0)
            with pytest.raises(openai.NotFoundError, match="Conversation with id 'conv_1' not found"):
                sdk.responses.create(model="gpt-5", input="And?", conversation="conv_1")


def test_words_that_look_like_one() -> None:
    """A text, a null or a tool's argument of that name is not refused."""

    async def answer(got: Got, out: Out) -> None:
        await out.whole(200, b"{}")

    with upstream(answer) as up, running({"deepseek": up.url}) as gateway:
        body = b'{"model": "m", "messages": [{"role": "user", "content": "say \\"thread\\""}], "thread": null}'
        tool = b'{"model": "m", "messages": [], "tools": [{"name": "t", "input_schema": {"thread": 1}}]}'
        for one in (body, tool):
            assert httpx.post(f"{gateway.url}/deepseek/v1/messages", content=one).status_code == 200
        assert [got.body for got in up.got] == [body, tool]
