"""The command line as a person meets it."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import httpx
import pytest


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "thoughtline.cli", *arguments], capture_output=True, text=True, check=False
    )


def test_no_command_prints_the_help() -> None:
    """It says what it is."""
    result = run()
    assert result.returncode == 0
    assert "usage: thoughtline" in result.stdout


def test_the_interpreter_is_not_taken_apart() -> None:
    """Threads of the HTTP client would abort a command that is done (seen as SIGABRT in one of six `doctor` runs)."""
    code = "import atexit; atexit.register(print, 'taken apart'); from thoughtline import cli; cli.program()"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert result.returncode == 0
    assert "usage: " in result.stdout
    assert "taken apart" not in result.stdout


def test_version() -> None:
    """The version is the distribution's."""
    result = run("--version")
    assert result.returncode == 0
    assert result.stdout.startswith("thoughtline ")


def test_unknown_command_is_refused() -> None:
    """A word it does not know is an error, not a silent success."""
    result = run("remember")
    assert result.returncode == 2
    assert "remember" in result.stderr


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        (["srve"], "serve"),
        (["serve", "--prot", "9000"], "--port"),
        (["keys", "lst"], "list"),
        (["sim", "depseek"], "deepseek"),
        (["sim", "deepseek", "--profile", "tool"], "tools"),
        (["completion", "bsh"], "bash"),
    ],
)
def test_the_word_that_was_probably_meant_is_named(words: list[str], meant: str) -> None:
    """Commands, actions, options and names, with status 2."""
    result = run(*words)
    assert result.returncode == 2
    assert f"did you mean {meant}?" in result.stderr


def test_who_stops_reading_sees_no_traceback() -> None:
    """As in `thoughtline connect | head -1`."""
    reading, writing = os.pipe()
    os.close(reading)
    command = [sys.executable, "-m", "thoughtline.cli", "connect"]
    result = subprocess.run(command, stdout=writing, stderr=subprocess.PIPE, text=True, check=False)
    os.close(writing)
    assert (result.returncode, result.stderr) == (128 + signal.SIGPIPE, "")


@pytest.mark.parametrize(
    "command", [("sim", "deepseek"), ("serve", "--store", "memory://")], ids=lambda words: words[0]
)
def test_a_server_is_stopped_by_a_key(command: tuple[str, ...], tmp_path: Path) -> None:
    """Ctrl-C ends it without a traceback."""
    process = subprocess.Popen(
        [sys.executable, "-u", "-m", "thoughtline.cli", *command, "--port", "0"],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env={**os.environ, "HOME": str(tmp_path), "XDG_DATA_HOME": str(tmp_path)},
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),  # in a job it may be ignored
    )
    assert process.stdout is not None
    url = next(found[0] for line in process.stdout if (found := re.search(r"http://[\d.]+:\d+", line)))
    httpx.get(url)  # it answers, so it is up
    process.send_signal(signal.SIGINT)
    output, _ = process.communicate(timeout=60)
    assert process.returncode == 128 + signal.SIGINT
    assert "Traceback" not in output


COMMANDS_WITH_SETTINGS = [
    ("serve", "--port", "70000"),
    ("doctor", "--port", "0", "--store", "memory://"),
    ("keys", "list"),
    ("keys", "add", "ann"),
    ("keys", "revoke", "ann"),
    ("cache", "stats"),
    ("cache", "clear", "--yes"),
]


@pytest.mark.parametrize("arguments", COMMANDS_WITH_SETTINGS, ids=lambda words: "-".join(words[:2]))
def test_settings_in_the_working_directory_are_only_named(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    """Every command says that it does not read them, and what would; named, they are read, and nothing is said."""
    (tmp_path / "thoughtline.toml").write_text("[servers]\n")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("THOUGHTLINE_", "XDG_"))}

    def output_of(*more: str, **variables: str) -> str:
        command = [sys.executable, "-m", "thoughtline.cli", *arguments, *more]
        environment = kept | {"HOME": str(tmp_path / "home")} | variables
        done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path, env=environment)
        return done.stdout + done.stderr

    words = arguments[:2] if arguments[0] in ("keys", "cache") else arguments[:1]
    use = f"{' '.join(['thoughtline', *words])} --config ./thoughtline.toml"
    output = output_of()
    assert use in output
    assert "no such table" not in output
    for named in (output_of("--config", "thoughtline.toml"), output_of(THOUGHTLINE_CONFIG="thoughtline.toml")):
        assert "no such table" in named
        assert use not in named
