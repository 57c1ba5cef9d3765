"""Frames of Responses: requests become those of a POST, answers get a status."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.gateway.sockets import (
    AUTH,
    RESPONSES,
    USER,
    answered,
    answering,
    event,
    say_hi,
    talking,
)
from tests.gateway.upstreams import Got, Out
from thoughtline.settings import ServerSettings, Settings

Json = dict[str, Any]

# frames


def test_the_turn_says_whose_it_is() -> None:
    """The upgrade's headers may be those of another turn."""
    head = {
        **AUTH,
        "session-id": "old",
        "x-openai-subagent": "review",
        "openai-beta": "responses_websockets=2026-02-06, responses_multi_agent=v1",
    }
    metadata = {
        "session_id": "new",
        "thread_id": "t",
        "x-codex-turn-metadata": '{"turn_id":"1"}',
        "x-codex-window-id": "é",
        "ws_request_header_traceparent": "00-1-2-01",
        "ws_request_header_authorization": "Bearer another",
    }
    with answering() as (up, gateway):
        with talking(gateway.url + RESPONSES, head) as talk:
            talk.ask(input=[USER])
            talk.ask(input=[USER], client_metadata=metadata)
        first, second = up.got
        assert [line["session"] for line in gateway.lines] == ["old", "new"]
    assert (first.header("session-id"), first.header("x-openai-subagent")) == ("old", "review")
    assert (second.header("session-id"), second.header("thread-id")) == ("new", "t")
    assert second.header("x-codex-turn-metadata") == '{"turn_id":"1"}'
    assert second.header("traceparent") == "00-1-2-01"
    assert (second.header("x-openai-subagent"), second.header("x-codex-window-id")) == (None, None)
    assert [got.header("authorization") for got in up.got] == ["Bearer a-key"] * 2
    assert not [name for name, _ in first.headers if name.startswith(("sec-", "upgrade"))]
    assert first.header("openai-beta") == "responses_multi_agent=v1"
    assert json.loads(second.body)["client_metadata"] == metadata


WRONG = (
    ("{", "bad_frame"),
    ("[]", "bad_frame"),
    ("null", "bad_frame"),
    ("[" * 100_000, "bad_frame"),
    ("{}", "unknown_frame"),
    ('{"type":3}', "unknown_frame"),
    ('{"type":"response.append","input":[]}', "unknown_frame"),
    ('{"type":"response.create","stream_id":"a","input":[]}', "unsupported_parameter"),
    ('{"type":"response.create","input":[' + "{}," * 200_000 + "{}]}", "limit_exceeded"),
)


def test_frames_that_are_not_served() -> None:
    """Each gets an error with a status, and the connection stays."""
    with answering() as (up, gateway), talking(gateway.url + RESPONSES) as talk:
        for text, code in WRONG:
            talk.connection.send(text)
            told = talk.heard()
            assert told.error[1] == code, text[:100]
            assert told.error[0] in (400, 413)
            assert told.last.get("stream_id") == ("a" if "stream_id" in text else None)
        assert up.got == []
        assert talk.ask(input=[USER]).said == "hi"


def test_frames_go_up_as_they_came() -> None:
    """Except for the members of a frame: in any JSON form, with unknown members, and with half of an emoji."""
    odd = '{ "type": "response.create",\n"model":"gpt-5", "stream" : 1, "x":[1 ,2.0], "input":"\\ud83d", "n":1 }'
    with answering() as (up, gateway), talking(gateway.url + RESPONSES) as talk:
        talk.connection.send(odd)
        assert talk.heard().said == "hi"
    assert up.got[0].body == b'{ "model":"gpt-5", "stream" : true, "x":[1 ,2.0], "input":"\\ud83d", "n":1 }'


def test_a_conversation_that_has_become_too_large() -> None:
    """Earlier content counts, as in a POST."""
    limited = Settings(server=ServerSettings(max_body_bytes=1000))
    with answering(say_hi, limited) as (_up, gateway), talking(gateway.url + RESPONSES) as talk:
        first = talk.ask(input=[{"role": "user", "content": "x" * 400}])
        again = talk.ask(input=[{"role": "user", "content": "x" * 400}], previous_response_id=first.id)
        assert again.error == (413, "body_too_large")


# answers


async def _refuses(got: Got, out: Out) -> None:
    body = b'{"error":{"message":"slow down","type":"requests","param":null,"code":"rate_limit_exceeded"}}'
    await out.whole(429, body, ("retry-after", "7"), ("x-ratelimit-limit-requests", "10"), ("set-cookie", "a=b"))


async def _breaks_off(got: Got, out: Out) -> None:
    await out.stream()
    await out.chunk(event("response.created", response={"id": "resp_1"}))
    out.cut()


async def _ends_early(got: Got, out: Out) -> None:
    await out.stream()
    await out.chunk(event("response.created", response={"id": "resp_1"}) + b": a comment\n\ndata: [DONE]\n\n")
    await out.end()


async def _fails_in_the_stream(got: Got, out: Out) -> None:
    await out.stream()
    await out.chunk(event("error", code="server_error", message="no", param=None, sequence_number=1))
    await out.end()


async def _answers_whole(got: Got, out: Out) -> None:
    await out.whole(200, b'{"id":"resp_1","output":[]}')


async def _says_no_json(got: Got, out: Out) -> None:
    await out.whole(503, b"<html>busy</html>", ("content-type", "text/html"))


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (_refuses, (429, "rate_limit_exceeded")),
        (_breaks_off, (502, "upstream_failed")),
        (_ends_early, (502, "upstream_failed")),
        (_fails_in_the_stream, (500, "server_error")),
        (_answers_whole, (502, "upstream_failed")),
        (_says_no_json, (503, None)),
    ],
)
def test_errors_have_a_status(answer: Any, error: tuple[int, str]) -> None:
    """Codex ignores an error without one, and waits. The connection stays."""
    answers: Iterator[Any] = iter((answer, say_hi))

    async def next_answer(got: Got, out: Out) -> None:
        await next(answers)(got, out)

    with answering(next_answer) as (_up, gateway), talking(gateway.url + RESPONSES) as talk:
        told = talk.ask(input=[USER])
        assert told.error == error
        headers = told.last.get("headers", {})
        if answer is _refuses:
            assert (headers["retry-after"], headers["x-ratelimit-limit-requests"]) == ("7", "10")
        assert "set-cookie" not in headers
        assert talk.ask(input=[USER]).said == "hi"


def test_events_are_passed_on_as_they_are() -> None:
    """Including unknown ones, each in a separate frame, however the stream was cut."""
    odd = b'data: {"type":"response.metadata", "headers" : {"a":"\xc3\xa9"}}\n\n'

    async def in_pieces(got: Got, out: Out) -> None:
        await out.stream()
        stream = odd + answered()
        for start_at in range(0, len(stream), 7):
            await out.chunk(stream[start_at : start_at + 7])
        await out.end()

    with answering(in_pieces) as (_up, gateway), talking(gateway.url + RESPONSES) as talk:
        talk.send(input=[USER])
        assert talk.connection.recv(timeout=30) == odd[6:-2].decode()
        assert [one["type"] for one in talk.heard().events] == [
            "response.created",
            "response.output_item.done",
            "response.completed",
        ]
