"""Writing an edited conversation back into the body it came in.

Every request format keeps its conversation as a list in one member of the body. Turns that nobody edited keep their
bytes and the separators between them; an edited turn is encoded by its format; the rest of the body is not touched.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from msgspec import Raw
from msgspec.structs import replace

from thoughtline.formats.json_text import (
    NULL,
    Member,
    array,
    element_spans,
    encode,
    is_array,
    member_spans,
    members,
    set_members,
)
from thoughtline.providers import Dialect
from thoughtline.values.errors import DecodeError, ForeignSeal
from thoughtline.values.items import Item, ReasoningEncrypted, ReasoningText, Text, ToolCall, Unknown
from thoughtline.values.turns import SYSTEM_MEMBER, Transcript, Turn

EncodeTurn = Callable[[Turn, Sequence[bytes]], list[bytes]]
"""A turn and the elements it was decoded from (none if it is new) to the elements it is now."""

EncodeSystem = Callable[[Turn, bytes | None], bytes]
"""The turn that stands beside the list and the JSON it was decoded from, to the JSON it is now."""


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
    edits = list(transcript.member_edits)
    for turn in transcript.turns:
        if turn.at == SYSTEM_MEMBER and turn.is_edited and encode_system is not None:
            edits.append((system_member, encode_system(turn, _value(body, spans, system_member))))
    turns = [turn for turn in transcript.turns if turn.at != SYSTEM_MEMBER]
    if not edits and not transcript.is_reshaped and not transcript.drops_system:
        spliced = _splice(turns, body, [member for member in spans if member.key == list_member], encode_turn)
        if spliced is not None:
            return spliced
    if transcript.drops_system and system_member not in dict(edits):
        edits.append((system_member, None))
    if transcript.is_reshaped or any(turn.is_edited for turn in turns):
        text = _value(body, spans, list_member) or b"[]"
        encode_list = _encode_new_list if transcript.is_reshaped or not is_array(text) else _encode_edits
        edits.append((list_member, encode_list(turns, text, encode_turn)))
    return set_members(body, edits, spans)


def _value(body: bytes, spans: list[Member], name: str) -> bytes | None:
    """The JSON of a member; of several with one name the last counts."""
    return next((body[member.value_start : member.end] for member in reversed(spans) if member.key == name), None)


def _splice(turns: list[Turn], body: bytes, lists: list[Member], encode_turn: EncodeTurn) -> bytes | None:
    """The body with edited turns spliced into its list, copied once. None where that is not all there is to do."""
    if len(lists) != 1 or body[lists[0].value_start : lists[0].value_start + 1] != b"[":
        return None
    spans = element_spans(body, lists[0].value_start, lists[0].end)
    view = memoryview(body)
    pieces: list[bytes | memoryview] = []
    position = 0
    for turn in turns:
        if turn.is_edited:
            own = spans[turn.at : turn.at + turn.spans]
            elements = encode_turn(turn, [body[start:end] for start, end in own])
            if not elements:
                return None
            pieces += [view[position : own[0][0]], b",".join(elements)]
            position = own[-1][1]
    return b"".join([*pieces, view[position:]])


def _encode_edits(turns: list[Turn], text: bytes, encode_turn: EncodeTurn) -> bytes:
    """The list with its edited turns: nothing else is looked at."""
    whole = [Member("", 0, 0, len(text))]
    return _splice(turns, text, whole, encode_turn) or _encode_new_list(turns, text, encode_turn)


def _encode_new_list(turns: list[Turn], text: bytes, encode_turn: EncodeTurn) -> bytes:
    """A list whose turns were added, taken out or moved. Neighbours that still are keep what stood between them."""
    spans = element_spans(text) if is_array(text) else []
    pieces = [text[: spans[0][0]] if spans else b"["]
    before: Turn | None = None
    for turn in turns:
        own = spans[turn.at : turn.at + turn.spans] if turn.at >= 0 else []
        if own and not turn.is_edited:
            piece = text[own[0][0] : own[-1][1]]
        else:
            piece = b",".join(encode_turn(turn, [text[start:end] for start, end in own]))
        if piece:
            is_neighbour = before is not None and before.at >= 0 and turn.at == before.at + before.spans
            between = text[spans[turn.at - 1][1] : spans[turn.at][0]] if is_neighbour else b","
            pieces += [between if before is not None else b"", piece]
            before = turn
    pieces.append(text[spans[-1][1] :] if spans else b"]")
    return b"".join(pieces)


def text_member(transcript: Transcript, name: str, others: str = "") -> Transcript:
    """A conversation that is one text in a member of its own (`input`, `prompt`): an edit goes there, not into a list.

    `others` names the member for what stands beside the text.
    """
    turns = [turn for turn in transcript.turns if turn.at != SYSTEM_MEMBER]
    if len(turns) != 1 or not turns[0].is_edited or bytes(members(transcript.body).get(name, NULL))[:1] != b'"':
        return transcript
    match turns[0].items:
        case (Text(seal=None) as text, *rest) if not text.raw and (not rest or (others and _all_unknown(rest))):
            edited = transcript.with_member(name, encode(text.text))
            if others:
                edited = edited.with_member(others, array(item.raw for item in rest if item.raw) if rest else None)
            kept = tuple(replace(turn, is_edited=False) if turn is turns[0] else turn for turn in edited.turns)
            return replace(edited, turns=kept)
        case _:
            return transcript


def _all_unknown(items: Sequence[Item]) -> bool:
    return all(isinstance(item, Unknown) for item in items)


def encode_plain_system(turn: Turn, before: bytes | None) -> bytes:
    """A system prompt that is one text."""
    return encode("".join(item.text for item in turn.items if isinstance(item, Text)))


# --- what every encoder asks of an item: does its JSON still say it, may its seal go where it is sent -----------------


Decode = Callable[[Raw, Dialect], Item]


def as_it_came(item: Item, decode: Decode, dialect: Dialect) -> Item | None:
    """The item that its JSON is in this format; None if it has none, or that of another format."""
    if not item.raw:
        return None
    try:
        return decode(item.raw, dialect)
    except DecodeError:
        return None


def require_own(item: Item, dialect: Dialect) -> None:
    """Raises `ForeignSeal` for an item with a seal that the server can't read."""
    match item:
        case ReasoningText(signature=str()) | ReasoningEncrypted():
            made_by = item.format
        case Text() | ToolCall() | Unknown() if item.seal is not None:
            made_by = item.seal.format
        case _:
            return
    if made_by != dialect.reasoning_format:
        raise ForeignSeal(f"{made_by} reasoning can't go to a server that reads {dialect.reasoning_format}")
