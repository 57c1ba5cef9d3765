"""Hostile or merely unusual callers and upstreams: each is answered, and no other client is affected."""

from __future__ import annotations

import asyncio
import contextlib
import gzip
import json
import socket
import threading
from collections.abc import Iterator
from functools import partial
from typing import Any

import httpx
import pytest
from msgspec.structs import replace

from tests.gateway.gateways import Running, moved, running
from tests.gateway.managed_gateways import TOKEN, managed
from tests.gateway.test_bytes import ANSWER, CHAT, behind, say_hi
from tests.gateway.test_faults import event
from tests.gateway.upstreams import Got, Out, Upstream, upstream
from tests.sim.faces import HTTP
from thoughtline.destinations.catalogue import Provider
from thoughtline.gateway import attempt, pieces, translating
from thoughtline.gateway.admin.access import make_cookie
from thoughtline.gateway.client_keys import ClientKeys
from thoughtline.settings import RouteSettings, Settings

HELLO = {"messages": [{"role": "user", "content": "Hello"}]}


def raw(gateway: Running, data: bytes) -> bytes:
    """What a connection answers to these bytes, until it closes."""
    host, port = gateway.url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=30) as connection:
        connection.sendall(data)
        return b"".join(iter(lambda: connection.recv(65536), b""))


def posted(path: str, body: dict[str, Any]) -> bytes:
    """A hand-written request, on a connection that closes afterwards."""
    text = json.dumps(body).encode()
    return b"POST %b HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-length: %d\r\n\r\n%b" % (
        path.encode(),
        len(text),
        text,
    )


@pytest.mark.parametrize("model", ["a\r\nset-cookie: evil=1", "a\nb", "a\0b", "a\x7f\x1bb"])
def test_a_models_name_is_no_header(model: str) -> None:
    """Control characters in a model's name don't end a header, and the client gets its answer."""
    with upstream(say_hi) as up, running(behind(up)) as gateway:
        response = HTTP.post(gateway.url + CHAT, json={**HELLO, "model": model})
        assert response.status_code == 200
        assert "set-cookie" not in response.headers
        assert response.headers["x-thoughtline-target"].startswith("deepseek/a?")


def test_a_models_name_is_bounded() -> None:
    """It is stored in several places: a name of a megabyte is refused first."""
    with upstream(say_hi) as up, running(behind(up)) as gateway:
        response = HTTP.post(gateway.url + CHAT, json={**HELLO, "model": "m" * 2**20})
        assert (response.status_code, response.json()["error"]["code"]) == (400, "model_too_long")
        assert up.got == []
        assert len(gateway.lines[-1]["model"]) < 600


LONG = "/deepseek" + "/models/a" * 7_000


@pytest.mark.parametrize(
    ("method", "path", "status", "code"),
    [
        ("POST", LONG, 414, "path_too_long"),
        ("GET", "/api/" + "a" * 3_000, 414, "path_too_long"),
        ("TRACE", "/deepseek/v1/models", 405, "method_not_allowed"),
        ("TRACE", "/healthz", 405, "method_not_allowed"),
    ],
)
def test_what_is_not_even_looked_at(method: str, path: str, status: int, code: str) -> None:
    """A useless path, and methods that would bypass the gateway: nothing is sent."""
    with upstream(say_hi) as up, running(behind(up)) as gateway:
        response = HTTP.request(method, gateway.url + path)
        assert (response.status_code, response.json()["error"]["code"]) == (status, code)
        assert up.got == []


@pytest.mark.parametrize("target", ["example.com:443", "/deepseek/v1/models"])
def test_connect_is_refused(target: str) -> None:
    """The gateway opens no tunnel for callers."""
    with upstream(say_hi) as up, running(behind(up)) as gateway:
        answer = raw(gateway, f"CONNECT {target} HTTP/1.1\r\nhost: a\r\n\r\n".encode())
        assert answer.split()[1] in (b"400", b"405")
        assert up.got == []


def test_headers_that_are_not_ascii() -> None:
    """UTF-8 is forwarded unchanged; an answer is passed on with any headers."""

    async def answer(got: Got, out: Out) -> None:
        await out.write(b"HTTP/1.1 200 OK\r\nx-odd: caf\xe9\r\nx-plain: 1\r\nset-cookie: a=1\r\nset-cookie: b=2\r\n")
        await out.write(b"content-length: 2\r\n\r\n{}")

    with upstream(answer) as up, running(behind(up)) as gateway:
        title = "Café 你好".encode()
        response = HTTP.get(f"{gateway.url}/deepseek/v1/files", headers={b"x-title": title})
        assert up.got[0].header("x-title") == title.decode("latin-1")
        assert (response.status_code, response.content, response.headers["x-plain"]) == (200, b"{}", "1")
        assert response.headers.get_list("set-cookie") == ["a=1", "b=2"]


def test_an_offer_of_http2_is_left_alone() -> None:
    """Java's client offers h2c with its first request: it is served like any other."""
    headers = {"connection": "Upgrade, HTTP2-Settings", "upgrade": "h2c", "http2-settings": "AAMAAABk"}
    with upstream(say_hi) as up, running(behind(up)) as gateway:
        assert HTTP.get(f"{gateway.url}/deepseek/v1/models", headers=headers).status_code == 200
        assert up.got[0].header("upgrade") is None


def test_a_bomb_of_empty_members() -> None:
    """A hundred thousand empty gzip members are refused; others are served in the meantime."""
    bomb = gzip.compress(b"") * 100_000
    with upstream(say_hi) as up, running(behind(up)) as gateway:
        response = HTTP.post(gateway.url + CHAT, content=bomb, headers={"content-encoding": "gzip"})
        assert (response.status_code, response.json()["error"]["code"]) == (413, "limit_exceeded")
        packed = b"".join(map(gzip.compress, (b'{"model":"m",', json.dumps(HELLO).encode()[1:])))
        response = HTTP.post(gateway.url + CHAT, content=packed, headers={"content-encoding": "gzip"})
        assert json.loads(up.got[0].body) == {"model": "m", **HELLO}


TAGGED = Settings(tags="markers")


@pytest.mark.parametrize("headers", [(), (("content-encoding", "compress"),)], ids=["too large", "packed oddly"])
def test_tags_of_an_answer_that_cannot_be_read(headers: tuple[tuple[str, str], ...]) -> None:
    """An answer that is too large, or in an unknown encoding, keeps its tags and loses no byte."""
    size = 100 if headers else pieces.MAX_WHOLE_BYTES + 2**20
    body = ANSWER.replace(b"hi", b"<think>a</think>" + b"x" * size)

    async def answer(got: Got, out: Out) -> None:
        await out.whole(200, body, *headers)

    body_asked = {**HELLO, "model": "m"}
    with (
        upstream(answer) as up,
        running(behind(up), TAGGED) as gateway,
        HTTP.stream("POST", gateway.url + CHAT, json=body_asked) as response,
    ):
        assert b"".join(response.iter_raw()) == body


@pytest.mark.parametrize("is_streaming", [False, True], ids=["whole", "streamed"])
def test_a_translated_stream_that_never_ends(is_streaming: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Translated text is collected: beyond the limit the client gets an error, and the upstream is closed."""
    monkeypatch.setattr(translating, "MAX_WHOLE_BYTES", 2**20)
    piece = event("x" * 2**14)

    async def answer(got: Got, out: Out) -> None:
        await out.stream()
        while True:
            await out.chunk(piece)

    row = replace(moved("deepseek", ""), streams_only=True, formats=("openai_chat",))
    with upstream(answer) as up:
        settings = Settings(providers={"endless": replace(row, name="endless", base_url=up.url)})
        with running({}, settings) as gateway:
            body = {**HELLO, "model": "m", "max_tokens": 10, "stream": is_streaming}
            response = HTTP.post(f"{gateway.url}/endless/v1/messages", json=body)
            up.wait_until(lambda up: up.open == 0)
    assert response.status_code == (200 if is_streaming else 502)
    told = response.text.rpartition("data: ")[2] if is_streaming else response.text
    assert json.loads(told)["type"] == "error"


def test_a_fault_of_our_own(caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    """An unexpected error becomes an error in the client's format and a line in the journal; the log has no content."""

    content = "a secret of the conversation"

    def fail(*_: object, **__: object) -> None:
        raise KeyError(content)

    with upstream(say_hi) as up, running(behind(up)) as gateway:
        monkeypatch.setattr(attempt, "address", fail)
        response = HTTP.post(f"{gateway.url}/deepseek/v1/messages", json={**HELLO, "model": "m", "max_tokens": 10})
        assert (response.status_code, response.json()["error"]["code"]) == (500, "internal")
        assert (gateway.lines[-1]["status"], gateway.lines[-1]["code"]) == (500, "internal")
    assert "KeyError" in caplog.text
    assert "secret" not in caplog.text


def test_a_fault_in_the_middle_of_an_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    """An answer that has begun is cut off: no other answer follows it."""

    async def answer(got: Got, out: Out) -> None:
        await out.stream()
        await out.chunk(event("a"))
        await out.chunk(event("b"))
        await out.end()

    with upstream(answer) as up, running(behind(up), TAGGED) as gateway:
        monkeypatch.setattr(pieces.EditStream, "feed", lambda self, piece: piece if b'"a"' in piece.data else 1 // 0)
        seen = raw(gateway, posted(CHAT, {**HELLO, "model": "m", "stream": True}))
        assert seen.count(b"HTTP/1.1") == 1
        assert not seen.endswith(b"0\r\n\r\n")
        assert (gateway.lines[-1]["status"], gateway.lines[-1]["code"]) == (200, "internal")


def test_a_refresh_that_fails_is_not_the_last(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever fails while others' keys and lessons are loaded: they are loaded again."""
    with running({}) as gateway:
        app, asked = gateway.app, threading.Event()

        async def fail() -> None:
            monkeypatch.setattr(app, "refresh", again)
            raise ValueError("something in a note")

        async def again() -> None:
            asked.set()

        monkeypatch.setattr(app, "refresh", fail)
        gateway.loop.call_soon_threadsafe(gateway.state.admin.signals.wake.set)
        while app.refresh is not again and not asked.wait(0):
            gateway.wait_for(asyncio.sleep(0))
        gateway.loop.call_soon_threadsafe(gateway.state.admin.signals.wake.set)
        assert asked.wait(4)  # before the next one would come by itself


# --- who may see what


def responses(gateway: Running, text: str, previous: str | None = None, **headers: str) -> httpx.Response:
    """A request of Responses, which this upstream gets as a chat."""
    body = {"model": "m", "input": text, "previous_response_id": previous}
    return HTTP.post(f"{gateway.url}/chatty/v1/responses", json=body, headers=headers)


@contextlib.contextmanager
def chatty() -> Iterator[tuple[Upstream, Running]]:
    """A provider that speaks only chat, and gives every answer the same id."""
    with upstream(say_hi) as up:
        row = replace(moved("vllm", up.url), name="chatty", formats=("openai_chat",))
        with running({}, Settings(providers={"chatty": row})) as gateway:
            yield up, gateway


def test_answers_whose_provider_names_them_alike() -> None:
    """Ollama has only 999 ids for all its answers: each conversation still continues from its own."""
    with chatty() as (up, gateway):
        first, second = (responses(gateway, text).json()["id"] for text in ("one", "two"))
        for name in (first, second):
            assert responses(gateway, "and?", name).status_code == 200
        openings = [json.loads(got.body)["messages"][0]["content"] for got in up.got[2:]]
    assert first != second
    assert openings == ["one", "two"]


def test_a_placeholder_is_nobodys_name() -> None:
    """Two callers with the same `Authorization` and different keys are two: neither gets the other's."""
    shared = {"authorization": "Bearer placeholder"}
    with chatty() as (_, gateway):
        name = responses(gateway, "one", **shared, **{"x-api-key": "a"}).json()["id"]
        assert responses(gateway, "and?", name, **shared, **{"x-api-key": "b"}).status_code == 400
        assert responses(gateway, "and?", name, **shared, **{"x-api-key": "a"}).status_code == 200


def test_the_admins_cookie_stays_here() -> None:
    """A browser with the dashboard sends its cookie to every path: no provider sees it."""
    with upstream(say_hi) as up, managed(simulators=behind(up)) as world:
        cookie = make_cookie(world.gateway.state, "localhost")
        for sent in (f"thoughtline_admin={cookie}", f"a=1; thoughtline_admin={cookie}; b=2"):
            world.anyone.get("/deepseek/v1/models", headers={"cookie": sent})
    assert [got.header("cookie") for got in up.got] == [None, "a=1; b=2"]


@pytest.mark.parametrize("path", ["/deepseek/api/sesions", "/deepseek/v1/chat/completions", "/deepseek/v1/messages"])
def test_the_admin_token_stays_here(path: str) -> None:
    """At a provider's address it is refused, and not forwarded."""
    with upstream(say_hi) as up, managed(simulators=behind(up)) as world:
        response = world.admin.post(path, json={**HELLO, "model": "m"})
        assert (response.status_code, response.json()["error"]["code"]) == (403, "admin_token")
        assert up.got == []
        assert TOKEN not in response.text


@pytest.mark.parametrize("kind", ["text/html; charset=utf-8", "image/svg+xml", ""])
def test_a_page_of_a_providers_runs_nothing_here(kind: str) -> None:
    """It would run in the dashboard's origin, with the admin's cookie."""

    async def answer(got: Got, out: Out) -> None:
        await out.head(200, ("content-type", kind), ("content-length", "8"))
        await out.write(b"<script>")

    with upstream(answer) as up, running(behind(up)) as gateway:
        response = HTTP.get(f"{gateway.url}/deepseek/page")
        assert (response.text, response.headers["content-security-policy"]) == ("<script>", "sandbox")


async def _key(gateway: Running) -> str:
    keys = gateway.state.keys
    assert isinstance(keys, ClientKeys)
    return (await keys.add("somebody")).secret


@pytest.mark.parametrize("names", ["AB", "BA"])
def test_a_target_without_any_key(names: str) -> None:
    """A route skips it: the others are asked, and if they fail, the client gets their error."""
    statuses = iter((200, 418))

    async def answer(got: Got, out: Out) -> None:
        await out.whole(next(statuses), ANSWER)

    with upstream(answer) as up:
        rows = {name: Provider(name.lower(), up.url, ("openai_chat",)) for name in names}
        rows = {row.name: replace(row, api_keys=("ours",) if name == "B" else ()) for name, row in rows.items()}
        route = RouteSettings("team", tuple(f"{name.lower()}/m" for name in names))
        with running({}, Settings(providers=rows, routes={"team": route}), takes_keys=True) as gateway:
            headers = {"authorization": f"Bearer {gateway.wait_for(_key(gateway))}"}
            ask = partial(HTTP.post, f"{gateway.url}/v1/chat/completions", headers=headers)
            assert [ask(json={**HELLO, "model": "team"}).status_code for _ in range(2)] == [200, 418]
            refused = ask(json={**HELLO, "model": "a/m"})
            assert (refused.status_code, refused.json()["error"]["code"]) == (403, "no_provider_key")
    assert {got.header("authorization") for got in up.got} == {"Bearer ours"}
