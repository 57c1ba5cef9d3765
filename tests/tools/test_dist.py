"""What is released: its names, its description, and that it works where nothing else of ours is."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
import zipfile
from email.message import Message
from pathlib import Path

import pytest

from hatch_build import with_links
from tools.dist import ROOT, STRANGE, check_commands, check_metadata, metadata_of

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("dist")
    command = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(folder)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    return next(folder.glob("*.whl"))


def test_the_wheel_works_where_nothing_else_of_ours_is(wheel: Path, tmp_path: Path) -> None:
    """`thoughtline demo`, and the requests that `serve --sim deepseek` prints. `make dist` loads what it needs, too."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", tmp_path / "venv"], check=True)
    (packages,) = (tmp_path / "venv" / "lib").glob("python*/site-packages")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(packages)
    needed = next(path for path in sys.path if path.endswith("site-packages"))
    (packages / "needed.pth").write_text(f"{needed}\n")  # editable installs there are not followed
    command = tmp_path / "venv" / "bin" / "thoughtline"
    python = tmp_path / "venv" / "bin" / "python"
    code = f"import thoughtline; assert thoughtline.__file__.startswith('{packages}'), thoughtline.__file__"
    subprocess.run([python, "-c", code], check=True, cwd=tmp_path)
    command.write_text(f"#!{python}\nfrom thoughtline.cli import program\nprogram()\n")
    command.chmod(0o755)
    assert check_commands(str(command), tmp_path) == []


def test_the_description_works_on_an_index(wheel: Path) -> None:
    """Every link is absolute, or plain text; what an index shows is there."""
    assert list(check_metadata(metadata_of(wheel))) == []


def test_what_is_missing_is_told() -> None:
    """And a link that would lead nowhere."""
    metadata = Message()
    metadata["Name"] = "thoughtline"
    metadata.set_payload("[here](docs/here.md) [there](https://example.org) [above](#top)")
    problems = list(check_metadata(metadata))
    assert "metadata: no Version" in problems
    assert [problem for problem in problems if "leads nowhere" in problem] == [
        "metadata: docs/here.md leads nowhere on an index"
    ]


def test_links_follow_the_project() -> None:
    """Its address is nowhere but where it is published."""
    text = "[a](docs/a.md#b), [c](https://example.org/c), [d](#e)"
    assert with_links(text, "") == "a, [c](https://example.org/c), [d](#e)"
    assert with_links(text, "https://host/us") == "[a](https://host/us/blob/HEAD/docs/a.md#b)" + text[16:]


@pytest.mark.parametrize("name", [".env", "src/.git/x", "a/__pycache__/b.pyc", "tests/x.log"])
def test_what_lies_around_is_strange(name: str) -> None:
    assert STRANGE.search(name)


def test_the_pythons_that_are_named_are_those_that_are_promised() -> None:
    """From the oldest on, without a gap; the README says the same."""
    named = [int(found[1]) for one in PROJECT["classifiers"] if (found := re.fullmatch(r".*Python :: 3\.(\d+)", one))]
    oldest = int(PROJECT["requires-python"].rpartition(".")[2])
    assert named == list(range(oldest, named[-1] + 1))
    assert f"Python 3.{oldest} or newer" in (ROOT / "README.md").read_text()
