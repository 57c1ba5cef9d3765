"""Variables that are put into `.env` files: what they say afterwards, and what stays as it was."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from thoughtline.commands.file_edits.env_edits import edited_env


@given(st.dictionaries(st.sampled_from(["A", "B", "LONG_NAME"]), st.text("xyz", min_size=1), min_size=1))
def test_variables_in_a_file(variables: dict[str, str]) -> None:
    """Each on its line, replaced in place; others stay."""
    text = "# keys\nexport A=1\nOTHER=2"
    once = edited_env(text, variables)
    values = dict(line.removeprefix("export ").split("=", 1) for line in once.splitlines() if not line.startswith("#"))
    assert values == {"A": "1", "OTHER": "2", **variables}
    assert once.startswith("# keys\n")
    assert edited_env(once, variables) == once
