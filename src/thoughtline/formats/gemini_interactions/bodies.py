"""Requests and whole responses of the Interactions API; finish reasons and usage."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain

import msgspec
from msgspec import Raw, Struct
from msgspec.structs import replace

from thoughtline.formats.bodies import (
    FinishWords,
    encode_conversation,
    encode_plain_system,
    text_member,
    thinking_switch,
)
from thoughtline.formats.end_users import NamesUser, end_user_of
from thoughtline.formats.gemini_interactions.steps import (
    decode_content,
    decode_step,
    encode_content,
    encode_step,
    encode_user_step,
    is_content,
)
from thoughtline.formats.json_text import (
    NULL,
    array,
    decode,
    decode_each,
    decode_list,
    encode,
    is_array,
    is_given,
    members,
    object_of,
    of_upstream,
    set_members,
    those_given,
)
from thoughtline.formats.vendor_shapes import GoogleUsage
from thoughtline.providers import INTERACTIONS, Dialect
from thoughtline.values.items import Item, Role, Text
from thoughtline.values.turns import SYSTEM_MEMBER, Candidate, Finish, Reply, Transcript, Turn, Usage


class _Request(NamesUser, gc=False, kw_only=True):
    input: Raw = NULL
    system_instruction: str | None = None
    model: str = ""
    stream: bool | None = None
    tools: list[Raw] | None = None
    generation_config: Raw = NULL
    store: bool | None = None
    previous_interaction_id: Raw = NULL


class Interaction(Struct, gc=False):
    steps: list[Raw] | None = None
    id: str | None = None
    model: str | None = None
    status: str | None = None
    usage: Raw = NULL
    error: Raw = NULL


_request_decoder = msgspec.json.Decoder(_Request)
interaction_decoder = msgspec.json.Decoder(Interaction)
_string_decoder = msgspec.json.Decoder(str)


def decode_request(body: bytes, dialect: Dialect = INTERACTIONS) -> Transcript:
    """A request as typed turns: neighbouring steps of the model are one turn."""
    request = decode(_request_decoder, body)
    turns: list[Turn] = []
    if request.system_instruction is not None:
        turns.append(Turn("system", (Text(request.system_instruction),), SYSTEM_MEMBER))
    turns += _decode_input(request.input, dialect)
    return Transcript(
        "gemini_interactions",
        tuple(turns),
        body,
        model=request.model,
        is_streaming=bool(request.stream),
        tools=tuple(request.tools or ()),
        thinking=thinking_switch(request.generation_config),
        is_stored=request.store,
        user=end_user_of(request),
        references=those_given(request.previous_interaction_id),
    )


def _decode_input(given: Raw, dialect: Dialect) -> list[Turn]:
    """A text, one content, or a list of contents or steps."""
    if is_array(given):
        return _decode_list(decode_list(given, "/input"), dialect)
    if bytes(given)[:1] == b'"':
        return [Turn("user", (Text(decode(_string_decoder, given, "/input")),), 0)]
    return [Turn("user", (decode_content(given),), 0)] if is_given(given) else []


def _decode_list(elements: Sequence[Raw], dialect: Dialect) -> list[Turn]:
    turns: list[Turn] = []
    run: list[Item] = []
    speaker: Role = "user"
    start, is_open = 0, False
    steps = decode_each(elements, lambda raw: decode_step(raw, dialect), "/input")
    for at, (role, items) in enumerate(steps):
        is_joined = role == "assistant" or is_content(bytes(elements[at]))
        if not (is_open and is_joined and role == speaker):
            if at:
                turns.append(Turn(speaker, tuple(run), start, at - start))
            run, start, speaker = [], at, role
        run += items
        is_open = is_joined
    if elements:
        turns.append(Turn(speaker, tuple(run), start, len(elements) - start))
    return turns


def encode_request(transcript: Transcript, dialect: Dialect = INTERACTIONS) -> bytes:
    """The body of a request: unedited turns keep their bytes."""

    def encode_turn(turn: Turn, before: bytes | None) -> list[bytes]:
        if turn.role in ("assistant", "tool"):
            return [encode_step(item, dialect) for item in turn.items]
        if before and is_content(before):
            return [encode_content(item) for item in turn.items]
        if before and decode_step(Raw(before), dialect)[1] == turn.items:
            return [before]
        return [encode_user_step(turn.items, before)]

    alone = _content_member(text_member(transcript, "input"))
    return encode_conversation(alone, "input", encode_turn, "system_instruction", encode_plain_system)


def _content_member(transcript: Transcript) -> Transcript:
    """A conversation that is a single content instead of a list: it stays so if possible."""
    turns = [turn for turn in transcript.turns if turn.at != SYSTEM_MEMBER]
    is_alone = len(turns) == 1 and turns[0].is_edited and len(turns[0].items) == 1
    if not is_alone or bytes(members(transcript.body).get("input", NULL))[:1] != b"{":
        return transcript
    edited = transcript.with_member("input", encode_content(turns[0].items[0]))
    kept = tuple(replace(turn, is_edited=False) if turn is turns[0] else turn for turn in edited.turns)
    return replace(edited, turns=kept)


@of_upstream
def decode_response(body: bytes, dialect: Dialect = INTERACTIONS) -> Reply:
    first = next(iter(decode_list(body)), body) if is_array(body.lstrip()) else body
    response = decode(interaction_decoder, first)
    error = response.error.copy() if is_given(response.error) else None
    usage = USAGE.decode(response.usage) if is_given(response.usage) else None
    candidates = () if response.steps is None else (_candidate(response, dialect),)
    return Reply(
        "gemini_interactions", candidates, body, id=response.id, model=response.model, usage=usage, error=error
    )


def _candidate(response: Interaction, dialect: Dialect) -> Candidate:
    steps = decode_each(response.steps or (), lambda raw: decode_step(raw, dialect)[1], "/steps")
    status = None if response.status in UNENDED else response.status
    return Candidate(Turn("assistant", tuple(chain.from_iterable(steps))), 0, FINISH.decode(status))


def encode_response(reply: Reply, dialect: Dialect = INTERACTIONS) -> bytes:
    """The body of a whole response: unchanged except for the edits."""
    if reply.body and not reply.is_edited:
        return reply.body
    candidate = reply.candidates[0] if reply.candidates else Candidate(Turn("assistant", ()))
    steps = array([encode_step(item, dialect) for item in candidate.turn.items])
    if reply.body:
        return set_members(reply.body, [("steps", steps)])
    return encode_interaction(reply.id, reply.model, candidate.finish, reply.usage, steps)


def encode_interaction(
    id: str | None, model: str | None, finish: Finish | None, usage: Usage | None, steps: bytes | None = None
) -> bytes:
    """A new interaction; in a stream it has no steps."""
    return object_of(
        [
            ("id", encode(id or "")),
            ("object", b'"interaction"'),
            ("status", FINISH.encode(finish) if finish else b'"in_progress"'),
            ("model", encode(model or "")),
            ("steps", steps),
            ("usage", USAGE.encode(usage) if usage else None),
        ]
    )


# --- finish reasons and usage -----------------------------------------------------------------------------------------


FINISH = FinishWords(
    known={
        "completed": "stop",
        "requires_action": "tool_calls",
        "incomplete": "length",
        "budget_exceeded": "length",
        "failed": "error",
        "cancelled": "other",
    },
    written={
        "stop": "completed",
        "tool_calls": "requires_action",
        "length": "incomplete",
        "content_filter": "incomplete",
        "error": "failed",
        "other": "completed",
    },
)
UNENDED = ("queued", "in_progress")
"""An interaction that continues in the background."""

USAGE = GoogleUsage(
    "/usage",
    input="total_input_tokens",
    output="total_output_tokens",
    thoughts="total_thought_tokens",
    cached="total_cached_tokens",
    total="total_tokens",
)
