"""The table of facts as a document, and back."""

from __future__ import annotations

import tomllib

import pytest

from tests.facts.overlay_texts import ACME, KIMI_9, table_with
from thoughtline.facts.sheets import KINDS, Unfit, assembled, hints_of, needed_of, written
from thoughtline.facts.writing import document
from thoughtline.providers import BUILT_IN, FactTable


def parts(table: FactTable) -> tuple[object, ...]:
    return table.rows, table.unlisted, table.contracts, table.dialects, table.further, table.refusals


@pytest.mark.parametrize("overlay", ["", KIMI_9, ACME])
def test_every_fact_is_exported_and_read_back_equal(overlay: str) -> None:
    """Through TOML, with the built-in facts alone and with overlays over them."""
    table = table_with(overlay, is_fetched=False)
    read = tomllib.loads(document(written(table), ["a comment"]))
    assert read == written(table)
    assert parts(assembled(read)) == parts(table)


def test_every_member_of_every_struct_can_be_written() -> None:
    """No fact is left out of the sheets: each member is one of an entry, or a sheet of its own."""
    sheets_of_rows = {kind.of_provider for kind in KINDS.values() if kind.of_provider}
    for kind, row in KINDS.items():
        written_elsewhere = sheets_of_rows if kind == "providers" else set()
        assert set(row.struct.__struct_fields__) - {"source"} <= {*hints_of(kind), *written_elsewhere}
        assert set(needed_of(kind)) <= set(hints_of(kind))


def test_equal_contracts_are_written_once() -> None:
    """An entry is named by every row of models that has it."""
    sheets = written(BUILT_IN)
    named = [name for entry in sheets["models"].values() for name in entry["contracts"]]
    assert len(named) > len(set(named)) == len({id(sheets["contracts"][name]) for name in named})


def test_a_variant_has_only_what_differs() -> None:
    """It is like the contract whose name it has."""
    variants = {name: entry for name, entry in written(BUILT_IN)["contracts"].items() if "like" in entry}
    assert variants
    for name, entry in variants.items():
        assert entry["name"] == entry["like"] == name.rpartition("-")[0]
        assert len(entry) < len(written(BUILT_IN)["contracts"][entry["like"]]) + 2


def test_an_entry_that_names_nothing_is_refused() -> None:
    """With the entry, the member and the nearest name."""
    sheets = written(BUILT_IN)
    sheets["models"]["kimi-1"] = {**sheets["models"]["kimi-1"], "contracts": ["kimmi"]}
    with pytest.raises(Unfit) as refused:
        assembled(sheets)
    assert (refused.value.kind, refused.value.name, refused.value.member) == ("models", "kimi-1", "contracts")
    assert refused.value.remedy == "did you mean kimi?"


def test_entries_that_are_like_each_other_are_refused() -> None:
    """Whether over one step or two."""
    sheets = written(BUILT_IN)
    sheets["contracts"]["kimi"]["like"] = "mimo"
    sheets["contracts"]["mimo"]["like"] = "kimi"
    with pytest.raises(Unfit, match="like itself"):
        assembled(sheets)
