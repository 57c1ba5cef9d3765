"""Any client's format to any upstream's format, with the reasoning intact.

request   Transcript(client) ── translate_request ──> TranslatedRequest(Transcript(upstream), findings, call_ids)
whole     Reply(upstream) ───── translate_reply ────> bytes for the client
stream    upstream's bytes ──── StreamTranslator ───> bytes for the client, and events for capture
error     status and body ───── translate_error ────> status and body for the client
"""

from thoughtline.translation.calls import CallIds, with_own_ids
from thoughtline.translation.requests import TranslatedRequest, translate_request

__all__ = ["CallIds", "TranslatedRequest", "translate_request", "with_own_ids"]
