"""Addresses and limits: where a path leads, what passes unchanged, what is too large."""

from __future__ import annotations

import gzip
import json
import socket
from collections.abc import Iterator
from typing import Any

import pytest
from msgspec.structs import replace

from tests.gateway.gateways import Running, moved, running
from tests.gateway.test_bytes import CHAT, behind, say_hi
from tests.gateway.upstreams import Got, Out, upstream
from tests.sim.faces import HTTP
from thoughtline.settings import ServerSettings, Settings

PATHS = [
    ("GET", "/v1/files?limit=3&after=a%2Fb&x=%E4%BD%A0", b""),
    ("GET", "/v1/files/file-1/content", b""),
    ("DELETE", "/v1/files/a%20b%2Bc", b""),
    ("POST", "/v1/embeddings", b'{"input" :  "x"}'),
    ("POST", "/v1/audio/speech?", b"\x00\xff\x00"),
    ("PUT", "/v1/anything/at/all", b"body"),
    ("PATCH", "/v1/things/1", b"{}"),
    ("OPTIONS", "/v1/chat/completions", b""),
    ("POST", "/guardrail/arn%3Aaws%3Abedrock%3Aus-east-1%3A1%3Aguardrail%2Fx/version/1/apply", b"{}"),
    ("GET", "/v1/files/a%252Fb", b""),
]


@pytest.mark.parametrize(("method", "target", "body"), PATHS, ids=[f"{row[0]} {row[1]}" for row in PATHS])
def test_other_paths_pass_untouched(method: str, target: str, body: bytes) -> None:
    """Method, path with its escapes, query and body; and the answer, whatever it is."""
    answered = bytes(range(256)) * 4

    async def answer(got: Got, out: Out) -> None:
        await out.whole(202, answered, ("content-type", "application/octet-stream"), ("x-odd", "yes"))

    with upstream(answer) as up, running(behind(up)) as gateway:
        response = HTTP.request(method, f"{gateway.url}/deepseek{target}", content=body)
        got = up.got[0]
    assert (got.method, got.target, got.body) == (method, target.rstrip("?"), body)
    assert (response.status_code, response.content, response.headers["x-odd"]) == (202, answered, "yes")


def test_an_upload_passes_untouched() -> None:
    """Multipart as written; compressed bodies as compressed."""
    with upstream(say_hi) as up, running(behind(up)) as gateway:
        url = f"{gateway.url}/deepseek/v1/files"
        request = HTTP.build_request("POST", url, files={"file": ("a.bin", b"\x00" * 300_000)}, data={"purpose": "x"})
        sent = request.read()
        HTTP.send(request)
        HTTP.post(url, content=gzip.compress(b"abc", mtime=0), headers={"content-encoding": "gzip"})
        assert up.got[0].body == sent
        assert up.got[0].header("content-type") == request.headers["content-type"]
        assert up.got[1].body == gzip.compress(b"abc", mtime=0)
        assert up.got[1].header("content-encoding") == "gzip"


LEADS = [
    ("deepseek", "/chat/completions"),
    ("deepseek", "/v1/chat/completions"),
    ("deepseek", "/v1/v1/chat/completions"),
    ("anthropic", "/v1/messages"),
    ("anthropic", "/messages"),
    ("anthropic", "/v1/v1/messages"),
    ("openai", "/v1/responses"),
    ("openai", "/responses"),
    ("gemini", "/v1beta/models/gemini-3-pro:generateContent"),
    ("gemini", "/v1/models/gemini-3-pro:generateContent"),
    ("gemini", "/models/gemini-3-pro:generateContent"),
    ("ollama", "/api/chat"),
]
ARRIVES = {
    "deepseek": "/chat/completions?beta=true&a=b%20c",
    "anthropic": "/v1/messages?beta=true&a=b%20c",
    "openai": "/v1/responses?beta=true&a=b%20c",
    "gemini": "/v1beta/models/gemini-3-pro:generateContent?beta=true&a=b%20c",
    "ollama": "/api/chat?beta=true&a=b%20c",
}


@pytest.mark.parametrize(("name", "path"), LEADS, ids=[f"{name}{path}" for name, path in LEADS])
@pytest.mark.parametrize("has_prefix", [True, False], ids=["with-provider", "default"])
def test_paths_with_and_without_versions(name: str, path: str, has_prefix: bool) -> None:
    """Once, twice or not at all: the provider is asked at its one address, with the client's query."""
    with upstream(say_hi) as up, running(behind(up, name), Settings(default_provider=name)) as gateway:
        prefix = f"/{name}" if has_prefix else ""
        url = f"{gateway.url}{prefix}{path}?beta=true&a=b%20c"
        assert HTTP.post(url, json={"model": "m", "messages": [], "contents": [], "input": []}).status_code == 200
        assert up.got[0].target == ARRIVES[name]


MISSPELLED = [
    ("POST", "/kimmi/v1/chat/completions", "/kimi/v1/chat/completions"),
    ("POST", "/kimmi/v1/embeddings", "/kimi/v1/embeddings"),
    ("GET", "/opnai/v1/files/file-1", "/openai/v1/files/file-1"),
    ("POST", "/antropic/v1/messages", "/anthropic/v1/messages"),
    ("GET", "/kimmi/v1/models", "/kimi/v1/models"),
    ("POST", "/kimmi", "/kimi"),
    ("GET", "/kimmi/", "/kimi/"),
    ("POST", "/kimi.ai/v1/embeddings", "/kimi/v1/embeddings"),
    ("POST", "/kimi:443/v1/embeddings", None),
    ("POST", "/kimi%2fv1%2fchat/completions", None),
    ("POST", "/kimi%2Fv1/embeddings", None),
    ("POST", "/v1/kimi/chat/completions", None),
    ("POST", "/v1/kimi/v1/chat/completions", None),
    ("POST", "/api/KIMI/v1/messages", None),
    ("POST", "/proxy/kimi/v1/chat/completions", None),
    ("GET", "/v1/moonshot/models", None),
    ("POST", "/acme/v1/chat/completions", None),
    ("POST", "/acme/v1/messages", None),
    ("GET", "/acme/v1/models", None),
]


@pytest.mark.parametrize(("method", "path", "meant"), MISSPELLED, ids=[path for _, path, _ in MISSPELLED])
def test_a_misspelled_provider_is_not_the_default(method: str, path: str, meant: str | None) -> None:
    """The caller's key was meant for another provider: the default is not asked, and the answer suggests the right
    name."""
    with upstream(say_hi) as up, running(behind(up), Settings(default_provider="deepseek")) as gateway:
        body = b'{"model":"m","messages":[]}' if method == "POST" else b""
        headers = {"authorization": "Bearer sk-kimi"}
        response = HTTP.request(method, gateway.url + path, content=body, headers=headers)
        assert (response.status_code, response.json()["error"]["code"]) == (404, "unknown_path")
        assert meant is None or f"Did you mean {meant}?" in response.json()["error"]["message"]
        assert up.got == []


OWN = ("/v1/embeddings", "/files/file-1", "/base/v1/chat/completions", "/upload/v1/files", "/health", "/v1/files/kimi")


@pytest.mark.parametrize("path", OWN)
def test_other_paths_go_to_the_default(path: str) -> None:
    """Paths that begin with no provider's name, and paths that begin with the default's own base path."""
    with upstream(say_hi) as up:
        row = replace(moved("deepseek", up.url), base_url=f"{up.url}/base", bases={})
        with running({}, Settings(providers={"deepseek": row}, default_provider="deepseek")) as gateway:
            assert HTTP.post(gateway.url + path, content=b"{}").status_code == 200
        assert up.got[0].target == f"/base{path.removeprefix('/base').removeprefix('/v1')}"


ASKED_FOR = [
    ("deepseek", "kimi/kimi-k2.6", "kimi", "kimi-k2.6"),
    ("deepseek", "moonshot/kimi-k2.6", "kimi", "kimi-k2.6"),
    ("deepseek", "deepseek-v4-pro", "deepseek", "deepseek-v4-pro"),
    ("deepseek", "unheard-of/model", "deepseek", "unheard-of/model"),
    ("openrouter", "kimi/kimi-k2.6", "openrouter", "kimi/kimi-k2.6"),
    ("vllm", "deepseek/deepseek-r1", "vllm", "deepseek/deepseek-r1"),
]


@pytest.mark.parametrize(("default", "model", "provider", "arrives"), ASKED_FOR)
def test_a_models_name_with_a_default_provider(default: str, model: str, provider: str, arrives: str) -> None:
    """`provider/model` goes to that provider. A server of others' models uses such names itself, and gets them
    whole."""
    with upstream(say_hi) as up, upstream(say_hi) as kimi:
        rows = {**behind(up, default), **behind(kimi, "kimi")}
        with running(rows, Settings(default_provider=default)) as gateway:
            body = {"model": model, "messages": []}
            assert HTTP.post(f"{gateway.url}/v1/chat/completions", json=body).status_code == 200
        asked, other = (kimi, up) if provider == "kimi" else (up, kimi)
        assert json.loads(asked.got[0].body)["model"] == arrives
        assert other.got == []


def test_a_misspelled_provider_before_a_models_name() -> None:
    with upstream(say_hi) as up, running(behind(up), Settings(default_provider="deepseek")) as gateway:
        body = {"model": "kimmi/kimi-k2.6", "messages": []}
        error = HTTP.post(f"{gateway.url}/v1/chat/completions", json=body).json()["error"]
        assert error["code"] == "unknown_model"
        assert "Did you mean kimi/kimi-k2.6?" in error["message"]
        assert up.got == []


@pytest.mark.parametrize("path", ["/", "/api/hello"])
def test_probes(path: str) -> None:
    """Claude Code asks whether the server is up."""
    with running({}) as gateway:
        response = HTTP.head(gateway.url + path)
        assert (response.status_code, response.content) == (200, b"")


@pytest.mark.parametrize(
    ("path", "status"), [("/v1/responses", 101), ("/responses", 101), ("/v1/chat/completions", 426)]
)
def test_a_websocket(path: str, status: int) -> None:
    """Without WebSocket support, a client falls back to HTTP at once on 426."""
    headers = {"connection": "Upgrade", "upgrade": "websocket", "sec-websocket-key": "AAAAAAAAAAAAAAAAAAAAAA=="}
    headers |= {"sec-websocket-version": "13", "openai-beta": "responses_websockets=2026-02-06"}
    with running({}) as gateway:
        response = HTTP.get(gateway.url + path, headers=headers)
        assert (response.status_code, response.headers["upgrade"]) == (
            status,
            {101: "websocket", 426: "HTTP/1.1"}[status],
        )


LIMITED = Settings(server=ServerSettings(max_body_bytes=1000))


@pytest.mark.parametrize("path", [CHAT, "/deepseek/v1/files"])
@pytest.mark.parametrize("has_length", [True, False], ids=["declared", "chunked"])
def test_a_body_that_is_too_large(path: str, has_length: bool) -> None:
    """It is refused, with or without a declared length."""
    body: Any = b"x" * 1001 if has_length else iter([b"x" * 600, b"x" * 600])
    with upstream(say_hi) as up, running(behind(up), LIMITED) as gateway:
        response = HTTP.post(gateway.url + path, content=body)
        assert (response.status_code, response.json()["error"]["code"]) == (413, "body_too_large")
        assert up.got == []


def _raw(gateway: Running, pieces: Iterator[bytes]) -> bytes:
    """The connection's answer to these bytes, as far as it accepts them."""
    host, port = gateway.url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=30) as connection:
        try:
            for piece in pieces:
                connection.sendall(piece)
            return connection.recv(4096)
        except ConnectionError:
            return connection.recv(4096)


@pytest.mark.parametrize("size", [66_000, 200_000], ids=["just", "far"])
def test_a_head_that_is_too_large(size: int) -> None:
    """Headers beyond the limit are refused, in one piece or in many."""
    head = b"GET /healthz HTTP/1.1\r\nhost: localhost\r\nx-long: " + b"a" * size + b"\r\n\r\n"
    many = b"GET /healthz HTTP/1.1\r\nhost: localhost\r\n" + b"x-a: b\r\n" * (size // 8) + b"\r\n"
    with running({}) as gateway:
        for sent in (head, many):
            assert _raw(gateway, iter([sent])).startswith(b"HTTP/1.1 431 ")
            assert _raw(gateway, (sent[at : at + 1000] for at in range(0, len(sent), 1000))).startswith(
                b"HTTP/1.1 431 "
            )
        fine = b"GET /healthz HTTP/1.1\r\nhost: localhost\r\nx-long: " + b"a" * 60_000 + b"\r\n\r\n"
        assert _raw(gateway, iter([fine])).startswith(b"HTTP/1.1 200 ")


def test_a_long_call_id_goes_back_unchanged() -> None:
    """vLLM's have 46 characters: a Messages client shows them, and vLLM gets its own back, in call and result."""
    name = "chatcmpl-tool-" + "0123456789abcdef" * 2
    call = {"id": name, "type": "function", "function": {"name": "look", "arguments": "{}"}}
    message = {"role": "assistant", "content": None, "tool_calls": [call]}
    said = json.dumps({"id": "c", "choices": [{"index": 0, "message": message, "finish_reason": "tool_calls"}]})

    async def answer(got: Got, out: Out) -> None:
        await out.whole(200, said.encode())

    with upstream(answer) as up:
        row = replace(moved("vllm", up.url), formats=("openai_chat",))
        with running({}, Settings(providers={"vllm": row})) as gateway:
            body: Any = {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "x"}]}
            block = HTTP.post(f"{gateway.url}/vllm/v1/messages", json=body).json()["content"][0]
            body["messages"].append({"role": "assistant", "content": [block]})
            result = {"type": "tool_result", "tool_use_id": block["id"], "content": "y"}
            body["messages"].append({"role": "user", "content": [result]})
            HTTP.post(f"{gateway.url}/vllm/v1/messages", json=body)
        sent = json.loads(up.got[1].body)["messages"]
    assert block["id"] == name
    assert (sent[1]["tool_calls"][0]["id"], sent[2]["tool_call_id"]) == (name, name)
