"""Conversations that a client leaves at its provider: refused where that provider holds none.

    Messages    "thread": {"type": "create"}, then {"type": "continue", "previous_message_id": …} with what is new
    Responses   "conversation": "conv_…"
    Interactions   "previous_interaction_id": "v1_…"

A provider that ignores one would answer from the end of a conversation alone, with a 200. `thread` is refused as
Anthropic refuses one that it can't keep: its SDK's tool runner and Claude Code then send the whole conversation.
"""

from __future__ import annotations

import msgspec
from msgspec import Raw

from thoughtline.catalogue import PROVIDERS, Provider
from thoughtline.formats import FORMATS
from thoughtline.formats.json_text import NULL, is_given, members
from thoughtline.replay.findings import Finding
from thoughtline.values.errors import Declined
from thoughtline.values.turns import FormatName


def check_held(body: bytes, provider: Provider, format: FormatName, *, is_translated: bool) -> tuple[Finding, ...]:
    """Raises if a request counts on messages that its provider does not have; tells of one that it has."""
    held = FORMATS[format].held
    if held is None or f'"{held.member}"'.encode() not in body:
        return ()
    named = _named(body, held.member)
    if not is_given(named):
        return ()
    is_kept = held.kept_as in provider.keeps or (held.is_usual and provider.name not in PROVIDERS)
    if is_translated or not is_kept:
        raise Declined(400, held.code, f"{provider.name} keeps no {held.title}.", held.remedy)
    if not held.goes_on(named):
        return ()
    return (Finding("held-state", f"/{held.member}", f"earlier turns are at the provider, in its {held.title}", ""),)


def _named(body: bytes, member: str) -> Raw:
    try:
        return members(body).get(member, NULL)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return NULL  # whoever reads the whole body says what is wrong
