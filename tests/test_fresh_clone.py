"""The README's first commands in a fresh clone, as a newcomer has it: in a folder with a space in its name, with the
program not on the PATH."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.test_image import NO_INDEX

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()
NEEDED = ("Makefile", "run.lock", "pyproject.toml", "hatch_build.py", "README.md", "LICENSE", "src")
DEAD = "http://127.0.0.1:9"
PROXIES = {name: DEAD for base in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY") for name in (base, base.lower())}
LEFT_OUT = re.compile(
    r"\w+_PROXY|MAKE\w*|MFLAGS|PROJECT_URL|ARGS|BIN|VENV|\w*VIRTUAL\w*|XDG_\w+|THOUGHTLINE_\w+|\w*COLOR\w*"
)
"""A newcomer's shell has no proxies, folders or settings of ours, and was not started by the `make test` that may run
these tests."""
SECONDS = 300


class Clone(NamedTuple):
    folder: Path
    environment: dict[str, str]
    first: str
    """What the first `make demo` printed, installing included."""

    def run(self, line: str, **variables: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["bash", "-c", line],
            cwd=self.folder,
            env=self.environment | variables,
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )


@pytest.fixture(scope="module")
def clone(tmp_path_factory: pytest.TempPathFactory) -> Clone:
    """Files of this folder, without what was installed or built here."""
    folder = tmp_path_factory.mktemp("home") / "my projects" / "thoughtline"
    folder.mkdir(parents=True)
    for name in NEEDED:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(ROOT / name, folder / name)
    own = Path(sys.executable).parent
    places = [place for place in os.environ["PATH"].split(os.pathsep) if place and Path(place) != own]
    kept = {name: value for name, value in os.environ.items() if not LEFT_OUT.fullmatch(name.upper())}
    environment = kept | {"PATH": os.pathsep.join(places), "HOME": str(folder.parent), "COLUMNS": "120"}
    environment["PIP_CACHE_DIR"] = str(Path.home() / ".cache/pip")
    environment["PYTHON"] = os.path.realpath(sys.executable)
    made = Clone(folder, environment, "")
    done = made.run('make demo PYTHON="$PYTHON"')
    if done.returncode and NO_INDEX.search(done.stdout + done.stderr):
        pytest.skip("no package index can be reached, so nothing can be installed")
    assert done.returncode == 0, done.stdout + done.stderr
    return made._replace(first=done.stdout + done.stderr)


def test_installing_is_one_line_and_the_log_a_file(clone: Clone) -> None:
    """pip's own lines are in the file that this line names."""
    installing = [line for line in clone.first.splitlines() if "Installing" in line]
    assert len(installing) == 1
    assert "log: .venv/install.log" in installing[0]
    assert not re.search(r"Collecting|Downloading|Requirement already|Successfully", clone.first)
    assert "Successfully installed" in (clone.folder / ".venv/install.log").read_text()


def test_a_failed_installation_shows_the_end_of_its_log(clone: Clone, tmp_path: Path) -> None:
    other = clone._replace(folder=tmp_path)
    for name in ("Makefile", "pyproject.toml"):
        shutil.copy(ROOT / name, tmp_path / name)
    (tmp_path / "run.lock").write_text("no-such-package-of-thoughtline==1 --hash=sha256:" + "0" * 64 + "\n")
    done = other.run('make demo PYTHON="$PYTHON"', PIP_RETRIES="0")
    assert done.returncode != 0
    assert "no-such-package-of-thoughtline" in done.stderr
    assert "The whole log: .venv/install.log" in done.stderr


def test_the_line_below_the_demo_can_be_pasted(clone: Clone) -> None:
    """The program is not on the PATH, so its path is printed."""
    line = clone.first.splitlines()[-1].strip()
    assert line == ".venv/bin/thoughtline serve"
    assert clone.run(f"{line} --help").returncode == 0


AROUND = {
    "as it is": "{}",
    "without a network": "unshare --user --map-root-user --net sh -c 'ip link set lo up && {}'",
    "behind proxies that don't answer": " ".join(
        ["env", *(f"{name}={value}" for name, value in PROXIES.items()), "{}"]
    ),
}


@pytest.mark.parametrize("around", AROUND)
def test_the_demo_needs_nothing_but_this_machine(clone: Clone, around: str) -> None:
    probe = clone.run(AROUND[around].format("true"))
    if probe.returncode:
        pytest.skip(f"this machine can't take the network away: {probe.stderr.strip()}")
    done = clone.run(AROUND[around].format("make demo"))
    assert done.returncode == 0, done.stderr
    assert "restored=" in done.stdout


@contextmanager
def up(clone: Clone, **variables: str) -> Iterator[list[str]]:
    """`make run` in front of a simulator, and what it prints until it can be used."""
    words, environment = ["make", "run", "ARGS=--sim deepseek --port 0"], clone.environment | variables
    with subprocess.Popen(
        words, cwd=clone.folder, env=environment, stderr=subprocess.PIPE, text=True, start_new_session=True
    ) as process:
        assert process.stderr is not None
        said = []
        try:
            for line in process.stderr:
                said.append(line.rstrip("\n"))
                if sum(one.startswith("curl ") for one in said) == 2:
                    break
            yield said
        finally:
            os.killpg(process.pid, 15)


@pytest.mark.parametrize("proxies", [{}, PROXIES], ids=["", "behind proxies that don't answer"])
def test_every_line_that_make_run_prints_can_be_pasted(clone: Clone, proxies: dict[str, str]) -> None:
    """The two requests, and the commands for clients, without any key. Behind a proxy, the gateway reaches its
    simulator and our own commands reach the gateway. curl needs NO_PROXY.
    """
    with up(clone, **proxies) as said:
        text = "\n".join(said)
        first, second = (clone.run(line) for line in said if line.startswith("curl "))
        assert " 200 " in first.stdout.splitlines()[0]
        assert "restored=1" in second.stdout
        assert "Yes, four." in second.stdout
        assert "os.environ" not in text
        commands = [line.split(None, 1)[1] for line in said if ".venv/bin/thoughtline connect CLIENT" in line]
        assert len(commands) == 1
        done = clone.run(commands[0].replace("CLIENT", "aider"), **proxies)
        assert done.returncode == 0, done.stderr
        assert "no gateway answers" not in done.stderr
        url = commands[0].rpartition(" ")[2]
        explained = clone.run(f".venv/bin/thoughtline explain last --url {url}", **proxies)
        assert "restored" in explained.stdout, explained.stderr


START = re.findall(r"(?m)^ {4}(?!make)(\S.*?)(?: {2,}#.*)?$", README.partition("\n## Start\n")[2].partition("\n## ")[0])


@pytest.mark.parametrize("line", START)
def test_the_commands_without_make(clone: Clone, tmp_path: Path, line: str) -> None:
    """In an environment of their own, in the same folder, with proxies that only the program itself gets."""
    assert line in ("uvx --from '.[gateway]' thoughtline demo", "pip install '.[gateway]'")
    made = clone.run(f'"$PYTHON" -m venv "{tmp_path}/own" && "{tmp_path}/own/bin/pip" install -q uv || true')
    assert made.returncode == 0
    done = clone.run(f'PATH="{tmp_path}/own/bin:$PATH" {line}')
    if line.startswith("uvx"):
        if done.returncode and (NO_INDEX.search(done.stderr) or "uvx" in done.stderr):
            pytest.skip("uv can't be installed, or reaches no package index here")
        assert "restored=4" in done.stdout, done.stderr
    else:
        assert done.returncode == 0, done.stdout + done.stderr
        shown = clone.run(f'"{tmp_path}/own/bin/thoughtline" demo', **PROXIES)
        assert "restored=4" in shown.stdout, shown.stderr


def test_the_readme_names_the_two_commands() -> None:
    """`make run` at the top of "Start", `make test` under "Develop"; and `.ci/run` calls only what stands there."""
    start = README.partition("\n## Start\n")[2].partition("\n## ")[0]
    develop = README.partition("\n## Develop\n")[2].partition("\n## ")[0]
    assert re.search(r"(?m)^ {4}make run\b", start)
    assert re.search(r"(?m)^ {4}make test\b", develop)
    called = set(re.findall(r"\bmake ([a-z-]+)", (ROOT / ".ci/run").read_text()))
    assert called <= set(re.findall(r"\bmake ([a-z-]+)", develop))


def test_make_help_lists_every_target() -> None:
    done = subprocess.run(["make", "help"], cwd=ROOT, capture_output=True, text=True, check=True)
    listed = set(re.findall(r"(?m)^make ([a-z-]+) ", done.stdout))
    targets = re.findall(r"(?m)^\.PHONY: (.*)$", (ROOT / "Makefile").read_text())[0].split()
    assert listed == set(targets) - {"help"}


def test_both_packages_are_typed() -> None:
    """PEP 561: each top-level package has its own mark."""
    assert (ROOT / "src/thoughtline/py.typed").is_file()
    assert (ROOT / "src/thoughtline_sim/py.typed").is_file()


def test_an_old_python_is_told_which_one_is_needed(tmp_path: Path) -> None:
    """By the build itself, which pip asks before it reads what the package requires."""
    script = (
        "import sys; sys.version_info = (3, 10, 0); import hatch_build; hatch_build.ProjectMetadata('.', {}).update({})"
    )
    done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert "thoughtline needs Python 3.11 or newer; this is 3.10." in done.stderr


def test_the_metadata_names_the_systems_that_were_tried() -> None:
    """Linux alone; the page of limits says the same."""
    systems = re.findall(r'"Operating System :: ([^"]+)"', (ROOT / "pyproject.toml").read_text())
    assert systems == ["POSIX :: Linux"]
    assert "Not tested on Windows and macOS" in (ROOT / "docs/limits.md").read_text()
