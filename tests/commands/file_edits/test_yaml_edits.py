"""Settings that are put into YAML files of other programs: what they say afterwards, and what stays as it was."""

from __future__ import annotations

import pytest
import yaml

from thoughtline.commands.file_edits.merging import Uneditable, merged
from thoughtline.commands.file_edits.yaml_edits import edited_yaml

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
