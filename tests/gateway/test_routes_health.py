"""Targets of a route that fail, or ask for a pause: they are skipped for a while, then tried again."""

from __future__ import annotations

import httpx

from tests.gateway.teams import Clock, answers, ask, said, team, who
from tests.gateway.upstreams import Got, Out


def test_a_breaker_opens_cools_down_and_closes() -> None:
    """After three failures a target is skipped; after the pause one request probes it, and then it is back."""
    clock = Clock()
    with team("one", "two", clock=clock) as (gateway, ups):
        ups.does["one"] = answers(500)
        assert [who(ask(gateway, [{"role": "user", "content": f"{n}"}])) for n in range(5)] == ["two"] * 5
        assert ups.asked("one") == 3
        clock.now += 16
        ask(gateway, [{"role": "user", "content": "a probe"}])
        assert ups.asked("one") == 4
        ask(gateway, [{"role": "user", "content": "open for longer now"}])
        clock.now += 16
        ask(gateway, [{"role": "user", "content": "still open"}])
        assert ups.asked("one") == 4
        clock.now += 16
        del ups.does["one"]
        assert who(ask(gateway, [{"role": "user", "content": "a probe that is answered"}])) == "one"
        assert who(ask(gateway, [{"role": "user", "content": "closed"}])) == "one"


def test_half_open_is_one_probe() -> None:
    """While one request probes a target, the others don't wait for it to fail."""
    clock = Clock()
    with team("one", "two", clock=clock) as (gateway, ups):
        ups.does["one"] = answers(500)
        for number in range(3):
            ask(gateway, [{"role": "user", "content": f"{number}"}])
        clock.now += 16
        during: list[str] = []

        async def asked_meanwhile(got: Got, out: Out) -> None:
            if not during:
                during.append("")
                other = {"model": "team", "messages": [{"role": "user", "content": "meanwhile"}]}
                async with httpx.AsyncClient(headers={"authorization": "Bearer a-key"}) as client:
                    during[0] = who(await client.post(f"{gateway.url}/v1/chat/completions", json=other))
            await out.whole(200, said("one"))

        ups.does["one"] = asked_meanwhile
        assert who(ask(gateway, [{"role": "user", "content": "the probe"}])) == "one"
        assert during == ["two"]


def test_a_probe_that_is_refused_closes_the_breaker() -> None:
    """A target that can say that a request is wrong is back."""
    clock = Clock()
    with team("one", "two", clock=clock) as (gateway, ups):
        ups.does["one"] = answers(500)
        for number in range(3):
            ask(gateway, [{"role": "user", "content": f"{number}"}])
        clock.now += 16
        ups.does["one"] = answers(400, b'{"error":{"message":"too long"}}')
        assert ask(gateway, [{"role": "user", "content": "wrong"}]).status_code == 400
        del ups.does["one"]
        assert who(ask(gateway, [{"role": "user", "content": "right"}])) == "one"


def test_a_pause_that_is_asked_for() -> None:
    """`retry-after` of a provider with one key of ours opens its breaker at once, for that time."""
    clock = Clock()
    with team("one", "two", clock=clock, keys={"one": ("k1",), "two": ("k2",)}) as (gateway, ups):
        ups.does["one"] = answers(429, b"{}", ("retry-after", "100"))
        ask(gateway)
        del ups.does["one"]
        clock.now += 99
        assert who(ask(gateway, [{"role": "user", "content": "too early"}])) == "two"
        clock.now += 2
        assert who(ask(gateway, [{"role": "user", "content": "in time"}])) == "one"


def test_the_limit_of_one_caller_is_not_anothers() -> None:
    """With the callers' own keys, a caller that has used up its quota does not block the others."""
    with team("one", "two", keys={"one": ()}) as (gateway, ups):
        ups.does["one"] = answers(429, b"{}", ("retry-after", "3600"))
        for number in range(5):
            ask(gateway, [{"role": "user", "content": f"{number}"}])
        del ups.does["one"]
        assert who(ask(gateway, headers={"authorization": "Bearer another"})) == "one"
