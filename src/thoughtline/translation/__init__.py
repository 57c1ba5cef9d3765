"""Any client's format to any upstream's format, with the reasoning intact.

    request   Transcript(client) ── translate_request ──> TranslatedRequest(Transcript(upstream), findings, call_ids)
    whole     Reply(upstream) ───── translate_reply ────> a body for the client
    stream    upstream's bytes ──── StreamTranslator ───> bytes for the client, and events for capture
    error     status and body ───── translate_error ────> status and body for the client

Formats exchange typed values only; a `ResponseContext` names the two sides and holds the ids and envelopes.
The record of a translated exchange is the upstream's view: `capture(translated.transcript, reply, …)`.
The next request is translated by the same rules, so it has the same keys.
"""

from thoughtline.replay.known import with_opened
from thoughtline.translation.calls import CallIds, with_own_ids
from thoughtline.translation.envelopes import Sealer, Sealing
from thoughtline.translation.replies import (
    Chunk,
    StreamTranslator,
    Translated,
    reply_events,
    stream_reply,
    translate_error,
    translate_reply,
    whole_reply,
    without_deltas,
)
from thoughtline.translation.requests import TranslatedRequest, translate_request
from thoughtline.translation.response_context import ResponseContext
from thoughtline.values.items import is_envelope

__all__ = [
    "CallIds",
    "Chunk",
    "ResponseContext",
    "Sealer",
    "Sealing",
    "StreamTranslator",
    "Translated",
    "TranslatedRequest",
    "is_envelope",
    "reply_events",
    "stream_reply",
    "translate_error",
    "translate_reply",
    "translate_request",
    "whole_reply",
    "with_opened",
    "with_own_ids",
    "without_deltas",
]
