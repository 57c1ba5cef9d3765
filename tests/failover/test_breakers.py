"""Circuit breakers, as sequences of events."""

from __future__ import annotations

import pytest

from thoughtline.failover.breakers import MAX_TARGETS, Breakers
from thoughtline.failover.failures import TargetFailure

BROKEN = TargetFailure("broken")


def _opened(now: float = 0.0) -> Breakers:
    breakers = Breakers()
    for _ in range(3):
        breakers.failed("a", BROKEN, now)
    return breakers


def test_failures_in_a_row_open_it() -> None:
    """Three; fewer, or with an answer between them, don't. Other targets know nothing of it."""
    breakers = Breakers()
    for _ in range(2):
        breakers.failed("a", BROKEN, 0.0)
    assert breakers.admits("a", 0.0)
    breakers.succeeded("a")
    for _ in range(2):
        breakers.failed("a", BROKEN, 0.0)
    assert breakers.admits("a", 0.0)
    breakers.failed("a", BROKEN, 0.0)
    assert not breakers.admits("a", 0.0)
    assert breakers.admits("b", 0.0)


def test_after_its_pause_one_request_tries_it() -> None:
    """The second one in the meantime goes elsewhere; an answer closes it for all."""
    breakers = _opened()
    assert breakers.state("a", 14.9) == "open"
    assert breakers.state("a", 15.0) == "half_open"
    assert breakers.admits("a", 15.0)
    breakers.attempted("a", 15.0)
    assert not breakers.admits("a", 16.0)
    breakers.succeeded("a")
    assert breakers.state("a", 16.0) == "closed"


def test_a_probe_that_fails_makes_the_pause_longer() -> None:
    """Twice as long each time, up to a bound."""
    breakers = _opened()
    now, pauses = 15.0, []
    for _ in range(6):
        breakers.attempted("a", now)
        breakers.failed("a", BROKEN, now)
        pauses.append(breakers.opens_at("a") - now)
        now = breakers.opens_at("a")
    assert pauses == [30.0, 60.0, 120.0, 240.0, 300.0, 300.0]


def test_a_probe_that_is_never_heard_of_again_is_lost() -> None:
    """A client that hung up must not keep a target closed for ever."""
    breakers = _opened()
    breakers.attempted("a", 15.0)
    assert not breakers.admits("a", 100.0)
    assert breakers.admits("a", 135.0)


def test_a_requested_pause_is_kept() -> None:
    """At once, and for as long as the provider says."""
    breakers = Breakers()
    breakers.failed("a", TargetFailure("busy", 60.0), 0.0)
    assert not breakers.admits("a", 59.0)
    assert breakers.admits("a", 60.0)


def test_requests_that_were_under_way_do_not_make_it_longer() -> None:
    """Ten that fail together count as one opening."""
    breakers = _opened()
    for _ in range(10):
        breakers.failed("a", BROKEN, 1.0)
    assert breakers.opens_at("a") == 15.0


def test_targets_are_bounded() -> None:
    """Names come from clients too."""
    breakers = Breakers()
    for number in range(MAX_TARGETS + 1):
        breakers.failed(str(number), TargetFailure("busy", 60.0), 0.0)
    assert breakers.admits("0", 0.0)
    assert not breakers.admits("1", 0.0)


@pytest.mark.parametrize("seconds", [0.0, 0.5, 2.0, 14.0, 15.0, 200.0])
def test_a_short_requested_pause_is_not_extended(seconds: float) -> None:
    """The provider knows when it is ready: after that one request tries it, also after probes that failed."""
    breakers = Breakers()
    for now in (100.0, 1000.0):
        breakers.failed("a", TargetFailure("busy", seconds), now)
        assert breakers.opens_at("a") == now + seconds
        assert breakers.admits("a", now + seconds)
        assert not breakers.admits("a", now + seconds - 0.01)
