"""npm's shims on Windows: `codex.cmd` starts `node codex.js`. Through cmd.exe, quotes and percent signs of arguments
would not arrive as they are, so what the shim would start is started in its place."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

_TARGET = re.compile(r'"%~?dp0%?\\?([^"%]+)"\s+%\*')
"""The last line of npm's cmd-shim: `"%_prog%"  "%dp0%\\node_modules\\…\\codex.js" %*`."""


def unwrapped(program: str) -> list[str]:
    """The words that start a program: its path, or what a `.cmd` file of npm would start."""
    path = Path(program)
    if path.suffix.lower() not in (".cmd", ".bat"):
        return [program]
    found = _TARGET.search(path.read_text("utf-8", "replace"))
    if found is None:
        return [program]
    target = path.parent.joinpath(*found[1].split("\\"))
    if target.suffix.lower() == ".exe":
        return [str(target)]
    beside = path.parent / "node.exe"
    return [str(beside) if beside.exists() else shutil.which("node") or "node", str(target)]
