"""Messages between processes on a shared store: key usage, open breakers, keys put aside, and requests for listeners.

    FleetCounts, Breakers, KeyRing ── facts, gathered for a moment ──▶ Channel ──▶ the same of every other process
    Journal ── rows ──▶ Channel ──▶ those with listeners

No process waits for another, and messages are not stored: a process that joins, or comes back, greets, and every other
one sends it everything it knows. While the store can't be reached, each process uses what it knows itself.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from typing import Annotated, TypeAlias

import msgspec
from msgspec import Meta, Struct

from thoughtline.engine.capture import log_problem
from thoughtline.failover.breakers import PROBE_SECONDS, Breaker
from thoughtline.failover.failures import LONGEST_PAUSE_SECONDS
from thoughtline.failover.health import TargetHealth
from thoughtline.gateway.admin.request_answers import RequestRow
from thoughtline.gateway.bus import MAX_ROWS_WAITING, StoreCounts, StoreTotals, parts_of, worker_name
from thoughtline.gateway.fleet_counts import Count, FleetCounts, HeldFact, RequestsFact
from thoughtline.gateway.journal import Journal
from thoughtline.stores import Channel, Clock
from thoughtline.stores.base import Counters
from thoughtline.stores.packing import Packer
from thoughtline.values.errors import StoreError, StoreUnavailable, ThoughtlineError

log = logging.getLogger(__name__)

NEWS, ROWS = "news", "rows"
GATHER_SECONDS = 0.1
FEW = 10
"""With more other processes than this, each gathers for longer, so that traffic grows with their number, not with its
square."""

HEARTBEAT_SECONDS = 5.0
SILENT_SECONDS = 15.0
"""A process silent for this long is gone; one that has not even received its own messages is cut off."""

FIRST_PAUSE_SECONDS, LAST_PAUSE_SECONDS = 0.5, 5.0
MAX_IGNORED = 64
_HEAD_BYTES = 512
"""Maximum size of a message apart from its facts or rows."""


MAX_APART_SECONDS = 60.0
"""Maximum age of a message, by the clocks of both: one that was recorded and sent again much later is ignored."""

Pause: TypeAlias = Annotated[float, Meta(ge=0, le=LONGEST_PAUSE_SECONDS)]


class BreakerFact(Struct, frozen=True, array_like=True, tag="breaker"):
    """A breaker that has opened, is being tried, or, with no openings, has closed. Times are relative to now."""

    target: str
    failures: Count = 0
    openings: Count = 0
    open_seconds: Pause = 0.0
    probe_seconds: Annotated[float, Meta(ge=0, le=PROBE_SECONDS)] = 0.0


class AsideFact(Struct, frozen=True, array_like=True, tag="aside"):
    """A provider's key is not used for this long; 0: it is good again. Its name is a digest."""

    name: str
    seconds: Pause


Fact: TypeAlias = RequestsFact | HeldFact | BreakerFact | AsideFact


class News(Struct, frozen=True, omit_defaults=True):
    """A message. `at` is when it was sent. `greets` asks the others for everything they know; `is_whole`: it replaces
    everything this process has sent before.

    `listens`: a client follows the requests there. `resets` makes all processes reset their counts.
    """

    worker: str
    counts: StoreCounts
    at: float = 0.0
    facts: tuple[Fact, ...] = ()
    greets: bool = False
    leaves: bool = False
    is_whole: bool = False
    listens: bool = False
    resets: bool = False


class Rows(Struct, frozen=True, omit_defaults=True):
    """Requests of a worker. `lost` earlier ones are missing."""

    worker: str
    rows: tuple[RequestRow, ...] = ()
    lost: Annotated[int, Meta(ge=0)] = 0


class Fleet:
    """One of the processes that share a store."""

    def __init__(
        self,
        channel: Channel,
        packer: Packer,
        journal: Journal,
        *,
        counters: Counters,
        health: TargetHealth,
        clock: Clock,
    ) -> None:
        self._channel, self._packer, self._journal = channel, packer, journal
        self._totals, self._health, self._clock = StoreTotals(counters), health, clock
        self.name = worker_name()
        self.key_counts = FleetCounts()
        self.is_open = False
        self._task: asyncio.Task[None] | None = None
        self._wake = asyncio.Event()
        self._heard_at: dict[str, float] = {}
        self._listening: set[str] = set()
        self._ignored: set[str] = set()
        self._targets: set[str] = set()
        self._keys: set[str] = set()
        self._rows: list[bytes] = []
        self._lost = 0
        self._greets = self._tells_all = self._resets = self._follows_rows = self._has_warned = False
        self._pause = FIRST_PAUSE_SECONDS
        self._encode = msgspec.json.Encoder().encode
        self._news, self._row_messages = msgspec.json.Decoder(News), msgspec.json.Decoder(Rows)

    @property
    def counts(self) -> StoreCounts:
        """The counts of all processes, as far as they have reported them."""
        return self._totals.all

    @property
    def others(self) -> int:
        """The number of other processes."""
        return len(self._heard_at)

    def open(self) -> None:
        """Join the others as soon as possible, and again whenever the store is back."""
        self._journal.pass_on(self.send_row)
        self._journal.on_listening = self._wake.set
        self.key_counts.on_change = self._wake.set
        self._health.breakers.on_change = self._note_target
        self._health.keys.on_change = self._note_key
        self._task = asyncio.ensure_future(self._live())

    async def close(self) -> None:
        if self._task is None:
            return
        self._task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self._task
        if self.is_open:
            with contextlib.suppress(StoreError):
                await self._publish(NEWS, self._encode(News(self.name, StoreCounts(), self._clock(), leaves=True)))
        self.is_open = False
        await self._channel.close()

    def report_counts(self) -> None:
        """Report the counts soon."""
        self._wake.set()

    def reset_counts(self) -> None:
        """Reset the counts of all processes."""
        self._totals.begin_anew()
        self._resets = True
        self._wake.set()

    def send_row(self, row: RequestRow) -> None:
        """Send a row, together with others of the same moment, to the processes with listeners."""
        if not self._listening:
            return
        row_bytes = self._encode(row)
        if len(self._rows) >= MAX_ROWS_WAITING or len(row_bytes) > self._most_bytes:
            self._lost += 1
        else:
            self._rows.append(row_bytes)
        self._wake.set()

    @property
    def _most_bytes(self) -> int:
        return self._channel.max_bytes - _HEAD_BYTES

    def _note_target(self, target: str) -> None:
        self._targets.add(target)
        self._wake.set()

    def _note_key(self, name: str) -> None:
        self._keys.add(name)
        self._wake.set()

    async def _live(self) -> None:
        while True:
            try:
                await self._talk()
            except StoreError as error:
                self._go_deaf(error)
            except Exception as problem:  # any error: without this loop, the process would count alone forever
                log_problem("what other replicas say could not be heard", problem)
                self._go_deaf(problem)
            await asyncio.sleep(self._pause)
            self._pause = min(2 * self._pause, LAST_PAUSE_SECONDS)

    async def _talk(self) -> None:
        """Send and receive until one of them fails."""
        await self._channel.open()
        await self._channel.follow(NEWS)
        self._follows_rows, self._greets, self._tells_all = False, True, True
        try:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(self._receive_all())
                tasks.create_task(self._speak())
        except ExceptionGroup as several:
            raise several.exceptions[0] from None

    def _go_deaf(self, problem: Exception) -> None:
        """Use a share of each limit from now on; breakers and keys stay as they are."""
        if self.is_open or not self._has_warned:
            log.warning("replicas can't hear each other, each takes its share of limits: %s", problem)
        self.is_open, self._has_warned = False, True
        self.key_counts.take_share(1 + self.others)

    async def _receive_all(self) -> None:
        while True:
            try:
                async with asyncio.timeout(SILENT_SECONDS):
                    topic, message = await self._channel.next()
            except TimeoutError:
                raise StoreUnavailable("nothing was heard, not even our own") from None
            self._receive(topic, message)

    def _receive(self, topic: str, message: bytes) -> None:
        try:
            body = self._packer.unseal(message, topic.encode())
            if topic == ROWS:
                batch = self._row_messages.decode(body)
                if batch.worker != self.name:
                    self._journal.receive(batch.rows, batch.lost)
            else:
                self._receive_news(self._news.decode(body))
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, ThoughtlineError):
            return  # from a process of another version, or with another key

    def _receive_news(self, news: News) -> None:
        if news.worker == self.name:
            self._come_back()
            return
        if abs(self._clock() - news.at) > MAX_APART_SECONDS:
            self._ignore(news.worker)
            return
        if news.leaves:
            self._lose(news.worker)
            return
        now = time.monotonic()
        self._heard_at[news.worker] = now
        if news.resets:
            self._totals.begin_anew()
        self._totals.update(news.worker, news.counts)
        if news.is_whole:
            self.key_counts.forget(news.worker)
        self.key_counts.receive(
            news.worker, [one for one in news.facts if isinstance(one, RequestsFact | HeldFact)], now
        )
        self._adopt(news.facts)
        (self._listening.add if news.listens else self._listening.discard)(news.worker)
        self._journal.note_listeners(are_elsewhere=bool(self._listening))
        if news.greets:
            self._tells_all = True
            self._wake.set()

    def _ignore(self, worker: str) -> None:
        """Ignore messages that are too old or too new, and log this once for each sender."""
        if worker not in self._ignored and len(self._ignored) < MAX_IGNORED:
            self._ignored.add(worker)
            log.warning("what the replica %.40s says is not of now: are the clocks of all machines right?", worker)

    def _come_back(self) -> None:
        """Our own message came back, so the others receive them too."""
        if not self.is_open:
            if self._has_warned:
                log.warning("replicas hear each other again")
            self.is_open, self._pause = True, FIRST_PAUSE_SECONDS
            self.key_counts.rejoin()

    def _adopt(self, facts: tuple[Fact, ...]) -> None:
        now = self._clock()
        for fact in facts:
            if isinstance(fact, BreakerFact):
                probe_until = now + fact.probe_seconds if fact.probe_seconds else 0.0
                breaker = Breaker(
                    fact.failures, fact.openings, open_until=now + fact.open_seconds, probe_until=probe_until
                )
                self._health.breakers.adopt(fact.target, breaker)
            elif isinstance(fact, AsideFact):
                self._health.keys.adopt(fact.name, now + fact.seconds if fact.seconds else 0.0)

    def _lose(self, worker: str) -> None:
        self._heard_at.pop(worker, None)
        self._totals.forget(worker)
        self.key_counts.lose(worker)
        self._listening.discard(worker)
        self._journal.note_listeners(are_elsewhere=bool(self._listening))

    async def _speak(self) -> None:
        while True:
            await self._follow_rows()
            await self._send_news()
            await self._send_rows()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(HEARTBEAT_SECONDS):
                    await self._wake.wait()
            await asyncio.sleep(GATHER_SECONDS * max(1.0, self.others / FEW))
            self._wake.clear()
            self._clean()

    def _clean(self) -> None:
        now = time.monotonic()
        self.key_counts.clean(now)
        for worker in [name for name, at in self._heard_at.items() if at < now - SILENT_SECONDS]:
            self._lose(worker)

    async def _follow_rows(self) -> None:
        """Subscribe to others' requests while there are listeners here, and only then."""
        wants_rows = self._journal.listeners > 0
        if wants_rows != self._follows_rows:
            await (self._channel.follow if wants_rows else self._channel.leave)(ROWS)
            self._follows_rows = wants_rows

    async def _send_news(self) -> None:
        is_whole, greets, resets = self._tells_all, self._greets, self._resets
        facts = self._facts(is_whole=is_whole)
        self._tells_all = self._greets = self._resets = False
        for part in parts_of([self._encode(fact) for fact in facts], self._most_bytes):
            listens = self._journal.listeners > 0
            news = News(
                self.name,
                self._totals.own,
                self._clock(),
                greets=greets,
                is_whole=is_whole,
                listens=listens,
                resets=resets,
            )
            await self._publish(NEWS, _with_list(self._encode(news), b"facts", part))
            is_whole = greets = resets = False

    async def _send_rows(self) -> None:
        rows, self._rows = self._rows, []
        lost, self._lost = self._lost, 0
        for part in parts_of(rows, self._most_bytes) if rows or lost else ():
            await self._publish(ROWS, _with_list(self._encode(Rows(self.name, lost=lost)), b"rows", part))
            lost = 0

    async def _publish(self, topic: str, body: bytes) -> None:
        await self._channel.publish(topic, self._packer.seal(body, topic.encode()))

    def _facts(self, *, is_whole: bool) -> list[Fact]:
        monotonic, now = time.monotonic(), self._clock()
        targets, names = self._targets, self._keys
        self._targets, self._keys = set(), set()
        if is_whole:
            targets.update(name for name in self._health.breakers.known if self._is_open_or_tried(name, now))
            names.update(name for name, until in self._health.keys.aside.items() if until > now)
        counted = self.key_counts.everything(monotonic) if is_whole else self.key_counts.news()
        breakers = [self._breaker_fact(target, now) for target in targets]
        aside = [AsideFact(name, max(0.0, self._health.keys.aside.get(name, 0.0) - now)) for name in names]
        return [*counted, *breakers, *aside]

    def _is_open_or_tried(self, target: str, now: float) -> bool:
        breaker = self._health.breakers.get(target)
        return max(breaker.open_until, breaker.probe_until) > now

    def _breaker_fact(self, target: str, now: float) -> BreakerFact:
        breaker = self._health.breakers.get(target)
        return BreakerFact(
            target,
            breaker.failures,
            breaker.openings,
            open_seconds=max(0.0, breaker.open_until - now),
            probe_seconds=max(0.0, breaker.probe_until - now),
        )


def _with_list(message: bytes, name: bytes, members: list[bytes]) -> bytes:
    """Add a list of encoded members to a message that is an object."""
    return message[:-1] + b',"%b":[%b]}' % (name, b",".join(members)) if members else message
