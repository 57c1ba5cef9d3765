"""Limits of keys: laws over any sequence of requests and streams."""

from __future__ import annotations

import math

from hypothesis import given
from hypothesis import strategies as st

from thoughtline.gateway.client_keys import ClientKey
from thoughtline.gateway.limits import KeyLimits, RateLimit


def key(name: str, rate: int | None = None, streams: int | None = None) -> ClientKey:
    return ClientKey(name, name, f"k-{name}", 0.0, None, rate, streams)


@given(st.integers(1, 5), st.lists(st.integers(0, 40), max_size=60))
def test_never_more_than_so_many_in_any_minute(per_minute: int, gaps: list[int]) -> None:
    """Whatever the rhythm, no window of a minute holds more; who is under the limit is never refused."""
    limit, now, passed = RateLimit(per_minute), 0.0, list[float]()
    for gap in gaps:
        now += gap
        recent = [at for at in passed if at > now - 60]
        is_free = limit.take(now) == 0
        assert is_free is (len(recent) < per_minute)
        if is_free:
            passed.append(now)


@given(st.integers(1, 5), st.lists(st.integers(0, 40), max_size=40))
def test_the_wait_that_is_told_is_long_enough_and_no_longer(per_minute: int, gaps: list[int]) -> None:
    """Who comes back when told gets through, and no sooner."""
    limit, now = RateLimit(per_minute), 0.0
    for gap in gaps:
        now += gap
        wait = limit.take(now)
        if wait:
            assert limit.take(math.nextafter(now + wait, 0)) > 0
            now += wait
            assert limit.take(now) == 0


def test_a_refused_request_does_not_count() -> None:
    """Trying again and again makes nobody wait longer."""
    limit = RateLimit(1)
    assert limit.take(0.0) == 0
    assert [limit.take(at) for at in (10.0, 20.0, 59.0)] == [50.0, 40.0, 1.0]
    assert limit.take(60.0) == 0


def test_keys_are_apart_and_may_be_without_limits() -> None:
    """One key's requests and streams are no other's."""
    limits, narrow, other, free = KeyLimits(), key("a", 1, 1), key("b", 1, 1), key("c")
    assert limits.take_request(narrow, 0.0) == 0
    assert limits.take_request(narrow, 0.0) == 60
    assert limits.take_request(other, 0.0) == 0
    assert [limits.take_request(free, 0.0) for _ in range(100)] == [0] * 100
    assert [limits.begin_stream(narrow), limits.begin_stream(narrow), limits.begin_stream(other)] == [True, False, True]
    assert all(limits.begin_stream(free) for _ in range(100))


@given(st.integers(1, 4), st.lists(st.booleans(), max_size=50))
def test_streams_begun_and_ended(most: int, steps: list[bool]) -> None:
    """Never more at once than allowed; what ends makes room for another; nothing is left behind."""
    limits, mine, held = KeyLimits(), key("a", streams=most), 0
    for is_begin in steps:
        if is_begin:
            assert limits.begin_stream(mine) is (held < most)
            held = min(held + 1, most)
        elif held:
            limits.end_stream(mine)
            held -= 1
    for _ in range(held):
        limits.end_stream(mine)
    assert [limits.begin_stream(mine) for _ in range(most + 1)] == [True] * most + [False]
