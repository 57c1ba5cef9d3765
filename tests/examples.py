"""The code blocks of a page, by the heading they stand under."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

LIBRARY = Path(__file__).parents[1] / "docs" / "library.md"
APPLICATIONS = LIBRARY.with_name("applications.md")
_PART = re.compile(r"^## (.+?)\n(.*?)(?=^## |\Z)", re.DOTALL | re.MULTILINE)
_BLOCK = re.compile(r"```(\w+)\n(.*?)```", re.DOTALL)


def blocks(page: Path = LIBRARY, language: str = "python") -> dict[str, str]:
    """The block of each heading that has one in this language."""
    found = ((title, _BLOCK.findall(text)) for title, text in _PART.findall(page.read_text()))
    return {title: code for title, some in found for kind, code in some if kind == language}


def example(title: str, page: Path = LIBRARY, **given: object) -> dict[str, Any]:
    """The names of an example after it has run as printed."""
    names: dict[str, Any] = dict(given)
    exec(compile(blocks(page)[title], f"{page.name}: {title}", "exec"), names)
    return names
