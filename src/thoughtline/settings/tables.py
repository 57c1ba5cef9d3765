"""Reads the tables of a tree by their rows: tables with fixed names, with free names, and those of providers."""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import TypeVar, cast

from msgspec.structs import replace

from thoughtline.destinations.addresses import rebased
from thoughtline.destinations.catalogue import ContinuityWord, Provider, Timeouts, listed
from thoughtline.formats import FORMATS, USUAL
from thoughtline.providers import Contract, Rung, canonical_name, facts
from thoughtline.settings.keys import (
    CONTINUITY_WORDS,
    CONTRACT,
    FORMAT_NAMES,
    PROVIDER,
    PROVIDER_TABLES,
    ROUTE,
    RUNGS,
    TIMEOUT,
    Key,
    names,
)
from thoughtline.settings.kinds import DURATION, NOT_OF_KIND, PATH, URL, ExampleSecret, Kind, header_of
from thoughtline.settings.structs import RouteSettings
from thoughtline.toml.tree import Given, Problems, Table
from thoughtline.values.nearest import did_you_mean
from thoughtline.values.turns import FormatName

Value = TypeVar("Value")


def read_table(
    path: str, table: Table, keys: tuple[Key, ...], problems: Problems, also: tuple[str, ...] = ()
) -> dict[str, object]:
    """The members that a table sets. Names in `also` are read elsewhere."""
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
    """A value of a kind; None if it is invalid, which is a problem, or empty."""
    if isinstance(node, Table):
        problems.add(node.place, path, "found a table instead of a value", f"expected {kind.expected}")
        return None
    try:
        return kind.convert(node.value, node.is_text)
    except ExampleSecret:
        problem = "this secret is an example's, which anybody can read"
        problems.add(node.place, path, problem, "make one of your own, such as with `openssl rand -hex 32`")
        return None
    except NOT_OF_KIND:
        problems.add(node.place, path, _what(node, kind), _remedy(node, kind))
        return None


def table_at(table: Table, name: str, problems: Problems, path: str = "") -> Table:
    """The table of a name; an empty one if it is missing or no table."""
    node = table.members.get(name, Table({}, table.place))
    if isinstance(node, Table):
        return node
    problems.add(node.place, f"{path}{name}", "found a value instead of a table", f"begin it with [{path}{name}]")
    return Table({}, node.place)


def tables_of(table: Table, path: str, problems: Problems) -> dict[str, Table]:
    """The tables of a table of tables, by name."""
    return {name: table_at(table, name, problems, f"{path}.") for name in table.members}


def given(values: dict[str, object], name: str, other: Value) -> Value:
    """The value if it is set, else the other one: the rows guarantee that both have the same type."""
    return cast(Value, values.get(name, other))


def _what(node: Given, kind: Kind) -> str:
    shown = _quoted(node.value)
    if kind.words and isinstance(node.value, str):
        return f"{shown} is no such word" if shown else "there is no such word"
    if kind.words and isinstance(node.value, list):
        return "a word is unknown, missing or said twice"
    noun, allowed = _named(kind)
    if not shown or kind.expected.startswith(_MAY_BE_SECRET):
        return "found something else" if node.is_text else f"found {_called(node.value)}"
    if noun == "a whole number" and type(node.value) is int:
        return f"{shown} is out of range"
    return f"{shown} is not {noun}" if allowed else f"found {shown}"


def _remedy(node: Given, kind: Kind) -> str:
    words = node.value if isinstance(node.value, list) else [node.value]
    strange = [word for word in words if isinstance(word, str) and word not in kind.words]
    if kind.words and strange:
        return did_you_mean(strange[0], kind.words)
    noun, allowed = _named(kind)
    if not _quoted(node.value) or kind.expected.startswith(_MAY_BE_SECRET) or not allowed:
        return f"expected {kind.expected}"
    is_in_quotes = isinstance(node.value, str) and not node.is_text and noun in ("a port", "a whole number")
    return f"{allowed}, without quotes" if is_in_quotes else allowed


_MAY_BE_SECRET = ("text", "a key", "a URL", "at least")
"""How the kinds begin whose values may be secrets: their values are never shown."""


def _named(kind: Kind) -> tuple[str, str]:
    """A kind's name and its allowed range: `a port`, `0 to 65,535`."""
    found = re.fullmatch(r"(a[^,(]*?)(?:,? from |, )(.*)", kind.expected)
    return (found[1], found[2]) if found is not None else (kind.expected, "")


LONGEST_SHOWN = 12
"""The longest wrong value that is shown. A longer one may be a key in the wrong line."""


def _quoted(value: object) -> str:
    """A wrong value as it was written, if it can't be a secret; empty otherwise."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (int, float)):
        return str(value) if len(str(value)) <= LONGEST_SHOWN else ""
    is_short = isinstance(value, str) and 0 < len(value) <= LONGEST_SHOWN and value.isprintable()
    return f'"{value}"' if is_short else ""


def _called(value: object) -> str:
    kinds = {bool: "true or false", str: "text", int: "a whole number", float: "a number", list: "a list"}
    return kinds.get(type(value), "a time")


# --- tables with free names: `[routes.NAME]`, `[contracts."NAME"]`, `[replay.on_miss]`, `[continuity.models]`
# ----------


def read_contracts(table: Table, problems: Problems) -> dict[str, Contract]:
    """The built-in rows that tables change, by name."""
    found, known = {}, facts().contracts
    for name, row in tables_of(table, "contracts", problems).items():
        path = f"contracts.{name}"
        if name not in known:
            problems.add(row.place, path, "there is no such contract", did_you_mean(name, known))
            continue
        values = read_table(path, row, CONTRACT, problems)
        if "dialect" in values:
            values["dialect"] = facts().dialects[str(values["dialect"])]
        if values:
            source = known[name].source
            changed = replace(source, says=f"{source.says}; changed in settings")
            found[name] = replace(known[name], **values, source=changed)
    return found


def read_ladders(table: Table, problems: Problems) -> dict[str, tuple[Rung, ...]]:
    """The ladders of contracts on a miss, by contract."""
    found = _by_name("replay.on_miss", table, RUNGS, problems, sort="contract", known=facts().contracts)
    return cast("dict[str, tuple[Rung, ...]]", found)


def _by_name(
    path: str, table: Table, kind: Kind, problems: Problems, *, sort: str, known: Collection[str]
) -> dict[str, object]:
    """The values of a table whose keys must be known."""
    found = {}
    for name, node in table.members.items():
        if name not in known:
            problems.add(node.place, f"{path}.{name}", f"there is no such {sort}", did_you_mean(name, known))
            continue
        value = read_value(f"{path}.{name}", node, kind, problems)
        if value is not None:
            found[name] = value
    return found


def read_routes(table: Table, providers: Collection[str], problems: Problems) -> dict[str, RouteSettings]:
    """The targets of each route with known providers."""
    found: dict[str, RouteSettings] = {}
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
            found[name] = RouteSettings(name, targets, weights, given(values, "continuity", None))
    return found


def read_models(table: Table, providers: Collection[str], problems: Problems) -> dict[str, ContinuityWord]:
    """The continuity of models, by the names of models with known providers."""
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
    """`provider/model` with the provider's main name; None, and a problem, if the provider is unknown."""
    provider, _, model = name.partition("/")
    if not model.strip() or not name.isprintable():
        problems.add(place, path, "this is not a provider and its model", 'write "provider/model"')
        return None
    if canonical_name(provider) not in providers:
        problems.add(place, path, "there is no such provider", did_you_mean(provider, providers))
        return None
    return f"{canonical_name(provider)}/{model}"


# --- `[providers.NAME]`: each table changes a built-in row or adds one ------------------------------------------------


RESERVED = frozenset({"v1", "v1beta", "api", "healthz", "readyz", "metrics", "assets"})
"""First segments of the gateway's own URLs, where a provider's name may stand too."""

ANY_CLIENT = tuple(name for name, wire in FORMATS.items() if "signed_requests" not in wire.quirks)
"""What clients speak, and so what an unknown server is assumed to speak."""

_NAME = re.compile(r"[a-z0-9][a-z0-9._-]*")
_AWS_KEY = re.compile(r"chain|profile:\S.*|[A-Z0-9]{16,128}:[^:\s]{16,256}(:\S+)?")


def read_providers(table: Table, problems: Problems) -> dict[str, Provider]:
    """The rows that the tables change or add, by name."""
    found: dict[str, Provider] = {}
    for name, row in tables_of(table, "providers", problems).items():
        path, canonical = f"providers.{name}", canonical_name(name)
        if not _NAME.fullmatch(canonical) or canonical in RESERVED:
            problems.add(row.place, path, "this name can't be part of an address", "letters, digits, dots and dashes")
        elif canonical in found:
            problems.add(row.place, path, f"{canonical} is set twice", "use one table")
        else:
            provider = _read_provider(path, canonical, row, problems)
            if provider is not None:
                found[canonical] = provider
    return found


def _names() -> list[str]:
    return [*listed(), *(alias for row in facts().rows for alias in row.aliases)]


def _read_provider(path: str, name: str, table: Table, problems: Problems) -> Provider | None:
    values = read_table(path, table, PROVIDER, problems, tuple(PROVIDER_TABLES))
    row = listed().get(name)
    if row is None and "base_url" not in table.members:
        remedy = f"{did_you_mean(name, _names())} A new one needs base_url"
        problems.add(table.place, path, f"unknown provider {name}", remedy)
        return None
    row = row or Provider(name, "", (USUAL.name,))
    formats = given(values, "formats", row.formats)
    door: FormatName | None = given(values, "door", None)
    if door is not None and door not in formats:
        problems.add(table.place, f"{path}.door", f"it does not speak {door}", f"one of formats: {', '.join(formats)}")
        return None
    bases = _by_format(f"{path}.bases", table, "bases", URL, problems)
    paths = _by_format(f"{path}.paths", table, "paths", PATH, problems)
    return replace(
        replace(row, **values),
        bases={api: base for api, base in (_bases(row, values) | bases).items() if api in formats},
        paths={api: below for api, below in (row.paths | paths).items() if api in formats},
        auth=_auth(row, values),
        api_keys=_keys(path, row, values, table=table, problems=problems),
        headers=row.headers | _headers(path, table, problems),
        timeouts=_timeouts(path, table, row.timeouts, problems),
    )


def _bases(row: Provider, values: dict[str, object]) -> dict[FormatName, str]:
    """The URLs of the other APIs: a URL given together with formats is the URL of all of them."""
    if "base_url" not in values:
        return row.bases
    return {} if "formats" in values else rebased(row, str(values["base_url"]))


def _auth(row: Provider, values: dict[str, object]) -> str:
    if "auth" not in values and row.auth == "none" and values.get("api_keys"):
        return "bearer"
    return given(values, "auth", row.auth)


def _keys(path: str, row: Provider, values: dict[str, object], *, table: Table, problems: Problems) -> tuple[str, ...]:
    """Its keys. A provider that signs with AWS credentials has keys whether or not settings name them."""
    keys: tuple[str, ...] = given(values, "api_keys", row.api_keys)
    if _auth(row, values) != "aws":
        return keys
    if not all(_AWS_KEY.fullmatch(key) for key in keys):
        remedy = "ACCESS_KEY_ID:SECRET_ACCESS_KEY, or profile:NAME, or chain"
        problems.add(table.place, f"{path}.api_key", "these are not AWS credentials", remedy)
    return keys or ("chain",)


def _by_format(path: str, table: Table, name: str, kind: Kind, problems: Problems) -> dict[FormatName, str]:
    within = table_at(table, name, problems, path.removesuffix(name))
    return cast("dict[FormatName, str]", _by_name(path, within, kind, problems, sort="format", known=FORMAT_NAMES))


def _headers(path: str, table: Table, problems: Problems) -> dict[str, str]:
    found = {}
    for name, node in table_at(table, "headers", problems, f"{path}.").members.items():
        try:
            found[name.lower()] = header_of(name, None if isinstance(node, Table) else node.value)
        except NOT_OF_KIND:
            problems.add(
                node.place,
                f"{path}.headers.{name}",
                "this can't be a header",
                "a name and text in ASCII; what frames a message is set by the gateway",
            )
    return found


def _timeouts(path: str, table: Table, default: Timeouts, problems: Problems) -> Timeouts:
    node = table.members.get("timeout")
    if isinstance(node, Table):
        return replace(default, **read_table(f"{path}.timeout", node, TIMEOUT, problems))
    if node is None:
        return default
    total = cast("float | None", read_value(f"{path}.timeout", node, DURATION, problems))
    if total is None:
        return default
    return Timeouts(min(default.connect, total), min(default.first_byte, total), min(default.read, total), total)
