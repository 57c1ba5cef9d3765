"""Shared code for bodies of all formats: writing an edited conversation back into its body; finish reasons and usage;
whether a request asks the model to think.

Every request format keeps its conversation as a list in one member of the body. Unedited turns keep their bytes and the
separators between them; an edited turn is encoded by its format; the rest of the body does not change.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec
from msgspec import Raw, Struct
from msgspec.structs import replace

from thoughtline.formats.json_text import (
    NULL,
    Member,
    array,
    decode,
    element_spans,
    encode,
    member_spans,
    members,
    read_or_none,
    set_members,
)
from thoughtline.formats.lone_surrogates import as_sent, readable
from thoughtline.providers import Dialect
from thoughtline.values.errors import DecodeError, ForeignSeal
from thoughtline.values.items import Item, ReasoningEncrypted, ReasoningText, Text, ToolCall, Unknown
from thoughtline.values.turns import SYSTEM_MEMBER, Finish, FinishReason, ThinkingSwitch, Transcript, Turn, Usage

EncodeTurn = Callable[[Turn, bytes | None], list[bytes]]
"""From a turn, and the first element it was decoded from (None for a new turn), to its new elements."""

EncodeSystem = Callable[[Turn, bytes | None], bytes]
"""From the system turn outside the list, and the JSON it was decoded from, to its new JSON."""


def reading(decode_request: Callable[[bytes, Dialect], Transcript]) -> Callable[[bytes, Dialect], Transcript]:
    """A decoder of requests that accepts lone surrogates; `encode_conversation` writes them back."""

    def read(body: bytes, dialect: Dialect) -> Transcript:
        try:
            return decode_request(body, dialect)
        except DecodeError:
            spelled = readable(body)
            if spelled is None:
                raise
        return replace(decode_request(spelled, dialect), has_lone_surrogates=True)

    return read


def encode_conversation(
    transcript: Transcript,
    list_member: str,
    encode_turn: EncodeTurn,
    system_member: str = "",
    encode_system: EncodeSystem | None = None,
) -> bytes:
    """The body of the request: the client's own bytes except for the edits."""
    if transcript.has_lone_surrogates:
        spelled = replace(transcript, has_lone_surrogates=False)
        return as_sent(encode_conversation(spelled, list_member, encode_turn, system_member, encode_system))
    body = transcript.body
    if not transcript.is_edited:
        return body
    spans = member_spans(body)
    edits = list(transcript.member_edits)
    turns: list[Turn] = []
    for turn in transcript.turns:
        if turn.at != SYSTEM_MEMBER:
            turns.append(turn)
        elif turn.is_edited and encode_system is not None:
            edits.append((system_member, encode_system(turn, _value(body, spans, system_member))))
    if not edits and not transcript.is_reshaped and not transcript.drops_system:
        spliced = _splice(turns, body, spans, list_member, encode_turn)
        if spliced is not None:
            return spliced
    if transcript.drops_system and system_member not in dict(edits):
        edits.append((system_member, None))
    if transcript.is_reshaped or any(turn.is_edited for turn in turns):
        text = _value(body, spans, list_member) or b"[]"
        encode_list = _encode_new_list if transcript.is_reshaped or text[:1] != b"[" else _encode_edits
        edits.append((list_member, encode_list(turns, text, encode_turn)))
    return set_members(body, edits, spans)


def _value(body: bytes, spans: list[Member], name: str) -> bytes | None:
    """The JSON of a member; the last one counts if several have the name."""
    for member in reversed(spans):
        if member.key == name:
            return body[member.value_start : member.end]
    return None


def _splice(
    turns: list[Turn], body: bytes, known: list[Member], list_member: str, encode_turn: EncodeTurn
) -> bytes | None:
    """The body with edited turns spliced into its list, copied once. None if other changes are needed."""
    place: Member | None = None
    for member in known:
        if member.key == list_member:
            if place is not None:
                return None
            place = member
    if place is None or body[place.value_start : place.value_start + 1] != b"[":
        return None
    spans = element_spans(body, place.value_start, place.end)
    view = memoryview(body)
    pieces: list[bytes | memoryview] = []
    position = 0
    for turn in turns:
        if turn.is_edited:
            own = spans[turn.at : turn.at + turn.spans]
            elements = encode_turn(turn, body[own[0][0] : own[0][1]])
            if not elements:
                return None
            pieces += [view[position : own[0][0]], b",".join(elements)]
            position = own[-1][1]
    return b"".join([*pieces, view[position:]])


def _encode_edits(turns: list[Turn], text: bytes, encode_turn: EncodeTurn) -> bytes:
    """The list with its edited turns; the other elements are not looked at."""
    whole = [Member("", 0, 0, len(text))]
    return _splice(turns, text, whole, "", encode_turn) or _encode_new_list(turns, text, encode_turn)


def _encode_new_list(turns: list[Turn], text: bytes, encode_turn: EncodeTurn) -> bytes:
    """A list with turns added, removed or moved. Turns that are still neighbours keep the bytes between them."""
    spans = element_spans(text) if text[:1] == b"[" else []
    pieces = [text[: spans[0][0]] if spans else b"["]
    before: Turn | None = None
    for turn in turns:
        own = spans[turn.at : turn.at + turn.spans] if turn.at >= 0 else []
        if own and not turn.is_edited:
            piece = text[own[0][0] : own[-1][1]]
        else:
            piece = b",".join(encode_turn(turn, text[own[0][0] : own[0][1]] if own else None))
        if piece:
            is_neighbour = before is not None and before.at >= 0 and turn.at == before.at + before.spans
            between = text[spans[turn.at - 1][1] : spans[turn.at][0]] if is_neighbour else b","
            pieces += [between if before is not None else b"", piece]
            before = turn
    pieces.append(text[spans[-1][1] :] if spans else b"]")
    return b"".join(pieces)


def text_member(transcript: Transcript, name: str, others: str = "") -> Transcript:
    """Write a conversation that is a single text (`input`, `prompt`): an edit goes into that member, not into a list.

    `others` names the member for everything besides the text.
    """
    if len(transcript.turns) > 2:
        return transcript
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
    """A system prompt that is a single text."""
    return encode("".join(item.text for item in turn.items if isinstance(item, Text)))


# --- checks that every encoder makes of an item: is its JSON still right, may its seal be sent to this server
# ----------


def as_it_came(item: Item, decode: Callable[[Raw, Dialect], Item], dialect: Dialect) -> Item | None:
    """The item decoded from its JSON in this format; None if it has none, or that of another format."""
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


# --- finish reasons and usage: each format has two tables -------------------------------------------------------------


class FinishWords(NamedTuple):
    """A format's finish reasons: how they are read, and which one is written for a shared reason (that of `stop` by
    default).

    `foreign` are finish reasons of other hosts with this format; they are read but not written.
    """

    known: Mapping[str, FinishReason]
    written: Mapping[FinishReason, str]
    foreign: Mapping[str, FinishReason] = {}

    def decode(self, native: str | None, items: Iterable[Item] = ()) -> Finish | None:
        """`items` are for formats without a finish reason for calls."""
        if not native:
            return None
        reason = self.known.get(native) or self.foreign.get(native, "other")
        for item in items if reason == "stop" else ():
            if isinstance(item, ToolCall):
                reason = "tool_calls"
        return Finish(reason, native)

    def encode(self, finish: Finish | None) -> bytes:
        if finish is None:
            return b"null"
        return encode(
            finish.native if finish.native in self.known else self.written.get(finish.reason, self.written["stop"])
        )


class UsageMembers:
    """Where a format has token counts: for each count the members to add up. `.` separates nested members, `|`
    alternative names of different servers.
    """

    def __init__(
        self, place: str, *, input: str, output: str, reasoning: str = "", cached: str = "", cache_written: str = ""
    ) -> None:
        self._place = place
        self._paths = [
            [[path.split(".") for path in paths.split("|")] for paths in one.split()]
            for one in (input, output, reasoning, cached, cache_written)
        ]
        self._decoder = msgspec.json.Decoder(_shape([path for one in self._paths for paths in one for path in paths]))

    def decode(self, raw: Raw) -> Usage:
        usage = decode(self._decoder, raw, self._place)
        counts = [0, 0, 0, 0, 0]
        for at, sums in enumerate(self._paths):
            for names in sums:
                for path in names:
                    count: Any = usage
                    for name in path:
                        count = getattr(count, name) if count is not None else None
                    if count:
                        counts[at] += count
                        break
        into, out, reasoning, cached, written = counts
        return Usage(into, out, reasoning, cached, raw.copy(), cache_written=written)


def _shape(paths: Sequence[Sequence[str]]) -> type[Struct]:
    """A struct with these members: numbers, or structs."""
    inner: dict[str, list[Sequence[str]]] = {}
    for first, *rest in paths:
        inner.setdefault(first, []).extend([rest] if rest else [])
    fields: list[tuple[str, Any, None]] = [
        (name, (_shape(deeper) if deeper else int) | None, None) for name, deeper in inner.items()
    ]
    return msgspec.defstruct("Usage", fields, gc=False)


# --- whether a request asks the model to think, read from all known switches
# -------------------------------------------
# Only what the request says: the model's default is part of its contract.

_plain_decoder = msgspec.json.Decoder()
_OFF_WORDS = ("none", "off", "disabled", "false", "disable")
_NESTED = ("type", "enabled", "effort", "thinkingConfig", "thinking_config", "thinking", "enable_thinking")
_BUDGETS = ("budget_tokens", "thinkingBudget", "thinking_budget", "thinkingLevel", "thinking_level", "max_tokens")
_INSIDE = (*_NESTED, *_BUDGETS, "reasoning_config", "reasoningConfig", "reasoning_effort")


def thinking_switch(*values: Raw) -> ThinkingSwitch:
    """The first of these members that is set. An unreadable one counts as not set: the provider will reject it."""
    for value in values:
        if value is not NULL:
            switch = _switch_in(read_or_none(_plain_decoder, value))
            if switch != "unsaid":
                return switch
    return "unsaid"


def switches_in(values: Iterable[tuple[str, Raw]]) -> tuple[tuple[str, ThinkingSwitch], ...]:
    """The values of these members, where set."""
    found: list[tuple[str, ThinkingSwitch]] = []
    for name, value in values:
        if value is not NULL and (switch := _switch_in(read_or_none(_plain_decoder, value))) != "unsaid":
            found.append((name, switch))
    return tuple(found)


def _switch_in(value: Any) -> ThinkingSwitch:
    match value:
        case bool():
            return "on" if value else "off"
        case int() | float():
            return "off" if value == 0 else "on"
        case str():
            return "off" if value.lower() in _OFF_WORDS else "adaptive" if value == "adaptive" else "on"
        case Mapping():
            for name in _INSIDE:
                if name in value and (switch := _switch_in(value[name])) != "unsaid":
                    return switch
    return "unsaid"
