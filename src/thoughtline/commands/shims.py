"""npm's shims on Windows: `codex.cmd` starts `node codex.js`.

cmd.exe would damage quotes and percent signs in arguments, so the shim's target is started directly.
"""

from __future__ import annotations

import re
import shutil
from pathlib import Path

_TARGET = re.compile(r'"%~?dp0%?\\?([^"%]+)"\s+%\*')
"""The last line of npm's cmd-shim: `"%_prog%"  "%dp0%\\node_modules\\…\\codex.js" %*`."""


def unwrapped(program: str) -> list[str]:
    """The words that start a program: its path, or the target of npm's `.cmd` file."""
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
