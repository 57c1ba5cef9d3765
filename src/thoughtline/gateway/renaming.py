"""Renames calls of tools that the provider knows by other names, for a client of the same format.

Only the names of such calls change; all other bytes stay the same.
"""

from __future__ import annotations

import msgspec
from msgspec import Raw, Struct

from thoughtline.formats.framing import EditedStream, Frame, ServerSentEvents
from thoughtline.formats.json_text import NULL, array, elements, encode, is_given, members, object_of, set_members
from thoughtline.translation.searches import search_call
from thoughtline.translation.tools import ClientTool, ToolNames
from thoughtline.values.items import ToolCall

_MARK = b"function_call"
_GROWS = "response.function_call_arguments.delta"
_GROWN = "response.function_call_arguments.done"
_TEXT = "response.custom_tool_call_input"


class _Event(Struct, gc=False):
    type: str = ""
    output_index: int = 0
    sequence_number: int | None = None
    item_id: str = ""
    name: str = ""
    arguments: str = ""
    item: Raw = NULL
    response: Raw = NULL


class _Call(Struct, gc=False):
    type: str = ""
    name: str = ""
    arguments: str = ""
    call_id: str = ""


_event_decoder = msgspec.json.Decoder(_Event)
_call_decoder = msgspec.json.Decoder(_Call)


class RenamedCalls(EditedStream):
    """Edits a Responses answer, whole or as a stream, to have the client's names for its calls."""

    def __init__(self, names: ToolNames) -> None:
        super().__init__(ServerSentEvents())
        self._names = names
        self._texts: dict[int, ToolCall] = {}
        self._searches: set[int] = set()
        self._number: int | None = None

    def whole(self, body: bytes) -> bytes:
        """Edit a body. One that can't be read is passed on unchanged."""
        try:
            return self._response(body) if _MARK in body else body
        except (msgspec.DecodeError, UnicodeDecodeError):
            return body

    # --- events -------------------------------------------------------------------------------------------------------

    def _edit(self, event: Frame) -> bytes:
        if _MARK not in event.payload:
            return event.raw
        try:
            known = _event_decoder.decode(event.payload)
        except (msgspec.DecodeError, UnicodeDecodeError):
            return event.raw
        match known.type:
            case "response.output_item.added" | "response.output_item.done":
                return self._item_event(event, known)
            case kind if kind in (_GROWS, _GROWN) and known.output_index in self._searches:
                return b""  # the query is in the item
            case kind if kind == _GROWS and known.output_index in self._texts:
                self._number = known.sequence_number
                return b""  # free text is read when it is complete
            case kind if kind == _GROWN:
                return self._grown(event, known)
            case _ if is_given(known.response):
                return _with_payload(event, [("response", self._response(bytes(known.response)))])
            case _:
                return event.raw

    def _item_event(self, event: Frame, known: _Event) -> bytes:
        item, call = self._element(known.item)
        if call is None:
            return event.raw
        if call.is_custom:
            self._texts[known.output_index] = call
        if self._names.is_search(call.name):
            self._searches.add(known.output_index)
        return _with_payload(event, [("item", bytes(item))])

    def _grown(self, event: Frame, known: _Event) -> bytes:
        text = self._texts.get(known.output_index)
        if text is None:
            tool = self._names.client.get(known.name)
            return _with_payload(event, [("name", encode(tool.name))]) if tool is not None else event.raw
        wanted = ClientTool(text.name, text.namespace, True)
        name = next(name for name, tool in self._names.client.items() if tool == wanted)
        text_input = encode(self._names.called(ToolCall(name, known.arguments)).arguments)
        number = self._number if self._number is not None else known.sequence_number
        here = [("item_id", encode(known.item_id)), ("output_index", encode(known.output_index))]
        delta = object_of([*_numbered(f"{_TEXT}.delta", number), *here, ("delta", text_input)])
        done = object_of([*_numbered(f"{_TEXT}.done", known.sequence_number), *here, ("input", text_input)])
        return _renamed(event, f"{_TEXT}.delta", delta) + _renamed(event, f"{_TEXT}.done", done)

    # --- elements -----------------------------------------------------------------------------------------------------

    def _response(self, body: bytes) -> bytes:
        output = members(body).get("output", NULL)
        if bytes(output)[:1] != b"[":
            return body
        changed = [self._element(raw) for raw in elements(output)]
        if all(call is None for _, call in changed):
            return body
        return set_members(body, [("output", array(raw for raw, _ in changed))])

    def _element(self, raw: Raw) -> tuple[Raw, ToolCall | None]:
        """Return an element and, if it is a renamed call, the call by the client's name."""
        try:
            known = _call_decoder.decode(raw)
        except (msgspec.DecodeError, UnicodeDecodeError):
            return raw, None
        if known.type != "function_call" or known.name not in self._names.client:
            return raw, None
        if self._names.is_search(known.name):
            call = ToolCall(known.name, known.arguments, known.call_id)
            return search_call(known.call_id, known.arguments).raw, call
        call = self._names.called(ToolCall(known.name, known.arguments))
        changes: list[tuple[str, bytes | None]] = [("name", encode(call.name))]
        if call.namespace is not None:
            changes.append(("namespace", encode(call.namespace)))
        if call.is_custom:
            changes += [("type", b'"custom_tool_call"'), ("arguments", None), ("input", encode(call.arguments))]
        return Raw(set_members(raw, changes)), call


def _numbered(name: str, number: int | None) -> list[tuple[str, bytes | None]]:
    return [("type", encode(name)), ("sequence_number", None if number is None else encode(number))]


def _with_payload(event: Frame, changes: list[tuple[str, bytes | None]]) -> bytes:
    return event.with_payload(set_members(event.payload, changes))


def _renamed(event: Frame, name: str, payload: bytes) -> bytes:
    return event.head.replace(_GROWN.encode(), name.encode()) + payload + event.tail
