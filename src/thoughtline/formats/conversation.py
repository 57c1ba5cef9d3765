"""Writing an edited conversation back into the body it came in.

Every request format keeps its conversation as a list in one member of the body. Turns that nobody edited keep their
bytes and the separators between them; an edited turn is encoded by its format; the rest of the body is not touched.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from msgspec.structs import replace

from thoughtline.formats.json_text import (
    NULL,
    array,
    element_spans,
    encode,
    is_array,
    member_spans,
    members,
    set_members,
)
from thoughtline.items import Item, Text, Unknown
from thoughtline.turns import NOWHERE, SYSTEM_MEMBER, Transcript, Turn

EncodeTurn = Callable[[Turn, Sequence[bytes]], list[bytes]]
"""A turn and the elements it was decoded from (none if it is new) to the elements it is now."""

EncodeSystem = Callable[[Turn, bytes | None], bytes]
"""The turn that stands beside the list and the JSON it was decoded from, to the JSON it is now."""


class _List(NamedTuple):
    """The conversation's list as it stands in the body."""

    text: bytes
    spans: list[tuple[int, int]]

    def elements(self, turn: Turn) -> list[bytes]:
        if turn.at < 0:
            return []
        return [self.text[start:end] for start, end in self.spans[turn.at : turn.at + turn.spans]]

    def as_it_came(self, turn: Turn) -> bytes:
        return self.text[self.spans[turn.at][0] : self.spans[turn.at + turn.spans - 1][1]]

    def separator(self, before: Turn | None, turn: Turn) -> bytes:
        """What stood between two neighbours, if they still are neighbours."""
        if before is None:
            return b""
        if before.at >= 0 and turn.at == before.at + before.spans:
            return self.text[self.spans[turn.at - 1][1] : self.spans[turn.at][0]]
        return b","


def encode_conversation(
    transcript: Transcript,
    list_member: str,
    encode_turn: EncodeTurn,
    system_member: str = "",
    encode_system: EncodeSystem | None = None,
) -> bytes:
    """The body of the request: the client's own bytes but for what was edited."""
    body = transcript.body
    if not transcript.is_edited:
        return body
    spans = member_spans(body)
    values = {member.key: body[member.value_start : member.end] for member in spans}
    edits = list(transcript.member_edits)
    for turn in transcript.turns:
        if turn.at == SYSTEM_MEMBER and turn.is_edited and encode_system is not None:
            edits.append((system_member, encode_system(turn, values.get(system_member))))
    turns = [turn for turn in transcript.turns if turn.at != SYSTEM_MEMBER]
    if transcript.is_reshaped or any(turn.is_edited for turn in turns):
        edits.append((list_member, _encode_list(turns, values.get(list_member, b"[]"), encode_turn)))
    return set_members(body, edits, spans)


def text_member(transcript: Transcript, name: str, others: str = "") -> Transcript:
    """A conversation that is one text in a member of its own (`input`, `prompt`): an edit goes there, not into a list.

    `others` names the member for what stands beside the text.
    """
    turns = [turn for turn in transcript.turns if turn.at != SYSTEM_MEMBER]
    if len(turns) != 1 or not turns[0].is_edited or bytes(members(transcript.body).get(name, NULL))[:1] != b'"':
        return transcript
    match turns[0].items:
        case (Text(raw=None, seal=None) as text, *rest) if not rest or others and _all_unknown(rest):
            edited = transcript.with_member(name, encode(text.text))
            if others:
                edited = edited.with_member(others, array(item.raw for item in rest if item.raw) if rest else None)
            kept = tuple(replace(turn, is_edited=False) if turn is turns[0] else turn for turn in edited.turns)
            return replace(edited, turns=kept)
        case _:
            return transcript


def _all_unknown(items: Sequence[Item]) -> bool:
    return all(isinstance(item, Unknown) for item in items)


def _encode_list(turns: list[Turn], text: bytes, encode_turn: EncodeTurn) -> bytes:
    if not is_array(text):
        return array(element for turn in turns for element in encode_turn(turn, []))
    wire = _List(text, element_spans(text))
    opening = wire.spans[0][0] if wire.spans else 1
    closing = wire.spans[-1][1] if wire.spans else 1
    pieces = [text[:opening]]
    before: Turn | None = None
    for turn in turns:
        piece = _encode_one(turn, wire, encode_turn)
        if piece:
            pieces += [wire.separator(before, turn), piece]
            before = turn
    pieces.append(text[closing:])
    return b"".join(pieces)


def _encode_one(turn: Turn, wire: _List, encode_turn: EncodeTurn) -> bytes:
    if turn.at != NOWHERE and not turn.is_edited:
        return wire.as_it_came(turn)
    return b",".join(encode_turn(turn, wire.elements(turn)))
