"""Two gateways on one Redis, Valkey cluster or PostgreSQL: what one counts and learns, the other knows."""

from __future__ import annotations

import asyncio
import contextlib
import json
import threading
from collections.abc import Callable, Iterator

import httpx
import msgspec
import pytest

from tests.gateway.gateways import Running, running
from tests.gateway.managed_gateways import TOKEN
from tests.gateway.teams import Clock, Team, answer_well, answers, who
from tests.gateway.test_admin_events import EVENTS, Heard
from tests.gateway.upstreams import Got, Out, upstream
from tests.stores.places import own_database, wipe
from tests.stores.servers import Valkey
from thoughtline.destinations.catalogue import Provider
from thoughtline.failover.failures import TargetFailure
from thoughtline.gateway import fleet
from thoughtline.gateway.bus import StoreCounts
from thoughtline.gateway.client_keys import ClientKeys
from thoughtline.gateway.fleet import AsideFact, Fleet, News
from thoughtline.settings import RouteSettings, ServerSettings, Settings
from thoughtline.stores import StoreSettings
from thoughtline.stores.packing import Packer

KEYS = ("key-1", "key-2", "key-3")


@pytest.fixture(params=("redis", "cluster", "postgres"))
def fleet_url(request: pytest.FixtureRequest) -> Iterator[str]:
    """Every store that machines can share, empty."""
    url = request.getfixturevalue(f"{request.param}_url")
    if request.param == "cluster":
        asyncio.run(wipe(url))
        yield url
        return
    with own_database(url) as own:
        yield own


class Replicas:
    """Gateways with a route `team` to two targets, on one store."""

    def __init__(self, url: str, stack: contextlib.ExitStack) -> None:
        self._url, self._stack = url, stack
        self.team, self.clock = Team(), Clock()
        for name in ("one", "two"):
            self.team.ups[name] = stack.enter_context(upstream(self.team.answer_of(name)))
        self.gateways: list[Running] = []

    def start(
        self, stack: contextlib.ExitStack | None = None, *, takes_keys: bool = False, store: StoreSettings | None = None
    ) -> Running:
        rows = {
            name: Provider(name, self.team.ups[name].url, ("openai_chat",), api_keys=keys)
            for name, keys in (("one", ("key-of-one",)), ("two", KEYS))
        }
        routes = {"team": RouteSettings("team", ("one/m", "two/m"))}
        server = ServerSettings(admin_token=TOKEN)
        settings = Settings(providers=rows, routes=routes, server=server, store=store or StoreSettings())
        started = running({}, settings, self._url, takes_keys=takes_keys, clock=self.clock)
        gateway = (stack or self._stack).enter_context(started)
        self.gateways.append(gateway)
        until(lambda: all(bus_of(one).others == len(self.gateways) - 1 for one in self.gateways))
        return gateway


@contextlib.contextmanager
def replicas(url: str) -> Iterator[Replicas]:
    with contextlib.ExitStack() as stack:
        yield Replicas(url, stack)


def until(holds: Callable[[], bool]) -> None:
    """Wait for an effect of another process."""

    async def wait() -> None:
        async with asyncio.timeout(30):
            while not holds():
                await asyncio.sleep(0.0005)

    asyncio.run(wait())


def bus_of(gateway: Running) -> Fleet:
    assert isinstance(gateway.state.bus, Fleet)
    return gateway.state.bus


def send(
    gateway: Running, key: str = "a-key", model: str = "team", words: str = "hello", **more: object
) -> httpx.Response:
    body = {"model": model, "messages": [{"role": "user", "content": words}], **more}
    headers = {"authorization": f"Bearer {key}"}
    return httpx.post(f"{gateway.url}/v1/chat/completions", json=body, headers=headers, timeout=60)


def target(gateway: Running, name: str) -> dict[str, object]:
    """A target in `/api/routes`."""
    answer = httpx.get(f"{gateway.url}/api/routes", headers={"authorization": f"Bearer {TOKEN}"})
    return next(one for one in answer.json()["routes"][0]["targets"] if one["name"] == name)


def new_key(gateway: Running, requests_per_minute: int | None = None, concurrent_streams: int | None = None) -> str:
    keys = gateway.state.keys
    assert isinstance(keys, ClientKeys)
    limits = {"requests_per_minute": requests_per_minute, "concurrent_streams": concurrent_streams}
    secret, _ = gateway.wait_for(keys.add("ann", **limits))  # type: ignore[arg-type]  # by name
    return secret


def test_a_limit_is_one_for_all(fleet_url: str) -> None:
    """Requests of a key at one count at the other, and at one that joins later."""
    with replicas(fleet_url) as some:
        one, other = some.start(takes_keys=True), some.start(takes_keys=True)
        key = new_key(one, requests_per_minute=3)
        other.refresh()
        assert [send(one, key).status_code for _ in range(2)] == [200, 200]
        until(lambda: _heard(other) == 2)
        assert [send(other, key).status_code for _ in range(2)] == [200, 429]
        until(lambda: _heard(one) == 1)
        refused = send(one, key)
        assert (refused.status_code, 50 < int(refused.headers["retry-after"]) <= 60) == (429, True)
        third = some.start(takes_keys=True)
        until(lambda: _heard(third) == 3)
        assert send(third, key).status_code == 429


def _heard(gateway: Running) -> int:
    """The number of others' requests that a gateway knows."""

    async def count() -> int:
        others = bus_of(gateway).key_counts._others.values()
        return sum(count for workers in others for taken in workers.values() for _, count in taken.entries)

    return gateway.wait_for(count())


def _held_elsewhere(gateway: Running) -> int:
    """The number of others' streams that it knows."""

    async def count() -> int:
        return sum(sum(workers.values()) for workers in bus_of(gateway).key_counts._held.values())

    return gateway.wait_for(count())


def test_streams_are_counted_by_all(fleet_url: str) -> None:
    """An open stream at one leaves no room at the other; there is room when it ends, and when one leaves."""
    with replicas(fleet_url) as some, contextlib.ExitStack() as leaving:
        one, other = some.start(takes_keys=True), some.start(takes_keys=True)
        key = new_key(one, concurrent_streams=1)
        other.refresh()
        go_on: list[str] = []

        async def slow(got: Got, out: Out) -> None:
            await out.stream()
            await out.chunk(b'data: {"choices":[{"delta":{"content":"first"}}]}\n\n')
            await out.until(lambda: bool(go_on))
            await out.chunk(b"data: [DONE]\n\n")
            await out.end()

        some.team.does["one"] = slow
        body = {"model": "team", "stream": True, "messages": [{"role": "user", "content": "hello"}]}
        headers = {"authorization": f"Bearer {key}"}
        asked = httpx.stream("POST", f"{one.url}/v1/chat/completions", json=body, headers=headers, timeout=60)
        response = leaving.enter_context(asked)
        assert response.status_code == 200
        until(lambda: _held_elsewhere(other) == 1)
        assert send(other, key, stream=True).json()["error"]["code"] == "too_many_streams"
        go_on.append("now")
        response.read()
        until(lambda: _held_elsewhere(other) == 0)
        assert send(other, key, stream=True).status_code == 200


def test_an_open_breaker_is_open_for_all(fleet_url: str) -> None:
    """A target that asks one gateway to wait is not used by the other, nor by one that joins later; when one's probe is
    answered, it is closed for all."""
    with replicas(fleet_url) as some:
        one, other = some.start(), some.start()
        some.team.does["one"] = answers(503, b"{}", ("retry-after", "30"))
        assert who(send(one)) == "two"
        until(lambda: other.state.health.breakers.state("one/m", some.clock()) == "open")
        assert who(send(other)) == "two"
        assert len(some.team.ups["one"].got) == 1
        third = some.start()
        until(lambda: third.state.health.breakers.state("one/m", some.clock()) == "open")
        assert [target(gateway, "one/m")["breaker"] for gateway in some.gateways] == ["open"] * 3
        some.clock.now += 31
        del some.team.does["one"]
        assert who(send(other, words="a conversation that stays with nobody yet")) == "one"
        until(lambda: all(not gateway.state.health.breakers.known for gateway in some.gateways))
        assert [target(gateway, "one/m")["breaker"] for gateway in some.gateways] == ["closed"] * 3


def test_a_probe_is_one_for_all(fleet_url: str) -> None:
    """While one gateway tries a target whose pause is over, the other does not."""
    with replicas(fleet_url) as some:
        one, other = some.start(), some.start()
        some.team.does["one"] = answers(503, b"{}", ("retry-after", "30"))
        send(one)
        breakers = other.state.health.breakers
        until(lambda: breakers.state("one/m", some.clock()) == "open")
        some.clock.now += 31
        one.loop.call_soon_threadsafe(one.state.health.attempted, "one/m", some.clock())
        until(
            lambda: breakers.state("one/m", some.clock()) == "half_open" and not breakers.admits("one/m", some.clock())
        )
        assert who(send(other)) == "two"


def test_a_key_that_was_put_aside_is_for_all(fleet_url: str) -> None:
    """A provider's key that was rejected at one is not used at the other; one that works again is used by all."""
    with replicas(fleet_url) as some:
        one, other = some.start(), some.start()
        rejected: list[str | None] = []

        async def reject(got: Got, out: Out) -> None:
            rejected.append(got.header("authorization"))
            await (out.whole(401, b"{}") if len(rejected) == 1 else answer_well("two", got, out))

        some.team.does["two"] = reject
        assert send(one, model="two/m").status_code == 200
        until(lambda: len(other.state.health.keys.aside) == 1)
        for _ in range(3):
            assert send(other, model="two/m").status_code == 200
        assert rejected.count(rejected[0]) == 1
        some.clock.now += 700
        bad = next(key for key in KEYS if f"Bearer {key}" == rejected[0])
        one.loop.call_soon_threadsafe(one.state.health.keys.succeeded, "two", bad, "")
        until(lambda: not other.state.health.keys.aside)


def test_much_is_sent_in_parts(fleet_url: str) -> None:
    """More than fits into one message: a process that joins later receives all of it."""
    with replicas(fleet_url) as some:
        one = some.start()
        for number in range(500):
            one.loop.call_soon_threadsafe(one.state.health.keys.adopt, f"two:{number:032x}", some.clock() + 60)
        other = some.start()
        until(lambda: len(other.state.health.keys.aside) == 500)


def test_an_event_is_heard_at_all(fleet_url: str) -> None:
    """A listener at one receives the requests of the other live; without listeners nothing is sent."""
    with replicas(fleet_url) as some:
        one, other = some.start(), some.start()
        headers = {"authorization": f"Bearer {TOKEN}"}
        with httpx.stream("GET", other.url + EVENTS, headers=headers, timeout=60) as response:
            heard = Heard(response)
            until(lambda: one.state.journal.is_watched)
            asked = send(one).headers["x-thoughtline-request"]
            told = [heard.next() for _ in range(3)]
            assert [name for name, _ in told] == ["begun", "streaming", "done"]
            assert {data["id"] for _, data in told} == {asked}
            assert {data["worker"] for _, data in told} == {bus_of(one).name}
        until(lambda: not one.state.journal.is_watched)


def test_what_was_counted_is_of_all(fleet_url: str) -> None:
    """The stores' counts are summed up, and reset for all."""
    with replicas(fleet_url) as some:
        one, other = some.start(), some.start()
        one.state.store.counters.add(3, 1)
        one.loop.call_soon_threadsafe(bus_of(one).report_counts)
        until(lambda: bus_of(other).counts.hits == 3)
        headers = {"authorization": f"Bearer {TOKEN}"}
        assert httpx.delete(f"{other.url}/api/cache/reasoning", headers=headers).status_code == 200
        until(lambda: one.state.store.counters.hits == 0)


@pytest.mark.parametrize("is_killed", [False, True])
def test_who_goes_takes_its_streams_along(fleet_url: str, is_killed: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """A gateway that stops announces it; one that was killed is forgotten after a while."""
    monkeypatch.setattr(fleet, "HEARTBEAT_SECONDS", 0.2)
    monkeypatch.setattr(fleet, "SILENT_SECONDS", 1.0 if is_killed else 600.0)
    with replicas(fleet_url) as some:
        first = some.start()
        stays = bus_of(first)
        with contextlib.ExitStack() as stack:
            goes = some.start(stack)
            goes.loop.call_soon_threadsafe(bus_of(goes).key_counts.begin, "k", 5)
            until(lambda: _held_elsewhere(first) == 1)
            if is_killed:
                goes.wait_for(_fall_silent(bus_of(goes)))
        until(lambda: stays.others == 0 and _held_elsewhere(first) == 0)


async def _fall_silent(bus: Fleet) -> None:
    bus.is_open = False
    await bus.close()


def test_without_the_store_each_takes_its_share(caplog: pytest.LogCaptureFixture) -> None:
    """The store fails: requests are served, and each gateway has its share of a limit. It recovers: they count together
    again, including requests admitted in between."""
    server = Valkey()
    with replicas(server.url) as some:
        one, other = some.start(takes_keys=True), some.start(takes_keys=True)
        key = new_key(one, requests_per_minute=6)
        other.refresh()
        server.stop()
        until(lambda: not bus_of(one).is_open and not bus_of(other).is_open)
        assert [send(one, key).status_code for _ in range(4)] == [200, 200, 200, 429]
        assert [send(other, key).status_code for _ in range(2)] == [200, 200]
        server.start()
        until(lambda: _heard(one) == 2 and _heard(other) == 3)
        assert [send(other, key).status_code for _ in range(2)] == [200, 429]
    server.remove()
    told = [record.message for record in caplog.records if record.name == fleet.__name__]
    assert len([line for line in told if line.startswith("replicas can't hear each other")]) == 2
    assert told.count("replicas hear each other again") == 2


def test_encrypted_as_the_store_is(redis_url: str) -> None:
    """Messages are sealed with the store's key: no one else can read or forge them."""
    with own_database(redis_url) as url, replicas(url) as some:
        sealed = StoreSettings(encryption_key="a" * 64)
        one, other = some.start(store=sealed), some.start(store=sealed)
        stranger = Packer("b" * 64)
        news = msgspec.json.encode(News("x", StoreCounts(), some.clock(), (AsideFact("two:k", 60.0),)))
        for message in (stranger.seal(news, b"news"), Packer().seal(news, b"news")[:5], b"", b"\xff"):
            one.loop.call_soon_threadsafe(bus_of(other)._receive, "news", message)
        one.loop.call_soon_threadsafe(one.state.health.keys.failed, "two", "key-1", TargetFailure("busy"), some.clock())
        until(lambda: bool(other.state.health.keys.aside))
        assert "two:k" not in other.state.health.keys.aside


SENSELESS: dict[str, list[object]] = {
    "a count below zero": ["asked", "k", 0.0, -1000],
    "a count beyond all": ["asked", "k", 0.0, 10**12],
    "a request of the future": ["asked", "k", -1e9, 1],
    "streams below zero": ["held", "k", -5],
    "a breaker that opens for ever": ["breaker", "one", 3, 3, 1e9, 0.0],
    "a probe for ever": ["breaker", "one", 3, 3, 1.0, 1e9],
    "a key that is left alone for ever": ["aside", "two:k", 1e9],
}


ODD_MESSAGES = ("an old message", "a message without a time", "a total beyond all", "lists within lists")


@pytest.mark.parametrize("case", [*SENSELESS, *ODD_MESSAGES])
def test_what_makes_no_sense_is_not_believed(redis_url: str, case: str) -> None:
    """No message raises a limit, or blocks a target or a key for longer than a process itself would; nor does a
    replayed one."""
    with own_database(redis_url) as url, replicas(url) as some:
        one = some.start()
        at = {"an old message": some.clock() - 3600, "a message without a time": 0.0}.get(case, some.clock())
        fact = SENSELESS.get(case, ["breaker", "one", 3, 3, 60.0, 0.0])
        counts = f'{{"hits":{10**400}}}' if case == "a total beyond all" else "{}"
        more = f',"x":{"[" * 100_000}{"]" * 100_000}' if case == "lists within lists" else ""
        facts = json.dumps([fact, ["aside", "two:k", 60.0]])
        news = f'{{"worker":"x","counts":{counts},"at":{at},"facts":{facts}{more}}}'
        message = Packer().seal(news.encode(), b"news")
        heard = threading.Event()

        def hear() -> None:
            bus_of(one)._receive("news", message)
            heard.set()

        one.loop.call_soon_threadsafe(hear)
        assert heard.wait(10)
        key_counts, health = bus_of(one).key_counts, one.state.health
        assert (key_counts._others, key_counts._held, health.breakers.known, health.keys.aside) == ({}, {}, {}, {})
