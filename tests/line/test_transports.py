"""httpx and httpx2 clients that remember: what they send, what comes back, and the result of interruptions."""

from __future__ import annotations

import asyncio
import gzip
import json
import threading
from collections.abc import Callable
from types import ModuleType
from typing import Any

import brotli
import httpx
import httpx2
import openai
import pytest
import zstandard

from tests.line.chats import (
    HEADERS,
    NEXT,
    PATH,
    THOUGHT,
    Answer,
    Told,
    events,
    request,
    restored,
    streamed,
    whole,
)
from thoughtline import Line
from thoughtline.engine import Replayer, Watch
from thoughtline.library.door import ReplayLine
from thoughtline.library.exchange import ExchangeState

REPLAY = "x-thoughtline-replay"
REFUSAL = json.dumps(
    {"error": {"message": "The `reasoning_content` in the thinking mode must be passed back to the API."}}
).encode()

both_libraries = pytest.mark.parametrize("library", [httpx, httpx2])


def client_of(line: Line, library: ModuleType, url: str, **options: Any) -> Any:
    return line.http_client(library, base_url=url, headers=HEADERS, **options)


def next_body(line: Line, server: Told) -> bytes:
    """The next request as the server got it."""
    with client_of(line, httpx2, server.url) as client:
        client.post(PATH, content=NEXT)
    return server.bodies[-1]


@both_libraries
def test_a_whole_answer(line: Line, library: ModuleType) -> None:
    """The caller gets the server's bytes unchanged, with one more header; the next request is restored."""
    server = Told(lambda body: Answer(whole()))
    with client_of(line, library, server.url) as client:
        answer = client.post(PATH, content=request())
        assert answer.content == whole()
        assert answer.headers[REPLAY].startswith("restored=0")
        assert server.bodies == [request()]
        assert client.post(PATH, content=NEXT).headers[REPLAY].startswith("restored=1")
    assert restored(server.bodies[-1]) == [THOUGHT]
    assert server.headers[-1][b"content-length"] == str(len(server.bodies[-1])).encode()


@both_libraries
async def test_an_async_client(line: Line, library: ModuleType) -> None:
    """The same on an event loop, streamed."""
    server = Told(lambda body: streamed())
    async with line.async_http_client(library, base_url=server.url, headers=HEADERS) as client:
        async with client.stream("POST", PATH, content=request(stream=True)) as answer:
            assert b"".join([piece async for piece in answer.aiter_raw()]) == b"".join(events())
        assert (await client.post(PATH, content=NEXT)).headers[REPLAY].startswith("restored=1")


PACKED: dict[str, Callable[[bytes], bytes]] = {
    "gzip": gzip.compress,
    "br": brotli.compress,
    "zstd": zstandard.ZstdCompressor().compress,
}


@pytest.mark.parametrize("coding", PACKED)
@pytest.mark.parametrize("is_stream", [False, True])
def test_a_compressed_answer(line: Line, coding: str, is_stream: bool) -> None:
    """It is passed on compressed, and a copy is read decompressed."""
    plain = b"".join(events()) if is_stream else whole()
    packed = PACKED[coding](plain)
    pieces = [packed[:20], packed[20:]]
    kind = "text/event-stream" if is_stream else "application/json"
    server = Told(lambda body: Answer(*pieces, kind=kind, content_encoding=coding))
    with client_of(line, httpx2, server.url) as client, client.stream("POST", PATH, content=request()) as answer:
        assert b"".join(answer.iter_raw()) == packed
    assert restored(next_body(line, server)) == [THOUGHT]


@both_libraries
def test_a_refusal_is_healed_before_the_caller_sees_it(line: Line, library: ModuleType) -> None:
    """One request by the caller, two at the server; the caller gets the second answer."""

    def strict(body: bytes) -> Answer:
        has_all = all("reasoning_content" in message for message in json.loads(body)["messages"][1:2])
        return Answer(whole()) if has_all else Answer(REFUSAL, status=400)

    server = Told(strict)
    body = NEXT.replace(b"deepseek-v4-pro", b"a-model")
    with client_of(line, library, server.url) as client:
        answer = client.post(PATH, content=body)
        assert (answer.status_code, answer.content) == (200, whole())
        assert "healed=1" in answer.headers[REPLAY]
        assert len(server.bodies) == 2
        assert client.post(PATH, content=body).status_code == 200
    assert len(server.bodies) == 3, "what was learned saves a request"


@both_libraries
@pytest.mark.parametrize("coding", ["", "gzip"])
def test_the_first_refusal_is_passed_on_if_nothing_helps(line: Line, library: ModuleType, coding: str) -> None:
    """Unchanged, and after three attempts at most."""
    packed = gzip.compress(REFUSAL) if coding else REFUSAL
    answered = Answer(packed, status=400, content_encoding=coding) if coding else Answer(packed, status=400)
    server = Told(lambda body: answered)
    with client_of(line, library, server.url) as client:
        answer = client.post(PATH, content=NEXT.replace(b"deepseek-v4-pro", b"a-model"))
    assert (answer.status_code, answer.content) == (400, REFUSAL)
    assert "healed=0" in answer.headers[REPLAY]
    assert 2 <= len(server.bodies) <= 3


async def test_an_async_refusal(line: Line) -> None:
    """Errors about other things reach the caller after one request."""
    server = Told(lambda body: Answer(b'{"error": {"message": "slow down"}}', status=429))
    async with line.async_http_client(httpx2, base_url=server.url, headers=HEADERS) as client:
        answer = await client.post(PATH, content=NEXT)
    assert (answer.status_code, answer.json()["error"]["message"]) == (429, "slow down")
    assert len(server.bodies) == 1


def test_what_is_no_conversation_is_untouched(line: Line) -> None:
    """Uploads and lists pass through unread."""
    server = Told(lambda body: Answer(b"{}"))
    with client_of(line, httpx2, server.url) as client:
        answer = client.post("/v1/files", files={"file": b"x" * 100})
    assert REPLAY not in answer.headers
    assert line.report.requests == 0


def test_our_headers_never_go_up(line: Line) -> None:
    """A caller's session header is removed from the request."""
    server = Told(lambda body: Answer(whole()))
    with client_of(line, httpx2, server.url) as client:
        client.post(PATH, content=request(), headers={"x-thoughtline-session": "s"})
    assert not [name for name in server.headers[-1] if name.startswith(b"x-thoughtline")]


def test_what_a_client_was_made_with_stays(line: Line) -> None:
    """Proxies are transports of their own, and stay inside ours; wrapping twice changes nothing."""
    client = httpx2.Client(proxy="http://127.0.0.1:9", timeout=7)
    inner = client._transport_for_url(httpx2.URL("https://api.deepseek.com/"))
    line.remember(client)
    around: Any = client._transport_for_url(httpx2.URL("https://api.deepseek.com/"))
    assert around.inner is inner
    line.remember(client)
    assert client._transport_for_url(httpx2.URL("https://api.deepseek.com/")) is around
    assert client.timeout == httpx2.Timeout(7)


@both_libraries
def test_an_answer_that_was_read_before_it_came(line: Line, library: ModuleType) -> None:
    """A caller's own transport, such as a cache, may return whole answers."""
    packed = {"content-type": "application/json", "content-encoding": "gzip"}
    bodies: list[bytes] = []

    def answer(request: Any) -> Any:
        bodies.append(request.content)
        return library.Response(200, headers=packed, content=gzip.compress(whole()))

    client = line.http_client(library, transport=library.MockTransport(answer), base_url="http://a", headers=HEADERS)
    assert client.post(PATH, content=request()).content == whole()
    client.post(PATH, content=NEXT)
    assert restored(bodies[-1]) == [THOUGHT]


async def test_a_task_that_is_cancelled(line: Line) -> None:
    """Cancelled before the answer or during it, the caller gets its own cancellation and nothing else."""
    server = Told(lambda body: streamed())
    async with line.async_http_client(httpx2, base_url=server.url, headers=HEADERS) as client:
        for waits in range(4):
            task = asyncio.ensure_future(client.post(PATH, content=request(stream=True)))
            for _ in range(waits):
                await asyncio.sleep(0)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
        assert (await client.post(PATH, content=request())).status_code == 200


def test_an_sdk_that_asks_again(line: Line) -> None:
    """All its attempts are prepared alike, and the last answer is stored."""
    answers = iter([Answer(b"{}", status=500), Answer(whole()), Answer(whole())])
    server = Told(lambda body: next(answers))
    client = openai.OpenAI(base_url=f"{server.url}/v1", api_key="key-of-a-test", http_client=line.http_client())
    client.chat.completions.create(**json.loads(request()))
    assert server.bodies[0] == server.bodies[1]
    client.chat.completions.create(**json.loads(NEXT))
    assert restored(server.bodies[2]) == [THOUGHT]


def test_an_answer_that_is_hardly_read(line: Line) -> None:
    """`with_streaming_response` may read a line or nothing: the caller's code is not affected."""
    server = Told(lambda body: streamed())
    client = line.remember(openai.OpenAI(base_url=f"{server.url}/v1", api_key="key-of-a-test"))
    asked = json.loads(request(stream=True))
    with client.chat.completions.with_streaming_response.create(**asked) as answer:
        assert answer.headers[REPLAY].startswith("restored=0")
    with client.chat.completions.with_streaming_response.create(**asked) as answer:
        assert next(answer.iter_lines()).startswith("data: ")
    with client.chat.completions.with_streaming_response.create(**asked) as answer:
        assert len(list(answer.iter_lines())) > 3
    assert restored(next_body(line, server)) == [THOUGHT]


def test_an_address_where_nobody_is(line: Line) -> None:
    """The caller gets the library's own error each time."""
    with client_of(line, httpx2, "http://127.0.0.1:9") as client:
        for _ in range(2):
            with pytest.raises(httpx2.ConnectError):
                client.post(PATH, content=request())


def test_fifty_threads(line: Line) -> None:
    """Each has a conversation of two requests, and gets its own reasoning back; one of our threads serves all."""
    server = Told(lambda body: Answer(whole().replace(THOUGHT.encode(), json.loads(body)["user"].encode())))

    def ask(name: str) -> None:
        with client_of(line, httpx2, server.url) as client:
            for body in (request(user=name), NEXT[:-1] + f', "user": "{name}"}}'.encode()):
                client.post(PATH, content=body.replace(b"How is", name.encode()))

    threads = [threading.Thread(target=ask, args=(f"thought {number}.",)) for number in range(50)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    second = [json.loads(body) for body in server.bodies if b"tool_call_id" in body]
    assert len(second) == 50
    assert all(restored(json.dumps(body).encode()) == [body["user"]] for body in second)
    assert sum(thread.name == "thoughtline" for thread in threading.enumerate()) == 1


@pytest.mark.parametrize("is_stream", [False, True])
@pytest.mark.parametrize(
    ("kind", "name"),
    [
        *((Replayer, name) for name in ("prepare", "heal", "save")),
        *((Watch, "take"), (ReplayLine, "_server_of"), (ExchangeState, "answer")),
    ],
)
def test_a_fault_of_ours_is_nobody_elses(
    line: Line, kind: type, name: str, is_stream: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever fails in our code, the caller's request is sent, and it gets the server's answer."""

    def breaks(*args: object, **more: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(kind, name, breaks)
    refused = Answer(REFUSAL, status=400)
    server = Told(lambda body: refused if b"call_1" in body else streamed() if is_stream else Answer(whole()))
    with client_of(line, httpx2, server.url) as client:
        said = b"".join(events()) if is_stream else whole()
        assert client.post(PATH, content=request(stream=is_stream)).content == said
        assert client.post(PATH, content=NEXT).content == REFUSAL
