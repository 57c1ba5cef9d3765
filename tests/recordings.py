"""Real recorded exchanges, read where they lie.

`THOUGHTLINE_RECORDINGS` names the folders, as `PATH` does; without it, those beside the checkout are used. They are not
part of this repository: on a machine without them the tests that need them are skipped, and say so.
"""

from __future__ import annotations

import base64
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
from thoughtline.values.turns import FormatName

_BESIDE = sorted((Path(__file__).parents[2] / "shared").glob("recordings*"))
_NAMED = os.environ.get("THOUGHTLINE_RECORDINGS")
FOLDERS = [Path(name) for name in _NAMED.split(os.pathsep)] if _NAMED else _BESIDE

FORMAT_OF_FAMILY: dict[str, FormatName] = {
    "anthropic": "anthropic_messages",
    "bedrock": "bedrock_converse",
    "bedrock-invoke": "bedrock_invoke",
    "cohere": "openai_chat",
    "gemini": "gemini_generate",
    "gemini-interactions": "gemini_interactions",
    "groq": "openai_chat",
    "mistral": "openai_chat",
    "ollama": "ollama_chat",
    "openai-chat": "openai_chat",
    "openai-responses": "openai_responses",
    "openrouter": "openai_chat",
    "xai": "openai_chat",
}
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
class Exchange:
    """One request and its response."""

    recorded: dict[str, Any]
    has_tags: bool

    @property
    def family(self) -> str:
        return str(self.recorded["family"])

    @property
    def format(self) -> Wire:
        return FORMATS[FORMAT_OF_FAMILY[self.family]]

    @property
    def dialect(self) -> Dialect:
        if self.has_tags and self.format.name in _TAGGED:
            return _TAGGED[self.format.name]
        if self.recorded["provider"] in ("vercel-gateway", "snowflake") and self.format.name == "openai_chat":
            return providers.REASONING_DETAILS
        return _DIALECTS.get(self.family, self.format.dialect)

    @property
    def request(self) -> bytes | None:
        request = self.recorded.get("request")
        return None if request is None else json.dumps(request, ensure_ascii=False).encode()

    @property
    def response(self) -> bytes | None:
        response = self.recorded.get("response")
        return None if response is None or self.is_array_stream else json.dumps(response, ensure_ascii=False).encode()

    @property
    def is_array_stream(self) -> bool:
        """Gemini's stream without `alt=sse` is one JSON array, and was recorded as such."""
        return self.family == "gemini" and isinstance(self.recorded.get("response"), list)

    @property
    def stream(self) -> bytes | None:
        if "stream_b64" in self.recorded:
            return base64.b64decode(self.recorded["stream_b64"])
        if self.is_array_stream:
            return json.dumps(self.recorded["response"], ensure_ascii=False, indent=1).encode()
        stream = self.recorded.get("stream")
        return None if stream is None else str(stream).encode()


@dataclass(frozen=True)
class Recording:
    """One file: a conversation."""

    entry: dict[str, Any]
    folder: Path

    @property
    def id(self) -> str:
        return str(self.entry["id"])

    @functools.cached_property
    def file(self) -> dict[str, Any]:
        loaded: dict[str, Any] = json.loads((self.folder / f"{self.id}.json").read_text())
        return loaded

    @property
    def exchanges(self) -> list[Exchange]:
        has_tags = "inline_think_tag" in self.entry["reasoning_kinds"]
        return [Exchange(recorded, has_tags) for recorded in self.file["exchanges"]]

    @property
    def pairs(self) -> list[tuple[int, int]]:
        return [(response, request) for response, request in self.file.get("replay_pairs", [])]


def _load() -> list[Recording]:
    found: dict[str, Recording] = {}
    for folder in FOLDERS:
        index = folder / "index.json"
        for entry in json.loads(index.read_text()) if index.exists() else ():
            found.setdefault(str(entry["id"]), Recording(entry, folder))
    return list(found.values())


ALL = _load()
SUPPORTED = [recording for recording in ALL if recording.entry["family"] not in LEFT_OUT]

needs_recordings = pytest.mark.skipif(
    not ALL, reason="no recordings; set THOUGHTLINE_RECORDINGS to the folders with an index.json"
)


def name_of(recording: Recording) -> str:
    return recording.id
