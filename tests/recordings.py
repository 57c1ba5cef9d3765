"""Real recorded exchanges, read where they lie.

`THOUGHTLINE_RECORDINGS` names the folders, as `PATH` does; without it, those beside the checkout are used. They are not
part of this repository: on a machine without them the tests that need them are skipped, and say so.
"""

from __future__ import annotations

import functools
import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from thoughtline import providers
from thoughtline.formats import FORMATS, Wire
from thoughtline.providers import Dialect
from thoughtline.recording.form import RecordedExchange, read_recording

_BESIDE = sorted((Path(__file__).parents[2] / "shared").glob("recordings*"))
_NAMED = os.environ.get("THOUGHTLINE_RECORDINGS")
FOLDERS = [Path(name) for name in _NAMED.split(os.pathsep)] if _NAMED else _BESIDE

LEFT_OUT = {
    "xai-grpc": "gRPC, recorded as JSON; passed on unread (docs/decisions)",
}
_DIALECTS = {
    "cohere": providers.COHERE,
    "mistral": providers.MISTRAL,
    "groq": providers.REASONING,
    "openrouter": providers.REASONING_DETAILS,
}
_TAGGED = {"openai_chat": providers.THINK_TAGS, "ollama_chat": providers.OLLAMA_TAGS}


@dataclass(frozen=True)
class Exchange(RecordedExchange):
    """One request and its response."""

    has_tags: bool

    @property
    def format(self) -> Wire:
        assert self.format_name is not None
        return FORMATS[self.format_name]

    @property
    def dialect(self) -> Dialect:
        if self.has_tags and self.format.name in _TAGGED:
            return _TAGGED[self.format.name]
        if self.provider in ("vercel-gateway", "snowflake") and self.format.name == "openai_chat":
            return providers.REASONING_DETAILS
        return _DIALECTS.get(self.family, self.format.dialect)


@dataclass(frozen=True)
class Recording:
    """One file: a conversation. `entry` is its line in the folder's index."""

    entry: dict[str, Any]
    path: Path

    @property
    def id(self) -> str:
        return str(self.entry["id"])

    @functools.cached_property
    def file(self) -> dict[str, Any]:
        return read_recording(self.path.read_bytes()).entry

    @property
    def exchanges(self) -> list[Exchange]:
        has_tags = "inline_think_tag" in self.entry["reasoning_kinds"]
        return [Exchange(recorded, has_tags) for recorded in self.file["exchanges"]]

    @property
    def pairs(self) -> list[tuple[int, int]]:
        return [(response, request) for response, request in self.file.get("replay_pairs", [])]


def recording_at(path: Path) -> Recording:
    """A file that stands in no index, as `thoughtline record` writes it."""
    return Recording(read_recording(path.read_bytes()).entry, path)


def _load() -> list[Recording]:
    found: dict[str, Recording] = {}
    for folder in FOLDERS:
        index = folder / "index.json"
        for entry in json.loads(index.read_text()) if index.exists() else ():
            found.setdefault(str(entry["id"]), Recording(entry, folder / f"{entry['id']}.json"))
    return list(found.values())


ALL = _load()
SUPPORTED = [recording for recording in ALL if recording.entry["family"] not in LEFT_OUT]

needs_recordings = pytest.mark.skipif(
    not ALL, reason="no recordings; set THOUGHTLINE_RECORDINGS to the folders with an index.json"
)


def name_of(recording: Recording) -> str:
    return recording.id
