"""Conversations that change hands in mid-session, through the gateway, whatever the formats and wherever it fails.

What arrived at the strict simulators is compared with what they had said.
"""

from __future__ import annotations

import itertools

import pytest

from tests.gateway.handing import BY_FORMAT, stage
from tests.translation.world import BODY_TYPES, Upstream

PAIRS = list(itertools.permutations(BY_FORMAT.values(), 2))


def _pair(upstreams: tuple[Upstream, ...]) -> str:
    return "-".join(one.provider for one in upstreams)


@pytest.mark.parametrize("pair", PAIRS, ids=_pair)
def test_two_providers(pair: tuple[Upstream, Upstream]) -> None:
    """It fails at each point in turn, in every client's format, whole and streamed: no 4xx, no foreign seal, every
    thought told once and at the same place from then on."""
    first, second = (one.provider for one in pair)
    with stage(*pair) as one:
        for client, point, is_streaming in itertools.product(BODY_TYPES, range(4), (False, True)):
            talk = one.begin(client, 5, strips=point % 2 == 0)
            for turn in range(5):
                failing = first if turn == point else second if turn == point + 2 else ""
                step = talk.step(failing, is_streaming=is_streaming)
                assert step.target == (second if point <= turn < point + 2 else first)
                talk.check()
        one.check_seals()
        one.check_answers()
