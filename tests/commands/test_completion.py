"""What shells complete, asked of a real bash; the others' scripts are read for what they must hold."""

from __future__ import annotations

import shutil
import subprocess

import pytest

from thoughtline.commands.completion import SHELLS, words_of
from thoughtline.commands.parser import COMMANDS, parser


def completed(line: str) -> list[str]:
    """What bash offers at the end of a line."""
    words = line.split(" ")
    script = SHELLS["bash"](words_of(parser()))
    quoted = " ".join(f"'{word}'" for word in words)
    ask = f"COMP_WORDS=({quoted}); COMP_CWORD={len(words) - 1}; _thoughtline; printf '%s\\n' \"${{COMPREPLY[@]}}\""
    result = subprocess.run(["bash", "-c", f"{script}\n{ask}"], capture_output=True, text=True, check=True)
    return result.stdout.split()


@pytest.mark.skipif(shutil.which("bash") is None, reason="no bash here")
@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("thoughtline se", ["serve", "service"]),
        ("thoughtline serve --po", ["--port"]),
        ("thoughtline connect claude-code", ["claude-code", "claude-code-router"]),
        ("thoughtline sim deepseek-r", ["deepseek-r1"]),
        ("thoughtline keys re", ["revoke"]),
    ],
)
def test_bash(line: str, offered: list[str]) -> None:
    """Commands, their options, and the names that they take."""
    assert completed(line) == offered


@pytest.mark.parametrize("shell", SHELLS)
def test_every_command_is_there(shell: str) -> None:
    """In each shell's script."""
    script = SHELLS[shell](words_of(parser()))
    assert [command.name for command in COMMANDS if command.name not in script] == []
    assert "--port" in script or "-l port" in script
