"""Overlays: documents that change single facts, and what each may change.

    [contracts.kimi]                     members of an entry that exists
    filler = "…"
    [models.claude-7]                    a new entry; new models, refusals and doors are looked at first
    provider = "anthropic"
    [contracts.claude-7]
    like = "anthropic-bound"             a new entry that begins as another

Every entry says where it comes from: `source` and the day it was `read`, or `unverified = true`. A file that settings
name may add a provider with its address. One that was fetched may not, and neither changes where a key of a provider
that exists goes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import date
from typing import Any, NamedTuple

import msgspec

from thoughtline.facts.patterns import wrong_with_template, wrong_within
from thoughtline.facts.sheets import (
    KINDS,
    SOURCE_MEMBERS,
    UNLISTED,
    Entry,
    Sheets,
    Unfit,
    assembled,
    hints_of,
    written,
)
from thoughtline.formats.request_settings import NOT_SETTINGS
from thoughtline.providers.table import FactTable
from thoughtline.toml.tree import Given, Problems, Table
from thoughtline.values.errors import InputProblem

MAX_BYTES = 2**20
MAX_ENTRIES = 2000
_MAX_DEPTH = 12

FETCHED_PROVIDER_MEMBERS = frozenset(
    {"wants_back", "wanted_models", "asks", "example_model", "most_output", "tool_forms", "makes", "has_websocket"}
    | {"is_lenient", "has_documented_field", "may_seal", "dialect", "switches"}
)
"""Members of a provider that a fetched overlay may set. All others decide where a key is sent, or how."""

LOCAL_PROVIDER_MEMBERS = FETCHED_PROVIDER_MEMBERS | {"failures", "failure_codes", "flags", "counts", "holds", "rules"}
"""Members of an existing provider that a local overlay may change."""

FETCHED_SETTINGS = frozenset(
    {"temperature", "top_p", "top_k", "min_p", "n", "seed", "stop", "logprobs", "top_logprobs", "logit_bias", "include"}
    | {"presence_penalty", "frequency_penalty", "repetition_penalty", "store", "verbosity", "stream_options"}
    | {"reasoning", "reasoning_effort", "reasoning_split", "reasoning_format", "thinking", "thinking_budget", "think"}
    | {"enable_thinking", "preserve_thinking", "clear_thinking", "chat_template_kwargs", "output_config"}
    | {"tool_choice", "parallel_tool_calls", "generationConfig", "reasoningConfig"}
)
"""Members of a request that a fetched overlay may set: no tool, no address, and no instructions."""

_NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,63}")
_DAY = re.compile(r"20\d\d-(0[1-9]|1[0-2])(-(0[1-9]|[12]\d|3[01]))?")
_FIRST = ("refusals", "models", "doors", "contexts")
"""Sheets in which the first matching entry counts: new ones go to the front."""


class Overlay(NamedTuple):
    """The changes of a document. `places` has the place of each entry and member; an entry's own has the member ""."""

    name: str
    changes: Sheets
    places: dict[tuple[str, str, str], str]

    def place_of(self, kind: str, name: str, member: str = "") -> str:
        return self.places.get((kind, name, member)) or self.places.get((kind, name, "")) or self.name


def read_overlay(tree: Table, known: Sheets, problems: Problems, *, is_fetched: bool) -> Overlay:
    """Return the changes of a document to what is `known`. Errors become problems with their places."""
    return _Reader(tree, known, problems, is_fetched=is_fetched).overlay()


class _Reader:
    def __init__(self, tree: Table, known: Sheets, problems: Problems, *, is_fetched: bool) -> None:
        self._tree, self._known, self._problems, self._is_fetched = tree, known, problems, is_fetched
        self._places: dict[tuple[str, str, str], str] = {}

    def overlay(self) -> Overlay:
        changes: Sheets = {kind: {} for kind in KINDS}
        for kind, sheet in self._tree.members.items():
            if kind not in KINDS:
                self._problems.unknown(sheet.place, kind, KINDS, "sheet of facts")
            elif not isinstance(sheet, Table):
                self._problems.add(sheet.place, kind, "this is no table", f"write [{kind}.NAME]")
            else:
                for name, entry in sheet.members.items():
                    read = self._entry(kind, name, entry)
                    if read is not None:
                        changes[kind][name] = read
        if sum(map(len, changes.values())) > MAX_ENTRIES:
            message = f"an overlay has at most {MAX_ENTRIES:,} entries"
            self._problems.add(self._tree.place, "", message, "split it, or leave out what does not change")
        return Overlay(self._tree.place, changes, self._places)

    def _entry(self, kind: str, name: str, given: Given | Table) -> Entry | None:
        path = f"{kind}.{name}"
        self._places[kind, name, ""] = given.place
        if not isinstance(given, Table):
            self._problems.add(given.place, path, "this is no table", f"write [{path}]")
            return None
        if not _NAME.fullmatch(name):
            self._problems.add(given.place, path, "this can't be a name", "small letters, digits, dots and dashes")
            return None
        if not self._may_add(kind, name, given):
            return None
        entry: Entry = {}
        for member, node in given.members.items():
            self._places[kind, name, member] = node.place
            value = _plain(node)
            if self._is_fit(kind, name, member, value=value, place=node.place):
                entry[member] = str(value) if member == "read" else value
        self._check_source(path, given, entry)
        return entry

    def _may_add(self, kind: str, name: str, given: Table) -> bool:
        is_new = name not in self._known[kind]
        if kind == "providers" and is_new and self._is_fetched:
            message = "a fetched overlay can't add a provider: it would decide where a key goes"
            self._problems.add(given.place, f"{kind}.{name}", message, "name a file of your own in [facts] files")
            return False
        taken = {alias for entry in self._known["providers"].values() for alias in entry.get("aliases", ())}
        aliases = _plain(given.members["aliases"]) if "aliases" in given.members else ()
        names = {*map(str, aliases if isinstance(aliases, list) else ()), name}
        if kind == "providers" and is_new and names & {*taken, *self._known["providers"], *_RESERVED}:
            message = "a provider of this name or alias exists"
            self._problems.add(given.place, f"{kind}.{name}", message, "choose another name")
            return False
        return True

    def _is_fit(self, kind: str, name: str, member: str, *, value: Any, place: str) -> bool:
        path, hints = f"{kind}.{name}.{member}", hints_of(kind)
        if value == self._known[kind].get(name, {}).get(member):
            return True  # unchanged
        if member == "like":
            return isinstance(value, str)
        unwritten = ("unset",) if kind == "contracts" else ("unset", "name")
        if member not in hints or member in unwritten:
            self._problems.unknown(place, path, [one for one in hints if one not in unwritten])
            return False
        if why := self._forbidden(kind, name, member, value=value):
            self._problems.add(place, path, *why)
            return False
        if member == "read":
            if isinstance(value, date) or (isinstance(value, str) and _DAY.fullmatch(value)):
                return True
            self._problems.add(place, path, "this is no day", "write it as 2026-11-16")
            return False
        try:
            msgspec.convert(value, hints[member], str_keys=True)
        except (msgspec.ValidationError, RecursionError) as error:
            self._problems.add(place, path, f"this does not fit: {error}", "`thoughtline facts show` has examples")
            return False
        is_template = kind == "refusals" and member == "template"
        wrong = wrong_with_template(str(value)) if is_template else wrong_within(member, value)
        if wrong is not None:
            self._problems.add(place, path, wrong, "write a simpler pattern")
        return wrong is None

    def _forbidden(self, kind: str, name: str, member: str, *, value: Any) -> tuple[str, str] | None:
        """Return why this overlay must not set this, and what to do instead."""
        if kind == "providers" and member not in SOURCE_MEMBERS and name in self._known[kind]:
            allowed = FETCHED_PROVIDER_MEMBERS if self._is_fetched else LOCAL_PROVIDER_MEMBERS
            if member not in allowed:
                message = "an overlay can't change this of a provider that exists: it may decide where a key goes"
                return message, f"set it in [providers.{name}] of thoughtline.toml"
        if self._is_fetched:
            bad = next((path for path in _settings_named(member, value) if not _is_harmless(path)), None)
            if bad is not None:
                message = f"a fetched overlay can't have {bad} set in requests"
                return message, "name a file of your own in [facts] files"
        return None

    def _check_source(self, path: str, given: Table, entry: Entry) -> None:
        if entry.get("unverified") is True or ("source" in given.members and "read" in given.members):
            return
        remedy = 'write source = "https://…" and read = 2026-11-16, or unverified = true'
        self._problems.add(given.place, path, "this fact does not say where it comes from", remedy)


_RESERVED = frozenset({"v1", "v1beta", "api", "healthz", "readyz", "metrics", "assets", UNLISTED})
"""First segments of the gateway's own addresses."""


def _plain(node: Given | Table, depth: int = 0) -> Any:
    if isinstance(node, Given):
        return node.value
    if depth > _MAX_DEPTH:
        return {}
    return {name: _plain(inner, depth + 1) for name, inner in node.members.items()}


def _settings_named(member: str, value: Any) -> Iterator[tuple[str, ...]]:
    """Return the members of a request that a fact sets."""
    if member in ("settings", "keeping"):
        for rule in value if isinstance(value, list) else ():
            if isinstance(rule, dict):
                yield tuple(str(rule.get("path", "")).split("."))
                if rule.get("do") == "move":
                    yield from (tuple(str(to).strip('"').split(".")) for to in rule.get("values", ()))
    elif member == "knobs":
        for knob in value if isinstance(value, list) else ():
            for kept in knob.get("keeps", ()) if isinstance(knob, dict) else ():
                yield tuple(map(str, kept[0])) if isinstance(kept, list) and kept else ("?",)
    elif member == "asks":
        for added in value if isinstance(value, list) else ():
            if isinstance(added, list) and len(added) > 1 and isinstance(added[1], dict):
                yield from ((str(name),) for name in added[1])
    elif member in ("mends", "switches"):
        yield from ((str(name),) for name in value if member == "switches") if isinstance(value, list) else ()


def _is_harmless(path: tuple[str, ...]) -> bool:
    inner = path[1:] if path[0] == "additionalModelRequestFields" else path
    return bool(inner) and inner[0] in FETCHED_SETTINGS and NOT_SETTINGS.isdisjoint(path)


# --- applied to what is known -----------------------------------------------------------------------------------------


def laid(sheets: Sheets, overlay: Overlay) -> Sheets:
    """Return the sheets with an overlay's changes."""
    result: Sheets = {}
    for kind, entries in sheets.items():
        changes = overlay.changes[kind]
        changed = {name: _changed(entry, changes.get(name)) for name, entry in entries.items()}
        new = {name: entry for name, entry in changes.items() if name not in entries}
        result[kind] = {**new, **changed} if kind in _FIRST else {**changed, **new}
    return result


def _changed(entry: Entry, change: Entry | None) -> Entry:
    if change is None:
        return entry
    without = {name: member for name, member in entry.items() if name not in SOURCE_MEMBERS and name != "unset"}
    unset = [name for name in entry.get("unset", ()) if name not in change]
    return {**without, **change, **({"unset": unset} if unset else {})}


def table_of(built_in: FactTable, trees: list[tuple[Table, bool]], problems: Problems) -> FactTable:
    """Return the table with overlays applied in order; each is a tree and whether it was fetched."""
    if not trees:
        return built_in
    sheets, overlays = written(built_in), []
    for tree, is_fetched in trees:
        overlay = read_overlay(tree, sheets, problems, is_fetched=is_fetched)
        overlays.append(overlay)
        sheets = laid(sheets, overlay)
    if problems.found:
        return built_in
    try:
        return assembled(sheets)
    except Unfit as error:
        problems.found.append(_problem(error, overlays))
    except (msgspec.ValidationError, TypeError) as error:
        problems.add(trees[-1][0].place, "", f"the facts don't fit together: {error}", "`thoughtline facts undo`")
    return built_in


def _problem(error: Unfit, overlays: list[Overlay]) -> InputProblem:
    key = ".".join(filter(None, (error.kind, error.name, error.member)))
    found = next((one for one in reversed(overlays) if (error.kind, error.name, "") in one.places), overlays[-1])
    return InputProblem(found.place_of(error.kind, error.name, error.member), key, error.why, error.remedy)
