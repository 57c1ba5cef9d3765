"""Values as TOML."""

from __future__ import annotations

import tomllib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from thoughtline.toml.writing import key, value, write_table

TEXT = st.text(st.characters(exclude_categories=["Cs"]))
PLAIN = st.one_of(st.booleans(), st.integers(-(2**63), 2**63 - 1), st.floats(allow_nan=False), TEXT)
VALUES = st.recursive(PLAIN, lambda inner: st.one_of(st.lists(inner), st.dictionaries(TEXT, inner)), max_leaves=12)


@given(VALUES)
def test_what_is_written_is_read_back(given_value: Any) -> None:
    """Whatever stands in it: quotes, newlines, control characters."""
    assert tomllib.loads(f"x = {value(given_value)}")["x"] == given_value


@given(st.lists(TEXT, min_size=1, max_size=3), st.dictionaries(TEXT, PLAIN))
def test_tables(path: list[str], members: dict[str, Any]) -> None:
    """Under any path, with any keys."""
    found: Any = tomllib.loads(write_table(tuple(path), members))
    for name in path:
        found = found[name]
    assert found == members


def test_patterns_stay_readable() -> None:
    """Text with backslashes is literal, if it has no quote of that kind."""
    assert value(r"k\d") == r"'k\d'"
    assert value(r"it's \d") == r'"it\'s \\d"'.replace("\\'", "'")
    assert (key("a-b"), key("a.b")) == ("a-b", '"a.b"')


def test_what_toml_does_not_have() -> None:
    """There is no null."""
    with pytest.raises(TypeError):
        value(None)
