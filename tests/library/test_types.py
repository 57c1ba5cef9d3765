"""Code of users under pyright, as strict as it can be. `tests/test_public_names.py` has mypy read the same."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.examples import APPLICATIONS, LIBRARY, blocks
from tests.user_code import USER_CODE

pytest.importorskip("pyright")

GIVEN = {
    "Audit": 'body = b"{}"\n',
    "Without a store of ours": 'body = b"{}"\nfrom typing import Any\nmy_records = dict[Any, Any]()\n',
}
"""What stands before an example, in the reader's own code."""

ELSEWHERE = {"LlamaIndex"}
"""Of packages that this environment has not."""


def errors_in(folder: Path, mode: str) -> list[str]:
    """What pyright says of every file of a folder."""
    settings = {"typeCheckingMode": mode, "include": ["."]}
    (folder / "pyrightconfig.json").write_text(json.dumps(settings))
    command = [sys.executable, "-m", "pyright", "--outputjson", "--pythonpath", sys.executable]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    said = json.loads(done.stdout)
    assert said["summary"]["filesAnalyzed"], done.stderr
    found = [one for one in said["generalDiagnostics"] if one["severity"] == "error"]
    return [f"{Path(one['file']).name}:{one['range']['start']['line'] + 1}: {one['message']}" for one in found]


def test_code_of_users(tmp_path: Path) -> None:
    """No error in strict mode; a wrong argument is one."""
    (tmp_path / "app.py").write_text(USER_CODE)
    assert errors_in(tmp_path, "strict") == []
    (tmp_path / "app.py").write_text(f"{USER_CODE}\n\nLine(tenant=42)\n")
    assert len(errors_in(tmp_path, "strict")) == 1


def test_the_examples(tmp_path: Path) -> None:
    """What the pages print has no error as it stands."""
    for page in (LIBRARY, APPLICATIONS):
        for title, code in blocks(page).items():
            if title in ELSEWHERE:
                continue
            name = "".join(letter if letter.isalnum() else "_" for letter in title.lower())
            (tmp_path / f"{page.stem}_{name}.py").write_text(GIVEN.get(title, "") + code)
    assert errors_in(tmp_path, "standard") == []
