"""Encodes Responses streams: all events of each element, numbered, and the response as a whole at the end."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Raw, Struct

from thoughtline.formats.framing import sse
from thoughtline.formats.json_text import Json, array, elements, encode, members, object_of, set_members
from thoughtline.formats.openai_responses.bodies import encode_status, encode_usage
from thoughtline.formats.openai_responses.elements import UNSAID, complete_element, encode_elements, encode_reasoning
from thoughtline.formats.streaming import EventEncoder
from thoughtline.providers import OPENAI_RESPONSES, Dialect
from thoughtline.values.errors import EncodeError
from thoughtline.values.events import (
    CallDelta,
    ItemDone,
    ReasoningDelta,
    Started,
    TextDelta,
    TurnDone,
)
from thoughtline.values.items import REASONING_KINDS, Item, Reasoning, ReasoningEncrypted, Text, ToolCall
from thoughtline.values.turns import Usage

_Members = list[tuple[str, Json | None]]
_EMPTY_PART = b'{"type":"output_text","text":"","annotations":[]}'


class _Open(Struct):
    """The element that is being written; its kind is empty if there is none."""

    kind: str = ""
    name: str = ""
    reasoning: list[Reasoning] = []
    parts: int = 0
    part_position: int | None = None
    part_text: list[str] = []
    is_summary: bool = False

    @property
    def is_sealed(self) -> bool:
        """Whether it has its ciphertext, which is always last."""
        return bool(self.reasoning) and isinstance(self.reasoning[-1], ReasoningEncrypted)


class StreamEncoder(EventEncoder):
    """Encodes events to the bytes of a Responses stream."""

    keep_alive = b": keep-alive\n\n"

    def __init__(self, dialect: Dialect = OPENAI_RESPONSES) -> None:
        super().__init__(dialect)
        self._number = 0
        self._output: list[bytes] = []
        self._open = _Open()
        self._written: set[int] = set()
        self._calls: dict[int, CallDelta] = {}

    def _start(self, event: Started) -> bytes:
        names = ("response.created", "response.in_progress")
        return b"".join(self._response(name, b'"in_progress"') for name in names)

    def pulse(self) -> bytes:
        """OpenAI's `keepalive`: Codex ignores comments. Before the first event its SDKs accept nothing else."""
        return self._event("keepalive", []) if self._number else self.keep_alive

    def _turn_done(self, event: TurnDone) -> bytes:
        return self._leave()

    def _fail(self, error: Raw) -> bytes:
        body = error if bytes(error)[:1] == b"{" else object_of([("message", error)])
        return sse(set_members(body, [("type", b'"error"')]), "error")

    def finish(self) -> bytes:
        """The end of the stream; nothing if the turn was cut off."""
        if self._finish is None:
            return b""
        status = encode_status(self._finish)
        name = "response." + bytes(status[0][1]).decode().strip('"')
        return self._response(name, status[0][1], [*status[1:], ("usage", encode_usage(self._usage or Usage()))])

    # --- frames ---

    def _event(self, name: str, rest: _Members) -> bytes:
        body = object_of([("type", encode(name)), ("sequence_number", encode(self._number)), *rest])
        self._number += 1
        return sse(body, name)

    def _response(self, name: str, status: bytes, rest: Sequence[tuple[str, bytes]] = ()) -> bytes:
        response = object_of(
            [
                ("id", encode(self._started.id or "")),
                ("object", b'"response"'),
                ("created_at", encode(self._started.created)),
                ("status", status),
                ("error", b"null"),
                ("model", encode(self._started.model or "")),
                ("output", array(self._output)),
                *UNSAID,
                *rest,
            ]
        )
        return self._event(name, [("response", response)])

    @property
    def _here(self) -> _Members:
        return [("output_index", encode(len(self._output)))]

    @property
    def _in_item(self) -> _Members:
        return [("item_id", encode(self._open.name)), *self._here]

    @property
    def _in_part(self) -> _Members:
        return [*self._in_item, ("content_index", b"0")]

    @property
    def _in_thought(self) -> _Members:
        where = "summary_index" if self._open.is_summary else "content_index"
        return [*self._in_item, (where, encode(self._open.parts))]

    def _made_name(self, kind: str, number: int) -> str:
        return f"{kind}_{self._started.id or 'thoughtline'}_{number}"

    def _enter(self, kind: str, element: bytes) -> bytes:
        """Announce a new element."""
        left = self._leave()
        self._open = _Open(kind, bytes(members(element).get("id", b"")).decode().strip('"'))
        return left + self._event("response.output_item.added", [*self._here, ("item", element)])

    def _close(self, element: bytes) -> bytes:
        """The element is done, under the name it was announced with; it becomes part of the output."""
        opened, self._open = self._open, _Open()
        if opened.name and (opened.kind != "reasoning" or "id" not in members(element)):
            element = set_members(element, [("id", encode(opened.name))])
        element = complete_element(element, self._started.id, len(self._output))
        done = self._event("response.output_item.done", [*self._here, ("item", element)])
        self._output.append(element)
        return done

    def _leave(self) -> bytes:
        """End the open element with the content written so far."""
        opened = self._open
        if opened.kind == "reasoning":
            return self._end_part() + self._close(encode_reasoning(opened.reasoning, self._dialect))
        return b"" if opened.part_position is None else self._end_item(self._item_so_far(opened))

    def _item_so_far(self, opened: _Open) -> Item:
        """The item built from the deltas, for an element that was never closed."""
        text = "".join(opened.part_text)
        if opened.kind == "message":
            return Text(text, None, opened.name or None)
        first = self._calls.get(opened.part_position or 0, CallDelta(0, 0, ""))
        return ToolCall(first.name or "", text, first.id, namespace=first.namespace)

    def _remember(self, position: int, text: str) -> None:
        self._written.add(position)
        self._open.part_text.append(text)

    # --- messages and calls ---

    def _text(self, event: TextDelta) -> bytes:
        frames = b""
        if self._open.part_position != event.position or self._open.kind != "message":
            frames = self._enter("message", self._new_message(event))
            self._open.part_position = event.position
            frames += self._event("response.content_part.added", [*self._in_part, ("part", _EMPTY_PART)])
        self._remember(event.position, event.text)
        delta = [*self._in_part, ("delta", encode(event.text)), ("logprobs", b"[]")]
        return frames + self._event("response.output_text.delta", delta)

    def _new_message(self, event: TextDelta) -> bytes:
        if event.choice != 0:
            raise EncodeError("a Responses stream holds one answer")
        name = event.item_id or self._made_name("msg", len(self._output) + bool(self._open.kind))
        return encode({"id": name, "type": "message", "status": "in_progress", "role": "assistant", "content": []})

    def _call(self, event: CallDelta) -> bytes:
        frames = b""
        if self._open.part_position != event.position:
            self._calls[event.position] = event
            kind, text = ("custom_tool_call", "input") if event.is_custom else ("function_call", "arguments")
            known = {"type": kind, "id": event.item_id or f"fc_{event.id or event.position}", "status": "in_progress"}
            call = {**known, "call_id": event.id or "", "name": event.name or "", text: ""}
            call |= {"namespace": event.namespace} if event.namespace is not None else {}
            frames = self._enter(kind, encode(call))
            self._open.part_position = event.position
        self._remember(event.position, event.arguments)
        if not event.arguments:
            return frames
        kind = "custom_tool_call_input" if self._open.kind == "custom_tool_call" else "function_call_arguments"
        return frames + self._event(f"response.{kind}.delta", [*self._in_item, ("delta", encode(event.arguments))])

    # --- reasoning ---

    def _reasoning(self, event: ReasoningDelta) -> bytes:
        frames = b""
        if self._open.kind != "reasoning" or self._open.is_sealed:
            name = event.item_id or self._made_name("rs", len(self._output))
            frames = self._enter("reasoning", encode({"id": name, "type": "reasoning", "summary": []}))
        opened = self._open
        if opened.part_position != event.position:
            frames += self._end_part()
            opened.part_position, opened.part_text, opened.is_summary = event.position, [], event.is_summary
            if event.is_summary:
                part = b'{"type":"summary_text","text":""}'
                frames += self._event("response.reasoning_summary_part.added", [*self._in_thought, ("part", part)])
        self._remember(event.position, event.text)
        return frames + self._thought("delta", ("delta", encode(event.text)))

    def _thought(self, step: str, *rest: tuple[str, bytes]) -> bytes:
        kind = "summary_text" if self._open.is_summary else "text"
        return self._event(f"response.reasoning_{kind}.{step}", [*self._in_thought, *rest])

    def _end_part(self) -> bytes:
        opened = self._open
        if opened.part_position is None or opened.kind != "reasoning":
            return b""
        text = encode("".join(opened.part_text))
        frames = self._thought("done", ("text", text))
        if opened.is_summary:
            part = object_of([("type", b'"summary_text"'), ("text", text)])
            frames += self._event("response.reasoning_summary_part.done", [*self._in_thought, ("part", part)])
        opened.part_position = None
        opened.parts += 1
        return frames

    # --- items ---

    def _item_done(self, event: ItemDone) -> bytes:
        item = event.item
        if isinstance(item, REASONING_KINDS):
            return self._reasoning_done(item)
        if self._open.part_position == event.position:
            return self._end_item(item)
        if event.position in self._written:
            return b""
        left = self._leave()
        element = encode_elements((item,), self._dialect)[0]
        element = complete_element(element, self._started.id, len(self._output))
        return left + self._enter("other", element) + self._close(element)

    def _reasoning_done(self, item: Reasoning) -> bytes:
        frames = b""
        before = self._open.reasoning
        if self._open.kind != "reasoning" or (before and before[-1].index != item.index):
            frames = self._leave()
            announced = complete_element(encode_reasoning([item], self._dialect), self._started.id, len(self._output))
            frames += self._enter("reasoning", set_members(announced, [("encrypted_content", None)]))
        self._open.reasoning.append(item)
        return frames

    def _end_item(self, item: Item) -> bytes:
        element = encode_elements((item,), self._dialect)[0]
        frames = b""
        if isinstance(item, Text):
            frames = self._text_done(item, element)
        elif isinstance(item, ToolCall):
            frames = self._call_done(item)
        return frames + self._close(element)

    def _text_done(self, item: Text, element: bytes) -> bytes:
        """The notes of a text, which come with its end, and the end."""
        text = encode(item.text)
        part = object_of([("type", b'"output_text"'), ("text", text), ("annotations", b"[]")])
        frames = b""
        if item.raw and (parts := elements(members(element).get("content", Raw(b"[]")))):
            part = bytes(parts[0])
            for at, one in enumerate(elements(members(part).get("annotations", Raw(b"[]")))):
                rest: _Members = [*self._in_part, ("annotation_index", encode(at)), ("annotation", one)]
                frames += self._event("response.output_text.annotation.added", rest)
        frames += self._event("response.output_text.done", [*self._in_part, ("text", text), ("logprobs", b"[]")])
        return frames + self._event("response.content_part.done", [*self._in_part, ("part", part)])

    def _call_done(self, item: ToolCall) -> bytes:
        if item.is_custom:
            rest: _Members = [*self._in_item, ("input", encode(item.arguments))]
            return self._event("response.custom_tool_call_input.done", rest)
        rest = [*self._in_item, ("name", encode(item.name)), ("arguments", encode(item.arguments))]
        return self._event("response.function_call_arguments.done", rest)
