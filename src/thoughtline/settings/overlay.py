"""Overrides the settings of a file by the environment and the flags."""

from __future__ import annotations

from collections.abc import Mapping

from thoughtline.destinations.catalogue import listed
from thoughtline.providers import canonical_name
from thoughtline.settings.keys import NAMED_TABLES, PREFIX, PROVIDER, TABLES, names
from thoughtline.toml.lines import KeyPath
from thoughtline.toml.tree import Given, Problems, Table
from thoughtline.values.nearest import did_you_mean

SHORT: dict[str, KeyPath] = {
    PREFIX + key.short: (table, key.name) for table, keys in TABLES.items() for key in keys if key.short
}
"""Short names of environment variables for the most common settings."""


_OTHERS = ("THOUGHTLINE_CONFIG", "THOUGHTLINE_KEY", "THOUGHTLINE_API_KEY", "THOUGHTLINE_INSTALL")
"""The file; keys that clients show: `clients` names those; and what `thoughtline.run` sets."""


def variable(table: str, name: str) -> str:
    """The environment variable of any value of a table that is neither a list nor a table."""
    return f"{PREFIX}{table.upper()}__{name.upper()}"


LONG: dict[str, KeyPath] = {
    variable(table, key.name): (table, key.name) for table, keys in TABLES.items() for key in keys
}


def lay_environment(tree: Table, environment: Mapping[str, str], problems: Problems) -> None:
    """Override the file's values by the environment. An empty variable is ignored."""
    for name in sorted(environment):
        path = SHORT.get(name) or LONG.get(name) or _provider_path(name, tree)
        if path and environment[name].strip():
            lay(tree, path, Given(environment[name], name, is_text=True))
        elif path is None and _is_meant_for_us(name):
            problems.add(name, "", "there is no such variable", did_you_mean(name, _known(name)))


def strange_variables(environment: Mapping[str, str]) -> dict[str, str]:
    """Variables with our prefix and no meaning, each with a correction. They may belong to another program: only those
    that name a table are errors.
    """
    known = [*SHORT, *LONG, *_OTHERS]
    mine = sorted(name for name in environment if name.startswith(PREFIX))
    return {
        name: did_you_mean(name, SHORT)
        for name in mine
        if name not in known and _provider_path(name, Table({}, "")) is None and not _is_meant_for_us(name)
    }


def lay(tree: Table, path: KeyPath, value: Given) -> None:
    for name in path[:-1]:
        node = tree.members.get(name)
        if not isinstance(node, Table):
            node = tree.members[name] = Table({}, value.place)
        tree = node
    tree.members[path[-1]] = value


def _provider_path(name: str, tree: Table) -> KeyPath | None:
    """`THOUGHTLINE_PROVIDERS__OPENCODE_GO__API_KEY`: a variable's name can't contain a dash."""
    parts = name.removeprefix(f"{PREFIX}PROVIDERS__").lower().split("__")
    if not name.startswith(f"{PREFIX}PROVIDERS__") or len(parts) != 2 or parts[1] not in names(PROVIDER):
        return None
    provider = parts[0].replace("_", "-")
    return ("providers", spelled(tree, provider), parts[1])


def spelled(tree: Table, name: str) -> str:
    """A provider's name as the tree spells it, under an alias or with other dashes; else the given name."""
    written = tree.members.get("providers")
    known = [*(written.members if isinstance(written, Table) else ()), *listed()]
    own = canonical_name(name)
    return next((each for each in known if canonical_name(each).replace("_", "-") == own.replace("_", "-")), own)


def _is_meant_for_us(name: str) -> bool:
    table, double, _ = name.removeprefix(PREFIX).partition("__")
    return name.startswith(PREFIX) and bool(double) and table.lower() in (*TABLES, *NAMED_TABLES)


def _known(name: str) -> list[str]:
    if name.startswith(f"{PREFIX}PROVIDERS__"):
        return [f"{PREFIX}PROVIDERS__NAME__{key.upper()}" for key in names(PROVIDER)]
    return list(LONG)
