"""How connections are made: address, proxy, certificate; and the errors if none is made."""

from __future__ import annotations

import asyncio
import contextlib
import datetime
import ipaddress
import shutil
import socket
import ssl
import subprocess
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from tests.gateway.test_http_client import HI, Server, serving, whole
from tests.gateway.tls_front import certify
from thoughtline.gateway import connecting
from thoughtline.gateway.connecting import ConnectFailed, Endpoint, connected, proxy_for, proxy_name, tls_context
from thoughtline.gateway.http_client import HttpClient

Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]
DAY = datetime.timedelta(days=1)


@contextlib.asynccontextmanager
async def listening(serve: Serve, context: ssl.SSLContext | None = None) -> AsyncIterator[int]:
    """A server; its port."""
    server = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=context)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()


async def fails(place: Endpoint, seconds: float = 20.0) -> tuple[str, str]:
    """Return why no connection is made, and which proxy failed."""
    with pytest.raises(ConnectFailed) as caught:
        await connected(place, asyncio.Protocol, seconds)
    return caught.value.cause, caught.value.proxy


async def hang_up(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.close()


async def speak_http(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
    writer.close()


async def be_silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.read()
    writer.close()


def closed_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


async def test_nobody_is_there() -> None:
    assert await fails(Endpoint("127.0.0.1", closed_port())) == ("refused", "")
    assert await fails(Endpoint("thoughtline.invalid", 80)) == ("dns", "")
    assert await fails(Endpoint("a" * 64 + ".example", 80)) == ("dns", "")


async def test_no_tls_is_spoken_there() -> None:
    for serve in (hang_up, speak_http):
        async with listening(serve) as port:
            assert await fails(Endpoint("127.0.0.1", port, is_tls=True)) == ("no_tls", "")


async def test_a_handshake_that_takes_too_long() -> None:
    async with listening(be_silent) as port:
        assert await fails(Endpoint("127.0.0.1", port, is_tls=True), 0.05) == ("timeout", "")


# --- certificates -----------------------------------------------------------------------------------------------------


def certificate(folder: Path, *, name: str = "127.0.0.1", since: int = -1, until: int = 1) -> None:
    """`server.pem`: a self-signed certificate."""
    key, now = ec.generate_private_key(ec.SECP256R1()), datetime.datetime.now(datetime.UTC)
    names = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "server")])
    made = (
        x509.CertificateBuilder(names, names, key.public_key(), x509.random_serial_number())
        .not_valid_before(now + since * DAY)
        .not_valid_after(now + until * DAY)
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address(name))]), critical=False)
        .sign(key, hashes.SHA256())
    )
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    public = made.public_bytes(serialization.Encoding.PEM)
    (folder / "server.pem").write_bytes(private + public)
    (folder / "authority.pem").write_bytes(public)


def self_signed(folder: Path) -> None:
    certificate(folder)


def expired(folder: Path) -> None:
    certificate(folder, since=-2, until=-1)


def of_tomorrow(folder: Path) -> None:
    certificate(folder, since=1, until=2)


def of_another(folder: Path) -> None:
    certificate(folder, name="127.0.0.9")


CERTIFICATES = [
    (certify, False, "unknown_authority"),
    (certify, True, ""),
    (self_signed, False, "self_signed"),
    (self_signed, True, ""),
    (expired, True, "expired"),
    (of_tomorrow, True, "not_valid_yet"),
    (of_another, True, "other_name"),
]


@pytest.mark.parametrize(("make", "is_trusted", "cause"), CERTIFICATES)
async def test_certificates(
    make: Callable[[Path], None],
    is_trusted: bool,
    cause: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Certificates of SSL_CERT_FILE are trusted, for their name and validity."""
    make(tmp_path)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "server.pem")
    if is_trusted:
        monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "authority.pem"))
    async with listening(be_silent, context) as port:
        place = Endpoint("127.0.0.1", port, is_tls=True)
        if cause:
            assert await fails(place) == (cause, "")
        else:
            await connected(place, asyncio.Protocol, 20.0)


@pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl is not installed")
async def test_a_folder_of_authorities(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In OpenSSL's form: a file is named by the hash of its certificate's subject."""
    certificate(tmp_path)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "server.pem")
    command = ["openssl", "x509", "-hash", "-noout", "-in", str(tmp_path / "authority.pem")]
    name = subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    folder = tmp_path / "folder"
    folder.mkdir()
    (tmp_path / "authority.pem").rename(folder / f"{name}.0")
    monkeypatch.setenv("SSL_CERT_DIR", str(folder))
    async with listening(be_silent, context) as port:
        await connected(Endpoint("127.0.0.1", port, is_tls=True), asyncio.Protocol, 20.0)


def test_a_python_that_finds_no_authorities(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It uses the system's, in their usual places."""
    certificate(tmp_path)
    monkeypatch.setattr(ssl.SSLContext, "load_default_certs", lambda *_: None)
    monkeypatch.setattr(connecting, "_has_files", lambda _: False)
    monkeypatch.setattr(connecting, "_BUNDLES", ("/nowhere", str(tmp_path / "authority.pem")))
    monkeypatch.delenv("SSL_CERT_FILE", raising=False)
    monkeypatch.delenv("SSL_CERT_DIR", raising=False)
    made = connecting._context.__wrapped__("", "")
    assert made.cert_store_stats()["x509"] == 1
    assert tls_context().check_hostname


# --- addresses --------------------------------------------------------------------------------------------------------


def resolved(monkeypatch: pytest.MonkeyPatch, *places: tuple[str, int]) -> None:
    """A name that has these addresses."""

    async def found(*_: object, **__: object) -> list[object]:
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", place) for place in places]

    monkeypatch.setattr(asyncio.get_running_loop(), "getaddrinfo", found)


async def test_the_next_address_is_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    """If one refuses, and if one does not answer."""
    async with listening(be_silent) as port:
        resolved(monkeypatch, ("127.0.0.1", closed_port()), ("127.0.0.1", port))
        await connected(Endpoint("name", 1), asyncio.Protocol, 20.0)
        with socket.create_server(("127.0.0.1", 0), backlog=0) as full, contextlib.ExitStack() as waiting:
            for _ in range(8):
                queued = waiting.enter_context(socket.socket())
                queued.setblocking(False)
                queued.connect_ex(full.getsockname())
            resolved(monkeypatch, full.getsockname(), ("127.0.0.1", port))
            await connected(Endpoint("name", 1), asyncio.Protocol, 20.0)
    resolved(monkeypatch, ("127.0.0.1", closed_port()), ("127.0.0.1", closed_port()))
    assert await fails(Endpoint("name", 1)) == ("refused", "")


# --- proxies ----------------------------------------------------------------------------------------------------------


@pytest.fixture
def environment(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Set these variables, and unset the others."""

    def set_all(**values: str) -> None:
        for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
            monkeypatch.delenv(name.upper(), raising=False)
            monkeypatch.delenv(name, raising=False)
            if name in values:
                monkeypatch.setenv(name.upper(), values[name])

    return set_all


def test_the_proxy_of_an_address(environment: Callable[..., None]) -> None:
    """That of its scheme, or of all schemes; none for this machine, nor for hosts in NO_PROXY."""
    environment(https_proxy="http://me:secret@proxy:3128/", no_proxy="inside.example, 10.0.0.0/8 ,.corp")
    assert proxy_name(proxy_for("https://api.example/v1")) == "proxy:3128"
    for url in ("http://api.example", "https://inside.example/v1", "https://a.inside.example", "https://x.corp"):
        assert proxy_for(url) == ""
    spelled = ("0.0.0.0:8000", "[::]:8000", "[::ffff:127.0.0.1]", "127.1", "127.0.1:80", "LOCALHOST.", "0177.0.0.1")
    for host in ("127.0.0.1:8000", "localhost", "[::1]:1", "a.localhost", "10.2.3.4", *spelled):
        assert proxy_for(f"https://{host}/v1") == ""
    assert proxy_for("https://11.2.3.4/v1") != ""
    environment(all_proxy="proxy:1")
    assert proxy_for("https://api.example") == "http://proxy:1"
    environment(all_proxy="http://proxy:1", no_proxy="*")
    assert proxy_for("https://api.example") == ""
    environment()
    assert proxy_for("https://api.example") == ""


class Proxy:
    """Connects every caller to one server, and records the requests."""

    def __init__(self, port: int, answer: bytes = b"HTTP/1.1 200 Connection established\r\n\r\n") -> None:
        self._port = port
        self._answer = answer
        self.asked: list[bytes] = []

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.asked.append(await reader.readuntil(b"\r\n\r\n"))
        writer.write(self._answer)
        await self.join(reader, writer)

    async def serve_socks(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        greeting = await reader.readexactly(3)
        writer.write(b"\x05" + greeting[2:])
        if greeting[2:] == b"\x02":
            self.asked.append(await reader.readexactly(2 + 2 + 1 + 3))
            writer.write(b"\x01\x00")
        head = await reader.readexactly(5)
        self.asked.append(head + await reader.readexactly(head[4] + 2))
        writer.write(b"\x05\x00\x00\x01\x00\x00\x00\x00\x00\x00")
        await self.join(reader, writer)

    async def join(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there, to = await asyncio.open_connection("127.0.0.1", self._port)
        await asyncio.gather(_pass_on(reader, to), _pass_on(there, writer))


async def _pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(ConnectionError):
        while data := await reader.read(65536):
            writer.write(data)
    writer.close()


@pytest.fixture
def far(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ssl.SSLContext:
    """A server's TLS context with the name far.example; its authority is trusted."""
    key, now = ec.generate_private_key(ec.SECP256R1()), datetime.datetime.now(datetime.UTC)
    names = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "far.example")])
    made = (
        x509.CertificateBuilder(names, names, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - DAY)
        .not_valid_after(now + DAY)
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("far.example")]), critical=False)
        .sign(key, hashes.SHA256())
    )
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    (tmp_path / "far.pem").write_bytes(private + made.public_bytes(serialization.Encoding.PEM))
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "far.pem"))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "far.pem")
    return context


async def test_tls_goes_through_a_proxy(environment: Callable[..., None], far: ssl.SSLContext) -> None:
    """In a tunnel: the proxy gets only its own login and the name of the host."""
    server = Server(HI)
    async with serving(server, far) as client:
        proxy = Proxy(int(server.url.rpartition(":")[2]))
        async with listening(proxy.serve) as port:
            environment(https_proxy=f"http://me:p%40ss@127.0.0.1:{port}")
            for _ in range(2):
                response = await client.send("GET", "https://far.example/v1", [("authorization", "Bearer key")])
                assert await whole(response) == b"hi"
    login = b"proxy-authorization: Basic bWU6cEBzcw=="
    assert proxy.asked == [b"CONNECT far.example:443 HTTP/1.1\r\nhost: far.example:443\r\n" + login + b"\r\n\r\n"]
    assert [one.split(b"\r\n")[:2] for one in server.asked] == [[b"GET /v1 HTTP/1.1", b"host: far.example"]] * 2
    assert not any(b"proxy-" in one for one in server.asked)


async def test_http_is_read_by_a_proxy(environment: Callable[..., None]) -> None:
    """It gets the whole address and its login with each request."""
    proxy = Server(HI)
    async with serving(proxy) as client:
        environment(http_proxy=proxy.url.replace("//", "//me:pw@"))
        assert await whole(await client.send("GET", "http://far.example:81/v1?a=b")) == b"hi"
    assert proxy.asked == [
        b"GET http://far.example:81/v1?a=b HTTP/1.1\r\nhost: far.example:81\r\n"
        b"proxy-authorization: Basic bWU6cHc=\r\n\r\n"
    ]


@pytest.mark.parametrize("login", ["", "me:pas@"])
async def test_socks(login: str, environment: Callable[..., None]) -> None:
    server = Server(HI)
    async with serving(server) as client:
        proxy = Proxy(int(server.url.rpartition(":")[2]))
        async with listening(proxy.serve_socks) as port:
            environment(all_proxy=f"socks5h://{login}127.0.0.1:{port}")
            assert await whole(await client.send("GET", "http://far.example/v1")) == b"hi"
            client.close()
    assert proxy.asked == [*([b"\x01\x02me\x03pas"] if login else []), b"\x05\x01\x00\x03\x0bfar.example\x00\x50"]
    assert server.asked == [b"GET /v1 HTTP/1.1\r\nhost: far.example\r\n\r\n"]


REFUSALS = [
    (b"HTTP/1.1 407 Proxy Authentication Required\r\n\r\n", "proxy_login"),
    (b"HTTP/1.1 403 Forbidden\r\ncontent-length: 0\r\n\r\n", "other"),
    (b"HTTP/1.1 200 OK\r\n\r\nand more", "other"),
    (b"hello 200 OK\r\n\r\n", "other"),
    (b"HTTP/1.1 200 OK\r\n" + b"x-a: b\r\n" * 4096, "other"),
]


@pytest.mark.parametrize(("answer", "cause"), REFUSALS)
async def test_a_proxy_that_refuses(answer: bytes, cause: str) -> None:
    """It is named, without its login."""

    async def refuse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(answer)
        writer.close()

    async with listening(refuse) as port:
        place = Endpoint("far.example", 443, is_tls=True, proxy=f"http://me:secret@127.0.0.1:{port}/")
        assert await fails(place) == (cause, f"127.0.0.1:{port}")


async def test_a_proxy_that_is_not_there() -> None:
    port = closed_port()
    for scheme in ("http", "socks5"):
        assert await fails(Endpoint("far.example", 80, proxy=f"{scheme}://127.0.0.1:{port}")) == (
            "refused",
            f"127.0.0.1:{port}",
        )
    assert await fails(Endpoint("far.example", 80, proxy="http://proxy.invalid:1")) == ("dns", "proxy.invalid:1")
    assert await fails(Endpoint("far.example", 80, proxy="gopher://p:1")) == ("proxy_scheme", "p:1")
    async with listening(hang_up) as port:
        assert await fails(Endpoint("far.example", 80, proxy=f"socks5://127.0.0.1:{port}")) == (
            "other",
            f"127.0.0.1:{port}",
        )


async def test_a_connection_that_is_not_waited_for_is_closed() -> None:
    """Even in the middle of a handshake."""
    left = asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        started.set()
        with contextlib.suppress(ConnectionError):
            await reader.read()
        left.set()
        writer.close()

    started = asyncio.Event()
    async with listening(serve) as port:
        asking = asyncio.ensure_future(HttpClient().send("GET", f"https://127.0.0.1:{port}/"))
        await started.wait()
        asking.cancel()
        async with asyncio.timeout(20):
            await left.wait()
