"""Several gateways with one store: it makes no difference which of them serves a client."""

from __future__ import annotations

import pytest

from tests.gateway.conftest import provider_of
from tests.gateway.forgetful_clients import TEN_TURNS, TURNS, Forgetful
from tests.gateway.gateways import running
from tests.sim.faces import CASES, Case
from tests.sim.served_simulators import served

DEEPSEEK, CLAUDE, RESPONSES = (
    next(case for case in CASES if case.id.startswith(start))
    for start in ("deepseek-openai_chat", "anthropic-bound", "openai-openai_responses")
)
THOUGHTLESS = (4, 8)
"""Turns of the script without thinking."""


@pytest.mark.parametrize("case", [DEEPSEEK, CLAUDE, RESPONSES], ids=lambda case: case.id)
def test_each_turn_at_another_one(shared_url: str, case: Case) -> None:
    """A client that strips everything, served by two gateways in turn and finally by a new one: all of its reasoning
    comes back exactly."""
    simulator = served(case.simulator, case.profile)
    behind = {provider_of(case): simulator.url}
    dialogue = Forgetful("", case, TEN_TURNS.format(mark=f"{case.id} {shared_url}"))
    with running(behind, store_url=shared_url) as one, running(behind, store_url=shared_url) as other:
        for turn in range(TURNS - 1):
            dialogue.base = f"{(one, other)[turn % 2].url}/{provider_of(case)}"
            dialogue.go_on(dialogue.ask(is_streaming=turn % 4 < 2))
    with running(behind, store_url=shared_url) as again:
        dialogue.base = f"{again.url}/{provider_of(case)}"
        dialogue.ask()
    verdicts = simulator.app.simulation.log[-1]["verdicts"]
    assert len(verdicts) == TURNS - 1
    assert {verdict for turn, verdict in enumerate(verdicts) if turn not in THOUGHTLESS} == {"whole"}
