"""Conversations that a client leaves at its provider: refused where that provider holds none.

    Messages    "thread": {"type": "create"}, then {"type": "continue", "previous_message_id": …} with what is new
    Responses   "conversation": "conv_…"

A provider that ignores either would answer from the end of a conversation alone, with a 200. `thread` is refused as
Anthropic refuses one that it can't keep: its SDK's tool runner and Claude Code then send the whole conversation.
"""

from __future__ import annotations

import msgspec
from msgspec import Raw, Struct

from thoughtline.catalogue import PROVIDERS, Provider
from thoughtline.formats.json_text import is_given
from thoughtline.values.errors import Declined
from thoughtline.values.turns import FormatName

_NOTHING = Raw(b"null")


class _Left(Struct, gc=False):
    thread: Raw = _NOTHING
    conversation: Raw = _NOTHING


_left = msgspec.json.Decoder(_Left)


def check_held(body: bytes, provider: Provider, format: FormatName, *, is_translated: bool) -> None:
    """Raises if a request counts on messages that its provider does not have."""
    if format == "anthropic_messages" and b'"thread"' in body:
        if is_given(_read(body).thread) and (is_translated or "threads" not in provider.keeps):
            raise _no_threads(provider)
    elif format == "openai_responses" and b'"conversation"' in body:
        holds = "conversations" in provider.keeps or provider.name not in PROVIDERS
        if is_given(_read(body).conversation) and (is_translated or not holds):
            raise _no_conversations(provider)


def _read(body: bytes) -> _Left:
    try:
        return _left.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return _Left()  # whoever reads the whole body says what is wrong


def _no_threads(provider: Provider) -> Declined:
    return Declined(
        400,
        "thread_unsupported_request",
        f"{provider.name} keeps no message threads.",
        "Send the full conversation without `thread`.",
    )


def _no_conversations(provider: Provider) -> Declined:
    return Declined(
        400,
        "conversation_not_found",
        f"{provider.name} keeps no conversations.",
        "Send the whole conversation in `input`, or name the response before it in `previous_response_id`.",
    )
