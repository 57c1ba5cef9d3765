"""Sheets as a document."""

from __future__ import annotations

import tomllib

from thoughtline.facts.sheets import KINDS, Sheets
from thoughtline.facts.writing import document


def test_a_document_has_its_comment_and_a_table_for_each_entry() -> None:
    """In the order of the sheets; an empty sheet has nothing."""
    sheets: Sheets = {kind: {} for kind in KINDS}
    sheets["contracts"]["kimi"] = {"filler": "-", "unverified": True}
    sheets["models"]["kimi-9"] = {"provider": "kimi"}
    text = document(sheets, ["two lines", "of comment"])
    assert text.startswith("# two lines\n# of comment\n\n[contracts.kimi]\n")
    assert tomllib.loads(text) == {kind: entries for kind, entries in sheets.items() if entries}
