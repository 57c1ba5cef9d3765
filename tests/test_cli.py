"""The command line as a person meets it."""

from __future__ import annotations

import subprocess
import sys


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "thoughtline.cli", *arguments], capture_output=True, text=True, check=False
    )


def test_no_command_prints_the_help() -> None:
    """Until there is more to run, it says what it is."""
    result = run()
    assert result.returncode == 0
    assert "usage: thoughtline" in result.stdout


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
