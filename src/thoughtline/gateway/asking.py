"""The requests of other processes: of workers by asking them, of replicas by the store.

Each worker of one start has a stream socket in the directory of the bus, and answers. Nothing is said while nobody
asks. Who doesn't answer in time is left out, and whoever asks is told.
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
    """What the others said; not all of them if `is_whole` is false."""

    bodies: list[bytes]
    is_whole: bool


class Asking:
    """One worker's ear and mouth. Without a directory there is nobody to ask."""

    def __init__(self, directory: str | None, name: str) -> None:
        self._directory = Path(directory) if directory else None
        self._name = name
        self._server: asyncio.Server | None = None

    async def open(self, answer: Answer) -> None:
        """Answer from now on. What prevents it is told, and prevents nothing else."""
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
        """What each of the others says to this."""
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
        except ConnectionRefusedError:  # it died without a word
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


# --- the last requests of other replicas, by a store that they share --------------------------------------------------
# Each process writes its own there now and then: what the admin API tells of them, without bodies, packed as records
# are, encrypted if the store is. Its newest go into a few notes that take turns, so what it has there is bounded.


NAMESPACE = "requests"
KEPT_SECONDS = 24 * 3600.0
PER_NOTE = 32
NOTES = 8

_decoder = msgspec.json.Decoder(list[RequestView])


class Replicas:
    """This process among those that share its store. `written` is how many of its requests the store has."""

    def __init__(self, name: str, store_url: str, keys: tuple[str | None, str | None]) -> None:
        self._name = name
        self._packer = Packer(*keys) if is_shared(store_url) else None
        self._page: list[RequestView] = []
        self._number = 0
        self.written = 0

    @property
    def are_there(self) -> bool:
        """Whether the store is one that others may share."""
        return self._packer is not None

    async def tell(self, store: Store, views: list[RequestView], now: float) -> None:
        """Write requests that are over, oldest first."""
        assert self._packer is not None
        if len(self._page) + len(views) > PER_NOTE:
            self._page, self._number = [], (self._number + 1) % NOTES
        self._page = [*self._page, *views][-PER_NOTE:]
        value = self._packer.seal(msgspec.json.encode(self._page), NAMESPACE.encode())
        await store.put_note(Note(NAMESPACE, f"{self._name}.{self._number}", value, now + KEPT_SECONDS))

    async def views(self, store: Store) -> list[RequestView]:
        """The requests of all processes but this one."""
        if self._packer is None:
            return []
        found: list[RequestView] = []
        for note in await store.notes(NAMESPACE):
            if not note.key.startswith(f"{self._name}."):
                try:
                    found += _decoder.decode(self._packer.unseal(note.value, NAMESPACE.encode()))
                except (msgspec.DecodeError, ThoughtlineError) as problem:  # of another version, or another key
                    log.warning("requests of a replica can't be read: %s", type(problem).__name__)
        return found
