"""Settings that are put into JSON files of other programs: what they say afterwards, and what stays as it was."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from thoughtline.clients import CLIENTS, DEFAULT_URL, address_of, lines_of
from thoughtline.commands.file_edits.json_edits import edited_json, read_tree
from thoughtline.commands.file_edits.merging import Uneditable, merged

names = st.sampled_from(["provider", "model", "env", "thoughtline", "name", "a b", "x/y", "é"])
scalars = st.one_of(st.none(), st.booleans(), st.integers(-9, 9), st.text(max_size=5))
values = st.recursive(
    scalars,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(names, inner, max_size=4)),
    max_leaves=9,
)
objects = st.dictionaries(names, values, max_size=4)
indents = st.sampled_from([None, 2, 4, "\t"])
ADDED = [
    (client.name, lines_of(client, step, address_of(client, DEFAULT_URL)))
    for client in CLIENTS
    for step in client.steps
    if step.language == "json" and step.file
]


@given(objects, objects, indents)
def test_json_says_the_merged_thing(old: dict[str, Any], new: dict[str, Any], indent: Any) -> None:
    """Whatever its indentation; and a second write changes nothing."""
    once = edited_json(json.dumps(old, indent=indent), json.dumps(new))
    assert json.loads(once) == merged(old, new)
    assert edited_json(once, json.dumps(new)) == once


@given(objects, objects)
def test_json_with_comments_keeps_them(old: dict[str, Any], new: dict[str, Any]) -> None:
    """Those at the ends of lines and those on lines of their own, and a comma behind the last member."""
    lines = json.dumps(old, indent=2).splitlines()
    noted = [f"{line}  // {number}" for number, line in enumerate(lines)] if old else ["{", "  // nothing yet", "}"]
    text = "// a file\n" + "\n".join(noted) + "\n/* the end */\n"
    try:
        once = edited_json(text, json.dumps(new))
    except Uneditable:
        return  # it stays as it is
    assert read_tree(once).value == merged(old, new)
    assert once.startswith("// a file\n")
    assert once.endswith("/* the end */\n")
    assert edited_json(once, json.dumps(new)) == once


@pytest.mark.parametrize(("client", "lines"), ADDED, ids=[name for name, _ in ADDED])
@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_json_of_clients(client: str, lines: str, newline: str) -> None:
    """Everything else in a file stays, to the byte: here, all but the added lines and one comma."""
    if isinstance(json.loads(lines), list):
        old = '[\n  {"name": "mine", "vendor": "other"} // keep\n]\n'
    else:
        old = '{\n\t// my theme\n\t"theme": "dark", /* really */\n\t"list": [1,2,\n\t\t3],\n}\n'
    old = old.replace("\n", newline)
    result = edited_json(old, lines)
    kept = iter(result.split(newline))
    for line in old.split(newline):
        assert any(line.rstrip(",") == other.rstrip(",") or line in other for other in kept), line
    assert ("\r\n" in result) is (newline == "\r\n")
    assert result.count("\n") == result.count(newline)


@pytest.mark.parametrize("text", ["{", '{"a": 1 "b": 2}', "[1]", '{"a": 1} x', "{'a': 1}", '{"a": 01}'])
def test_what_is_no_json_stays(text: str) -> None:
    """A file that its own program could not read is not made worse."""
    with pytest.raises(Uneditable):
        edited_json(text, '{"b": 2}')
