"""Installs overlays next to the store for `thoughtline facts update`, and removes them."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from thoughtline.facts.files import installed, tree_of
from thoughtline.facts.listing import Difference, differences
from thoughtline.facts.overlays import laid, read_overlay, table_of
from thoughtline.facts.sheets import Sheets, written
from thoughtline.providers import BUILT_IN
from thoughtline.toml.tree import Problems, Table
from thoughtline.values.errors import Declined, SettingsError


class Checked(NamedTuple):
    """A valid overlay, and its changes."""

    raw: bytes
    name: str
    changes: tuple[Difference, ...]


def check(raw: bytes, name: str, folder: Path, *, digest: str = "") -> Checked:
    """Check an overlay on top of those installed. Raises `SettingsError` with all problems, or `Declined`."""
    found = hashlib.sha256(raw).hexdigest()
    if digest and digest.lower() != found:
        remedy = f"It has {found}. If that is the one you want, pass it to --sha256."
        raise Declined(400, "other_digest", f"{name} is not the file that --sha256 names.", remedy)
    problems = Problems()
    trees = [(tree_of(file.read_bytes(), str(file), Problems()), True) for file in installed(folder)]
    known = sheets_of(trees)
    tree = tree_of(raw, name, problems)
    if not problems.found:
        table_of(BUILT_IN, [*trees, (tree, True)], problems)
    if problems.found:
        raise SettingsError(problems.found)
    overlay = read_overlay(tree, known, problems, is_fetched=True)
    return Checked(raw, name, tuple(differences(known, laid(known, overlay))))


def sheets_of(trees: Iterable[tuple[Table, bool]]) -> Sheets:
    """Return the sheets of the built-in table with overlays applied."""
    sheets = written(BUILT_IN)
    for tree, is_fetched in trees:
        sheets = laid(sheets, read_overlay(tree, sheets, Problems(), is_fetched=is_fetched))
    return sheets


def install(checked: Checked, folder: Path) -> Path:
    """Store an overlay after the existing ones, atomically."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    before = installed(folder)
    number = int(before[-1].name[:4]) + 1 if before else 1
    stem = re.sub(r"[^A-Za-z0-9._-]+", "-", checked.name.rsplit("/", 1)[-1]).removesuffix(".toml").strip("-.")[:60]
    place = folder / f"{number:04}-{stem or 'overlay'}.toml"
    partial = place.with_suffix(".part")
    partial.write_bytes(checked.raw)
    partial.replace(place)
    return place


def undo(folder: Path) -> Path | None:
    """Remove the latest overlay; None if there is none. Its file stays, under a name that is not read."""
    found = installed(folder)
    if not found:
        return None
    last = found[-1]
    last.replace(last.with_suffix(".undone"))
    return last
