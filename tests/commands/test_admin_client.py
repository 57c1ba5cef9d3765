"""The admin API's client: what it sends, and its errors."""

from __future__ import annotations

import pytest

from tests.commands.doctor.scripted_servers import closed_port
from tests.gateway.upstreams import Got, Out, upstream
from thoughtline.commands.admin_client import AdminClient
from thoughtline.values.errors import Declined


async def test_the_token_and_the_query_go_along() -> None:
    """To the address as it was named, with or without a slash behind it."""

    async def answer(got: Got, out: Out) -> None:
        await out.whole(200, b'{"turns": 1}')

    with upstream(answer) as up:
        assert (
            await AdminClient(f"{up.url}/", "t0ken").ask("DELETE", "/api/cache", {"session": "a b"}) == b'{"turns": 1}'
        )
    assert (up.got[0].method, up.got[0].target) == ("DELETE", "/api/cache?session=a+b")
    assert up.got[0].header("authorization") == "Bearer t0ken"


ERROR = b'{"error": {"code": "bad_filter", "message": "No such filter.", "remedy": "Name another."}}'


@pytest.mark.parametrize(
    ("status", "body", "code", "message", "remedy"),
    [
        (400, ERROR, "bad_filter", "The gateway answers 400: No such filter.", "Name another."),
        (401, ERROR, "bad_filter", "The gateway answers 401: No such filter.", "Give its admin token with --token."),
        (502, b"<html>Bad Gateway</html>", "refused", "The gateway answers 502.", ""),
        (500, ERROR.replace(b"bad", b"\xff"), "refused", "The gateway answers 500.", ""),
    ],
)
async def test_a_refusal(status: int, body: bytes, code: str, message: str, remedy: str) -> None:
    """In the gateway's words, asked once or listened to; in ours where something else answered."""

    async def answer(got: Got, out: Out) -> None:
        await out.whole(status, body)

    with upstream(answer) as up:
        gateway = AdminClient(up.url, "t0ken")
        with pytest.raises(Declined) as by_ask:
            await gateway.ask("GET", "/api/cache")
        with pytest.raises(Declined) as by_events:
            await anext(gateway.events("/api/events"))
    for error in (by_ask.value, by_events.value):
        assert (error.status, error.code, str(error), error.remedy) == (status, code, message, remedy)


async def test_events_as_they_come() -> None:
    """However the stream is cut, without its comments; when it breaks off, that is said."""

    async def answer(got: Got, out: Out) -> None:
        await out.stream()
        for piece in (b"event: req", b'uest\ndata: {"a": 1}\n', b"\n: still here\n\nevent: turn\ndata: 2\n\neve"):
            await out.chunk(piece)
            await out.until_later()
        out.cut()

    with upstream(answer) as up:
        events = AdminClient(up.url, "t0ken").events("/api/events")
        received = [await anext(events), await anext(events)]
        with pytest.raises(Declined) as error:
            await anext(events)
    assert received == [("request", b'{"a": 1}'), ("turn", b"2")]
    assert error.value.code == "no_gateway"


async def test_an_unreachable_server() -> None:
    """Which address that is, and what to do."""
    url = f"http://127.0.0.1:{closed_port()}"
    with pytest.raises(Declined) as error:
        await AdminClient(url, "t0ken", "use --store").ask("GET", "/api/cache")
    assert str(error.value) == f"No gateway answers at {url}."
    assert error.value.remedy == "Start it, name it with --url, or use --store."
