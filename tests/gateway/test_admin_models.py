"""`GET /v1/models`: everything at the root, one provider's models under its name, in the client's own shape."""

from __future__ import annotations

import contextlib
import http.server
import json
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from msgspec.structs import replace

from tests.gateway.managed_gateways import managed
from thoughtline.destinations.catalogue import PROVIDERS, Provider
from thoughtline.gateway.model_lists import names_in
from thoughtline.settings import RouteSettings, Settings

LISTS: dict[str, Any] = {
    "/openai/v1/models": {"object": "list", "data": [{"id": "gpt-5.2"}, {"id": "o4"}, {"id": 7}, "junk"]},
    "/anthropic/v1/models": {"data": [{"type": "model", "id": "claude-opus-5"}], "has_more": False},
    "/gemini/v1beta/models": {"models": [{"name": "models/gemini-3-pro"}]},
    "/together/v1/models": [{"id": "meta/llama"}],
    "/broken/v1/models": "{",
}


class Lists(http.server.ThreadingHTTPServer):
    """Providers that list their models, and record their callers."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.asked: list[tuple[str, dict[str, str]]] = []

    def row(self, name: str, path: str, like: str) -> Provider:
        url = f"http://127.0.0.1:{self.server_port}{path}"
        return replace(PROVIDERS[like], name=name, base_url=url, bases={}, api_keys=(f"key-of-{name}",))


class _Handler(http.server.BaseHTTPRequestHandler):
    server: Lists

    def do_GET(self) -> None:
        path = self.path.partition("?")[0]
        self.server.asked.append((self.path, {name.lower(): value for name, value in self.headers.items()}))
        found = LISTS.get(path)
        body = found.encode() if isinstance(found, str) else json.dumps(found).encode()
        self.send_response(200 if found is not None else 404)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        pass


@contextlib.contextmanager
def listing() -> Iterator[Lists]:
    with Lists() as lists:
        threading.Thread(target=lists.serve_forever, daemon=True).start()
        try:
            yield lists
        finally:
            lists.shutdown()


def settings(lists: Lists) -> Settings:
    rows = (
        lists.row("openai", "/openai/v1", "openai"),
        lists.row("anthropic", "/anthropic", "anthropic"),
        lists.row("gemini", "/gemini", "gemini"),
        lists.row("together", "/together/v1", "together"),
        lists.row("broken", "/broken/v1", "groq"),
        lists.row("silent", "/silent/v1", "groq"),
        replace(lists.row("keyless", "/openai/v1", "groq"), api_keys=()),
    )
    return Settings(
        providers={row.name: row for row in rows},
        configured=frozenset(row.name for row in rows),
        routes={"best": RouteSettings("best", ("openai/gpt-5.2",))},
    )


NAMES = [
    "best",
    "anthropic/claude-opus-5",
    "gemini/gemini-3-pro",
    "openai/gpt-5.2",
    "openai/o4",
    "together/meta/llama",
]


def test_every_shape() -> None:
    """Routes first, then all listed models prefixed with their provider, in the client's own shape."""
    with listing() as lists, managed(settings(lists), simulators={}) as gateway:
        openai = gateway.anyone.get("/v1/models")
        anthropic = gateway.anyone.get("/v1/models", headers={"anthropic-version": "2023-06-01"}).json()
        gemini = gateway.anyone.get("/v1beta/models").json()
    assert [one["id"] for one in openai.json()["data"]] == NAMES
    assert {one["object"] for one in openai.json()["data"]} == {"model"}
    assert [one["id"] for one in anthropic["data"]] == NAMES
    assert (anthropic["first_id"], anthropic["last_id"], anthropic["has_more"]) == (NAMES[0], NAMES[-1], False)
    assert [one["name"] for one in gemini["models"]] == [f"models/{name}" for name in NAMES]
    assert openai.headers["x-thoughtline-unlisted"] == "broken, silent"


def test_each_provider_is_asked_with_its_own_key_and_once() -> None:
    """The key goes only to its provider, in the header that it reads; for a minute no provider is asked again."""
    with listing() as lists, managed(settings(lists), simulators={}) as gateway:
        for _ in range(2):
            gateway.anyone.get("/v1/models", headers={"authorization": "Bearer the-caller"})
        asked = dict(lists.asked)
        answered = [path for path, _ in lists.asked if not path.startswith(("/broken", "/silent"))]
        clock = gateway.gateway.state.caches.models
        clock._clock = lambda: 1e12
        gateway.anyone.get("/v1/models")
        again = [path for path, _ in lists.asked if not path.startswith(("/broken", "/silent"))]
    assert len(answered) == len(set(answered)) == 4
    assert len(again) == 8
    assert asked["/openai/v1/models"]["authorization"] == "Bearer key-of-openai"
    assert asked["/anthropic/v1/models?limit=1000"]["x-api-key"] == "key-of-anthropic"
    assert asked["/anthropic/v1/models?limit=1000"]["anthropic-version"]
    assert asked["/gemini/v1beta/models?pageSize=1000"]["x-goog-api-key"] == "key-of-gemini"
    assert "the-caller" not in str(lists.asked)


def test_without_keys_there_are_routes_alone() -> None:
    """No provider is asked."""
    with managed(Settings(routes={"best": RouteSettings("best", ("deepseek/x",))})) as gateway:
        assert [one["id"] for one in gateway.anyone.get("/v1/models").json()["data"]] == ["best"]


def test_a_default_providers_own_answer() -> None:
    """With a default provider its list is passed on unchanged."""
    with listing() as lists:
        row = lists.row("openai", "/openai/v1", "openai")
        chosen = Settings(providers={"openai": row}, default_provider="openai")
        with managed(chosen, simulators={}) as gateway:
            assert gateway.anyone.get("/v1/models").json() == LISTS["/openai/v1/models"]


def test_a_default_provider_with_routes_and_others() -> None:
    """Its models have their own names, those of others have their provider's prefix."""
    with listing() as lists:
        rows = {name: lists.row(name, path, name) for name, path in (("openai", "/openai/v1"), ("gemini", "/gemini"))}
        routes = {"best": RouteSettings("best", ("openai/o4",))}
        with managed(Settings(providers=rows, default_provider="openai", routes=routes), simulators={}) as gateway:
            told = gateway.anyone.get("/v1/models").json()["data"]
    assert [one["id"] for one in told] == ["best", "gemini/gemini-3-pro", "gpt-5.2", "o4"]


def test_servers_that_need_no_key() -> None:
    """A configured one is asked without a key."""
    with listing() as lists:
        row = replace(lists.row("ollama", "/openai/v1", "ollama"), api_keys=())
        with managed(Settings(providers={"ollama": row}, configured=frozenset({"ollama"})), simulators={}) as gateway:
            told = gateway.anyone.get("/v1/models", headers={"authorization": "Bearer mine"}).json()["data"]
        assert "authorization" not in lists.asked[0][1]
    assert [one["id"] for one in told] == ["ollama/gpt-5.2", "ollama/o4"]


def test_where_nothing_is_set_up() -> None:
    """A caller with its own key gets example names, and its key is not sent anywhere."""
    with managed(Settings(), simulators={}) as gateway:
        told = gateway.anyone.get("/v1/models", headers={"authorization": "Bearer mine"}).json()["data"]
    assert "deepseek/deepseek-v4-pro" in [one["id"] for one in told]


MINE = {
    "openai": {"authorization": "Bearer mine"},
    "anthropic": {"x-api-key": "mine", "anthropic-version": "2023-06-01"},
    "gemini": {"x-goog-api-key": "mine"},
}
READ = {
    "openai": ("authorization", "Bearer mine"),
    "anthropic": ("x-api-key", "mine"),
    "gemini": ("x-goog-api-key", "mine"),
    "together": ("authorization", "Bearer mine"),
}
OWN = {
    "openai": ["gpt-5.2", "o4"],
    "anthropic": ["claude-opus-5"],
    "gemini": ["gemini-3-pro"],
    "together": ["meta/llama"],
}


@pytest.mark.parametrize("key", ["of the caller", "of the gateway"])
@pytest.mark.parametrize("client", MINE)
@pytest.mark.parametrize("name", OWN)
def test_a_providers_models_for_every_client(name: str, client: str, key: str) -> None:
    """The provider gets the key where it expects one; the client gets a list that it can read."""
    path = {"openai": "/openai/v1", "together": "/together/v1"}.get(name, f"/{name}")
    with listing() as lists:
        row = lists.row(name, path, name)
        row = row if key == "of the gateway" else replace(row, api_keys=())
        with managed(Settings(providers={name: row}), simulators={}) as gateway:
            version = "v1beta" if client == "gemini" else "v1"
            got = gateway.anyone.get(f"/{name}/{version}/models", headers=MINE[client])
        header, value = READ[name]
        [(_, asked)] = lists.asked
    assert asked[header] == (value if key == "of the caller" else value.replace("mine", f"key-of-{name}"))
    assert ("mine" in str(asked)) is (key == "of the caller")
    if client in (name, "openai" if name == "together" else name):
        assert got.json() == next(told for listed, told in LISTS.items() if listed.startswith(path))
        return
    told = got.json()["models" if client == "gemini" else "data"]
    named = [one for one in told if isinstance(one, dict)]
    names = [one.get("id") or one["name"].removeprefix("models/") for one in named]
    assert [one for one in names if isinstance(one, str)] == OWN[name]


def test_a_providers_error_in_the_clients_words() -> None:
    """The provider's status, in an envelope that the client's SDK reads."""
    with listing() as lists:
        row = replace(lists.row("openai", "/silent/v1", "openai"), api_keys=())
        with managed(Settings(providers={"openai": row}), simulators={}) as gateway:
            got = gateway.anyone.get("/openai/v1/models", headers=MINE["anthropic"])
    assert (got.status_code, got.json()["type"]) == (404, "error")


def test_an_admin_token_is_no_providers_key() -> None:
    """Neither passed on nor moved to another header."""
    with listing() as lists:
        row = replace(lists.row("anthropic", "/anthropic", "anthropic"), api_keys=())
        with managed(Settings(providers={"anthropic": row}), simulators={}) as gateway:
            assert gateway.admin.get("/anthropic/v1/models").status_code == 403
        assert lists.asked == []


@pytest.mark.parametrize("body", [b"", b"[", b"5", b'{"data": 5}', b"{}", b"\xff", b"[" * 10_000])
def test_what_is_no_list(body: bytes) -> None:
    """It contains no names, and breaks nothing."""
    assert names_in(body) is None
