"""What is measured of each contender: one row of the table each, in one round.

Requests that restore turns are asked of contenders that have heard these turns; that all reasoning arrives at the
upstream is verified once.
"""

from __future__ import annotations

import asyncio
import statistics
from collections.abc import Awaitable, Callable, Iterator
from functools import partial
from typing import NamedTuple

import msgspec

from bench.load.bodies import CONVERSATIONS, MODEL, Conversation, reasoning_in, request, tools
from bench.load.client import HEADERS, Answer, ask_many, ask_once, connect, get, open_many, post
from bench.load.contenders import CHAT_PATH, MESSAGES_PATH, Kind, Process
from bench.load.messages import messages_template
from bench.load.sessions import MESSAGES, Edit, Kept, Session, thoughts_in
from bench.load.tables import Size
from bench.load.usage import cpu_seconds, resident_bytes

PLAIN, TWO, TURNS, LONG = CONVERSATIONS
PAUSE_SECONDS = 11.0
"""Longer than memory trusts what it has found (`trust_seconds`), as the pauses of an agent are."""
_STEPS = 10
"""Requests of a session that are measured when it has its length."""
_SESSIONS = 5
"""Sessions side by side, where each waits for eleven seconds between two requests."""

TOOLS = 400
EDITS: dict[Edit, str] = {
    "cleared": "old results cleared",
    "clock": "a clock in the first message",
    "window": "a sliding window",
    "edited": "one turn edited",
}

Make = Callable[[int], bytes]


class Contender(NamedTuple):
    """Whose turn it is. `kind` is missing for the upstream itself."""

    kind: Kind | None
    process: Process

    @property
    def name(self) -> str:
        return self.process.name

    @property
    def share(self) -> float:
        return self.kind.share if self.kind else 1.0


class Load:
    """One upstream, and what is asked of those before it."""

    def __init__(self, size: Size, upstream: Process) -> None:
        self.size = size
        self._upstream = upstream
        self._sent = 0
        self._sessions = 0
        self._open: dict[str, list[tuple[Session, int]]] = {}

    async def set(self, what: str) -> Answer:
        return await ask_once(self._upstream.port, get(f"/bench/{what}"))

    def maker(self, kind: Kind | None, conversation: Conversation, is_streaming: bool = False) -> Make:
        """Requests in the client's format, no two of them the same."""
        path = kind.path if kind else CHAT_PATH
        headers = HEADERS + (kind.headers if kind else "").replace("UPSTREAM", str(self._upstream.port)).encode()
        template_of = messages_template if path == MESSAGES_PATH else Conversation.template
        template = template_of(conversation, is_streaming).asking(kind.model if kind else MODEL)

        def make(_: int) -> bytes:
            self._sent += 1
            return post(template.numbered(self._sent), path, headers)

        return make

    # --- before anything is measured ----------------------------------------------------------------------------------

    async def prepare(self, one: Contender, conversation: Conversation | None) -> None:
        """Let it hear a conversation, and see that it does what it should."""
        kind = one.kind
        if kind is None or kind.translates or not kind.is_chat:
            await self.set("mode/whole")
            await ask_once(one.process.port, self.maker(kind, PLAIN)(0))
            return
        if conversation is None or not kind.hears:
            return
        await self.set("mode/turns")
        for turns in range(conversation.turns):
            await ask_once(one.process.port, post(request(conversation, turns), CHAT_PATH))
        if kind.restores:
            await self._verify(one, conversation)

    async def _verify(self, one: Contender, conversation: Conversation) -> None:
        """All turns come back at the upstream, and the answer says so."""
        await self.set("mode/check")
        answer = await ask_once(one.process.port, self.maker(one.kind, conversation)(0))
        told = answer.headers.get(b"x-thoughtline-replay", b"").decode()
        if not told.startswith(f"restored={conversation.turns},"):
            raise SystemExit(f"{one.name} does not restore {conversation.name}: {told!r}")
        wanted = [conversation.thought(number) for number in range(conversation.turns)]
        if reasoning_in((await self.set("last")).body) != wanted:
            raise SystemExit(f"{one.name} says it restored {conversation.name}, and the upstream did not get it")

    # --- rows ---------------------------------------------------------------------------------------------------------

    async def many_tools(self, one: Contender) -> float:
        """CPU µs of a request that offers many tools."""
        few, many = (_offered(one.kind, count) for count in (1, TOOLS))
        make = self.maker(one.kind, PLAIN)
        count = max(20, int(self.size.requests * one.share * 0.25))
        await self.set("mode/whole")
        asked = [_with_body(make(number), few, many) for number in range(count + 20)]
        await ask_many(one.process.port, lambda number: asked[number], 20, 1)
        before = cpu_seconds(one.process.pid)
        await ask_many(one.process.port, lambda number: asked[number + 20], count, 1)
        return (cpu_seconds(one.process.pid) - before) / count * 1e6

    async def requests(self, one: Contender, conversation: Conversation, connections: int) -> float:
        """CPU µs of a request."""
        weight = 0.25 if conversation == LONG or connections == 1 else 1.0
        count = max(20, int(self.size.requests * one.share * weight))
        make = self.maker(one.kind, conversation)
        await self.set("mode/whole")
        await ask_many(one.process.port, make, min(count, 100), connections)
        before = cpu_seconds(one.process.pid)
        await ask_many(one.process.port, make, count, connections)
        return (cpu_seconds(one.process.pid) - before) / count * 1e6

    async def chunks(self, one: Contender) -> float:
        """CPU µs of a chunk."""
        streams = max(10, int(self.size.streams * min(1.0, one.share * 10)))
        await self.set(f"stream/{self.size.chunks}")
        await self.set("mode/stream")
        make = self.maker(one.kind, PLAIN, is_streaming=True)
        before = cpu_seconds(one.process.pid)
        await ask_many(one.process.port, make, streams, streams)
        return (cpu_seconds(one.process.pid) - before) / (streams * self.size.chunks) * 1e6

    async def first_byte(self, one: Contender, conversation: Conversation) -> float:
        """Milliseconds, one request at a time."""
        await self.set("stream/3")
        await self.set("mode/stream")
        make = self.maker(one.kind, conversation, is_streaming=True)
        times = await ask_many(one.process.port, make, max(10, int(self.size.first_bytes * min(1.0, one.share * 5))), 1)
        return statistics.median(times) * 1000

    async def memory(self, one: Contender) -> float:
        """kB of an open stream that stands still."""
        count = max(50, int(self.size.open_streams * min(1.0, one.share * 10)))
        await self.set("mode/whole")
        await ask_many(one.process.port, self.maker(one.kind, PLAIN), 50, 10)
        await self.set("mode/idle")
        before = resident_bytes(one.process.pid)
        opened = await open_many(one.process.port, self.maker(one.kind, PLAIN, is_streaming=True), count)
        await asyncio.sleep(0.5)
        grown = resident_bytes(one.process.pid) - before
        for connection in opened:
            connection.close()
        return grown / count / 1000

    async def translated(self, one: Contender, *, keeps_thinking: bool) -> float:
        """The same of a session whose client and provider have different formats."""
        self._sessions += 1
        session = Kept(f"session {self._sessions}", keeps_thinking=keeps_thinking)
        await self.set("mode/session")
        connection = await connect(one.process.port)
        spent = 0.0
        try:
            while session.turns < MESSAGES // 2 + _STEPS:
                asked = post(session.request(), MESSAGES_PATH)
                before = cpu_seconds(one.process.pid)
                answer = await connection.ask(asked)
                spent += cpu_seconds(one.process.pid) - before if session.turns >= MESSAGES // 2 else 0.0
                session.hear(answer.body)
        finally:
            connection.close()
        kept = thoughts_in((await self.set("last")).body)
        if one.kind is not None and one.kind.translates and not all(kept):
            raise SystemExit(f"{one.name} did not restore a translated session of {MESSAGES} messages")
        return spent / _STEPS * 1e6

    async def session(self, one: Contender, *, is_chat: bool, edit: Edit = "") -> float:
        """CPU µs of a request of a session that has grown to its length, and grows on."""
        session, turns = await self._grown(one, is_chat=is_chat, edit=edit)
        return await self._go_on(one, session, range(turns, turns + _STEPS)) / _STEPS * 1e6

    async def open_sessions(self, one: Contender) -> None:
        """Sessions that have grown to their length, and then wait."""
        self._open[one.name] = [await self._grown(one, is_chat=True) for _ in range(_SESSIONS)]

    async def after_pause(self, one: Contender) -> float:
        """CPU µs of the next request of each open session."""
        spent = 0.0
        for at, (session, turns) in enumerate(self._open[one.name]):
            spent += await self._go_on(one, session, range(turns, turns + 1))
            self._open[one.name][at] = (session, turns + 1)
        return spent / _SESSIONS * 1e6

    async def _grown(self, one: Contender, *, is_chat: bool, edit: Edit = "") -> tuple[Session, int]:
        self._sessions += 1
        session, turns = Session(f"session {self._sessions}", is_chat, edit), MESSAGES // 2
        await self._go_on(one, session, range(turns))
        kept = thoughts_in((await self.set("last")).body)
        wanted = [session.thought(number) for number in range(turns - 1)][-len(kept) :]
        if edit == "edited":
            kept[1] = wanted[1]  # it no longer shows what the model said
        if one.kind is not None and one.kind.restores and kept != wanted:
            raise SystemExit(f"{one.name} did not restore a session of {MESSAGES} messages")
        return session, turns

    async def _go_on(self, one: Contender, session: Session, turns: range) -> float:
        """Seconds of CPU for these turns, one after the other over one connection."""
        await self.set("mode/session")
        path = CHAT_PATH if session.is_chat else MESSAGES_PATH
        connection = await connect(one.process.port)
        spent = 0.0
        try:
            for number in turns:
                asked = post(session.request(number), path)
                before = cpu_seconds(one.process.pid)
                await connection.ask(asked)
                spent += cpu_seconds(one.process.pid) - before
        finally:
            connection.close()
        return spent


def _offered(kind: Kind | None, count: int) -> bytes:
    """So many tools, as a client of this contender offers them; one is as in the usual request."""
    made = [{**tool, "name": f"{tool['name']}{at or ''}"} for at in range(count) for tool in tools()]
    if kind is None or kind.is_chat:
        return msgspec.json.encode([{"type": "function", "function": tool} for tool in made])
    return msgspec.json.encode([{"name": tool["name"], "input_schema": tool["parameters"]} for tool in made])


def _with_body(request: bytes, few: bytes, many: bytes) -> bytes:
    head, _, body = request.partition(b"\r\n\r\n")
    body = body.replace(few, many)
    return b"%b\r\ncontent-length: %d\r\n\r\n%b" % (head.rpartition(b"\r\ncontent-length")[0], len(body), body)


class Row(NamedTuple):
    """One line of figures. `conversation` is what contenders must have heard; `pause` is waited for before a round."""

    key: str
    unit: str
    name: str
    measure: Callable[[Load, Contender], Awaitable[float]]
    conversation: Conversation | None = None
    pause: float = 0.0
    rounds: int = 0
    prepare: Callable[[Load, Contender], Awaitable[None]] | None = None


_REQUEST = "CPU µs per request"


def _asked(key: str, conversation: Conversation, connections: int) -> Row:
    name = f"{conversation.name}, {connections} connection{'s' if connections > 1 else ''}"
    return Row(key, _REQUEST, name, lambda load, one: load.requests(one, conversation, connections), conversation)


def _first(key: str, conversation: Conversation) -> Row:
    return Row(
        key, "first byte, ms", conversation.name, lambda load, one: load.first_byte(one, conversation), conversation
    )


def _memory(key: str, name: str) -> Row:
    return Row(key, "kB per open stream", name, Load.memory, rounds=1)


ROWS: tuple[Row, ...] = (
    _memory("memory", "plain"),
    _memory("memory-tls", "TLS"),
    _asked("plain", PLAIN, 32),
    _asked("one", PLAIN, 1),
    _asked("turns-2", TWO, 32),
    _asked("turns", TURNS, 32),
    _asked("long", LONG, 16),
    Row(
        "session",
        _REQUEST,
        f"chat, {MESSAGES} messages, all stripped, a growing session",
        lambda load, one: load.session(one, is_chat=True),
    ),
    Row(
        "pauses",
        _REQUEST,
        f"the same, with pauses of {PAUSE_SECONDS:.0f} s",
        Load.after_pause,
        pause=PAUSE_SECONDS,
        prepare=Load.open_sessions,
    ),
    Row(
        "marks",
        _REQUEST,
        f"Messages, {MESSAGES} messages, nothing lost, the cache mark moves",
        lambda load, one: load.session(one, is_chat=False),
    ),
    *(
        Row(edit, _REQUEST, f"chat, {MESSAGES} messages, {what}", partial(Load.session, is_chat=True, edit=edit))
        for edit, what in EDITS.items()
    ),
    Row(
        "translated",
        _REQUEST,
        f"Messages to chat, {MESSAGES} messages, thinking lost",
        partial(Load.translated, keeps_thinking=False),
    ),
    Row(
        "translated-kept",
        _REQUEST,
        f"Messages to chat, {MESSAGES} messages, thinking sent back",
        partial(Load.translated, keeps_thinking=True),
    ),
    Row("tools", _REQUEST, f"4 kB and {TOOLS} tools, 1 connection", Load.many_tools),
    Row("chunk", "CPU µs per chunk", "chunk of 215 bytes, 5 ms apart", Load.chunks),
    _first("first-byte", PLAIN),
    _first("first-byte-turns", TURNS),
)


def chosen(keys: list[str]) -> Iterator[Row]:
    """The rows of these names, or all."""
    unknown = set(keys) - {row.key for row in ROWS}
    if unknown:
        raise SystemExit(f"no such rows: {', '.join(sorted(unknown))}; there are {', '.join(row.key for row in ROWS)}")
    yield from (row for row in ROWS if not keys or row.key in keys)
