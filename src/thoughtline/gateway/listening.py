"""The port: one socket for one process, and one for each of several where the system spreads connections over them.

From one socket that several processes share, the first to wake takes nearly all connections. Linux gives each of
several sockets on one port its share (SO_REUSEPORT, socket(7)); elsewhere the option is missing, or gives all to the
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
    """A listening socket on a port that no other program uses, or a refusal that says what is wrong."""
    family = socket.AF_INET6 if ":" in server.host else socket.AF_INET
    listener = _open(family)
    try:
        listener.bind((server.host, server.port))
        if SPREADS and server.workers > 1:
            # After it is bound: a port that a program of the same user shares must not be taken for free.
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
    """A socket for another process on the same port. It gets its share of the connections once that process listens.
    Where the system does not spread them, both have the same socket."""
    if not SPREADS:
        return listener.dup()
    other = _open(listener.family)
    other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    other.bind(listener.getsockname())
    return other


def _open(family: socket.AddressFamily) -> socket.socket:
    """As `socket.create_server` makes it: a port can be used again at once, IPv6 is not IPv4 too."""
    listener = socket.socket(family, socket.SOCK_STREAM)
    if os.name == "posix":
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    if family == socket.AF_INET6:
        listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
    return listener
