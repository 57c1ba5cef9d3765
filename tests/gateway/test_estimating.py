"""Token counts that no provider gives: estimated, and marked as such."""

from __future__ import annotations

import json
from typing import Any

import anthropic
import openai
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.gateway.gateways import moved, running
from tests.gateway.upstreams import Got, Out, upstream
from tests.sim.faces import HTTP
from tests.sim.served_simulators import served
from thoughtline.gateway.estimating import MEDIA_TOKENS, TOOLS_TOKENS, estimate_tokens
from thoughtline.settings import RouteSettings, Settings

WORDS = "The quick brown fox jumps over the lazy dog. " * 40
ASKED: dict[str, Any] = {
    "system": "Be brief.",
    "messages": [{"role": "user", "content": WORDS}],
    "tools": [{"name": "look", "description": "Looks.", "input_schema": {"type": "object", "properties": {}}}],
}
CONTENTS: dict[str, Any] = {"contents": [{"role": "user", "parts": [{"text": WORDS}]}]}


@pytest.mark.parametrize(("provider", "asked"), [("openai", 2), ("gemini", 2), ("mistral", 0), ("bedrock", 0)])
def test_messages_counted_for_a_provider_of_another_format(provider: str, asked: int) -> None:
    """Claude Code's `/context`: a number that is marked as an estimate. A provider with a counter is asked first; if
    that fails, or there is none, it is an estimate."""

    async def answer(got: Got, out: Out) -> None:
        await out.whole(500, b"{}")

    with upstream(answer) as up, running({provider: up.url}) as gateway:
        raw = HTTP.post(f"{gateway.url}/{provider}/v1/messages/count_tokens", json={"model": "some-model", **ASKED})
        sdk = anthropic.Anthropic(base_url=f"{gateway.url}/{provider}", api_key="a-key", max_retries=0)
        assert sdk.messages.count_tokens(model="some-model", **ASKED).input_tokens == raw.json()["input_tokens"]
        assert len(up.got) == asked
    assert (raw.status_code, raw.headers["x-thoughtline-estimate"]) == (200, "true")
    assert 400 < raw.json()["input_tokens"] - TOOLS_TOKENS < 800


@pytest.mark.parametrize(
    ("provider", "answer", "target", "counted"),
    [
        ("openai", {"object": "response.input_tokens", "input_tokens": 1234}, "/v1/responses/input_tokens", ""),
        ("gemini", {"totalTokens": 1234}, "/v1beta/models/some-model:countTokens", "generateContentRequest"),
    ],
)
def test_the_providers_own_counter_counts_what_would_be_sent(
    provider: str, answer: Any, target: str, counted: str
) -> None:
    """In its own format, with system prompt and tools and without settings for the answer; no estimate, no capture."""

    async def count(got: Got, out: Out) -> None:
        await out.whole(200, json.dumps(answer).encode())

    with upstream(count) as up, running({provider: up.url}) as gateway:
        body = {"model": "some-model", **ASKED}
        got = HTTP.post(f"{gateway.url}/{provider}/v1/messages/count_tokens", json=body)
    assert (got.status_code, got.json()) == (200, {"input_tokens": 1234})
    assert "x-thoughtline-estimate" not in got.headers
    sent = json.loads(up.got[0].body)
    sent = sent[counted] if counted else sent
    assert up.got[0].target == target
    assert "Be brief." in json.dumps(sent)
    assert "look" in json.dumps(sent["tools"])
    assert not {"stream", "store", "include", "max_output_tokens"} & set(sent)


def test_a_simulator_counts_what_a_gemini_client_asks() -> None:
    """Anthropic's counter refuses members about the answer: none is sent."""
    with running({"anthropic": served("anthropic", "classic").url}) as gateway:
        path = "/anthropic/v1beta/models/claude-sonnet-4-5:countTokens"
        asked = CONTENTS | {"generationConfig": {"maxOutputTokens": 5}}
        got = HTTP.post(gateway.url + path, json={"generateContentRequest": asked})
    assert (got.status_code, got.json()["totalTokens"] > 300) == (200, True)
    assert "x-thoughtline-estimate" not in got.headers


@pytest.mark.parametrize("provider", ["kimi", "anthropic", "openai"])
def test_a_responses_client_counts(provider: str) -> None:
    """OpenAI's SDK, at any provider."""

    async def fail(got: Got, out: Out) -> None:
        await out.whole(404, b"Not Found")

    with upstream(fail) as up, running({provider: up.url}) as gateway:
        sdk = openai.OpenAI(base_url=f"{gateway.url}/{provider}/v1", api_key="a-key", max_retries=0)
        found = sdk.responses.input_tokens.count(model="some-model", input=WORDS)
    assert found.object == "response.input_tokens"
    assert 400 < found.input_tokens < 700


@pytest.mark.parametrize("provider", ["anthropic", "openai", "deepseek", "ollama"])
@pytest.mark.parametrize("body", [CONTENTS, {"generateContentRequest": {"model": "models/m", **CONTENTS}}])
def test_gemini_counted_for_a_provider_of_another_format(provider: str, body: Any) -> None:
    """By its contents, or by a whole request."""
    with running({provider: "http://127.0.0.1:9"}) as gateway:
        got = HTTP.post(f"{gateway.url}/{provider}/v1beta/models/m:countTokens", json=body)
    assert (got.status_code, got.headers["x-thoughtline-estimate"]) == (200, "true")
    assert 400 < got.json()["totalTokens"] < 700


def test_what_can_not_be_carried_is_counted_all_the_same() -> None:
    """A count is never refused because of the other format's limits, or an unreadable body."""
    part = {"type": "document", "source": {"type": "file", "file_id": "file_1"}}
    bodies = [
        json.dumps({"model": "m", "messages": [{"role": "user", "content": [part]}]}),
        '{"model": "m", "messages": 5}',
        '{"model": "m", "messages": [{"role": "user", "content": "x"}], "thread": {"type": "create"}}',
    ]
    with running({"openai": "http://127.0.0.1:9"}) as gateway:
        for body in bodies:
            got = HTTP.post(f"{gateway.url}/openai/v1/messages/count_tokens", content=body)
            assert (got.status_code, got.json()["input_tokens"] > 0) == (200, True)


@pytest.mark.parametrize("status", [404, 405, 501])
@pytest.mark.parametrize(
    ("provider", "path", "name"),
    [
        ("deepseek", "/v1/messages/count_tokens", "input_tokens"),
        ("gemini", "/v1beta/models/some-model:countTokens", "totalTokens"),
    ],
)
def test_a_provider_without_the_address(provider: str, path: str, name: str, status: int) -> None:
    """It speaks the format, but has no counter."""

    async def answer(got: Got, out: Out) -> None:
        await out.whole(status, b"Not Found")

    with upstream(answer) as up, running({provider: up.url}) as gateway:
        body = CONTENTS if provider == "gemini" else {"model": "some-model", **ASKED}
        got = HTTP.post(f"{gateway.url}/{provider}{path}", json=body)
        assert len(up.got) == 1
    assert (got.status_code, got.headers["x-thoughtline-estimate"]) == (200, "true")
    assert got.json()[name] > 400


@pytest.mark.parametrize("status", [400, 401, 404, 429, 500])
def test_a_providers_own_error_is_no_estimate(status: int) -> None:
    """Problems with the request, the key or the model are passed on unchanged."""
    said = b'{"type":"error","error":{"type":"not_found_error","message":"model: some-model"}}'

    async def answer(got: Got, out: Out) -> None:
        await out.whole(status, said)

    with upstream(answer) as up, running({"anthropic": up.url}) as gateway:
        got = HTTP.post(f"{gateway.url}/anthropic/v1/messages/count_tokens", json={"model": "some-model", **ASKED})
    assert (got.status_code, got.content) == (status, said)
    assert "x-thoughtline-estimate" not in got.headers


def test_a_providers_own_count_is_its_own() -> None:
    """Passed on without a mark."""
    with running({"anthropic": served("anthropic", "classic").url}) as gateway:
        body = {"model": "claude-sonnet-4-5", **ASKED}
        got = HTTP.post(f"{gateway.url}/anthropic/v1/messages/count_tokens", json=body)
    assert got.status_code == 200
    assert "x-thoughtline-estimate" not in got.headers


def test_a_routes_first_target_counts() -> None:
    """In its own way: here by an estimate."""
    rows = {"openai": moved("openai", "http://127.0.0.1:9")}
    routes = {"best": RouteSettings("best", ("openai/gpt-5", "anthropic/claude-opus-5-5"))}
    with running({}, Settings(providers=rows, routes=routes)) as gateway:
        got = HTTP.post(f"{gateway.url}/v1/messages/count_tokens", json={"model": "best", **ASKED})
    assert (got.status_code, got.headers["x-thoughtline-estimate"]) == (200, "true")
    assert got.headers["x-thoughtline-target"] == "openai/gpt-5"


def test_what_a_model_counts_is_learned() -> None:
    """After a count was requested, its answers show its ratio: the next estimate is close, and not too low."""
    counted = 1500

    async def answer(got: Got, out: Out) -> None:
        body = {"id": "c1", "model": "m", "usage": {"prompt_tokens": counted, "completion_tokens": 1}}
        choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "Hi."}}
        await out.whole(200, json.dumps(body | {"choices": [choice]}).encode())

    with upstream(answer) as up, running({"kimi": up.url}) as gateway:
        path = f"{gateway.url}/kimi/v1beta/models/some-model"
        before = HTTP.post(f"{path}:countTokens", json=CONTENTS).json()["totalTokens"]
        assert HTTP.post(f"{path}:generateContent", json=CONTENTS).status_code == 200
        after = HTTP.post(f"{path}:countTokens", json=CONTENTS).json()["totalTokens"]
    assert before < 700
    assert counted <= after < counted * 1.2


PICTURE = "iVBORw0KGgo" * 50_000
TEXTS = [
    ("English", WORDS, 400, 500),
    ("code", "for (int i = 0; i < n; i++) { a[i] += b[i]; }\n" * 40, 400, 1000),
    ("Chinese", "\u4f60\u597d\u4e16\u754c" * 100, 350, 500),
    ("Cyrillic", "\u043f\u0440\u0438\u0432\u0435\u0442 " * 100, 300, 600),
    ("a long identifier", "a" * 900, 150, 300),
    ("a picture", PICTURE, MEDIA_TOKENS, MEDIA_TOKENS),
    ("a picture in an address", "data:image/png;base64," + PICTURE, MEDIA_TOKENS, MEDIA_TOKENS),
]


@pytest.mark.parametrize(("text", "least", "most"), [row[1:] for row in TEXTS], ids=[row[0] for row in TEXTS])
def test_how_much_a_text_is(text: str, least: int, most: int) -> None:
    """In any script: a number of the right size."""
    found = estimate_tokens(json.dumps([text]).encode())
    assert least <= found <= most + 1


def test_what_is_no_words() -> None:
    """A signature counts for the reasoning it stands for; numbers, nulls and unreadable bodies count, too."""
    assert estimate_tokens(json.dumps({"signature": "x" * 6000}).encode()) < 1100
    assert estimate_tokens(b"[1, null, true]") == 3
    assert estimate_tokens(b"{") == 1
    assert estimate_tokens(b"\xff" * 30) == 10
    assert estimate_tokens(b"") == 0


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=20,
)


@given(JSON, JSON)
def test_more_is_more(one: Any, other: Any) -> None:
    """Two requests in one never have fewer tokens than each, nor more than both."""
    each = [estimate_tokens(json.dumps([value]).encode()) for value in (one, other)]
    both = estimate_tokens(json.dumps([one, other]).encode())
    assert max(each) <= both <= sum(each) + 1
