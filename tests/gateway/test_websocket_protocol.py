"""WebSockets within limits: upgrades, pings, sizes, and number of connections."""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
import threading
from collections.abc import Iterator, Mapping

import pytest
from websockets.client import ClientProtocol
from websockets.frames import Close, Frame, Opcode
from websockets.protocol import State
from websockets.uri import parse_uri

from tests.gateway.gateways import Running, running
from tests.gateway.sockets import (
    ASKED,
    AUTH,
    PATIENCE,
    RESPONSES,
    USER,
    Held,
    answered,
    answering,
    begun,
    event,
    left,
    say_hi,
    talking,
    text_of,
    until,
)
from tests.gateway.test_memory import settled
from tests.gateway.upstreams import Got, Out
from tests.sim.faces import HTTP
from thoughtline.gateway import websocket_protocol
from thoughtline.gateway.client_keys import ClientKeys
from thoughtline.gateway.limits import OwnCounts
from thoughtline.settings import ServerSettings, Settings

KEY = "AAAAAAAAAAAAAAAAAAAAAA=="
UPGRADE = {"connection": "Upgrade", "upgrade": "websocket", "sec-websocket-version": "13"}


@pytest.mark.parametrize("path", ["/openai/v1/chat/completions", "/openai/v1/responses/resp_1", "/v1/messages"])
def test_elsewhere_there_is_none(path: str) -> None:
    with running({}) as gateway:
        headers = {**UPGRADE, "sec-websocket-key": KEY}
        assert HTTP.get(gateway.url + path, headers=headers).status_code == 426


def test_a_subprotocol_is_named_again() -> None:
    """Some clients offer one, and expect it in the answer."""
    with running({}) as gateway:
        head = {**AUTH, "sec-websocket-protocol": "openai-insecure-api-key.k, openai-beta.responses.v1"}
        response = HTTP.get(gateway.url + RESPONSES, headers={**head, **UPGRADE, "sec-websocket-key": KEY})
        assert response.headers["sec-websocket-protocol"] == "openai-beta.responses.v1"


def test_a_post_that_offers_an_upgrade_is_a_post() -> None:
    with answering() as (_up, gateway):
        body = text_of({**ASKED, "input": [USER]})
        response = HTTP.post(gateway.url + RESPONSES, content=body, headers={**AUTH, **UPGRADE})
        assert (response.status_code, response.content) == (200, answered())


@pytest.mark.parametrize(
    ("headers", "status"),
    [({}, 400), ({"sec-websocket-key": "short"}, 400), ({"sec-websocket-version": "8"}, 400)],
    ids=["no key", "wrong key", "wrong version"],
)
def test_what_is_no_upgrade(headers: dict[str, str], status: int) -> None:
    with running({}) as gateway:
        response = HTTP.get(gateway.url + RESPONSES, headers={**UPGRADE, **headers})
        assert response.status_code == status


def test_a_client_without_pongs_is_disconnected(monkeypatch: pytest.MonkeyPatch) -> None:
    """A client that answers stays. A client's pings are answered, even in the middle of a turn."""
    held = Held()
    with answering(held) as (_up, gateway):
        with talking(gateway.url + RESPONSES) as talk:
            begun(talk)
            assert talk.connection.ping().wait(30)
            held.may_end.set()
            assert talk.heard().said == "hi"
        monkeypatch.setattr(websocket_protocol, "PING_SECONDS", 0.02)
        with talking(gateway.url + RESPONSES) as talk:
            talk.connection.protocol.recv_frame = lambda frame: None  # type: ignore[method-assign]  # deaf
            assert talk.connection.recv_events_thread is not None
            talk.connection.recv_events_thread.join(30)


def test_connections_are_counted() -> None:
    """In the overall limit, and for Prometheus; each slot is freed again."""
    limited = Settings(server=ServerSettings(max_connections=2))
    with running({}, limited) as gateway:
        with talking(gateway.url + RESPONSES), talking(gateway.url + RESPONSES):
            page = gateway.state.metrics.page().decode()
            assert "thoughtline_websockets_open 2.0" in page
            host, port = gateway.url.removeprefix("http://").split(":")
            with socket.create_connection((host, int(port)), timeout=PATIENCE) as third:
                assert third.recv(65536).startswith(b"HTTP/1.1 503")
        metrics = gateway.state.metrics
        gateway.wait_for(until(lambda: b"thoughtline_websockets_open 0.0" in metrics.page()))
        assert gateway.app.connections.held == 0


def test_binary_and_large_messages_end_it() -> None:
    with running({}, Settings(server=ServerSettings(max_body_bytes=1000))) as gateway:
        for message, code in ((b"{}", 1003), ("x" * 1001, 1009)):
            with talking(gateway.url + RESPONSES) as talk:
                talk.connection.send(message)
                assert talk.closed() == code


def test_frames_one_behind_the_other() -> None:
    """A client that sends the next before the last is answered gets both answers, in order."""
    with answering() as (up, gateway), talking(gateway.url + RESPONSES) as talk:
        for number in range(5):
            talk.send(input=[{"role": "user", "content": str(number)}])
        assert [talk.heard().said for _ in range(5)] == ["hi"] * 5
    assert [json.loads(got.body)["input"][0]["content"] for got in up.got] == list("01234")


SHORT = Settings(server=ServerSettings(body_timeout_seconds=0.05))


@contextlib.contextmanager
def upgraded(gateway: Running, auth: Mapping[str, str] = AUTH, path: str = RESPONSES) -> Iterator[socket.socket]:
    """A raw connection, byte by byte."""
    host, port = gateway.url.removeprefix("http://").split(":")
    head = "".join(f"{name}: {value}\r\n" for name, value in {**auth, **UPGRADE, "host": host}.items())
    with socket.create_connection((host, int(port)), timeout=PATIENCE) as connection:
        connection.sendall(f"GET {path} HTTP/1.1\r\n{head}sec-websocket-key: {KEY}\r\n\r\n".encode())
        heard = b""
        while not heard.endswith(b"\r\n\r\n"):
            heard += connection.recv(1)
        assert heard.startswith(b"HTTP/1.1 101")
        yield connection


def frame(opcode: Opcode, data: bytes = b"", *, fin: bool = True) -> bytes:
    return Frame(opcode, data, fin).serialize(mask=True)


def closed(connection: socket.socket) -> Close:
    """The close frame, after whatever else arrives."""
    heard = b"".join(iter(lambda: connection.recv(65536), b""))
    protocol = ClientProtocol(parse_uri("ws://localhost"), state=State.OPEN)
    protocol.receive_data(heard)
    last = protocol.events_received()[-1]
    assert isinstance(last, Frame)
    assert last.opcode is Opcode.CLOSE
    return Close.parse(last.data)


WHOLE = frame(Opcode.TEXT, b'{"type":"response.create"}' * 100)


@pytest.mark.parametrize(
    ("data", "code", "reason"),
    [
        (WHOLE[:1], 1008, "too slow"),
        (WHOLE[:9], 1008, "too slow"),
        (WHOLE[:-1], 1008, "too slow"),
        (frame(Opcode.TEXT, b"{", fin=False), 1008, "too slow"),
        (frame(Opcode.TEXT, b"{", fin=False) + frame(Opcode.CONT, fin=False) * 5_000, 1008, "too many fragments"),
        (frame(Opcode.PING, b"x" * 125) * 10_001, 1008, "too many pings"),
        (frame(Opcode.CONT, b"{"), 1002, ""),
        (frame(Opcode.TEXT, b"{", fin=False) + frame(Opcode.TEXT, b"{"), 1002, ""),
        (Frame(Opcode.TEXT, b"{}").serialize(mask=False), 1002, ""),
        (b"\xff\xff" + bytes(100), 1002, ""),
        (b"\x81\xff" + b"\xff" * 8, 1009, ""),
        (b"\x81\xff" + (2**40).to_bytes(8, "big") + bytes(4), 1009, ""),
        (frame(Opcode.BINARY, b"{}"), 1003, "text frames only"),
    ],
    ids=lambda value: "" if isinstance(value, bytes) else None,  # a mask is another one each time
)
def test_what_is_half_or_wrong_ends_it(data: bytes, code: int, reason: str) -> None:
    """Within `body_timeout`, and with a code for the reason."""
    with running({}, SHORT) as gateway, upgraded(gateway) as connection:
        connection.sendall(data)
        told = closed(connection)
    assert told.code == code
    assert reason in told.reason


@pytest.mark.parametrize(
    ("data", "logged"),
    [
        (frame(Opcode.PING) * 200, "1008 too many pings"),
        (frame(Opcode.PONG) * 200, "1008 too many pings"),
        (frame(Opcode.CONT, b"{"), "1002 unexpected continuation frame"),
        (frame(Opcode.TEXT, b"{}") * 50, "1008 too many bad frames"),
    ],
    ids=["pings", "pongs", "no message", "bad messages"],
)
def test_a_connection_that_is_closed_for_what_its_client_did_is_logged(data: bytes, logged: str) -> None:
    """The log has the reason and the client; the client gets the reason, although it sent more than was read."""
    with running({}) as gateway:
        with upgraded(gateway) as connection:
            connection.sendall(data)
            assert closed(connection).reason == logged.partition(" ")[2]
        gateway.wait_for(left(gateway))
        last = gateway.lines[-1]
    assert (last["event"], last["detail"].partition(", ")[0]) == ("websocket closed", logged)


def test_an_honest_client_pings_as_often_as_it_likes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only the rate counts: more pings than the burst are fine over a longer time."""
    monkeypatch.setattr(websocket_protocol, "CONTROL_FRAMES_PER_SECOND", 1e6)
    with running({}) as gateway, talking(gateway.url + RESPONSES) as talk:
        for _ in range(2 * websocket_protocol.MAX_CONTROL_FRAMES):
            assert talk.connection.ping().wait(PATIENCE)


PREWARM = b'{"type":"response.create","model":"m","generate":false,"input":[]}'


def test_others_are_served_between_any_two_messages() -> None:
    """However many messages arrive in one read: each iteration of the event loop reads and answers one."""
    sent = 1_000
    with running({}, takes_keys=True) as gateway:
        keys, counts = gateway.state.keys, gateway.state.limits.counts
        assert isinstance(keys, ClientKeys)
        assert isinstance(counts, OwnCounts)
        made = gateway.wait_for(keys.add("me", requests_per_minute=2 * sent))

        def counted() -> int:
            rate = counts._rates.get(made.key.id)
            return len(rate._taken) if rate is not None else 0

        async def most_in_a_turn() -> int:
            most = 0
            while (before := counted()) < sent:
                await asyncio.sleep(0)
                most = max(most, counted() - before)
            return most

        with upgraded(gateway, {"authorization": f"Bearer {made.secret}"}, "/v1/responses") as connection:
            connection.sendall(frame(Opcode.TEXT, PREWARM) * sent)
            reader = threading.Thread(target=lambda: [*iter(lambda: connection.recv(65536), b"")])
            reader.start()
            assert gateway.wait_for(most_in_a_turn()) == 1
            connection.shutdown(socket.SHUT_RDWR)
            reader.join()


def test_a_message_in_many_pieces() -> None:
    """It may arrive in fragments, with pings between them, and byte by byte."""
    text = text_of({"type": "response.create", **ASKED, "input": [USER]}).encode()
    data = frame(Opcode.TEXT, text[:10], fin=False) + frame(Opcode.PING, b"?")
    data += frame(Opcode.CONT, text[10:20], fin=False) + frame(Opcode.CONT, text[20:])
    with answering() as (up, gateway), upgraded(gateway) as connection:
        for at in range(len(data)):
            connection.sendall(data[at : at + 1])
        up.wait_until(lambda up: len(up.got) == 1)
        connection.sendall(frame(Opcode.CLOSE, Close(1000, "").serialize()))
        assert closed(connection).code == 1000
    assert json.loads(up.got[0].body)["input"] == [USER]


def test_a_client_that_does_not_read_delays_only_its_own_answer() -> None:
    """Its provider's data is not read into memory without limit; others are served meanwhile."""
    offered = 1000

    class Flood:
        taken = 0

        async def __call__(self, got: Got, out: Out) -> None:
            if b"Hello" not in got.body:
                await say_hi(got, out)
                return
            await out.stream()
            for _ in range(offered):
                await out.chunk(event("response.output_text.delta", delta="x" * 100_000))
                self.taken += 1
            await out.chunk(answered())
            await out.end()

    flood = Flood()
    with answering(flood) as (up, gateway), upgraded(gateway) as connection:
        connection.sendall(frame(Opcode.TEXT, text_of({"type": "response.create", **ASKED, "input": [USER]}).encode()))
        up.wait_until(lambda up: len(up.got) == 1)
        taken = settled(lambda: flood.taken)
        with talking(gateway.url + RESPONSES) as talk:
            assert talk.ask(input=[]).said == "hi"
        assert 0 < taken < offered // 2
        protocol = ClientProtocol(parse_uri("ws://localhost"), state=State.OPEN, max_size=None)
        while b"response.completed" not in (data := connection.recv(2**20)):
            protocol.receive_data(data)
        assert flood.taken == offered
