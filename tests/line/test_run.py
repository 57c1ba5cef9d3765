"""`python -m thoughtline.run`: a program that can't be changed remembers, and so do the processes that it starts."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.line.chats import NEXT, PATH, THOUGHT, Answer, Told, request, restored, whole

PROGRAM = """
import multiprocessing, sys, httpx2

def ask(body):
    answer = httpx2.post(sys.argv[1], headers={"authorization": "Bearer k"}, content=body)
    print(sys.argv[2:], answer.headers.get("x-thoughtline-replay", "nothing"), flush=True)

if __name__ == "__main__":
    ask(open("first.json", "rb").read())
    child = multiprocessing.get_context("spawn").Process(target=ask, args=(open("next.json", "rb").read(),))
    child.start()
    child.join()
    sys.exit(child.exitcode)
"""


def run(folder: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    given = {"THOUGHTLINE_STORE": f"sqlite:///{folder / 'thoughts.db'}", **environment}
    command = [sys.executable, *arguments]
    return subprocess.run(
        command, cwd=folder, env={**os.environ, **given}, capture_output=True, text=True, timeout=120, check=False
    )


@pytest.fixture
def program(tmp_path: Path) -> Path:
    (tmp_path / "app.py").write_text(PROGRAM)
    (tmp_path / "first.json").write_bytes(request())
    (tmp_path / "next.json").write_bytes(NEXT)
    return tmp_path


@pytest.mark.parametrize("way", [["app.py"], ["-m", "app"]])
def test_a_program_and_what_it_spawns(program: Path, way: list[str]) -> None:
    """It keeps its arguments and exit status; a spawned process finds its parent's turns."""
    told = Told(lambda body: Answer(whole()))
    done = run(program, "-m", "thoughtline.run", *way, f"{told.url}{PATH}", "--port", "8000")
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    assert [line.split(", missing")[0].partition("=")[0] for line in lines] == ["['--port', '8000'] restored"] * 2
    assert restored(told.bodies[-1]) == [THOUGHT]


def test_a_service_that_sets_the_variables(program: Path) -> None:
    """Both together enable it; one alone does nothing."""
    told = Told(lambda body: Answer(whole()))
    path = run(program, "-m", "thoughtline.run", "--path").stdout.strip()
    for environment, is_remembered in (
        ({"PYTHONPATH": path}, False),
        ({"THOUGHTLINE_INSTALL": "1"}, False),
        ({"PYTHONPATH": path, "THOUGHTLINE_INSTALL": "1"}, True),
    ):
        done = run(program, "app.py", f"{told.url}{PATH}", **environment)
        assert ("restored=1" in done.stdout) is is_remembered, (done.stdout, done.stderr)


def test_a_sitecustomize_of_the_users_own(program: Path) -> None:
    """It is imported, too; its own error is reported as usual, and the program remembers."""
    own = program / "own"
    own.mkdir()
    only = "import os\nif os.environ.get('THOUGHTLINE_INSTALL'): "  # not in what starts the program
    (own / "sitecustomize.py").write_text(f"{only}print('of the user')")
    told = Told(lambda body: Answer(whole()))
    asked = ("-m", "thoughtline.run", "app.py", f"{told.url}{PATH}")
    assert run(program, *asked, PYTHONPATH=str(own)).stdout.splitlines()[0] == "of the user"
    (own / "sitecustomize.py").write_text(f"{only}import a_module_that_there_is_not")
    done = run(program, *asked, PYTHONPATH=str(own))
    assert "a_module_that_there_is_not" in done.stderr
    assert "restored=1" in done.stdout


def test_what_can_not_be_run(program: Path) -> None:
    """Wrong settings are reported before anything runs; so is wrong usage."""
    done = run(program, "-m", "thoughtline.run", "app.py", THOUGHTLINE_STORE="mysql://x")
    assert (done.returncode, done.stdout) == (2, "")
    assert "mysql is no such store" in done.stderr
    assert run(program, "-m", "thoughtline.run").returncode == 2
