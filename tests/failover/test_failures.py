"""Which answers speak against a target, and which are for the client to hear."""

from __future__ import annotations

import json
from typing import Any

import pytest

from thoughtline.failover.failures import (
    LONGEST_PAUSE_SECONDS,
    TargetFailure,
    failure_of,
    failure_of_error,
    falls_over,
)
from thoughtline.formats import FORMATS
from thoughtline.providers import PROVIDERS, UNLISTED
from thoughtline.values.errors import FailureKind


def _sse(value: Any) -> bytes:
    return b"event: error\ndata: " + json.dumps(value).encode() + b"\n\n"


STATUSES: dict[int, FailureKind | None] = {
    200: None,
    400: None,
    401: "key_rejected",
    402: "key_rejected",
    403: "key_rejected",
    404: None,
    408: "busy",
    409: "busy",
    413: None,
    422: None,
    429: "busy",
    500: "broken",
    502: "broken",
    503: "overloaded",
    504: "late",
    520: "broken",
    524: "late",
    529: "overloaded",
}


@pytest.mark.parametrize(("status", "kind"), STATUSES.items())
def test_by_status(status: int, kind: FailureKind | None) -> None:
    """408, 409, 429 and 5xx fail over; refusals of the request never do."""
    found = failure_of(status, b'{"error":{"message":"overloaded, server_error, 503","type":"invalid_request_error"}}')
    assert found == (TargetFailure(kind) if kind else None)


BODIES: dict[str, tuple[bytes, FailureKind | None]] = {
    "Anthropic, in a stream": (_sse({"type": "error", "error": {"type": "overloaded_error"}}), "overloaded"),
    "Anthropic, broken": (_sse({"type": "error", "error": {"type": "api_error"}}), "broken"),
    "Anthropic, refused": (_sse({"type": "error", "error": {"type": "invalid_request_error"}}), None),
    "OpenAI": (json.dumps({"error": {"code": "server_overloaded", "type": "x"}}).encode(), "overloaded"),
    "OpenAI, Responses": (_sse({"type": "response.failed", "response": {"error": {"code": "server_error"}}}), "broken"),
    "OpenAI, Responses, an error": (_sse({"type": "error", "code": "rate_limit_exceeded"}), "busy"),
    "Moonshot": (json.dumps({"error": {"type": "engine_overloaded_error"}}).encode(), "overloaded"),
    "Mistral": (json.dumps({"object": "error", "type": "service_tier_capacity_exceeded"}).encode(), "overloaded"),
    "Mistral, busy": (json.dumps({"object": "error", "type": "rate_limited", "code": "1300"}).encode(), "busy"),
    "Google": (json.dumps({"error": {"code": 503, "status": "UNAVAILABLE"}}).encode(), "overloaded"),
    "Google, in an array": (json.dumps([{"error": {"code": 429, "status": "RESOURCE_EXHAUSTED"}}]).encode(), "busy"),
    "Google, refused": (json.dumps({"error": {"code": 400, "status": "INVALID_ARGUMENT"}}).encode(), None),
    "AWS": (json.dumps({"__type": "com.amazon#ThrottlingException", "message": "x"}).encode(), "busy"),
    "OpenRouter, with 200": (json.dumps({"error": {"code": 502, "message": "x"}, "choices": []}).encode(), "broken"),
    "OpenRouter, refused": (json.dumps({"error": {"code": 400, "message": "x"}}).encode(), None),
    "MiniMax, with 200": (json.dumps({"base_resp": {"status_code": 1002}}).encode(), "busy"),
    "MiniMax, well": (json.dumps({"base_resp": {"status_code": 0}, "choices": []}).encode(), None),
    "an answer": (json.dumps({"choices": [{"message": {"content": "overloaded_error"}}]}).encode(), None),
    "an answer that streams": (_sse({"type": "message_start", "message": {}}), None),
    "a comment first": (b": wait\n\n" + _sse({"error": {"type": "overloaded"}}), "overloaded"),
    "no JSON": (b"<html>overloaded_error</html>", None),
    "nothing": (b"", None),
    "other shapes": (b'{"error":"overloaded_error","response":7}', None),
}


@pytest.mark.parametrize(("body", "kind"), BODIES.values(), ids=list(BODIES))
@pytest.mark.parametrize("status", [200, 400])
def test_by_what_a_body_says(body: bytes, kind: FailureKind | None, status: int) -> None:
    """Overload in the shapes of providers, whatever the status; prose is not searched."""
    assert failure_of(status, body) == (TargetFailure(kind) if kind else None)


def test_a_word_means_the_same_for_every_provider() -> None:
    """Formats and providers each have their own; any of them may pass on another's."""
    known = [wire.errors.failures for wire in FORMATS.values()]
    known += [row.failures for row in (*PROVIDERS, UNLISTED)]
    for word, kind in (pair for words in known for pair in words.items()):
        assert failure_of(400, json.dumps({"error": {"type": word.upper()}}).encode()) == TargetFailure(kind)


def test_flagged_input_is_no_fault_of_a_key() -> None:
    """OpenRouter's moderation answers 403."""
    body = json.dumps({"error": {"code": 403, "metadata": {"reasons": ["x"], "flagged_input": "y"}}}).encode()
    assert failure_of(403, body) is None


@pytest.mark.parametrize(
    ("retry_after", "pause"),
    [
        ("7", 7.0),
        (" 1.5", 1.5),
        ("0", 0.0),
        ("999999", LONGEST_PAUSE_SECONDS),
        ("", None),
        ("soon", None),
        ("-1", None),
        ("Wed, 21 Oct 2026 07:28:00 GMT", None),
        ("1" * 400, None),
    ],
)
def test_a_requested_pause(retry_after: str, pause: float | None) -> None:
    """In seconds, within bounds."""
    assert failure_of(429, b"", retry_after) == TargetFailure("busy", pause)


def test_errors_of_ours_that_are_a_targets_fault() -> None:
    """Connect errors and time to first byte; not what we decline ourselves."""
    found = {code: failure_of_error(code) for code in ("upstream_unreachable", "upstream_timeout", "upstream_failed")}
    assert [one.kind for one in found.values() if one] == ["unreachable", "late", "broken"]
    assert failure_of_error("body_too_large") is None


def test_a_clients_own_rejected_key_is_its_own_business() -> None:
    """With a key of ours the next one is asked; the client's own goes nowhere else."""
    assert falls_over(TargetFailure("key_rejected"), is_own_key=True)
    assert not falls_over(TargetFailure("key_rejected"), is_own_key=False)
    assert falls_over(TargetFailure("busy"), is_own_key=False)
