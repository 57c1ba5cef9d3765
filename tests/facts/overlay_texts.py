"""Overlays for tests."""

from __future__ import annotations

from thoughtline.facts.files import tree_of
from thoughtline.facts.overlays import table_of
from thoughtline.providers import BUILT_IN, FactTable
from thoughtline.toml.tree import Problems

ACME = r"""
[providers.acme]
hosts = 'acme\.example$'
base_url = "https://api.acme.example/v1"
formats = ["openai_chat"]
rules = "own"
models = "roadrunner"
unverified = true

[contracts.acme]
like = "kimi"
filler = "…"
source = "https://acme.example/docs"
read = 2026-11-18

[models.acme]
provider = "acme"
contracts = ["acme"]
unverified = true

[refusals.acme]
provider = "acme"
rule = "missing"
remedy = "restore"
template = "you forgot the `<field:reasoning_content>` of message {index}…, dear caller"
unverified = true
"""
"""A provider that the package does not know."""

KIMI_9 = """
[models.kimi-9]
provider = "kimi"
models = "kimi-k9"
contracts = ["kimi-9"]
unverified = true

[contracts.kimi-9]
like = "kimi"
scope = "all_with_tools"
source = "https://docs.example/kimi-k9"
read = 2026-11-18
"""
"""A generation of models of a provider that is known."""


def problems_of(text: str, *, is_fetched: bool = True) -> list[str]:
    """What is wrong with an overlay, as it is shown."""
    problems = Problems()
    table_of(BUILT_IN, [(tree_of(text.encode(), "overlay.toml", problems), is_fetched)], problems)
    return [f"{one.place}: {one.key}: {one.message} ({one.remedy})" for one in problems.found]


def table_with(text: str, *, is_fetched: bool = True) -> FactTable:
    """The table with an overlay that fits."""
    problems = Problems()
    table = table_of(BUILT_IN, [(tree_of(text.encode(), "overlay.toml", problems), is_fetched)], problems)
    assert not problems.found, problems.found
    return table
