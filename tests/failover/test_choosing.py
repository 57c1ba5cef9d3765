"""The order in which targets are asked: sticky, weighted, and the same in every process."""

from __future__ import annotations

from collections import Counter

from thoughtline.failover.breakers import Breakers
from thoughtline.failover.failures import TargetFailure
from thoughtline.failover.health import Affinity, arranged, ranked

TARGETS = ("a", "b", "c")


def _breakers(*failed: tuple[str, float]) -> Breakers:
    breakers = Breakers()
    for name, now in failed:
        breakers.failed(name, TargetFailure("broken", 15.0), now)
    return breakers


def order(stays_with: str | None, breakers: Breakers, now: float) -> list[str]:
    ready = {name for name in TARGETS if breakers.admits(name, now)}
    return arranged(ranked(TARGETS, (), "x"), stays_with, ready, until=breakers.opens_at)


def test_without_weights_the_routes_order() -> None:
    """For every conversation."""
    assert order(None, Breakers(), 0.0) == ["a", "b", "c"]


def test_the_target_that_answered_comes_first() -> None:
    """Until it is open; then in its place among those that are."""
    assert order("c", Breakers(), 0.0) == ["c", "a", "b"]
    assert order("c", _breakers(("c", 0.0)), 0.0) == ["a", "b", "c"]
    assert order("gone", Breakers(), 0.0) == ["a", "b", "c"]


def test_open_targets_are_tried_last() -> None:
    """The one that opens soonest comes first: some target is always tried."""
    assert order(None, _breakers(("a", 0.0)), 0.0) == ["b", "c", "a"]
    assert order(None, _breakers(("a", 5.0), ("b", 0.0), ("c", 2.0)), 5.0) == ["b", "c", "a"]


def test_weights_spread_conversations() -> None:
    """Each target is first as often as its weight says; 0 only if no other is left."""
    first = Counter(ranked(TARGETS, (3, 1, 0), f"conversation {number}")[0] for number in range(4000))
    assert 2850 < first["a"] < 3150
    assert 850 < first["b"] < 1150
    assert first["c"] == 0
    assert ranked(TARGETS, (3, 1, 0), "x")[-1] == "c"


def test_one_conversation_draws_the_same_everywhere() -> None:
    """Independent of the other targets: removing one moves only its own conversations."""
    for number in range(200):
        drawn = ranked(TARGETS, (1, 1, 1), str(number))
        assert drawn == ranked(TARGETS, (1, 1, 1), str(number))
        assert ranked(("a", "b"), (1, 1), str(number)) == [name for name in drawn if name != "c"]


def test_affinity_forgets_what_was_not_used() -> None:
    """Bounded; the least recently used goes first; a failure is forgotten only where it happened."""
    affinity = Affinity(2)
    affinity.keep("x", "a")
    affinity.keep("y", "a")
    assert affinity.get("x") == "a"
    affinity.keep("z", "b")
    assert (affinity.get("x"), affinity.get("y"), affinity.get("z")) == ("a", None, "b")
    affinity.forget("x", "b")
    assert affinity.get("x") == "a"
    affinity.forget("x", "a")
    assert affinity.get("x") is None
