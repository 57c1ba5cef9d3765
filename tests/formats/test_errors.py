"""Errors as each format writes them: the same pair for the providers' and for ours."""

from __future__ import annotations

import json
from typing import Any

import pytest

from thoughtline.formats import FORMATS
from thoughtline.gateway.asgi import as_declined, error_body
from thoughtline.translation import translate_error
from thoughtline.values.errors import Declined, DecodeError, ErrorReply, Untranslatable
from thoughtline.values.turns import FormatName

STATUSES = (400, 401, 402, 403, 404, 409, 413, 429, 500, 502, 503, 504, 529)
_OPENAI = {401: "authentication_error", 403: "permission_error", 429: "rate_limit_error"}
_OPENAI |= dict.fromkeys((400, 402, 404, 409, 413), "invalid_request_error")
_OPENAI |= dict.fromkeys((500, 502, 503, 504, 529), "server_error")
WORDS: dict[FormatName, dict[int, str]] = {
    "openai_chat": _OPENAI,
    "openai_responses": _OPENAI,
    # Anthropic docs, Errors.
    "anthropic_messages": {
        **dict.fromkeys((400, 409), "invalid_request_error"),
        401: "authentication_error",
        402: "billing_error",
        403: "permission_error",
        404: "not_found_error",
        413: "request_too_large",
        429: "rate_limit_error",
        **dict.fromkeys((500, 502, 503), "api_error"),
        504: "timeout_error",
        529: "overloaded_error",
    },
    # google.rpc.Code.
    "gemini_generate": {
        **dict.fromkeys((400, 402, 413), "INVALID_ARGUMENT"),
        401: "UNAUTHENTICATED",
        403: "PERMISSION_DENIED",
        404: "NOT_FOUND",
        409: "ABORTED",
        429: "RESOURCE_EXHAUSTED",
        **dict.fromkeys((500, 529), "INTERNAL"),
        **dict.fromkeys((502, 503), "UNAVAILABLE"),
        504: "DEADLINE_EXCEEDED",
    },
    "ollama_chat": dict.fromkeys(STATUSES, ""),
    "command_code_generate": {status: str(status) for status in STATUSES},  # the number itself
    # Amazon Bedrock API reference, Converse.
    "bedrock_converse": {
        **dict.fromkeys((400, 402, 409, 413), "ValidationException"),
        401: "UnrecognizedClientException",
        403: "AccessDeniedException",
        404: "ResourceNotFoundException",
        429: "ThrottlingException",
        **dict.fromkeys((500, 502, 504, 529), "InternalServerException"),
        503: "ServiceUnavailableException",
    },
}
WORDS["gemini_code_assist"] = WORDS["gemini_interactions"] = WORDS["gemini_generate"]
WORDS["bedrock_invoke"] = WORDS["bedrock_converse"]
ROWS = [(name, status, word) for name, words in WORDS.items() for status, word in words.items()]


def word_and_message(body: bytes) -> tuple[str, str]:
    """What an envelope calls the error, and its sentence."""
    read: Any = json.loads(body)
    error = read.get("error", read)
    if isinstance(error, str):
        return "", error
    return str(error.get("status", error.get("type", error.get("__type")))), str(error["message"])


def test_every_format_and_status_has_a_row() -> None:
    """A new format needs its words here."""
    assert {(name, status) for name, status, _ in ROWS} == {(name, status) for name in FORMATS for status in STATUSES}


@pytest.mark.parametrize(("name", "status", "word"), ROWS)
def test_the_provider_s_error_and_ours_are_written_alike(name: FormatName, status: int, word: str) -> None:
    """The same word for the same status, for every server."""
    ours = error_body(Declined(status, "some_code", "No."), name, "req_1")
    theirs = translate_error(status, b'{"error":{"message":"No."}}', "openai_chat", name)
    assert theirs[0] == status
    assert word_and_message(ours) == word_and_message(theirs[1]) == (word, "No.")


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("status", STATUSES)
def test_what_is_written_is_read_again(name: FormatName, status: int) -> None:
    """One pair: an error of a gateway behind us reads as it was meant."""
    errors = FORMATS[name].errors
    read = errors.read(status, errors.write(ErrorReply(status, "No.")))
    assert (read.status, read.message) == (status, "No.")


@pytest.mark.parametrize("name", FORMATS)
def test_ours_has_its_code_in_every_format(name: FormatName) -> None:
    """Also in those that have no member for a provider's."""
    assert b"some_code" in error_body(Declined(400, "some_code", "No."), name, "req_1")


def test_amazon_s_sdks_find_the_kind_of_the_error() -> None:
    """botocore and the JavaScript SDK read `__type` where the header is missing; JavaScript's prefers a `code`."""
    body = json.loads(error_body(Declined(400, "some_code", "No."), "bedrock_converse", "req_1"))
    assert body["__type"] == "ValidationException"
    assert "code" not in body


def test_a_thread_that_is_not_kept_is_told_where_anthropic_s_sdk_looks() -> None:
    """Its tool runner and Claude Code then send the whole conversation."""
    body = json.loads(error_body(Declined(400, "thread_unsupported_request", "No."), "anthropic_messages", "req_1"))
    assert body["error"]["details"] == {"error_code": "thread_unsupported_request"}
    assert body["request_id"] == "req_1"


@pytest.mark.parametrize("name", FORMATS)
def test_errors_of_ours_name_place_and_remedy(name: FormatName) -> None:
    """What can't be translated is a 400 in the client's envelope that says where and what to do."""
    error = as_declined(Untranslatable("no such tool", "/tools/1", "leave it out"))
    assert error.status == 400
    assert word_and_message(error_body(error, name, ""))[1] == "no such tool (at /tools/1); leave it out"
    assert as_declined(DecodeError("not JSON", "byte 4")).status == 400
