"""Answers that are not read to their end: the turn is kept as truncated, and nothing is left behind."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Callable
from contextlib import suppress
from types import ModuleType
from typing import Any

import httpx
import httpx2
import openai
import pytest

from tests.line.chats import HEADERS, PATH, Answer, Told, events, request, streamed
from thoughtline import Line
from thoughtline.engine import open_store
from thoughtline.library.background import run
from thoughtline.line import AsyncExchange, SyncExchange
from thoughtline.stores import Filter

BODY = request(stream=True)
BEGUN = b"".join(events()[:2])
SECONDS = 30
"""How long a save may take on a busy machine."""

both_libraries = pytest.mark.parametrize("library", [httpx, httpx2])


def stalling() -> Told:
    """A server that stops after the reasoning, before the end of the turn."""
    return Told(lambda body: Answer(BEGUN, kind="text/event-stream", stalls=True))


async def are_complete(store_url: str) -> list[bool]:
    """For each stored turn."""
    store = await open_store(store_url)
    kept = (await store.list_entries(Filter())).entries
    await store.close()
    return [entry.record.is_complete for entry in kept]


def check_cut(line: Line, client: Any, store_url: str) -> None:
    """One turn, marked as truncated; no exchange, connection or task is left."""
    gc.collect()
    left = [thing for thing in gc.get_objects() if isinstance(thing, (SyncExchange, AsyncExchange))]
    assert left == []
    assert [one for one in client._transport._pool.connections if not one.is_idle()] == []
    tasks = run(_others()).result()
    line.close()
    assert not [task for task in tasks if "Engine" in task.get_coro().__qualname__]
    assert asyncio.run(are_complete(store_url)) == [False]


async def _others() -> list[Any]:
    """Tasks that don't end by themselves; an active save does."""
    others = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
    saves = [task for task in others if "Engine" in str(task.get_coro())]
    if saves:
        await asyncio.wait(saves, timeout=SECONDS)
    return [task for task in others if not task.done()]


def hang_up(client: Any, library: ModuleType) -> None:
    with client.stream("POST", PATH, content=BODY) as answer:
        next(answer.iter_raw())


def run_out_of_time(client: Any, library: ModuleType) -> None:
    patience = library.Timeout(30, read=2)
    with pytest.raises(library.ReadTimeout), client.stream("POST", PATH, content=BODY, timeout=patience) as answer:
        answer.read()


def let_go(client: Any, library: ModuleType) -> None:
    """Without closing: the garbage collector ends it."""
    pieces = client.send(client.build_request("POST", PATH, content=BODY), stream=True).iter_raw()
    next(pieces)


def fail(client: Any, library: ModuleType) -> None:
    """Raise an error of the caller's own."""
    with suppress(ZeroDivisionError), client.stream("POST", PATH, content=BODY) as answer:
        for piece in answer.iter_raw():
            len(piece) / 0


@both_libraries
@pytest.mark.parametrize("leave", [hang_up, run_out_of_time, let_go, fail])
def test_a_caller_that_leaves(
    line: Line, store_url: str, library: ModuleType, leave: Callable[[Any, ModuleType], None]
) -> None:
    """In mid-stream, deliberately or not: it gets its own error, if any."""
    with line.http_client(library, base_url=stalling().url, headers=HEADERS) as client:
        leave(client, library)
        check_cut(line, client, store_url)


def test_a_server_that_breaks_off(line: Line, store_url: str) -> None:
    """The caller gets the library's own error."""
    server = Told(lambda body: Answer(BEGUN, kind="text/event-stream", content_length="9999"))
    with line.http_client(httpx2, base_url=server.url, headers=HEADERS) as client:
        with pytest.raises(httpx2.RemoteProtocolError):
            client.post(PATH, content=BODY)
        check_cut(line, client, store_url)


async def hang_up_async(client: Any, library: ModuleType) -> None:
    async with client.stream("POST", PATH, content=BODY) as answer:
        await anext(answer.aiter_raw())


async def run_out_of_time_async(client: Any, library: ModuleType) -> None:
    patience = library.Timeout(30, read=2)
    with pytest.raises(library.ReadTimeout):
        await client.post(PATH, content=BODY, timeout=patience)


async def be_cancelled(client: Any, library: ModuleType) -> None:
    has_begun = asyncio.Event()

    async def read() -> None:
        async with client.stream("POST", PATH, content=BODY) as answer:
            async for _ in answer.aiter_raw():
                has_begun.set()

    task = asyncio.ensure_future(read())
    await has_begun.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


@both_libraries
@pytest.mark.parametrize("leave", [hang_up_async, run_out_of_time_async, be_cancelled])
def test_a_task_that_leaves(
    line: Line, store_url: str, library: ModuleType, leave: Callable[[Any, ModuleType], Any]
) -> None:
    """The same on an event loop."""

    async def ask() -> Any:
        async with line.async_http_client(library, base_url=stalling().url, headers=HEADERS) as client:
            await leave(client, library)
        return client

    check_cut(line, asyncio.run(ask()), store_url)


def test_an_sdk_that_is_left_early(line: Line, store_url: str) -> None:
    """`with_streaming_response`, and a stream of which one chunk is read."""
    client = openai.OpenAI(base_url=f"{stalling().url}/v1", api_key="key-of-a-test", max_retries=0)
    line.remember(client)
    asked: Any = {"model": "deepseek-v4-pro", "messages": [{"role": "user", "content": "Hello"}], "stream": True}
    with client.chat.completions.with_streaming_response.create(**asked) as answer:
        next(answer.iter_lines())
    with client.chat.completions.create(**asked) as chunks:
        next(iter(chunks))
    del answer, chunks
    check_cut(line, client._client, store_url)


def test_a_whole_turn_stays_whole(line: Line, store_url: str) -> None:
    """Leaving when the turn has ended does not truncate it."""
    with line.http_client(httpx2, base_url=Told(lambda body: streamed()).url, headers=HEADERS) as client:
        with client.stream("POST", PATH, content=BODY) as answer:
            assert b"[DONE]" in answer.read()
        line.close()
    assert asyncio.run(are_complete(store_url)) == [True]
