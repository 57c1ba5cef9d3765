"""Requests and whole responses of the Responses API; finish reasons and usage."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec
from msgspec import Raw, Struct

from thoughtline.formats.bodies import (
    UsageMembers,
    encode_conversation,
    encode_plain_system,
    text_member,
    thinking_switch,
)
from thoughtline.formats.end_users import NamesUser, end_user_of
from thoughtline.formats.json_text import (
    NULL,
    array,
    decode,
    encode,
    is_array,
    is_given,
    object_of,
    of_upstream,
    set_members,
    those_given,
)
from thoughtline.formats.openai_responses.elements import (
    UNSAID,
    complete_element,
    decode_answer_element,
    decode_element,
    encode_elements,
    encode_message,
)
from thoughtline.providers import OPENAI_RESPONSES, Dialect
from thoughtline.values.errors import DecodeError
from thoughtline.values.items import Item, Role, Text, ToolCall
from thoughtline.values.turns import SYSTEM_MEMBER, Candidate, Finish, FinishReason, Reply, Transcript, Turn, Usage


class _Request(NamesUser, gc=False, kw_only=True):
    input: str | list[Raw] | None = None
    instructions: Raw = NULL
    model: str = ""
    stream: bool | None = None
    tools: list[Raw] | None = None
    reasoning: Raw = NULL
    store: bool | None = None
    include: list[str] | None = None
    prompt: Raw = NULL
    conversation: Raw = NULL
    previous_response_id: Raw = NULL


class _Incomplete(Struct, gc=False):
    reason: str | None = None


class Response(Struct, gc=False):
    """The members of a whole response that we decode."""

    output: list[Raw] | None = None
    id: str | None = None
    model: str | None = None
    status: str | None = None
    incomplete_details: _Incomplete | None = None
    usage: Raw = NULL
    error: Raw = NULL


_WIRE_ROLES: dict[Role, str] = {"system": "developer", "other": "user"}
_request_decoder = msgspec.json.Decoder(_Request)
response_decoder = msgspec.json.Decoder(Response)
_string_decoder = msgspec.json.Decoder(str)


def decode_request(body: bytes, dialect: Dialect = OPENAI_RESPONSES) -> Transcript:
    """A Responses request as typed turns: neighbouring elements of the model are one turn."""
    request = decode(_request_decoder, body)
    turns: list[Turn] = []
    if is_given(request.instructions):
        turns.append(Turn("system", _decode_instructions(request.instructions), SYSTEM_MEMBER))
    if isinstance(request.input, str):
        turns.append(Turn("user", (Text(request.input),), 0))
    else:
        turns += _decode_list(request.input or (), dialect)
    return Transcript(
        "openai_responses",
        tuple(turns),
        body,
        model=request.model,
        is_streaming=bool(request.stream),
        tools=tuple(request.tools or ()),
        thinking=thinking_switch(request.reasoning),
        is_stored=request.store,
        includes=tuple(request.include or ()),
        user=end_user_of(request),
        references=_references(request),
    )


def _references(request: _Request) -> tuple[Raw, ...]:
    """A stored prompt, the conversation stored at OpenAI, and instructions that are not decoded."""
    unread = request.instructions if is_array(request.instructions) else NULL
    return those_given(unread, request.prompt, request.conversation, request.previous_response_id)


def _decode_instructions(raw: Raw) -> tuple[Item, ...]:
    if bytes(raw)[:1] == b"[":  # responses echo instructions as a list of messages; some clients send that back
        return ()
    return (Text(decode(_string_decoder, raw, "/instructions")),)


def _decode_list(elements: Sequence[Raw], dialect: Dialect) -> list[Turn]:
    turns: list[Turn] = []
    step: list[Item] = []
    start = 0
    for at, raw in enumerate(elements):
        try:
            role, items = decode_element(raw, dialect, at - start if step else 0)
        except DecodeError as error:
            raise error.within(f"/input/{at}") from None
        if role == "assistant":
            start = at if not step else start
            step += items
            continue
        if step:
            turns.append(Turn("assistant", tuple(step), start, at - start))
            step = []
        turns.append(Turn(role, items, at))
    if step:
        turns.append(Turn("assistant", tuple(step), start, len(elements) - start))
    return turns


def encode_request(transcript: Transcript, dialect: Dialect = OPENAI_RESPONSES) -> bytes:
    """The body of a Responses request: unedited turns keep their bytes."""

    def encode_turn(turn: Turn, before: bytes | None) -> list[bytes]:
        if turn.role in ("assistant", "tool"):
            return encode_elements(turn.items, dialect)
        if before and decode_element(Raw(before), dialect, 0)[1] == turn.items:
            return [before]
        return [encode_message(_WIRE_ROLES.get(turn.role, turn.role), turn.items, before)]

    return encode_conversation(
        text_member(transcript, "input"), "input", encode_turn, "instructions", encode_plain_system
    )


@of_upstream
def decode_response(body: bytes, dialect: Dialect = OPENAI_RESPONSES) -> Reply:
    """A whole response or an error."""
    return reply_of(decode(response_decoder, body), body, dialect)


def reply_of(response: Response, body: bytes, dialect: Dialect) -> Reply:
    """The reply in a response object, from a body or from the last event of a stream."""
    error = response.error.copy() if is_given(response.error) else None
    if response.output is None:
        return Reply(
            "openai_responses", (), body, id=response.id, model=response.model, usage=None, error=error or Raw(body)
        )
    items: list[Item] = []
    for at, raw in enumerate(response.output):
        try:
            items += decode_answer_element(raw, dialect, at)
        except DecodeError as problem:
            raise problem.within(f"/output/{at}") from None
    why = response.incomplete_details.reason if response.incomplete_details else None
    candidate = Candidate(Turn("assistant", tuple(items)), 0, decode_finish(response.status, why, items))
    usage = USAGE.decode(response.usage) if is_given(response.usage) else None
    return Reply("openai_responses", (candidate,), body, id=response.id, model=response.model, usage=usage, error=error)


def encode_response(reply: Reply, dialect: Dialect = OPENAI_RESPONSES) -> bytes:
    """The body of a whole response: unchanged except for the edits."""
    if reply.body and not reply.is_edited:
        return reply.body
    candidate = reply.candidates[0] if reply.candidates else Candidate(Turn("assistant", ()))
    elements = encode_elements(candidate.turn.items, dialect)
    if reply.body:
        return set_members(reply.body, [("output", array(elements))])
    return object_of(
        [
            ("id", encode(reply.id or "")),
            ("object", b'"response"'),
            ("created_at", encode(reply.created)),
            *encode_status(candidate.finish),
            ("error", b"null"),
            ("model", encode(reply.model or "")),
            ("output", array(complete_element(one, reply.id, number) for number, one in enumerate(elements))),
            *UNSAID,
            ("usage", encode_usage(reply.usage) if reply.usage else None),
        ]
    )


# --- finish reasons and usage -----------------------------------------------------------------------------------------


USAGE = UsageMembers(
    "/usage",
    input="input_tokens",
    output="output_tokens",
    reasoning="output_tokens_details.reasoning_tokens",
    cached="input_tokens_details.cached_tokens",
    cache_written="input_tokens_details.cache_write_tokens",
)
_INCOMPLETE: dict[str, FinishReason] = {"max_output_tokens": "length", "content_filter": "content_filter"}


def encode_usage(usage: Usage) -> bytes:
    return encode(
        {
            "input_tokens": usage.input,
            "input_tokens_details": {"cached_tokens": usage.cached, "cache_write_tokens": usage.cache_written},
            "output_tokens": usage.output,
            "output_tokens_details": {"reasoning_tokens": usage.reasoning},
            "total_tokens": usage.input + usage.output,
        }
    )


def decode_finish(status: str | None, why: str | None, items: Iterable[Item]) -> Finish | None:
    """A response in progress has no finish."""
    match status:
        case "completed" | None:
            reason: FinishReason = "stop"
            for item in items:
                if isinstance(item, ToolCall):
                    reason = "tool_calls"
            return Finish(reason, status or "completed")
        case "incomplete":
            return Finish(_INCOMPLETE.get(why or "", "other"), status)
        case "failed" | "cancelled":
            return Finish("error", status)
        case _:
            return None


def encode_status(finish: Finish | None) -> list[tuple[str, bytes]]:
    """`status`, and the reason if it is not complete."""
    if finish is None:
        return [("status", b'"in_progress"')]
    match finish.reason:
        case "length" | "content_filter" as reason:
            why = "max_output_tokens" if reason == "length" else reason
            return [("status", b'"incomplete"'), ("incomplete_details", encode({"reason": why}))]
        case "error":
            return [("status", b'"failed"')]
        case _:
            return [("status", b'"completed"')]
