"""Verification agrees with the strict simulators, and names the rule where one of them is changed."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.verify.asked_simulators import verified
from tests.verify.mutants import (
    ALTERED,
    CHAT,
    COMES_IN,
    DROPPED,
    FORCED,
    MUTANTS,
    THINKS,
    TOOL_LOOP,
    WARM,
    Mutant,
)
from thoughtline.providers import host_named
from thoughtline.values.turns import FormatName
from thoughtline_sim.simulators import SIMULATORS

NOT_ASKED: dict[tuple[str, str], str] = {
    ("bedrock", "us.amazon.nova-2-lite-v1:0 bedrock_invoke"): "InvokeModel is read for Claude alone",
    ("bedrock", "openai.gpt-oss-120b-1:0 bedrock_invoke"): "InvokeModel is read for Claude alone",
    ("gemini", "gemini_interactions"): "nothing is translated to Interactions, which a verification does",
    ("vertex", ""): "its addresses name a project and a location: `verify` refuses it",
    ("command-code", ""): "it serves its own CLI alone",
    ("llamacpp", ""): "the template that is loaded decides, and a server of one's own is asked for it",
    ("ollama", "llama3.2 openai_chat"): "nothing is known of a model that no row names",
    ("copilot", "claude-sonnet-4.5 openai_responses"): "nothing is known of Claude there",
    ("copilot", "claude-sonnet-4.5 anthropic_messages"): "nothing is known of its Messages",
    ("copilot", "gpt-5.3-codex anthropic_messages"): "nothing is known of its Messages",
}
"""Simulators, or parts of them, about which nothing is believed, or which can't be verified."""

DIFFERS: dict[tuple[str, str, str], set[str]] = {
    # Nobody has tried whether a codex model takes one.
    ("copilot", "gpt-5.3-codex", "openai_responses"): {WARM},
    # The page on preserved reasoning names no models.
    ("openai", "gpt-5.6-sol", "openai_responses"): {DROPPED},
    # GLM's answers have `reasoning` there, and it goes back as `<think>`: a row has one place for both.
    ("cerebras", "zai-glm-4.7", "openai_chat"): {COMES_IN},
    # The row has the name of its open weights; the maker named its models by their mode.
    ("deepseek-v3.2", "deepseek-v3.2", CHAT): {THINKS, TOOL_LOOP},
    # The simulator checks signatures alone: how Antigravity refuses the rest of what Claude refuses is not known.
    ("code-assist", "claude-sonnet-4-5", "gemini_code_assist"): {FORCED, WARM},
    # Nobody has tried whether its redacted blocks are checked.
    ("meta", "muse-spark", "anthropic_messages"): {ALTERED},
}
"""Where row and simulator differ, and why that stands. It may only get shorter."""

OLDER: tuple[tuple[str, str, str, FormatName], ...] = (
    ("deepseek-r1", "deepseek", "deepseek-r1", CHAT),
    ("deepseek-v3.2", "deepseek", "deepseek-v3.2", CHAT),
    ("gemini-2.5", "gemini", "gemini-2.5-pro", "gemini_generate"),
    ("gemini-2.5", "gemini", "gemini-2.5-pro", CHAT),
    ("gemini-2.5", "gemini", "gemini-2.5-flash", "gemini_generate"),
    ("gemini-2.5", "gemini", "gemini-2.5-flash", CHAT),
)
"""Simulators of older models, which have no provider of their own name."""


def _served() -> Iterator[tuple[str, str, str, FormatName]]:
    """Every simulator and model, in every format that the simulator serves and its provider has."""
    for name, simulator in SIMULATORS.items():
        row = host_named(name)
        formats = dict.fromkeys(api.wire.format for api in simulator.apis)
        for model in simulator.models:
            for api in formats:
                left = {(name, ""), (name, api), (name, f"{model} {api}")}
                if row is not None and api in row.formats and left.isdisjoint(NOT_ASKED):
                    yield name, name, model, api
    yield from OLDER


AGREES = tuple(_served())


@pytest.mark.parametrize(("name", "provider", "model", "api"), AGREES)
async def test_it_agrees_with_every_simulator(name: str, provider: str, model: str, api: FormatName) -> None:
    """Every fact that is seen is believed, and every refusal is known."""
    other = next((one for one in SIMULATORS[name].models if one != model and provider == name), "")
    found, asker = await verified(SIMULATORS[name], provider, model, api, other=other)
    assert {one.fact for one in found.differences} == DIFFERS.get((name, model, api), set())
    refused = [one.refused for one in found.results if one.refused is not None]
    assert not [one for one in refused if not one.is_known and b"simulated wording" not in one.words]
    assert asker.requests <= 25


def test_what_differs_or_is_not_asked_is_still_there() -> None:
    """No entry for a simulator that is gone."""
    asked = {(name, model, api) for name, _, model, api in AGREES}
    assert set(DIFFERS) <= asked
    assert {name for name, _ in NOT_ASKED} <= set(SIMULATORS)


COST = re.compile(r"^\| `([a-z]+)` \| (\S+) \| (\d+) \| (\d+) \| ([\d,]+) \|$", re.MULTILINE)
COSTS = COST.findall((Path(__file__).parents[2] / "docs" / "facts.md").read_text())


@pytest.mark.parametrize(("name", "model", "formats", "requests", "tokens"), COSTS)
async def test_what_it_costs(name: str, model: str, formats: str, requests: str, tokens: str) -> None:
    """As the page says, within a tenth of the tokens."""
    other = next((one for one in SIMULATORS[name].models if one != model), "")
    apis = [api for row, _, asked, api in AGREES if row == name and asked == model]
    costs = [(await verified(SIMULATORS[name], name, model, api, other=other))[1] for api in apis]
    assert (len(apis), sum(one.requests for one in costs)) == (int(formats), int(requests))
    assert sum(one.tokens for one in costs) == pytest.approx(int(tokens.replace(",", "")), rel=0.1)


def test_the_page_says_what_it_costs() -> None:
    """For every provider of its table."""
    assert len(COSTS) > 10


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda one: one.name)
async def test_it_names_the_rule_that_was_changed(mutant: Mutant) -> None:
    """A simulator that breaks one belief: the fact differs, or the refusal is one that is not known."""
    asked = (mutant.provider, mutant.model, mutant.format)
    found, _ = await verified(mutant.simulator, *asked, other=mutant.other)
    differing = {one.fact for one in found.differences}
    unknown = {one.fact for one in found.results if one.refused is not None and not one.refused.is_known}
    if mutant.is_unknown_refusal:
        assert unknown
    else:
        assert differing & set(mutant.finds), found.results
