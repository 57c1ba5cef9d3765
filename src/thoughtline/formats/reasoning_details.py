"""`reasoning_details`: OpenRouter's typed reasoning entries, complete or merged from a stream.

Merging: entries of a stream that agree in (index, type, id) are one entry; text and summary are joined, a signature is
replaced, data is never joined; entries stay in first-seen order, and unknown members and types are kept.
Schema: OpenRouter's OpenAPI document, read 2026-11.
"""

from __future__ import annotations

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType

from thoughtline.formats.json_text import decode_kind, encode, members, object_of
from thoughtline.values.errors import EncodeError
from thoughtline.values.items import (
    ANTHROPIC_CLAUDE_V1,
    MINIMAX_RESPONSE_V1,
    UNKNOWN_FORMAT,
    Item,
    Reasoning,
    ReasoningEncrypted,
    ReasoningFormat,
    ReasoningServerToolCall,
    ReasoningSummary,
    ReasoningText,
    Unknown,
)


class _Detail(Struct, gc=False):
    type: str = ""
    text: str | None = None
    summary: str | None = None
    data: str | None = None
    signature: str | None = None
    format: str | UnsetType | None = UNSET
    id: str | None = None
    index: int | None = None
    tool_name: str | None = None


_decoder = msgspec.json.Decoder(_Detail)
_JOINED = ("reasoning.text", "reasoning.summary")
_KNOWN = (*_JOINED, "reasoning.encrypted", "reasoning.server_tool_call")


def _format_of(detail: _Detail) -> ReasoningFormat:
    if detail.format is UNSET:
        return ANTHROPIC_CLAUDE_V1  # the documented default of an entry without the member
    return ReasoningFormat(detail.format) if detail.format else UNKNOWN_FORMAT


def decode_detail(raw: Raw, place: str = "") -> Reasoning | Unknown:
    detail = decode_kind(_decoder, raw, _KNOWN, place)
    return Unknown(detail, raw) if isinstance(detail, str) else _typed(detail, raw)


def _typed(detail: _Detail, raw: Raw) -> Reasoning | Unknown:
    made_by = _format_of(detail)
    match detail.type:
        case "reasoning.text":
            return ReasoningText(
                detail.text or "", detail.signature, made_by, id=detail.id, index=detail.index, raw=raw
            )
        case "reasoning.summary":
            return ReasoningSummary(detail.summary or "", made_by, detail.id, detail.index, raw)
        case "reasoning.encrypted":
            return ReasoningEncrypted(detail.data or "", made_by, detail.id, detail.index, raw)
        case "reasoning.server_tool_call":
            return ReasoningServerToolCall(detail.tool_name or "", made_by, detail.id, detail.index, raw)
        case _:
            return Unknown(detail.type, raw)


def encode_detail(item: Item) -> bytes:
    """One entry for the wire: its own JSON if it came from there, else a new one."""
    if isinstance(item, Unknown):
        return bytes(item.raw)
    if item.raw and _is_entry(item.raw, item):
        return bytes(item.raw)
    match item:
        case ReasoningText():
            known = [("type", "reasoning.text"), ("text", item.text), ("signature", item.signature)]
        case ReasoningSummary():
            known = [("type", "reasoning.summary"), ("summary", item.summary)]
        case ReasoningEncrypted():
            known = [("type", "reasoning.encrypted"), ("data", item.data)]
        case _:
            raise EncodeError(f"reasoning_details can't hold a {type(item).__name__}")
    shared = [("id", item.id), ("format", item.format), ("index", item.index)]
    return object_of((key, encode(value)) for key, value in [*known, *shared] if value is not None)


def _is_entry(raw: Raw, item: Item) -> bool:
    """Whether this JSON is an entry with the item's content (it may be another format's)."""
    try:
        return _typed(_decoder.decode(raw), raw) == item
    except (msgspec.DecodeError, UnicodeDecodeError):
        return False


class _Entry:
    def __init__(self, detail: _Detail, raw: Raw) -> None:
        self.index, self.type, self.id = detail.index, detail.type, detail.id
        self.raws = [raw]
        self.texts = [detail.text if detail.text is not None else detail.summary or ""]
        self.signature = detail.signature
        # MiniMax's own sample reads its entries as cumulative, its recorded streams are incremental.
        self._may_be_cumulative = detail.format == MINIMAX_RESPONSE_V1
        self._is_cumulative = False

    def fits(self, detail: _Detail) -> bool:
        same_id = detail.id is None or detail.id == self.id
        return detail.type == self.type and detail.index == self.index and same_id

    def add(self, detail: _Detail, raw: Raw) -> str:
        """Add a piece; returns the new text."""
        piece = detail.text if detail.text is not None else detail.summary or ""
        self.raws.append(raw)
        self.signature = detail.signature or self.signature
        so_far = "".join(self.texts)
        if self._may_be_cumulative and piece:
            if so_far and piece.startswith(so_far) and (len(piece) > len(so_far) or self._is_cumulative):
                self._is_cumulative = True
                self.texts = [piece]
                return piece[len(so_far) :]
            self._may_be_cumulative = not so_far
        self.texts.append(piece)
        return piece

    def whole(self) -> Raw:
        if len(self.raws) == 1:
            return self.raws[0].copy()
        merged: dict[str, Raw] = {}
        for raw in self.raws:
            merged.update(
                {key: value for key, value in members(raw).items() if bytes(value) != b"null" or key not in merged}
            )
        text_key = "summary" if self.type == "reasoning.summary" else "text"
        merged[text_key] = Raw(encode("".join(self.texts)))
        if self.signature is not None:
            merged["signature"] = Raw(encode(self.signature))
        return Raw(object_of(merged.items()))


class DetailsMerger:
    def __init__(self) -> None:
        self._entries: list[_Entry] = []

    def add(self, raw: Raw) -> tuple[str, bool]:
        """Add a streamed entry; returns the new readable text, and whether it is a summary."""
        detail = decode_kind(_decoder, raw, _KNOWN)
        if isinstance(detail, str):
            detail = _Detail(detail)
        is_summary = detail.type == "reasoning.summary"
        if detail.type in _JOINED:
            for entry in reversed(self._entries):
                if entry.fits(detail):
                    return entry.add(detail, raw), is_summary
        entry = _Entry(detail, raw)
        self._entries.append(entry)
        return (entry.texts[0] if detail.type in _JOINED else ""), is_summary

    def raws(self) -> list[Raw]:
        return [entry.whole() for entry in self._entries]
