"""The notes of a message in a Responses list: `annotations` of its text parts."""

from __future__ import annotations

import msgspec
from msgspec import Raw, Struct

from thoughtline.formats.json_text import NULL, encode, is_given
from thoughtline.values.items import Text
from thoughtline.values.notes import NO_NOTES, Citation, Notes, placed, together


class _Annotation(Struct, gc=False):
    type: str = ""
    url: str | None = None
    title: str | None = None
    start_index: int | None = None
    end_index: int | None = None


class _Part(Struct, gc=False):
    text: str | None = None
    refusal: str | None = None
    annotations: Raw = NULL


class _Message(Struct, gc=False):
    content: list[_Part] | None = None


_message_decoder = msgspec.json.Decoder(_Message)
_annotations_decoder = msgspec.json.Decoder(list[_Annotation])


def decode_notes(item: Text) -> Notes:
    """The notes of a message, by places in its words joined."""
    if b'"annotations"' not in bytes(item.raw):
        return NO_NOTES
    try:
        parts = _message_decoder.decode(item.raw).content or ()
    except (msgspec.DecodeError, UnicodeDecodeError):
        return NO_NOTES  # words alone
    found: list[Notes] = []
    base = 0
    for part in parts:
        found.append(_decode_annotations(part.annotations).moved(base))
        base += len(part.text or part.refusal or "")
    return together(found)


def _decode_annotations(raw: Raw) -> Notes:
    if not is_given(raw):
        return NO_NOTES
    try:
        found = _annotations_decoder.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return Notes(others=("annotations in a shape of their own",))
    pages = [one for one in found if one.type == "url_citation" and one.url]
    others = dict.fromkeys(f"annotations of kind {one.type}" for one in found if one not in pages)
    citations = [Citation(one.url or "", one.title or "", "", *placed(one.start_index, one.end_index)) for one in pages]
    return Notes(tuple(citations), tuple(others))


def encode_noted(text: str, notes: Notes) -> Text:
    """A message of words with the notes on them."""
    told = [
        {"type": "url_citation", "url": one.url, "title": one.title, "start_index": one.start, "end_index": one.end}
        for one in notes.citations
    ]
    part = {"type": "output_text", "text": text, "annotations": told}
    return Text(text, raw=Raw(encode({"type": "message", "role": "assistant", "content": [part]})))
