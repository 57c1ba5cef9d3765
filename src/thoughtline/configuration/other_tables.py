"""`[routes.NAME]`, `[contracts."NAME"]` and `[replay.on_miss]`: tables whose names name something."""

from __future__ import annotations

from collections.abc import Collection
from typing import cast

from msgspec.structs import replace

from thoughtline.catalogue import ContinuityWord, canonical_name
from thoughtline.configuration.keys import CONTRACT, DIALECTS, ROUTE, RUNGS
from thoughtline.configuration.tables import given, read_table, read_value, tables_of
from thoughtline.configuration.tree import Problems, Table, nearest
from thoughtline.replay.contracts import BY_NAME, Contract, Rung


def read_contracts(table: Table, problems: Problems) -> dict[str, Contract]:
    """The built-in rows that tables change, by name."""
    found = {}
    for name, row in tables_of(table, "contracts", problems).items():
        path = f"contracts.{name}"
        if name not in BY_NAME:
            problems.add(row.place, path, "there is no such contract", nearest(name, BY_NAME))
            continue
        values = read_table(path, row, CONTRACT, problems)
        if "dialect" in values:
            values["dialect"] = DIALECTS[str(values["dialect"])]
        if values:
            source = f"{BY_NAME[name].source}; changed in settings"
            found[name] = replace(BY_NAME[name], **values, source=source)
    return found


def read_ladders(table: Table, problems: Problems) -> dict[str, tuple[Rung, ...]]:
    """The ladders that contracts get on a miss, by contract."""
    found = {}
    for name, node in table.members.items():
        path = f"replay.on_miss.{name}"
        if name not in BY_NAME:
            problems.add(node.place, path, "there is no such contract", nearest(name, BY_NAME))
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
            problems.add(row.place, path, "this can't be a model's name of its own", "name it without a slash")
        elif weights and len(weights) != len(targets):
            problems.add(row.place, f"{path}.weights", "there is not one for each target", f"write {len(targets)}")
        elif targets:
            found[name] = (targets, weights, given(values, "continuity", None))
    return found


def _targets(
    path: str, table: Table, targets: tuple[str, ...], providers: Collection[str], problems: Problems
) -> tuple[str, ...]:
    place = table.members["targets"].place if "targets" in table.members else table.place
    found = []
    for index, target in enumerate(targets):
        provider, _, model = target.partition("/")
        if not model.strip() or not target.isprintable():
            problems.add(place, f"{path}.targets[{index}]", "this is no provider's model", 'write "provider/model"')
        elif canonical_name(provider) not in providers:
            problems.add(place, f"{path}.targets[{index}]", "there is no such provider", nearest(provider, providers))
        else:
            found.append(f"{canonical_name(provider)}/{model}")
    if not targets:
        problems.add(place, f"{path}.targets", "a route leads somewhere", 'write targets = ["provider/model"]')
    return tuple(found)
