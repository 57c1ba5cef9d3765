"""One provider, wanted with one key: what it answers, what that cost, and no more than a budget."""

from __future__ import annotations

import asyncio
from typing import NamedTuple

from thoughtline.destinations.addresses import address, with_query_key
from thoughtline.destinations.catalogue import Provider, Timeouts
from thoughtline.formats import FORMATS
from thoughtline.gateway.connecting import ConnectFailed
from thoughtline.gateway.headers import request_headers
from thoughtline.gateway.http_client import HttpClient, UpstreamCut
from thoughtline.providers.dialects import Dialect
from thoughtline.values.destination import Destination
from thoughtline.values.errors import Declined, ThoughtlineError
from thoughtline.values.events import fold
from thoughtline.values.items import Item
from thoughtline.values.turns import Reply, Usage

MAX_BYTES = 4 * 2**20
TRIES = 3
_PAUSE_SECONDS = 2.0
_LONGEST_PAUSE_SECONDS = 30.0
_TIMEOUTS = Timeouts(connect=10.0, first_byte=120.0, read=60.0, total=180.0)
_BUSY = frozenset({408, 425, 429, 500, 502, 503, 504, 529})


class BudgetSpent(Exception):
    """No token is left for another request."""


class Answer(NamedTuple):
    """What a provider said. `items` are the turn of the model, `carriers` the members in which its reasoning stood."""

    status: int
    body: bytes
    items: tuple[Item, ...] = ()
    carriers: tuple[str, ...] = ()
    usage: Usage = Usage()

    @property
    def is_accepted(self) -> bool:
        return self.status == 200


class Asker:
    """Sends requests and counts what they cost. Nothing that it knows is logged."""

    def __init__(self, provider: Provider, key: str, budget: int, *, pause_seconds: float = _PAUSE_SECONDS) -> None:
        self._provider = provider
        self._key = key
        self._pause = pause_seconds
        self._client = HttpClient()
        self.budget = budget
        self.tokens = 0
        self.requests = 0

    def close(self) -> None:
        self._client.close()

    async def ask(self, target: Destination, body: bytes, dialect: Dialect, *, is_streaming: bool = False) -> Answer:
        """The answer. Raises `BudgetSpent`, and `Declined` where there is none."""
        if self.tokens >= self.budget:
            raise BudgetSpent(f"the budget of {self.budget:,} tokens is spent")
        url = address(
            self._provider, target.format, target.model, is_streaming=is_streaming, action="generate", query=""
        )
        if self._provider.auth == "query":
            url = with_query_key(url, self._key)
        wire = FORMATS[target.format]
        own = [(b"content-type", b"application/json"), (b"user-agent", b"thoughtline"), *wire.headers]
        headers = request_headers(own, self._provider, self._key)
        status, raw = await self._sent(url, headers, body)
        self.requests += 1
        answer = _read(target, status, raw, dialect, is_streaming=is_streaming)
        spent = answer.usage.input + answer.usage.output
        self.tokens += spent or len(body) // 4
        return answer

    async def _sent(self, url: str, headers: list[tuple[str, str]], body: bytes) -> tuple[int, bytes]:
        """Sent again where the provider is busy, after the pause that it asks for."""
        for attempt in range(1, TRIES + 1):
            try:
                response = await self._client.send("POST", url, headers, body, timeouts=_TIMEOUTS)
                raw = b""
                while (piece := await response.read()) is not None and len(raw) < MAX_BYTES:
                    raw += piece
                await response.close()
            except (ConnectFailed, UpstreamCut, TimeoutError) as error:
                problem = f"{self._provider.name} gave no answer: {error or 'it took too long'}."
                raise Declined(502, "no_answer", problem, "`thoughtline doctor` looks for the cause.") from None
            if response.status not in _BUSY or attempt == TRIES:
                return response.status, raw
            wanted = response.header("retry-after")
            pause = float(wanted) if wanted.replace(".", "", 1).isdigit() else self._pause * attempt
            await asyncio.sleep(min(pause, _LONGEST_PAUSE_SECONDS))
        raise AssertionError  # the last try returns


def _read(target: Destination, status: int, raw: bytes, dialect: Dialect, *, is_streaming: bool) -> Answer:
    """What an answer says. One that can't be read says nothing, and is shown as it came."""
    if status != 200:
        return Answer(status, raw)
    wire = FORMATS[target.format]
    try:
        if is_streaming:
            decoder = wire.stream_decoder(dialect)
            reply: Reply = fold([*decoder.feed(raw), *decoder.finish()], target.format)
        else:
            reply = wire.bodies.decode_response(raw, dialect)
    except ThoughtlineError:
        return Answer(status, raw)
    turn = reply.candidates[0].turn if reply.candidates else None
    usage = reply.usage or Usage()
    if turn is None:
        return Answer(status, raw, usage=usage)
    return Answer(status, raw, turn.items, turn.carriers, usage)
