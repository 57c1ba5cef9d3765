"""Reads the reasoning of one assistant message from a response and writes it to the next request, for any provider.

    codec = codec_for("openrouter")
    items = codec.parse_response(response)             a message, or the whole body with it
    message = codec.write_assistant(message, items)    all bytes except reasoning stay

A codec is a wire format with a dialect: everything about the shape of reasoning is in `thoughtline.formats`. Items are
a flat list here. `index` is an item's position in its message, so that thinking between two calls is written back
between them; a signature on a call is an encrypted item with the call's id, as in OpenRouter's format.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any, Protocol, TypeAlias, TypeVar

import msgspec
from msgspec import Raw, Struct
from msgspec.structs import replace

from thoughtline.formats import FORMATS, USUAL, Wire
from thoughtline.formats.json_text import (
    NULL,
    array,
    decode,
    decode_list,
    encode,
    is_array,
    is_given,
    json_given,
    members,
    object_of,
    set_members,
)
from thoughtline.formats.reasoning_details import decode_detail, encode_detail
from thoughtline.providers import REASONING_DETAILS, Dialect, ProviderRow, host_named, maker_of
from thoughtline.replay.detection import resolve
from thoughtline.values.destination import Destination
from thoughtline.values.errors import DecodeError
from thoughtline.values.items import (
    REASONING_KINDS,
    Item,
    Reasoning,
    ReasoningEncrypted,
    Seal,
    Text,
    ToolCall,
    Unknown,
    is_strange_reasoning,
)
from thoughtline.values.turns import FormatName, Transcript, Turn

Json: TypeAlias = bytes | str | dict[str, Any] | list[Any]
Message = TypeVar("Message", bytes, dict[str, Any], list[Any])
"""JSON as it is on the wire, or as Python reads it; what is given back is of the same kind."""
Thought: TypeAlias = Reasoning | Unknown

EMPTY_DETAILS = Unknown("reasoning_details", Raw(b"[]"))
"""A message whose `reasoning_details` has no entries, as opposed to a message without that member: OpenRouter's AI SDK
provider sends it back on purpose, for DeepSeek (ai-sdk-provider, read 2026-11).
"""


class ReasoningCodec(Protocol):
    """Reads the reasoning of an answer, and writes it to the assistant message for it."""

    def parse_response(self, raw: Json) -> tuple[Thought, ...]: ...

    def write_assistant(self, message: Message, items: Sequence[Thought]) -> Message: ...


_object_decoder = msgspec.json.Decoder(dict[str, Raw])


def _json_text(raw: Json) -> bytes:
    """The JSON of what may have been parsed already."""
    return json_given(raw).strip()


def _as_given(message: Message, written: bytes) -> Message:
    """What was written, in the form of what was given."""
    return written if isinstance(message, bytes) else json.loads(written)  # type: ignore[no-any-return]  # JSON


def _answer(text: bytes, wire: Wire) -> bytes:
    """The message in a response; any other value is the message itself."""
    if is_array(text):
        return text
    for depth, step in enumerate(wire.message.path):
        if isinstance(step, int):
            found = next(iter(decode_list(text)), NULL)
        else:
            found = decode(_object_decoder, text).get(step, NULL)
        if not is_given(found):
            return text if depth == 0 else b"{}"
        text = bytes(found)
    return text


# --- reasoning_details -----------------------------------------------------------------------------------------------


class OpenRouterReasoningCodec(Struct, frozen=True):
    """`reasoning_details`, OpenRouter's one shape for the reasoning of all its upstreams.

    Every entry is returned unchanged, whatever it lacks and whatever its provider. A bare list is read as its entries.
    """

    def parse_response(self, raw: Json) -> tuple[Thought, ...]:
        """The entries of a message, in order; `EMPTY_DETAILS` for an empty list."""
        text = _answer(_json_text(raw), USUAL)
        return _details_of(decode_list(text)) if is_array(text) else _details_in(text)

    def write_assistant(self, message: Message, items: Sequence[Thought]) -> Message:
        """The message with these entries; with none to write, as it is."""
        text = json_given(message)
        if _details_in(text) == tuple(items) or not items:
            return message
        entries = [encode_detail(item) for item in items if item != EMPTY_DETAILS]
        return _as_given(message, set_members(text, [("reasoning_details", array(entries))]))


def _details_in(message: bytes) -> tuple[Thought, ...]:
    details = decode(_object_decoder, message).get("reasoning_details", NULL)
    if not is_given(details):
        return ()
    return _details_of(decode_list(details, "/reasoning_details")) or (EMPTY_DETAILS,)


def _details_of(entries: Sequence[Raw]) -> tuple[Thought, ...]:
    return tuple(decode_detail(entry.copy(), f"/reasoning_details/{at}") for at, entry in enumerate(entries))


# --- all other shapes -------------------------------------------------------------------------------------------------


class FormatReasoningCodec(Struct, frozen=True):
    """Reasoning in a wire format, in one of its dialects.

    For Responses, which has no messages of several items, a message is the array of a model step's elements.
    """

    format: FormatName
    dialect: Dialect

    def parse_response(self, raw: Json) -> tuple[Thought, ...]:
        """The reasoning of an answer, seals included, in order."""
        content = self._wire.message.content
        text = _answer(_json_text(raw), self._wire)
        if content and is_array(text):
            text = object_of([(content, text)])
        elif not content and not is_array(text):
            text = array([text])
        turns = self._alone(text).turns  # more than one only after a compaction, which returns the user's too
        return tuple(self._thoughts([item for turn in turns if turn.role == "assistant" for item in turn.items]))

    def write_assistant(self, message: Message, items: Sequence[Thought]) -> Message:
        """The message with this reasoning in the place of what it has; with none to write, as it is."""
        transcript = self._alone(json_given(message))
        own = _items_of(transcript)
        if not items or tuple(self._thoughts(own)) == tuple(items):
            return message
        visible: list[Item] = [item for item in own if not isinstance(item, REASONING_KINDS)]
        visible = [item for item in visible if not is_strange_reasoning(item)]
        if self._lifts_seals:
            visible = [_sealed(item, None) for item in visible]
        standing: list[Thought] = self._put_seals(visible, items) if self._lifts_seals else list(items)
        has_content = bool(self._wire.message.content)
        written = tuple(_woven(visible, standing) if self._is_in_order else [*standing, *visible])
        if has_content and self._is_in_order:
            written = tuple(map(_without_position, written))
        edited = transcript.with_items(0, written) if transcript.turns else _only(transcript, written)
        history = members(self._wire.bodies.encode_request(edited, self.dialect))[self._wire.list_member]
        return _as_given(message, bytes(decode_list(history)[0] if has_content else history))

    @property
    def _wire(self) -> Wire:
        return FORMATS[self.format]

    @property
    def _is_in_order(self) -> bool:
        """Whether reasoning has positions among the visible items."""
        return "one_text" not in self._wire.quirks

    @property
    def _lifts_seals(self) -> bool:
        """Whether reasoning is attached to calls and text in this format."""
        return "seals_on_items" in self._wire.quirks or self.dialect.carrier == "google_extra"

    def _alone(self, message: bytes) -> Transcript:
        """The message as the only one of a request."""
        place = self._wire.message
        if place.content:
            role = [] if "role" in decode(_object_decoder, message) else [("role", encode(place.role))]
            message = array([set_members(message, role)])
        else:
            decode_list(message)
        return self._wire.bodies.decode_request(object_of([(self._wire.list_member, message)]), self.dialect)

    def _thoughts(self, items: Sequence[Item]) -> Iterator[Thought]:
        at = 0  # position among visible items
        for position, item in enumerate(items):
            if isinstance(item, REASONING_KINDS):
                yield replace(item, index=position) if self._is_in_order and item.index is None else item
            elif is_strange_reasoning(item):
                yield item
            else:
                if self._lifts_seals and isinstance(item, (Text, ToolCall, Unknown)) and item.seal is not None:
                    name = item.id if isinstance(item, ToolCall) else None
                    yield ReasoningEncrypted(item.seal.data, item.seal.format, name, at)
                at += 1

    def _put_seals(self, visible: list[Item], items: Sequence[Thought]) -> list[Thought]:
        """Set each seal on the item it was taken from; returns the remaining items."""
        standing: list[Thought] = []
        for item in items:
            target = _target(visible, item) if isinstance(item, ReasoningEncrypted) else None
            if target is None or not isinstance(item, ReasoningEncrypted):
                standing.append(item)
            else:
                visible[target] = _sealed(visible[target], Seal(item.data, item.format))
        return standing


def _sealed(item: Item, seal: Seal | None) -> Item:
    return replace(item, seal=seal) if isinstance(item, (Text, ToolCall, Unknown)) else item


def _target(visible: Sequence[Item], item: ReasoningEncrypted) -> int | None:
    """The item a seal belongs to: the call it names, else the item at its position."""
    for position, candidate in enumerate(visible):
        if item.id is not None and isinstance(candidate, ToolCall) and candidate.id == item.id:
            return position
    is_placed = item.id is None and item.index is not None and 0 <= item.index < len(visible)
    return item.index if is_placed else None


def _woven(visible: Sequence[Item], standing: Sequence[Thought]) -> list[Item]:
    """Reasoning among visible items, each at its `index`; items with the same index stay together."""
    woven: list[Item] = [item for item in standing if _position(item) is None]
    placed = sorted((item for item in standing if _position(item) is not None), key=lambda item: _position(item) or 0)
    rest = list(visible)
    slot, last = 0, -1
    for item in placed:
        index = _position(item) or 0
        while slot < index and rest:
            woven.append(rest.pop(0))
            slot += 1
        slot += index != last
        last = index
        woven.append(item)
    return woven + rest


def _position(item: Thought) -> int | None:
    return None if isinstance(item, Unknown) else item.index


def _without_position(item: Item) -> Item:
    return replace(item, index=None) if isinstance(item, REASONING_KINDS) else item


def _items_of(transcript: Transcript) -> tuple[Item, ...]:
    if any(turn.role != "assistant" for turn in transcript.turns):
        raise DecodeError("reasoning belongs on an assistant message, and this is not one")
    return transcript.turns[0].items if transcript.turns else ()


def _only(transcript: Transcript, items: tuple[Item, ...]) -> Transcript:
    return transcript.with_turns((Turn("assistant", items),))


# --- which codec -----------------------------------------------------------------------------------------------------


def codec_for(provider: str, model: str = "") -> ReasoningCodec:
    """The codec of a provider, by its row. An unlisted provider speaks chat, and the model's maker decides the rest."""
    row = host_named(provider)
    format_name = _format_of(row, model)
    contract = resolve(Destination(provider, "", model or provider, format_name))
    if contract.dialect == REASONING_DETAILS:
        return OpenRouterReasoningCodec()
    return FormatReasoningCodec(format_name, contract.dialect)


def _format_of(row: ProviderRow | None, model: str) -> FormatName:
    """The format to use first for a provider; for a guest model the format of its maker, if the provider has one for
    guests.
    """
    maker = maker_of(model)
    if row is None or not row.formats:
        return USUAL.name
    return row.guests.get(maker.name, row.formats[0]) if maker is not None else row.formats[0]
