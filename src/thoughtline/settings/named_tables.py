"""`[routes.NAME]`, `[contracts."NAME"]`, `[replay.on_miss]` and `[continuity.models]`: names that name something."""

from __future__ import annotations

from collections.abc import Collection
from typing import cast

from msgspec.structs import replace

from thoughtline.catalogue import ContinuityWord
from thoughtline.providers import CONTRACTS, DIALECTS, Contract, Rung, canonical_name
from thoughtline.settings.keys import CONTINUITY_WORDS, CONTRACT, ROUTE, RUNGS
from thoughtline.settings.tables import given, read_table, read_value, tables_of
from thoughtline.settings.tree import Problems, Table
from thoughtline.values.nearest import did_you_mean


def read_contracts(table: Table, problems: Problems) -> dict[str, Contract]:
    """The built-in rows that tables change, by name."""
    found = {}
    for name, row in tables_of(table, "contracts", problems).items():
        path = f"contracts.{name}"
        if name not in CONTRACTS:
            problems.add(row.place, path, "there is no such contract", did_you_mean(name, CONTRACTS))
            continue
        values = read_table(path, row, CONTRACT, problems)
        if "dialect" in values:
            values["dialect"] = DIALECTS[str(values["dialect"])]
        if values:
            source = CONTRACTS[name].source
            changed = replace(source, says=f"{source.says}; changed in settings")
            found[name] = replace(CONTRACTS[name], **values, source=changed)
    return found


def read_ladders(table: Table, problems: Problems) -> dict[str, tuple[Rung, ...]]:
    """The ladders that contracts get on a miss, by contract."""
    found = {}
    for name, node in table.members.items():
        path = f"replay.on_miss.{name}"
        if name not in CONTRACTS:
            problems.add(node.place, path, "there is no such contract", did_you_mean(name, CONTRACTS))
            continue
        ladder = read_value(path, node, RUNGS, problems)
        if ladder is not None:
            found[name] = cast("tuple[Rung, ...]", ladder)
    return found


Leads = tuple[tuple[str, ...], tuple[int, ...], ContinuityWord | None]
"""The targets of a route, their weights, and what becomes of its conversations."""


def read_routes(table: Table, providers: Collection[str], problems: Problems) -> dict[str, Leads]:
    """Where each route leads whose providers are known."""
    found: dict[str, Leads] = {}
    for name, row in tables_of(table, "routes", problems).items():
        path = f"routes.{name}"
        values = read_table(path, row, ROUTE, problems)
        targets = _targets(path, row, given(values, "targets", ()), providers, problems)
        weights: tuple[int, ...] = given(values, "weights", ())
        if not name.strip() or not name.isprintable() or "/" in name:
            problems.add(row.place, path, "this can't be the name of a route", "name it without a slash")
        elif weights and len(weights) != len(targets):
            problems.add(row.place, f"{path}.weights", "there must be one for each target", f"write {len(targets)}")
        elif targets:
            found[name] = (targets, weights, given(values, "continuity", None))
    return found


def read_models(table: Table, providers: Collection[str], problems: Problems) -> dict[str, ContinuityWord]:
    """What becomes of the conversations of models, by the names of models whose providers are known."""
    found: dict[str, ContinuityWord] = {}
    for name, node in table.members.items():
        path = f"continuity.models.{name}"
        word = read_value(path, node, CONTINUITY_WORDS, problems)
        model = _model(path, node.place, name, providers, problems)
        if model is not None and model.lower() in map(str.lower, found):
            problems.add(node.place, path, f"{model} is set twice", "set it once")
        elif model is not None and word is not None:
            found[model] = cast(ContinuityWord, word)
    return found


def _targets(
    path: str, table: Table, targets: tuple[str, ...], providers: Collection[str], problems: Problems
) -> tuple[str, ...]:
    place = table.members["targets"].place if "targets" in table.members else table.place
    found = [
        _model(f"{path}.targets[{index}]", place, target, providers, problems) for index, target in enumerate(targets)
    ]
    if not targets:
        problems.add(place, f"{path}.targets", "a route needs targets", 'write targets = ["provider/model"]')
    return tuple(target for target in found if target is not None)


def _model(path: str, place: str, name: str, providers: Collection[str], problems: Problems) -> str | None:
    """`provider/model` under the provider's own name; None if that is no known provider's, which is a problem."""
    provider, _, model = name.partition("/")
    if not model.strip() or not name.isprintable():
        problems.add(place, path, "this is not a provider and its model", 'write "provider/model"')
        return None
    if canonical_name(provider) not in providers:
        problems.add(place, path, "there is no such provider", did_you_mean(provider, providers))
        return None
    return f"{canonical_name(provider)}/{model}"
