"""The listening port: one socket for one process, or one per process where the system distributes connections.

If several processes share one socket, the first to wake takes nearly all connections. Linux distributes them over
several sockets on one port (SO_REUSEPORT, socket(7)); elsewhere the option is missing, or gives all connections to the
latest.
"""

from __future__ import annotations

import errno
import os
import socket
import sys

from thoughtline.settings import ServerSettings
from thoughtline.values.errors import Declined

BACKLOG = 2048

SPREADS = sys.platform == "linux"
"""Whether several sockets on one port each get their share of the connections."""

_REMEDIES = {
    errno.EADDRINUSE: "Is a gateway running there? Choose another with --port.",
    errno.EACCES: "Choose a port from 1024 on with --port.",
}


def listen(server: ServerSettings) -> socket.socket:
    """Return a listening socket on a port that no other program uses. Raises with the reason and a remedy."""
    family = socket.AF_INET6 if ":" in server.host else socket.AF_INET
    listener = _open(family)
    try:
        listener.bind((server.host, server.port))
        if SPREADS and server.workers > 1:
            # Set after binding: a port that another program of the same user shares must not look free.
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        listener.listen(BACKLOG)
    except OSError as error:
        listener.close()
        number = error.errno or 0
        remedy = _REMEDIES.get(number, "Choose an address of this machine with --host.")
        why = os.strerror(number) if number > 0 else error.strerror
        problem = f"{server.host}:{server.port} can't be used: {why}."
        raise Declined(500, "address_in_use", problem, remedy) from None
    return listener


def for_another(listener: socket.socket) -> socket.socket:
    """Return a socket for another process on the same port. It gets its share of connections once that process listens.
    If the system does not distribute them, both have the same socket."""
    if not SPREADS:
        return listener.dup()
    other = _open(listener.family)
    other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    other.bind(listener.getsockname())
    return other


def _open(family: socket.AddressFamily) -> socket.socket:
    """Make a socket like `socket.create_server`: the port can be reused at once, and IPv6 does not include IPv4."""
    listener = socket.socket(family, socket.SOCK_STREAM)
    if os.name == "posix":
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    if family == socket.AF_INET6:
        listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
    return listener
