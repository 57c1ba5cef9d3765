"""The table of facts: the rows of all providers, and lookups in them.

`providers.BUILT_IN` is the package's own table. An overlay makes a new table from it (`thoughtline.facts`), and
`providers.use` makes the process use that one.
"""

from __future__ import annotations

import re
from functools import cached_property

from thoughtline.providers.contract import Contract
from thoughtline.providers.dialects import Dialect
from thoughtline.providers.refusals import RefusalTemplate
from thoughtline.providers.row import ProviderRow

_RELAYED = re.compile(r"gateway\.ai\.cloudflare\.com/v1/[^/]+/[^/]+/([\w-]+)")
"""Addresses that name the provider they forward to: Cloudflare's gateway."""


class FactTable:
    """Rows of providers, and `unlisted` for hosts without a row.

    `contracts` are those that detection can find and settings can name; `dialects` are those that settings can name.
    """

    def __init__(
        self,
        rows: tuple[ProviderRow, ...],
        unlisted: ProviderRow,
        *,
        further: tuple[Contract, ...] = (),
        dialects: dict[str, Dialect],
    ) -> None:
        self.rows = rows
        self.unlisted = unlisted
        self.further = further
        self.dialects = dialects

    @property
    def every_row(self) -> tuple[ProviderRow, ...]:
        """The rows, including the one for unlisted hosts."""
        return (*self.rows, self.unlisted)

    @cached_property
    def contracts(self) -> dict[str, Contract]:
        """All contracts by name. If several have the same name, the one for most of the models is used."""
        found: dict[str, Contract] = {}
        for contract in (*(one for row in self.rows for one in row.contracts), *self.further):
            found.setdefault(contract.name, contract)
        return found

    @cached_property
    def refusals(self) -> list[tuple[str, RefusalTemplate]]:
        """All refusals, each with the provider whose rule it is. Those that require both a code and a sentence come
        first."""
        every = [(one.family or row.name, one) for row in self.every_row for one in row.refusals]
        return sorted(every, key=lambda pair: not (pair[1].codes and pair[1].template))

    def host_named(self, name: str) -> ProviderRow | None:
        """Return the row of a provider, found by name or alias."""
        lowered = name.lower()
        return next((row for row in self.rows if lowered == row.name or lowered in row.aliases), None)

    def host_at(self, address: str) -> ProviderRow | None:
        """Return the row of the provider at an address."""
        place = re.sub(r"^\w+://", "", address).lower()
        behind = _RELAYED.match(place)
        if behind is not None and (row := self.host_named(behind[1])) is not None:
            return row
        host = place.split("/")[0].split(":")[0]
        return next((row for row in self.rows if re.search(row.hosts, place if "/" in row.hosts else host)), None)

    def maker_of(self, model: str) -> ProviderRow | None:
        """Return the row of the provider that makes a model, found by the model's name."""
        lowered = model.lower()
        return next((row for row in self.rows if re.search(row.models, lowered)), None)

    def is_wanted_back(self, model: str) -> bool:
        """Whether any maker wants the reasoning of this model's tool calls back."""
        lowered = model.lower()
        return any(row.wanted_models and re.search(row.wanted_models, lowered) for row in self.rows)
