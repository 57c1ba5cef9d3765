"""The notes of a message in a Responses list: `annotations` of its text parts."""

from __future__ import annotations

import re

import msgspec
from msgspec import Raw, Struct

from thoughtline.formats.json_text import NULL, encode, read_or_none
from thoughtline.formats.media import decode_citations
from thoughtline.values.items import Text
from thoughtline.values.notes import Notes, together


class _Part(Struct, gc=False):
    text: str | None = None
    refusal: str | None = None
    annotations: Raw = NULL


class _Message(Struct, gc=False):
    content: list[_Part] | None = None


MARK = re.compile(rb'"annotations"\s*:(?!\s*(?:\[\s*\]|null))')
"""Nearly every part has a list of them, and nearly every list is empty."""

_message_decoder = msgspec.json.Decoder(_Message)


def decode_notes(item: Text) -> Notes:
    """The notes of a message, with positions in its joined text."""
    message = read_or_none(_message_decoder, item.raw) or _Message()
    found: list[Notes] = []
    base = 0
    for part in message.content or ():
        found.append(decode_citations(part.annotations, "annotations").moved(base))
        base += len(part.text or part.refusal or "")
    return together(found)


def encode_noted(text: str, notes: Notes) -> Text:
    """A message with a text and its notes."""
    annotations = [
        {"type": "url_citation", "url": one.url, "title": one.title, "start_index": one.start, "end_index": one.end}
        for one in notes.citations
    ]
    part = {"type": "output_text", "text": text, "annotations": annotations}
    return Text(text, raw=Raw(encode({"type": "message", "role": "assistant", "content": [part]})))
