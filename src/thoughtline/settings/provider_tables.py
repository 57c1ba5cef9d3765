"""`[providers.NAME]`: each table changes a built-in row or adds one."""

from __future__ import annotations

import re
from typing import cast

from msgspec.structs import replace

from thoughtline import providers
from thoughtline.addresses import rebased
from thoughtline.catalogue import PROVIDERS, Provider, Timeouts
from thoughtline.formats import FORMATS, USUAL
from thoughtline.providers import canonical_name
from thoughtline.settings.keys import FACES, PROVIDER, PROVIDER_TABLES, TIMEOUT
from thoughtline.settings.kinds import DURATION, NOT_OF_KIND, PATH, URL, Kind, header_of
from thoughtline.settings.tables import given, read_table, read_value, table_at, tables_of
from thoughtline.settings.tree import Problems, Table
from thoughtline.values.nearest import did_you_mean
from thoughtline.values.turns import FormatName

RESERVED = frozenset({"v1", "v1beta", "api", "healthz", "readyz", "metrics", "assets"})
"""First segments of the gateway's own addresses, where a provider's name stands too."""

ANY_CLIENT = tuple(name for name, wire in FORMATS.items() if "signed_requests" not in wire.quirks)
"""What clients speak, and so what a server that nobody knows is taken to speak."""

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
    return [*PROVIDERS, *(alias for row in providers.PROVIDERS for alias in row.aliases)]


def _read_provider(path: str, name: str, table: Table, problems: Problems) -> Provider | None:
    values = read_table(path, table, PROVIDER, problems, tuple(PROVIDER_TABLES))
    row = PROVIDERS.get(name)
    if row is None and "base_url" not in table.members:
        remedy = f"set base_url; or, for a built-in one: {did_you_mean(name, _names())}"
        problems.add(table.place, path, "a provider that is not built in needs an address", remedy)
        return None
    row = row or Provider(name, "", (USUAL.name,))
    formats = given(values, "formats", row.formats)
    bases = _by_format(f"{path}.bases", table, "bases", URL, problems)
    paths = _by_format(f"{path}.paths", table, "paths", PATH, problems)
    return replace(
        row,
        base_url=given(values, "base_url", row.base_url),
        formats=formats,
        bases={face: base for face, base in (_faces(row, values) | bases).items() if face in formats},
        paths={face: below for face, below in (row.paths | paths).items() if face in formats},
        auth=_auth(row, values),
        api_keys=_keys(path, row, values, table=table, problems=problems),
        headers=row.headers | _headers(path, table, problems),
        timeouts=_timeouts(path, table, row.timeouts, problems),
        contract=given(values, "contract", row.contract),
        dialect=given(values, "dialect", row.dialect),
        streams_only=given(values, "streams_only", row.streams_only),
        websocket=given(values, "websocket", row.websocket),
        continuity=given(values, "continuity", row.continuity),
        tags=given(values, "tags", row.tags),
        content=given(values, "content", row.content),
        keeps=given(values, "keeps", row.keeps),
    )


def _faces(row: Provider, values: dict[str, object]) -> dict[FormatName, str]:
    """Where the other faces are: an address together with formats is the address of all of these."""
    if "base_url" not in values:
        return row.bases
    return {} if "formats" in values else rebased(row, str(values["base_url"]))


def _auth(row: Provider, values: dict[str, object]) -> str:
    if "auth" not in values and row.auth == "none" and values.get("api_keys"):
        return "bearer"
    return given(values, "auth", row.auth)


def _keys(path: str, row: Provider, values: dict[str, object], *, table: Table, problems: Problems) -> tuple[str, ...]:
    """Its keys. What signs with AWS credentials has some whether or not settings name them."""
    keys: tuple[str, ...] = given(values, "api_keys", row.api_keys)
    if _auth(row, values) != "aws":
        return keys
    if not all(_AWS_KEY.fullmatch(key) for key in keys):
        remedy = "ACCESS_KEY_ID:SECRET_ACCESS_KEY, or profile:NAME, or chain"
        problems.add(table.place, f"{path}.api_key", "these are not AWS credentials", remedy)
    return keys or ("chain",)


def _by_format(path: str, table: Table, name: str, kind: Kind, problems: Problems) -> dict[FormatName, str]:
    found = {}
    for face, node in table_at(table, name, problems, path.removesuffix(name)).members.items():
        if face not in FACES:
            problems.unknown(node.place, f"{path}.{face}", FACES, "format")
            continue
        value = read_value(f"{path}.{face}", node, kind, problems)
        if value is not None:
            found[cast(FormatName, face)] = str(value)
    return found


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
