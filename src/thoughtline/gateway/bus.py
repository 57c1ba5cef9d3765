"""Messages between the workers of one machine: their counts, and their requests while someone is listening.

Each worker has a Unix datagram socket in a directory that only its user can enter, and sends events to all the others a
few times per second. No worker waits for another: messages that don't fit into a neighbour's queue are lost, and it is
informed how many. Without a directory, a worker knows only itself.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import secrets
import socket
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, TypeAlias

import msgspec
from msgspec import Meta, Struct

from thoughtline.gateway.admin.request_answers import RequestRow
from thoughtline.gateway.journal import Journal
from thoughtline.stores.base import Counters

log = logging.getLogger(__name__)

FLUSH_SECONDS = 0.1
MAX_MESSAGE_BYTES = 48 * 2**10
MAX_ROWS_WAITING = 4096
BUFFER_BYTES = 256 * 2**10
MAX_READ_AT_ONCE = 64
_SUFFIX = ".sock"


Total: TypeAlias = Annotated[int, Meta(ge=0, le=2**53)]
"""What counts up to here is a number to all that read it, also as a float."""


class StoreCounts(Struct, frozen=True):
    """Counts of a worker's store since the start."""

    hits: Total = 0
    misses: Total = 0
    replays: Total = 0


class StoreTotals:
    """Counts of the stores of all workers, as far as they have reported them."""

    def __init__(self, counters: Counters) -> None:
        self._counters = counters
        self._others: dict[str, StoreCounts] = {}

    @property
    def own(self) -> StoreCounts:
        return StoreCounts(self._counters.hits, self._counters.misses, self._counters.replays)

    @property
    def all(self) -> StoreCounts:
        every = (self.own, *self._others.values())
        return StoreCounts(sum(o.hits for o in every), sum(o.misses for o in every), sum(o.replays for o in every))

    def update(self, worker: str, counts: StoreCounts) -> bool:
        """Store another worker's counts. Returns whether that worker is new."""
        is_new = worker not in self._others
        self._others[worker] = counts
        return is_new

    def forget(self, worker: str) -> None:
        self._others.pop(worker, None)

    def begin_anew(self) -> None:
        self._counters.hits = self._counters.misses = self._counters.replays = 0
        self._others = dict.fromkeys(self._others, StoreCounts())


class BusMessage(Struct, frozen=True, omit_defaults=True):
    """A message to another worker. `lost` rows came before and did not fit; `resets` makes all workers reset their
    counts. `listens`: a client follows the requests at this worker."""

    worker: str
    counts: StoreCounts
    rows: tuple[RequestRow, ...] = ()
    lost: int = 0
    resets: bool = False
    listens: bool = False


class Bus:
    """Sends and receives the messages of one worker."""

    def __init__(self, directory: str | None, journal: Journal, counters: Counters) -> None:
        self._directory = Path(directory) if directory else None
        self._journal = journal
        self._totals = StoreTotals(counters)
        self.name = worker_name()
        self._socket: socket.socket | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._waiting: list[bytes] = []
        self._overflowed = 0
        self._lost: dict[str, int] = {}
        self._listening: set[str] = set()
        self._decoder = msgspec.json.Decoder(BusMessage)
        self._encoder = msgspec.json.Encoder()

    @property
    def is_open(self) -> bool:
        return self._socket is not None

    @property
    def counts(self) -> StoreCounts:
        """The counts of all workers, as far as they have reported them."""
        return self._totals.all

    def open(self) -> None:
        """Join the others. A failure is logged and has no other effect."""
        if self._directory is None or self._socket is not None:
            return
        try:
            _require_private(self._directory)
            self._socket = _bound(self._directory / (self.name + _SUFFIX))
        except (OSError, AttributeError) as problem:  # no AF_UNIX on Windows
            log.warning("workers can't hear each other: %s", type(problem).__name__)
            return
        self._loop = asyncio.get_running_loop()
        self._loop.add_reader(self._socket.fileno(), self._read)
        self._journal.pass_on(self.send_row)
        self._journal.on_listening = self.report_counts
        self.report_counts()

    async def close(self) -> None:
        if self._socket is None or self._loop is None or self._directory is None:
            return
        self.flush()
        self._loop.remove_reader(self._socket.fileno())
        self._socket.close()
        self._socket = None
        with contextlib.suppress(OSError):
            (self._directory / (self.name + _SUFFIX)).unlink()

    def send_row(self, row: RequestRow) -> None:
        """Send a row, together with others of the same moment, to the workers with listeners."""
        if self._socket is None or self._loop is None or not self._listening:
            return
        if not self._waiting:
            self._loop.call_later(FLUSH_SECONDS, self.flush)
        if len(self._waiting) >= MAX_ROWS_WAITING:
            self._overflowed += 1
            return
        self._waiting.append(self._encoder.encode(row))

    def flush(self) -> None:
        """Send everything that is waiting."""
        waiting, self._waiting = self._waiting, []
        lost, self._overflowed = self._overflowed, 0
        neighbours = [path for path in self._neighbours() if path.stem in self._listening] if waiting else []
        for rows in parts_of(waiting, MAX_MESSAGE_BYTES) if neighbours else ():
            self._send_to(neighbours, rows, lost)
            lost = 0

    def report_counts(self) -> None:
        """Report the counts, for workers that joined later."""
        self._send_to(list(self._neighbours()), [], 0)

    def reset_counts(self) -> None:
        """Reset the counts of all workers."""
        self._totals.begin_anew()
        self._send_to(list(self._neighbours()), [], 0, resets=True)

    def _neighbours(self) -> Iterator[Path]:
        if self._socket is None or self._directory is None:
            return
        with contextlib.suppress(OSError):
            for path in self._directory.iterdir():
                if path.suffix == _SUFFIX and path.stem != self.name:
                    yield path

    def _send_to(self, neighbours: list[Path], rows: list[bytes], lost: int, resets: bool = False) -> None:
        for path in neighbours:
            missed = self._lost.pop(path.stem, 0) + lost
            listens = self._journal.listeners > 0
            message = BusMessage(self.name, self._totals.own, lost=missed, resets=resets, listens=listens)
            body = self._encoder.encode(message)
            if rows:
                body = body[:-1] + b',"rows":[' + b",".join(rows) + b"]}"
            if not self._send(path, body):
                self._lost[path.stem] = missed + len(rows)

    def _send(self, path: Path, body: bytes) -> bool:
        """Send to one neighbour, and return whether it arrived. The socket of a dead neighbour is removed."""
        assert self._socket is not None
        try:
            self._socket.sendto(body, str(path))
        except ConnectionRefusedError:
            self._note_listening(path.stem, listens=False)
            with contextlib.suppress(OSError):
                path.unlink()
        except FileNotFoundError:
            pass
        except OSError:  # its queue is full, or the message is too long for this system
            return False
        return True

    def _read(self) -> None:
        for _ in range(MAX_READ_AT_ONCE):
            try:
                assert self._socket is not None
                body = self._socket.recv(BUFFER_BYTES)
            except OSError:  # nothing more to read
                return
            self._receive(body)

    def _receive(self, body: bytes) -> None:
        try:
            message = self._decoder.decode(body)
        except (msgspec.DecodeError, UnicodeDecodeError):
            return  # from a worker of another version, or truncated
        if message.resets:
            self._totals.begin_anew()
        is_new = self._totals.update(message.worker, message.counts)
        if is_new and self._journal.listeners:
            self.report_counts()  # a new worker does not know yet that there are listeners here
        self._note_listening(message.worker, listens=message.listens)
        self._journal.receive(message.rows, message.lost)

    def _note_listening(self, worker: str, *, listens: bool) -> None:
        """Note whether a worker has listeners: it reports their end, or its socket is found dead. Rows are made only
        for listeners."""
        (self._listening.add if listens else self._listening.discard)(worker)
        self._journal.note_listeners(are_elsewhere=bool(self._listening))


def worker_name() -> str:
    """Return a name that no other process has."""
    return f"{os.getpid()}-{secrets.token_hex(4)}"


def parts_of(rows: list[bytes], most: int) -> Iterator[list[bytes]]:
    """Split rows into messages of limited size; at least one."""
    part: list[bytes] = []
    size = 0
    for row in rows:
        if part and size + len(row) > most:
            yield part
            part, size = [], 0
        part.append(row)
        size += len(row) + 1
    yield part


def _require_private(directory: Path) -> None:
    """Raise if another user could read or write there."""
    found = directory.stat()
    if found.st_uid != os.getuid() or stat.S_IMODE(found.st_mode) & 0o077:
        raise PermissionError(f"{directory} is open to others")


def _bound(path: Path) -> socket.socket:
    bound = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    try:
        bound.setblocking(False)
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, BUFFER_BYTES)
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, BUFFER_BYTES)
        bound.bind(str(path))
    except OSError:
        bound.close()
        raise
    return bound
