"""What `import thoughtline` offers is a promise: it changes on purpose only."""

from __future__ import annotations

import subprocess
import sys

import pytest

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
        *("Finding", "audit", "ReplayAudit", "ReplayContract", "ReplayViolation", "audit_replay", "replay_contract_of"),
        *("ReasoningDetails", "ReasoningItem", "merge_stream_details"),
        *("Correction", "Refusal", "classify", "learn"),
        *("Line", "remember", "AsyncExchange", "SyncExchange", "LineReport"),
        *("AskedAddress", "read_address", "provider_of", "account_of", "tenant_of", "session_of"),
        *("Replayer", "Destination", "ContractBook", "Lessons", "Prepared", "Watch", "StreamWatch"),
        *("StoreSettings", "open_store"),
        *("OpenRouterReasoningCodec", "ReasoningCodec", "codec_for"),
        *("attach_to_tool_calls", "build_assistant_message_with_reasoning", "build_google_model_message_with_thinking"),
        *("extract_from_response", "extract_from_stream_chunk", "extract_from_tool_calls"),
        *("extract_thought_signature_from_part", "preserve_reasoning_content", "reasoning_request_params"),
        "requires_reasoning_preservation",
    }


def test_the_import_loads_nothing_that_is_not_used() -> None:
    """No module but the package itself, so no HTTP library, server or terminal; names come when they are used."""
    code = "import sys; before = {*sys.modules}; import thoughtline; print(*({*sys.modules} - before))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = {name.partition(".")[0] for name in done.stdout.split()}
    assert loaded.isdisjoint({"httpx", "httpx2", "uvicorn", "rich", "asyncio", "msgspec", "httptools", "ssl"})
    assert [name for name in done.stdout.split() if name.startswith("thoughtline")] == ["thoughtline"]


def test_a_line_loads_no_http_library_and_no_server() -> None:
    """The application brings an HTTP library; thoughtline brings none."""
    code = "import sys, thoughtline; thoughtline.Line('memory://'); print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = {name.partition(".")[0] for name in done.stdout.split()}
    assert loaded.isdisjoint({"httpx", "httpx2", "uvicorn", "rich", "httptools", "prometheus_client"})
    assert not [name for name in done.stdout.split() if name.startswith("thoughtline.gateway")]


def test_names_that_there_are_not() -> None:
    """Only public ones are there to be listed; a module of the package is no name of it until it is imported."""
    assert dir(thoughtline) == sorted(thoughtline.__all__)
    for name in ("Remember", "_private", "__wrapped__", "public_names"):
        with pytest.raises(AttributeError, match=name):
            getattr(thoughtline, name)
