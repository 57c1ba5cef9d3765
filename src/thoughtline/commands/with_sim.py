"""`thoughtline serve --sim NAME`: a strict simulator behind the gateway, in the same process, and what to paste."""

from __future__ import annotations

import socket
import threading
import time
from typing import NamedTuple

import msgspec
import uvicorn

from thoughtline.catalogue import PROVIDERS
from thoughtline.providers import canonical_name
from thoughtline.values.errors import Declined
from thoughtline.values.nearest import did_you_mean
from thoughtline_sim.app import KEEP_ALIVE_SECONDS, simulator_app
from thoughtline_sim.simulators import SIMULATORS

_TOOLS = [{"type": "function", "function": {"name": "shell", "parameters": {"type": "object", "properties": {}}}}]
_ASKED = {"role": "user", "content": "script:\nthink: Two and two are four.\nsay: Four."}
_REST = [{"role": "assistant", "content": "Four."}, {"role": "user", "content": "Are you sure?"}]


class RunningSim(NamedTuple):
    """Where a simulator listens, which provider it is, and a model of its."""

    url: str
    provider: str
    model: str


def check_sim(name: str) -> None:
    """Raises for a simulator that is none."""
    if name not in SIMULATORS:
        raise Declined(404, "unknown_simulator", f"no simulator {name};", did_you_mean(name, SIMULATORS))


def start_sim(name: str) -> RunningSim:
    """Serve a simulator on a port that the system chooses, until the process ends."""
    app = simulator_app(name, seed=time.time_ns())
    listener = socket.create_server(("127.0.0.1", 0), backlog=512)
    server = uvicorn.Server(uvicorn.Config(app, log_level="critical", timeout_keep_alive=KEEP_ALIVE_SECONDS))
    threading.Thread(target=server.run, args=([listener],), name=f"sim-{name}", daemon=True).start()
    url = f"http://127.0.0.1:{listener.getsockname()[1]}"
    return RunningSim(url, _provider_of(name), SIMULATORS[name].models[0])


def _provider_of(name: str) -> str:
    """Some providers have a simulator for each generation: `deepseek-r1`, `gemini-2.5`."""
    whole = canonical_name(name)
    return whole if whole in PROVIDERS else canonical_name(name.partition("-")[0])


def to_paste(url: str, model: str) -> str:
    """Two requests for a shell. The second has forgotten what the model thought; the provider gets it all the same."""
    return "\n".join([_curl(url, model, [_ASKED]), _curl(url, model, [_ASKED, *_REST])])


def _curl(url: str, model: str, messages: list[dict[str, str]]) -> str:
    body = msgspec.json.encode({"model": model, "tools": _TOOLS, "messages": messages}).decode()
    head = f"curl -si {url}/v1/chat/completions -H 'content-type: application/json' -H 'authorization: Bearer any'"
    return f"{head} -d '{body}'"
