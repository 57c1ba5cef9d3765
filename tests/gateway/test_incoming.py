"""A body read over ASGI, within a bound."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest

from thoughtline.gateway.asgi import Message
from thoughtline.gateway.incoming import ClientGone, read_body
from thoughtline.values.errors import Declined


def saying(*messages: Message) -> Callable[[], Awaitable[Message]]:
    """Return the server's messages one at a time."""
    left = iter(messages)

    async def receive() -> Message:
        return next(left)

    return receive


def piece(body: bytes, more: bool = True) -> Message:
    return {"type": "http.request", "body": body, "more_body": more}


GONE: Message = {"type": "http.disconnect"}


@pytest.mark.parametrize(
    "messages",
    [
        [piece(b"abcdef", more=False)],
        [piece(b"abc"), piece(b""), piece(b"def", more=False)],
        [piece(b"abcdef"), {"type": "http.request"}],
    ],
    ids=["at once", "in pieces", "with an end that says nothing"],
)
async def test_the_whole_body(messages: list[Message]) -> None:
    """In any number of parts; an invalid length is ignored."""
    assert await read_body(saying(*messages), b"?", limit=6) == b"abcdef"


@pytest.mark.parametrize(
    ("declared", "messages"),
    [(b"7", []), (b"", [piece(b"abcdefg", more=False)]), (b"1", [piece(b"abcd"), piece(b"efg")])],
    ids=["by its length", "at once", "in pieces, before its end"],
)
async def test_a_body_that_is_too_large(declared: bytes, messages: list[Message]) -> None:
    """Refused as soon as that is known: nothing more is read."""
    with pytest.raises(Declined) as error:
        await read_body(saying(*messages), declared, limit=6)
    assert (error.value.status, error.value.code) == (413, "body_too_large")


@pytest.mark.parametrize("messages", [[GONE], [piece(b"abc"), GONE]])
async def test_a_client_that_hangs_up(messages: list[Message]) -> None:
    """Half a body is not used."""
    with pytest.raises(ClientGone):
        await read_body(saying(*messages), b"6", limit=6)
