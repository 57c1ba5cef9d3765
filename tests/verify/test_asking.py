"""One provider asked with one key."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from msgspec.structs import replace

from thoughtline.destinations.catalogue import PROVIDERS
from thoughtline.providers import REASONING_CONTENT
from thoughtline.values.destination import Destination
from thoughtline.values.errors import Declined
from thoughtline.verify.asking import TRIES, Answer, Asker, BudgetSpent

TARGET = Destination("deepseek", "", "deepseek-v4-pro", "openai_chat")
OK = (
    b'{"id":"1","object":"chat.completion","model":"m","choices":[{"index":0,"finish_reason":"stop","message":'
    b'{"role":"assistant","content":"hi","reasoning_content":"hm"}}],'
    b'"usage":{"prompt_tokens":30,"completion_tokens":12,"total_tokens":42}}'
)


class Scripted:
    """A server that answers as it is told, and keeps what it was asked."""

    def __init__(self, *answers: bytes) -> None:
        self._answers = list(answers)
        self.asked: list[bytes] = []
        self.url = ""

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        length = int(head.lower().partition(b"content-length: ")[2].split(b"\r\n")[0])
        self.asked.append(head + await reader.readexactly(length))
        writer.write(self._answers.pop(0) if len(self._answers) > 1 else self._answers[0])
        await writer.drain()
        writer.close()


def response(status: int, body: bytes, *headers: bytes) -> bytes:
    lines = [b"HTTP/1.1 %d X" % status, b"content-length: %d" % len(body), b"connection: close", *headers]
    return b"\r\n".join(lines) + b"\r\n\r\n" + body


@asynccontextmanager
async def asking(*answers: bytes, budget: int = 1000) -> AsyncIterator[tuple[Asker, Scripted]]:
    scripted = Scripted(*answers)
    server = await asyncio.start_server(scripted.serve, "127.0.0.1", 0)
    url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    asker = Asker(replace(PROVIDERS["deepseek"], base_url=url, bases={}), "sk-secret", budget, pause_seconds=0)
    async with server:
        yield asker, scripted
    asker.close()


async def ask(asker: Asker, *, is_streaming: bool = False) -> Answer:
    return await asker.ask(TARGET, b"{}", REASONING_CONTENT, is_streaming=is_streaming)


async def test_an_answer_is_read_and_counted() -> None:
    """Its turn, the member that had the reasoning, and its tokens; the key is in the header alone."""
    async with asking(response(200, OK)) as (asker, scripted):
        answer = await ask(asker)
    assert (answer.is_accepted, answer.carriers, asker.tokens, asker.requests) == (True, ("reasoning_content",), 42, 1)
    assert scripted.asked[0].count(b"sk-secret") == 1
    assert b"authorization: Bearer sk-secret" in scripted.asked[0]


async def test_a_stream_is_read() -> None:
    """As the whole answer would be."""
    chunk = b'data: {"id":"1","choices":[{"index":0,"delta":{"reasoning_content":"hm"},"finish_reason":"stop"}]}\n\n'
    async with asking(response(200, chunk + b"data: [DONE]\n\n")) as (asker, _):
        assert (await ask(asker, is_streaming=True)).carriers == ("reasoning_content",)


async def test_it_asks_again_where_the_provider_is_busy() -> None:
    """A few times; what it says at last is the answer."""
    async with asking(response(429, b"{}", b"retry-after: 0"), response(200, OK)) as (asker, scripted):
        assert (await ask(asker)).is_accepted
    assert len(scripted.asked) == 2
    async with asking(response(529, b"busy")) as (asker, scripted):
        assert (await ask(asker)).status == 529
    assert len(scripted.asked) == TRIES


async def test_it_stops_at_the_budget() -> None:
    """Before a request, not in the middle of one."""
    async with asking(response(200, OK), budget=42) as (asker, scripted):
        await ask(asker)
        with pytest.raises(BudgetSpent, match="42 tokens"):
            await ask(asker)
    assert len(scripted.asked) == 1


async def test_what_can_not_be_read_says_nothing() -> None:
    """And a provider that gives no answer is said to give none."""
    async with asking(response(200, b"no JSON")) as (asker, _):
        answer = await ask(asker)
    assert (answer.is_accepted, answer.items, asker.tokens) == (True, (), 0)
    with pytest.raises(Declined, match="no answer"):
        await ask(asker)
