"""Real conversations, their answers played back: the recorded requests through the gateway, kept and stripped.

`THOUGHTLINE_RECORDINGS` names the folder; without it, the one beside the checkout is used.
"""

from __future__ import annotations

import base64
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tools.bodies.book import Book
from tools.bodies.clients import WIRES, Chat, Json
from tools.bodies.servers import SEALED_ALIKE, Application, Upstream, address_of, canned, gateway

FOLDER = Path(os.environ.get("THOUGHTLINE_RECORDINGS") or Path(__file__).parents[3] / "shared" / "recordings")
FORMATS = {
    "anthropic": "anthropic_messages",
    "bedrock": "bedrock_converse",
    "gemini": "gemini_generate",
    "ollama": "ollama_chat",
    "openai-responses": "openai_responses",
} | dict.fromkeys(("cohere", "groq", "mistral", "openai-chat", "openrouter", "xai"), "openai_chat")
"""By family; the others are formats that the gateway does not speak."""

BUILT_IN = {"alibaba": "qwen", "google": "gemini", "zai": "glm"} | {
    name: name
    for name in (
        *("anthropic", "azure", "bedrock", "cerebras", "cohere", "copilot", "deepseek", "groq", "lmstudio", "mistral"),
        *("ollama", "openai", "openrouter", "xai"),
    )
}
"""Recorded providers that the gateway knows, under its own names. The others are servers of one format."""


def recorded(book: Book) -> None:
    index = FOLDER / "index.json"
    if not index.exists():
        raise SystemExit(f"no recordings at {FOLDER}; set THOUGHTLINE_RECORDINGS to the folder with index.json")
    upstream = Upstream()
    conversations = {entry["id"]: list(_exchanges(entry["id"])) for entry in json.loads(index.read_text())}
    exchanges = [exchange for some in conversations.values() for exchange in some]
    with (
        gateway(SEALED_ALIKE + "[replay]\nlearn = false\n" + _providers(exchanges), proxy=upstream.url) as url,
        book.connected(),
    ):
        for name, some in conversations.items():
            if not book.wants(f"recorded {name}"):
                continue
            for habit in ("kept", "stripped"):
                _replay(book, upstream, url, f"recorded {name} {habit}", some)
            _translate(book, upstream, url, f"recorded {name} to", some)


def _exchanges(name: str) -> Iterator[Json]:
    file = json.loads((FOLDER / f"{name}.json").read_text())
    return (one for one in file["exchanges"] if one["family"] in FORMATS and one.get("request") is not None)


def provider_of(exchange: Json) -> str:
    known = BUILT_IN.get(exchange["provider"])
    return known or f"{exchange['provider']}-{FORMATS[exchange['family']].replace('_', '-')}"


def _providers(exchanges: list[Json]) -> str:
    tables = {}
    for exchange in exchanges:
        name = provider_of(exchange)
        own = "" if name in BUILT_IN.values() else f'formats = ["{FORMATS[exchange["family"]]}"]\n'
        tables[name] = f'[providers.{name}]\nbase_url = "{address_of(name)}"\n{own}'
    return "".join(tables.values())


def _replay(book: Book, upstream: Upstream, url: str, title: str, exchanges: list[Json]) -> None:
    for number, exchange in enumerate(exchanges):
        wire = WIRES[FORMATS[exchange["family"]]]
        upstream.apps = {provider_of(exchange): _answer(exchange)}
        body = dict(exchange["request"])
        if title.endswith("stripped") and isinstance(body.get(wire.member), list):
            body[wire.member] = wire.forget(body[wire.member])
        path = f"/{provider_of(exchange)}{wire.path(_model(exchange), is_streaming=_is_stream(exchange))}"
        data = json.dumps(body, ensure_ascii=False).encode()
        book.post(f"{title} {number}", url + path, data, key=title, upstream=upstream)


def _translate(book: Book, upstream: Upstream, url: str, title: str, exchanges: list[Json]) -> None:
    """The recorded answer, for a client of every other format that asked a plain question."""
    for number, exchange in enumerate(exchanges):
        for wire in WIRES.values():
            if wire.name != FORMATS[exchange["family"]] and _is_answered(exchange):
                upstream.apps = {provider_of(exchange): _answer(exchange)}
                _ask(book, upstream, url, f"{title} {wire.name} {number}", exchange, wire)


def _ask(book: Book, upstream: Upstream, url: str, title: str, exchange: Json, wire: Chat) -> None:
    model, is_streaming = _model(exchange), _is_stream(exchange)
    body = wire.body(model, [wire.say(title)], is_streaming=is_streaming)
    path = f"/{provider_of(exchange)}{wire.path(model, is_streaming=is_streaming)}"
    book.post(title, url + path, json.dumps(body).encode(), key=title, upstream=upstream)


def _model(exchange: Json) -> str:
    named = exchange["request"].get("model") if isinstance(exchange["request"], dict) else ""
    path = str(exchange.get("path", ""))
    for mark in ("/models/", "/model/"):
        if not named and mark in path:
            named = path.split(mark)[1].split(":generate")[0].split(":stream")[0].split("/")[0]
    return str(named or "model")


def _is_stream(exchange: Json) -> bool:
    return _stream(exchange) is not None


def _is_answered(exchange: Json) -> bool:
    return _is_stream(exchange) or exchange.get("response") is not None


def _stream(exchange: Json) -> bytes | None:
    if "stream_b64" in exchange:
        return base64.b64decode(exchange["stream_b64"])
    if exchange["family"] == "gemini" and isinstance(exchange.get("response"), list):
        return json.dumps(exchange["response"], ensure_ascii=False, indent=1).encode()
    stream: Any = exchange.get("stream")
    return None if stream is None else str(stream).encode()


def _answer(exchange: Json) -> Application:
    stream = _stream(exchange)
    body = json.dumps(exchange.get("response"), ensure_ascii=False).encode() if stream is None else stream
    kind = "application/json" if stream is None else exchange.get("content_type") or "text/event-stream"
    return canned(int(exchange.get("status") or 200), str(kind), body)
