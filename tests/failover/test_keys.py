"""Several keys of one provider: spread, sticky, and put aside when they fail."""

from __future__ import annotations

from collections import Counter

from thoughtline.failover.failures import TargetFailure
from thoughtline.failover.health import LIMITED_SECONDS, REJECTED_SECONDS, KeyRing

KEYS = ("key-1", "key-2", "key-3")


def test_conversations_are_spread_and_each_stays() -> None:
    """About a third each, and always the same for one."""
    ring = KeyRing()
    first = Counter(ring.order("p", KEYS, str(number), 0.0)[0] for number in range(3000))
    assert all(850 < first[key] < 1150 for key in KEYS)
    assert all(KeyRing().order("p", KEYS, "x", 0.0) == ring.order("p", KEYS, "x", 0.0) for _ in range(5))


def test_a_rejected_key_is_put_aside_for_a_time() -> None:
    """Its conversations go to another; after a while it is tried again."""
    ring = KeyRing()
    first, second, third = ring.order("p", KEYS, "x", 0.0)
    assert ring.failed("p", first, TargetFailure("key_rejected"), 0.0)
    assert ring.order("p", KEYS, "x", 1.0) == [second, third, first]
    assert ring.is_aside("p", first, 1.0)
    assert ring.order("p", KEYS, "x", REJECTED_SECONDS) == [first, second, third]


def test_a_conversation_stays_with_the_key_that_answered_it() -> None:
    """Also when the one it would have drawn is back: its ciphertext was made on the other account."""
    ring = KeyRing()
    first, second, third = ring.order("p", KEYS, "x", 0.0)
    ring.failed("p", first, TargetFailure("key_rejected"), 0.0)
    ring.succeeded("p", second, "x")
    assert ring.order("p", KEYS, "x", REJECTED_SECONDS) == [second, first, third]


def test_a_limited_key_waits_as_long_as_requested() -> None:
    """A short while, or what the provider asks for."""
    ring = KeyRing()
    ring.failed("p", KEYS[0], TargetFailure("busy"), 0.0)
    ring.failed("p", KEYS[1], TargetFailure("busy", 90.0), 0.0)
    assert not ring.is_aside("p", KEYS[0], LIMITED_SECONDS)
    assert ring.is_aside("p", KEYS[1], 89.0)


def test_a_target_that_is_broken_says_nothing_about_its_keys() -> None:
    """Nor does a key of one provider say anything about the same key elsewhere."""
    ring = KeyRing()
    assert not ring.failed("p", KEYS[0], TargetFailure("broken"), 0.0)
    ring.failed("p", KEYS[0], TargetFailure("key_rejected"), 0.0)
    assert not ring.is_aside("q", KEYS[0], 0.0)


def test_with_all_keys_aside_the_soonest_is_asked() -> None:
    """Some key is always tried."""
    ring = KeyRing()
    for number, key in enumerate(KEYS):
        ring.failed("p", key, TargetFailure("key_rejected"), float(10 - number))
    assert ring.order("p", KEYS, "x", 11.0) == list(reversed(KEYS))


def test_an_answer_brings_a_key_back() -> None:
    """A target that answers is healthy."""
    ring = KeyRing()
    ring.failed("p", KEYS[0], TargetFailure("key_rejected"), 0.0)
    ring.succeeded("p", KEYS[0], "x")
    assert not ring.is_aside("p", KEYS[0], 1.0)


def test_no_key_is_ever_shown() -> None:
    """What the ring remembers are digests."""
    ring = KeyRing()
    ring.failed("p", "sk-secret", TargetFailure("busy"), 0.0)
    ring.succeeded("p", "sk-secret", "x")
    assert "sk-secret" not in repr(vars(ring)) + repr(vars(ring._affinity))
