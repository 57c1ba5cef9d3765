"""A provider that costs next to nothing: `python -m bench.load.upstream PORT`.

It answers every POST by the mode it is in, which the benchmark sets over `GET /bench/...`:

    turns    reads the request and gives the turn that comes next in its conversation
    session  the same for a session (`sessions.py`)
    whole    one and the same answer
    stream   events, one each 5 ms
    idle     a few events, and then nothing
    check    one and the same answer, and `GET /bench/last` gives the request that was for

Paths that end in `messages` are answered in Anthropic's format, all others as chat; turns are chat's alone.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from typing import NamedTuple, cast

import httptools
import uvloop

from bench.load.bodies import LAST_ANSWER, answer_body, stream_events, turn_asked_for
from bench.load.messages import MESSAGES_ANSWER, messages_events
from bench.load.sessions import session_asked_for

PACE_SECONDS = 0.005
_BEGINNING = 4
"""Events after which a client of any format has something to show."""
_STREAM_HEAD = (
    b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncache-control: no-cache\r\n"
    b"transfer-encoding: chunked\r\n\r\n"
)


def _whole(body: bytes, kind: bytes = b"application/json") -> bytes:
    return b"HTTP/1.1 200 OK\r\ncontent-type: %b\r\ncontent-length: %d\r\n\r\n%b" % (kind, len(body), body)


def _chunk(data: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(data), data)


class Replies(NamedTuple):
    """What is answered in one format: whole, and in pieces."""

    whole: bytes
    pieces: list[bytes]


class Script:
    """What the benchmark wants of the provider at the moment."""

    def __init__(self) -> None:
        self.mode = "whole"
        self.last = b""
        self.set_stream(200)

    def set_stream(self, count: int) -> None:
        self.chat = Replies(_whole(LAST_ANSWER), [_chunk(event) for event in stream_events(count)])
        self.messages = Replies(_whole(MESSAGES_ANSWER), [_chunk(event) for event in messages_events(count)])

    def control(self, path: str) -> bytes:
        match path.split("/")[2:]:
            case ["mode", mode]:
                self.mode = mode
            case ["stream", count]:
                self.set_stream(int(count))
            case ["last"]:
                return self.last
            case _:
                pass
        return b"ok"


class Provider(asyncio.Protocol):
    """One connection."""

    def __init__(self, script: Script) -> None:
        self._script = script
        self._parser = httptools.HttpRequestParser(self)
        self._url = b""
        self._body: list[bytes] = []
        self._timer: asyncio.TimerHandle | None = None
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # uvloop's is none by its class

    def connection_lost(self, problem: Exception | None) -> None:
        self._transport = None
        if self._timer is not None:
            self._timer.cancel()

    def data_received(self, data: bytes) -> None:
        self._parser.feed_data(data)

    def on_url(self, url: bytes) -> None:
        self._url = url

    def on_body(self, body: bytes) -> None:
        self._body.append(body)

    def on_message_complete(self) -> None:
        url, body = self._url, self._body
        self._url, self._body = b"", []
        assert self._transport is not None
        if url.startswith(b"/bench/"):
            self._transport.write(_whole(self._script.control(url.decode()), b"text/plain"))
        else:
            replies = self._script.messages if url.endswith(b"messages") else self._script.chat
            self._answer(self._transport.write, body, replies)

    def _answer(self, write: Callable[[bytes], None], body: list[bytes], replies: Replies) -> None:
        match self._script.mode:
            case "turns":
                conversation, turns = turn_asked_for(b"".join(body))
                write(_whole(answer_body(conversation.answer(turns))))
            case "session":
                self._script.last = b"".join(body)
                session, number = session_asked_for(self._script.last)
                write(_whole(session.answer(number)))
            case "stream":
                write(_STREAM_HEAD + replies.pieces[0])
                self._later(replies.pieces, 1)
            case "idle":
                write(_STREAM_HEAD + b"".join(replies.pieces[:_BEGINNING]))
            case "check":
                self._script.last = b"".join(body)
                write(replies.whole)
            case _:
                write(replies.whole)

    def _later(self, pieces: list[bytes], number: int) -> None:
        self._timer = asyncio.get_running_loop().call_later(PACE_SECONDS, self._go_on, pieces, number)

    def _go_on(self, pieces: list[bytes], number: int) -> None:
        if self._transport is None:
            return
        if number < len(pieces):
            self._transport.write(pieces[number])
            self._later(pieces, number + 1)
        else:
            self._transport.write(b"0\r\n\r\n")


async def serve(port: int) -> None:
    script = Script()
    server = await asyncio.get_running_loop().create_server(lambda: Provider(script), "127.0.0.1", port, backlog=4096)
    await server.serve_forever()


if __name__ == "__main__":
    uvloop.run(serve(int(sys.argv[1])))
