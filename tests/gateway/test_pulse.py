"""Clients of a translated answer get signs of life while its provider is silent: in their own form, without any
harm."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx
import pytest
from msgspec.structs import replace

from tests.gateway.gateways import running
from tests.gateway.sockets import PATIENCE, USER, Talk, talking
from tests.gateway.upstreams import Got, Out, upstream
from thoughtline.destinations.catalogue import PROVIDERS
from thoughtline.formats import FORMATS
from thoughtline.settings import Settings, TranslationSettings
from thoughtline.values.events import fold
from thoughtline.values.items import Text
from thoughtline.values.turns import FormatName

Json = dict[str, Any]
ASKED: dict[FormatName, tuple[str, Json]] = {
    "openai_chat": ("/v1/chat/completions", {"messages": [{"role": "user", "content": "Hi."}]}),
    "openai_responses": ("/v1/responses", {"input": "Hi."}),
    "anthropic_messages": ("/v1/messages", {"max_tokens": 99, "messages": [{"role": "user", "content": "Hi."}]}),
    "gemini_generate": (
        "/v1beta/models/deepseek-v4-pro:streamGenerateContent?alt=sse",
        {"contents": [{"role": "user", "parts": [{"text": "Hi."}]}]},
    ),
    "ollama_chat": ("/api/chat", {"messages": [{"role": "user", "content": "Hi."}]}),
}
SIGNS: dict[FormatName, bytes] = {
    "openai_chat": b": keep-alive\n\n",
    "openai_responses": b'"type":"keepalive"',
    "anthropic_messages": b"event: ping\n",
    "gemini_generate": b'"parts":[{"text":""}]',
    "ollama_chat": b'"message":{"role":"assistant","content":""},"done":false}\n',
}
CLIENTS = [name for name in ASKED if name != "openai_chat"]
CHUNK = b'data: {"id":"c","model":"m","choices":[{"index":0,"delta":%b,"finish_reason":%b}]}\n\n'
BEGUN = CHUNK % (b'{"role":"assistant","content":"Yes"}', b"null")
ENDED = CHUNK % (b'{"content":" indeed."}', b'"stop"') + b"data: [DONE]\n\n"


class Waiting:
    """A chat provider that answers `before`, then is silent until the test lets it continue; `hums` sends a comment."""

    def __init__(self, before: bytes, after: bytes, hums: bytes = b"") -> None:
        self.go_on = threading.Event()
        self._before, self._after, self._hums = before, after, hums

    async def answer(self, got: Got, out: Out) -> None:
        is_stream = json.loads(got.body).get("stream")
        await out.stream(*(() if is_stream else (("content-type", "application/json"),)))
        if self._before:
            await out.chunk(self._before)
        while self._hums and not self.go_on.is_set():
            await out.chunk(self._hums)
            await asyncio.to_thread(self.go_on.wait, 0.01)
        await asyncio.to_thread(self.go_on.wait, 30)
        await out.chunk(self._after)
        await out.end()


def _settings(url: str, seconds: float) -> Settings:
    """A provider that only supports chat."""
    row = replace(PROVIDERS["deepseek"], base_url=url, bases={}, formats=("openai_chat",), paths={})
    return Settings(providers={"deepseek": row}, translation=TranslationSettings(pulse_seconds=seconds))


@contextmanager
def asked(waiting: Waiting, client: FormatName, seconds: float = 0.02, **extra: Any) -> Iterator[httpx.Response]:
    """A client's request to DeepSeek, through a gateway that sends signs of life at this interval."""
    path, body = ASKED[client]
    said = body | ({} if client == "gemini_generate" else {"model": "deepseek-v4-pro", "stream": True}) | extra
    with (
        upstream(waiting.answer) as up,
        running({}, _settings(up.url, seconds)) as gateway,
        httpx.stream("POST", f"{gateway.url}/deepseek{path}", json=said, headers={"x-api-key": "k"}, timeout=30) as got,
    ):
        try:
            yield got
        finally:
            waiting.go_on.set()


def read_until(pieces: Iterator[bytes], sign: bytes, times: int) -> bytes:
    """The bytes until the sign has been seen this many times."""
    seen = b""
    while seen.count(sign) < times:
        seen += next(pieces)
    return seen


def words_of(body: bytes, client: FormatName) -> str:
    wire = FORMATS[client]
    decoder = wire.stream_decoder(wire.dialect)
    reply = fold([*decoder.feed(body), *decoder.finish()], client)
    return "".join(item.text for item in reply.candidates[0].turn.items if isinstance(item, Text))


@pytest.mark.parametrize("client", CLIENTS)
def test_a_stream_that_falls_silent_gives_signs_of_life(client: FormatName) -> None:
    """Repeatedly, in the form that clients of this format expect; the answer itself is unchanged."""
    waiting = Waiting(BEGUN, ENDED)
    with asked(waiting, client) as got:
        pieces = got.iter_bytes()
        body = read_until(pieces, SIGNS[client], 3)
        waiting.go_on.set()
        body += b"".join(pieces)
    assert words_of(body, client) == "Yes indeed."


@pytest.mark.parametrize("client", CLIENTS)
def test_signs_come_before_the_first_event(client: FormatName) -> None:
    """A provider that thinks without output from the beginning."""
    sign = b": keep-alive\n\n" if client == "openai_responses" else SIGNS[client]
    waiting = Waiting(b"", BEGUN + ENDED)
    with asked(waiting, client) as got:
        pieces = got.iter_bytes()
        body = read_until(pieces, sign, 2)
        waiting.go_on.set()
        body += b"".join(pieces)
    assert words_of(body, client) == "Yes indeed."


@pytest.mark.parametrize("client", CLIENTS)
def test_comments_of_a_provider_are_passed_on(client: FormatName) -> None:
    """DeepSeek's `: keep-alive` in its queue, OpenRouter's `: OPENROUTER PROCESSING`: each becomes the client's own."""
    waiting = Waiting(BEGUN, ENDED, hums=b": OPENROUTER PROCESSING\n\n")
    with asked(waiting, client, seconds=0) as got:
        pieces = got.iter_bytes()
        body = read_until(pieces, SIGNS[client], 3)
        waiting.go_on.set()
        body += b"".join(pieces)
    assert words_of(body, client) == "Yes indeed."
    assert b"OPENROUTER" not in body


@contextmanager
def talked(waiting: Waiting, seconds: float) -> Iterator[Talk]:
    """A Responses client over a WebSocket, whose turn DeepSeek answers."""
    with (
        upstream(waiting.answer) as up,
        running({}, _settings(up.url, seconds)) as gateway,
        talking(f"{gateway.url}/deepseek/v1/responses", model="deepseek-v4-pro") as talk,
    ):
        try:
            talk.send(input=[USER])
            yield talk
        finally:
            waiting.go_on.set()


def events_until(talk: Talk, kind: str, times: int) -> list[Json]:
    """The events until one of this type has arrived this many times."""
    seen: list[Json] = []
    while [event["type"] for event in seen].count(kind) < times:
        seen.append(json.loads(talk.connection.recv(timeout=PATIENCE)))
    return seen


@pytest.mark.parametrize(
    ("before", "hums", "seconds"),
    [(b"", b"", 0.02), (BEGUN, b"", 0.02), (b"", b": hm\n\n", 0), (BEGUN, b": hm\n\n", 0)],
    ids=["silent at first", "silent in between", "a comment at first", "a comment in between"],
)
def test_signs_reach_a_client_over_a_websocket_as_events(before: bytes, hums: bytes, seconds: float) -> None:
    """The gateway's and the provider's, before the first event and after it; the answer itself is unchanged."""
    waiting = Waiting(before, ENDED if before else BEGUN + ENDED, hums)
    with talked(waiting, seconds) as talk:
        seen = events_until(talk, "keepalive", 3)
        waiting.go_on.set()
        told = talk.heard()
    assert [event["type"] == "keepalive" for event in seen[:3]] == [not before] * 3
    assert told.said == "Yes indeed."


def test_an_error_after_signs_over_a_websocket_ends_the_turn() -> None:
    """The connection stays open for the next turn."""
    waiting = Waiting(b"", b"")
    with talked(waiting, 0.02) as talk:
        events_until(talk, "keepalive", 2)
        waiting.go_on.set()
        assert talk.heard().last["type"] == "error"
        assert talk.ask(input=[USER]).last["type"] == "error"


def test_a_stream_of_an_array_gets_white_space() -> None:
    """Gemini without `alt=sse`: the array stays JSON."""
    waiting = Waiting(BEGUN, ENDED)
    path, body = ASKED["gemini_generate"]
    with (
        upstream(waiting.answer) as up,
        running({}, _settings(up.url, 0.02)) as gateway,
        httpx.stream("POST", f"{gateway.url}/deepseek{path.partition('?')[0]}", json=body, timeout=30) as got,
    ):
        pieces = got.iter_bytes()
        seen = read_until(pieces, b"\n", 3)
        waiting.go_on.set()
        answers = json.loads(seen + b"".join(pieces))
    assert "".join(answer["candidates"][0]["content"]["parts"][0]["text"] for answer in answers[:2]) == "Yes indeed."


WHOLE = json.dumps({"id": "c", "model": "m", "choices": [{"index": 0, "finish_reason": "stop", "message": {}}]})
ANSWER = WHOLE.replace('"message": {}', '"message": {"role": "assistant", "content": "Yes."}').encode()


def test_a_whole_answer_that_takes_long_begins_with_white_space() -> None:
    """As DeepSeek does in its queue: JSON may begin with white space, and the connection stays open."""
    waiting = Waiting(b"", ANSWER)
    with asked(waiting, "anthropic_messages", stream=False) as got:
        pieces = got.iter_bytes()
        body = read_until(pieces, b"\n", 2)
        waiting.go_on.set()
        body += b"".join(pieces)
    assert got.status_code == 200
    assert json.loads(body)["content"] == [{"type": "text", "text": "Yes."}]


def test_a_whole_answer_that_breaks_off_behind_white_space_ends_in_mid_air() -> None:
    """Nobody takes half of it for an answer."""
    waiting = Waiting(b"", ANSWER[:20])
    with asked(waiting, "anthropic_messages", stream=False) as got:
        pieces = got.iter_bytes()
        read_until(pieces, b"\n", 1)
        waiting.go_on.set()
        with pytest.raises(httpx.RemoteProtocolError):
            list(pieces)


def test_a_whole_answer_that_comes_at_once_has_its_length() -> None:
    """No unnecessary sign is sent."""
    waiting = Waiting(b"", ANSWER)
    waiting.go_on.set()
    with asked(waiting, "anthropic_messages", seconds=10, stream=False) as got:
        body = got.read()
    assert got.headers["content-length"] == str(len(body))
    assert not body.startswith(b"\n")


def test_in_one_format_nothing_is_added() -> None:
    """An untranslated answer is passed on as it comes: with the provider's own comments, without any of ours."""
    waiting = Waiting(BEGUN, ENDED, hums=b": one\n\n")
    with asked(waiting, "openai_chat") as got:
        pieces = got.iter_bytes()
        body = read_until(pieces, b": one\n\n", 8)
        waiting.go_on.set()
        body += b"".join(pieces)
    assert SIGNS["openai_chat"] not in body
    assert body.replace(b": one\n\n", b"") == BEGUN + ENDED
