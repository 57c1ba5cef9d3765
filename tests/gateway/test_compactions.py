"""Conversations that a Responses client has compacted, at providers without compaction."""

from __future__ import annotations

import json
from typing import Any

import httpx
import openai
import pytest

from tests.clients.upstreams import Upstream, start
from tests.gateway.gateways import Json, Running, running
from tests.gateway.sockets import talking
from tests.gateway.upstreams import Got, Out, upstream
from thoughtline.settings import Settings
from thoughtline.settings.structs import TranslationSettings

SCRIPT = "Look around.|script:|think: look|call: look {}|---|think: sum up|say: They looked; the key is 42.".replace(
    "|", "\n"
)
TOOLS = [{"type": "function", "name": "look", "parameters": {"type": "object", "properties": {}}}]
ORDER = {"type": "compaction_trigger"}
TARGETS = [
    ("deepseek", None, "deepseek-v4-pro"),
    ("kimi", None, "kimi-k2.6"),
    ("glm", None, "glm-4.7"),
    ("anthropic", "bound", "claude-opus-5-5"),
    ("anthropic", "classic", "claude-sonnet-4-5"),
    ("gemini", None, "gemini-3-pro-preview"),
    ("xai", None, "grok-4.7"),
    ("mistral", None, "magistral-medium-2607"),
]
FOREIGN = {"type": "compaction", "id": "cmp_1", "encrypted_content": "gAAAAABpSEALED=="}


def user(text: str) -> Json:
    return {"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]}


def client_of(gateway: Running, provider: str) -> openai.OpenAI:
    return openai.OpenAI(base_url=f"{gateway.url}/{provider}/v1", api_key="a-key", max_retries=0)


def ask(sdk: openai.OpenAI, model: str, items: list[Any], *, streams: bool) -> list[Json]:
    """The elements of an answer."""
    body: Json = {"model": model, "input": items, "tools": TOOLS, "store": False}
    body["include"] = ["reasoning.encrypted_content"]
    if not streams:
        return [one.to_dict() for one in sdk.responses.create(**body).output]
    events = list(sdk.responses.create(**body, stream=True))
    assert events[-1].type == "response.completed"
    done = [event.item.to_dict() for event in events if event.type == "response.output_item.done"]
    assert done == [one.to_dict() for one in events[-1].response.output]
    return done


def worked(sdk: openai.OpenAI, model: str, *, streams: bool) -> list[Any]:
    """A conversation with one step of the model."""
    answer = ask(sdk, model, [user(SCRIPT)], streams=streams)
    call = next(one for one in answer if one["type"] == "function_call")
    return [user(SCRIPT), *answer, {"type": "function_call_output", "call_id": call["call_id"], "output": "42"}]


@pytest.mark.parametrize("streams", [False, True])
@pytest.mark.parametrize(("provider", "profile", "model"), TARGETS)
def test_an_order_to_compact_gives_one_compaction(
    provider: str, profile: str | None, model: str, streams: bool
) -> None:
    """Codex expects exactly one item from any provider; the model's summary continues in its place."""
    simulator = start(provider, profile)
    with running({provider: simulator.url}) as gateway:
        sdk = client_of(gateway, provider)
        compacted = ask(sdk, model, [*worked(sdk, model, streams=streams), ORDER], streams=streams)
        assert [one["type"] for one in compacted] == ["compaction"]
        assert "They looked" not in json.dumps(compacted)
        ask(sdk, model, [user("Hi"), *compacted, user("Which key?")], streams=streams)
    assert simulator.refusals() == []
    said = last_body(simulator)
    assert "They looked; the key is 42." in said
    assert compacted[0]["encrypted_content"] not in said


def last_body(simulator: Upstream) -> str:
    return simulator.watched.bodies[-1].decode()


async def refuse_nothing(got: Got, out: Out) -> None:
    await out.whole(
        200, json.dumps({"id": "resp_1", "object": "response", "status": "completed", "output": []}).encode()
    )


def chat_answer(words: str) -> Any:
    """A chat server that always gives the same answer."""
    body = {"id": "c1", "model": "m", "choices": [{"index": 0, "finish_reason": "stop", "message": {"content": words}}]}

    async def answer(got: Got, out: Out) -> None:
        await out.whole(200, json.dumps(body).encode())

    return answer


def post(
    gateway: Running, provider: str, body: Json, path: str = "/v1/responses", key: str = "a-key"
) -> httpx.Response:
    headers = {"authorization": f"Bearer {key}"}
    return httpx.post(f"{gateway.url}/{provider}{path}", json={"model": "m", **body}, headers=headers, timeout=30)


def test_how_the_model_is_asked() -> None:
    """The whole conversation with its tools, none of which may be called, and a request in place of the order."""
    with upstream(chat_answer("A summary.")) as up, running({"kimi": up.url}) as gateway:
        response = post(gateway, "kimi", {"input": [user("Hi"), ORDER], "tools": TOOLS})
    sent = json.loads(up.got[0].body)
    assert [message["role"] for message in sent["messages"]] == ["user", "user"]
    assert "Sum up this conversation" in sent["messages"][-1]["content"]
    assert (sent["tool_choice"], len(sent["tools"])) == ("none", 1)
    assert response.headers["x-thoughtline-findings"] == "untranslatable=1"


def test_the_users_messages_stay_with_the_summary() -> None:
    """By role: the word "user" in the model's text does not count."""
    said = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "user"}]}
    with upstream(chat_answer("A summary.")) as up, running({"kimi": up.url}) as gateway:
        items = post(gateway, "kimi", {"input": [user("Hi"), said]}, "/v1/responses/compact").json()["output"]
    assert [(one["type"], one.get("role")) for one in items] == [("message", "user"), ("compaction", None)]


def test_no_summary_is_an_error() -> None:
    """A compaction without content would lose the conversation."""
    with upstream(chat_answer("")) as up, running({"kimi": up.url}) as gateway:
        for streams in (False, True):
            response = post(gateway, "kimi", {"input": [user("Hi"), ORDER], "stream": streams})
            assert response.status_code == 502
            assert "no summary" in response.json()["error"]["message"]


@pytest.mark.parametrize("provider", ["kimi", "deepseek", "groq"])
def test_a_compaction_of_another_maker(provider: str) -> None:
    """It is not sent, with a finding, and the model is informed that something is missing; no 400."""
    said = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "It rains."}]}
    with upstream(refuse_nothing) as up, running({provider: up.url}) as gateway:
        for kind in ("compaction", "compaction_summary", "context_compaction"):
            for before in ([user("Hi")], [user("Hi"), said]):
                response = post(gateway, provider, {"input": [*before, FOREIGN | {"type": kind}, user("And?")]})
                assert response.headers["x-thoughtline-findings"] == "untranslatable=1"
                sent = up.got[-1].body.decode()
                assert "SEALED" not in sent
                assert "can't be read here" in sent


def test_openai_reads_its_own() -> None:
    """There an order, a compaction and a threshold are sent unchanged."""
    managed = {"context_management": [{"type": "compaction", "compact_threshold": 1000}]}
    body = {"input": [user("Hi"), FOREIGN, user("And?"), ORDER], **managed}
    with upstream(refuse_nothing) as up, running({"openai": up.url}) as gateway:
        response = post(gateway, "openai", {**body, "model": "gpt-5.4"})
    assert json.loads(up.got[0].body)["input"] == body["input"]
    assert json.loads(up.got[0].body)["context_management"] == managed["context_management"]
    assert "x-thoughtline-findings" not in response.headers


def test_ours_is_opened_for_everybody_of_its_tenant_alone() -> None:
    """OpenAI gets the text of a compaction that another model made; a caller with another key gets nothing of it."""
    with (
        upstream(chat_answer("They looked.")) as up,
        upstream(refuse_nothing) as other,
        running({"kimi": up.url, "openai": other.url}) as gateway,
    ):
        made = post(gateway, "kimi", {"input": [user("Hi"), ORDER]}).json()["output"]
        for key, finding in (("a-key", ""), ("stranger", "unopened=1")):
            response = post(gateway, "openai", {"model": "gpt-5.4", "input": [*made, user("And?")]}, key=key)
            assert response.headers.get("x-thoughtline-findings", "") == finding
            assert ("They looked." in other.got[-1].body.decode()) is (not finding)
            assert "TLT1" not in other.got[-1].body.decode()


@pytest.mark.parametrize("provider", ["kimi", "deepseek", "anthropic"])
def test_a_threshold_without_compaction(provider: str) -> None:
    """It is removed with a finding."""
    managed = [{"type": "compaction", "compact_threshold": 1000}]
    with upstream(refuse_nothing) as up, running({provider: up.url}) as gateway:
        response = post(gateway, provider, {"input": "Hi", "context_management": managed})
    assert "context_management" not in json.loads(up.got[0].body)
    assert response.headers["x-thoughtline-findings"] == "untranslatable=1"


@pytest.mark.parametrize(
    "body",
    [
        b'{"model": "m", "input": [{"type": "compaction", "encrypted_content": 5}]}',
        b'{"model": "m", "input": [{"type": "compaction", "encrypted_content": "TLT1nonsense"}, 7, null]}',
        b'{"model": "m", "input": [{"type": "compaction", "x": ' + b"[" * 5000 + b"]" * 5000 + b"}]}",
        b'{"model": "m", "input": {"type": "compaction_trigger"}}',
        b'{"model": "m", "input": [{"type": "compaction", "x": "\xff"}]}',
        b'{"model": "m", "compaction',
    ],
)
@pytest.mark.parametrize("provider", ["deepseek", "kimi", "openai"])
@pytest.mark.parametrize("path", ["/v1/responses", "/v1/responses/compact"])
def test_what_looks_like_one(provider: str, path: str, body: bytes) -> None:
    """Nonsense is left to the provider, or is the client's mistake: nothing fails here."""
    with upstream(refuse_nothing) as up, running({provider: up.url}) as gateway:
        response = httpx.post(f"{gateway.url}/{provider}{path}", content=body)
    assert response.status_code in (200, 400, 413, 502)
    assert response.status_code != 502 or "no summary" in response.text or "read" in response.text


def test_passing_on() -> None:
    """`missing_tools = "pass_on"` leaves it to a server of the client's own format."""
    settings = Settings(translation=TranslationSettings(missing_tools="pass_on"))
    with upstream(refuse_nothing) as up, running({"deepseek": up.url}, settings) as gateway:
        post(gateway, "deepseek", {"input": [user("Hi"), FOREIGN, ORDER]})
    assert json.loads(up.got[0].body)["input"] == [user("Hi"), FOREIGN, ORDER]


@pytest.mark.parametrize(("provider", "profile", "model"), TARGETS[:4])
def test_over_a_websocket(provider: str, profile: str | None, model: str) -> None:
    """The order comes as new content of a conversation; what follows begins with the compaction."""
    simulator = start(provider, profile)
    with running({provider: simulator.url}) as gateway:
        url = f"{gateway.url}/{provider}/v1/responses"
        with talking(url, model=model, tools=TOOLS) as talk:
            first = talk.ask(input=[user(SCRIPT)])
            call = next(one for one in first.output if one["type"] == "function_call")
            result = {"type": "function_call_output", "call_id": call["call_id"], "output": "42"}
            compacted = talk.ask(input=[result, ORDER], previous_response_id=first.id)
            assert [one["type"] for one in compacted.output] == ["compaction"]
            talk.ask(input=[user("Hi"), *compacted.output, user("Which key?")])
    assert simulator.refusals() == []
    assert "They looked; the key is 42." in last_body(simulator)


# --- POST /responses/compact ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("provider", "profile", "model"), [row for row in TARGETS if row[0] != "xai"])
def test_the_address_that_compacts(provider: str, profile: str | None, model: str) -> None:
    """With the SDK: the user's messages, then one compaction, which continues in the next request."""
    simulator = start(provider, profile)
    with running({provider: simulator.url}) as gateway:
        sdk = client_of(gateway, provider)
        compacted = sdk.responses.compact(model=model, input=worked(sdk, model, streams=False))
        assert (compacted.object, compacted.output[-1].type) == ("response.compaction", "compaction")
        assert [one.type for one in compacted.output] == ["message", "compaction"]
        assert compacted.usage.output_tokens > 0
        ask(sdk, model, [*(one.to_dict() for one in compacted.output), user("Which key?")], streams=False)
    assert simulator.refusals() == []
    assert "They looked; the key is 42." in last_body(simulator)


def test_the_address_at_openai() -> None:
    """It compacts itself: the request goes to its own address, and the answer is passed on unchanged."""
    answer = b'{"id": "resp_2", "object": "response.compaction", "output": []}'

    async def compact(got: Got, out: Out) -> None:
        await out.whole(200, answer)

    with upstream(compact) as up, running({"openai": up.url}) as gateway:
        for path in ("/v1/responses/compact", "/responses/compact"):
            response = post(gateway, "openai", {"model": "gpt-5.4", "input": [user("Hi"), FOREIGN]}, path)
            assert response.content == answer
    assert [got.target for got in up.got] == ["/v1/responses/compact"] * 2


def test_an_error_of_the_address() -> None:
    """In the client's format."""

    async def fail(got: Got, out: Out) -> None:
        await out.whole(404, b'{"error": {"message": "no such model"}}')

    with upstream(fail) as up, running({"kimi": up.url}) as gateway:
        response = post(gateway, "kimi", {"input": "Hi"}, "/v1/responses/compact")
    assert (response.status_code, response.json()["error"]["message"]) == (404, "no such model")
