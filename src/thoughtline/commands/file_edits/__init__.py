"""Settings put into a file that belongs to another program, with everything else in it as it was, comments too.

    file's text, lines to add ── edited ──▶ text      by the file's language: one module for each
                                       └──▶ `Uneditable` where the result would not be what is meant

Objects are merged, lists of named objects by name, and what is named `thoughtline` is ours and replaced whole. Each
module reads its own result again: an edit that does not say what it should is not made.
"""

from __future__ import annotations

from thoughtline.commands.file_edits.env_edits import edited_env
from thoughtline.commands.file_edits.json_edits import edited_json
from thoughtline.commands.file_edits.merging import Uneditable
from thoughtline.commands.file_edits.toml_edits import edited_toml
from thoughtline.commands.file_edits.yaml_edits import edited_yaml

__all__ = ["Uneditable", "edited_env", "edited_json", "edited_toml", "edited_yaml"]
