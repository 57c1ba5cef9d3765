"""Failing stores and misbehaving upstreams: the client gets what a direct connection returns, and memory is limited."""

from __future__ import annotations

import asyncio
import json
import socket
import time
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

import httpx
import pytest
from msgspec.structs import replace

from tests.gateway.forgetful_clients import Forgetful
from tests.gateway.gateways import Running, moved, running
from tests.gateway.upstreams import EVENTS, JSON, Answer, Got, Out, upstream
from tests.sim.faces import CASES, HTTP
from tests.sim.served_simulators import served
from tests.stores.places import until_settled
from thoughtline.destinations.catalogue import Timeouts
from thoughtline.gateway import proxy, relay
from thoughtline.settings import ReplaySettings, Settings
from thoughtline.stores import Found, LayeredStore, MemoryStore, Saved, StoreSettings
from thoughtline.values.errors import StoreError, StoreUnavailable
from thoughtline.values.records import Key, Record

DEEPSEEK = next(case for case in CASES if case.id.startswith("deepseek-openai_chat"))
CHAT = "/deepseek/v1/chat/completions"
THREE_TURNS = """How is the weather? {mark}
script:
think: First.
call: weather {{"city": "Paris"}}
---
think: Second.
call: weather {{"city": "Rome"}}
---
think: Third.
say: Both are sunny.
"""


class Ailing(MemoryStore):
    """A durable store that is down, hangs or is full, while the test says so."""

    def __init__(self) -> None:
        super().__init__(StoreSettings(), time.time)
        self.ail: str = ""

    async def save(self, records: Sequence[Record]) -> Saved:
        await self._suffer()
        if self.ail == "full":
            raise StoreError("the disk is full")
        while self.ail == "slow":
            await asyncio.sleep(0.01)
        return await super().save(records)

    async def find(self, tenant: str, keys: Sequence[Key]) -> Found:
        await self._suffer()
        return await super().find(tenant, keys)

    async def _suffer(self) -> None:
        if self.ail == "down":
            raise StoreUnavailable("nobody answers")
        while self.ail == "hangs":
            await asyncio.sleep(0.01)


@pytest.mark.parametrize("ail", ["down", "hangs", "full"])
def test_a_durable_store_that_fails(ail: str) -> None:
    """Requests continue from memory; header and journal show it; after recovery they no longer do."""
    inner = Ailing()
    store = LayeredStore(inner, StoreSettings(timeout_seconds=0.1), time.time)
    with running({"deepseek": served("deepseek").url}, store=store) as gateway:
        dialogue = Forgetful(f"{gateway.url}/deepseek", DEEPSEEK, THREE_TURNS.format(mark=ail))
        inner.ail = ail
        for turn in range(3):
            with gateway.listening() as next_line:
                response = dialogue.post(is_streaming=turn == 1)
                assert response.status_code == 200
                dialogue.go_on(dialogue.hear(response.content, is_streaming=turn == 1))
                assert next_line().store == "degraded"
            assert response.headers["x-thoughtline-replay"].startswith(f"restored={turn},")
        assert response.headers["x-thoughtline-replay"].endswith("store=degraded")
        ready = HTTP.get(f"{gateway.url}/readyz").json()
        assert (ready["status"], ready["store"]) == ("ready", "degraded")
        assert "Not yet written: 3 turns" in ready["detail"]
        inner.ail = ""
        gateway.wait_for(until_settled(store))
        assert "degraded" not in dialogue.post().headers["x-thoughtline-replay"]


@pytest.mark.parametrize("ail", ["down", "full"])
def test_a_store_with_nothing_in_front(ail: str) -> None:
    """Even without memory, the client's request and its answer are passed on."""
    store = Ailing()
    settings = Settings(replay=ReplaySettings(hold_ms=50))
    with running({"glm": served("glm").url}, settings, store=store) as gateway:
        case = next(case for case in CASES if case.simulator == "glm")
        for is_streaming in (False, True):
            store.ail = ail
            dialogue = Forgetful(f"{gateway.url}/glm", case, THREE_TURNS.format(mark=f"{ail} {is_streaming}"))
            dialogue.go_on(dialogue.ask(is_streaming=is_streaming))
            assert dialogue.post(is_streaming=is_streaming).status_code == 200


def test_the_hold_is_bounded() -> None:
    """A save that never ends costs the client `hold_ms`, and the record its durability; not the answer."""
    store = Ailing()
    settings = Settings(replay=ReplaySettings(hold_ms=50))
    with running({"deepseek": served("deepseek").url}, settings, store=store) as gateway:
        dialogue = Forgetful(f"{gateway.url}/deepseek", DEEPSEEK, THREE_TURNS.format(mark="held"))
        store.ail = "hangs"
        for is_streaming in (False, True):
            request = dialogue.request(is_streaming=is_streaming)
            response = HTTP.send(request, stream=True)
            heard = b"".join(response.iter_raw())
            assert b"finish_reason" in heard
        store.ail = ""


@pytest.mark.parametrize("is_streaming", [False, True], ids=["whole", "stream"])
def test_a_store_that_is_slow(is_streaming: bool) -> None:
    """Turns that are still being saved are restored here, and each hold that ran out is reported: in the header if it
    is not sent yet, in the log, in the metrics, by the readiness check."""
    inner = Ailing()
    store = LayeredStore(inner, StoreSettings(timeout_seconds=60), time.time)
    settings = Settings(replay=ReplaySettings(hold_ms=20))
    with running({"deepseek": served("deepseek").url}, settings, store=store) as gateway, gateway.listening() as line:
        inner.ail = "slow"
        dialogue = Forgetful(f"{gateway.url}/deepseek", DEEPSEEK, THREE_TURNS.format(mark=f"slow {is_streaming}"))
        for turn in range(3):
            response = dialogue.post(is_streaming=is_streaming)
            dialogue.go_on(dialogue.hear(response.content, is_streaming=is_streaming))
            told = response.headers["x-thoughtline-replay"]
            assert told.startswith(f"restored={turn},")
            assert told.endswith("store=slow") is not is_streaming
        ready = HTTP.get(f"{gateway.url}/readyz").json()
        assert (ready["store"], "3 are still under way" in ready["detail"]) == ("slow", True)
        inner.ail = ""
        lines = [line() for _ in range(3)]
        assert [(one.store, one.late) for one in lines] == [("slow", 1)] * 3
        assert "thoughtline_store_late_total 3.0" in HTTP.get(f"{gateway.url}/metrics").text
        assert HTTP.get(f"{gateway.url}/readyz").json()["store"] == "slow"
        assert "store=" not in dialogue.post().headers["x-thoughtline-replay"]


def test_a_store_that_fails_for_the_first_time() -> None:
    """The answer whose turn was not saved shows it, if its headers wait for that."""
    inner = Ailing()
    store = LayeredStore(inner, StoreSettings(), time.time)
    with running({"deepseek": served("deepseek").url}, store=store) as gateway:
        dialogue = Forgetful(f"{gateway.url}/deepseek", DEEPSEEK, THREE_TURNS.format(mark="first failure"))
        inner.ail = "full"
        assert dialogue.post().headers["x-thoughtline-replay"].endswith("store=degraded")


def test_an_answer_that_may_be_named_is_held_no_longer() -> None:
    """Data for `previous_response_id` also costs the client at most `hold_ms`, and can be referred to at once."""
    inner = Ailing()
    store = LayeredStore(inner, StoreSettings(timeout_seconds=60), time.time)
    settings = Settings(replay=ReplaySettings(hold_ms=20))
    with running({"deepseek": served("deepseek").url}, settings, store=store) as gateway, gateway.listening() as line:
        inner.ail = "slow"
        url, body = f"{gateway.url}/deepseek/v1/responses", {"model": "deepseek-v4-pro", "input": "hello"}
        first = HTTP.post(url, json=body)
        assert first.headers["x-thoughtline-replay"].endswith("store=slow")
        second = HTTP.post(url, json=body | {"previous_response_id": first.json()["id"]})
        assert second.status_code == 200
        inner.ail = ""
        assert min(line().late, line().late) >= 1


@pytest.mark.parametrize("is_streaming", [False, True], ids=["whole", "stream"])
def test_a_turn_is_restored_without_waiting_for_its_save(tmp_path: Path, is_streaming: bool) -> None:
    """With `hold_ms = 0` on a healthy SQLite, one conversation after the other: none loses a turn."""
    settings = Settings(replay=ReplaySettings(hold_ms=0))
    url = f"sqlite:///{tmp_path / 'thoughts.db'}"
    with running({"deepseek": served("deepseek").url}, settings, store_url=url) as gateway:
        for number in range(40):
            mark = f"not held {is_streaming} {number}"
            dialogue = Forgetful(f"{gateway.url}/deepseek", DEEPSEEK, THREE_TURNS.format(mark=mark))
            for turn in range(3):
                response = dialogue.post(is_streaming=is_streaming)
                told = response.headers["x-thoughtline-replay"]
                assert (told.startswith(f"restored={turn},"), "store=" in told) == (True, False)
                dialogue.go_on(dialogue.hear(response.content, is_streaming=is_streaming))


# --- upstreams


class Outcome(NamedTuple):
    """What a client sees of a response."""

    status: int
    body: bytes
    has_ended: bool


def seen(url: str, *, is_streaming: bool) -> Outcome:
    body = {"model": "m", "messages": [{"role": "user", "content": "hi"}], "stream": is_streaming}
    heard = b""
    with HTTP.stream("POST", url, json=body, headers={"authorization": "Bearer k"}) as response:
        try:
            for piece in response.iter_raw():
                heard += piece
        except httpx.RemoteProtocolError:
            return Outcome(response.status_code, heard, has_ended=False)
        return Outcome(response.status_code, heard, has_ended=True)


def event(content: str, finish: str | None = None) -> bytes:
    choice = {"index": 0, "delta": {"content": content}, "finish_reason": finish}
    return b"data: " + json.dumps({"id": "1", "choices": [choice]}).encode() + b"\n\n"


STREAM = event("a") + event("b") + event("", "stop") + b"data: [DONE]\n\n"
WHOLE = b'{"id":"1","choices":[{"index":0,"message":{"role":"assistant","content":"hi"},"finish_reason":"stop"}]}'


def sending(*pieces: bytes, kind: tuple[str, str] = EVENTS, is_cut: bool = False) -> Answer:
    async def answer(got: Got, out: Out) -> None:
        await out.stream(kind)
        for piece in pieces:
            await out.chunk(piece)
        if is_cut:
            out.cut()
        else:
            await out.end()

    return answer


def raw(*pieces: bytes) -> Answer:
    """A hand-written response, followed by a close."""

    async def answer(got: Got, out: Out) -> None:
        for piece in pieces:
            await out.write(piece)
        out.cut()

    return answer


HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n"
MISBEHAVIOURS: dict[str, Answer] = {
    "cut in an event": sending(event("a"), event("b")[:20], is_cut=True),
    "cut before the first event": sending(is_cut=True),
    "cut after the end": sending(STREAM, is_cut=True),
    "cut in a whole": sending(WHOLE[:40], kind=JSON, is_cut=True),
    "garbage in a stream": sending(b"data: {{{\n\n", b"\xff\xfe\x00", b"data: [1,2\n\n", STREAM),
    "garbage instead of a whole": sending(b"\x00\xff<html>", kind=JSON),
    "another shape": sending(b'{"choices": 7, "id": []}', kind=JSON),
    "events of another shape": sending(b'data: {"choices":[{"delta":7}]}\n\n', b'data: "x"\n\n', b"data: 1\n\n"),
    "ten megabytes in an event": sending(*([b"data: "] + [b"x" * 2**20] * 10 + [b"\n\n"]), STREAM),
    "ten megabytes in a line that never ends": sending(*[b"y" * 2**20] * 10),
    "one byte at a time": sending(*(bytes([byte]) for byte in STREAM)),
    "nothing": sending(),
    "an empty whole": sending(kind=JSON),
    "comments and blanks": sending(b": keep\n\n", b"\n\n\n", STREAM, b"\n"),
    "a stream called json": sending(STREAM, kind=JSON),
    "a whole called a stream": sending(WHOLE),
    "no content type": raw(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}"),
    "until the connection closes": raw(HEAD + b"\r\n", WHOLE),
    "content-length too large": raw(HEAD + b"content-length: 500\r\n\r\n", WHOLE),
    "content-length too small": raw(HEAD + b"content-length: 10\r\n\r\n", WHOLE),
    "204": raw(b"HTTP/1.1 204 No Content\r\n\r\n"),
    "304": raw(b"HTTP/1.1 304 Not Modified\r\netag: x\r\n\r\n"),
    "103 before 200": raw(b"HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\n", HEAD + b"content-length: 2\r\n\r\n{}"),
    "100 before 200": raw(b"HTTP/1.1 100 Continue\r\n\r\n", HEAD + b"content-length: 2\r\n\r\n{}"),
    "redirect": raw(b"HTTP/1.1 302 Found\r\nlocation: http://127.0.0.1:1/\r\ncontent-length: 0\r\n\r\n"),
    "trailers": raw(HEAD + b"transfer-encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\nx-trailer: 1\r\n\r\n"),
    "broken chunks": raw(HEAD + b"transfer-encoding: chunked\r\n\r\n2\r\n{}\r\nzz\r\n"),
    "an error in a stream": sending(event("a"), b'data: {"error":{"message":"overloaded","code":529}}\n\n'),
    "a 500 cut short": raw(b"HTTP/1.1 500 No\r\ncontent-length: 50\r\n\r\nhalf"),
    "a 400 without end": raw(b"HTTP/1.1 400 No\r\n\r\n", b"x" * (5 * 2**20)),
}


@pytest.mark.parametrize("is_streaming", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("name", MISBEHAVIOURS)
def test_what_a_direct_connection_gives(name: str, is_streaming: bool) -> None:
    """Status, bytes and the kind of ending are the upstream's own."""
    with upstream(MISBEHAVIOURS[name]) as up, running({"deepseek": up.url}) as gateway:
        direct = seen(f"{up.url}/chat/completions", is_streaming=is_streaming)
        through = seen(gateway.url + CHAT, is_streaming=is_streaming)
        assert through.status == direct.status
        assert through.body == direct.body
        assert through.has_ended == direct.has_ended
        assert _tasks(gateway) <= RESTING_TASKS


RESTING_TASKS = 6
"""The test's, the server's, the lifespan's, the refresher's, the store's, and the counting one."""


def _tasks(gateway: Running) -> int:
    async def count() -> int:
        for _ in range(1000):
            if len(asyncio.all_tasks()) <= RESTING_TASKS:
                break
            await asyncio.sleep(0.005)
        return len(asyncio.all_tasks())

    return gateway.wait_for(count())


def test_an_upstream_that_says_nothing_at_all() -> None:
    """A connection closed before the first byte is a 502 in the client's own format, without an address."""
    with upstream(raw()) as up, running({"deepseek": up.url}) as gateway:
        response = HTTP.post(gateway.url + CHAT, json={"model": "m", "messages": []})
        assert (response.status_code, response.json()["error"]["code"]) == (502, "upstream_failed")
        assert up.url.removeprefix("http://") not in response.text


def test_an_upstream_that_is_not_there() -> None:
    """A refused connection is a 502 with a remedy."""
    with running({"deepseek": "http://127.0.0.1:1"}) as gateway:
        response = HTTP.post(gateway.url + CHAT, json={"model": "m", "messages": []})
        assert (response.status_code, response.json()["error"]["code"]) == (502, "upstream_unreachable")


def test_an_upstream_that_takes_no_connection() -> None:
    """A full queue lets a connection hang: after `connect` seconds it is a 502, as if there were no server."""
    with socket.create_server(("127.0.0.1", 0), backlog=0) as listening, ExitStack() as waiting:
        address = listening.getsockname()
        for _ in range(4):
            client = waiting.enter_context(socket.socket())
            client.setblocking(False)
            client.connect_ex(address)
        url = f"http://127.0.0.1:{address[1]}"
        with running({}, hurried(url, connect=0.2)) as gateway:
            response = HTTP.post(gateway.url + CHAT, json={"model": "m", "messages": []})
            assert (response.status_code, response.json()["error"]["code"]) == (502, "upstream_unreachable")


def hurried(url: str, **timeouts: float) -> Settings:
    row = replace(moved("deepseek", url), timeouts=replace(Timeouts(), **timeouts))
    return Settings(providers={"deepseek": row})


@pytest.mark.parametrize("timeouts", [{"first_byte": 0.2, "read": 0.2}, {"total": 0.2}], ids=str)
def test_an_upstream_that_never_begins(timeouts: dict[str, float]) -> None:
    """After `first_byte` seconds it is a 504, and after `total` too, in either order of our timer and the HTTP
    client's."""

    async def answer(got: Got, out: Out) -> None:
        await out.gone()

    with upstream(answer) as up, running({}, hurried(up.url, **timeouts)) as gateway:
        response = HTTP.post(gateway.url + CHAT, json={"model": "m", "messages": []})
        assert (response.status_code, response.json()["error"]["code"]) == (504, "upstream_timeout")
        up.wait_until(lambda up: up.open == 0)


@pytest.mark.parametrize("is_streaming", [False, True], ids=["whole", "streamed"])
def test_an_upstream_that_stalls(is_streaming: bool) -> None:
    """After `read` seconds without a byte the client's connection ends like the upstream's."""

    async def answer(got: Got, out: Out) -> None:
        await out.stream(EVENTS if is_streaming else JSON)
        await out.chunk(event("a"))
        await out.gone()

    with upstream(answer) as up, running({}, hurried(up.url, read=0.2, first_byte=0.2)) as gateway:
        outcome = seen(gateway.url + CHAT, is_streaming=is_streaming)
        assert outcome == Outcome(200, event("a"), has_ended=False)
        up.wait_until(lambda up: up.open == 0)


def test_connections_that_close_between_requests() -> None:
    """An upstream that promises keep-alive and closes anyway: no request is lost."""

    async def answer(got: Got, out: Out) -> None:
        await out.whole(200, WHOLE)
        out.cut()

    with upstream(answer) as up, running({"deepseek": up.url}) as gateway:
        for _ in range(300):
            assert seen(gateway.url + CHAT, is_streaming=False) == Outcome(200, WHOLE, has_ended=True)
        up.wait_until(lambda up: up.open == 0)


def test_connections_are_used_again() -> None:
    """One connection carries one request after the other."""
    with upstream(sending(STREAM)) as up, running({"deepseek": up.url}) as gateway:
        for _ in range(20):
            assert seen(gateway.url + CHAT, is_streaming=True).has_ended
        assert up.accepted == 1


async def without_end(got: Got, out: Out) -> None:
    await out.stream(EVENTS)
    while True:
        await out.chunk(event("x" * 8000))


async def trickling(got: Got, out: Out) -> None:
    await out.stream(EVENTS)
    while True:
        await out.chunk(event("x"))
        await out.until_later()


async def silent(got: Got, out: Out) -> None:
    await out.gone()


LEAVING: list[tuple[str, str, Answer]] = [
    ("a stream without end", CHAT, without_end),
    ("a stream that trickles", CHAT, trickling),
    ("before the first byte", CHAT, silent),
    ("a path that is passed through", "/deepseek/v1/files", trickling),
    ("a path that is passed through, before the first byte", "/deepseek/v1/files", silent),
]


@pytest.mark.parametrize(("path", "answer"), [row[1:] for row in LEAVING], ids=[row[0] for row in LEAVING])
def test_a_client_that_leaves(path: str, answer: Answer, monkeypatch: pytest.MonkeyPatch) -> None:
    """The upstream is read on for a while, for the record; then its connection is closed and nothing is left."""
    monkeypatch.setattr(proxy, "DRAIN_SECONDS", 0.3)
    monkeypatch.setattr(relay, "DRAIN_BYTES", 2**20)
    with (
        upstream(answer) as up,
        running({}, hurried(up.url, first_byte=1.0, read=1.0)) as gateway,
        gateway.listening() as next_line,
    ):
        host, port = gateway.url.removeprefix("http://").split(":")
        body = b'{"model":"m","messages":[],"stream":true}'
        with socket.create_connection((host, int(port))) as connection:
            connection.sendall(
                b"POST %b HTTP/1.1\r\nhost: localhost\r\ncontent-length: %d\r\n\r\n%b"
                % (path.encode(), len(body), body)
            )
            if answer is not silent:
                connection.recv(4096)
            up.wait_until(lambda up: len(up.got) == 1)
        up.wait_until(lambda up: up.open == 0)
        line = next_line()
        assert "client" in line.note + line.code
        assert _tasks(gateway) <= RESTING_TASKS


def test_a_store_that_failed_when_it_was_asked() -> None:
    """The answer says so, even if the store works again when its headers are sent."""
    inner = Ailing()
    store = LayeredStore(inner, StoreSettings(timeout_seconds=0.1), time.time)
    reply = b'{"id":"c","choices":[{"index":0,"message":{"role":"assistant","content":"hi"}}]}'
    said = [{"role": role, "content": "a"} for role in ("user", "assistant", "user")]

    async def answer(got: Got, out: Out) -> None:
        inner.ail = ""
        await out.until(lambda: store.is_settled)
        await out.whole(200, reply)

    with upstream(answer) as up, running({"deepseek": up.url}, store=store) as gateway:
        inner.ail = "down"
        heads = [
            HTTP.post(f"{gateway.url}/deepseek/chat/completions", json={"model": "m", "messages": said}).headers
            for _ in range(2)
        ]
        assert ["store=degraded" in head["x-thoughtline-replay"] for head in heads] == [True, False]
