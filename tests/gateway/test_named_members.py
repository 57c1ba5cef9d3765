"""A refusal that names a member: only that member is removed, and the next request omits it at once."""

from __future__ import annotations

import json
from typing import Any

import httpx
import pytest

from tests.gateway.gateways import running
from tests.gateway.test_healing import acme, told
from tests.gateway.upstreams import Got, Out, upstream
from tests.sim.served_simulators import served
from thoughtline.settings import ReplaySettings

Body = dict[str, Any]
CALL = {"id": "call_9fK2mQ7x", "type": "function", "function": {"name": "bash", "arguments": "{}"}}
TOOLS = [{"type": "function", "function": {"name": "bash", "parameters": {"type": "object", "properties": {}}}}]
MODELS = {
    "groq": "openai/gpt-oss-120b",
    "mistral": "magistral-medium-latest",
    "cerebras": "gpt-oss-120b",
    "openai": "gpt-5",
}
NOISE: dict[str, list[Body]] = {
    "Copilot CLI": [
        {"__copilotMessageSource": "user"},
        {"refusal": None, "__copilotMessageSource": "model"},
        {"__copilotMessageSource": "tool"},
    ],
    "OpenAI's SDK": [{}, {"refusal": None, "annotations": [], "audio": None, "function_call": None}, {}],
    "LiteLLM": [{}, {"provider_specific_fields": {"refusal": None}}, {}],
    "a mark": [{}, {"cache_hint": True}, {"cache_hint": False}],
}


def history(noise: list[Body], **thought: Any) -> list[Body]:
    """A tool loop whose messages have a client's own members."""
    plain: list[Body] = [
        {"role": "user", "content": "List the files."},
        {"role": "assistant", "content": "Looking.", "tool_calls": [CALL], **thought},
        {"role": "tool", "tool_call_id": CALL["id"], "content": "a"},
    ]
    return [message | more for message, more in zip(plain, noise, strict=True)]


@pytest.mark.parametrize("noise", NOISE)
@pytest.mark.parametrize("provider", MODELS)
def test_what_a_strict_provider_names_is_left_out(provider: str, noise: str) -> None:
    """Healed once, learned, and everything else is sent unchanged."""
    url = served(provider).url
    body: Body = {"model": MODELS[provider], "tools": TOOLS, "messages": history(NOISE[noise])}
    with running({provider: url}) as gateway:
        answers = [httpx.post(f"{gateway.url}/{provider}/v1/chat/completions", json=body) for _ in range(2)]
    direct = httpx.post(f"{url}/v1/chat/completions", json=body)
    assert [answer.status_code for answer in answers] == [200, 200], answers[0].text
    assert told(answers[0], "healed") == (1 if direct.status_code != 200 and noise != "LiteLLM" else 0)
    assert told(answers[1], "healed") == 0


SENTENCES = {
    "pydantic": "messages.1.{}: Extra inputs are not permitted",
    "openai": "Unknown parameter: 'messages[1].{}'.",
    "groq": "'messages.1' : for 'role:assistant' the following must be satisfied[('messages.1' : property '{}' is "
    "unsupported)]",
    "cerebras": "messages.1.assistant.{0}: property 'messages.1.assistant.{0}' is unsupported",
    "jsonschema": "Additional properties are not allowed ('{}' was unexpected) - 'messages.1'",
    "fireworks": "Extra inputs are not permitted, field: 'messages[1].{}', value: None",
}
ANSWER = {"id": "c", "model": "m", "choices": [{"index": 0, "message": {"role": "assistant", "content": "Done."}}]}


def refusing(name: str, sentence: str) -> Any:
    """A server that refuses one member of a message, with this text."""

    async def answer(got: Got, out: Out) -> None:
        if any(name in message for message in json.loads(got.body)["messages"]):
            error = {"message": sentence.format(name), "type": "invalid_request_error"}
            await out.whole(400, json.dumps({"error": error}).encode())
        else:
            await out.whole(200, json.dumps(ANSWER).encode())

    return answer


@pytest.mark.parametrize("sentence", SENTENCES)
@pytest.mark.parametrize("name", ["provider_specific_fields", "__copilotMessageSource", "refusal", "thinking_blocks"])
def test_reasoning_stays_when_another_member_is_refused(name: str, sentence: str) -> None:
    """The server's own reasoning is not touched, now or later; the omission is reported, shown and reset."""
    kept = history([{}, {}, {}], reasoning="Look first.")
    body = {"model": "novel-9", "tools": TOOLS, "messages": history([{}, {name: None}, {}], reasoning="Look first.")}
    with upstream(refusing(name, SENTENCES[sentence])) as up, acme(up.url, "openai_chat") as gateway:
        url = f"{gateway.url}/acme/v1/chat/completions"
        answers = [httpx.post(url, json=body) for _ in range(2)]
        assert [told(answer, "healed") for answer in answers] == [1, 0]
        assert [json.loads(got.body)["messages"] for got in up.got[1:]] == [kept, kept]
        lessons = gateway.state.lessons
        assert [(one.change, one.field) for one in lessons.corrections] == [("drops", f"messages[].{name}")]
        assert lessons.corrections[0].evidence.status == 400
        gateway.wait_for(lessons.forget())
        assert told(httpx.post(url, json=body), "healed") == 1


@pytest.mark.parametrize("name", ["reasoning", "thinking", "enable_thinking"])
def test_a_member_of_the_request_itself(name: str) -> None:
    """A member that asks for thinking, at a server that doesn't know it: it is removed, the rest is unchanged."""
    body = {"model": "novel-9", "messages": history([{}, {}, {}]), name: {"effort": "high"}, "seed": 1}

    async def answer(got: Got, out: Out) -> None:
        error = {"message": f"Unknown parameter: '{name}'.", "param": name, "code": "unknown_parameter"}
        is_refused = name in json.loads(got.body)
        await out.whole(400 if is_refused else 200, json.dumps({"error": error} if is_refused else ANSWER).encode())

    with upstream(answer) as up, acme(up.url, "openai_chat") as gateway:
        answers = [httpx.post(f"{gateway.url}/acme/v1/chat/completions", json=body) for _ in range(2)]
    assert [(answer.status_code, told(answer, "healed")) for answer in answers] == [(200, 1), (200, 0)]
    bare = {member: value for member, value in body.items() if member != name}
    assert [json.loads(got.body) for got in up.got] == [body, bare, bare]


@pytest.mark.parametrize("name", ["content", "role", "tool_calls", "tool_call_id", "name"])
def test_what_a_message_is_made_of_stays(name: str) -> None:
    """These members are never removed: the refusal is passed on, and nothing is learned."""
    body = {"model": "novel-9", "messages": history([{}, {"tool_call_id": "x", "name": "y"}, {}])}
    with upstream(refusing(name, SENTENCES["openai"])) as up, acme(up.url, "openai_chat") as gateway:
        response = httpx.post(f"{gateway.url}/acme/v1/chat/completions", json=body)
        assert (response.status_code, len(up.got)) == (400, 1)
        assert gateway.state.lessons.corrections == ()


def test_a_refusal_that_says_something_stays() -> None:
    """`refusal: null` has no content and may be removed; a refusal's text is all that the turn has."""
    refused: Body = {"role": "assistant", "content": None, "refusal": "I can't help with that."}
    body = {
        "model": "novel-9",
        "messages": [{"role": "user", "content": "x"}, refused, {"role": "user", "content": "y"}],
    }
    with upstream(refusing("refusal", SENTENCES["groq"])) as up, acme(up.url, "openai_chat") as gateway:
        assert httpx.post(f"{gateway.url}/acme/v1/chat/completions", json=body).status_code == 400
        assert len(up.got) == 1


def test_bytes_around_a_named_member_stay() -> None:
    """Spacing, escapes and numbers of the rest stay the client's own."""
    sent = b'{ "model":"novel-9", "seed": 1.0e2,\n "messages" : [ {"role":"user" ,"content":"\\u00e9", "mark" : 1 } ] }'
    with (
        upstream(refusing("mark", "Unknown parameter: 'messages[0].{}'.")) as up,
        acme(up.url, "openai_chat") as gateway,
    ):
        assert httpx.post(f"{gateway.url}/acme/v1/chat/completions", content=sent).status_code == 200
        assert up.got[1].body == sent.replace(b', "mark" : 1', b"")


def test_nothing_is_learned_where_learning_is_off() -> None:
    """`learn = false`: healed each time."""
    body = {"model": "novel-9", "messages": history([{}, {"mark": 1}, {}])}
    with (
        upstream(refusing("mark", SENTENCES["openai"])) as up,
        acme(up.url, "openai_chat", ReplaySettings(learn=False)) as gateway,
    ):
        url = f"{gateway.url}/acme/v1/chat/completions"
        assert [told(httpx.post(url, json=body), "healed") for _ in range(2)] == [1, 1]


def _anthropic(refused: str, sentence: str) -> Any:
    async def answer(got: Got, out: Out) -> None:
        if refused.encode() in got.body:
            error = {"type": "invalid_request_error", "message": sentence}
            await out.whole(400, json.dumps({"type": "error", "error": error}).encode())
        else:
            whole = {"id": "m", "type": "message", "role": "assistant", "content": [], "stop_reason": "end_turn"}
            await out.whole(200, json.dumps(whole).encode())

    return answer


BLOCKS: list[Body] = [
    {"type": "thinking", "thinking": "Look.", "signature": "c2lnbmVk", "mark": 1},
    {"type": "tool_use", "id": "toolu_1", "name": "bash", "input": {"mark": 1}},
]
MARKED = "messages.1.content.0.thinking.mark: Extra inputs are not permitted"
BINDING = "thinking.adaptive.block_binding: Extra inputs are not permitted"


@pytest.mark.parametrize("model", ["claude-opus-4-8", "novel-9"])
def test_a_member_of_a_thinking_block(model: str) -> None:
    """It is removed from thinking blocks; their thinking, and a member of that name elsewhere, stay."""
    result = {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "toolu_1", "content": "a"}]}
    messages = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": BLOCKS}, result]
    body = {"model": model, "max_tokens": 3000, "messages": messages, "thinking": {"type": "adaptive"}}
    with (
        upstream(_anthropic('"signature":"c2lnbmVk","mark"', MARKED)) as up,
        acme(up.url, "anthropic_messages") as gateway,
    ):
        response = httpx.post(f"{gateway.url}/acme/v1/messages", content=json.dumps(body, separators=(",", ":")))
        assert (response.status_code, told(response, "healed")) == (200, 1)
        bare = {name: value for name, value in BLOCKS[0].items() if name != "mark"}
        assert json.loads(up.got[1].body)["messages"][1]["content"] == [bare, BLOCKS[1]]


def test_a_member_of_the_thinking_switch() -> None:
    """`block_binding` without its beta: the member is removed, thinking stays as requested."""
    binding = {"type": "adaptive", "block_binding": {"prefix_mismatch_behavior": "drop_block"}}
    body = {"model": "claude-opus-5-5", "max_tokens": 3000, "messages": [{"role": "user", "content": "hi"}]}
    with upstream(_anthropic("block_binding", BINDING)) as up, acme(up.url, "anthropic_messages") as gateway:
        response = httpx.post(f"{gateway.url}/acme/v1/messages", json=body | {"thinking": binding})
        assert (response.status_code, told(response, "healed")) == (200, 1)
        assert json.loads(up.got[1].body)["thinking"] == {"type": "adaptive"}
