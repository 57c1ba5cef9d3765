"""The requests of other workers, by asking them. Those of replicas are in the history.

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
