"""One budget for client connections, requests to providers and abandoned requests."""

from __future__ import annotations

import asyncio
import subprocess
import sys

import pytest

from tests.gateway.gateways import running
from tests.gateway.test_bounds import asking
from tests.gateway.test_bytes import behind
from tests.gateway.upstreams import Got, Out, upstream
from tests.sim.faces import HTTP
from thoughtline.gateway import in_flight
from thoughtline.gateway.in_flight import RESERVED_DESCRIPTORS, InFlight, Owner
from thoughtline.settings import ServerSettings

SERVER = ServerSettings()
SIZE = 80


def budget(size: int = SIZE) -> tuple[InFlight, list[tuple[str, str]]]:
    """A budget of so many descriptors, and what it has logged."""
    logged: list[tuple[str, str]] = []
    return InFlight(lambda what, words: logged.append((what, words)), RESERVED_DESCRIPTORS + size), logged


def owner(number: int, address: str = "10.0.0.1") -> Owner:
    """A tenant of an address."""
    return Owner(address, f"tenant {number}")


def test_clients_and_abandoned_requests_share_one_budget() -> None:
    """A client takes two descriptors, its own and one to a provider; an abandoned request one."""
    held, _ = budget()
    for number in range(10):
        held.abandon(owner(number))
    admitted = 0
    while held.admit("10.0.0.2", SERVER):
        admitted += 1
    assert 2 * admitted + 10 == SIZE
    held.release(owner(0))
    held.release(owner(1))
    assert held.admit("10.0.0.2", SERVER)


def test_the_last_descriptors_are_for_no_client() -> None:
    """The number of a client's descriptor shows how many are taken, whatever has opened them."""
    held, logged = budget(SIZE)
    limit = RESERVED_DESCRIPTORS + SIZE
    assert held.admit("10.0.0.2", SERVER, limit - in_flight.LAST_DESCRIPTORS - 1)
    assert not held.admit("10.0.0.2", SERVER, limit - in_flight.LAST_DESCRIPTORS)
    assert [what for what, _ in logged] == ["connections refused"]


def test_made_up_tenants_share_the_limit_of_their_address() -> None:
    """Other addresses are not affected, nor are tenants with a client key."""
    held, logged = budget()
    for number in range(SIZE // 4):
        assert held.abandon(owner(number))
    assert not held.abandon(owner(99))
    assert held.abandon(owner(99, "10.0.0.2"))
    assert held.abandon(Owner("10.0.0.1", "key", has_key=True))
    assert [what for what, _ in logged] == ["requests abandoned", "requests cancelled"]
    assert "20 abandoned requests, 20 from 10.0.0.1" in logged[-1][1]


def test_a_tenant_and_all_together_are_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also a tenant that is known; and no number of addresses takes more than half of the budget."""
    monkeypatch.setattr(in_flight, "MAX_OF_TENANT", 3)
    held, _ = budget()
    known = Owner("10.0.0.1", "known", has_key=True)
    assert [held.abandon(known) for _ in range(4)] == [True, True, True, False]
    for number in range(SIZE // 2 - 3):
        assert held.abandon(owner(number, f"10.0.1.{number}"))
    assert not held.abandon(owner(99, "10.0.0.9"))
    assert held.problem(SERVER).startswith(f"{SIZE // 2} abandoned requests")
    held.release(known)
    assert held.problem(SERVER) == ""
    assert held.abandon(owner(99, "10.0.0.9"))


def test_a_request_that_is_left_before_its_first_byte_is_cancelled() -> None:
    """Its connection to the provider is closed at once, and it counts for nothing."""

    async def answer(got: Got, out: Out) -> None:
        await out.gone()

    with upstream(answer) as up, running(behind(up)) as gateway, gateway.listening() as next_line:
        with asking(gateway):
            up.wait_until(lambda up: len(up.got) == 1)
        up.wait_until(lambda up: up.open == 0)
        assert next_line().code == "client_gone"
        assert gateway.state.in_flight.abandoned == 0


def test_an_answer_that_has_begun_is_counted_until_it_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    """The page of metrics and `/readyz` show it."""
    may_end = False

    async def answer(got: Got, out: Out) -> None:
        await out.stream()
        await out.chunk(b": begins\n\n")
        await out.until(lambda: may_end)
        await out.end()

    with upstream(answer) as up, running(behind(up)) as gateway, gateway.listening() as next_line:
        budget = gateway.state.in_flight
        monkeypatch.setattr(in_flight, "RESERVED_DESCRIPTORS", budget._descriptors - 8)
        with asking(gateway) as client:
            assert client.recv(4096).startswith(b"HTTP/1.1 200 ")
        gateway.wait_for(_until(budget, 1))
        assert HTTP.get(f"{gateway.url}/readyz").json()["status"] == "crowded"
        assert "\nthoughtline_requests_abandoned 1.0" in HTTP.get(f"{gateway.url}/metrics").text
        may_end = True
        next_line()
        gateway.wait_for(_until(budget, 0))
        assert HTTP.get(f"{gateway.url}/readyz").json()["status"] == "ready"


async def _until(budget: InFlight, count: int) -> None:
    async with asyncio.timeout(30):
        while budget.abandoned != count:
            await asyncio.sleep(0)


def test_an_answer_is_read_on_only_where_there_is_room(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without room, the connection to the provider is closed as soon as the client leaves."""
    monkeypatch.setattr(in_flight, "MAX_OF_TENANT", 1)

    async def answer(got: Got, out: Out) -> None:
        await out.stream()
        await out.chunk(b": begins\n\n")
        await out.gone()

    with upstream(answer) as up, running(behind(up)) as gateway, gateway.listening() as next_line:
        clients = [asking(gateway) for _ in range(2)]
        for client in clients:
            assert client.recv(4096)
        for client in clients:
            client.close()
        assert next_line().note == "the client left; not read to the end"
        up.wait_until(lambda up: up.open == 1)
        assert gateway.state.in_flight.abandoned == 1


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_abandoned_requests_never_take_the_last_descriptors() -> None:
    """600 requests with made-up keys at 512 descriptors: others are served, and the descriptors come back."""
    command = [sys.executable, "-m", "bench.abandoned", "--requests", "600", "--descriptors", "512"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.splitlines()[-1].startswith("held: ")
