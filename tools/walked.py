"""Which files and functions of the product one request walks through: a gateway process that writes down its calls."""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Iterator
from typing import NamedTuple

import httpx

from tools.bodies.clients import WIRES
from tools.bodies.servers import NOW, START, Upstream, address_of, free_port, gateway
from tools.bodies.simulated import simulator_app

OPENING = """How is the weather?
script:
think: I look it up.
call: weather {"city": "Paris"}
---
think: Now I know.
say: It is sunny.
"""
# A thread of the gateway's hands out what was called since it was last asked.
TRACED = """
import json, os, socket, sys, threading
from importlib.util import find_spec
folder = os.path.dirname(find_spec("thoughtline").origin) + os.sep
called = []
def note(frame, event, argument):
    code = frame.f_code
    name = code.co_filename
    if event == "call" and name.startswith(folder) and not name.startswith(folder + "sim" + os.sep):
        called.append((name[len(folder):], code.co_qualname))
def tell():
    with socket.create_server(("127.0.0.1", PORT)) as listener:
        while True:
            connection = listener.accept()[0]
            known = called[:]
            del called[:len(known)]
            with connection:
                connection.sendall(json.dumps(known).encode())
threading.Thread(target=tell, daemon=True).start()
threading.setprofile(note)
sys.setprofile(note)
"""
SETTLING_SECONDS = 0.5
"""What is done behind an answer (the journal, the store) is done by then."""


class Walk(NamedTuple):
    files: tuple[str, ...]
    functions: tuple[str, ...]


class Way(NamedTuple):
    """A client of a format and a provider: its simulator answers."""

    name: str
    client: str
    provider: str
    profile: str | None
    model: str


WAYS = (
    Way("DeepSeek stream", "openai_chat", "deepseek", "tools", "deepseek-v4-pro"),
    Way("Claude Code to GPT stream", "anthropic_messages", "openai", None, "gpt-5"),
)


def walks() -> Iterator[tuple[str, Walk]]:
    for way in WAYS:
        yield way.name, _walk(way)


def _walk(way: Way) -> Walk:
    """The second turn of a conversation whose client forgot the first thought. It is held twice: modules that are
    imported when they are first needed are no part of the way."""
    port = free_port()
    upstream = Upstream()
    settings = f'[providers.{way.provider}]\nbase_url = "{address_of(way.provider)}"\n'
    code = TRACED.replace("PORT", str(port)) + START
    with gateway(settings, proxy=upstream.url, code=code) as url:
        for key in ("first", "second"):
            upstream.apps = {way.provider: simulator_app(way.provider, way.profile, seed=7, now=lambda: NOW)}
            called = _second_turn(way, url, key, port)
    files = sorted({name for name, _ in called})
    return Walk(tuple(files), tuple(sorted({f"{name} {function}" for name, function in called})))


def _second_turn(way: Way, url: str, key: str, port: int) -> list[tuple[str, str]]:
    wire = WIRES[way.client]
    history = [wire.say(OPENING)]
    called: list[tuple[str, str]] = []
    for _ in range(2):
        _called(port)
        body = wire.body(way.model, history, is_streaming=True)
        headers = {"authorization": f"Bearer {key}"}
        address = f"{url}/{way.provider}{wire.path(way.model, is_streaming=True)}"
        response = httpx.post(address, json=body, headers=headers, timeout=60)
        if response.status_code != 200:
            raise RuntimeError(response.text)
        time.sleep(SETTLING_SECONDS)
        called = _called(port)
        kept = wire.fold(response.content)
        history += wire.forget(kept) + wire.results(wire.calls(kept))
    return called


def _called(port: int) -> list[tuple[str, str]]:
    """What was called since this was last asked."""
    with socket.create_connection(("127.0.0.1", port)) as connection, connection.makefile("rb") as answer:
        return [(name, function) for name, function in json.load(answer)]
