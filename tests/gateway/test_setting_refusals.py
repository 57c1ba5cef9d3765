"""Refusals of settings through a gateway: healed with the smallest change, reported and learned, or passed on."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.gateway.gateways import running
from tests.gateway.test_healing import acme, told
from tests.gateway.upstreams import Got, Out, upstream
from tests.refusal_texts import (
    CHAIN,
    DOORS,
    GONE,
    OTHER_WORDINGS,
    PASSED_ON,
    REPORTED,
    ROWS,
    WRAPPERS,
    Body,
    Row,
    line_of,
    messages,
)
from thoughtline.destinations.catalogue import Provider
from thoughtline.settings import Settings
from thoughtline.values.turns import FormatName

TOOLS: dict[str, Any] = {
    "openai_chat": [
        {"type": "function", "function": {"name": "bash", "parameters": {"type": "object", "properties": {}}}}
    ],
    "anthropic_messages": [{"name": "bash", "input_schema": {"type": "object", "properties": {}}}],
    "openai_responses": [{"type": "function", "name": "bash", "parameters": {"type": "object", "properties": {}}}],
}
ASKED: dict[FormatName, tuple[str, Body]] = {
    "openai_chat": ("/v1/chat/completions", {"messages": [{"role": "user", "content": "List the files."}]}),
    "anthropic_messages": (
        "/v1/messages",
        {"max_tokens": 8000, "messages": [{"role": "user", "content": "List the files."}]},
    ),
    "openai_responses": ("/v1/responses", {"input": [{"role": "user", "content": "List the files."}]}),
    "gemini_generate": (
        "/v1beta/models/{model}:generateContent",
        {"contents": [{"role": "user", "parts": [{"text": "List the files."}]}]},
    ),
    "ollama_chat": ("/api/chat", {"stream": False, "messages": [{"role": "user", "content": "List the files."}]}),
}
ANSWERS: dict[FormatName, Body] = {
    "openai_chat": {
        "id": "c",
        "model": "m",
        "choices": [{"index": 0, "message": {"role": "assistant", "content": "A."}}],
    },
    "anthropic_messages": {
        "id": "m",
        "type": "message",
        "role": "assistant",
        "model": "m",
        "content": [{"type": "text", "text": "A."}],
        "stop_reason": "end_turn",
        "usage": {"input_tokens": 1, "output_tokens": 1},
    },
    "openai_responses": {
        "id": "resp_1",
        "object": "response",
        "model": "m",
        "status": "completed",
        "output": [{"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "A."}]}],
    },
    "gemini_generate": {
        "candidates": [{"content": {"role": "model", "parts": [{"text": "A."}]}, "finishReason": "STOP"}]
    },
    "ollama_chat": {"model": "m", "message": {"role": "assistant", "content": "A."}, "done": True},
}


OK = json.dumps(ANSWERS["anthropic_messages"]).encode()


def request_of(row: Row) -> tuple[str, Body]:
    """The address and the body of a row's request."""
    path, asked = ASKED[row.format]
    body: Body = {**({} if row.format == "gemini_generate" else {"model": row.model}), **asked, **row.has}
    if row.format in TOOLS:
        body["tools"] = TOOLS[row.format]
    return path.format(model=row.model), body


def after(body: Body, wants: Body) -> Body:
    """A body with a row's changes."""
    return {name: value for name, value in {**body, **wants}.items() if value != GONE}


def error_of(row: Row) -> bytes:
    """A refusal in the envelope of its format."""
    match row.format:
        case "anthropic_messages":
            return json.dumps(
                {"type": "error", "error": {"type": "invalid_request_error", "message": row.sentence}}
            ).encode()
        case "gemini_generate":
            return json.dumps(
                {"error": {"code": row.status, "message": row.sentence, "status": "INVALID_ARGUMENT"}}
            ).encode()
        case "ollama_chat":
            return json.dumps({"error": row.sentence}).encode()
        case _:
            error = {"message": row.sentence, "type": "invalid_request_error", "param": row.param, "code": None}
            return json.dumps({"error": error}).encode()


def strict(row: Row, error: bytes) -> Any:
    """A server that refuses the members that a row's request should change, and nothing else."""
    _, body = request_of(row)
    refused = {name: body.get(name, GONE) for name in row.wants} or {"model": body.get("model", GONE)}

    async def answer(got: Got, out: Out) -> None:
        sent = json.loads(got.body)
        if any(sent.get(name, GONE) == value for name, value in refused.items()):
            await out.whole(row.status, error)
        else:
            await out.whole(200, json.dumps(ANSWERS[row.format]).encode())

    return answer


def check(row: Row, error: bytes) -> None:
    path, body = request_of(row)
    with upstream(strict(row, error)) as up, acme(up.url, row.format) as gateway:
        answers = [httpx.post(f"{gateway.url}/acme{path}", json=body) for _ in range(2)]
        sent = [json.loads(got.body) for got in up.got]
    if row.passed:
        assert [answer.status_code for answer in answers] == [row.status] * 2
        assert answers[0].content == error
        assert sent == [body, body]
        return
    wanted = after(body, row.wants)
    assert [answer.status_code for answer in answers] == [200, 200], answers[0].text
    assert sent[-1] == wanted
    assert sent[1:] == [wanted] * (len(sent) - 1)
    assert len(sent) <= 3
    assert told(answers[0], "healed") == len(sent) - 2
    assert told(answers[1], "healed") == 0
    assert answers[1].headers.get("x-thoughtline-findings")


@pytest.mark.parametrize("name", ROWS)
def test_a_refusal_of_a_setting(name: str) -> None:
    """Only the named members change, and the next request is right at once."""
    check(ROWS[name], error_of(ROWS[name]))


@pytest.mark.parametrize("name", OTHER_WORDINGS | REPORTED)
def test_another_wording_of_the_same_shape(name: str) -> None:
    """Sentences are matched by their form: other fields, lists, quotes and word orders."""
    row = (OTHER_WORDINGS | REPORTED)[name]
    check(row, error_of(row))


@pytest.mark.parametrize("name", CHAIN)
def test_a_broken_chain(name: str) -> None:
    """One retry without the named block and all later ones; nothing is learned for other conversations."""
    row = CHAIN[name]
    path, body = request_of(row)
    other = {**body, "messages": [{"role": "user", "content": "Something else."}, *body["messages"][1:]]}
    with upstream(strict(row, error_of(row))) as up, acme(up.url, row.format) as gateway:
        answer = httpx.post(f"{gateway.url}/acme{path}", json=body)
        assert answer.status_code == 200, answer.text
        assert [json.loads(got.body) for got in up.got] == [body, after(body, row.wants)]
        assert told(answer, "healed") == 1
        httpx.post(f"{gateway.url}/acme{path}", json=other)
        assert json.loads(up.got[-1].body) == other


@pytest.mark.parametrize("name", DOORS)
def test_another_endpoint(name: str) -> None:
    """The request goes to the endpoint that the refusal names, and the next one at once."""
    row = DOORS[name]
    path, body = request_of(row)

    async def answer(got: Got, out: Out) -> None:
        if got.target.endswith("/responses"):
            await out.whole(200, json.dumps(ANSWERS["openai_responses"]).encode())
        else:
            await out.whole(400, error_of(row))

    with upstream(answer) as up:
        provider = Provider("acme", f"{up.url}/v1", ("openai_chat", "openai_responses"))
        with running({}, Settings(providers={"acme": provider})) as gateway:
            answers = [httpx.post(f"{gateway.url}/acme{path}", json=body) for _ in range(2)]
        targets = [got.target.removeprefix("/v1/") for got in up.got]
    assert [answer.status_code for answer in answers] == [200, 200]
    assert targets == ["chat/completions", "responses", "responses"]


@pytest.mark.parametrize("name", PASSED_ON)
def test_what_is_about_something_else_is_passed_on(name: str) -> None:
    """Unchanged, after one attempt."""
    check(PASSED_ON[name], error_of(PASSED_ON[name]))


@pytest.mark.parametrize("wrapper", WRAPPERS)
def test_a_refusal_inside_another(wrapper: str) -> None:
    """Relays wrap a provider's error in their own: it is found there."""
    for name in ("O5", "D3"):
        check(ROWS[name], WRAPPERS[wrapper](error_of(ROWS[name])))


def test_a_forced_tool_is_refused_once() -> None:
    """A learned refusal applies to requests that think; one that doesn't keeps its forced tool."""
    row = ROWS["D1"]
    path, body = request_of(row)
    with upstream(strict(row, error_of(row))) as up, acme(up.url, row.format) as gateway:
        for _ in range(3):
            httpx.post(f"{gateway.url}/acme{path}", json=body)
        assert [json.loads(got.body)["tool_choice"] for got in up.got] == ["required", "auto", "auto", "auto"]
        httpx.post(f"{gateway.url}/acme{path}", json={**body, "thinking": {"type": "disabled"}})
        assert json.loads(up.got[4].body)["tool_choice"] == "required"


@pytest.mark.parametrize(
    "sentence",
    [
        "Unexpected value(s) `b-2026` for the `anthropic-beta` header. Please consult our documentation at "
        "docs.anthropic.com or try again without the header.",
        "Unexpected value(s) 'b-2026', 'c-2026' for the 'anthropic-beta' header.",
        "Unknown beta flag: 'b-2026' in anthropic-beta",
    ],
)
def test_a_beta_that_is_refused(sentence: str) -> None:
    """It is removed from this request's header and the next one's; the other values stay."""
    row = messages(sentence, {}, {})
    path, body = request_of(row)

    async def answer(got: Got, out: Out) -> None:
        given = (got.header("anthropic-beta") or "").split(",")
        is_refused = any(one in sentence for one in given if one)
        await out.whole(400 if is_refused else 200, error_of(row) if is_refused else OK)

    with upstream(answer) as up, acme(up.url, row.format) as gateway:
        betas = {"anthropic-beta": "a-2026,b-2026"}
        answers = [httpx.post(f"{gateway.url}/acme{path}", json=body, headers=betas) for _ in range(2)]
        given = [got.header("anthropic-beta") for got in up.got]
        assert [json.loads(got.body) for got in up.got] == [body] * 3
    assert [one.status_code for one in answers] == [200, 200]
    assert given == ["a-2026,b-2026", "a-2026", "a-2026"]
    assert [one.headers["x-thoughtline-findings"] for one in answers] == ["setting=1", "setting=1"]


def test_the_page_has_every_row() -> None:
    """`docs/refusals.md` shows each sentence and the result for its request."""
    page = (Path(__file__).parents[2] / "docs" / "refusals.md").read_text()
    for name, row in (ROWS | CHAIN | DOORS | OTHER_WORDINGS | REPORTED).items():
        assert line_of(row) in page, f"{name}: {line_of(row)}"
