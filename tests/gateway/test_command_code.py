"""Command Code's own wire over sockets: read, captured, restored, and translated for clients of other formats."""

from __future__ import annotations

import json
from typing import Any

import pytest
from msgspec.structs import replace

from tests.gateway.gateways import HEADERS, Running, moved_in, running
from tests.gateway.upstreams import Got, Out, upstream
from tests.sim.faces import HTTP, WIRES, Call, command_code_body
from tests.sim.served_simulators import served
from thoughtline.destinations.catalogue import PROVIDERS, Provider
from thoughtline.formats import FORMATS
from thoughtline.settings import Settings
from thoughtline.values.events import fold
from thoughtline.values.items import Item, ReasoningText, ToolCall
from thoughtline.values.turns import FormatName, Reply, Transcript, Turn

Json = dict[str, Any]
KEY = {"authorization": "Bearer key-1"}
CLI = HEADERS["command-code"]
TOOLS = [{"name": "look", "description": "", "input_schema": {"type": "object", "properties": {}}}]
OPENING = "script:\nthink: Look.\ncall: look {}\n---\nthink: Done.\nsay: Seen.\n"
PATHS: dict[FormatName, str] = {
    "openai_chat": "/v1/chat/completions",
    "openai_responses": "/v1/responses",
    "anthropic_messages": "/v1/messages",
    "gemini_generate": "/v1beta/models/{model}:{method}",
    "ollama_chat": "/api/chat",
}


def provider() -> Provider:
    """Command Code's simulator, used in its own wire, with the required version."""
    return moved_in("command-code", served("command-code").url, "command_code_generate")


def gateway_settings() -> Settings:
    return Settings(providers={"command-code": provider()})


def enveloped(messages: list[Json], model: str) -> Json:
    params = {"model": model, "messages": messages, "tools": TOOLS, "stream": True, "reasoning_effort": "high"}
    return command_code_body(params)


def said(format: FormatName, body: bytes) -> Reply:
    wire = FORMATS[format]
    return wire.bodies.decode_response(body, wire.dialect)


@pytest.mark.parametrize("model", ["deepseek/deepseek-v4-pro", "claude-sonnet-5"])
def test_a_lost_thought_goes_back_to_its_call(model: str) -> None:
    """In its own format: the client gets the provider's bytes, and what it strips is restored, including the
    signature."""
    simulator = served("command-code")
    opening = {"role": "user", "content": [{"type": "text", "text": f"{model}\n{OPENING}"}]}
    with running({}, gateway_settings()) as gateway:
        url = f"{gateway.url}/command-code/alpha/generate"
        first = HTTP.post(url, json=enveloped([opening], model), headers=KEY)
        reply = said("command_code_generate", first.content)
        [thought, call] = reply.candidates[0].turn.items
        assert isinstance(thought, ReasoningText)
        assert isinstance(call, ToolCall)
        assert (thought.signature is not None) == model.startswith("claude")
        parts: list[Json] = [{"type": "tool-call", "toolCallId": call.id, "toolName": "look", "input": {}}]
        result = {"toolCallId": call.id, "toolName": "look", "output": {"type": "text", "value": "a cat"}}
        history = [opening, {"role": "assistant", "content": parts}]
        history.append({"role": "tool", "content": [{"type": "tool-result", **result}]})
        second = HTTP.post(url, json=enveloped(history, model), headers=KEY)
    assert second.status_code == 200, second.text
    assert second.headers["x-thoughtline-replay"].startswith("restored=1")
    assert simulator.app.simulation.log[-1]["verdicts"] == ["whole"]


@pytest.mark.parametrize(
    ("path", "model", "goes"),
    [
        ("/alpha/generate", "claude-sonnet-5", "/alpha/generate"),
        ("/v1/chat/completions", "claude-sonnet-5", "/provider/v1/messages"),
        ("/v1/messages", "deepseek/deepseek-v4-pro", "/provider/v1/chat/completions"),
    ],
)
def test_where_requests_go_unless_settings_say_otherwise(path: str, model: str, goes: str) -> None:
    """The CLI's own go to its address, all others to the provider API: Messages for Claude, chat for the rest."""

    async def answer(got: Got, out: Out) -> None:
        await out.whole(400, b"{}")

    with upstream(answer) as up:
        bases: dict[FormatName, str] = {"command_code_generate": up.url}
        row = replace(PROVIDERS["command-code"], base_url=f"{up.url}/provider/v1", bases=bases)
        with running({}, Settings(providers={"command-code": row})) as gateway:
            said = [{"role": "user", "content": "Hi."}]
            body = enveloped(said, model) if "alpha" in path else {"model": model, "max_tokens": 9, "messages": said}
            HTTP.post(f"{gateway.url}/command-code{path}", json=body, headers=KEY)
    assert up.got[0].target == goes


def test_what_a_client_keeps_goes_up_as_it_came() -> None:
    """Byte for byte, both ways."""
    simulator = served("command-code")
    body = json.dumps(enveloped([{"role": "user", "content": "Hi.\nscript:\nsay: Hello."}], "m"), indent=1).encode()
    with running({}, gateway_settings()) as gateway:
        answer = HTTP.post(f"{gateway.url}/command-code/alpha/generate", content=body, headers=KEY)
    direct = HTTP.post(f"{simulator.url}/alpha/generate", content=body, headers=KEY | CLI)
    assert answer.status_code == 200
    assert [json.loads(line)["type"] for line in answer.content.splitlines()] == [
        json.loads(line)["type"] for line in direct.content.splitlines()
    ]


@pytest.mark.parametrize("is_streaming", [False, True])
@pytest.mark.parametrize("client", PATHS)
def test_a_client_of_another_format(client: FormatName, is_streaming: bool) -> None:
    """Translated, whole and streamed, though Command Code only streams; what the client strips is restored."""
    simulator, wire = served("command-code"), WIRES[client]
    history = [wire.say(f"{client} {is_streaming}\n{OPENING}")]
    with running({}, gateway_settings()) as gateway:
        first = ask(gateway, client, history, is_streaming=is_streaming)
        items = first.candidates[0].turn.items
        assert "Look." in [item.text for item in items if isinstance(item, ReasoningText)]
        visible = tuple(item for item in items if not isinstance(item, ReasoningText))
        history += messages_of(client, visible)
        history += wire.results(calls_of(visible))
        second = ask(gateway, client, history, is_streaming=is_streaming)
    assert any(getattr(item, "text", "") == "Seen." for item in second.candidates[0].turn.items)
    assert simulator.app.simulation.log[-1]["verdicts"] == ["whole"]


def ask(gateway: Running, client: FormatName, history: list[Json], *, is_streaming: bool) -> Reply:
    wire, model = WIRES[client], "deepseek/deepseek-v4-pro"
    known: Json = {wire.member: history, wire.tools_member: wire.tools({"look": {"type": "object", "properties": {}}})}
    if client != "gemini_generate":
        known |= {"model": model, "stream": is_streaming}
    if client == "anthropic_messages":
        known |= {"max_tokens": 8000, "thinking": {"type": "enabled", "budget_tokens": 2000}}
    if client == "gemini_generate":
        known["generationConfig"] = {"thinkingConfig": {"includeThoughts": True}}
    if client == "openai_responses":
        known |= {"store": False, "reasoning": {"summary": "auto", "effort": "high"}}
    method = "streamGenerateContent" if is_streaming else "generateContent"
    path = PATHS[client].replace("{model}", model).replace("{method}", method)
    answer = HTTP.post(f"{gateway.url}/command-code{path}", json=known, headers=KEY)
    assert answer.status_code == 200, answer.text
    spoken = FORMATS[client]
    if not is_streaming:
        return said(client, answer.content)
    decoder = spoken.stream_decoder(spoken.dialect)
    return fold([*decoder.feed(answer.content), *decoder.finish()], client)


def messages_of(client: FormatName, items: tuple[Item, ...]) -> list[Json]:
    """The model's turn, as the client sends it back."""
    spoken = FORMATS[client]
    draft = Transcript(client, (), b"{}").with_turns((Turn("assistant", items),))
    body: Json = json.loads(spoken.bodies.encode_request(draft, spoken.dialect))
    messages: list[Json] = body[spoken.list_member]
    return messages


def calls_of(items: tuple[Item, ...]) -> list[Call]:
    return [Call(item.id or "", item.name) for item in items if isinstance(item, ToolCall)]


@pytest.mark.parametrize("provider", ["deepseek", "anthropic", "gemini", "ollama"])
def test_its_client_at_another_provider(provider: str) -> None:
    """A client of this format, answered by others in its own stream parts; what it strips is restored for the
    provider."""
    model = {"anthropic": "claude-sonnet-4-5", "gemini": "gemini-3-pro-preview", "ollama": "qwen3:14b"}
    simulator = served(provider)
    with running({provider: simulator.url}) as gateway:
        url = f"{gateway.url}/alpha/generate"
        named = f"{provider}/{model.get(provider, 'deepseek-v4-pro')}"
        opening: Json = {"role": "user", "content": f"{provider}\n{OPENING}"}
        first = HTTP.post(url, json=enveloped([opening], named), headers=KEY)
        assert first.status_code == 200, first.text
        [call] = calls_of(said("command_code_generate", first.content).candidates[0].turn.items)
        parts = [{"type": "tool-call", "toolCallId": call.id, "toolName": "look", "input": {}}]
        history = [opening, {"role": "assistant", "content": parts}, *WIRES["command_code_generate"].results([call])]
        second = HTTP.post(url, json=enveloped(history, named), headers=KEY)
    assert second.status_code == 200, second.text
    assert json.loads(second.content.splitlines()[-1])["type"] == "finish"
    assert simulator.app.simulation.log[-1]["verdicts"] == ["whole"]


def test_one_that_is_no_cli_is_told_so() -> None:
    """The provider's own error, in the client's format."""
    row = replace(provider(), headers={})
    with running({}, Settings(providers={"command-code": row})) as gateway:
        body = {"model": "m", "messages": [{"role": "user", "content": "Hi."}]}
        answer = HTTP.post(f"{gateway.url}/command-code/v1/chat/completions", json=body, headers=KEY)
    assert answer.status_code == 403
    assert answer.json()["error"]["code"] == "upgrade_required"
