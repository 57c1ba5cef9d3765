"""Learned ratios of how a model counts tokens, and the correction of the next estimate."""

from __future__ import annotations

import pytest

from thoughtline.gateway.estimating import EVERY, TokenRatios


def learned(*answers: tuple[int, int]) -> TokenRatios:
    """The ratio after a client asked for a model's tokens and these estimates were counted."""
    ratios = TokenRatios()
    ratios.corrected("kimi", 1)
    for estimate, counted in answers:
        ratios.learn("kimi", estimate, counted)
    return ratios


@pytest.mark.parametrize(
    ("answers", "tokens"),
    [
        ([], 1000),
        ([(100, 200)], 2100),
        ([(100, 200), (100, 100)], 1785),
        ([(100, 100_000)], 4200),
        ([(100, 1)], 263),
        ([(0, 100), (100, 0)], 1000),
    ],
    ids=["nothing learned", "twice", "slowly less", "at most four times", "at least a quarter", "nothing counted"],
)
def test_an_estimate_is_corrected(answers: list[tuple[int, int]], tokens: int) -> None:
    """By the learned ratio, with a margin of a twentieth: a client that gets too low a number compacts too late."""
    assert learned(*answers).corrected("kimi", 1000) == tokens


def test_one_answer_in_ten_is_wanted() -> None:
    """For models whose tokens a client asked for, the first at once."""
    ratios = learned()
    assert [ratios.wants("kimi") for _ in range(2 * EVERY)] == [True, *[False] * (EVERY - 1)] * 2
    assert not ratios.wants("glm")


def test_models_are_apart_and_not_without_end() -> None:
    """Nothing is learned for a model that no client asked about; names come from outside, so their number is
    limited."""
    ratios = learned((100, 200))
    ratios.learn("glm", 100, 300)
    assert ratios.corrected("glm", 1000) == 1000
    for number in range(1000):
        ratios.corrected(f"model-{number}", 1)
    assert len(ratios.targets) == 256
    assert ratios.corrected("kimi", 1000) == 2100
