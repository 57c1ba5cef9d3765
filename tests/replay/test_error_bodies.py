"""Sentences are found in every envelope that providers and relays use."""

from __future__ import annotations

import pytest

from thoughtline.replay.error_bodies import complaints, plain_complaint


@pytest.mark.parametrize(
    "body",
    [
        b'{"error":{"message":"Too hot."}}',
        b'[{"error":{"message":"Too hot."}}]',
        b'data: {"error":{"message":"Too hot."}}',
        b'{"errors":["Too hot."]}',
        b'{"error":"{\\"message\\":\\"Too hot.\\"}"}',
        b'{"base_resp":{"status_code":2013,"status_msg":"Too hot."}}',
        b'{"error":{"message":"litellm.BadRequestError: Too hot."}}',
    ],
)
def test_a_sentence_is_found(body: bytes) -> None:
    """Inside objects, arrays, strings and events, without prefixes."""
    assert "Too hot." in [one.sentence for one in complaints(body)]


@pytest.mark.parametrize("body", [b"Too hot.", b'"Too hot."', b"  Too hot.\n"])
def test_a_body_may_be_the_sentence(body: bytes) -> None:
    """Plain text, as axum's servers answer."""
    complaint = plain_complaint(body)
    assert complaint is not None
    assert complaint.sentence == "Too hot."


@pytest.mark.parametrize("body", [b"", b"<html>Too hot.</html>", b'{"a":1}', b"[1]"])
def test_what_is_no_sentence(body: bytes) -> None:
    """Pages and JSON are not sentences."""
    assert plain_complaint(body) is None
