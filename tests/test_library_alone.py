"""The library installed without the gateway: it works, and a command says what it lacks."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tests.line.chats import NEXT, PATH, THOUGHT, Answer, Told, request, restored, whole
from thoughtline.cli import GATEWAY as KNOWN
from thoughtline.commands.parser import COMMANDS

PROJECT = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text())["project"]


def modules_of(requirements: list[str]) -> set[str]:
    return {re.split(r"[^\w-]", one)[0].replace("-", "_") for one in requirements}


GATEWAY = modules_of(PROJECT["optional-dependencies"]["gateway"])
WITHOUT = f"import sys; sys.modules.update(dict.fromkeys({sorted(GATEWAY)}))\n"
"""An environment that lacks these: the import of each fails as if it were not installed."""

PROGRAM = """
import httpx2, thoughtline
import thoughtline.library.codecs, thoughtline.core, thoughtline.engine, thoughtline.errors, thoughtline.items
import thoughtline.library.preserver

with thoughtline.Line(sys.argv[1]) as line, thoughtline.install(line):
    for name in ("first.json", "next.json"):
        httpx2.post(sys.argv[2], headers={"authorization": "Bearer k"}, content=open(name, "rb").read())
print(line.explain(), *{name.partition(".")[0] for name in sys.modules})
"""


def test_the_library_works(tmp_path: Path) -> None:
    """A thought comes back, and of what is installed only what the library declares is imported."""
    told = Told(lambda body: Answer(whole()))
    (tmp_path / "first.json").write_bytes(request())
    (tmp_path / "next.json").write_bytes(NEXT)
    arguments = [f"sqlite:///{tmp_path / 'thoughts.db'}", f"{told.url}{PATH}"]
    command = [sys.executable, "-c", WITHOUT + PROGRAM, *arguments]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    assert restored(told.bodies[-1]) == [THOUGHT]
    assert GATEWAY == KNOWN
    declared = modules_of(PROJECT["dependencies"])
    assert declared == {"brotli", "msgspec", "zstandard"}
    assert declared <= {*done.stdout.split()}


@pytest.mark.parametrize("name", [command.name for command in COMMANDS])
def test_a_command_says_what_it_lacks(name: str, tmp_path: Path) -> None:
    """One line with what to install; those that need nothing of it work."""
    code = f"{WITHOUT}from thoughtline.cli import main; sys.exit(main({[name]!r}))"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=60
    )
    assert "Traceback" not in done.stderr
    if name in ("serve", "demo", "sim", "run", "explain"):
        assert done.stderr == f"thoughtline {name}: this needs the gateway: pip install 'thoughtline[gateway]'\n"
        assert done.returncode == 2
