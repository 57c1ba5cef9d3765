r"""Thoughts that Gemini CLI sends back as words: `{"text": "…\n[Thought: true]"}` for `{"text": "…", "thought": true}`.

Read as thoughts, or nobody would know the turn again; what is written of them is what came.
Gemini CLI's `code_assist/converter.ts`, 0.61.0, read 2026-11-16.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from msgspec.structs import replace

from thoughtline.providers import Dialect
from thoughtline.values.items import Item, ReasoningText, Seal, Text
from thoughtline.values.turns import Transcript, Turn

_MARK = "[Thought: true]"


def with_thoughts(transcript: Transcript, dialect: Dialect) -> Transcript:
    """With what was written as words read as thoughts."""
    return _each(transcript, partial(_thought, dialect=dialect))


def with_words(transcript: Transcript) -> Transcript:
    """The same again as it came."""
    return _each(transcript, _words)


def _each(transcript: Transcript, change: Callable[[Item], Item]) -> Transcript:
    if _MARK.encode() not in transcript.body:
        return transcript
    turns = [_changed(turn, change) if turn.role == "assistant" else turn for turn in transcript.turns]
    return replace(transcript, turns=tuple(turns))


def _changed(turn: Turn, change: Callable[[Item], Item]) -> Turn:
    return replace(turn, items=tuple(map(change, turn.items)))


def _thought(item: Item, dialect: Dialect) -> Item:
    if not isinstance(item, Text) or not (item.text == _MARK or item.text.endswith(f"\n{_MARK}")):
        return item
    text = item.text.removesuffix(_MARK).removesuffix("\n")
    signature = item.seal.data if item.seal is not None else None
    return ReasoningText(text, signature, dialect.reasoning_format, raw=item.raw)


def _words(item: Item) -> Item:
    """Only of what came so: its JSON has the mark, and no word that it is a thought."""
    raw = bytes(item.raw)
    if not isinstance(item, ReasoningText) or _MARK.encode() not in raw or b'"thought"' in raw:
        return item
    text = f"{item.text}\n{_MARK}" if item.text else _MARK
    return Text(text, Seal(item.signature, item.format) if item.signature else None, raw=item.raw)
