"""A stream that starts before its provider has answered: keep-alive signs, then the answer, or its error."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx
import pytest

from tests.gateway.gateways import running
from tests.gateway.test_pulse import ASKED, BEGUN, CLIENTS, ENDED, SIGNS, read_until, words_of
from tests.gateway.test_pulse import _settings as settings_for
from tests.gateway.upstreams import Got, Out, upstream
from thoughtline.formats import FORMATS
from thoughtline.values.events import Failed
from thoughtline.values.turns import FormatName

REFUSAL = b'{"error": {"message": "Too many requests.", "type": "rate_limit_error", "code": "rate_limit_exceeded"}}'


class Dark:
    """A chat provider that sends nothing, not even a status, until the test releases it; then that, and this body."""

    def __init__(self, status: int, body: bytes) -> None:
        self.go_on = threading.Event()
        self._status, self._body = status, body

    async def answer(self, got: Got, out: Out) -> None:
        await asyncio.to_thread(self.go_on.wait, 30)
        if self._status != 200:
            await out.whole(self._status, self._body)
            return
        await out.stream()
        await out.chunk(self._body)
        await out.end()


@contextmanager
def asked(dark: Dark, client: FormatName, seconds: float = 0.02, **extra: Any) -> Iterator[httpx.Response]:
    """A client's request to a silent provider, through a gateway with this interval."""
    path, body = ASKED[client]
    said = body | ({} if client == "gemini_generate" else {"model": "deepseek-v4-pro", "stream": True}) | extra
    with (
        upstream(dark.answer) as up,
        running({}, settings_for(up.url, seconds)) as gateway,
        httpx.stream("POST", f"{gateway.url}/deepseek{path}", json=said, headers={"x-api-key": "k"}, timeout=30) as got,
    ):
        try:
            yield got
        finally:
            dark.go_on.set()


def first_sign(client: FormatName) -> bytes:
    return b": keep-alive\n\n" if client == "openai_responses" else SIGNS[client]


@pytest.mark.parametrize("client", CLIENTS)
def test_a_stream_begins_before_the_provider_answers(client: FormatName) -> None:
    """With its own headers, and signs in the client's format; the answer that follows is complete."""
    dark = Dark(200, BEGUN + ENDED)
    with asked(dark, client) as got:
        assert got.status_code == 200
        assert got.headers["content-type"].split(";")[0] == FORMATS[client].stream_type.decode().split(";")[0]
        assert got.headers["x-thoughtline-request"]
        pieces = got.iter_bytes()
        body = read_until(pieces, first_sign(client), 2)
        dark.go_on.set()
        body += b"".join(pieces)
    assert words_of(body, client) == "Yes indeed."


@pytest.mark.parametrize("client", CLIENTS)
def test_a_late_error_is_reported_in_the_stream(client: FormatName) -> None:
    """In the client's format, with the provider's text; the status is already sent."""
    dark = Dark(429, REFUSAL)
    with asked(dark, client) as got:
        pieces = got.iter_bytes()
        body = read_until(pieces, first_sign(client), 1)
        dark.go_on.set()
        body += b"".join(pieces)
    wire = FORMATS[client]
    decoder = wire.stream_decoder(wire.dialect)
    failed = [event for event in [*decoder.feed(body), *decoder.finish()] if isinstance(event, Failed)]
    assert len(failed) == 1
    assert b"Too many requests." in bytes(failed[0].error)


@pytest.mark.parametrize("client", CLIENTS)
def test_an_error_that_comes_in_time_keeps_its_status(client: FormatName) -> None:
    """Nothing starts early without need."""
    dark = Dark(429, REFUSAL)
    dark.go_on.set()
    with asked(dark, client, seconds=10) as got:
        assert got.status_code == 429
        assert "Too many requests." in got.read().decode()


def test_an_array_that_begins_early_is_one() -> None:
    """Gemini without `alt=sse`: white space, then the array, or one with the error."""
    path, body = ASKED["gemini_generate"]
    for dark, word in ((Dark(200, BEGUN + ENDED), "candidates"), (Dark(429, REFUSAL), "error")):
        with (
            upstream(dark.answer) as up,
            running({}, settings_for(up.url, 0.02)) as gateway,
            httpx.stream("POST", f"{gateway.url}/deepseek{path.partition('?')[0]}", json=body, timeout=30) as got,
        ):
            pieces = got.iter_bytes()
            seen = read_until(pieces, b"\n", 2)
            dark.go_on.set()
            assert word in json.loads(seen + b"".join(pieces))[0]


@pytest.mark.parametrize("client", ["openai_chat", "anthropic_messages"])
def test_what_is_whole_or_not_translated_waits(client: FormatName) -> None:
    """Nothing is sent before the provider's own headers, whose status counts."""
    dark = Dark(429, REFUSAL)
    threading.Timer(0.3, dark.go_on.set).start()
    with asked(dark, client, stream=client == "openai_chat") as got:
        assert got.status_code == 429
