"""Data to explain requests: the latest and the active ones, and figures of one day. In memory, bounded, lost with the
process.

A request costs a dictionary entry and a few references to objects that serving it made anyway; sentences are built on
demand. No credential is kept, and no content except a provider's refusals, and bodies if settings say so.
"""

from __future__ import annotations

import itertools
import time
from collections import deque
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, TypeAlias

from msgspec import Struct

from thoughtline.engine.capture import session_of
from thoughtline.gateway.asking import Asking, Replicas
from thoughtline.gateway.choosing import Target
from thoughtline.gateway.journal import Line
from thoughtline.gateway.masking import MASK
from thoughtline.providers import Contract
from thoughtline.replay.refusals import Correction, Refusal
from thoughtline.settings import Settings
from thoughtline.values.outcome import NoteChain

if TYPE_CHECKING:
    from thoughtline.gateway.proxy import Exchange

MAX_BODY = 512 * 2**10
"""Bytes of each body that are kept, if bodies are kept."""

_SHORTEST_SECRET = 8


class RefusalNote(Struct, frozen=True, gc=False):
    """A provider's error: `seconds` after the request began, its own words, and the refusal if it is about
    reasoning."""

    status: int
    seconds: float
    words: str
    code: str
    refusal: Refusal | None


class KeptBodies(Struct, frozen=True, gc=False):
    """What the client sent and what was sent last, without keys."""

    client: bytes
    upstream: bytes
    is_cut: bool


def kept_bodies(client: bytes, upstream: bytes, secrets: Iterable[str]) -> KeptBodies:
    """Return the beginnings of both, without these secrets."""
    for secret in secrets:
        if len(secret) >= _SHORTEST_SECRET:
            client, upstream = (body.replace(secret.encode(), MASK.encode()) for body in (client, upstream))
    return KeptBodies(client[:MAX_BODY], upstream[:MAX_BODY], max(len(client), len(upstream)) > MAX_BODY)


TokenCounts: TypeAlias = tuple[int, int, int, int]
"""Counts by the provider: input, output, reasoning (part of output), cached (part of input)."""


class AttemptNote(Struct, frozen=True, gc=False):
    """One attempt at a target. `contract` is the last one used, `corrections` are those that this request's refusals
    taught."""

    target: Target
    endpoint: str
    is_translated: bool
    status: int
    error: str
    started_seconds: float
    upstream_seconds: float
    bytes_up: int
    sends: int
    refusals: tuple[RefusalNote, ...]
    was_healed: bool
    contract: Contract | None
    corrections: tuple[Correction, ...]
    notes: NoteChain | None
    prepared_seconds: float | None = None
    look_up_seconds: float = 0.0


class Served(Struct, frozen=True, gc=False):
    """A request, finished or active. `message` is that of our own error; `user_agent` and `path` are as received.
    `caller` is the name of its client key."""

    line: Line
    is_over: bool
    began_at: float
    seconds: float
    first_byte_seconds: float | None
    path: str
    user_agent: str
    client_key: str
    caller: str
    message: str
    tokens: TokenCounts | None
    attempts: tuple[AttemptNote, ...]
    ended_seconds: float | None = None
    end_seconds: float = 0.0
    save_seconds: float = 0.0

    @property
    def id(self) -> str:
        return self.line.request

    @property
    def refusal(self) -> str:
        """The last error text, by us or a provider, if it was refused, even if it was healed later."""
        words = [one.words for attempt in self.attempts for one in attempt.refusals]
        return self.message or (words[-1] if words else "")


# --- the value that explains an exchange, built on demand -------------------------------------------------------------

_MAX_PATH = 300
_MAX_AGENT = 200


def served_of(exchange: Exchange, *, is_over: bool = False) -> Served:
    """Return everything known about an exchange so far."""
    incoming, relay = exchange.incoming, exchange.relay
    reader = relay.down.reader if relay is not None else None
    usage = reader.watch.usage if reader is not None and reader.watch is not None else None
    tokens = (usage.input, usage.output, usage.reasoning, usage.cached) if usage is not None else None
    line, key = _line(exchange, reader.note if reader is not None else "", tokens), incoming.caller.key
    seconds = time.perf_counter() - incoming.began
    notes = []
    for attempt in exchange.attempts:
        ask, log = attempt.ask, attempt.log
        note = AttemptNote(
            ask.target,
            ask.destination.endpoint,
            ask.is_translated,
            status=log.status,
            error=log.error,
            started_seconds=log.started_at - incoming.began if log.started_at else 0.0,
            upstream_seconds=log.upstream_seconds,
            bytes_up=log.bytes_up,
            sends=log.sends,
            refusals=log.refusals,
            was_healed=log.was_healed,
            contract=log.contract,
            corrections=log.corrections,
            notes=log.notes,
            prepared_seconds=log.prepared_from - incoming.began if log.prepared_from else None,
            look_up_seconds=log.look_up_seconds,
        )
        notes.append(note)
    return Served(
        line,
        is_over,
        line.at - seconds,
        seconds=seconds,
        first_byte_seconds=relay.started_at - incoming.began if relay is not None and relay.started_at else None,
        path=incoming.scope["path"][:_MAX_PATH],
        user_agent=str(incoming.user_agent[:_MAX_AGENT], "latin-1"),
        client_key=key.id if key is not None else "",
        caller=key.name if key is not None else "",
        message=exchange.message,
        tokens=tokens,
        attempts=tuple(notes),
        ended_seconds=relay.ended_at - incoming.began if relay is not None and relay.ended_at else None,
        end_seconds=relay.end_seconds if relay is not None else 0.0,
        save_seconds=relay.save_seconds if relay is not None else 0.0,
    )


def _line(exchange: Exchange, note: str, tokens: TokenCounts | None) -> Line:
    """Return an exchange as its line in the journal. `note` is from the reader of its answer."""
    incoming, attempts, outcome, relay = exchange.incoming, exchange.attempts, exchange.outcome(), exchange.relay
    last, durable = (attempts[-1] if attempts else None), incoming.state.durable
    session = incoming.identity.session or (last.log.session if last is not None else None)
    if not session and last is not None and last.request.prepared is not None:
        session = session_of(last.request.prepared)  # its turns are stored under this name if the client names none
    rules = [rule for rule, _ in outcome.findings]
    is_degraded = exchange.is_degraded or not (durable is None or durable.is_settled)
    note = relay.unsaved or relay.problem or note if relay is not None else note
    return Line(
        **outcome.counted,
        at=incoming.state.clock(),
        request=outcome.request,
        tenant=incoming.caller.tenant,
        method=incoming.scope["method"],
        route=incoming.route.action,
        provider=last.ask.target.provider.name if last else "",
        format=incoming.route.format or "",
        model=last.ask.target.model if last else "",
        status=exchange.status,
        avoided=exchange.status == 200 and last is not None and last.log.was_saved_from_refusal,
        session=session,
        agent=incoming.identity.agent,
        is_streaming=last.request.is_streaming if last else incoming.route.is_streaming,
        via=outcome.route,
        handoff=outcome.handoff,
        added_chars=outcome.added_chars,
        findings=outcome.findings,
        captured=exchange.captured,
        dropped=rules.count("dropped"),
        withheld=rules.count("withheld"),
        input_tokens=tokens[0] if tokens is not None else 0,
        cached_tokens=tokens[3] if tokens is not None else 0,
        reasoning_tokens=tokens[2] if tokens is not None else 0,
        upstream_ms=outcome.upstream_ms,
        own_ms=outcome.own_ms,
        bytes_up=last.log.bytes_up if last and len(attempts) == 1 else sum([one.log.bytes_up for one in attempts]),
        bytes_down=relay.bytes_down if relay else 0,
        attempts=len(attempts),
        store="degraded" if is_degraded else "slow" if relay is not None and relay.late else "ok",
        late=relay.late if relay else 0,
        code=exchange.code,
        note=note or ("unread" if incoming.is_passed_on or (last is not None and last.log.problem is not None) else ""),
        **_verdict_and_mode(exchange),
    )


def _verdict_and_mode(exchange: Exchange) -> dict[str, Any]:
    """Return the members that few lines have: the verdict on a failure, and what was only observed."""
    members: dict[str, Any] = {} if exchange.verdict is None else {"verdict": str(exchange.verdict)}
    last = exchange.attempts[-1] if exchange.attempts else None
    if last is not None and last.ask.replay != "on":
        is_refused, would = any(one.refusal is not None for one in last.log.refusals), last.log.would
        members |= {"mode": last.ask.replay, "would": would, "preventable": bool(would) and is_refused}
    return members


# --- the latest requests ----------------------------------------------------------------------------------------------

MAX_REQUESTS = 1000
MAX_BYTES = 16 * 2**20
"""Approximate limit for the data of all requests, not counting bodies."""

_FIXED_BYTES = 2048
_NOTE_BYTES = 96

MAX_BODIES = 50
MAX_SEEN = 256
"""Clients and keys whose last use is known."""

STEP_SECONDS = 60
STEPS = 24 * 60
_STORE = {"ok": 0, "slow": 1, "degraded": 2}


class Recent:
    """Requests `under_way` by id, then finished ones by the order of their ends. `asking` and `replicas` have those of
    other processes."""

    def __init__(self, settings: Settings, worker: str) -> None:
        kept = settings.store
        self.asking = Asking(settings.bus_directory, worker)
        self.replicas = Replicas(worker, settings.store_url, (kept.encryption_key, kept.previous_encryption_key))
        self.under_way: dict[str, Exchange] = {}
        self._over: deque[tuple[Served, int]] = deque()
        self._bytes = self.ended = 0
        self._bodies: dict[str, KeptBodies] = {}
        self.series = DaySeries()
        self.started_at = int(time.time())
        self.agents: dict[str, float] = {}
        self.keys: dict[str, float] = {}

    def end(self, served: Served, bodies: KeptBodies | None = None) -> None:
        line, agents = served.line, self.agents
        self.under_way.pop(line.request, None)
        size = _FIXED_BYTES  # approximate
        for attempt in served.attempts:
            size += _NOTE_BYTES * len(attempt.notes.own) if attempt.notes is not None else 0
            for one in attempt.refusals:
                size += len(one.words)
        self._over.append((served, size))
        self.ended += 1
        self._bytes += size
        while len(self._over) > MAX_REQUESTS or (self._bytes > MAX_BYTES and len(self._over) > 1):
            self._bytes -= self._over.popleft()[1]
        self.series.count(line)
        if served.user_agent in agents:
            agents[served.user_agent] = line.at
        else:
            _see(agents, served.user_agent, line)
        if served.client_key:
            _see(self.keys, served.client_key, line)
        if bodies is not None:
            self._keep(line.request, bodies)

    def _keep(self, id: str, bodies: KeptBodies) -> None:
        self._bodies[id] = bodies
        if len(self._bodies) > MAX_BODIES:
            self._bodies.pop(next(iter(self._bodies)))

    def bodies_of(self, id: str) -> KeptBodies | None:
        return self._bodies.get(id)

    def all(self) -> Iterator[Served]:
        """Yield active requests, then finished ones, the last to end first."""
        for exchange in list(self.under_way.values()):
            yield served_of(exchange)
        for served, _ in reversed(self._over):
            yield served

    def newest(self, count: int) -> list[Served]:
        """Return those that ended last, in order."""
        return [served for served, _ in itertools.islice(reversed(self._over), count)][::-1]

    def find(self, id: str) -> Served | None:
        """Return a request by its id, or the latest one whose id begins with this text."""
        return next((served for served in self.all() if served.id.startswith(id)), None) if id else None


def _see(seen: dict[str, float], name: str, line: Line) -> None:
    if name not in seen and len(seen) >= MAX_SEEN:
        seen.pop(next(iter(seen)))
    seen[name] = line.at


# --- figures of a day, in steps: each is reset when its minute of the day comes again ---------------------------------


class StepSums(Struct, gc=False):
    """One step. `own_ms` and `upstream_ms` are sums; `store` is the worst status."""

    at: int
    requests: int = 0
    avoided: int = 0
    restored: int = 0
    missing: int = 0
    healed: int = 0
    refused: int = 0
    errors: int = 0
    own_ms: float = 0.0
    upstream_ms: float = 0.0
    store: int = 0

    def add(self, other: StepSums) -> None:
        for name in _SUMMED:
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.store = max(self.store, other.store)


_SUMMED = tuple(name for name in StepSums.__struct_fields__ if name not in ("at", "store"))


class DaySeries:
    """The steps of the last 24 hours with at least one request."""

    def __init__(self) -> None:
        self._steps: list[StepSums | None] = [None] * STEPS

    def count(self, line: Line) -> None:
        """Count a finished request."""
        number = int(line.at) // STEP_SECONDS
        step = self._steps[number % STEPS]
        if step is None or step.at != number * STEP_SECONDS:
            step = self._steps[number % STEPS] = StepSums(number * STEP_SECONDS)
        step.requests += 1
        step.avoided += line.avoided
        step.restored += line.restored
        step.missing += line.missing
        step.healed += line.healed
        if line.status >= 500 or (line.code and line.code != "client_gone"):
            step.errors += 1
        elif line.status >= 400:
            step.refused += 1
        step.own_ms += line.own_ms
        step.upstream_ms += line.upstream_ms
        if line.store != "ok":
            step.store = max(step.store, _STORE[line.store])

    def since(self, at: float) -> list[StepSums]:
        """Return the steps that began at this time or later, in no order."""
        return [step for step in self._steps if step is not None and step.at >= at]
