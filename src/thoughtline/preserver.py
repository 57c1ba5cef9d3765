"""Keeps the reasoning of a turn in a program that calls models itself. The code is in `library.preserver`."""

from __future__ import annotations

from thoughtline.library.preserver import (
    ReasoningDetails,
    attach_to_tool_calls,
    build_assistant_message_with_reasoning,
    build_google_model_message_with_thinking,
    extract_from_response,
    extract_from_stream_chunk,
    extract_from_tool_calls,
    extract_thought_signature_from_part,
    merge_stream_details,
    preserve_reasoning_content,
    reasoning_request_params,
    requires_reasoning_preservation,
)

__all__ = [
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
]
