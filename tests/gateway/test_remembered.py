"""Conversations that the gateway remembers: a long one is continued, and is gone when its turns are deleted."""

from __future__ import annotations

import asyncio

import pytest

from tests.gateway.conftest import provider_of
from tests.gateway.forgetful_clients import TEN_TURNS, TURNS, Forgetful
from tests.gateway.gateways import Running, running
from tests.sim.faces import CASES, Case
from tests.sim.served_simulators import served
from thoughtline.engine.replayer import Replayer
from thoughtline.engine.request import Prepared
from thoughtline.gateway.admin.cache import forget
from thoughtline.stores import Filter

STARTS = (
    "deepseek-openai_chat",
    "anthropic-bound",
    "openai-openai_responses-gpt-5",
    "gemini-gemini_generate-gemini-3-pro",
    "code-assist-gemini_code_assist-gemini",
    "gemini-gemini_interactions",
    "bedrock-bedrock_converse-us",
    "bedrock-bedrock_invoke-us",
)
LONG = [next(case for case in CASES if case.id.startswith(start)) for start in STARTS]


@pytest.fixture
def prepared(monkeypatch: pytest.MonkeyPatch) -> list[Prepared]:
    """The prepared form of every request."""
    seen: list[Prepared] = []
    prepare = Replayer.prepare

    async def watched(replayer: Replayer, *args: object, **named: object) -> Prepared:
        seen.append(await prepare(replayer, *args, **named))  # type: ignore[arg-type]  # what it is called with
        return seen[-1]

    monkeypatch.setattr(Replayer, "prepare", watched)
    return seen


def held(gateway: Running, case: Case) -> Forgetful:
    """A conversation of ten turns, whose client keeps no reasoning; its provider refuses a request that is not
    restored."""
    dialogue = Forgetful(f"{gateway.url}/{provider_of(case)}", case, TEN_TURNS.format(mark=case.id))
    for _ in range(TURNS):
        dialogue.go_on(dialogue.ask())
    return dialogue


@pytest.mark.parametrize("case", LONG, ids=lambda case: case.id)
def test_a_long_conversation_is_gone_on_with(case: Case, prepared: list[Prepared]) -> None:
    """Only its end is read; the request sent is complete."""
    provider = provider_of(case)
    with running({provider: served(case.simulator, case.profile).url}) as gateway:
        held(gateway, case)
    assert any(one.whole is not None for one in prepared)


def test_what_is_deleted_is_not_remembered() -> None:
    """Not in memory either, until it is requested again."""
    case = LONG[0]
    with running({provider_of(case): served(case.simulator, case.profile).url}) as gateway:
        held(gateway, case)
        state = gateway.state
        assert state.replayer.remembered_size > 0
        asyncio.run_coroutine_threadsafe(forget(state, Filter()), gateway.loop).result()
        assert state.replayer.remembered_size == 0
