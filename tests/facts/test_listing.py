"""Facts for people."""

from __future__ import annotations

from datetime import date

import pytest

from tests.facts.overlay_texts import KIMI_9, table_with
from thoughtline.facts.listing import age_days, beliefs, differences, formats_of, listed
from thoughtline.facts.sheets import written
from thoughtline.providers import BUILT_IN, facts, host_named, use
from thoughtline.replay.detection import resolve
from thoughtline.values.destination import Destination

TODAY = date(2026, 11, 19)


def test_ages() -> None:
    """A month counts from its first day, and nothing is younger than today."""
    assert age_days("2026-11-16", TODAY) == 3
    assert age_days("2026-08", TODAY) == 110
    assert age_days("2027-01-01", TODAY) == 0
    assert age_days("", TODAY) is None


def test_every_fact_has_a_source_and_a_day_or_is_unverified() -> None:
    """A variant has those of the contract that it is like."""
    for fact in listed(written(BUILT_IN), TODAY):
        assert bool(fact.source) == bool(fact.read) == (fact.age_days is not None), fact
    variant = next(one for one in listed(written(BUILT_IN), TODAY) if one.name == "anthropic-bound-2")
    assert variant.source.startswith("https://")


MAX_UNVERIFIED = 20
"""It may only fall."""


def test_few_facts_are_unverified() -> None:
    """And each of those says what is believed."""
    unverified = [one for one in listed(written(BUILT_IN), TODAY) if one.age_days is None]
    assert len(unverified) <= MAX_UNVERIFIED, [one.name for one in unverified]
    assert all(" " in one.about for one in unverified)


def test_models_rest_on_their_contracts_where_a_row_is_for_all() -> None:
    """A row with a pattern of its own says where that comes from."""
    found = {one.name: one for one in listed(written(BUILT_IN), TODAY) if one.kind in ("models", "contracts")}
    assert found["deepseek-3"].source == found["deepseek"].source
    assert found["anthropic-1"].source == "pensarai/apex#890"


def test_facts_grow_old() -> None:
    """After 90 days."""
    later = {one.name for one in listed(written(BUILT_IN), date(2027, 6, 1)) if one.is_old}
    assert "kimi" in later
    assert not [one for one in listed(written(BUILT_IN), date(2026, 11, 20)) if one.is_old and one.read > "2026-09"]


@pytest.mark.parametrize(
    ("model", "provider", "wanted"),
    [
        (
            "gpt-6-astra",
            "openai",
            {"goes up as": "openai_responses if it has tools"},
        ),
        ("kimi-k3", "kimi", {"efforts": "low, high, max", "reasoning goes back": "every turn with calls"}),
        ("claude-opus-7", "anthropic", {"modes": "adaptive", "thinking can be switched off": "no"}),
        ("deepseek-v4-pro", "deepseek", {"takes tokens": "1,000,000", "accepts": "any text"}),
    ],
)
def test_what_is_believed_of_a_model(model: str, provider: str, wanted: dict[str, str]) -> None:
    """In some format that its provider speaks, each with its source."""
    row = host_named(provider)
    assert row is not None
    found = [
        one
        for api in formats_of(row, None)
        for one in beliefs(row, facts(), model, resolve(Destination(provider, "", model, api)))
    ]
    assert wanted.items() <= {(one.what, one.value) for one in found}
    assert all(str(one.source) for one in found)


def test_what_a_knob_can_do_rests_on_its_own_page() -> None:
    """Where it has one; all else on the contract's."""
    row = host_named("glm")
    assert row is not None
    target = Destination("glm", "", "glm-5.3", "openai_chat")
    found = {one.what: one.source.link for one in beliefs(row, facts(), "glm-5.3", resolve(target))}
    assert found["efforts"] == "https://docs.z.ai/guides/capabilities/thinking"
    assert found["reasoning goes back"] == "https://docs.z.ai/guides/capabilities/thinking-mode"


def test_differences() -> None:
    """Members that change, before and after; none where nothing does."""
    before, after = written(BUILT_IN), written(table_with(KIMI_9))
    changed = [one for one in differences(before, after) if one.kind == "contracts"]
    assert ("scope", None, "all_with_tools") in [(one.member, one.before, one.after) for one in changed]
    assert not list(differences(before, before))


def test_an_overlay_is_believed_once_it_is_in_use() -> None:
    """And no longer after that."""
    target = Destination("kimi", "", "kimi-k9", "openai_chat")
    before = resolve(target)
    use(table_with(KIMI_9))
    try:
        assert resolve(target).scope == "all_with_tools"
    finally:
        use(BUILT_IN)
    assert resolve(target) == before
