"""Servers with scripted answers: a status, TLS with an untrusted certificate, or no answer at all."""

from __future__ import annotations

import asyncio
import datetime
import socket
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from email.utils import formatdate
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID


class Scripted:
    """What a server was asked, as raw heads."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.heads: list[str] = []


@asynccontextmanager
async def answering(
    status: int, *, now: float | None = None, body: bytes = b"{}", context: ssl.SSLContext | None = None
) -> AsyncIterator[Scripted]:
    """A server that answers everything with one status and one time."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            scripted.heads.append((await reader.readuntil(b"\r\n\r\n")).decode())
            date = f"date: {formatdate(now, usegmt=True)}\r\n" if now is not None else ""
            head = f"HTTP/1.1 {status} X\r\n{date}content-length: {len(body)}\r\nconnection: close\r\n\r\n"
            writer.write(head.encode() + body)
            await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0, ssl=context)
    scripted = Scripted(server.sockets[0].getsockname()[1])
    async with server:
        yield scripted


@asynccontextmanager
async def hanging_up() -> AsyncIterator[int]:
    """The port of a server that takes connections and ends them."""

    async def end(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.close()

    server = await asyncio.start_server(end, "127.0.0.1", 0)
    async with server:
        yield server.sockets[0].getsockname()[1]


def closed_port() -> int:
    """A port on which nothing listens: it was just given back."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


def self_signed(folder: Path) -> ssl.SSLContext:
    """TLS with a certificate that only its owner believes."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "127.0.0.1")])
    day = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(day)
        .not_valid_after(day + datetime.timedelta(days=36500))
        .sign(key, hashes.SHA256())
    )
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    place = folder / "server.pem"
    place.write_bytes(private + certificate.public_bytes(serialization.Encoding.PEM))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(place)
    return context
