"""Connects to other servers: by name, through the proxy of the environment, with TLS.

    host → addresses → TCP (the first that answers) → SOCKS or CONNECT, if there is a proxy → TLS

Proxies are not used for this machine: they would look for the server on their own machine, and see the key.
"""

from __future__ import annotations

import asyncio
import errno
import ipaddress
import os
import socket
import ssl
from base64 import b64encode
from collections.abc import Callable
from functools import lru_cache
from itertools import chain, zip_longest
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeVar
from urllib.parse import unquote, urlsplit
from urllib.request import getproxies, proxy_bypass

from thoughtline.destinations.addresses import is_loopback_url

Cause = Literal[
    "dns",
    "refused",
    "unreachable",
    "timeout",
    "proxy_login",
    "proxy_scheme",
    "unknown_authority",
    "self_signed",
    "expired",
    "not_valid_yet",
    "other_name",
    "certificate",
    "no_tls",
    "other",
]

STAGGER_SECONDS = 0.25
"""RFC 8305, 5: after this time the next address is tried in parallel."""

KEEP_ALIVE_SECONDS = 60
_MAX_PROXY_HEAD = 16 * 2**10
_BUNDLES = (
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
)
"""Debian, Fedora, openSUSE, and Alpine or macOS: for a Python whose OpenSSL looks elsewhere."""

_CERTIFICATES: dict[int, Cause] = {
    9: "not_valid_yet",
    10: "expired",
    18: "self_signed",
    19: "unknown_authority",
    20: "unknown_authority",
    21: "unknown_authority",
    62: "other_name",
    64: "other_name",
}
"""OpenSSL's x509_vfy.h."""

_NO_TLS = frozenset({"WRONG_VERSION_NUMBER", "RECORD_LAYER_FAILURE", "PACKET_LENGTH_TOO_LONG", "HTTP_REQUEST"})
"""OpenSSL's reasons for bytes that are not TLS. Another sign is a server that disconnects in the handshake."""

ProtocolType = TypeVar("ProtocolType", bound=asyncio.Protocol)
_Address = tuple[int, int, int, str, Any]
"""An entry of `getaddrinfo`."""


class ConnectFailed(Exception):
    """No connection was made. `proxy` is the proxy that failed, if one did."""

    def __init__(self, cause: Cause, proxy: str = "") -> None:
        super().__init__(cause)
        self.cause = cause
        self.proxy = proxy


class Endpoint(NamedTuple):
    """Where to connect to; `proxy` is the address of the proxy, with its login."""

    host: str
    port: int
    is_tls: bool = False
    proxy: str = ""

    @property
    def takes_whole_addresses(self) -> bool:
        """Whether requests go to a proxy that reads them, rather than through it."""
        return self.proxy != "" and not self.is_tls and not self.proxy.startswith("socks")


async def connected(place: Endpoint, factory: Callable[[], ProtocolType], seconds: float) -> ProtocolType:
    """Return a connected protocol. Raises `ConnectFailed`."""
    is_through = False
    try:
        async with asyncio.timeout(seconds):
            tcp = await _through_proxy(place) if place.proxy else await _tcp(place.host, place.port)
            is_through = True
            return await _protocol(tcp, place, factory)
    except (OSError, EOFError, ValueError, OverflowError) as error:  # includes `TimeoutError` and `ssl.SSLError`
        cause = _cause(error)
        if is_through and place.is_tls and isinstance(error, EOFError | ConnectionError):
            cause = "no_tls"
        raise ConnectFailed(cause, "" if is_through else proxy_name(place.proxy)) from None


async def _protocol(tcp: socket.socket, place: Endpoint, factory: Callable[[], ProtocolType]) -> ProtocolType:
    loop = asyncio.get_running_loop()
    try:
        if not place.is_tls:
            return (await loop.create_connection(factory, sock=tcp))[1]
        secure = tls_context()
        return (await loop.create_connection(factory, sock=tcp, ssl=secure, server_hostname=place.host))[1]
    except BaseException:
        tcp.close()
        raise


def _cause(error: Exception) -> Cause:
    match error:
        case socket.gaierror() | UnicodeError():  # an unknown name, or an invalid one
            return "dns"
        case ssl.SSLCertVerificationError():
            return _CERTIFICATES.get(error.verify_code, "certificate")
        case ssl.SSLEOFError():
            return "no_tls"
        case ssl.SSLError():
            return "no_tls" if error.reason in _NO_TLS else "other"
        case TimeoutError():
            return "timeout"
        case ConnectionRefusedError():
            return "refused"
        case OSError() if error.errno in (errno.ENETUNREACH, errno.EHOSTUNREACH, errno.EADDRNOTAVAIL):
            return "unreachable"
    return "other"


# --- TCP --------------------------------------------------------------------------------------------------------------


async def _tcp(host: str, port: int) -> socket.socket:
    found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    if len(found) == 1:
        return await _dialled(found[0])
    first = [one for one in found if one[0] == found[0][0]]
    others = [one for one in found if one[0] != found[0][0]]
    return await _raced([one for one in chain.from_iterable(zip_longest(first, others)) if one is not None])


async def _raced(addresses: list[_Address]) -> socket.socket:
    """Return the first connection. The next address is tried when one has failed or takes long."""
    left, trying, error = list(addresses), set[asyncio.Task[socket.socket]](), OSError()
    try:
        while left or trying:
            if left:
                trying.add(asyncio.ensure_future(_dialled(left.pop(0))))
            done, trying = await asyncio.wait(
                trying, timeout=STAGGER_SECONDS if left else None, return_when=asyncio.FIRST_COMPLETED
            )
            made = []
            for task in done:
                problem = task.exception()
                if isinstance(problem, OSError):
                    error = problem
                else:
                    made.append(task.result())
            for other in made[1:]:
                other.close()
            if made:
                return made[0]
        raise error
    finally:
        for task in trying:
            task.cancel()


async def _dialled(address: _Address) -> socket.socket:
    family, kind, protocol, _, place = address
    tcp = socket.socket(family, kind, protocol)
    try:
        tcp.setblocking(False)
        tcp.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        tcp.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        if hasattr(socket, "TCP_KEEPIDLE"):
            tcp.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, KEEP_ALIVE_SECONDS)
        await asyncio.get_running_loop().sock_connect(tcp, place)
    except BaseException:
        tcp.close()
        raise
    return tcp


# --- proxies ----------------------------------------------------------------------------------------------------------


def proxy_for(url: str) -> str:
    """Return the proxy that the environment names for an address, with its login; empty if none."""
    parts, proxies = urlsplit(url), getproxies()
    found = proxies.get(parts.scheme) or proxies.get("all") or ""
    host = parts.hostname or ""
    if not found or is_loopback_url(url) or proxy_bypass(host) or _is_in_networks(host, proxies.get("no", "")):
        return ""
    return found if "://" in found else f"http://{found}"


def proxy_name(proxy: str) -> str:
    """Return a proxy's address without its login."""
    return proxy.rpartition("@")[2].rpartition("//")[2].rstrip("/")


def _is_in_networks(host: str, listed: str) -> bool:
    """Whether an address is in a network of NO_PROXY, such as 10.0.0.0/8: Python itself only supports names."""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return False
    for part in listed.split(","):
        try:
            if address in ipaddress.ip_network(part.strip(), strict=False):
                return True
        except ValueError:
            continue
    return False


async def _through_proxy(place: Endpoint) -> socket.socket:
    """Connect to the proxy and, unless it reads whole requests, through it to the destination."""
    parts = urlsplit(place.proxy)
    is_socks = parts.scheme in ("socks5", "socks5h")
    if not parts.hostname or not (is_socks or parts.scheme == "http"):
        raise ConnectFailed("proxy_scheme", proxy_name(place.proxy))
    tcp = await _tcp(parts.hostname, parts.port or (1080 if is_socks else 80))
    try:
        if is_socks:
            await _ask_socks(tcp, place)
        elif place.is_tls:
            await _ask_tunnel(tcp, place)
    except BaseException:
        tcp.close()
        raise
    return tcp


def basic_login(url: str) -> str:
    """Return the header value for the login in an address; empty if it has none."""
    parts = urlsplit(url)
    if parts.username is None:
        return ""
    login = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
    return f"Basic {b64encode(login.encode()).decode()}"


async def _ask_tunnel(tcp: socket.socket, place: Endpoint) -> None:
    """Open a tunnel: RFC 9110, 9.3.6."""
    loop = asyncio.get_running_loop()
    target = f"[{place.host}]:{place.port}" if ":" in place.host else f"{place.host}:{place.port}"
    login = basic_login(place.proxy)
    lines = [f"CONNECT {target} HTTP/1.1", f"host: {target}", *([f"proxy-authorization: {login}"] if login else [])]
    await loop.sock_sendall(tcp, "\r\n".join((*lines, "", "")).encode())
    head = b""
    while b"\r\n\r\n" not in head:
        data = await loop.sock_recv(tcp, 4096)
        head += data
        if not data or len(head) > _MAX_PROXY_HEAD:
            raise ConnectFailed("other", proxy_name(place.proxy))
    status = head.split(b" ", 2)[1:2]
    if status == [b"407"]:
        raise ConnectFailed("proxy_login", proxy_name(place.proxy))
    # A TLS server does not speak first: there must be nothing after the head.
    if status != [b"200"] or not head.startswith(b"HTTP/1.") or not head.endswith(b"\r\n\r\n"):
        raise ConnectFailed("other", proxy_name(place.proxy))


async def _ask_socks(tcp: socket.socket, place: Endpoint) -> None:
    """Connect through SOCKS 5: RFC 1928, with a login by RFC 1929. The proxy resolves names."""
    loop, parts = asyncio.get_running_loop(), urlsplit(place.proxy)
    has_login = parts.username is not None
    await loop.sock_sendall(tcp, b"\x05\x01\x02" if has_login else b"\x05\x01\x00")
    chosen = await _exactly(tcp, 2)
    if chosen == b"\x05\x02" and has_login:
        user, password = unquote(parts.username or "").encode(), unquote(parts.password or "").encode()
        await loop.sock_sendall(tcp, b"\x01%c%b%c%b" % (len(user), user, len(password), password))
        if (await _exactly(tcp, 2))[1:] != b"\x00":
            raise ConnectFailed("proxy_login", proxy_name(place.proxy))
    elif chosen != b"\x05\x00":
        raise ConnectFailed("proxy_login" if chosen == b"\x05\xff" else "other", proxy_name(place.proxy))
    name = place.host.encode("idna")
    await loop.sock_sendall(tcp, b"\x05\x01\x00\x03%c%b%b" % (len(name), name, place.port.to_bytes(2)))
    version, answer, _, kind = await _exactly(tcp, 4)
    if (version, answer) != (5, 0):
        raise ConnectFailed("other", proxy_name(place.proxy))
    size = {1: 4, 4: 16}.get(kind) or (await _exactly(tcp, 1))[0]
    await _exactly(tcp, size + 2)


async def _exactly(tcp: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        piece = await asyncio.get_running_loop().sock_recv(tcp, size - len(data))
        if not piece:
            raise EOFError
        data += piece
    return data


# --- TLS --------------------------------------------------------------------------------------------------------------


def tls_context() -> ssl.SSLContext:
    """Return the TLS context: it verifies certificates with the system's authorities, or those that the environment
    names."""
    return _context(os.environ.get("SSL_CERT_FILE", ""), os.environ.get("SSL_CERT_DIR", ""))


@lru_cache(8)
def _context(file: str, folder: str) -> ssl.SSLContext:
    """Cached, because making one takes 20 ms. OpenSSL reads both variables itself."""
    context = ssl.create_default_context()
    context.set_alpn_protocols(["http/1.1"])
    # Python 3.13 sets it: then certificates of a private authority need extensions that few have.
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    if not (
        file or folder or context.cert_store_stats()["x509_ca"] or _has_files(ssl.get_default_verify_paths().capath)
    ):
        for bundle in filter(os.path.exists, _BUNDLES):
            context.load_verify_locations(bundle)
            break
    return context


def _has_files(folder: str | None) -> bool:
    return folder is not None and any(Path(folder).iterdir())
