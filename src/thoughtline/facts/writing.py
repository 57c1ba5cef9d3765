"""Sheets as a TOML document that can be read again as an overlay."""

from __future__ import annotations

from collections.abc import Iterable

from thoughtline.facts.sheets import Sheets
from thoughtline.toml.writing import write_table


def document(sheets: Sheets, says: Iterable[str] = ()) -> str:
    """The document, with lines of comment above it."""
    head = "".join(f"# {line}\n" for line in says)
    tables = [write_table((kind, name), entry) for kind, entries in sheets.items() for name, entry in entries.items()]
    return "\n".join([*([head] if head else []), *tables])
