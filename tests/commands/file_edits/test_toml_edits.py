"""Settings that are put into TOML files of other programs: what they say afterwards, and what stays as it was."""

from __future__ import annotations

import tomllib

import pytest

from thoughtline.commands.file_edits.merging import Uneditable, merged
from thoughtline.commands.file_edits.toml_edits import edited_toml

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
    """Comments and other tables stay; a second write changes nothing."""
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
