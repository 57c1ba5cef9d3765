"""What happened, as one line per request, for the log and for the counters. Listeners at `/api/events` get rows, which
are made only while there are any.

A line names the route, the model and what was done. It holds no content and no credential.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Iterable
from operator import attrgetter
from typing import Protocol

import msgspec
from msgspec import Struct
from prometheus_client import CollectorRegistry, Counter, Histogram

from thoughtline.gateway.admin.request_answers import RequestRow
from thoughtline.gateway.log_writer import LogWriter
from thoughtline.values.outcome import COUNTED, Counts

MAX_WAITING = 256
"""Rows that a slow listener may be behind; then it loses the oldest, and is informed how many."""
_FLUSH_SECONDS = 0.2


class Line(Counts, frozen=True, gc=False, kw_only=True, omit_defaults=False):
    """One request. Times are in milliseconds; `at` is in seconds since the epoch.

    `avoided`: it was answered, and would have been refused as the client sent it. `dropped` is the number of reasoning
    blocks that the provider or its chat template does not read; `withheld`: the model has thought, but the response
    shows nothing of it. Tokens are those counted by the provider: `cached` ones are read from its prompt cache. `via`
    is the route that led to the target, `handoff` the target that made the previous turn if it was another one,
    `added_chars` is the length of the checkpoints. `code` is set if the answer was our own error. `store` is `ok`,
    `slow` if the end of the answer did not wait until its turn was saved, or `degraded`; `late` is how many saves were
    not waited for. `verdict` says whose fault a failure is, why, and what helps. `mode` is the replay mode; with
    `observe`, `would` is what would have been done, and `preventable`: it was refused for something that would have
    been corrected.
    """

    at: float
    request: str
    tenant: str
    method: str
    route: str
    provider: str
    format: str
    model: str
    status: int
    avoided: bool = False
    session: str | None = None
    agent: str | None = None
    is_streaming: bool = False
    via: str = ""
    handoff: str = ""
    added_chars: int = 0
    findings: tuple[tuple[str, str], ...] = ()
    captured: int = 0
    dropped: int = 0
    withheld: int = 0
    input_tokens: int = 0
    cached_tokens: int = 0
    reasoning_tokens: int = 0
    upstream_ms: float = 0.0
    own_ms: float = 0.0
    bytes_up: int = 0
    bytes_down: int = 0
    attempts: int = 1
    store: str = "ok"
    late: int = 0
    code: str = ""
    note: str = ""
    verdict: str = ""
    mode: str = "on"
    would: str = ""
    preventable: bool = False


class Listener:
    """A client that follows requests as they happen."""

    def __init__(self) -> None:
        self._rows: deque[RequestRow] = deque(maxlen=MAX_WAITING)
        self._has_rows = asyncio.Event()
        self.lost = 0

    def send(self, row: RequestRow) -> None:
        if len(self._rows) == MAX_WAITING:
            self.lost += 1
        self._rows.append(row)
        self._has_rows.set()

    def take_lost(self) -> int:
        """Return how many rows were lost since the last call."""
        lost, self.lost = self.lost, 0
        return lost

    async def next(self) -> RequestRow:
        while not self._rows:
            self._has_rows.clear()
            await self._has_rows.wait()
        return self._rows.popleft()


class LogStyle(Protocol):
    """How the log is written if it is not all JSON: the bytes of a line, or None to omit it."""

    is_for_people: bool

    def request(self, line: Line, refusal: str) -> bytes | None:
        """Format a finished request. `refusal` is the error text if it was refused."""

    def begun(self, line: Line) -> bytes | None:
        """Format the start of a stream."""

    def event(self, event: str, detail: str) -> bytes | None:
        """Format something other than a request."""

    def note(self, line: Struct) -> bytes | None:
        """Format a line of another kind."""


class Log(Protocol):
    """Accepts whole lines without blocking: a writer to a slow destination uses a thread (`log_writer.py`)."""

    def write(self, data: bytes, /) -> object: ...


encode_line = msgspec.json.Encoder().encode


def event_line(event: str, detail: str, style: LogStyle | None) -> bytes | None:
    """Return the line for something other than a request."""
    return encode_line({"event": event, "detail": detail}) if style is None else style.event(event, detail)


class Journal:
    """Writes lines to the log and counters, and rows to listeners. Without a style, the log is lines of JSON.

    `is_for_people`: people read the log, which then also reports the start of streams. `is_watched`: there are
    listeners, here or at another worker, so rows are made. `on_listening` is called when listeners come or go.
    """

    def __init__(self, log: Log | None = None, style: LogStyle | None = None) -> None:
        self._log = log
        self._style = style
        self.is_for_people = log is not None and style is not None and style.is_for_people
        self._followers: tuple[Callable[[Line], None], ...] = ()
        self._unwritten: list[bytes] = []
        self._listeners: set[Listener] = set()
        self._passes_on: Callable[[RequestRow], None] | None = None
        self.is_watched = self._has_listeners_elsewhere = False
        self.on_listening: Callable[[], None] = lambda: None

    def record(self, line: Line, refusal: str = "") -> None:
        """Record a finished request. `refusal` is the error text if it was refused, only for logs that people read."""
        for follow in self._followers:
            follow(line)
        if self._log is not None:
            self._write(encode_line(line) if self._style is None else self._style.request(line, refusal))

    def begun(self, line: Line) -> None:
        """Record the start of a stream, in a log that people read."""
        if self._log is not None and self._style is not None:
            self._write(self._style.begun(line))

    def note_listeners(self, *, are_elsewhere: bool) -> None:
        """Note whether there are listeners at another worker."""
        self._has_listeners_elsewhere = are_elsewhere
        self.is_watched = bool(self._listeners) or are_elsewhere

    def publish(self, row: RequestRow) -> None:
        """Send a row on the start, stream or end of a request to all listeners, here and at other workers."""
        for listener in self._listeners:
            listener.send(row)
        if self._passes_on is not None:
            self._passes_on(row)

    def pass_on(self, passes_on: Callable[[RequestRow], None]) -> None:
        """Call this with every row of this process."""
        self._passes_on = passes_on

    def say(self, event: str, detail: str = "") -> None:
        """Log something other than a request."""
        if self._log is None:
            return
        text = event_line(event, detail, self._style)
        if text is not None:
            self._unwritten.append(text)
            self.flush()

    def note(self, line: Struct) -> None:
        """Log a line of another kind."""
        if self._log is not None:
            self._write(encode_line(line) if self._style is None else self._style.note(line))

    def _write(self, text: bytes | None) -> None:
        if text is None:
            return
        if not self._unwritten:
            asyncio.get_running_loop().call_later(_FLUSH_SECONDS, self.flush)
        self._unwritten.append(text)

    def flush(self) -> None:
        """Write waiting lines. They are batched, because waking a thread for each is expensive."""
        if self._log is None or not self._unwritten:
            return
        lines, self._unwritten = self._unwritten, []
        self._log.write(b"\n".join((*lines, b"")))

    @property
    def lost(self) -> int:
        """The number of lines that the log had no room for."""
        return self._log.lost if isinstance(self._log, LogWriter) else 0

    def follow(self, follow: Callable[[Line], None]) -> None:
        """Call this with every line of this process."""
        self._followers = (*self._followers, follow)

    def receive(self, rows: Iterable[RequestRow], lost: int) -> None:
        """Pass rows of another worker to the listeners."""
        for listener in self._listeners:
            listener.lost += lost
            for row in rows:
                listener.send(row)

    @property
    def listeners(self) -> int:
        return len(self._listeners)

    def listen(self) -> Listener:
        listener = Listener()
        self._listeners.add(listener)
        self._listeners_changed()
        return listener

    def leave(self, listener: Listener) -> None:
        self._listeners.discard(listener)
        self._listeners_changed()

    def _listeners_changed(self) -> None:
        self.note_listeners(are_elsewhere=self._has_listeners_elsewhere)
        self.on_listening()


# --- counters
# ----------------------------------------------------------------------------------------------------------

OUTCOMES = (*COUNTED, "captured", "dropped", "withheld")
_numbers = attrgetter(*OUTCOMES)
_TOKENS = ("input", "cached", "reasoning")
OWN_BUCKETS = (0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.25, 1.0)
UPSTREAM_BUCKETS = (0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 600.0)

Add = Callable[[float], None]


class RequestCounters:
    """Counts requests, what was done for them, and their durations: per line, not per piece of a stream.

    Labels come only from settings, so their number is limited.
    """

    def __init__(self, registry: CollectorRegistry) -> None:
        self._requests = counter("requests", "Requests served.", registry, labels=("provider", "format", "status"))
        self._outcomes = counter("outcomes", "What was done about reasoning.", registry, labels=("provider", "outcome"))
        tokens = "Tokens as providers count them: input, of that cached, and reasoning."
        self._tokens = counter("tokens", tokens, registry, labels=("provider", "kind"))
        avoided = "Requests answered that would have been refused as their clients sent them."
        self._avoided = counter("refusals_avoided", avoided, registry, labels=("provider",))
        observed = "Requests that went up unchanged, being only observed, and would have been changed."
        self._observed = counter("observed", observed, registry, labels=("provider",))
        preventable = "Refusals of observed requests that would have been prevented."
        self._preventable = counter("refusals_preventable", preventable, registry, labels=("provider",))
        handoffs = "Conversations of a route that went on with another target."
        self._handoffs = counter("handoffs", handoffs, registry, labels=("route", "checkpoints"))
        self._added = counter("checkpoint_chars", "Characters of checkpoints sent.", registry, labels=("route",))
        self._own = Histogram(
            "thoughtline_own_seconds", "Time spent here.", ("format",), buckets=OWN_BUCKETS, registry=registry
        )
        self._upstream = Histogram(
            "thoughtline_upstream_seconds",
            "Time spent waiting for providers, to the end of the response.",
            ("provider",),
            buckets=UPSTREAM_BUCKETS,
            registry=registry,
        )
        self._late = counter("store_late", "Saves that took longer than the end of their turn was held.", registry)
        self._served: dict[tuple[str, str, int], tuple[Add, Add, Add]] = {}
        self._done: dict[tuple[str, str], Add] = {}
        self._uncounted: dict[str, list[int]] = {}

    def count(self, line: Line) -> None:
        """Count a finished request."""
        key = (line.provider, line.format, line.status // 100)
        served = self._served.get(key)
        if served is None:
            served = self._served[key] = self._adders(*key)
        count, own, upstream = served
        count(1)
        own(line.own_ms / 1000)
        if line.upstream_ms:
            upstream(line.upstream_ms / 1000)
        for outcome, number in zip(OUTCOMES, _numbers(line), strict=True):
            if number:
                add = self._done.get((line.provider, outcome)) or self._outcome(line.provider, outcome)
                add(number)
        if line.input_tokens:
            known = self._uncounted.get(line.provider) or [0, 0, 0]
            known[0] += line.input_tokens
            known[1] += line.cached_tokens
            known[2] += line.reasoning_tokens
            self._uncounted[line.provider] = known
        if line.avoided:
            self._avoided.labels(line.provider).inc()
        if line.would:
            self._observed.labels(line.provider).inc()
        if line.preventable:
            self._preventable.labels(line.provider).inc()
        if line.handoff and line.status == 200:
            self._handoffs.labels(line.via, "with" if line.checkpoints else "without").inc()
        if line.late:
            self._late.inc(line.late)
        if line.added_chars:
            self._added.labels(line.via).inc(line.added_chars)

    def _outcome(self, provider: str, outcome: str) -> Add:
        add = self._done[provider, outcome] = self._outcomes.labels(provider, outcome).inc
        return add

    def add_tokens(self) -> None:
        """Add the tokens of requests since the last call, before a page is made."""
        counted, self._uncounted = self._uncounted, {}
        for provider, numbers in counted.items():
            for kind, number in zip(_TOKENS, numbers, strict=True):
                self._tokens.labels(provider, kind).inc(number)

    def _adders(self, provider: str, format: str, status: int) -> tuple[Add, Add, Add]:
        return (
            self._requests.labels(provider, format, f"{status}xx" if status else "none").inc,
            self._own.labels(format).observe,
            self._upstream.labels(provider).observe,
        )


def counter(name: str, about: str, registry: CollectorRegistry, *, labels: tuple[str, ...] = ()) -> Counter:
    return Counter(f"thoughtline_{name}", about, labels, registry=registry)


class _JournalHandler(logging.Handler):
    """Writes warnings of the program itself to the log, in its format."""

    def __init__(self, journal: Journal) -> None:
        super().__init__(logging.WARNING)
        self._journal = journal

    def emit(self, record: logging.LogRecord) -> None:
        self._journal.say(record.levelname.lower(), self.format(record))


def log_into(journal: Journal) -> None:
    """Write warnings of this process to its log instead of separate lines."""
    ours = logging.getLogger("thoughtline")
    for handler in [one for one in ours.handlers if isinstance(one, (_JournalHandler, logging.NullHandler))]:
        ours.removeHandler(handler)
    ours.addHandler(_JournalHandler(journal))
