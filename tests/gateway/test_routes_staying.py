"""Conversations of a route, and the keys of a provider: spread at first, then kept."""

from __future__ import annotations

import pytest

from tests.gateway.teams import HELLO, Clock, Messages, answers, ask, go_on, said, team, who
from tests.gateway.upstreams import Got, Out


@pytest.mark.parametrize("session", [None, "s-1"], ids=["untold", "told"])
def test_a_conversation_stays_where_it_was_answered(session: str | None) -> None:
    """After a failure it continues with the second target, even when the first is back; other conversations go to the
    first."""
    headers = {"x-thoughtline-session": session} if session else {}
    with team("one", "two") as (gateway, ups):
        ups.does["one"] = answers(500)
        response = ask(gateway, headers=headers)
        del ups.does["one"]
        messages = HELLO
        for _ in range(3):
            messages = go_on(messages, response)
            response = ask(gateway, messages, headers=headers)
            assert who(response) == "two"
        assert who(ask(gateway, [{"role": "user", "content": "somebody else"}])) == "one"
        ups.does["two"] = answers(500)
        messages = go_on(messages, response)
        response = ask(gateway, messages, headers=headers)
        assert who(response) == "one"
        del ups.does["two"]
        assert who(ask(gateway, go_on(messages, response), headers=headers)) == "one"


def test_it_stays_there_on_another_replica_and_after_a_restart(shared_url: str) -> None:
    """The record of the latest turn names its maker: every gateway with the same store knows it."""
    with team("one", "two", store_url=shared_url) as (gateway, ups):
        with team("one", "two", store_url=shared_url, shared=ups) as (replica, _):
            ups.does["one"] = answers(500)
            response = ask(gateway)
            del ups.does["one"]
            messages = go_on(HELLO, response)
            assert who(ask(replica, messages)) == "two"
        with team("one", "two", store_url=shared_url, shared=ups) as (again, _):
            assert who(ask(again, messages)) == "two"
            assert who(ask(again, [{"role": "user", "content": "somebody else"}])) == "one"


def test_weights() -> None:
    """Conversations are spread by the weights, and each stays where it began."""
    with team("one", "two", weights=(3, 1)) as (gateway, _):
        first: dict[int, str] = {}
        for number in range(60):
            opening = [{"role": "user", "content": f"conversation {number}"}]
            response = ask(gateway, opening)
            first[number] = who(response)
            if number % 10 == 0:
                assert who(ask(gateway, go_on(opening, response))) == first[number]
        counts = {name: list(first.values()).count(name) for name in ("one", "two")}
        assert 35 <= counts["one"] <= 55  # 45 of 60 by the weights; the draw is by the conversations' names


def _key(got: Got) -> str:
    return (got.header("authorization") or "").removeprefix("Bearer ")


def test_keys_are_rotated_and_kept_to() -> None:
    """Conversations are spread over a provider's keys, and each keeps its key."""
    with team("one", keys={"one": ("k1", "k2", "k3")}) as (gateway, ups):
        used: set[str] = set()
        for number in range(12):
            opening = [{"role": "user", "content": f"conversation {number}"}]
            response = ask(gateway, opening)
            ask(gateway, go_on(opening, response))
            first, second = (_key(got) for got in ups.ups["one"].got[-2:])
            assert first == second
            used.add(first)
        assert used == {"k1", "k2", "k3"}


@pytest.mark.parametrize("status", [401, 403, 429])
def test_a_rejected_key_is_put_aside(status: int) -> None:
    """The next key is used at once and the client gets a 200; the rejected one is skipped, then tried again."""
    clock = Clock()
    with team("one", keys={"one": ("k1", "k2")}, clock=clock) as (gateway, ups):

        async def rejects(got: Got, out: Out) -> None:
            if _key(got) == "k1":
                await out.whole(status, b'{"error":{"message":"no"}}')
            else:
                await out.whole(200, said("one"))

        ups.does["one"] = rejects
        for number in range(12):
            assert who(ask(gateway, [{"role": "user", "content": f"conversation {number}"}])) == "one"
        assert [_key(got) for got in ups.ups["one"].got].count("k1") == 1
        del ups.does["one"]
        clock.now += 601
        for number in range(12, 24):
            ask(gateway, [{"role": "user", "content": f"conversation {number}"}])
        assert [_key(got) for got in ups.ups["one"].got].count("k1") > 1


def test_the_limit_of_one_key_is_not_the_targets() -> None:
    """When all keys are rate-limited the next target is asked, until the first key may be used again."""
    clock = Clock()
    waits = {"k1": "3000", "k2": "10"}
    with team("one", "two", keys={"one": ("k1", "k2"), "two": ("k3",)}, clock=clock) as (gateway, ups):

        async def limits(got: Got, out: Out) -> None:
            await out.whole(429, b"{}", ("retry-after", waits[_key(got)]))

        ups.does["one"] = limits
        assert who(ask(gateway)) == "two"
        del ups.does["one"]
        clock.now += 11
        for number in range(6):
            assert who(ask(gateway, [{"role": "user", "content": f"conversation {number}"}])) == "one"
        assert {_key(got) for got in ups.ups["one"].got[2:]} == {"k2"}


def test_a_key_is_kept_to_after_a_restart(shared_url: str) -> None:
    """A conversation that had to change its key continues with the key of its latest turn."""
    keys, clock = {"one": ("k1", "k2")}, Clock()
    with team("one", keys=keys, store_url=shared_url, clock=clock) as (gateway, ups):
        ask(gateway)
        clock.now += 1
        own = _key(ups.ups["one"].got[-1])

        async def rejects(got: Got, out: Out) -> None:
            await (out.whole(401, b"{}") if _key(got) == own else out.whole(200, said("one")))

        ups.does["one"] = rejects
        messages: Messages = go_on(HELLO, ask(gateway))
        del ups.does["one"]
        with team("one", keys=keys, store_url=shared_url, shared=ups) as (again, _):
            ask(again, messages)
            assert _key(ups.ups["one"].got[-1]) != own


def test_a_provider_whose_keys_are_all_rejected() -> None:
    """The next target is asked: the client has nothing to do with the target's missing keys."""
    with team("one", "two", keys={"one": ("k1", "k2"), "two": ("k3",)}) as (gateway, ups):
        ups.does["one"] = answers(401, b'{"error":{"message":"no"}}')
        assert who(ask(gateway)) == "two"
        assert (ups.asked("one"), ups.asked("two")) == (2, 1)


def test_a_key_never_shows() -> None:
    """Neither in the log nor in an answer."""
    with team("one", keys={"one": ("sk-first-secret", "sk-second-secret")}) as (gateway, ups):
        ups.does["one"] = answers(401, b'{"error":{"message":"no"}}')
        response = ask(gateway)
        shown = f"{response.headers}{response.text}{gateway.lines}"
        assert "secret" not in shown
