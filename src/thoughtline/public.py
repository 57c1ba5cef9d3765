"""What `import thoughtline` offers, and where the names of before have moved to."""

from __future__ import annotations

import warnings
from importlib import import_module
from typing import Any

from thoughtline.auditing import audit as audit
from thoughtline.line import Line as Line
from thoughtline.line import install as install
from thoughtline.line import last as last
from thoughtline.line import remember as remember
from thoughtline.line import uninstall as uninstall
from thoughtline.values.errors import DecodeError as DecodeError
from thoughtline.values.errors import EncodeError as EncodeError
from thoughtline.values.errors import LimitExceeded as LimitExceeded
from thoughtline.values.errors import SettingsError as SettingsError
from thoughtline.values.errors import StoreError as StoreError
from thoughtline.values.errors import ThoughtlineError as ThoughtlineError

MOVED = {
    "thoughtline.codecs": (
        "OpenRouterReasoningCodec",
        "ReasoningCodec",
        "codec_for",
    ),
    "thoughtline.core": (
        "FORMATS",
        "Contract",
        "Correction",
        "Destination",
        "Dialect",
        "Finding",
        "Identity",
        "Issuer",
        "Needs",
        "Plan",
        "Policy",
        "Refusal",
        "ReplayAudit",
        "ReplayContract",
        "ReplayViolation",
        "Target",
        "Wire",
        "audit_replay",
        "capture",
        "classify",
        "learn",
        "needs",
        "plan",
        "replay_contract_of",
        "resolve",
    ),
    "thoughtline.engine": (
        "AskedAddress",
        "ContractBook",
        "Lessons",
        "Prepared",
        "Replayer",
        "StoreSettings",
        "StreamWatch",
        "Watch",
        "account_of",
        "open_store",
        "provider_of",
        "read_address",
        "session_of",
        "tenant_of",
    ),
    "thoughtline.errors": (
        "Fault",
        "ForeignSeal",
    ),
    "thoughtline.items": (
        "Candidate",
        "Finish",
        "Item",
        "Key",
        "Provenance",
        "Reasoning",
        "ReasoningEncrypted",
        "ReasoningFormat",
        "ReasoningItem",
        "ReasoningServerToolCall",
        "ReasoningSummary",
        "ReasoningText",
        "Record",
        "Reply",
        "Seal",
        "Text",
        "ToolCall",
        "ToolResult",
        "Transcript",
        "Turn",
        "Unknown",
        "Usage",
        "fold",
    ),
    "thoughtline.line": (
        "AsyncExchange",
        "LineReport",
        "SyncExchange",
    ),
    "thoughtline.preserver": (
        "ReasoningDetails",
        "attach_to_tool_calls",
        "build_assistant_message_with_reasoning",
        "build_google_model_message_with_thinking",
        "extract_from_response",
        "extract_from_stream_chunk",
        "extract_from_tool_calls",
        "extract_thought_signature_from_part",
        "merge_stream_details",
        "preserve_reasoning_content",
        "reasoning_request_params",
        "requires_reasoning_preservation",
    ),
}
"""Names that stood at the top up to version 0.1: they work for one more release, with a warning."""

_NOW_CALLED = {"Issuer": "Destination", "Target": "Destination"}


def moved(name: str) -> Any:
    """What a name of before stands for. Raises `AttributeError` for any other name."""
    home = next((module for module, names in MOVED.items() if name in names), None)
    if home is None:
        raise AttributeError(f"module 'thoughtline' has no attribute {name!r}")
    now = _NOW_CALLED.get(name, name)
    advice = f"from {home} import {now}" + (f" as {name}" if now != name else "")
    warnings.warn(f"thoughtline.{name} moves: write `{advice}`", DeprecationWarning, stacklevel=3)
    return getattr(import_module(home), now)
