"""The endpoint that a request goes to: one that can carry its reasoning, by row, refusal or setting."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from msgspec.structs import replace

from tests.gateway.gateways import Running, running
from tests.gateway.test_healing import told
from tests.gateway.upstreams import Got, Out, Upstream, upstream
from tests.sim.served_simulators import served
from thoughtline.destinations.catalogue import PROVIDERS, Provider
from thoughtline.providers import host_named
from thoughtline.settings import RouteSettings, Settings
from thoughtline.values.turns import FormatName

Body = dict[str, Any]
TOOLS = [{"type": "function", "function": {"name": "bash", "parameters": {"type": "object", "properties": {}}}}]
CALL = {"type": "function_call", "id": "fc_1", "call_id": "call_9fK2mQ7x", "name": "bash", "arguments": "{}"}
THOUGHT = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "gAAAA-sealed"}
RESPONSE = {"id": "resp_1", "object": "response", "status": "completed", "model": "m", "output": [THOUGHT, CALL]}
CHAT = {"id": "c", "model": "m", "choices": [{"index": 0, "message": {"role": "assistant", "content": "A."}}]}
O1 = (
    "Function tools with reasoning_effort are not supported for novel-9 in /v1/chat/completions. To use function "
    "tools, use /v1/responses or set reasoning_effort to 'none'."
)
ONLY_RESPONSES = "This model is only supported in v1/responses and not in v1/chat/completions."
NOT_ACCESSIBLE = 'model "novel-9" is not accessible via the /chat/completions endpoint'


async def both(got: Got, out: Out) -> None:
    """A server with both endpoints."""
    await out.whole(200, json.dumps(RESPONSE if got.target.endswith("/responses") else CHAT).encode())


@contextlib.contextmanager
def asked(
    provider: str, answer: Any = both, *, door: FormatName | None = None, formats: tuple[FormatName, ...] = ()
) -> Iterator[tuple[Running, Upstream]]:
    with upstream(answer) as up:
        row = PROVIDERS.get(provider) or Provider(provider, "", formats)
        row = replace(row, base_url=f"{up.url}/v1", bases={}, door=door)
        with running({}, Settings(providers={provider: row})) as gateway:
            yield gateway, up


def post(gateway: Running, provider: str, model: str, **more: Any) -> httpx.Response:
    body = {"model": model, "messages": [{"role": "user", "content": "List the files."}], **more}
    return httpx.post(f"{gateway.url}/{provider}/v1/chat/completions", json=body)


def paths(up: Upstream) -> list[str]:
    return [got.target.removeprefix("/v1/") for got in up.got]


NEWEST = {
    "openai": ["gpt-5.4", "gpt-5.6-sol", "gpt-6-astra", "gpt-6.1-sol", "gpt-6.4", "gpt-7-nova", "gpt-12"],
    "azure": ["gpt-6-sol", "gpt-7", "gpt-5.9-mini"],
    "xai": ["grok-4.7", "grok-5", "grok-6-fast", "grok-9.1", "grok-code-fast-1"],
}


@pytest.mark.parametrize(("provider", "model"), [(one, model) for one in NEWEST for model in NEWEST[one]])
def test_tools_of_new_models_go_where_reasoning_can(provider: str, model: str) -> None:
    """A chat client with tools is served by Responses, with a finding; unknown names count as the newest generation."""
    with asked(provider) as (gateway, up):
        answer = post(gateway, provider, model, tools=TOOLS)
    assert answer.status_code == 200, answer.text
    assert paths(up) == ["responses"]
    assert json.loads(up.got[0].body)["include"] == ["reasoning.encrypted_content"]
    assert answer.json()["choices"][0]["message"]["tool_calls"][0]["function"]["name"] == "bash"
    assert "door=1" in answer.headers["x-thoughtline-findings"]


OLDER = {
    "openai": [
        "gpt-4o",
        "gpt-4.1",
        "gpt-5",
        "gpt-5-mini",
        "gpt-5",
        "gpt-5.3",
        "o3",
        "o4-mini",
        "gpt-5.4-chat-latest",
    ],
    "azure": ["gpt-35-turbo", "my-deployment"],
    "xai": ["grok-3", "grok-4-1-fast-non-reasoning"],
}


@pytest.mark.parametrize(("provider", "model"), [(one, model) for one in OLDER for model in OLDER[one]])
def test_other_models_are_asked_as_the_client_asks(provider: str, model: str) -> None:
    """For older and unknown models, the client's own bytes are sent."""
    with asked(provider) as (gateway, up):
        answer = post(gateway, provider, model, tools=TOOLS)
    assert paths(up) == ["chat/completions"]
    assert "door" not in answer.headers.get("x-thoughtline-findings", "")


def test_without_tools_nothing_changes() -> None:
    """A request without tools works in chat: it is sent unchanged."""
    with asked("openai") as (gateway, up):
        post(gateway, "openai", "gpt-6-sol")
        post(gateway, "openai", "gpt-6-sol", tools=[])
    assert paths(up) == ["chat/completions"] * 2


def test_encrypted_reasoning_is_kept_behind_the_door() -> None:
    """The client does not see it, and the next request has the item before its call."""
    with asked("openai") as (gateway, up):
        message = post(gateway, "openai", "gpt-6-sol", tools=TOOLS).json()["choices"][0]["message"]
        result = {"role": "tool", "tool_call_id": message["tool_calls"][0]["id"], "content": "a"}
        history = [{"role": "user", "content": "List the files."}, message, result]
        answer = post(gateway, "openai", "gpt-6-sol", tools=TOOLS, messages=history)
    assert told(answer, "restored") == 1
    items = json.loads(up.got[1].body)["input"]
    assert [item.get("type") for item in items[1:]] == ["reasoning", "function_call", "function_call_output"]
    assert items[1]["encrypted_content"] == "gAAAA-sealed"


def test_a_setting_holds_a_provider_to_one_door() -> None:
    """`door` decides for all requests of a provider, whatever its row says."""
    with asked("openai", door="openai_chat") as (gateway, up):
        post(gateway, "openai", "gpt-6-sol", tools=TOOLS)
    with asked("openai", door="openai_responses") as (gateway, also):
        post(gateway, "openai", "gpt-4o")
    assert (paths(up), paths(also)) == (["chat/completions"], ["responses"])


def refusing(sentence: str, status: int) -> Any:
    """A server that refuses chat with this text."""

    async def answer(got: Got, out: Out) -> None:
        if got.target.endswith("/responses"):
            await both(got, out)
        else:
            await out.whole(status, json.dumps({"error": {"message": sentence}}).encode())

    return answer


BOTH: tuple[FormatName, ...] = ("openai_chat", "openai_responses")


@pytest.mark.parametrize(("sentence", "status"), [(O1, 400), (ONLY_RESPONSES, 404), (NOT_ACCESSIBLE, 400)])
def test_a_refusal_that_names_another_endpoint(sentence: str, status: int) -> None:
    """It is sent there, the client gets that answer, and the next request goes there at once."""
    with asked("acme", refusing(sentence, status), formats=BOTH) as (gateway, up):
        answers = [post(gateway, "acme", "novel-9", tools=TOOLS) for _ in range(2)]
    assert [answer.status_code for answer in answers] == [200, 200], answers[0].text
    assert paths(up) == ["chat/completions", "responses", "responses"]
    assert [told(answer, "healed") for answer in answers] == [1, 0]
    assert all("door=1" in answer.headers["x-thoughtline-findings"] for answer in answers)


@pytest.mark.parametrize(("formats", "door"), [(BOTH[:1], None), (BOTH, "openai_chat")])
def test_where_no_other_door_may_be_taken(formats: tuple[FormatName, ...], door: FormatName | None) -> None:
    """A provider without the other endpoint, or limited to this one: the client gets the refusal unchanged."""
    with asked("acme", refusing(O1, 400), formats=formats, door=door) as (gateway, up):
        answer = post(gateway, "acme", "novel-9", tools=TOOLS)
    assert (answer.status_code, answer.json()["error"]["message"]) == (400, O1)
    assert paths(up) == ["chat/completions"]


def test_the_first_refusal_is_passed_on_if_the_other_endpoint_refuses_too() -> None:
    """The client gets the refusal of its own request."""

    async def answer(got: Got, out: Out) -> None:
        words = "No access." if got.target.endswith("/responses") else O1
        await out.whole(400, json.dumps({"error": {"message": words}}).encode())

    with asked("acme", answer, formats=BOTH) as (gateway, up):
        refused = post(gateway, "acme", "novel-9", tools=TOOLS)
    assert (refused.status_code, refused.json()["error"]["message"]) == (400, O1)
    assert paths(up) == ["chat/completions", "responses"]


def test_the_next_target_is_asked_if_the_other_endpoint_is_overloaded() -> None:
    """The first endpoint's refusal is not passed on: the next target answers."""
    overloaded = {"error": {"message": "Overloaded", "type": "overloaded_error", "code": "overloaded"}}

    async def answer(got: Got, out: Out) -> None:
        if got.target.endswith("/responses"):
            await out.whole(200, json.dumps(overloaded).encode())
        else:
            await refusing(O1, 400)(got, out)

    with upstream(answer) as first, upstream(both) as second:
        rows = {
            name: replace(Provider(name, "", BOTH), base_url=f"{up.url}/v1")
            for name, up in (("acme", first), ("other", second))
        }
        route = RouteSettings("best", ("acme/novel-9", "other/novel-9"))
        with running({}, Settings(providers=rows, routes={"best": route})) as gateway:
            body = {"model": "best", "messages": [{"role": "user", "content": "List the files."}], "tools": TOOLS}
            answered = httpx.post(f"{gateway.url}/v1/chat/completions", json=body)
    assert answered.status_code == 200, answered.text
    assert paths(first) == ["chat/completions", "responses"]
    assert paths(second) == ["chat/completions"]


@pytest.mark.parametrize("model", ["MiniMax-M3", "MiniMax-M3.1", "MiniMax-M4", "MiniMax-M12"])
def test_minimax_is_asked_where_it_thinks(model: str) -> None:
    """Messages without a thinking setting are sent as chat; those with one are sent unchanged, and so are older
    models."""
    body = {"max_tokens": 999, "messages": [{"role": "user", "content": "hi"}]}
    with asked("minimax") as (gateway, up):
        url = f"{gateway.url}/minimax/v1/messages"
        httpx.post(url, json={"model": model, **body})
        httpx.post(url, json={"model": model, "thinking": {"type": "adaptive"}, **body})
        httpx.post(url, json={"model": "MiniMax-M2.5", **body})
    assert paths(up) == ["chat/completions", "messages", "messages"]


def test_every_door_leads_to_a_format_of_its_provider() -> None:
    """A row's door names two formats of the provider."""
    for name in PROVIDERS:
        row = host_named(name)
        assert row is not None
        for door in row.doors:
            assert {door.comes_in, door.goes_up} <= set(row.formats)


@pytest.mark.parametrize("model", ["gpt-5.3-codex", "gpt-5.6-luna"])
@pytest.mark.parametrize("path", ["/v1/messages", "/v1/chat/completions"])
def test_copilots_models_are_asked_where_they_are_served(path: str, model: str) -> None:
    """Its refusal rules out one endpoint and names no other: its next one is tried."""
    simulator = served("copilot", "default")
    body = {"model": model, "max_tokens": 999, "messages": [{"role": "user", "content": "hi"}]}
    with running({"copilot": simulator.url}) as gateway:
        answers = [httpx.post(f"{gateway.url}/copilot{path}", json=body) for _ in range(2)]
    assert [answer.status_code for answer in answers] == [200, 200], answers[0].text
    assert [told(answer, "healed") for answer in answers][1] == 0
