"""The requests of other processes: workers are asked for them, replicas write them to the store.

Each worker of one start listens on a stream socket in the bus directory, and answers. Nothing is sent unless a worker
asks. A worker that does not answer in time is left out, and the answer says so.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import NamedTuple

import msgspec

from thoughtline.gateway.admin.request_answers import RequestView
from thoughtline.stores import Note, Store, is_shared
from thoughtline.stores.packing import Packer
from thoughtline.values.errors import ThoughtlineError

log = logging.getLogger(__name__)

ANSWER_SECONDS = 2.0
MAX_QUESTION_BYTES = 64 * 2**10
_SUFFIX = ".ask"

Answer = Callable[[bytes], Awaitable[bytes]]


class Answers(NamedTuple):
    """The answers of the others; incomplete if `is_whole` is false."""

    bodies: list[bytes]
    is_whole: bool


class Asking:
    """Asks other workers and answers them. Without a directory there are no others."""

    def __init__(self, directory: str | None, name: str) -> None:
        self._directory = Path(directory) if directory else None
        self._name = name
        self._server: asyncio.Server | None = None

    async def open(self, answer: Answer) -> None:
        """Start answering. A failure is logged and has no other effect."""
        if self._directory is None:
            return
        try:
            path = self._directory / (self._name + _SUFFIX)
            self._server = await asyncio.start_unix_server(_serve(answer), path, limit=MAX_QUESTION_BYTES)
        except (OSError, AttributeError, NotImplementedError) as problem:
            log.warning("workers can't ask each other: %s", type(problem).__name__)

    async def close(self) -> None:
        if self._server is None or self._directory is None:
            return
        self._server.close()
        with contextlib.suppress(OSError):
            (self._directory / (self._name + _SUFFIX)).unlink()

    async def ask(self, question: bytes) -> Answers:
        """Return the answers of all other workers."""
        if self._directory is None:
            return Answers([], True)
        paths = [path for path in self._directory.glob(f"*{_SUFFIX}") if path.stem != self._name]
        answers = await asyncio.gather(*(_ask(path, question) for path in paths), return_exceptions=True)
        bodies = [answer for answer in answers if isinstance(answer, bytes)]
        gone = [answer for answer in answers if isinstance(answer, (ConnectionRefusedError, FileNotFoundError))]
        return Answers(bodies, len(bodies) + len(gone) == len(paths))


async def _ask(path: Path, question: bytes) -> bytes:
    async with asyncio.timeout(ANSWER_SECONDS):
        try:
            reader, writer = await asyncio.open_unix_connection(path)
        except ConnectionRefusedError:  # it died without cleaning up
            path.unlink(missing_ok=True)
            raise
        try:
            writer.write(question + b"\n")
            answer = await reader.read()
        finally:
            writer.close()
    if not answer:
        raise EOFError
    return answer


def _serve(answer: Answer) -> Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            writer.write(await answer(await reader.readuntil(b"\n")))
            await writer.drain()
        except (OSError, ValueError, asyncio.IncompleteReadError) as problem:
            log.warning("a neighbour got no answer: %s", type(problem).__name__)
        finally:
            writer.close()

    return serve


# --- the latest requests of other replicas, through a shared store ----------------------------------------------------
# Each process writes its own there from time to time: what the admin API shows of them, without bodies, packed like
# records, and encrypted if the store is. The newest go into a fixed number of notes that are reused in turn, so the
# space is bounded.


NAMESPACE = "requests"
KEPT_SECONDS = 24 * 3600.0
PER_NOTE = 32
NOTES = 8

_decoder = msgspec.json.Decoder(list[RequestView])


class Replicas:
    """This process among those that share its store. `written` is how many of its requests are in the store."""

    def __init__(self, name: str, store_url: str, keys: tuple[str | None, str | None]) -> None:
        self._name = name
        self._packer = Packer(*keys) if is_shared(store_url) else None
        self._page: list[RequestView] = []
        self._number = 0
        self.written = 0

    @property
    def are_there(self) -> bool:
        """Whether other processes may share the store."""
        return self._packer is not None

    async def tell(self, store: Store, views: list[RequestView], now: float) -> None:
        """Write finished requests, oldest first."""
        assert self._packer is not None
        if len(self._page) + len(views) > PER_NOTE:
            self._page, self._number = [], (self._number + 1) % NOTES
        self._page = [*self._page, *views][-PER_NOTE:]
        value = self._packer.seal(msgspec.json.encode(self._page), NAMESPACE.encode())
        await store.put_note(Note(NAMESPACE, f"{self._name}.{self._number}", value, now + KEPT_SECONDS))

    async def views(self, store: Store) -> list[RequestView]:
        """Return the requests of all other processes."""
        if self._packer is None:
            return []
        found: list[RequestView] = []
        for note in await store.notes(NAMESPACE):
            if not note.key.startswith(f"{self._name}."):
                try:
                    found += _decoder.decode(self._packer.unseal(note.value, NAMESPACE.encode()))
                except (msgspec.DecodeError, ThoughtlineError) as problem:  # from another version, or with another key
                    log.warning("requests of a replica can't be read: %s", type(problem).__name__)
        return found
