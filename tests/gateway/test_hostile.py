"""Callers and upstreams that mean harm, or are merely odd: each is answered, and nobody else pays for it."""

from __future__ import annotations

import gzip
import json
import socket

import pytest

from tests.gateway.test_bytes import CHAT, behind, say_hi
from tests.gateway.upstreams import Got, Out, upstream
from tests.gateway.world import Running, running
from tests.sim.faces import HTTP

HELLO = {"messages": [{"role": "user", "content": "Hello"}]}


def raw(gateway: Running, data: bytes) -> bytes:
    """What a connection answers to these bytes, to its end."""
    host, port = gateway.url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=30) as connection:
        connection.sendall(data)
        return b"".join(iter(lambda: connection.recv(65536), b""))


@pytest.mark.parametrize("model", ["a\r\nset-cookie: evil=1", "a\nb", "a\0b", "a\x7f\x1bb"])
def test_a_models_name_is_no_header(model: str) -> None:
    """Control characters in a model's name end no header, and the client gets its answer."""
    with upstream(say_hi) as up, running(behind(up)) as gateway:
        response = HTTP.post(gateway.url + CHAT, json={**HELLO, "model": model})
        assert response.status_code == 200
        assert "set-cookie" not in response.headers
        assert response.headers["x-thoughtline-target"].startswith("deepseek/a?")


def test_a_models_name_is_bounded() -> None:
    """It is kept in several places: a megabyte of it is refused before that."""
    with upstream(say_hi) as up, running(behind(up)) as gateway:
        response = HTTP.post(gateway.url + CHAT, json={**HELLO, "model": "m" * 2**20})
        assert (response.status_code, response.json()["error"]["code"]) == (400, "model_too_long")
        assert up.got == []
        assert len(gateway.lines[-1]["model"]) < 600


def test_headers_that_are_not_ascii() -> None:
    """UTF-8 goes up as it came; an answer is passed on whatever its headers hold."""

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
    """A hundred thousand gzip members with nothing in them are refused; others are served meanwhile."""
    bomb = gzip.compress(b"") * 100_000
    with upstream(say_hi) as up, running(behind(up)) as gateway:
        response = HTTP.post(gateway.url + CHAT, content=bomb, headers={"content-encoding": "gzip"})
        assert (response.status_code, response.json()["error"]["code"]) == (413, "limit_exceeded")
        packed = b"".join(map(gzip.compress, (b'{"model":"m",', json.dumps(HELLO).encode()[1:])))
        response = HTTP.post(gateway.url + CHAT, content=packed, headers={"content-encoding": "gzip"})
        assert json.loads(up.got[0].body) == {"model": "m", **HELLO}
