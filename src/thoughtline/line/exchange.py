"""One request and its answer, for whoever sends it.

    exchange = await line.begin("POST", url, headers, body)
    send exchange.body; while it is refused and `await exchange.heal(status, answer)`, send exchange.body again
    stream:  for each piece: if exchange.feed(piece): await exchange.save()     then show the piece
    whole:   exchange.read(answer)
    await exchange.end()

Nothing here raises for a fault of ours: what can't be prepared goes out as it came, what can't be read is not kept.
"""

from __future__ import annotations

import time
from collections.abc import Coroutine, Mapping
from concurrent.futures import Future, wait
from typing import Any

from msgspec.structs import replace

from thoughtline.line.background import is_done, run, tell, wait_for
from thoughtline.line.engine import Engine
from thoughtline.line.reading import AnswerReader
from thoughtline.outgoing import AskedAddress
from thoughtline.prepared import Prepared
from thoughtline.values.errors import LimitExceeded
from thoughtline.values.outcome import REPLAY_HEADER, Outcome, counts_of, replay_words
from thoughtline.values.records import Record
from thoughtline.watching import is_stream, log_problem


class ExchangeState:
    """What both kinds of exchange have. Without `prepared` the request is none of ours, and nothing is done."""

    def __init__(
        self, engine: Engine, body: bytes, prepared: Prepared | None, address: AskedAddress | None = None
    ) -> None:
        self._engine = engine
        self._body = body
        self._prepared = prepared
        self._is_streaming = address is not None and address.is_streaming
        self._keeps = address is None or address.action == "generate"
        self._reader: AnswerReader | None = None
        self._summed: tuple[Prepared | None, Outcome] | None = None
        self._has_ended = False

    @property
    def body(self) -> bytes:
        """What to send."""
        return self._prepared.body if self._prepared is not None else self._body

    @property
    def outcome(self) -> Outcome:
        """What was done about reasoning."""
        if self._summed is None or self._summed[0] is not self._prepared:
            self._summed = self._prepared, self._prepared.outcome if self._prepared is not None else Outcome()
        return self._summed[1]

    @property
    def headers(self) -> dict[str, str]:
        """What an answer says of it: `x-thoughtline-replay`."""
        if self._prepared is None:
            return {}
        is_unread = isinstance(self._prepared.problem, LimitExceeded)
        words = replay_words(counts_of(self.outcome), self._engine.store_word, is_unread)
        return {REPLAY_HEADER: words.decode()}

    @property
    def is_whole(self) -> bool:
        """Whether the answer is one body: it is read when all of it is there, so its last piece waits for that."""
        return self._reader is not None and not self._reader.is_stream

    @property
    def is_healable(self) -> bool:
        """Whether a refusal of it is worth reading."""
        return self._prepared is not None and self._prepared.transcript is not None

    def answer(self, status: int, headers: Mapping[str, str]) -> bool:
        """The head of the answer has come; whether its body is worth reading. `headers` are found by lower case."""
        prepared = self._prepared
        if prepared is None or prepared.transcript is None or status != 200:
            return False
        kind = headers.get("content-type", "").partition(";")[0].strip().lower()
        self._listen(is_stream=self._is_stream(prepared, kind), encoding=headers.get("content-encoding", "").lower())
        return self._reader is not None

    def read(self, data: bytes) -> bool:
        """A whole answer."""
        reader = self._listen(is_stream=False)
        if reader is None:
            return False
        reader.feed(data)
        return reader.end()

    def feed(self, data: bytes) -> bool:
        """A piece of an answer, as it came. Whether a turn has ended in it: save that before you show the piece."""
        reader = self._listen(is_stream=True)
        return reader is not None and reader.feed(data)

    def hear(self, chunk: object) -> bool:
        """The same for a chunk that was decoded already: a dict, or an SDK's model."""
        reader = self._listen(is_stream=True)
        return reader is not None and reader.hear(chunk)

    def cut(self) -> None:
        """Whoever the answer is for has left: what came is kept as a turn cut short. Nobody waits for that."""
        if self._reader is not None and not self._has_ended:
            self._has_ended = True
            self._reader.end(is_cut=True)
            if records := self._taken():
                _in_background(self._engine.save(records))

    def _listen(self, *, is_stream: bool, encoding: str = "") -> AnswerReader | None:
        prepared = self._prepared
        if self._reader is None and self._keeps and prepared is not None and prepared.transcript is not None:
            try:
                self._reader = AnswerReader(prepared, is_stream=is_stream, encoding=encoding)
            except Exception as problem:
                log_problem("a response could not be read", problem)
                self._keeps = False
            if prepared.healings:
                _in_background(self._engine.accept(prepared))
            self._let_go(prepared)
        return self._reader

    def _let_go(self, prepared: Prepared) -> None:
        """Of what was said in the request: that may be long, and is sent. What there is to tell of it stays."""
        told = self.outcome
        self._prepared = Prepared(
            prepared.destination, prepared.identity, b"", prepared.contract, problem=prepared.problem
        )
        self._summed = self._prepared, told

    def _is_stream(self, prepared: Prepared, kind: str) -> bool:
        is_asked = self._is_streaming or (prepared.transcript is not None and prepared.transcript.is_streaming)
        return is_stream(kind, prepared.destination.format, is_asked=is_asked)

    def _taken(self) -> tuple[Record, ...]:
        return self._reader.take(time.time(), self.outcome) if self._reader is not None else ()

    def _last(self) -> tuple[Record, ...]:
        if self._reader is None or self._has_ended:
            return ()
        self._has_ended = True
        self._reader.end()
        return self._taken()

    async def _heal(self, status: int, answer: bytes) -> bool:
        """On the background loop."""
        prepared = self._prepared
        if prepared is None or prepared.transcript is None:
            return False
        healed = await self._engine.heal(prepared, status, answer)
        self._prepared = healed or replace(prepared, healings=0)
        return healed is not None


class AsyncExchange(ExchangeState):
    """For code on a loop of asyncio or trio."""

    async def heal(self, status: int, answer: bytes) -> bool:
        """Whether a refusal was about reasoning, and `body` is now another, to be sent again. Twice at most."""
        try:
            return await wait_for(run(self._heal(status, answer)))
        except Exception as problem:
            return _not_healed(problem)

    async def save(self) -> None:
        """Save the turns that have ended; 250 ms at most, then it goes on behind."""
        await self._save(self._taken())

    async def end(self) -> None:
        """The answer is over: save what is left of it."""
        await self._save(self._last())

    async def _save(self, records: tuple[Record, ...]) -> None:
        if records and not await is_done(run(self._engine.save(records)), self._engine.hold_seconds):
            tell(self._engine.count_late)


class SyncExchange(ExchangeState):
    """The same for code without a loop."""

    def heal(self, status: int, answer: bytes) -> bool:
        try:
            return run(self._heal(status, answer)).result()
        except Exception as problem:
            return _not_healed(problem)

    def save(self) -> None:
        self._save(self._taken())

    def end(self) -> None:
        self._save(self._last())

    def _save(self, records: tuple[Record, ...]) -> None:
        if not records:
            return
        done = run(self._engine.save(records))
        if not done.done() and wait([done], self._engine.hold_seconds).not_done:
            tell(self._engine.count_late)


def _not_healed(problem: Exception) -> bool:
    log_problem("a refusal could not be healed", problem)
    return False


def _in_background(work: Coroutine[Any, Any, None]) -> None:
    try:
        run(work).add_done_callback(_log_failure)
    except RuntimeError:  # the interpreter is on its way out
        work.close()


def _log_failure(done: Future[None]) -> None:
    problem = None if done.cancelled() else done.exception()
    if problem is not None:
        log_problem("something could not be kept", problem)
