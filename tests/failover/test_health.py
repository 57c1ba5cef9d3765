"""A route as a whole: a conversation stays where it was answered until that fails."""

from __future__ import annotations

from thoughtline.failover.failures import TargetFailure
from thoughtline.failover.health import TargetHealth

TARGETS = ("deepseek/v4", "anthropic/opus", "gemini/pro")


def _order(health: TargetHealth, now: float = 0.0, made_by: str | None = None, conversation: str = "x") -> list[str]:
    return health.targets("best", TARGETS, (), conversation, now, made_by)


def test_a_conversation_stays_with_who_answered_until_that_fails() -> None:
    """Then with the one that answers instead, even when the first is well again."""
    health = TargetHealth()
    assert _order(health)[0] == "deepseek/v4"
    health.failed("best", "deepseek/v4", "x", TargetFailure("late"), 0.0)
    health.answered("best", "anthropic/opus", "x")
    assert _order(health)[0] == "anthropic/opus"
    health.failed("best", "anthropic/opus", "x", TargetFailure("busy", 30.0), 1.0)
    assert _order(health, 1.0) == ["deepseek/v4", "gemini/pro", "anthropic/opus"]
    health.answered("best", "gemini/pro", "x")
    assert _order(health, 100.0)[0] == "gemini/pro"


def test_one_failure_is_enough_to_leave() -> None:
    """For the conversation it happened to: the target may still be worth asking for others."""
    health = TargetHealth()
    health.answered("best", "anthropic/opus", "x")
    health.failed("best", "anthropic/opus", "x", TargetFailure("late"), 0.0)
    assert health.breakers.state("anthropic/opus", 0.0) == "closed"
    assert _order(health)[0] == "deepseek/v4"


def test_another_conversation_is_not_moved() -> None:
    """One failure is no reason to leave; an open breaker is."""
    health = TargetHealth()
    health.answered("best", "deepseek/v4", "y")
    health.failed("best", "deepseek/v4", "x", TargetFailure("late"), 0.0)
    assert _order(health, conversation="y")[0] == "deepseek/v4"
    for _ in range(2):
        health.failed("best", "deepseek/v4", "x", TargetFailure("late"), 0.0)
    assert _order(health, conversation="y")[0] == "anthropic/opus"


def test_the_maker_of_the_latest_turn_comes_first() -> None:
    """What a record says outweighs what this process remembers: another replica may have answered."""
    health = TargetHealth()
    health.answered("best", "anthropic/opus", "x")
    assert _order(health, made_by="gemini/pro")[0] == "gemini/pro"
    assert _order(health, made_by="elsewhere/model")[0] == "anthropic/opus"


def test_a_rejected_key_says_nothing_about_its_target() -> None:
    """With another key it may answer."""
    health = TargetHealth()
    for _ in range(5):
        health.failed("best", "deepseek/v4", "x", TargetFailure("key_rejected"), 0.0)
    assert health.breakers.state("deepseek/v4", 0.0) == "closed"


def test_a_probe_is_one_request() -> None:
    """While it is under way others go elsewhere."""
    health = TargetHealth()
    for _ in range(3):
        health.failed("best", "deepseek/v4", "x", TargetFailure("broken"), 0.0)
    assert _order(health, 15.0)[0] == "deepseek/v4"
    health.attempted("deepseek/v4", 15.0)
    assert _order(health, 15.0)[0] == "anthropic/opus"
