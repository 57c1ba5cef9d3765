"""Chat requests: a body with `messages`."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
from msgspec import Raw, Struct

from thoughtline.formats.conversation import encode_conversation
from thoughtline.formats.json_text import NULL, decode
from thoughtline.formats.openai_chat.message_encoder import encode_message, with_reasoning
from thoughtline.formats.openai_chat.messages import ROLES, Message, carriers_of, decode_items
from thoughtline.formats.thinking import thinking_switch
from thoughtline.providers import REASONING_CONTENT, Dialect, written_in
from thoughtline.values.errors import DecodeError
from thoughtline.values.turns import ThinkingSwitch, Transcript, Turn


class _Request(Struct, gc=False):
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


_decoder = msgspec.json.Decoder(_Request)


def decode_request(body: bytes, dialect: Dialect = REASONING_CONTENT) -> Transcript:
    """A chat request as typed turns, one for each message."""
    request = decode(_decoder, body)
    role_of = ROLES.get
    try:
        turns = [
            Turn(
                role_of(message.role, "other"),
                decode_items(message, dialect),
                at,
                spans=1,
                is_edited=False,
                carriers=carriers_of(message),
            )
            if message.role == "assistant"
            else Turn(role_of(message.role, "other"), decode_items(message, dialect), at)
            for at, message in enumerate(request.messages)
        ]
    except DecodeError:
        raise _located(request.messages, dialect) from None
    tools = tuple(request.tools or ())
    switch = _switch(request)
    return Transcript(
        "openai_chat",
        tuple(turns),
        body,
        model=request.model,
        is_streaming=bool(request.stream),
        tools=tools,
        thinking=switch,
    )


def _switch(request: _Request) -> ThinkingSwitch:
    members = (
        request.thinking,
        request.enable_thinking,
        request.reasoning,
        request.reasoning_effort,
        request.chat_template_kwargs,
        request.think,
    )
    return thinking_switch(*members)


def _located(messages: list[Message], dialect: Dialect) -> DecodeError:
    """The problem that stopped the decoding, with the message it stands in."""
    for at, message in enumerate(messages):
        try:
            decode_items(message, dialect)
        except DecodeError as error:
            return error.within(f"/messages/{at}")
    raise AssertionError("a problem that is there once is there twice")


def encode_request(transcript: Transcript, dialect: Dialect = REASONING_CONTENT) -> bytes:
    """The body of a chat request: unedited turns keep their bytes."""

    def encode_turn(turn: Turn, before: Sequence[bytes]) -> list[bytes]:
        if not before:
            return [encode_message(turn.role, turn.items, None, dialect)]
        own = written_in(dialect, turn.carrier)
        if turn.items[1:] == turn.original and not turn.moves_reasoning:
            restored = with_reasoning(before[0], turn.items, own)
            if restored is not None:
                return [restored]
        return [encode_message(turn.role, turn.items, before[0], own, turn.moves_reasoning)]

    return encode_conversation(transcript, "messages", encode_turn)
