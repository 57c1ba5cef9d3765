"""What an interaction asks for beside its steps is in no shared words: none is translated."""

from __future__ import annotations

from typing import NoReturn

import msgspec
from msgspec import Raw

from thoughtline.formats.json_text import encode
from thoughtline.formats.thinking import MemberEdit
from thoughtline.providers import Dialect
from thoughtline.values.errors import Untranslatable
from thoughtline.values.items import ToolResult, Unknown
from thoughtline.values.options import Media, Options, ReadOptions, ResultContent, WrittenOptions, WrittenResult

_THINKING = ("thinking_level", "thinking_summaries")


def decode_options(body: bytes) -> ReadOptions:
    _refuse()


def encode_options(options: Options, dialect: Dialect) -> WrittenOptions:
    _refuse()


def decode_media(item: Unknown) -> Media | None:
    return None


def encode_media(media: Media) -> Unknown | None:
    return None


def decode_result(item: ToolResult) -> ResultContent:
    return ResultContent((bytes(item.content).decode(),))


def encode_result(content: ResultContent, id: str | None, tool: str | None) -> WrittenResult:
    text = "".join(part for part in content.parts if isinstance(part, str))
    return WrittenResult(ToolResult(Raw(encode(text)), id, tool))


def _refuse() -> NoReturn:
    raise Untranslatable("interactions are not translated", "/input", "speak generateContent, or ask Gemini itself")


def unasked(body: bytes) -> list[MemberEdit]:
    """What asks the model to think stands among other settings, which stay."""
    settings = msgspec.json.decode(body).get("generation_config")
    if not isinstance(settings, dict) or not any(name in settings for name in _THINKING):
        return []
    kept = {name: value for name, value in settings.items() if name not in _THINKING}
    return [("generation_config", msgspec.json.encode(kept))]
