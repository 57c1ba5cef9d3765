"""One request and its answer, for the code that sends it.

    exchange = await line.begin("POST", url, headers, body)
    send exchange.body; while it is refused and `await exchange.heal(status, answer)`, send exchange.body again
    stream:  for each piece: if exchange.feed(piece): await exchange.save()     then show the piece
    whole:   exchange.read(answer)
    await exchange.end()

Our own faults never raise here: a request that can't be prepared is sent unchanged, an answer that can't be read is not
stored.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Coroutine, Mapping
from concurrent.futures import Future, wait
from typing import Any

from msgspec.structs import replace

from thoughtline.destinations.request_url import AskedAddress
from thoughtline.engine.capture import is_stream, log_problem
from thoughtline.engine.request import Prepared
from thoughtline.library.background import call_on_loop, is_done, run, wait_for
from thoughtline.library.explaining import ExchangeReport
from thoughtline.library.line_engine import Engine
from thoughtline.library.reading import AnswerReader
from thoughtline.library.shared_loop import Running
from thoughtline.library.telling import Teller
from thoughtline.values.errors import LimitExceeded
from thoughtline.values.outcome import (
    FINDINGS_HEADER,
    REPLAY_HEADER,
    Outcome,
    counts_of,
    finding_words,
    replay_words,
)
from thoughtline.values.records import Record


class ExchangeState:
    """The common part of both kinds of exchange. Without `prepared` the request is not for a provider, and nothing is
    done."""

    def __init__(
        self, engine: Engine, body: bytes, prepared: Prepared | None, address: AskedAddress | None = None
    ) -> None:
        self._engine = engine
        self._body = body
        self._prepared = prepared
        self._address = address
        self._outcome: Outcome | None = None
        self._reader: AnswerReader | None = None
        self._has_ended = False
        self._is_unread = prepared is not None and isinstance(prepared.problem, LimitExceeded)
        self._teller = Teller(engine.listeners, prepared, lambda: self.outcome) if prepared is not None else None
        self.is_whole = False
        """Whether the answer is one body: it is read when it is complete, so its last piece waits for that."""

    @property
    def body(self) -> bytes:
        """The body to send."""
        return self._prepared.body if self._prepared is not None else self._body

    @property
    def outcome(self) -> Outcome:
        """What was done about reasoning."""
        if self._outcome is None:
            self._outcome = self._prepared.outcome if self._prepared is not None else Outcome()
        return self._outcome

    @property
    def headers(self) -> dict[str, str]:
        """Headers for the answer: `x-thoughtline-replay`, and `x-thoughtline-findings` if there are any."""
        if self._teller is None:
            return {}
        words = replay_words(counts_of(self.outcome), self._engine.store_word, self._is_unread)
        headers = {REPLAY_HEADER: words.decode()}
        if found := self.outcome.findings:
            headers[FINDINGS_HEADER] = finding_words(Counter(rule for rule, _ in found))
        return headers

    @property
    def is_healable(self) -> bool:
        """Whether to read a refusal of it."""
        return self._prepared is not None and self._prepared.transcript is not None

    def answer(self, status: int, headers: Mapping[str, str]) -> bool:
        """Note the head of the answer, and return whether to read its body. The names in `headers` are in lower
        case."""
        prepared = self._prepared
        if self._teller is not None:
            self._teller.status = status
        if status != 200 or prepared is None or prepared.transcript is None:
            self._over()
            return False
        kind = headers.get("content-type", "").partition(";")[0].strip().lower()
        is_asked = prepared.transcript.is_streaming or (self._address is not None and self._address.is_streaming)
        streams = is_stream(kind, prepared.destination.format, is_asked=is_asked)
        if self._listen(is_stream=streams, encoding=headers.get("content-encoding", "").lower()) is None:
            self._over()
            return False
        return True

    def read(self, data: bytes) -> bool:
        """Read a whole answer."""
        reader = self._reader or self._listen(is_stream=False)
        if reader is None:
            return False
        reader.feed(data)
        return reader.end()

    def feed(self, data: bytes) -> bool:
        """Read a piece of an answer, and return whether a turn has ended in it: save that before you show the piece."""
        reader = self._reader or self._listen(is_stream=True)
        return reader is not None and reader.feed(data)

    def hear(self, chunk: object) -> bool:
        """The same for a chunk that is already decoded: a dict, or an SDK's model."""
        reader = self._reader or self._listen(is_stream=True)
        return reader is not None and reader.hear(chunk)

    def cut(self) -> None:
        """End early, because the caller has left or there is no answer: keep what came as a truncated turn, without
        waiting."""
        if records := self._last(is_cut=True):
            _in_background(self._engine.save(records))
        self._over(is_cut=True)

    @property
    def report(self) -> ExchangeReport | None:
        """The report on the exchange; None for a request that is not to a provider."""
        return self._teller.report() if self._teller is not None else None

    def _over(self, *, is_cut: bool = False) -> None:
        """Report the exchange once its result is known."""
        if self._teller is not None:
            self._teller.finish(is_cut=is_cut)

    def _listen(self, *, is_stream: bool, encoding: str = "") -> AnswerReader | None:
        """Start reading, once. Releases the request, which may be long and is already sent; the report keeps what it
        needs."""
        prepared, address = self._prepared, self._address
        if prepared is None or prepared.transcript is None or (address is not None and address.action != "generate"):
            return None
        try:
            self._reader = AnswerReader(prepared, is_stream=is_stream, encoding=encoding)
            if self._teller is not None and self._teller.status is None:
                self._teller.status = 200
            self.is_whole = not is_stream
        except Exception as problem:
            log_problem("a response could not be read", problem)
        if prepared.healings:
            _in_background(self._engine.accept(prepared))
        self._outcome = self.outcome
        self._prepared, self._body = None, b""
        return self._reader

    def _taken(self) -> tuple[Record, ...]:
        return self._count(self._reader.take(time.time(), self.outcome)) if self._reader is not None else ()

    def _count(self, records: tuple[Record, ...]) -> tuple[Record, ...]:
        if self._teller is not None:
            self._teller.saved += len(records)
        return records

    def _last(self, *, is_cut: bool = False) -> tuple[Record, ...]:
        reader = self._reader
        if reader is None or self._has_ended:
            return ()
        self._has_ended = True
        reader.end(is_cut=is_cut)
        return self._count(reader.take(time.time(), self.outcome))

    async def _heal(self, status: int, answer: bytes) -> bool:
        """Runs on the background loop."""
        prepared = self._prepared
        if prepared is None or prepared.transcript is None:
            return False
        refusal, healed = await self._engine.heal(prepared, status, answer)
        self._prepared, self._outcome = healed or replace(prepared, healings=0), None
        if self._teller is not None:
            self._teller.healed(self._prepared, refusal)
        return healed is not None


class AsyncExchange(ExchangeState):
    """An exchange for code on an event loop of asyncio or trio."""

    async def heal(self, status: int, answer: bytes) -> bool:
        """Heal a refusal about reasoning, and return whether `body` has changed and should be sent again. Twice at
        most."""
        try:
            return await wait_for(run(self._heal(status, answer)))
        except Exception as problem:
            return _not_healed(problem)

    async def save(self) -> None:
        """Save the turns that have ended. Waits 250 ms at most; then the save continues in the background."""
        await self._save(self._taken())

    async def end(self) -> None:
        """End the answer, and save the rest of it."""
        await self._save(self._last())
        self._over()

    async def _save(self, records: tuple[Record, ...]) -> None:
        if records and not await is_done(run(self._engine.save(records)), self._engine.hold_seconds):
            call_on_loop(self._engine.count_late)


class SyncExchange(ExchangeState):
    """The same for code without an event loop."""

    def heal(self, status: int, answer: bytes) -> bool:
        try:
            return run(self._heal(status, answer)).result()
        except Exception as problem:
            return _not_healed(problem)

    def save(self) -> None:
        self._save(self._taken())

    def end(self) -> None:
        self._save(self._last())
        self._over()

    def _save(self, records: tuple[Record, ...]) -> None:
        if not records:
            return
        done = run(self._engine.save(records))
        if isinstance(done, Future) and wait([done], self._engine.hold_seconds).not_done:
            call_on_loop(self._engine.count_late)


def _not_healed(problem: Exception) -> bool:
    log_problem("a refusal could not be healed", problem)
    return False


def _in_background(work: Coroutine[Any, Any, None]) -> None:
    try:
        running = run(work)
    except RuntimeError:  # the interpreter is shutting down
        work.close()
        return
    if isinstance(running, Future):
        running.add_done_callback(_log_failure)
    else:
        _log_failure(running)


def _log_failure(done: Running[None]) -> None:
    problem = None if done.cancelled() else done.exception()
    if problem is not None:
        log_problem("something could not be kept", problem)
