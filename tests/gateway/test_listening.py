"""The port: who may use it, and how connections are distributed over processes."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from thoughtline.gateway import listening
from thoughtline.gateway.listening import BACKLOG, for_another, listen
from thoughtline.settings import ServerSettings
from thoughtline.values.errors import Declined

needs_spreading = pytest.mark.skipif(not listening.SPREADS, reason="the system does not spread connections")


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    with ExitStack() as opened:
        yield opened


def server(workers: int, port: int = 0, host: str = "127.0.0.1") -> ServerSettings:
    return ServerSettings(host=host, port=port, workers=workers)


def accepted(listener: socket.socket) -> int:
    """The number of connections in its queue."""
    listener.setblocking(False)
    count = 0
    while True:
        try:
            connection, _ = listener.accept()
        except BlockingIOError:
            return count
        connection.close()
        count += 1


@needs_spreading
@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
def test_connections_are_spread_over_the_sockets_that_listen(stack: ExitStack, host: str) -> None:
    """A socket whose process does not listen yet gets none."""
    first = stack.enter_context(listen(server(3, host=host)))
    second, third = (stack.enter_context(for_another(first)) for _ in range(2))
    second.listen(BACKLOG)
    for _ in range(100):
        stack.enter_context(socket.create_connection(first.getsockname()[:2]))
    shares = accepted(first), accepted(second)
    assert sum(shares) == 100
    assert min(shares) > 10
    third.listen(BACKLOG)
    assert accepted(third) == 0


def test_without_spreading_all_accept_from_one_queue(stack: ExitStack, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first process takes a connection."""
    monkeypatch.setattr(listening, "SPREADS", False)
    first = stack.enter_context(listen(server(2)))
    other = stack.enter_context(for_another(first))
    stack.enter_context(socket.create_connection(first.getsockname()))
    assert accepted(other) == 1
    assert accepted(first) == 0


@pytest.mark.parametrize("workers", [1, 2])
def test_a_port_is_not_shared_with_another_program(stack: ExitStack, workers: int) -> None:
    """Another gateway of the same user would get some of the requests."""
    taken = stack.enter_context(listen(server(2)))
    stack.enter_context(for_another(taken))
    with pytest.raises(Declined, match="can't be used"):
        listen(server(workers, taken.getsockname()[1]))
