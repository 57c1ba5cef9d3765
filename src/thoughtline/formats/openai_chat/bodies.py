"""Chat requests, and whole responses: `choices`, or Cohere's single `message` with its finish reason."""

from __future__ import annotations

import msgspec
from msgspec import Raw, Struct

from thoughtline.formats.bodies import FinishWords, UsageMembers, encode_conversation, switches_in
from thoughtline.formats.end_users import NamesUser, end_user_of, member_of, members_of
from thoughtline.formats.json_text import (
    NULL,
    array,
    decode,
    decode_list,
    encode,
    is_array,
    is_given,
    object_of,
    of_upstream,
    replace_at,
    set_members,
    span_at,
    those_given,
)
from thoughtline.formats.openai_chat.message_encoder import encode_message
from thoughtline.formats.openai_chat.messages import (
    ROLES,
    Message,
    answer_carriers,
    carrier_among,
    carriers_of,
    decode_items,
    with_reasoning,
)
from thoughtline.formats.openai_chat.notes import decode_annotations, encode_annotations, with_addresses
from thoughtline.providers import REASONING_CONTENT, Dialect, written_in
from thoughtline.values.errors import DecodeError
from thoughtline.values.items import Item, ReasoningText
from thoughtline.values.notes import NO_NOTES
from thoughtline.values.turns import Candidate, Finish, Reply, Transcript, Turn, Usage

SWITCHES = ("thinking", "enable_thinking", "reasoning", "reasoning_effort", "chat_template_kwargs", "think")
"""Members that switch thinking, each at some servers: the first one set counts if several are allowed."""


class _Request(NamesUser, gc=False, kw_only=True):
    messages: list[Message]
    model: str = ""
    stream: bool | None = None
    tools: list[Raw] | None = None
    thinking: Raw = NULL
    enable_thinking: Raw = NULL
    reasoning_effort: Raw = NULL
    reasoning: Raw = NULL
    chat_template_kwargs: Raw = NULL
    think: Raw = NULL
    documents: Raw = NULL
    extra_body: Raw = NULL


_request_decoder = msgspec.json.Decoder(_Request)


def decode_request(body: bytes, dialect: Dialect = REASONING_CONTENT) -> Transcript:
    """A chat request as typed turns, one for each message."""
    request = decode(_request_decoder, body)
    turns: list[Turn] = []
    add, role_of = turns.append, ROLES.get  # called for every message of every history: the direct way
    for at, message in enumerate(request.messages):
        try:
            items = decode_items(message, dialect)
        except DecodeError as error:
            raise error.within(f"/messages/{at}") from None
        role = message.role
        if role == "assistant":
            add(Turn("assistant", items, at, carriers=carriers_of(message)))
        elif role == "user" and message.name:
            add(Turn("user", items, at, speaker=message.name))
        else:
            add(Turn(role_of(role, "other"), items, at))
    switches = switches_in([(name, getattr(request, name)) for name in SWITCHES])
    return Transcript(
        "openai_chat",
        tuple(turns),
        body,
        model=request.model,
        is_streaming=bool(request.stream),
        tools=tuple(request.tools or ()),
        thinking=switches[0][1] if switches else "unsaid",
        switches=switches,
        user=end_user_of(request),
        references=_references(request),
    )


def _references(request: _Request) -> tuple[Raw, ...]:
    """Documents that a server's template writes into the prompt, and cached content at a provider: Gemini's name of it
    is in `extra_body`, among Google's other members.
    """
    if request.documents is NULL and request.extra_body is NULL:
        return ()
    cached = (member_of(held, "cached_content") for held in members_of(request.extra_body).values())
    return those_given(request.documents, *cached)


def encode_request(transcript: Transcript, dialect: Dialect = REASONING_CONTENT) -> bytes:
    """The body of a chat request: unedited turns keep their bytes."""

    def encode_turn(turn: Turn, before: bytes | None) -> list[bytes]:
        if not before:
            return [encode_message(turn.role, turn.items, None, dialect)]
        own = written_in(dialect, turn.carrier)
        if turn.items[1:] == turn.original and not turn.moves_reasoning:
            restored = with_reasoning(before, turn.items, own)
            if restored is not None:
                return [restored]
        return [encode_message(turn.role, turn.items, before, own, turn.moves_reasoning)]

    return encode_conversation(transcript, "messages", encode_turn)


class _Choice(Struct, gc=False):
    message: Message | None = None
    index: int = 0
    finish_reason: str | None = None


class _Response(Struct, gc=False):
    choices: list[_Choice] | None = None
    message: Raw = NULL
    finish_reason: str | None = None
    id: str | None = None
    model: str | None = None
    usage: Raw = NULL
    error: Raw = NULL
    citations: Raw = NULL


_UNSAID = Finish("other", "")
"""A whole body has ended, even if a host omits the reason."""

_response_decoder = msgspec.json.Decoder(_Response)
_message_decoder = msgspec.json.Decoder(Message)


@of_upstream
def decode_response(body: bytes, dialect: Dialect = REASONING_CONTENT) -> Reply:
    """A whole chat response, errors included."""
    # Gemini's compatible endpoint wraps its errors in an array.
    whole = next(iter(decode_list(body)), Raw(body)) if is_array(body.lstrip()) else Raw(body)
    response = decode(_response_decoder, whole)
    candidates: list[Candidate] = []
    if response.choices is not None:
        for position, choice in enumerate(response.choices):
            candidates.append(_decode_choice(choice, position, dialect, response.citations))
    elif response.finish_reason is not None and bytes(response.message)[:1] == b"{":
        message = decode(_message_decoder, response.message, "/message")
        finish = FINISH.decode(response.finish_reason) or _UNSAID
        notes = with_addresses(decode_annotations(message.annotations), message.citations)
        candidates = [Candidate(Turn("assistant", _answer_items(message, dialect, "/message")), 0, finish, notes)]
    error = response.error.copy() if is_given(response.error) else None
    if error is None and not candidates and response.choices is None:
        error = Raw(body)  # a flat error body, as Cerebras and Bedrock-like hosts send
    usage = USAGE.decode(response.usage) if is_given(response.usage) else None
    return Reply("openai_chat", tuple(candidates), body, id=response.id, model=response.model, usage=usage, error=error)


def _decode_choice(choice: _Choice, position: int, dialect: Dialect, citations: Raw) -> Candidate:
    message = choice.message or Message("assistant")
    items = _answer_items(message, dialect, f"/choices/{position}/message")
    notes = NO_NOTES
    if message.annotations is not NULL or citations is not NULL:
        notes = with_addresses(decode_annotations(message.annotations), citations)
    carriers = answer_carriers(message, items)
    turn = Turn("assistant", items, carriers=carrier_among(carriers, dialect) if len(carriers) > 1 else carriers)
    return Candidate(turn, choice.index, FINISH.decode(choice.finish_reason) or _UNSAID, notes)


def _answer_items(message: Message, dialect: Dialect, place: str) -> tuple[Item, ...]:
    """An empty reasoning field of an answer means no reasoning; in a request it is a field that is present."""
    message.role = "assistant"
    try:
        items = decode_items(message, dialect)
    except DecodeError as error:
        raise error.within(place) from None
    kept: list[Item] = []
    for one in items:
        if not isinstance(one, ReasoningText) or one.text or one.signature or one.raw:
            kept.append(one)
    return tuple(kept)


def encode_response(reply: Reply, dialect: Dialect = REASONING_CONTENT) -> bytes:
    """The body of a whole response: unchanged except for edited candidates."""
    if not reply.body:
        return _encode_new(reply, dialect)
    body = reply.body
    for position, candidate in enumerate(reply.candidates):
        if candidate.turn.is_edited:
            path = ("message",) if span_at(body, ("choices",)) is None else ("choices", position, "message")
            start, end = span_at(body, path) or (0, 0)
            before = body[start:end]
            if _answer_items(decode(_message_decoder, before), dialect, "") != candidate.turn.items:
                body = replace_at(body, path, encode_message("assistant", candidate.turn.items, before, dialect))
    return body


def _encode_new(reply: Reply, dialect: Dialect) -> bytes:
    return object_of(
        [
            ("id", encode(reply.id or "")),
            ("object", b'"chat.completion"'),
            ("created", encode(reply.created)),
            ("model", encode(reply.model or "")),
            ("choices", array(_encode_choice(candidate, dialect) for candidate in reply.candidates)),
            ("usage", encode_usage(reply.usage) if reply.usage else None),
        ]
    )


def _encode_choice(candidate: Candidate, dialect: Dialect) -> bytes:
    notes = candidate.notes
    message = encode_message("assistant", candidate.turn.items, None, dialect)
    if notes.citations:
        message = set_members(message, [("annotations", encode_annotations(notes.citations))])
    return object_of(
        [
            ("index", encode(candidate.index)),
            ("message", message),
            ("finish_reason", FINISH.encode(candidate.finish)),
        ]
    )


# --- finish reasons and usage -----------------------------------------------------------------------------------------


FINISH = FinishWords(
    known={
        "stop": "stop",
        "eos": "stop",
        "length": "length",
        "tool_calls": "tool_calls",
        "function_call": "tool_calls",
        "content_filter": "content_filter",
        "error": "error",
    },
    written={
        "stop": "stop",
        "length": "length",
        "tool_calls": "tool_calls",
        "content_filter": "content_filter",
        "error": "error",
    },
    foreign={
        "COMPLETE": "stop",
        "STOP_SEQUENCE": "stop",
        "MAX_TOKENS": "length",
        "TOOL_CALL": "tool_calls",
        "ERROR": "error",
    },
)
USAGE = UsageMembers(
    "/usage",
    input="prompt_tokens",
    output="completion_tokens",
    reasoning="completion_tokens_details.reasoning_tokens",
    cached="prompt_tokens_details.cached_tokens|prompt_cache_hit_tokens|cached_tokens",  # OpenAI, DeepSeek, Kimi
    cache_written="prompt_tokens_details.cache_write_tokens",  # OpenRouter
)
COHERE_USAGE = UsageMembers(
    "/usage",
    input="tokens.input_tokens",
    output="tokens.output_tokens",
    reasoning="tokens.reasoning_tokens",
    cached="cached_tokens",
)


def encode_usage(usage: Usage) -> bytes:
    written = {"cache_write_tokens": usage.cache_written} if usage.cache_written else {}
    return encode(
        {
            "prompt_tokens": usage.input,
            "completion_tokens": usage.output,
            "total_tokens": usage.input + usage.output,
            "completion_tokens_details": {"reasoning_tokens": usage.reasoning},
            "prompt_tokens_details": {"cached_tokens": usage.cached} | written,
        }
    )
