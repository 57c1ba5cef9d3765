"""The simulators that clients talk to, each fresh and watched, and the one place that says how they are reached."""

from __future__ import annotations

import atexit
import contextlib
from collections.abc import MutableMapping
from typing import Any, NamedTuple

from msgspec.structs import replace

from tests.gateway.gateways import moved, running
from tests.sim.served_simulators import NOW, listening
from thoughtline.settings import Settings
from thoughtline.values.turns import FormatName
from thoughtline_sim.app import Receive, Scope, Send, SimulatorApp, simulator_app
from thoughtline_sim.values import Verdict

_MAX_TURNS = 40
"""More than a program makes of a task."""


class Seen(NamedTuple):
    """A request as it reached the simulator, and how it was answered."""

    method: str
    path: str
    status: int


class Watched:
    """A simulator that keeps a line on every request, those it has no API for included, and its body.

    `script` is what its model says, `|` between the lines: most programs can't be told to send a header. With
    `by_request`, its turns answer one request after the other, whatever a client made of the history.
    """

    def __init__(self, app: SimulatorApp, script: str = "", *, by_request: bool = False) -> None:
        self.app = app
        self.script = script
        self._turns = script.split("|---|") if by_request else []
        self._answered = 0
        self.seen: list[Seen] = []
        self.bodies: list[bytes] = []

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def note(message: MutableMapping[str, Any]) -> None:
            if message["type"] == "http.response.start":
                self._answered += message["status"] == 200
                self.seen.append(Seen(scope["method"], scope["path"], message["status"]))
            await send(message)

        body: list[bytes] = []

        async def hear() -> MutableMapping[str, Any]:
            message = await receive()
            body.append(message.get("body", b""))
            if message["type"] == "http.request" and not message.get("more_body"):
                self.bodies.append(b"".join(body))
            return message

        if self._turns:
            turn = self._turns[min(self._answered, len(self._turns) - 1)]
            self.script = "|---|".join([turn] * _MAX_TURNS)
        if self.script and scope["type"] in ("http", "websocket"):
            scope["headers"] = [*scope["headers"], (b"x-sim-script", self.script.encode())]
        await self.app(scope, hear, note)


class Upstream(NamedTuple):
    """A simulator at work, by the name of the provider it stands for."""

    provider: str
    url: str
    watched: Watched

    def refusals(self) -> list[str]:
        """What it did not like, in its own words or as a status."""
        said = [entry["refusal"] for entry in self.watched.app.simulation.log if entry["refusal"]]
        return said or [str(seen) for seen in self.watched.seen if not 200 <= seen.status < 300]

    def judged(self) -> list[tuple[list[Verdict], int]]:
        """The same as `verdicts`, each with the status of the answer."""
        log = self.watched.app.simulation.log
        return [
            (entry["verdicts"], entry["status"]) for entry in log if entry["conversation"] == log[-1]["conversation"]
        ]

    def verdicts(self) -> list[list[Verdict]]:
        """Of each request of the latest conversation: what became of the reasoning of each turn of the model."""
        return [verdicts for verdicts, _ in self.judged()]


def start(simulator: str, profile: str | None = None, script: str = "", *, by_request: bool = False) -> Upstream:
    """A simulator of its own for one test."""
    watched = Watched(simulator_app(simulator, profile, seed=7, now=lambda: NOW), script, by_request=by_request)
    return Upstream(simulator, listening(watched), watched)


def reach(upstream: Upstream, formats: tuple[FormatName, ...] | None = None) -> str:
    """The base URL, without `/v1`, under which a client finds the provider: through a gateway of its own. `formats` are
    those that the simulator speaks, where the provider speaks more."""
    row = moved(upstream.provider, upstream.url)
    settings = Settings(providers={row.name: replace(row, formats=formats or row.formats)})
    gateway = _GATEWAYS.enter_context(running({}, settings))
    return f"{gateway.url}/{upstream.provider}"


_GATEWAYS = contextlib.ExitStack()
atexit.register(_GATEWAYS.close)
