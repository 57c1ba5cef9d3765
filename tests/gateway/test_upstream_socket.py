"""Requests to a provider over WebSocket: what is sent, what comes back, and when HTTP is used instead."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import ssl
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AbstractContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from websockets.asyncio.server import ServerConnection, serve
from websockets.exceptions import ConnectionClosed
from websockets.http11 import Request, Response

from tests.gateway.gateways import Running, running
from tests.gateway.sockets import RESPONSES, Talk, talking
from tests.gateway.tls_front import certify
from tests.sim.faces import HTTP, NO_STORE, TOOLS
from tests.sim.served_simulators import listening
from thoughtline.destinations.catalogue import PROVIDERS, Timeouts
from thoughtline.gateway import upstream_socket
from thoughtline.gateway.http_client import UpstreamCut, UpstreamResponse
from thoughtline.gateway.state import with_settings
from thoughtline.gateway.upstream_socket import HeldSocket
from thoughtline.values.errors import Declined
from thoughtline_sim.app import simulator_app

Json = dict[str, Any]
SCRIPT = 'Weather? {mark}\nscript:\nthink: I look.\ncall: weather {{"city": "Paris"}}\n---\nsay: It is warm.\n'
HEADERS = [("authorization", "Bearer key-1"), ("content-type", "application/json")]
OPENAI = PROVIDERS["openai"]


def request(*items: Json, **more: Any) -> bytes:
    tools = [{"type": "function", "name": name, "parameters": schema} for name, schema in TOOLS.items()]
    body = {"model": "gpt-5", "stream": True, "tools": tools, **NO_STORE, "input": list(items), **more}
    return json.dumps(body, separators=(",", ":")).encode()


def user() -> Json:
    return {"role": "user", "content": SCRIPT.format(mark=uuid.uuid4())}


def result(call: Json) -> Json:
    return {"type": "function_call_output", "call_id": call["call_id"], "output": "21 degrees"}


class Recorded:
    """A simulator, and the frames of each of its connections."""

    def __init__(self) -> None:
        self.app = simulator_app("openai", seed=3)
        self.connections: list[list[Json]] = []
        self.headers: list[dict[bytes, bytes]] = []

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "websocket":
            await self.app(scope, receive, send)
            return
        frames: list[Json] = []
        self.connections.append(frames)
        self.headers.append(dict(scope["headers"]))

        async def noted() -> Any:
            message = await receive()
            if message["type"] == "websocket.receive":
                frames.append(json.loads(message["text"]))
            return message

        await self.app(scope, noted, send)


@pytest.fixture(scope="module")
def recorded() -> tuple[Recorded, str]:
    app = Recorded()
    return app, listening(app) + "/v1/responses"


async def ask(held: HeldSocket, url: str, body: bytes, **row: Any) -> UpstreamResponse:
    response = await held.send(replace(OPENAI, **row), url, HEADERS, body)
    assert response is not None
    return response


async def answer(held: HeldSocket, url: str, body: bytes) -> list[Json]:
    """The events of a stream that is read to its end."""
    response = await ask(held, url, body)
    told, is_whole = await response.read_all(2**20)
    await response.close()
    assert (response.status, response.kind, is_whole) == (200, "text/event-stream", True)
    parts = told.decode().split("\n\n")
    assert parts.pop() == ""
    events = [json.loads(part.partition("\ndata: ")[2]) for part in parts]
    assert [part.partition("\n")[0] for part in parts] == [f"event: {event['type']}" for event in events]
    return events


def output(events: list[Json]) -> list[Json]:
    return [event["item"] for event in events if event["type"] == "response.output_item.done"]


# the simulator


async def test_the_rest_of_a_conversation(recorded: tuple[Recorded, str]) -> None:
    """On one connection: the first turn whole, then only new items; the provider has all of it."""
    app, url = recorded
    held, opening = HeldSocket(), user()
    first = output(await answer(held, url, request(opening)))
    second = await answer(held, url, request(opening, *first, result(first[-1])))
    held.close()
    whole, delta = app.connections[-1]
    assert whole == {"type": "response.create", **json.loads(request(opening))}
    assert delta["input"] == [result(first[-1])]
    assert delta["previous_response_id"]
    assert output(second)[-1]["content"][0]["text"] == "It is warm."
    assert app.app.simulation.log[-1]["verdicts"] == ["whole"]


@pytest.mark.parametrize(
    ("items", "more"),
    [
        (lambda opening, first: [opening, *first[1:]], {}),
        (lambda opening, first: [{**opening, "role": "developer"}, *first], {}),
        (lambda opening, first: [opening, {**first[0], "summary": []}, *first[1:]], {}),
        (lambda opening, first: [opening, *first], {"reasoning": {"effort": "low"}}),
        (lambda opening, first: [opening, *first], {"instructions": "Be kind."}),
    ],
    ids=["reasoning left out", "another opening", "altered reasoning", "another effort", "other instructions"],
)
async def test_a_different_conversation_is_sent_whole(recorded: tuple[Recorded, str], items: Any, more: Json) -> None:
    """Only a conversation that begins with exactly what the provider has is continued there."""
    app, url = recorded
    held, opening = HeldSocket(), user()
    first = output(await answer(held, url, request(opening)))
    given = [*items(opening, first), result(first[-1])]
    response = await ask(held, url, request(*given, **more))
    await response.close()
    held.close()
    assert app.connections[-1][-1]["input"] == given
    assert "previous_response_id" not in app.connections[-1][-1]


async def test_what_may_differ(recorded: tuple[Recorded, str]) -> None:
    """Members that describe a turn, which Codex sends anew each time."""
    app, url = recorded
    held, opening = HeldSocket(), user()
    first = output(await answer(held, url, request(opening, client_metadata={"turn_id": "1"})))
    again = request(opening, *first, result(first[-1]), client_metadata={"turn_id": "2"})
    response = await held.send(OPENAI, url, [*HEADERS, ("x-codex-turn-metadata", "{}")], again)
    assert response is not None
    await response.close()
    assert app.connections[-1][-1]["client_metadata"] == {"turn_id": "2"}
    assert app.connections[-1][-1]["input"] == [result(first[-1])]


async def test_other_credentials_have_another_connection(recorded: tuple[Recorded, str]) -> None:
    """An account sees nothing of another's connection."""
    app, url = recorded
    held, opening = HeldSocket(), user()
    await answer(held, url, request(opening))
    before = len(app.connections)
    response = await held.send(OPENAI, url, [("authorization", "Bearer key-2")], request(opening))
    assert response is not None
    await response.close()
    assert len(app.connections) == before + 1
    assert app.headers[-1][b"authorization"] == b"Bearer key-2"


async def test_a_refusal_is_that_of_http(recorded: tuple[Recorded, str]) -> None:
    """Status and body, to heal from; the connection stays open. Ids of items pair where items are stored."""
    app, url = recorded
    held, opening = HeldSocket(), user()
    first = output(await answer(held, url, request(opening, store=True)))
    refused = await ask(held, url, request(opening, first[-1], result(first[-1]), store=True))
    body, is_whole = await refused.read_all(2**20)
    await refused.close()
    assert (refused.status, refused.kind, is_whole) == (400, "application/json", True)
    assert "without its required 'reasoning' item" in json.loads(body)["error"]["message"]
    before = len(app.connections)
    await answer(held, url, request(opening, *first, result(first[-1]), store=True))
    assert len(app.connections) == before


async def test_a_delta_that_is_refused_is_left_to_http(recorded: tuple[Recorded, str]) -> None:
    """The positions in its refusal are not those of the request, so the whole request is sent again."""
    _, url = recorded
    held, opening = HeldSocket(), user()
    first = output(await answer(held, url, request(opening)))
    twice = request(opening, *first, result(first[-1]), first[-1])
    assert await held.send(OPENAI, url, HEADERS, twice) is None
    assert output(await answer(held, url, request(opening, *first, result(first[-1]))))


async def test_a_break_in_the_middle(recorded: tuple[Recorded, str]) -> None:
    """It is an error, as over HTTP; the next request has a new connection and is whole."""
    app, url = recorded
    held = HeldSocket()
    cut = {"role": "user", "content": f"{uuid.uuid4()}\nscript:\nsay: never said\ncut 3\nchunk 2"}
    response = await ask(held, url, request(cut))
    for _ in range(3):
        assert await response.read()
    with pytest.raises(UpstreamCut):
        await response.read()
    await response.close()
    before = len(app.connections)
    await answer(held, url, request(user()))
    assert len(app.connections) == before + 1


async def test_one_at_a_time(recorded: tuple[Recorded, str]) -> None:
    """A request that comes during another response, or after the client has left, uses HTTP; the first one is read
    on."""
    _, url = recorded
    held = HeldSocket()
    response = await ask(held, url, request(user()))
    assert await held.send(OPENAI, url, HEADERS, request(user())) is None
    held.close()
    assert (await response.read_all(2**20))[1]
    await response.close()
    assert await held.send(OPENAI, url, HEADERS, request(user())) is None


async def test_a_connection_is_renewed_in_time(recorded: tuple[Recorded, str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Before the provider ends it."""
    app, url = recorded
    held, opening = HeldSocket(), user()
    first = output(await answer(held, url, request(opening)))
    monkeypatch.setattr(upstream_socket, "RECYCLE_SECONDS", -1.0)
    await answer(held, url, request(opening, *first, result(first[-1])))
    assert len(app.connections[-1]) == 1
    assert "previous_response_id" not in app.connections[-1][0]


@pytest.mark.parametrize(
    "body",
    [
        request(user(), stream=False),
        request(user(), background=True),
        request(user(), type="response.create"),
        b'{"stream":true,"input":"a text"}',
        b'{"stream":true',
        request({"role": "user", "content": "x" * 16 * 2**20}),
    ],
    ids=["whole", "in the background", "a frame already", "no list", "no JSON", "too large"],
)
async def test_requests_for_http(recorded: tuple[Recorded, str], body: bytes) -> None:
    """No connection is opened for them."""
    app, url = recorded
    before = len(app.connections)
    assert await HeldSocket().send(OPENAI, url, HEADERS, body) is None
    assert len(app.connections) == before


# providers that do other things

Handle = Callable[[ServerConnection], Awaitable[None]]


@asynccontextmanager
async def provider(handle: Handle, **options: Any) -> AsyncIterator[str]:
    async with serve(handle, "127.0.0.1", 0, **options) as server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1/responses"


@pytest.mark.parametrize("status", [301, 401, 404, 426, 503])
async def test_a_refused_upgrade(status: int) -> None:
    """HTTP, now and for as long as the client's connection lasts; redirects are not followed."""
    asked = 0

    def refuse(connection: ServerConnection, _: Request) -> Response:
        nonlocal asked
        asked += 1
        response = connection.respond(status, "no")
        response.headers["location"] = "/elsewhere"
        return response

    async def never(_: ServerConnection) -> None:
        raise AssertionError

    held = HeldSocket()
    async with provider(never, process_request=refuse) as url:
        assert await held.send(OPENAI, url, HEADERS, request(user())) is None
        assert await held.send(OPENAI, url, HEADERS, request(user())) is None
    assert asked == 1


async def test_nobody_there() -> None:
    async def leave(_: ServerConnection) -> None: ...

    async with provider(leave) as url:
        pass
    assert await HeldSocket().send(OPENAI, url, HEADERS, request(user())) is None


async def test_an_upgrade_that_takes_too_long() -> None:
    """It is given up after the connect timeout."""
    done = asyncio.Event()

    async def silent(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await done.wait()
        writer.close()  # from Python 3.12 on, a server waits for that

    row = replace(OPENAI, timeouts=Timeouts(connect=0.01))
    async with await asyncio.start_server(silent, "127.0.0.1", 0) as server:
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1/responses"
        assert await HeldSocket().send(row, url, HEADERS, request(user())) is None
        done.set()


async def test_a_close_before_the_answer() -> None:
    """The frame was written, so the request is not repeated here."""

    async def close(socket: ServerConnection) -> None:
        await socket.recv()
        await socket.close(1011)

    async with provider(close) as url:
        with pytest.raises(Declined) as declined:
            await HeldSocket().send(OPENAI, url, HEADERS, request(user()))
    assert (declined.value.status, declined.value.code) == (502, "upstream_failed")


async def test_a_frame_that_is_too_big_after_all() -> None:
    """A provider with a lower limit refuses it before reading it."""

    async def take(socket: ServerConnection) -> None:
        await socket.recv()

    async with provider(take, max_size=100) as url:
        assert await HeldSocket().send(OPENAI, url, HEADERS, request(user())) is None


async def test_silence() -> None:
    """Before the answer, and in it."""

    async def begin(socket: ServerConnection) -> None:
        await socket.recv()
        await socket.wait_closed()

    async def stop(socket: ServerConnection) -> None:
        await socket.recv()
        await socket.send('{"type":"response.created"}')
        await socket.wait_closed()

    async with provider(begin) as url:
        with pytest.raises(Declined) as declined:
            await ask(HeldSocket(), url, request(user()), timeouts=Timeouts(first_byte=0.01))
    assert declined.value.status == 504
    async with provider(stop) as url:
        response = await ask(HeldSocket(), url, request(user()), timeouts=Timeouts(read=0.01))
        assert await response.read()
        with pytest.raises(UpstreamCut):
            await response.read()
        await response.close()


@pytest.mark.parametrize(
    ("frame", "status", "headers"),
    [
        ({"status": 429, "error": {"code": "x"}, "headers": {"Retry-After": 7}}, 429, {"retry-after": "7"}),
        ({"error": {"type": "invalid_request_error"}}, 400, {}),
        ({"error": {"type": "server_error"}}, 500, {}),
        ({"status": 200, "error": None, "headers": 5}, 500, {}),
        (
            {
                "status": 429,
                "error": {},
                "headers": {"x-a": "1", "x\r\ny": "1", "": "1", "\u4e2d": 1, "x-b": "1\r\nc: 2"},
            },
            429,
            {"x-a": "1"},
        ),
    ],
)
async def test_error_frames(frame: Json, status: int, headers: Json) -> None:
    """With a status, with headers, and with neither."""

    async def refuse(socket: ServerConnection) -> None:
        async for _ in socket:
            await socket.send(json.dumps({"type": "error", **frame}))

    async with provider(refuse) as url:
        held = HeldSocket()
        response = await ask(held, url, request(user()))
        assert response.status == status
        assert json.loads((await response.read_all(2**20))[0]) == {"error": frame["error"]}
        assert dict(response.headers) == {**headers, "content-type": "application/json"}
        await response.close()
        held.close()


async def test_an_error_in_the_middle() -> None:
    """It is an event of the stream, and its last."""

    async def fail(socket: ServerConnection) -> None:
        await socket.recv()
        await socket.send('{"type":"response.created"}')
        await socket.send('{\n"type":"error","error":{"code":"server_error"}}')
        await socket.wait_closed()

    async with provider(fail) as url:
        held = HeldSocket()
        events = await answer(held, url, request(user()))
        held.close()
    assert [event["type"] for event in events] == ["response.created", "error"]


async def test_unrequested_frames() -> None:
    """A frame between two responses is no answer to the next request, which gets a new connection."""
    said = asyncio.Event()
    opened = 0

    async def talk(socket: ServerConnection) -> None:
        nonlocal opened
        opened += 1
        async for _ in socket:
            await socket.send('{"type":"response.completed","response":{"id":"resp_1"}}')
            if opened == 1:
                await socket.send('{"type":"error","error":{"code":"websocket_connection_limit_reached"}}')
                await (await socket.ping())
                said.set()

    async with provider(talk) as url:
        held = HeldSocket()
        await answer(held, url, request(user()))
        await said.wait()
        assert [event["type"] for event in await answer(held, url, request(user()))] == ["response.completed"]
        held.close()
    assert opened == 2


async def test_an_answer_that_is_not_read_to_its_end() -> None:
    """It ends the connection: no other request gets the rest."""
    opened = 0

    async def begin(socket: ServerConnection) -> None:
        nonlocal opened
        opened += 1
        async for _ in socket:
            await socket.send('{"type":"response.created"}')

    async with provider(begin) as url:
        held = HeldSocket()
        for _ in range(2):
            await (await ask(held, url, request(user()))).close()
    assert opened == 2


async def test_pings_are_answered() -> None:
    """While a frame is written, and while nobody reads incoming ones: the provider sees that the gateway is alive."""
    body = request({"role": "user", "content": "x" * 8 * 2**20})
    heard = asyncio.Event()

    async def ping(socket: ServerConnection) -> None:
        pong = await socket.ping()
        await socket.recv()
        await pong
        for _ in range(200):
            await socket.send(json.dumps({"type": "response.output_text.delta", "delta": "x" * 2**10}))
        await (await socket.ping())
        heard.set()
        await socket.send('{"type":"response.completed","response":{"id":"resp_1"}}')

    async with provider(ping, max_size=None) as url:
        held = HeldSocket()
        response = await ask(held, url, body)
        async with asyncio.timeout(60):
            await heard.wait()
        told = (await response.read_all(2**24))[0]
        await response.close()
        held.close()
    assert told.endswith(b'{"id":"resp_1"}}\n\n')


async def test_what_waits_is_bounded_in_bytes() -> None:
    """A client that doesn't read keeps 64 MiB of events waiting at the provider, and gets each when it reads."""
    delta = json.dumps({"type": "response.output_text.delta", "delta": "x" * 2**20})
    count, all_sent = 64, asyncio.Event()

    async def flood(socket: ServerConnection) -> None:
        await socket.recv()
        for _ in range(count):
            await socket.send(delta)
        all_sent.set()
        await socket.send('{"type":"response.completed","response":{"id":"resp_1"}}')

    async with provider(flood) as url:
        held = HeldSocket()
        response = await ask(held, url, request(user()))
        assert held._socket is not None
        transport = held._socket.transport
        while transport.is_reading() and not all_sent.is_set():
            await asyncio.sleep(0)
        assert not all_sent.is_set()
        told, is_whole = await response.read_all(2**27)
        await response.close()
        held.close()
    assert is_whole
    assert told.count(b"event: response.output_text.delta") == count
    assert told.endswith(b'{"id":"resp_1"}}\n\n')


@pytest.mark.parametrize("size", [0, 2**20], ids=["empty", "of 1 MiB"])
async def test_fragments_are_bounded(size: int) -> None:
    """An event in fragments is read whole even if it is larger than the queue; an endless one is cut off."""

    async def talk(socket: ServerConnection) -> None:
        await socket.recv()
        await socket.send('{"type":"response.created"}')
        ends = [] if size == 0 else ['"}']
        pieces = itertools.repeat("") if size == 0 else itertools.repeat("x" * size, 8)
        with contextlib.suppress(ConnectionClosed):
            await socket.send(itertools.chain(['{"type":"response.output_text.delta","delta":"'], pieces, ends))
        await socket.wait_closed()

    async with provider(talk) as url:
        held = HeldSocket()
        response = await ask(held, url, request(user()))
        assert await response.read()
        if size:
            assert len(await response.read() or b"") > 8 * size
        else:
            with pytest.raises(UpstreamCut):
                await response.read()
        await response.close()
        held.close()


async def test_certificates(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An untrusted one is refused; an internal authority can be configured."""
    certify(tmp_path)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "server.pem")

    async def say(socket: ServerConnection) -> None:
        async for _ in socket:
            await socket.send('{"type":"response.completed","response":{"id":"resp_1"}}')

    async with provider(say, ssl=context) as plain:
        url = plain.replace("http:", "https:")
        assert await HeldSocket().send(OPENAI, url, HEADERS, request(user())) is None
        monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "authority.pem"))
        held = HeldSocket()
        assert [event["type"] for event in await answer(held, url, request(user()))] == ["response.completed"]
        held.close()


async def test_the_proxy_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """As over HTTP: the proxy for the address's scheme, unless the host is excluded."""
    asked: list[bytes] = []

    async def refuse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked.append(await reader.readline())
        writer.close()

    async with await asyncio.start_server(refuse, "127.0.0.1", 0) as server:
        monkeypatch.setenv("http_proxy", f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}")
        monkeypatch.setenv("no_proxy", "left.example")
        for host in ("reached.example", "left.example"):
            assert await HeldSocket().send(OPENAI, f"http://{host}/v1/responses", HEADERS, request(user())) is None
    assert asked == [b"CONNECT reached.example:80 HTTP/1.1\r\n"]


# through the gateway


@pytest.fixture
def gateway(recorded: tuple[Recorded, str]) -> Iterator[Running]:
    with running({"openai": recorded[1].removesuffix("/responses")}) as gateway:
        yield gateway


def talk_to(gateway: Running) -> AbstractContextManager[Talk]:
    tools = [{"type": "function", "name": name, "parameters": schema} for name, schema in TOOLS.items()]
    return talking(gateway.url + RESPONSES, tools=tools)


def test_a_client_that_goes_on(recorded: tuple[Recorded, str], gateway: Running) -> None:
    """One connection of the client, one upstream: only new items are sent, and the provider has all of them."""
    app, opening = recorded[0], user()
    with talk_to(gateway) as talk:
        first = talk.ask(input=[opening])
        second = talk.ask(input=[result(first.output[-1])], previous_response_id=first.id)
    assert second.said == "It is warm."
    assert [len(frame["input"]) for frame in app.connections[-1]] == [1, 1]
    assert app.app.simulation.log[-1]["verdicts"] == ["whole"]


def test_what_a_client_lost_is_restored(recorded: tuple[Recorded, str], gateway: Running) -> None:
    """The client never shows reasoning; what would be restored is already at the provider, so it need not be sent."""
    app, opening = recorded[0], user()
    with talk_to(gateway) as talk:
        call = talk.ask(input=[opening]).output[-1]
        assert talk.ask(input=[opening, call, result(call)]).said == "It is warm."
    assert [len(frame["input"]) for frame in app.connections[-1]] == [1, 1]
    assert app.app.simulation.log[-1]["verdicts"] == ["whole"]
    assert gateway.lines[-1]["restored"] == 1


def test_a_refusal_is_healed(recorded: tuple[Recorded, str], gateway: Running) -> None:
    """In the same turn, on the same connection."""
    app, opening = recorded[0], user()
    foreign = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "gAAAAforeign"}
    told = {"role": "assistant", "content": "Cold.", "type": "message", "id": "msg_1"}
    with talk_to(gateway) as talk:
        answer = talk.ask(input=[opening, foreign, told, {"role": "user", "content": "Sure?"}])
    assert answer.last["type"] == "response.completed"
    first, second = app.connections[-1]
    assert first["input"][1] == foreign
    assert foreign not in second["input"]


def test_it_is_switched_off(recorded: tuple[Recorded, str], gateway: Running) -> None:
    """Then the client's frames are sent over HTTP; and so is every request that came over HTTP."""
    before = len(recorded[0].connections)
    HTTP.post(gateway.url + RESPONSES, content=request(user()), headers=dict(HEADERS)).raise_for_status()
    providers = gateway.state.settings.providers
    off = {**providers, "openai": replace(providers["openai"], websocket=False)}
    gateway.app.state = with_settings(gateway.state, replace(gateway.state.settings, providers=off))
    with talk_to(gateway) as talk:
        assert talk.ask(input=[user()]).last["type"] == "response.completed"
    assert len(recorded[0].connections) == before
