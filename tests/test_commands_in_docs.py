"""Every command line of the README and of the pages, run as it is printed.

What a line needs stands ready: a gateway in front of a strict simulator, a file to audit, programs that only say that
they were started. The folder has a space in its name, and the proxies that the environment names don't answer: no line
needs them. The gateway's port is chosen by the system, and put into lines that name the default one. A line
with a provider's key in it (`$MISTRAL_API_KEY`) needs a real one, which it says by that; its words are read, not run.
`make dist` installs the package; benchmarks and the targets of the Makefile are only looked for.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.test_fresh_clone import PROXIES
from thoughtline.commands.parser import parser

ROOT = Path(__file__).parents[1]
GENERATED = {"cli.md", "clients.md"}  # tests/test_clients.py and tests/clients run what these print
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
BLOCK = re.compile(r"^```(?:sh|bash)?\n(.*?)^```|(?:^ {4}[^\n]*\n(?:\n(?= {4}))?)+", re.DOTALL | re.MULTILINE)
COMMAND = re.compile(r"(thoughtline|make|curl|python|uvx|pipx|pip) [^#]|make$|export \w+=")
REAL_KEY = re.compile(r"\$\w+_API_KEY")
SECONDS = 120
REQUEST = """\
{
  "model": "deepseek-v4-pro",
  "tools": [{"type": "function", "function": {"name": "f"}}],
  "messages": [
    {"role": "user", "content": "Hi"},
    {"role": "assistant", "content": "Hello"},
    {"role": "user", "content": "Go on"}
  ]
}
"""
BEGINS = {"serve": "listening", "sim": " on http://"}
"""Commands that go on until they are stopped, and what they say when they are up."""


class Line(NamedTuple):
    """A command line, and the page it stands on."""

    page: str
    text: str

    @property
    def words(self) -> list[str]:
        return shlex.split(self.text, comments=True)


def lines_of(page: Path) -> Iterator[Line]:
    """The command lines of a page's blocks. Two blanks end one: an explanation follows."""
    for block in BLOCK.finditer(page.read_text()):
        text = (block[1] or re.sub("^    ", "", block[0], flags=re.MULTILINE)).replace("\\\n", " ")
        for line in text.splitlines():
            command = re.split(r" {2,}(?![ '\"-])", line.strip().removeprefix("$ "))[0].strip()
            if COMMAND.match(command) and "…" not in command:
                yield Line(page.name, command)


EVERY = [line for page in PAGES if page.name not in GENERATED for line in lines_of(page)]
INLINE = sorted(
    {
        found
        for page in PAGES
        for found in re.findall(r"`(thoughtline [^`\n]+)`", page.read_text())
        if "…" not in found and "{" not in found
    }
)


def listed(*programs: str) -> list[Line]:
    return [line for line in EVERY if line.text.split()[0] in programs and not REAL_KEY.search(line.text)]


def ids(line: Line) -> str:
    return f"{line.page}: {line.text[:60]}"


class World(NamedTuple):
    """A gateway, and the environment that lines are run in."""

    port: str
    folder: Path
    environment: dict[str, str]


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    folder = tmp_path_factory.mktemp("docs") / "my files"
    folder.mkdir()
    (folder / "request.json").write_text(REQUEST)
    (folder / "recording.json").write_text('{"exchanges": []}')
    programs = folder / "bin"
    programs.mkdir()
    for name, words in (
        ("thoughtline", "-u -m thoughtline.cli"),
        ("claude", "-c 'print(1)'"),
        ("codex", "-c 'print(1)'"),
        ("systemctl", "-c 'print(1)'"),
    ):
        (programs / name).write_text(f'#!/bin/sh\nexec "{sys.executable}" {words} "$@"\n')
        (programs / name).chmod(0o755)
    environment = {
        "PATH": f"{programs}{os.pathsep}{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "HOME": str(folder),
        "DEEPSEEK_API_KEY": "any",
        "COLUMNS": "120",
        **PROXIES,
    }
    with started(["thoughtline", "serve", "--sim", "deepseek", "--port", "0"], folder, environment) as server:
        assert server.stderr is not None
        lines = iter(server.stderr.readline, "")
        url = next(found[1] for line in lines if (found := re.search(r"listening +http://127.0.0.1:(\d+)", line)))
        for line in lines:
            if line.startswith("curl "):
                subprocess.run(
                    line.replace("curl ", "curl --noproxy '*' ", 1), shell=True, check=True, capture_output=True
                )
                break
        token = (folder / ".local/share/thoughtline/admin-token").read_text().strip()
        yield World(url, folder, environment | {"THOUGHTLINE_PORT": url, "TOKEN": token})


@contextmanager
def started(words: list[str], folder: Path, environment: dict[str, str]) -> Iterator[subprocess.Popen[str]]:
    """A command that goes on until it is stopped; it is, whatever happens."""
    with subprocess.Popen(
        words,
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        executable=str(folder / "bin" / words[0]),
    ) as process:
        try:
            yield process
        finally:
            process.terminate()


@pytest.mark.parametrize("line", listed("thoughtline", "curl"), ids=ids)
def test_it_works_as_printed(line: Line, world: World) -> None:
    """With status 0; or it is up, where it would go on until it is stopped."""
    if line.words[:2][-1] in BEGINS:
        return check_server(line, world)
    text = line.text.replace("127.0.0.1:8642", f"127.0.0.1:{world.port}").replace("5f0c2c", "last")
    text = text.replace("keys clear", "keys clear --yes")  # it asks only on a terminal
    if "--follow" in text:
        text = f"timeout --preserve-status -s INT 3 {text} || [ $? -eq 130 ]"
    done = subprocess.run(
        ["bash", "-c", text.replace("curl ", "curl --fail-with-body -sS --noproxy '*' ", 1)],
        cwd=world.folder,
        env=world.environment,
        input="y\n",
        capture_output=True,
        text=True,
        timeout=SECONDS,
    )
    allowed = {0, 1} if line.words[1] in ("audit", "explain", "keys") else {0}  # 1: findings, or no such thing
    assert done.returncode in allowed, done.stdout + done.stderr
    return None


def check_server(line: Line, world: World) -> None:
    words = [word if word != "8700" else "0" for word in line.words]
    environment = world.environment | {"THOUGHTLINE_PORT": "0"}
    with started(words, world.folder, environment) as server:
        said = server.stdout if words[1] == "sim" else server.stderr
        assert said is not None
        assert any(BEGINS[words[1]] in one for one in iter(said.readline, ""))


@pytest.mark.parametrize("line", listed("make"), ids=ids)
def test_make_knows_it(line: Line) -> None:
    """Its targets and variables; what they do, `make test` and others do."""
    done = subprocess.run([*line.words, "--dry-run"], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    for variable in (word.partition("=")[0] for word in line.words if "=" in word):
        assert f"$({variable})" in (ROOT / "Makefile").read_text()


@pytest.mark.parametrize("line", listed("python"), ids=ids)
def test_the_module_is_there(line: Line) -> None:
    """Benchmarks run for minutes: here it is only known that there is one of that name."""
    assert line.words[1] == "-m"
    modules = [folder.joinpath(*line.words[2].split(".")) for folder in (ROOT, ROOT / "src")]
    assert any(one.with_suffix(".py").is_file() or (one / "__main__.py").is_file() for one in modules)


@pytest.mark.parametrize("line", [line for line in EVERY if REAL_KEY.search(line.text)], ids=ids)
def test_a_line_that_needs_a_real_key_can_be_read(line: Line) -> None:
    """And what it sends is JSON."""
    words = line.words
    for body in (words[at + 1] for at, word in enumerate(words) if word == "-d"):
        assert json.loads(body)


@pytest.mark.parametrize("text", INLINE)
def test_commands_within_sentences_are_commands(text: str) -> None:
    """Their options are known; names in capitals stand for something."""
    words = [re.sub(r"^\[|\]$", "", word) for word in shlex.split(text)[1:]]
    root = parser()
    subcommands = next(action for action in root._actions if action.dest == "command")
    assert words[0] in (subcommands.choices or ()) or words[0].startswith("-"), text
    if not words[0].startswith("-"):
        known = subcommands.choices[words[0]].format_help()  # type: ignore[index]  # a mapping
        before = words[: words.index("--")] if "--" in words else words
        nested = [word for word in before[1:2] if re.search(rf"^    {word}\b", known, re.MULTILINE)]
        if nested:
            actions = next(a for a in subcommands.choices[words[0]]._actions if a.dest == "action")  # type: ignore[index]  # a mapping
            known = actions.choices[nested[0]].format_help()
        for option in (word.partition("=")[0] for word in before if word.startswith("--")):
            assert option in known, text
