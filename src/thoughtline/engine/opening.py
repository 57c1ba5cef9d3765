"""Builds the contracts from settings, for code that opens a replayer."""

from __future__ import annotations

from thoughtline.destinations.catalogue import Provider
from thoughtline.engine.contract_book import ContractBook
from thoughtline.engine.lessons import Lessons
from thoughtline.providers import BUILT_IN, Contract, facts, use
from thoughtline.settings import Settings


def contract_book(settings: Settings, lessons: Lessons) -> ContractBook:
    """The contracts with the changes from settings. The process uses their table of facts from now on."""
    go_by(settings)
    fixed = {name: found for name, row in settings.providers.items() if (found := _fixed(row)) is not None}
    kept_in = {name: facts().dialects[row.dialect] for name, row in settings.providers.items() if row.dialect}
    replay = settings.replay
    return ContractBook(lessons, settings.contracts, fixed, replay.on_miss, kept_in, inherits=replay.miss == "inherit")


def go_by(settings: Settings) -> None:
    """Make the process use its settings' table of facts."""
    use(settings.table or BUILT_IN)


def _fixed(provider: Provider) -> Contract | None:
    """The contract that a provider's settings name."""
    return facts().contracts[provider.contract] if provider.contract is not None else None
