"""npm's `.cmd` files, as npm writes them."""

from __future__ import annotations

from pathlib import Path

import pytest

from thoughtline.commands.shims import unwrapped

FOR_NODE = """@ECHO off
GOTO start
:find_dp0
SET dp0=%~dp0
EXIT /b
:start
SETLOCAL
CALL :find_dp0

IF EXIST "%dp0%\\node.exe" (
  SET "_prog=%dp0%\\node.exe"
) ELSE (
  SET "_prog=node"
  SET PATHEXT=%PATHEXT:;.JS;=;%
)

endLocal & goto #_undefined_# 2>NUL || title %COMSPEC% & "%_prog%"  "%dp0%\\node_modules\\@openai\\codex\\codex.js" %*
"""
FOR_A_PROGRAM = """@ECHO off
GOTO start
:find_dp0
SET dp0=%~dp0
EXIT /b
:start
SETLOCAL
CALL :find_dp0
"%dp0%\\node_modules\\@anthropic-ai\\claude-code\\bin\\claude.exe"   %*
"""


@pytest.mark.parametrize("suffix", [".cmd", ".CMD", ".bat"])
def test_a_script_of_node(tmp_path: Path, suffix: str) -> None:
    """Node next to the shim is preferred, as by the shim itself."""
    shim = tmp_path / f"codex{suffix}"
    shim.write_text(FOR_NODE)
    script = str(tmp_path / "node_modules/@openai/codex/codex.js")
    assert unwrapped(str(shim))[1:] == [script]
    (tmp_path / "node.exe").touch()
    assert unwrapped(str(shim)) == [str(tmp_path / "node.exe"), script]


def test_a_program(tmp_path: Path) -> None:
    shim = tmp_path / "claude.cmd"
    shim.write_text(FOR_A_PROGRAM)
    assert unwrapped(str(shim)) == [str(tmp_path / "node_modules/@anthropic-ai/claude-code/bin/claude.exe")]


@pytest.mark.parametrize("text", ["@echo off\npython -m aider %*\n", ""])
def test_what_is_no_shim_of_npm_is_started_itself(tmp_path: Path, text: str) -> None:
    (tmp_path / "aider.cmd").write_text(text)
    assert unwrapped(str(tmp_path / "aider.cmd")) == [str(tmp_path / "aider.cmd")]
    assert unwrapped("/usr/bin/aider") == ["/usr/bin/aider"]
