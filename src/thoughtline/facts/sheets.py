"""The table of facts as sheets of plain entries, and back.

    sheet       entry                                          in the table
    dialects    where a server keeps reasoning                 Dialect
    refusals    one way to be refused, and whose it is         RefusalTemplate in a row's `refusals`
    contracts   what is demanded back                          Contract
    providers   where a provider is, how it is asked           ProviderRow
    models      which models go by which contracts             ModelRow in a row's `rows`
    contexts    how many tokens models take                    Context in a row's `contexts`
    doors       requests that go up in another format          Door in a row's `doors`

Entries name each other: a contract its dialect and its refusals, models their provider and contracts. A member that has
its default value is left out; one that has no value where the default has one is listed in `unset`.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple, TypeAlias, get_type_hints

import msgspec
from msgspec import NODEFAULT, Struct
from msgspec.structs import fields

from thoughtline.providers.contract import Contract
from thoughtline.providers.dialects import Dialect
from thoughtline.providers.refusals import RefusalTemplate
from thoughtline.providers.row import Context, Door, ModelRow, ProviderRow
from thoughtline.providers.sources import UNVERIFIED, Source
from thoughtline.providers.table import FactTable
from thoughtline.values.nearest import did_you_mean

Entry: TypeAlias = dict[str, Any]
"""Members of an entry, in the form of TOML."""

Sheets: TypeAlias = dict[str, dict[str, Entry]]

UNLISTED = "unlisted"
"""The entry for unlisted hosts."""


class Kind(NamedTuple):
    """A sheet. `of_provider`: the member of a row with such entries; each entry then names its provider."""

    struct: type[Struct]
    of_provider: str = ""


KINDS: dict[str, Kind] = {
    "dialects": Kind(Dialect),
    "refusals": Kind(RefusalTemplate, "refusals"),
    "contracts": Kind(Contract),
    "providers": Kind(ProviderRow),
    "models": Kind(ModelRow, "rows"),
    "contexts": Kind(Context, "contexts"),
    "doors": Kind(Door, "doors"),
}
_SHEETS_OF_ROWS = {kind.of_provider: name for name, kind in KINDS.items() if kind.of_provider}

REFERENCES: dict[tuple[str, str], str] = {
    ("contracts", "dialect"): "dialects",
    ("contracts", "when_split"): "dialects",
    ("contracts", "answers"): "refusals",
    ("providers", "dialect"): "dialects",
    ("models", "contracts"): "contracts",
    ("models", "elsewhere"): "contracts",
}
"""Members that refer to entries of another sheet."""

SOURCE_MEMBERS = ("source", "read", "says", "unverified")


@functools.cache
def hints_of(kind: str) -> dict[str, Any]:
    """Return the members that an entry can have, with their types; `Source` is written as four of them."""
    struct = KINDS[kind].struct
    found = {field.encode_name: field.type for field in fields(struct) if field.name not in _SHEETS_OF_ROWS}
    for (sheet, member), _ in REFERENCES.items():
        if sheet == kind:
            found[member] = tuple[str, ...] if member in ("answers", "contracts", "elsewhere") else str
    if KINDS[kind].of_provider:
        found["provider"] = str
    return {**found, "source": str, "read": str, "says": str, "unverified": bool, "unset": tuple[str, ...]}


@functools.cache
def needed_of(kind: str) -> tuple[str, ...]:
    """Return the members without a default, which a new entry must have."""
    struct = fields(KINDS[kind].struct)
    without = [one.name for one in struct if one.default is NODEFAULT and one.default_factory is NODEFAULT]
    own = [name for name in without if name not in (*_SHEETS_OF_ROWS, "name", "source")]
    return (*own, "provider") if KINDS[kind].of_provider and kind != "refusals" else tuple(own)


# --- writing ----------------------------------------------------------------------------------------------------------


def written(table: FactTable) -> Sheets:
    """Return the table as sheets."""
    return _Writer(table).sheets


class _Writer:
    """Gives every value a name, the same to equal ones, and writes it once."""

    def __init__(self, table: FactTable) -> None:
        self.sheets: Sheets = {kind: {} for kind in KINDS}
        self._names: dict[str, list[tuple[Struct, str]]] = {kind: [] for kind in KINDS}
        for dialect in table.dialects.values():
            self._named("dialects", dialect, dialect.name)
        for row in table.every_row:
            for template in row.refusals:
                self._own("refusals", template, row, again=True)
        for row in table.every_row:
            self._row(row)
        for contract in table.further:
            self._contract(contract)

    def _row(self, row: ProviderRow) -> None:
        name = row.name or UNLISTED
        self.sheets["providers"][name] = self._members("providers", row, leave={*_SHEETS_OF_ROWS, "name"})
        for models in row.rows:
            self._own("models", models, row)
        for context in row.contexts:
            self._own("contexts", context, row)
        for door in row.doors:
            self._own("doors", door, row)

    def _own(self, kind: str, value: Struct, row: ProviderRow, *, again: bool = False) -> None:
        """Write an entry of a provider: numbered, since it has no name of its own."""
        provider = row.name or UNLISTED
        number = 1 + sum(entry.get("provider") == provider for entry in self.sheets[kind].values())
        name = f"{provider}-{number}"
        self.sheets[kind][name] = {"provider": provider, **self._members(kind, value)}
        if again:
            self._names[kind].append((value, name))

    def _contract(self, contract: Contract) -> str:
        return self._named("contracts", contract, contract.name)

    def _named(self, kind: str, value: Struct, name: str) -> str:
        """Return the name of a value's entry: its own, with a number if another value has that."""
        for known, known_name in self._names[kind]:
            if known == value:
                return known_name
        taken, number = self.sheets[kind], 1
        chosen = name
        while chosen in taken:
            number += 1
            chosen = f"{name}-{number}"
        self._names[kind].append((value, chosen))
        taken[chosen] = {}
        members = self._members(kind, value, leave={"name"})
        if chosen == name:
            taken[chosen] = members
        else:
            base = taken[name]
            lost = [member for member in base if member not in members and member != "unset"]
            changed = {member: plain for member, plain in members.items() if base.get(member) != plain}
            taken[chosen] = {"like": name, "name": name, **changed, **({"default": lost} if lost else {})}
        return chosen

    def _reference(self, target: str, value: Any) -> Any:
        if isinstance(value, tuple):
            return [self._reference(target, one) for one in value]
        if isinstance(value, Contract):
            return self._contract(value)
        if isinstance(value, Dialect):
            return self._named("dialects", value, value.name)
        # A refusal that no row lists is written only by the auditor.
        for known, name in self._names[target]:
            if known == value:
                return name
        return self._named(
            target, value, f"answer-{1 + sum(name.startswith('answer-') for name in self.sheets[target])}"
        )

    def _members(self, kind: str, value: Struct, leave: Iterable[str] = ()) -> Entry:
        found: Entry = {}
        unset: list[str] = []
        for field in fields(type(value)):
            member = getattr(value, field.name)
            if field.name in leave:
                continue
            if isinstance(member, Source):
                if not _rests_on_others(value):
                    found.update(_source(member))
            elif not _is_default(field, member):
                target = REFERENCES.get((kind, field.name))
                if member is None:
                    unset.append(field.name)
                else:
                    found[field.name] = plain(member) if target is None else self._reference(target, member)
        return {**found, "unset": unset} if unset else found


def _rests_on_others(value: Struct) -> bool:
    """Whether an entry adds nothing to those it names: these contracts are for all models of a provider."""
    return isinstance(value, ModelRow) and not value.models and value.source == UNVERIFIED


def _source(source: Source) -> Entry:
    if not source.link:
        return {"unverified": True, **({"says": source.says} if source.says else {})}
    return {"source": source.link, "read": source.day, **({"says": source.says} if source.says else {})}


def _is_default(field: Any, value: object) -> bool:
    if field.default is not NODEFAULT:
        return bool(value == field.default)
    return field.default_factory is not NODEFAULT and bool(value == field.default_factory())


def plain(value: Any) -> Any:
    """Return a value in the form of TOML: structs as tables without their defaults, all sequences as lists."""
    if isinstance(value, Struct):
        kept = [field for field in fields(type(value)) if not _is_default(field, getattr(value, field.name))]
        return {field.name: plain(getattr(value, field.name)) for field in kept}
    if isinstance(value, Mapping):
        return {str(key): plain(inner) for key, inner in value.items()}
    if isinstance(value, frozenset):
        return sorted(value)
    return [plain(inner) for inner in value] if isinstance(value, (tuple, list)) else value


# --- reading
# -----------------------------------------------------------------------------------------------------------


class Unfit(Exception):
    """An invalid entry: `kind`, `name`, perhaps a `member`, what is wrong, and what to do."""

    def __init__(self, kind: str, name: str, member: str, *, why: str, remedy: str) -> None:
        super().__init__(f"{kind}.{name}{'.' if member else ''}{member}: {why}")
        self.kind, self.name, self.member, self.why, self.remedy = kind, name, member, why, remedy


def assembled(sheets: Sheets) -> FactTable:
    """Return the table that sheets describe. Raises `Unfit`."""
    return _Assembler(sheets).table()


class _Assembler:
    def __init__(self, sheets: Sheets) -> None:
        self._sheets = sheets
        self._made: dict[tuple[str, str], Any] = {}
        self._open: set[tuple[str, str]] = set()

    def table(self) -> FactTable:
        self._check_providers()
        rows = {name: self._row(name) for name in self._sheets["providers"]}
        unlisted = rows.pop(UNLISTED)
        referred = {name for entry in self._sheets["models"].values() for name in _referred(entry)}
        further = tuple(self._entry("contracts", name) for name in self._sheets["contracts"] if name not in referred)
        dialects = {name: self._entry("dialects", name) for name in self._sheets["dialects"]}
        return FactTable(tuple(rows.values()), unlisted, further=further, dialects=dialects)

    def _check_providers(self) -> None:
        known = self._sheets["providers"]
        for kind in _SHEETS_OF_ROWS.values():
            for name, entry in self._sheets[kind].items():
                provider = entry.get("provider")
                if provider is not None and provider not in known:
                    why = f"there is no entry {provider} in providers"
                    raise Unfit(kind, name, "provider", why=why, remedy=did_you_mean(provider, known))

    def _row(self, name: str) -> ProviderRow:
        row: ProviderRow = self._entry("providers", name)
        own = {
            member: tuple(
                self._entry(kind, one) for one, entry in self._sheets[kind].items() if entry.get("provider") == name
            )
            for member, kind in _SHEETS_OF_ROWS.items()
        }
        return msgspec.structs.replace(row, name="" if name == UNLISTED else name, **own)

    def _entry(self, kind: str, name: str, by: tuple[str, str, str] | None = None) -> Any:
        """Return the value of an entry, made once. `by` is the entry and member that refers to it."""
        made = self._made.get((kind, name))
        if made is not None:
            return made
        if name not in self._sheets[kind]:
            named = by or (kind, name, "")
            remedy = did_you_mean(name, self._sheets[kind])
            raise Unfit(*named, why=f"there is no entry {name} in {kind}", remedy=remedy)
        if (kind, name) in self._open:
            raise Unfit(kind, name, "like", why="it is like itself", remedy="name another entry")
        self._open.add((kind, name))
        made = self._made[kind, name] = self._value(kind, name)
        self._open.discard((kind, name))
        return made

    def _value(self, kind: str, name: str) -> Struct:
        struct, entry = KINDS[kind].struct, self._sheets[kind][name]
        values: dict[str, Any] = {}
        if like := entry.get("like"):
            base = self._entry(kind, like, (kind, name, "like"))
            values = {member: getattr(base, member) for member in struct.__struct_fields__}
        for member in (*entry.get("default", ()), *_SHEETS_OF_ROWS):
            values.pop(member, None)
        values |= dict.fromkeys(entry.get("unset", ()))
        hints = get_type_hints(struct)
        for member, given in entry.items():
            if member in ("like", "default", "unset", "provider", *SOURCE_MEMBERS):
                continue
            target = REFERENCES.get((kind, member))
            if target is not None:
                values[member] = self._references(target, given, (kind, name, member))
            else:
                values[member] = msgspec.convert(given, hints[member], str_keys=True)
        if any(member in entry for member in SOURCE_MEMBERS) and "source" in struct.__struct_fields__:
            values["source"] = source_of(entry)
        if "name" in struct.__struct_fields__ and "name" not in entry:
            values["name"] = name
        if struct is ProviderRow:
            values["rows"] = ()
        missing = [member for member in needed_of(kind) if member != "provider" and member not in values]
        if missing:
            raise Unfit(
                kind, name, missing[0], why="a new entry needs it", remedy="add it, or `like` an entry that has it"
            )
        return struct(**values)

    def _references(self, target: str, given: Any, by: tuple[str, str, str]) -> Any:
        if isinstance(given, str):
            return self._entry(target, given, by)
        return tuple(self._entry(target, one, by) for one in given)


def source_of(entry: Entry) -> Source:
    """Return an entry's source."""
    return Source(str(entry.get("source", "")), str(entry.get("read", "")), str(entry.get("says", "")))


def _referred(entry: Entry) -> Iterable[str]:
    return (*entry.get("contracts", ()), *entry.get("elsewhere", ()))
