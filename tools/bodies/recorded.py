"""Real conversations, their answers played back: the recorded requests through the gateway, kept and stripped.

`THOUGHTLINE_RECORDINGS` names the folders, as `PATH` does; without it, those beside the checkout are used.
"""

from __future__ import annotations

import base64
import json
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

from tools.bodies.book import Book
from tools.bodies.clients import WIRES, Chat, Json
from tools.bodies.servers import SEALED_ALIKE, Application, Upstream, address_of, canned, gateway

_NAMED = os.environ.get("THOUGHTLINE_RECORDINGS")
_BESIDE = Path(__file__).parents[3] / "shared"
FOLDERS = [Path(name) for name in _NAMED.split(os.pathsep)] if _NAMED else sorted(_BESIDE.glob("recordings*"))
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
        *("llamacpp", "ollama", "openai", "openrouter", "xai"),
    )
}
"""Recorded providers that the gateway knows, under its own names. The others are servers of one format."""


class Conversation(NamedTuple):
    """A recorded file: its exchanges that the gateway can be asked for, by their numbers in it, and the pairs of a
    response and a later request that has its reasoning."""

    name: str
    exchanges: dict[int, Json]
    pairs: list[tuple[int, int]]


def conversations(folders: Iterable[Path] = ()) -> list[Conversation]:
    """All that is recorded in these folders, each name once."""
    folders = list(folders) or FOLDERS
    found: dict[str, Conversation] = {}
    for folder in folders:
        index = folder / "index.json"
        for entry in json.loads(index.read_text()) if index.exists() else ():
            if entry["id"] not in found:
                file = json.loads((folder / f"{entry['id']}.json").read_text())
                found[entry["id"]] = _conversation(entry["id"], file)
    if not found:
        where = ", ".join(map(str, folders)) or "the folder beside the checkout"
        raise SystemExit(f"no recordings in {where}; set THOUGHTLINE_RECORDINGS to the folders with index.json")
    return list(found.values())


def _conversation(name: str, file: Json) -> Conversation:
    exchanges = {
        number: one
        for number, one in enumerate(file["exchanges"])
        if one["family"] in FORMATS and one.get("request") is not None
    }
    return Conversation(name, exchanges, [(came, went) for came, went in file.get("replay_pairs", [])])


def recorded(book: Book) -> None:
    upstream, known = Upstream(), conversations()
    with gateway(settings_for(known), proxy=upstream.url) as url, book.connected():
        for conversation in known:
            name, some = conversation.name, list(conversation.exchanges.values())
            if not book.wants(f"recorded {name}"):
                continue
            for habit in ("kept", "stripped"):
                _replay(book, upstream, url, f"recorded {name} {habit}", some)
            _translate(book, upstream, url, f"recorded {name} to", some)


def settings_for(known: Iterable[Conversation]) -> str:
    """Settings of a gateway that has all these providers behind it, and learns nothing from one for another."""
    exchanges = [exchange for one in known for exchange in one.exchanges.values()]
    return SEALED_ALIKE + "[replay]\nlearn = false\n" + _providers(exchanges)


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
        upstream.apps = {provider_of(exchange): answer_of(exchange)}
        data = request_of(exchange, is_stripped=title.endswith("stripped"))
        book.post(f"{title} {number}", url + path_of(exchange), data, key=title, upstream=upstream)


def path_of(exchange: Json) -> str:
    """Where the gateway is asked for it."""
    wire = WIRES[FORMATS[exchange["family"]]]
    return f"/{provider_of(exchange)}{wire.path(_model(exchange), is_streaming=is_stream(exchange))}"


def request_of(exchange: Json, *, is_stripped: bool = False) -> bytes:
    """A request as it was recorded, or as a client sends it that keeps no reasoning."""
    wire, body = WIRES[FORMATS[exchange["family"]]], dict(exchange["request"])
    if is_stripped and isinstance(body.get(wire.member), list):
        body[wire.member] = wire.forget(body[wire.member])
    return json.dumps(body, ensure_ascii=False).encode()


def _translate(book: Book, upstream: Upstream, url: str, title: str, exchanges: list[Json]) -> None:
    """The recorded answer, for a client of every other format that asked a plain question."""
    for number, exchange in enumerate(exchanges):
        for wire in WIRES.values():
            if wire.name != FORMATS[exchange["family"]] and _is_answered(exchange):
                upstream.apps = {provider_of(exchange): answer_of(exchange)}
                _ask(book, upstream, url, f"{title} {wire.name} {number}", exchange, wire)


def _ask(book: Book, upstream: Upstream, url: str, title: str, exchange: Json, wire: Chat) -> None:
    model, is_streaming = _model(exchange), is_stream(exchange)
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


def is_stream(exchange: Json) -> bool:
    return stream_of(exchange) is not None


def _is_answered(exchange: Json) -> bool:
    return is_stream(exchange) or exchange.get("response") is not None


def stream_of(exchange: Json) -> bytes | None:
    if "stream_b64" in exchange:
        return base64.b64decode(exchange["stream_b64"])
    if exchange["family"] == "gemini" and isinstance(exchange.get("response"), list):
        return json.dumps(exchange["response"], ensure_ascii=False, indent=1).encode()
    stream: Any = exchange.get("stream")
    return None if stream is None else str(stream).encode()


def answer_of(exchange: Json) -> Application:
    stream = stream_of(exchange)
    body = json.dumps(exchange.get("response"), ensure_ascii=False).encode() if stream is None else stream
    kind = "application/json" if stream is None else exchange.get("content_type") or "text/event-stream"
    return canned(int(exchange.get("status") or 200), str(kind), body)
