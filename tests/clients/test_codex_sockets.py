"""Codex over a WebSocket and over HTTP: ten turns with tools, a resume, a cut connection. `make test-clients`."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from typing import NamedTuple

import pytest

from tests.clients.agents import CODEX, CODEX_BUILT_IN, CODEX_SOCKET
from tests.clients.programs import Outcome, Place, Program, Task, run
from tests.clients.upstreams import Upstream, start
from tests.gateway.gateways import Running, running
from thoughtline.gateway.websocket_protocol import WebSocket

pytestmark = pytest.mark.programs

STEPS = 9
STEP = 'think: Step {n}.|say: Now {n}.|call: exec_command {{"cmd": "echo {n} >> steps.txt"}}'
SCRIPT = "|---|".join(
    [
        *(STEP.format(n=n) for n in range(STEPS)),
        "think: That is all.|say: Nine steps are done.",
        STEP.format(n=STEPS),
        "think: One more.|say: The tenth is done.",
    ]
)
ALARMS = ("Falling back", "Reconnecting", "stream disconnected", "ERROR")


class Row(NamedTuple):
    program: Program
    simulator: str
    model: str
    profile: str | None = None


OVER_SOCKETS = (
    Row(CODEX_SOCKET, "openai", "gpt-5"),
    Row(CODEX_SOCKET, "deepseek", "deepseek-v4-pro"),
    Row(CODEX_SOCKET, "anthropic", "claude-opus-5-5", "bound"),
    Row(CODEX_SOCKET, "gemini", "gemini-3-pro-preview"),
)
ROWS = (
    *OVER_SOCKETS,
    Row(CODEX_BUILT_IN, "openai", "gpt-5"),
    Row(CODEX_BUILT_IN, "deepseek", "deepseek-v4-pro"),
    *(row._replace(program=CODEX) for row in OVER_SOCKETS),
)


class Opened:
    """The WebSockets of a gateway: how many there were, and what was sent on each."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.sockets: list[WebSocket] = []
        self.frames: list[str] = []
        self._breaks_at = 0
        accept, send = WebSocket.accept, WebSocket.send

        def accepting(socket: WebSocket) -> bool:
            self.sockets.append(socket)
            return accept(socket)

        async def sending(socket: WebSocket, text: bytes) -> None:
            await send(socket, text)
            self.frames.append(json.loads(text)["type"])
            is_begun = self._breaks_at and self.frames.count("response.created") == self._breaks_at
            if is_begun and self.frames[-1].endswith(".delta"):
                self._breaks_at = 0
                socket._transport.abort()

        monkeypatch.setattr(WebSocket, "accept", accepting)
        monkeypatch.setattr(WebSocket, "send", sending)

    def break_in(self, answer: int) -> None:
        """Cut the connection off in the middle of this answer."""
        self._breaks_at = answer


@contextlib.contextmanager
def served(row: Row) -> Iterator[tuple[Upstream, Running, Task]]:
    upstream = start(row.simulator, row.profile, SCRIPT)
    with running({row.simulator: upstream.url}) as gateway:
        yield upstream, gateway, Task(f"{gateway.url}/{row.simulator}", row.model)


def did(outcome: Outcome) -> tuple[int, str, list[str]]:
    """How it ended, what it said last, and what it complained of."""
    return outcome.status, outcome.answer, [word for word in ALARMS if word in outcome.remarks]


@pytest.mark.parametrize("row", ROWS, ids=[f"{row.program.name}-{row.simulator}" for row in ROWS])
def test_ten_turns_and_a_resume(row: Row, place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every turn's reasoning is whole; over a WebSocket each run opens one, and no request falls back to HTTP."""
    opened = Opened(monkeypatch)
    with served(row) as (upstream, gateway, task):
        first = run(row.program, row.program.begin("Do nine steps."), place, task)
        assert did(first) == (0, "Nine steps are done.", []), first.remarks
        assert row.program.resume is not None
        second = run(row.program, row.program.resume("And a tenth."), place, task)
        assert did(second) == (0, "The tenth is done.", []), second.remarks
        lines = [line for line in gateway.lines if line["route"] == "generate"]
    assert (place.work / "steps.txt").read_text().split() == [str(n) for n in range(STEPS + 1)]
    assert upstream.refusals() == []
    assert upstream.verdicts() == [["whole"] * before for before in range(STEPS + 3)]
    is_asked_over_one = row.program is not CODEX and row.simulator == "openai"
    assert {entry["method"] for entry in upstream.watched.app.simulation.log} == {
        "GET" if is_asked_over_one else "POST"
    }
    assert len({line["session"] for line in lines}) == 1
    is_socket = row.program is not CODEX
    assert len(opened.sockets) == (2 if is_socket else 0)
    # A prewarm at each start of the program sends no upstream request.
    assert opened.frames.count("response.completed") == (len(lines) + 2 if is_socket else 0)
    assert place.trap.strangers(row.program) == []


@pytest.mark.parametrize("row", OVER_SOCKETS, ids=[row.simulator for row in OVER_SOCKETS])
def test_a_connection_that_breaks_in_mid_turn(row: Row, place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """Codex opens another one and sends its conversation whole: nothing is lost, and its user hears nothing of it."""
    opened = Opened(monkeypatch)
    opened.break_in(4)  # behind a prewarm and two turns
    with served(row) as (upstream, _gateway, task):
        outcome = run(row.program, row.program.begin("Do nine steps."), place, task)
        assert did(outcome) == (0, "Nine steps are done.", []), outcome.remarks
    assert (place.work / "steps.txt").read_text().split() == [str(n) for n in range(STEPS)]
    assert len(opened.sockets) == 2
    assert upstream.refusals() == []
    assert {verdict for verdicts in upstream.verdicts() for verdict in verdicts} == {"whole"}
    assert len(upstream.verdicts()[-1]) == STEPS
