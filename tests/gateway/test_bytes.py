"""What we must not change is not changed: bodies, pieces, headers and paths, in both directions."""

from __future__ import annotations

import gzip
import hashlib
import json
import random
import socket
import threading
import zlib
from collections.abc import Callable
from typing import Any, TypeVar

import brotli
import httpx
import pytest
import zstandard
from msgspec.structs import replace

from tests.gateway.conftest import provider_of
from tests.gateway.forgetful_clients import TEN_TURNS, Forgetful
from tests.gateway.gateways import moved, running
from tests.gateway.upstreams import JSON, Got, Out, Upstream, upstream
from tests.sim.faces import CASES, HTTP, Case, Dialogue
from tests.sim.served_simulators import served
from thoughtline.destinations.catalogue import PROVIDERS
from thoughtline.engine.threads import LONG_BYTES, WORK_SHARE, FairThreads, WorkShare
from thoughtline.settings import ServerSettings, Settings

Result = TypeVar("Result")
SPOKEN = [case for case in CASES if case.format in PROVIDERS[provider_of(case)].formats]
DEEPSEEK = next(case for case in SPOKEN if case.id.startswith("deepseek-openai_chat"))
CHAT = "/deepseek/v1/chat/completions"
ANSWER = b'{"id":"1","choices":[{"index":0,"message":{"role":"assistant","content":"hi"},"finish_reason":"stop"}]}'


async def say_hi(got: Got, out: Out) -> None:
    await out.whole(200, ANSWER)


def behind(up: Upstream, *names: str) -> dict[str, str]:
    return dict.fromkeys(names or ("deepseek",), up.url)


def kept(case: Case) -> Dialogue:
    """Four turns with a client that keeps everything, directly at the simulator."""
    dialogue = Dialogue(case, TEN_TURNS.format(mark=f"kept {case.id}"))
    for _ in range(4):
        dialogue.go_on(dialogue.ask())
    return dialogue


def oddly_written(body: Any) -> bytes:
    """The same JSON in an unusual form."""
    return b" \r\n" + json.dumps(body, indent=3, ensure_ascii=False, separators=(" ,", "\t: ")).encode() + b"\n\n"


@pytest.mark.parametrize("case", SPOKEN, ids=lambda case: case.id)
def test_a_request_that_needs_nothing_is_sent_unchanged(case: Case) -> None:
    """Byte for byte, in any JSON form, with all reasoning that its client kept."""
    name = provider_of(case)
    dialogue = kept(case)
    sent = oddly_written(dialogue.outgoing())
    with upstream(say_hi) as up, running(behind(up, name)) as gateway:
        url = f"{gateway.url}/{name}{dialogue.path()}"
        response = HTTP.post(
            url, content=sent, headers={"authorization": "Bearer k", "content-type": "application/json"}
        )
        assert response.status_code == 200
        assert hashlib.sha256(up.got[0].body).digest() == hashlib.sha256(sent).digest()


class InStep:
    """Sends the next piece only when the client has acknowledged the one before."""

    def __init__(self, pieces: list[bytes], *headers: tuple[str, str]) -> None:
        self._pieces = pieces
        self._headers = headers
        self._has_read = threading.Semaphore(0)

    async def __call__(self, got: Got, out: Out) -> None:
        await out.stream(*self._headers)
        for piece in self._pieces:
            await out.chunk(piece)
            await out.until(lambda: self._has_read.acquire(blocking=False))
        await out.end()

    def tell(self) -> None:
        self._has_read.release()


def read_in_step(response: httpx.Response, pieces: list[bytes], server: InStep) -> bytes:
    """All bytes, each piece acknowledged on arrival."""
    heard = b""
    ends = [sum(map(len, pieces[: count + 1])) for count in range(len(pieces))]
    told = 0
    for raw in response.iter_raw():
        heard += raw
        while told < len(ends) and len(heard) >= ends[told]:
            told += 1
            server.tell()
    return heard


def cut_up(data: bytes, seed: int) -> list[bytes]:
    """Pieces of all sizes, even if that cuts an event or a character."""
    chance = random.Random(seed)
    pieces, at = [], 0
    while at < len(data):
        size = chance.choice((1, 2, 7, 40, 300, 2000))
        pieces.append(data[at : at + size])
        at += size
    return pieces


def recorded(case: Case, *, is_streaming: bool) -> tuple[bytes, str]:
    """An answer of the simulator, and its content type."""
    response = Dialogue(case, TEN_TURNS.format(mark=f"recorded {case.id}")).post(is_streaming=is_streaming)
    assert response.status_code == 200
    return response.content, response.headers["content-type"]


@pytest.mark.parametrize("case", SPOKEN, ids=lambda case: case.id)
def test_a_stream_comes_down_piece_by_piece(case: Case) -> None:
    """Each piece reaches the client before the next one exists, and all of them are the upstream's."""
    data, kind = recorded(case, is_streaming=True)
    pieces = cut_up(data, seed=len(data))
    server = InStep(pieces, ("content-type", kind))
    name = provider_of(case)
    with upstream(server) as up, running(behind(up, name)) as gateway, gateway.listening() as next_line:
        dialogue = Forgetful(f"{gateway.url}/{name}", case, "hi")
        response = HTTP.send(dialogue.request(is_streaming=True), stream=True)
        assert read_in_step(response, pieces, server) == data
        assert next_line().captured == 1


@pytest.mark.parametrize("case", SPOKEN, ids=lambda case: case.id)
def test_a_whole_response_comes_down_as_it_was_sent(case: Case) -> None:
    """The same bytes, and a record of them."""
    data, kind = recorded(case, is_streaming=False)

    async def answer(got: Got, out: Out) -> None:
        await out.whole(200, data, ("content-type", kind))

    name = provider_of(case)
    with upstream(answer) as up, running(behind(up, name)) as gateway, gateway.listening() as next_line:
        response = Forgetful(f"{gateway.url}/{name}", case, "hi").post()
        assert response.content == data
        assert response.headers["content-length"] == str(len(data))
        assert next_line().captured == 1


def test_blanks_that_keep_a_connection_alive() -> None:
    """DeepSeek sends empty lines before a whole answer: they reach the client before the answer does."""
    pieces = [b"\n", b"\n\n", b"\n", ANSWER]
    server = InStep(pieces, JSON)

    def tell_early(response: httpx.Response) -> bytes:
        heard = b""
        server.tell()  # one piece is always on its way: whether it is the last is not known yet
        for raw in response.iter_raw():
            heard += raw
            for _ in raw:
                server.tell()
        return heard

    with upstream(server) as up, running(behind(up)) as gateway:
        response = HTTP.send(Forgetful(f"{gateway.url}/deepseek", DEEPSEEK, "hi").request(), stream=True)
        assert tell_early(response) == b"".join(pieces)


PACKERS: dict[str, Callable[[bytes], bytes]] = {
    "gzip": gzip.compress,
    "deflate": zlib.compress,
    "br": brotli.compress,
    "zstd": zstandard.compress,
    "gzip, br": lambda data: brotli.compress(gzip.compress(data)),
}


@pytest.mark.parametrize("is_streaming", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("encoding", PACKERS)
def test_a_compressed_response(encoding: str, is_streaming: bool) -> None:
    """It is passed on compressed, and a copy is read."""
    data, kind = recorded(DEEPSEEK, is_streaming=is_streaming)
    packed = PACKERS[encoding](data)

    async def answer(got: Got, out: Out) -> None:
        await out.stream(("content-type", kind), ("content-encoding", encoding))
        for piece in cut_up(packed, seed=1):
            await out.chunk(piece)
        await out.end()

    with upstream(answer) as up, running(behind(up)) as gateway, gateway.listening() as next_line:
        dialogue = Forgetful(f"{gateway.url}/deepseek", DEEPSEEK, "hi")
        dialogue.headers = {"accept-encoding": "gzip, deflate, br, zstd, lzma"}
        response = HTTP.send(dialogue.request(is_streaming=is_streaming), stream=True)
        assert b"".join(response.iter_raw()) == packed
        assert response.headers["content-encoding"] == encoding
        assert next_line().captured == 1
        assert up.got[0].header("accept-encoding") == "gzip, deflate, br, zstd"


@pytest.mark.parametrize("encoding", ["lzma", "gzip"], ids=["unknown", "broken"])
def test_a_response_that_cannot_be_unpacked(encoding: str) -> None:
    """It is passed on unread."""
    data = b"\x00\x01 this is neither " * 9

    async def answer(got: Got, out: Out) -> None:
        await out.whole(200, data, JSON, ("content-encoding", encoding))

    with upstream(answer) as up, running(behind(up)) as gateway, gateway.listening() as next_line:
        request = Forgetful(f"{gateway.url}/deepseek", DEEPSEEK, "hi").request()
        assert b"".join(HTTP.send(request, stream=True).iter_raw()) == data
        line = next_line()
        assert (line.captured, bool(line.note)) == (0, True)


@pytest.mark.parametrize("encoding", PACKERS)
def test_a_compressed_request(encoding: str) -> None:
    """The provider gets it decompressed: not every one supports compression."""
    plain = json.dumps({"model": "m", "messages": [{"role": "user", "content": "hi"}]}).encode()
    with upstream(say_hi) as up, running(behind(up)) as gateway:
        headers = {"content-encoding": encoding, "content-type": "application/json"}
        response = HTTP.post(gateway.url + CHAT, content=PACKERS[encoding](plain), headers=headers)
        assert response.status_code == 200
        assert up.got[0].body == plain
        assert up.got[0].header("content-encoding") is None


class NotedWork(FairThreads):
    """Whose work was done in threads."""

    def __init__(self) -> None:
        super().__init__()
        self.shares: list[WorkShare] = []

    async def __call__(self, do: Callable[[], Result]) -> Result:
        self.shares.append(WORK_SHARE.get())
        return await super().__call__(do)


def test_a_large_request_is_unpacked_in_a_thread_and_counts_as_large() -> None:
    """Others are served meanwhile, and it doesn't pass for a small one."""
    words = random.Random(1).randbytes(50_000).hex() + "x" * 2 * 2**20
    packed = gzip.compress(json.dumps({"model": "m", "messages": [{"role": "user", "content": words}]}).encode())
    work = NotedWork()
    with upstream(say_hi) as up, running(behind(up)) as gateway:
        state = gateway.state
        gateway.app.state = state._replace(background=state.background._replace(work=work))
        headers = {"content-encoding": "gzip", "content-type": "application/json"}
        assert HTTP.post(gateway.url + CHAT, content=packed, headers=headers).status_code == 200
    work.close()
    assert work.shares[0].size == len(packed) < LONG_BYTES
    assert {share.size > LONG_BYTES for share in work.shares[1:]} == {True}


@pytest.mark.parametrize("encoding", PACKERS)
def test_a_bomb(encoding: str) -> None:
    """A small body that decompresses to a huge one is refused first."""
    bomb = PACKERS[encoding](b" " * (8 * 2**20))
    settings = Settings(server=ServerSettings(max_body_bytes=2**20))
    with upstream(say_hi) as up, running(behind(up), settings) as gateway:
        response = HTTP.post(gateway.url + CHAT, content=bomb, headers={"content-encoding": encoding})
        assert response.status_code == 413
        assert up.got == []


@pytest.mark.parametrize("encoding", ["lzma", "gzip"], ids=["unknown", "broken"])
def test_a_request_that_cannot_be_unpacked(encoding: str) -> None:
    """It is refused, in its own format."""
    with upstream(say_hi) as up, running(behind(up)) as gateway:
        response = HTTP.post(gateway.url + CHAT, content=b"{}", headers={"content-encoding": encoding})
        assert response.status_code == 400
        assert "message" in response.json()["error"]
        assert up.got == []


HOP_BY_HOP = ("connection", "keep-alive", "proxy-connection", "te", "trailer", "upgrade", "x-named")


def test_headers_that_go_up() -> None:
    """The client's own in their order, including repeated ones; none of its connection's, none of ours."""
    headers = [
        ("authorization", "Bearer k"),
        ("anthropic-beta", "one"),
        ("anthropic-beta", "two"),
        ("anthropic-version", "2023-06-01"),
        ("openai-beta", "responses=experimental"),
        ("x-stainless-lang", "python"),
        ("user-agent", "client/1"),
        ("cookie", "a=b"),
        ("x-thoughtline-session", "s"),
        ("x-thoughtline-anything", "s"),
        ("x-forwarded-for", "10.0.0.1"),
        ("connection", "keep-alive, x-named"),
        ("x-named", "dropped"),
        ("keep-alive", "5"),
        ("te", "trailers"),
    ]
    settings = Settings(server=ServerSettings(insecure=True))  # a reverse proxy's callers, for a server of this machine
    with upstream(say_hi) as up, running(behind(up), settings) as gateway:
        HTTP.post(gateway.url + CHAT, json={"model": "m", "messages": []}, headers=headers)
        got = up.got[0]
    names = [name for name, _ in got.headers]
    assert not [name for name in names if name in HOP_BY_HOP or name.startswith(("x-thoughtline", "x-forwarded"))]
    assert [value for name, value in got.headers if name == "anthropic-beta"] == ["one", "two"]
    for name, value in headers[3:8]:
        assert got.header(name) == value
    assert got.header("authorization") == "Bearer k"
    assert got.header("host") == up.url.removeprefix("http://")


def test_headers_that_come_down() -> None:
    """The provider's own, including repeated ones; none of its connection's."""

    async def answer(got: Got, out: Out) -> None:
        cookies = (("set-cookie", "a=1; Path=/"), ("set-cookie", "b=2"))
        limits = (("x-ratelimit-remaining-requests", "9"), ("request-id", "req_1"), ("date", "yesterday"))
        await out.whole(
            200, ANSWER, JSON, *cookies, *limits, ("keep-alive", "timeout=5"), ("connection", "x-own"), ("x-own", "1")
        )

    with upstream(answer) as up, running(behind(up)) as gateway:
        response = HTTP.post(gateway.url + CHAT, json={"model": "m", "messages": []})
    assert response.headers.get_list("set-cookie") == ["a=1; Path=/", "b=2"]
    assert response.headers["x-ratelimit-remaining-requests"] == "9"
    assert response.headers["request-id"] == "req_1"
    assert response.headers["date"] == "yesterday"
    assert response.headers["x-thoughtline-request"]
    assert not {"keep-alive", "x-own"} & set(response.headers)


@pytest.mark.parametrize(
    ("start", "count_path"),
    [
        ("anthropic-classic", "/v1/messages/count_tokens"),
        ("gemini-gemini_generate", "/v1beta/models/gemini-3-pro-preview:countTokens"),
    ],
)
def test_counting_tokens(start: str, count_path: str) -> None:
    """The request to be counted is planned like a real one: the provider refuses a stripped one."""
    case = next(case for case in CASES if case.id.startswith(start))
    simulator = served(case.simulator, case.profile)
    name = provider_of(case)
    with running({name: simulator.url}) as gateway:
        dialogue = Forgetful(f"{gateway.url}/{name}", case, TEN_TURNS.format(mark="counted"))
        dialogue.go_on(dialogue.ask())
        key = {"authorization": "Bearer key-1"}
        direct = HTTP.post(simulator.url + count_path, json=dialogue.outgoing(), headers=key)
        through = HTTP.post(f"{gateway.url}/{name}{count_path}", json=dialogue.outgoing(), headers=key)
    assert (direct.status_code, through.status_code) == (400, 200)
    assert simulator.app.simulation.log[-1]["verdicts"] == ["whole"]
    assert set(through.json()) <= {"input_tokens", "totalTokens"}


@pytest.mark.parametrize("body", [b"", b"not json", b"[1]", b'{"model": "m", "messages": 3}', b"\xff\xfe", b'{"a":'])
def test_a_body_that_is_no_request(body: bytes) -> None:
    """It is passed on unread: the provider reports what is wrong with it."""
    with upstream(say_hi) as up, running(behind(up)) as gateway, gateway.listening() as next_line:
        response = HTTP.post(gateway.url + CHAT, content=body)
        assert (response.status_code, response.content) == (200, ANSWER)
        assert up.got[0].body == body
        assert next_line().note == "unread"


def test_small_pieces_are_not_delayed() -> None:
    """Nagle's algorithm is disabled for every client connection."""
    with running({}) as gateway:
        client = httpx.Client()
        client.get(f"{gateway.url}/healthz")
        [connection] = gateway.server.server_state.connections
        sock = connection.transport.get_extra_info("socket")
        assert sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY) == 1
        client.close()


def test_a_providers_own_key_takes_the_callers_place() -> None:
    """If the gateway has a key, the client's is not sent."""
    row = replace(moved("deepseek", ""), api_keys=("inner",))
    with (
        upstream(say_hi) as up,
        running({}, Settings(providers={"deepseek": replace(row, base_url=up.url)})) as gateway,
    ):
        HTTP.post(gateway.url + CHAT, json={"model": "m", "messages": []}, headers={"authorization": "Bearer outer"})
        assert up.got[0].header("authorization") == "Bearer inner"
        assert "outer" not in str(up.got[0])


def test_a_redirect_is_not_followed() -> None:
    """It is passed on like any other answer."""

    async def answer(got: Got, out: Out) -> None:
        await out.whole(307, b"elsewhere", ("location", "http://127.0.0.1:1/secret"))

    with upstream(answer) as up, running(behind(up)) as gateway:
        response = HTTP.post(gateway.url + CHAT, json={"model": "m", "messages": []})
        assert (response.status_code, response.headers["location"]) == (307, "http://127.0.0.1:1/secret")
        assert len(up.got) == 1


NO_UTF8 = b'"\xff":1,'
ODD_NAMES = {
    "chat": ("/deepseek/v1/chat/completions", b'{%b"model":"m","messages":[{%b"role":"user","content":"x"}]}'),
    "messages": ("/anthropic/v1/messages", b'{%b"model":"m","messages":[{%b"role":"user","content":"x"}]}'),
    "responses": ("/openai/v1/responses", b'{%b"model":"m","input":[{%b"role":"user","content":"x"}]}'),
    "gemini": (
        "/gemini/v1beta/models/m:generateContent",
        b'{%b"contents":[{"role":"user","parts":[{%b"text":"x"}]}]}',
    ),
    "code assist": (
        "/code-assist/v1internal:generateContent",
        b'{%b"model":"m","project":"p","request":{"contents":[{"role":"user","parts":[{%b"text":"x"}]}]}}',
    ),
    "converse": (
        "/bedrock/model/m/converse",
        b'{%b"messages":[{"role":"assistant","content":[{"toolUse":{"toolUseId":"a","name":"f","input":{%b"a":1}}}]}]}',
    ),
    "ollama": ("/ollama/api/chat", b'{%b"model":"m","messages":[{%b"role":"user","content":"x"}]}'),
}
TRANSLATED = {
    "responses to gemini": ("/gemini/v1/responses", ODD_NAMES["responses"][1]),
    "messages to gemini": ("/gemini/v1/messages", ODD_NAMES["messages"][1]),
    "chat to messages": ("/anthropic/v1/chat/completions", ODD_NAMES["chat"][1]),
    "gemini to chat": ("/deepseek/v1beta/models/m:generateContent", ODD_NAMES["gemini"][1]),
    "messages to chat": ("/deepseek/v1/messages", ODD_NAMES["messages"][1]),
}


@pytest.mark.parametrize("case", [*ODD_NAMES, *TRANSLATED])
@pytest.mark.parametrize("place", ["outside", "inside"])
def test_a_name_that_is_no_utf8_is_the_providers_to_judge(case: str, place: str) -> None:
    """Within a format the body is passed on unchanged; to another format the rest of it is."""
    path, text = {**ODD_NAMES, **TRANSLATED}[case]
    body = text % ((NO_UTF8, b"") if place == "outside" else (b"", NO_UTF8))
    names = ("deepseek", "anthropic", "openai", "gemini", "code-assist", "bedrock", "ollama")
    with upstream(say_hi) as up:
        rows = {name: replace(moved(name, up.url), auth="none") for name in names}
        with running({}, Settings(providers=rows)) as gateway:
            response = HTTP.post(gateway.url + path, content=body)
        assert response.status_code == 200
        assert case in TRANSLATED or up.got[0].body == body


BOMB = b'{"id":"1","choices":[{"index":0,"message":{"role":"assistant","content":"' + b" " * (200 * 2**20)
PACKED: dict[str, Callable[[], bytes]] = {
    "gzip": lambda: gzip.compress(BOMB, 9),
    "deflate": lambda: zlib.compress(BOMB, 9),
    "br": lambda: brotli.compress(BOMB, quality=5),
    "zstd": lambda: zstandard.compress(BOMB),
}


@pytest.mark.parametrize("encoding", PACKED)
@pytest.mark.parametrize("kind", ["application/json", "text/event-stream"])
def test_an_answer_that_is_a_compression_bomb_is_passed_on_unchanged(encoding: str, kind: str) -> None:
    """It is not read completely, and the client gets every byte of it."""
    packed = PACKED[encoding]()

    async def answer(got: Got, out: Out) -> None:
        await out.whole(200, packed, ("content-type", kind), ("content-encoding", encoding))

    with upstream(answer) as up, running(behind(up)) as gateway:
        body = {"model": "m", "messages": [], "stream": kind != "application/json"}
        headers = {"accept-encoding": encoding}
        with HTTP.stream("POST", gateway.url + CHAT, json=body, headers=headers) as response:
            assert b"".join(response.iter_raw()) == packed
        assert "unpacked" in gateway.lines[-1]["note"]
