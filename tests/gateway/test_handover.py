"""A conversation that changes models, through the gateway: what the next model gets, and that it stays the same."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest

from thoughtline.commands.handoff_eval import decode_conversations, evaluate, shipped, simulated
from thoughtline.commands.loopback import gateway_before, listening
from thoughtline.continuity.checkpoints import HEADING
from thoughtline_sim.app import SimulatorApp, simulator_app

Json = dict[str, Any]

PAIRS = [
    ("deepseek/deepseek-v4-pro", "openai/gpt-4.1"),
    ("deepseek/deepseek-v4-pro", "anthropic/claude-opus-4-5"),
    ("deepseek/deepseek-v4-pro", "anthropic/claude-opus-5-5"),
    ("anthropic/claude-opus-4-6", "gemini/gemini-3-pro"),
    ("openrouter/anthropic/claude-sonnet-4.5", "bedrock/amazon.nova-pro-v1:0"),
]


@pytest.mark.parametrize(("source", "target"), PAIRS, ids=lambda name: str(name).partition("/")[0])
async def test_who_takes_over_knows_what_was_thought(source: str, target: str) -> None:
    """In every format: without checkpoints the next model knows nothing, with them it knows everything."""
    conversations = decode_conversations(shipped())
    async with simulated(source, target) as place:
        report = await evaluate(place._replace(effort="medium"), source, target, conversations, "run")
    assert [one.failed_requests for one in report.summaries] == [0, 0, 0]
    assert [one.passed for one in report.summaries] == [0, len(conversations), len(conversations)]


@contextlib.asynccontextmanager
async def _two() -> AsyncIterator[tuple[str, SimulatorApp]]:
    """A gateway with DeepSeek and OpenAI; its address, and the second of them."""
    second = simulator_app("openai", seed=1)
    async with (
        listening(simulator_app("deepseek", seed=1)) as deepseek,
        listening(second) as openai,
        listening(gateway_before({"deepseek": deepseek, "openai": openai})) as gateway,
    ):
        yield gateway, second


async def _ask(client: httpx.AsyncClient, url: str, model: str, history: list[Json], mode: str) -> httpx.Response:
    headers = {"authorization": "Bearer k", "x-thoughtline-continuity": mode}
    body = {"model": model, "messages": history}
    found = await client.post(f"{url}/v1/chat/completions", json=body, headers=headers)
    message = found.json()["choices"][0]["message"]
    history += [{"role": "assistant", "content": message["content"]}, {"role": "user", "content": "Go on."}]
    return found


@pytest.mark.parametrize(("mode", "quoted"), [("off", 0), ("handoff", 1)])
async def test_the_system_prompt_stays_the_same_turn_after_turn(mode: str, quoted: int) -> None:
    """Quoted once at the handover, then always the same; with `off` never."""
    history: list[Json] = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hello."}]
    async with _two() as (url, second), httpx.AsyncClient() as client:
        await _ask(client, url, "deepseek/deepseek-v4-pro", history, mode)
        answers = [await _ask(client, url, "openai/gpt-5.5", history, mode) for _ in range(3)]
        systems = {line["messages"][0]["text"] for line in second.simulation.log}
    assert len(systems) == 1
    assert (HEADING in systems.pop()) is bool(quoted)
    assert all(f"checkpoints={quoted}" in answer.headers["x-thoughtline-replay"] for answer in answers)
