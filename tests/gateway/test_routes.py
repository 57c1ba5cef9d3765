"""`[routes.NAME]`: a model name that fails over, and the errors that are passed to the client instead."""

from __future__ import annotations

from typing import Any

import httpx
import pytest
from msgspec.structs import replace

from tests.gateway.gateways import Running
from tests.gateway.teams import answers, ask, cuts, cuts_after_head, said, streams, team, told, who
from tests.gateway.upstreams import EVENTS, Answer, Got, Out
from thoughtline.destinations.catalogue import Timeouts
from thoughtline.formats.aws_event_stream import CONTENT_TYPE, encode_message

UNREACHABLE = "http://127.0.0.1:1"
OVERLOADED = b'{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}'
FAILURES: dict[str, Answer] = {
    **{f"status {status}": answers(status) for status in (408, 409, 429, 500, 502, 503, 504, 520, 529)},
    "overloaded in a refusal": answers(400, OVERLOADED),
    "overloaded in an answer": answers(200, OVERLOADED),
    "busy by a number, in an answer": answers(200, b'{"error":{"code":429,"message":"slow down"}}'),
    "MiniMax is busy": answers(200, b'{"base_resp":{"status_code":1002,"status_msg":"rate limit"}}'),
    "broken off": cuts,
    "broken off after its head": cuts_after_head,
}
STREAMED: dict[str, Answer] = {
    **FAILURES,
    "an error is the first event": streams(b"event: error\ndata: " + OVERLOADED + b"\n\n"),
    "an error behind comments": streams(
        b": PROCESSING\n\n", b": PROCESSING\n\n", b'data: {"error":{"code":502,"message":"provider"}}\n\n'
    ),
    "an error in two pieces": streams(b"event: error\nda", b"ta: " + OVERLOADED + b"\n\n"),
    "nothing at all": cuts_after_head,
}


@pytest.mark.parametrize("failure", FAILURES.values(), ids=FAILURES)
def test_a_failure_leads_to_the_next_target(failure: Answer) -> None:
    """The client sees the second target's answer, and nothing of the first; log and header name the one that
    answered."""
    with team("one", "two") as (gateway, ups):
        ups.does["one"] = failure
        response = ask(gateway)
        assert who(response) == "two"
        assert response.content == said("two")
        assert ups.asked("one") == 1
        assert ups.asked("two") == 1
        [line] = gateway.lines
        assert (line["provider"], line["model"], line["attempts"], line["status"]) == ("two", "two-1", 2, 200)


@pytest.mark.parametrize("failure", STREAMED.values(), ids=STREAMED)
def test_a_failure_before_a_stream_leads_to_the_next_target(failure: Answer) -> None:
    """The client's stream is the second target's, byte for byte."""
    with team("one", "two") as (gateway, ups):
        ups.does["one"] = failure
        response = ask(gateway, stream=True)
        assert who(response) == "two"
        assert response.content == b"".join(told("two"))
        assert ups.asked("two") == 1


EXCEPTIONS = {
    "throttlingException": "two",
    "serviceUnavailableException": "two",
    "modelStreamErrorException": "two",
    "internalServerException": "two",
    "validationException": "one",
}


@pytest.mark.parametrize(("name", "answers"), EXCEPTIONS.items(), ids=EXCEPTIONS)
@pytest.mark.parametrize("cut", [5, 40, 1000], ids=["in its lengths", "in its headers", "nowhere"])
def test_bedrock_says_it_in_binary(name: str, answers: str, cut: int) -> None:
    """An exception as the first message of a stream: another target is asked, unless the request is at fault."""
    headers = {":exception-type": name, ":content-type": "application/json", ":message-type": "exception"}
    message = encode_message(headers, b'{"message":"Too many requests"}')

    async def fail(got: Got, out: Out) -> None:
        await out.stream(("content-type", CONTENT_TYPE))
        for piece in filter(None, (message[:cut], message[cut:])):
            await out.chunk(piece)
        await out.end()

    with team("one", "two") as (gateway, ups):
        move(gateway, "one", formats=("bedrock_converse",))
        ups.does["one"] = fail
        response = ask(gateway, stream=True)
        assert who(response) == answers
        assert ups.asked("two") == (answers == "two")


def test_bedrock_answers_in_binary() -> None:
    """A stream that begins well is passed on from its first message."""
    said = [("messageStart", b'{"role":"assistant"}'), ("messageStop", b'{"stopReason":"end_turn"}')]
    said.insert(1, ("contentBlockDelta", b'{"contentBlockIndex":0,"delta":{"text":"I am one."}}'))

    async def answer(got: Got, out: Out) -> None:
        await out.stream(("content-type", CONTENT_TYPE))
        for name, payload in said:
            await out.chunk(encode_message({":event-type": name, ":message-type": "event"}, payload))
        await out.end()

    with team("one", "two") as (gateway, ups):
        move(gateway, "one", formats=("bedrock_converse",))
        ups.does["one"] = answer
        response = ask(gateway, stream=True)
        assert (who(response), ups.asked("two")) == ("one", 0)
        assert b"I am one." in response.content


def test_a_target_without_a_listener() -> None:
    """The connection is refused: the next target is asked."""
    with team("one", "two") as (gateway, _):
        move(gateway, "one", base_url=UNREACHABLE)
        assert who(ask(gateway)) == "two"


@pytest.mark.parametrize("is_streaming", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("has_head", [False, True], ids=["silent", "only a head"])
def test_time_to_first_byte(is_streaming: bool, has_head: bool) -> None:
    """A target that sends nothing in time is given up; a status line alone is not enough."""

    async def silent(got: Got, out: Out) -> None:
        if has_head:
            await out.head(200, EVENTS, ("transfer-encoding", "chunked"))
        await out.gone()

    with team("one", "two") as (gateway, ups):
        move(gateway, "one", timeouts=Timeouts(first_byte=0.05))
        ups.does["one"] = silent
        assert who(ask(gateway, stream=is_streaming)) == "two"


REFUSALS = {
    "a bad request": (400, b'{"error":{"message":"max_tokens is too large","type":"invalid_request_error"}}'),
    "no such model": (404, b'{"error":{"message":"no such model"}}'),
    "too large": (413, b'{"error":{"message":"too long"}}'),
    "not understood": (422, b'{"detail":"field required"}'),
    "the caller's key": (401, b'{"error":{"message":"Incorrect API key provided"}}'),
    "moderated": (403, b'{"error":{"message":"flagged","metadata":{"flagged_input":"x"}}}'),
}


@pytest.mark.parametrize(("status", "body"), REFUSALS.values(), ids=REFUSALS)
@pytest.mark.parametrize("is_streaming", [False, True], ids=["whole", "streamed"])
def test_a_refusal_of_the_request_is_for_the_client(status: int, body: bytes, is_streaming: bool) -> None:
    """It is passed on unchanged; no other target is asked, and this one's health is unaffected."""
    with team("one", "two", keys={"one": ()}) as (gateway, ups):
        ups.does["one"] = answers(status, body)
        for _ in range(4):
            response = ask(gateway, stream=is_streaming)
            assert (response.status_code, response.content) == (status, body)
        assert (ups.asked("one"), ups.asked("two")) == (4, 0)


def test_a_refusal_of_ours_is_for_the_client() -> None:
    """A request that can't be translated for the first target is refused, whatever other targets there are."""
    body = {"model": "team", "input": [{"type": "item_reference", "id": "msg_1"}]}
    with team("one", "two") as (gateway, ups):
        response = httpx.post(f"{gateway.url}/v1/responses", json=body)
        assert (response.status_code, response.json()["error"]["code"]) == (400, "untranslatable")
        assert (ups.asked("one"), ups.asked("two")) == (0, 0)


@pytest.mark.parametrize("failure", [answers(503, b'{"error":"busy"}'), cuts], ids=["an error", "broken off"])
def test_a_target_that_cannot_take_the_request(failure: Answer) -> None:
    """If the first target fails and the second can't take the request, the client gets the first one's answer."""
    body = {"model": "team", "input": [{"type": "item_reference", "id": "msg_1"}]}
    with team("one", "two") as (gateway, ups):
        move(gateway, "one", formats=("openai_responses",))
        ups.does["one"] = failure
        response = httpx.post(f"{gateway.url}/v1/responses", json=body)
        assert response.status_code in (502, 503)
        assert who_failed(response) == "one"
        assert ups.asked("two") == 0


def who_failed(response: httpx.Response) -> str:
    return response.headers["x-thoughtline-target"].partition("/")[0]


def move(gateway: Running, name: str, **changes: Any) -> None:
    """Changes a provider's row."""
    rows = dict(gateway.state.settings.providers)
    rows[name] = replace(rows[name], **changes)
    gateway.app.state = gateway.state._replace(settings=replace(gateway.state.settings, providers=rows))


def test_when_all_fail() -> None:
    """The client gets the last one's answer."""
    with team("one", "two", "three") as (gateway, ups):
        ups.does = {name: answers(503, f'{{"error":"{name}"}}'.encode()) for name in ("one", "two", "three")}
        response = ask(gateway)
        assert (response.status_code, response.content) == (503, b'{"error":"three"}')
        assert [ups.asked(name) for name in ("one", "two", "three")] == [1, 1, 1]


def test_after_the_first_byte_no_other_target_is_asked() -> None:
    """A stream that breaks off ends for the client too: two answers in one would be worse."""

    async def begins(got: Got, out: Out) -> None:
        await out.stream()
        await out.chunk(told("one")[0])
        out.cut()

    with team("one", "two") as (gateway, ups):
        ups.does["one"] = begins
        with pytest.raises(httpx.RemoteProtocolError):
            ask(gateway, stream=True)
        assert ups.asked("two") == 0
