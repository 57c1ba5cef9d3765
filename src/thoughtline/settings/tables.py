"""Tables of a tree, read by their rows."""

from __future__ import annotations

from typing import TypeVar, cast

from thoughtline.settings.keys import Key, names
from thoughtline.settings.kinds import NOT_OF_KIND, Kind
from thoughtline.settings.tree import Given, Problems, Table
from thoughtline.values.nearest import did_you_mean

Value = TypeVar("Value")


def read_table(
    path: str, table: Table, keys: tuple[Key, ...], problems: Problems, also: tuple[str, ...] = ()
) -> dict[str, object]:
    """The members that a table gives. What is `also` known is read by somebody else."""
    rows = {key.name: key for key in keys}
    found: dict[str, object] = {}
    for name, node in table.members.items():
        if name in rows:
            value = read_value(f"{path}.{name}", node, rows[name].kind, problems)
            if value is not None:
                found[rows[name].stands_in] = value
        elif name not in also:
            problems.unknown(node.place, f"{path}.{name}", [*names(keys), *also])
    return found


def read_value(path: str, node: Given | Table, kind: Kind, problems: Problems) -> object | None:
    """A value of a kind; None if it is not of it, which is a problem, or if nothing was meant."""
    if isinstance(node, Table):
        problems.add(node.place, path, "found a table instead of a value", f"expected {kind.expected}")
        return None
    try:
        return kind.convert(node.value, node.is_text)
    except NOT_OF_KIND:
        problems.add(node.place, path, _what(node, kind), _remedy(node, kind))
        return None


def table_at(table: Table, name: str, problems: Problems, path: str = "") -> Table:
    """The table of a name; an empty one if there is none, or none that is one."""
    node = table.members.get(name, Table({}, table.place))
    if isinstance(node, Table):
        return node
    problems.add(node.place, f"{path}{name}", "found a value instead of a table", f"begin it with [{path}{name}]")
    return Table({}, node.place)


def tables_of(table: Table, path: str, problems: Problems) -> dict[str, Table]:
    """The tables of a table of tables, by name."""
    return {name: table_at(table, name, problems, f"{path}.") for name in table.members}


def given(values: dict[str, object], name: str, other: Value) -> Value:
    """A value of its kind, or the other one: the rows say that both are of one type."""
    return cast(Value, values.get(name, other))


def _what(node: Given, kind: Kind) -> str:
    if kind.words and isinstance(node.value, str):
        return "there is no such word"
    if kind.words and isinstance(node.value, list):
        return "a word is unknown, missing or said twice"
    return "found something else" if node.is_text else f"found {_called(node.value)}"


def _remedy(node: Given, kind: Kind) -> str:
    said = node.value if isinstance(node.value, list) else [node.value]
    strange = [word for word in said if isinstance(word, str) and word not in kind.words]
    return did_you_mean(strange[0], kind.words) if kind.words and strange else f"expected {kind.expected}"


def _called(value: object) -> str:
    kinds = {bool: "true or false", str: "text", int: "a whole number", float: "a number", list: "a list"}
    return kinds.get(type(value), "a time")
