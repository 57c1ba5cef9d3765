"""Finds out what the chat templates of self-hosted servers read (`replay/chat_templates.py`), and stores it as a
lesson.

A model is checked once an hour, starting with the first request with a restored turn: the request waits for it briefly,
and then continues without.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import msgspec

from thoughtline.destinations.catalogue import Provider
from thoughtline.engine.capture import log_problem
from thoughtline.engine.learned import Lessons
from thoughtline.formats import FORMATS
from thoughtline.gateway.headers import Headers, request_headers
from thoughtline.gateway.upstream import Upstreams
from thoughtline.replay.chat_templates import Question, TemplateReading, ask
from thoughtline.replay.refusals import Correction, Evidence
from thoughtline.stores import Clock
from thoughtline.values.destination import Destination
from thoughtline.values.errors import ThoughtlineError

if TYPE_CHECKING:
    from thoughtline.engine.replayer import Replayer
    from thoughtline.gateway.outgoing import AskedTarget
    from thoughtline.settings import ReplaySettings

WAIT_SECONDS = 0.5
ALL_SECONDS = 10.0
FRESH_SECONDS = 3600.0
RETRY_SECONDS = 60.0
MAX_ANSWER_BYTES = 2**20
MAX_MODELS = 256
"""Callers choose the names of models: no more than this are checked within an hour."""

_HEADERS: Headers = [(b"content-type", b"application/json")]


class Templates:
    """The models that were checked, until when the result is valid, and active checks."""

    def __init__(self, lessons: Lessons, upstreams: Upstreams, clock: Clock) -> None:
        self._lessons = lessons
        self._upstreams = upstreams
        self._clock = clock
        self._fresh_until: dict[Destination, float] = {}
        self._asking: dict[Destination, asyncio.Task[bool]] = {}
        self._slow: set[Destination] = set()

    async def learn(self, ask: AskedTarget, replayer: Replayer, settings: ReplaySettings) -> bool:
        """Check the model of a request, if it is due. Returns whether that taught something in time."""
        target = ask.destination
        where = Destination(target.provider, target.endpoint, target.model, target.format)
        task = self._asking.get(where)
        if task is None:
            if not settings.learn or "chat_templates" not in FORMATS[target.format].quirks or not self._is_due(where):
                return False
            server = _Server(ask.target.provider, ask.shown_key, self._upstreams)
            carrier = replayer.contract_for(target).dialect.carrier
            task = self._asking[where] = asyncio.create_task(self._ask(where, server, carrier))
            task.add_done_callback(lambda _: self._done(where))
        if where in self._slow:
            return False
        await asyncio.wait({task}, timeout=WAIT_SECONDS)
        if not task.done():
            self._slow.add(where)
        return task.done() and task.result()

    def _done(self, where: Destination) -> None:
        self._asking.pop(where, None)
        self._slow.discard(where)

    def _is_due(self, where: Destination) -> bool:
        now = self._clock()
        if self._fresh_until.get(where, 0.0) > now:
            return False
        if len(self._fresh_until) >= MAX_MODELS:
            self._fresh_until = {one: until for one, until in self._fresh_until.items() if until > now}
        if len(self._fresh_until) >= MAX_MODELS:
            return False
        self._fresh_until[where] = now + RETRY_SECONDS
        return True

    async def _ask(self, where: Destination, server: _Server, carrier: str) -> bool:
        """Check a model, store the result, and return whether there was one. A failure affects no request."""
        try:
            async with asyncio.timeout(ALL_SECONDS):
                reading = await _read(server, where.model, carrier)
            if reading is None:
                return False
            now = self._clock()
            self._fresh_until[where] = now + FRESH_SECONDS
            if reading.unread:
                await self._lessons.keep((_lesson(where, reading, now),), frozenset())
                return True
        except TimeoutError:
            pass
        except Exception as problem:
            log_problem("a chat template could not be asked for", problem)
        return False


class _Server:
    """A self-hosted server. Only our own paths are requested, below the address in settings."""

    def __init__(self, provider: Provider, key: str, upstreams: Upstreams) -> None:
        self.provider = provider
        self._headers = request_headers(_HEADERS, provider, key)
        self._upstreams = upstreams

    async def answer(self, question: Question) -> bytes:
        """Return the server's answer to a question; empty if it fails."""
        root = self.provider.base_url.rstrip("/").removesuffix("/v1")
        body = msgspec.json.encode(question.body)
        try:
            response = await self._upstreams.send(self.provider, "POST", f"{root}{question.path}", self._headers, body)
        except ThoughtlineError:
            return b""
        try:
            answer, is_whole = await response.read_all(MAX_ANSWER_BYTES)
        finally:
            await response.close()
        return answer if is_whole and response.status == 200 else b""


async def _read(server: _Server, model: str, carrier: str) -> TemplateReading | None:
    asking = ask(server.provider.template_at, model, carrier)
    try:
        question = next(asking)
        while True:
            question = asking.send(await server.answer(question))
    except StopIteration as end:
        reading: TemplateReading | None = end.value
        return reading


def _lesson(where: Destination, reading: TemplateReading, now: float) -> Correction:
    return Correction(
        where.provider,
        where.endpoint,
        where.model,
        change="renders",
        field=",".join(reading.unread),
        evidence=Evidence(200, "", ""),
        learned_at=now,
        expires_at=now + FRESH_SECONDS,
        rule=reading.switch,
    )
