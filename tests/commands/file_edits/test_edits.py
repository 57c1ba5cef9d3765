"""Settings that are put into files of other programs: what they say afterwards, and what stays as it was."""

from __future__ import annotations

import json
import tomllib
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from thoughtline.clients import CLIENTS, DEFAULT_URL, address_of, lines_of
from thoughtline.commands.file_edits import Uneditable, edited_env, edited_json, edited_toml, edited_yaml
from thoughtline.commands.file_edits.json_tree import read_tree
from thoughtline.commands.file_edits.merging import merged

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
    """However it was indented; and what is written twice is written once."""
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


CODEX = """
model = "new"
model_provider = "thoughtline"

[model_providers.thoughtline]
name = "thoughtline"
base_url = "http://127.0.0.1:8642/deepseek/v1"
"""
TOML = [
    "",
    "# mine\n",
    'model = "old" # "why" # really\n',
    '# mine\napproval = "never"\n\n[tools]\nweb = true\n',
    'model_provider = "x"\nmodel = "y"\n[model_providers.mine]\nname = "z"\n',
    '[a]\nb = 1\n\n[model_providers.thoughtline]\nname = "old"\nother = 1\n\n# of the next\n[c]\nd = 2\n',
    "notify = [\n  'a',\n  # b\n]\n[[profiles]]\nname = 'p'",
    'text = """\n[model_providers.thoughtline]\n"""\n',
]


@pytest.mark.parametrize("text", [*TOML, *(each.replace("\n", "\r\n") for each in TOML)])
def test_toml_says_the_merged_thing(text: str) -> None:
    """Comments and other tables stay; what is written twice is written once."""
    once = edited_toml(text, CODEX)
    assert tomllib.loads(once) == merged(tomllib.loads(text), tomllib.loads(CODEX))
    assert edited_toml(once, CODEX) == once
    for comment in ("# mine", '# "why" # really', "# b", "# of the next"):
        assert (comment in once) is (comment in text)
    assert ("\r\n" in text) is ("\r\n" in once)


@pytest.mark.parametrize("text", ["model = '''\nx\n'''\n", "model_providers = {a = {b = 1}}\n", "model =\n"])
def test_toml_that_would_be_changed_wrongly_stays(text: str) -> None:
    """A value over several lines, an inline table, a file that is none."""
    with pytest.raises(Uneditable):
        edited_toml(text, CODEX)


CONTINUE = """
name: thoughtline
models:
  - name: new
    provider: openai
    roles: [chat]
"""
YAML = [
    "",
    "# mine\n",
    "name: my own # keep\nmodels:\n  - name: old\n    provider: x\n",
    "name: my own\nmodels:\n- name: old\n  nested:\n    name: new\n- name: new # here\n  provider: x\n  # last\n"
    "rules:\n  - be kind\n",
    "models: []\n# the end\n",
    "models:\n    # best first\n    - provider: y\n      name: 'new'\n\n"
    "    - name: other\n      text: |\n        - name: new\n",
    "models:\n",
    "---\nversion: 1\nmodels: # all\n  - name: a",
]


@pytest.mark.parametrize("text", [*YAML, *(each.replace("\n", "\r\n") for each in YAML)])
def test_yaml_says_the_merged_thing(text: str) -> None:
    """As a real parser reads it. Members that are kept stay, others of the file too, comments among them."""
    once = edited_yaml(text, CONTINUE, ("name",))
    old, new = yaml.safe_load(text) or {}, yaml.safe_load(CONTINUE)
    old["models"] = old.get("models") or []
    assert yaml.safe_load(once) == merged(old, new | {"name": old.get("name", "thoughtline")})
    assert edited_yaml(once, CONTINUE, ("name",)) == once
    for comment in ("# mine", "# keep", "# last", "# the end", "# best first", "# all"):
        assert (comment in once) is (comment in text)


def test_yaml_values_are_replaced_on_their_lines() -> None:
    """With the comment behind them."""
    text = 'dark-mode: true\nmodel: "gpt" # mine\n\n# the end\n'
    assert (
        edited_yaml(text, "model: openai/x\nkey: y") == "dark-mode: true\nmodel: openai/x # mine\n\n# the end\nkey: y\n"
    )


@pytest.mark.parametrize(
    "text",
    [
        "{models: []}",
        "models: [{name: a}]\n",
        "models: &all\n  - name: a\n",
        "- a\n",
        "models:\n\t- a\n",
        "a: 1\n---\nb: 2\n",
        "models: 1\nmodels: 2\n",
        "models:\n  key: value\n",
    ],
)
def test_yaml_in_other_forms_stays(text: str) -> None:
    """Flow style, anchors, tabs, several documents: there is no parser, so nothing is guessed."""
    with pytest.raises(Uneditable):
        edited_yaml(text, CONTINUE)


@given(st.dictionaries(st.sampled_from(["A", "B", "LONG_NAME"]), st.text("xyz", min_size=1), min_size=1))
def test_variables_in_a_file(variables: dict[str, str]) -> None:
    """Each on its line, replaced where it stands; others stay."""
    text = "# keys\nexport A=1\nOTHER=2"
    once = edited_env(text, variables)
    said = dict(line.removeprefix("export ").split("=", 1) for line in once.splitlines() if not line.startswith("#"))
    assert said == {"A": "1", "OTHER": "2", **variables}
    assert once.startswith("# keys\n")
    assert edited_env(once, variables) == once
