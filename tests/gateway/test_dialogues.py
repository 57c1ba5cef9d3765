"""Ten turns with tools, parallel calls and plain turns, for a client that strips everything, at every provider.

The simulator itself judges the result: `whole` means byte for byte what it had sent.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.gateway.conftest import Gateways, provider_of
from tests.gateway.forgetful_clients import TEN_TURNS, TURNS, Forgetful
from tests.sim.faces import CASES, Case
from tests.sim.served_simulators import served
from thoughtline.destinations.catalogue import PROVIDERS

ADAPTIVE = {"thinking": {"type": "adaptive"}}
"""Claude 4.6 to 4.8 think if they are asked to."""


def _asking_to_think(case: Case) -> Case:
    return case._replace(extra={**case.extra, **ADAPTIVE}) if case.profile == "adaptive" else case


SPOKEN = [_asking_to_think(case) for case in CASES if case.format in PROVIDERS[provider_of(case)].formats]
NO_REASONING = ("openai", "openai_chat")

# A turn that had no reasoning must have some where its field is demanded of it: the least that is taken stands there,
# which is nothing (as an empty block) or a blank.
THOUGHTLESS = (4, 8)


def through(gateways: Gateways, case: Case, mark: str) -> Forgetful:
    opening = TEN_TURNS.format(mark=f"{case.id} {mark}")
    return Forgetful(f"{gateways(case).url}/{provider_of(case)}", case, opening)


def latest(case: Case) -> dict[str, Any]:
    """The simulator's verdict on its latest request."""
    return dict(served(case.simulator, case.profile).app.simulation.log[-1])


@pytest.mark.parametrize("is_streaming", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("case", SPOKEN, ids=lambda case: case.id)
def test_a_client_that_strips_everything(gateways: Gateways, case: Case, is_streaming: bool) -> None:
    """It is never refused, and every turn's reasoning is restored exactly."""
    dialogue = through(gateways, case, f"stripped {is_streaming}")
    for turn in range(TURNS):
        answer = dialogue.ask(is_streaming=is_streaming)
        assert latest(case)["status"] == 200
        if turn < TURNS - 1:
            dialogue.go_on(answer)
    seen = latest(case)
    verdicts = seen["verdicts"]
    assert len(verdicts) == TURNS - 1
    if (case.simulator, case.format) == NO_REASONING:
        assert set(verdicts) == {"none"}
        return
    for turn, verdict in enumerate(verdicts):
        assert verdict == "whole" or (turn in THOUGHTLESS and verdict in ("none", "invented")), (turn, verdicts)
    assert "".join(_made_up(seen)).strip() == ""


def _made_up(seen: dict[str, Any]) -> list[str]:
    """Text of reasoning that no model wrote, as text or in a block."""
    thoughts = [one for message in seen["messages"] if message["verdict"] == "invented" for one in message["thoughts"]]
    blocks = [json.loads(one) if one.startswith("{") else {"text": one} for one in thoughts]
    return [str(block.get("thinking", block.get("text"))) for block in blocks]


@pytest.mark.parametrize("case", SPOKEN, ids=lambda case: case.id)
def test_the_same_conversation_gives_the_same_bytes(gateways: Gateways, case: Case) -> None:
    """What was restored in one request is restored the same way in the next: the provider's prompt cache keeps
    hitting."""
    dialogue = through(gateways, case, "stable")
    shown: list[Any] = []
    for turn in range(6):
        answer = dialogue.ask(is_streaming=bool(turn % 2))
        messages = latest(case)["messages"]
        assert messages[: len(shown)] == shown
        shown = messages
        if turn < 5:
            dialogue.go_on(answer)
