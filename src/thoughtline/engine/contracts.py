"""Decides which contract applies to a destination, and reads from settings what changes the built-in ones."""

from __future__ import annotations

from msgspec.structs import asdict, replace

from thoughtline.destinations.catalogue import Provider
from thoughtline.engine.learned import Lessons
from thoughtline.formats import FORMATS
from thoughtline.providers import BUILT_IN, UNKNOWN, Contract, Dialect, Rung, facts, use
from thoughtline.replay.detection import host_of, resolve, with_tools
from thoughtline.replay.plans import Policy
from thoughtline.replay.restoring import inheriting
from thoughtline.settings import Settings
from thoughtline.values.destination import Destination
from thoughtline.values.turns import FormatName

_MAX_RESOLVED = 4096


class ContractBook:
    """Contracts by destination: built-in rows, changes from settings, and learned corrections."""

    def __init__(
        self,
        lessons: Lessons,
        overrides: dict[str, Contract] | None = None,
        fixed: dict[str, Contract] | None = None,
        on_miss: dict[str, tuple[Rung, ...]] | None = None,
        dialects: dict[str, Dialect] | None = None,
        *,
        inherits: bool = False,
    ) -> None:
        self._lessons = lessons
        self._overrides = overrides or {}
        self._fixed = fixed or {}
        self._on_miss = on_miss or {}
        self._dialects = dialects or {}
        self._inherits = inherits
        self._resolved: dict[tuple[str, str, str, FormatName], Contract] = {}

    def contract_for(self, target: Destination) -> Contract:
        key = (target.provider, target.endpoint, target.model, target.format)
        found = self._resolved.get(key)
        if found is None:
            found = self._resolve(target)
            if len(self._resolved) >= _MAX_RESOLVED:
                self._resolved.clear()
            self._resolved[key] = found
        return self._lessons.apply(found, target) if self._lessons.by_target else found

    def _resolve(self, target: Destination) -> Contract:
        """A provider's contract from settings is for one format; for its others detection decides."""
        fixed = self._fixed.get(target.provider)
        found = resolve(target)
        if fixed is not None and fixed.format == target.format:
            found = with_tools(fixed, host_of(target))
        found = _changed(found, self._overrides.get(found.name))
        dialect = self._dialects.get(target.provider)
        if dialect is None or "dialects" not in FORMATS[target.format].quirks:
            return found
        may_seal = found.name == UNKNOWN.name  # if the user says which member it is, nothing else is guessed
        return replace(found, dialect=dialect, follows_answers=False, may_seal=may_seal)

    def policy_for(self, contract: Contract, account: str) -> Policy:
        ladder = self._on_miss.get(contract.name)
        if ladder is None and self._inherits and contract.takes == "text":
            ladder = inheriting(contract.ladder)
        return Policy(ladder, self._lessons.refused_for(account))


def _changed(found: Contract, override: Contract | None) -> Contract:
    """Only the changes from settings: detection has adapted the row to its host."""
    if override is None:
        return found
    row = facts().contracts[found.name]
    return replace(found, **{name: value for name, value in asdict(override).items() if value != getattr(row, name)})


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
