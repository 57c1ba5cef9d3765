"""What the package index shows: the README with links that work there, and the addresses of the project.

`PROJECT_URL` names where the repository is published (`make dist PROJECT_URL=https://…`). Without it no address is
made up: links into the repository become plain text.
"""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

PAGES = {"Documentation": "blob/HEAD/docs/gateway.md", "Changelog": "blob/HEAD/CHANGELOG.md", "Issues": "issues"}
LINK = re.compile(r"\[(?P<text>[^\]\n]+)\]\((?P<target>[^)\s]+)\)")


class ProjectMetadata(MetadataHookInterface):
    """Called by hatchling for every build."""

    def update(self, metadata: dict[str, Any]) -> None:
        if sys.version_info < (3, 11):  # noqa: UP036  # pip asks for the metadata before it reads `requires-python`
            found = ".".join(map(str, sys.version_info[:2]))
            raise SystemExit(
                f"thoughtline needs Python 3.11 or newer; this is {found}. Use another: python3.11 -m pip ..."
            )
        url = os.environ.get("PROJECT_URL", "").rstrip("/")
        text = (Path(self.root) / "README.md").read_text(encoding="utf-8")
        metadata["readme"] = {"content-type": "text/markdown", "text": with_links(text, url)}
        metadata["urls"] = {"Source": url, **{name: f"{url}/{path}" for name, path in PAGES.items()}} if url else {}


def with_links(text: str, url: str) -> str:
    """The text with its relative links made absolute, or made plain where the project has no address."""

    def link(found: re.Match[str]) -> str:
        target = found["target"]
        if "://" in target or target.startswith("#"):
            return found[0]
        return f"[{found['text']}]({url}/blob/HEAD/{target})" if url else found["text"]

    return LINK.sub(link, text)
