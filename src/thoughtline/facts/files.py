"""Overlays as files: those named by settings, and those that `thoughtline facts update` stores next to the store."""

from __future__ import annotations

from pathlib import Path

from thoughtline.facts.overlays import MAX_BYTES, table_of
from thoughtline.providers import BUILT_IN
from thoughtline.providers.table import FactTable
from thoughtline.toml.tree import Problems, Table, read_text

_ENDING = ".toml"


def overlays_folder(data_directory: Path) -> Path:
    """Return the folder of fetched overlays."""
    return data_directory / "facts"


def installed(folder: Path) -> list[Path]:
    """Return the fetched overlays, oldest first: their names begin with a number."""
    try:
        found = [one for one in folder.iterdir() if one.name.endswith(_ENDING) and one.name[:4].isdecimal()]
    except OSError:
        return []
    return sorted(found)


def read_facts(named: list[tuple[Path, str]], folder: Path, problems: Problems) -> FactTable | None:
    """The built-in table with overlays over it: fetched ones, then those that settings name, each with the place that
    names it. None where there are none."""
    trees: list[tuple[Table, bool]] = []
    for file in installed(folder):
        undo = "take it back with `thoughtline facts undo`"
        trees.append((_tree_of(file, str(file), problems, remedy=undo), True))
    for file, place in named:
        trees.append((_tree_of(file, place, problems, remedy="name another in [facts] files"), False))
    return table_of(BUILT_IN, trees, problems) if trees else None


def _tree_of(file: Path, place: str, problems: Problems, *, remedy: str) -> Table:
    """The tree of an overlay. No variable of the environment is filled in: what it says may go up in requests."""
    try:
        with file.open("rb") as opened:
            raw = opened.read(MAX_BYTES + 1)
    except OSError as error:
        problems.add(place, "facts.files", f"{file} can't be read: {error.strerror}", remedy)
        return Table({}, str(file))
    return tree_of(raw, str(file), problems)


def tree_of(raw: bytes, name: str, problems: Problems) -> Table:
    """Return the tree of an overlay's bytes."""
    if len(raw) > MAX_BYTES:
        problems.add(name, "", f"an overlay has at most {MAX_BYTES // 2**20} MiB", "leave out what does not change")
        return Table({}, name)
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError:
        problems.add(name, "", "the file is not UTF-8 text", "save it as UTF-8")
        return Table({}, name)
    return read_text(text, name, problems)
