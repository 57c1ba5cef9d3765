"""Facts for people: a list of them, their age, and what is believed of a model and why."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date
from typing import Any, NamedTuple

from thoughtline.facts.sheets import SOURCE_MEMBERS, Entry, Sheets
from thoughtline.providers import FactTable
from thoughtline.providers.contract import Contract
from thoughtline.providers.row import ProviderRow
from thoughtline.providers.sources import UNVERIFIED, Source
from thoughtline.providers.thinking import knob_for
from thoughtline.values.turns import FormatName

OLD_DAYS = 90


class Fact(NamedTuple):
    """An entry of the table. `age_days` is None for an unverified one."""

    kind: str
    name: str
    about: str
    source: str
    read: str
    age_days: int | None

    @property
    def is_old(self) -> bool:
        return self.age_days is not None and self.age_days > OLD_DAYS


def listed(sheets: Sheets, today: date) -> Iterator[Fact]:
    """Return all entries, in the order of lookups."""
    for kind, entries in sheets.items():
        for name, entry in entries.items():
            sourced = _sourced(sheets, entries, entry)
            read = str(sourced.get("read", ""))
            about = str(sourced.get("says") or _about(kind, entry))
            source = str(sourced.get("source", ""))
            yield Fact(kind, name, about, source=source, read=read, age_days=age_days(read, today))


def _sourced(sheets: Sheets, entries: dict[str, Entry], entry: Entry) -> Entry:
    """Return the entry with the source: itself, the one it is based on, or the contract of all models."""
    while not any(member in entry for member in SOURCE_MEMBERS):
        if "like" in entry:
            entry = entries[entry["like"]]
        elif entry.get("contracts"):
            entries = sheets["contracts"]
            entry = entries[entry["contracts"][0]]
        else:
            break
    return entry


def _about(kind: str, entry: Entry) -> str:
    member = {"refusals": "template", "providers": "base_url", "models": "models", "doors": "models"}.get(kind, "")
    return str(entry.get(member) or entry.get("carrier") or entry.get("beginning") or "")


def age_days(read: str, today: date) -> int | None:
    """Return the age in days; a month counts from its first day."""
    if not read:
        return None
    year, month, day = (*map(int, read.split("-")), 1)[:3]
    return max(0, (today - date(year, month, day)).days)


class Belief(NamedTuple):
    """One fact about a model, and its source."""

    what: str
    value: str
    source: Source


def beliefs(row: ProviderRow, table: FactTable, model: str, contract: Contract) -> Iterator[Belief]:
    """Return the facts about a model at a provider, in the format of a contract."""
    source = contract.source
    yield Belief("contract", contract.name, source)
    yield Belief("reasoning goes back", _demand(contract), source)
    yield Belief("reasoning is in", f"{contract.dialect.carrier} ({contract.dialect.name})", source)
    yield Belief("accepts", {"text": "any text", "own": "only its own", "nothing": "none"}[contract.takes], source)
    yield Belief("thinks unless told otherwise", _yes(contract.thinks_by_default), source)
    knob = knob_for(contract, model)
    known = knob.source if knob.source != UNVERIFIED else source
    yield Belief("thinking is set by", knob.style, known)
    if knob.efforts:
        yield Belief("efforts", ", ".join(knob.efforts), known)
    if knob.modes:
        yield Belief("modes", ", ".join(knob.modes), known)
    yield Belief("thinking can be switched off", _yes(knob.can_be_off), known)
    bound = [word for word, is_so in _bounds(contract) if is_so]
    yield Belief("bound to", ", ".join(bound) or "nothing", source)
    yield Belief("on a miss", ", ".join(contract.ladder) or "left out", source)
    for door in row.doors:
        if door.comes_in == contract.format and door.is_for(model):
            needs = {"tools": " if it has tools", "unsaid": " if it says nothing of thinking", "": ""}[door.needs]
            yield Belief("goes up as", f"{door.goes_up}{needs}", door.source)
    for one in (context for each in table.rows for context in each.contexts):
        if model.rpartition("/")[2].lower().startswith(one.beginning):
            yield Belief("takes tokens", f"{one.tokens:,}", one.source)
            break


def _yes(is_so: bool) -> str:
    return "yes" if is_so else "no"


def _demand(contract: Contract) -> str:
    if contract.kind == "forbidden":
        return "never: it is refused"
    if contract.scope == "nowhere":
        return "never demanded" if contract.kind == "advisory" else "never demanded; what is sent is checked"
    where = {
        "calls_after_user": "turns with calls since the last user message",
        "calls": "every turn with calls",
        "all_with_tools": "every turn, if the request offers tools",
        "loop_head": "the first turn of a tool loop",
        "first_call_of_step": "the first call of each step since the last user message",
        "pairs": "with the items that it was made with",
    }[contract.scope]
    return f"{where}{'' if contract.kind == 'presence' else '; checked'}"


def _bounds(contract: Contract) -> tuple[tuple[str, bool], ...]:
    return (
        ("what stands before it", contract.binds_prefix),
        ("the thinking before it", contract.binds_chain),
        ("its model", contract.binds_model),
    )


def formats_of(row: ProviderRow, chosen: str | None) -> tuple[FormatName, ...]:
    """Return the formats to show: the named one, or all of a provider."""
    return tuple(one for one in row.formats if chosen in (None, one))


class Difference(NamedTuple):
    """A member of an entry, before and after."""

    kind: str
    name: str
    member: str
    before: Any
    after: Any


def differences(before: Sheets, after: Sheets) -> Iterator[Difference]:
    """Return the changes between two states of the sheets, member by member."""
    for kind, entries in after.items():
        for name, entry in entries.items():
            old = before.get(kind, {}).get(name, {})
            for member in dict.fromkeys((*old, *entry)):
                if old.get(member) != entry.get(member):
                    yield Difference(kind, name, member, old.get(member), entry.get(member))
