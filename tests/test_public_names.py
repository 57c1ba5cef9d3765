"""What `import thoughtline` offers is a promise: it changes on purpose only."""

from __future__ import annotations

import thoughtline


def test_public_names_are_sorted_and_exist() -> None:
    """Every name is there, and in an order that shows a change."""
    assert list(thoughtline.__all__) == sorted(
        thoughtline.__all__, key=lambda name: (not name.isupper(), name.islower(), name)
    )
    for name in thoughtline.__all__:
        assert getattr(thoughtline, name) is not None


def test_public_names_are_these() -> None:
    """Adding or dropping one means changing this list and the changelog."""
    assert set(thoughtline.__all__) == {
        *("FORMATS", "Wire", "Dialect", "fold", "capture"),
        *("DecodeError", "EncodeError", "Fault", "ForeignSeal", "LimitExceeded", "ThoughtlineError"),
        *("Item", "Text", "ToolCall", "ToolResult", "Unknown", "Seal"),
        *("Reasoning", "ReasoningEncrypted", "ReasoningFormat", "ReasoningServerToolCall"),
        *("ReasoningSummary", "ReasoningText"),
        *("Candidate", "Finish", "Provenance", "Reply", "Transcript", "Turn", "Usage", "Key", "Record"),
        *("Contract", "Target", "resolve", "Identity", "Issuer", "Needs", "Plan", "Policy", "needs", "plan"),
        *("Finding", "audit", "ReplayAudit", "ReplayContract", "audit_replay"),
        *("Correction", "Refusal", "classify", "learn"),
        *("Replayer", "Destination", "ContractBook", "Lessons", "Prepared", "Watch", "StreamWatch"),
        *("StoreSettings", "open_store"),
        *("OpenRouterReasoningCodec", "ReasoningCodec", "codec_for"),
        *("attach_to_tool_calls", "build_assistant_message_with_reasoning", "build_google_model_message_with_thinking"),
        *("extract_from_response", "extract_from_stream_chunk", "extract_from_tool_calls"),
        *("extract_thought_signature_from_part", "preserve_reasoning_content", "reasoning_request_params"),
        "requires_reasoning_preservation",
    }
