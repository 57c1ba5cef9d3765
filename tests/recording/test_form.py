"""The form of a file: what is written of exchanges that passed, and what is read of a file."""

from __future__ import annotations

import gzip
import json
import random
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest

from tests.recording.planted_secrets import KEY, KEYS
from tests.recordings import recording_at
from thoughtline.formats import FORMATS
from thoughtline.formats.aws_event_stream import encode_event
from thoughtline.recording.form import (
    RecordedExchange,
    TakenExchange,
    WriteOptions,
    model_of,
    read_recording,
    recording_of,
    recording_text,
)
from thoughtline.values.errors import DecodeError
from thoughtline.values.turns import FormatName

REQUEST = {"model": "m-1", "messages": [{"role": "user", "content": "Hi."}], "tools": [{"type": "function"}]}
ANSWER = {"id": "chatcmpl-9aB8cD7eF6gH5iJ4", "choices": [{"message": {"role": "assistant", "content": "<think>"}}]}


def taken(
    answer: bytes,
    content_type: str = "application/json",
    *,
    format: FormatName = "openai_chat",
    path: str = "/v1/chat/completions",
    request: bytes | None = None,
    headers: Mapping[str, str] = MappingProxyType({}),
) -> TakenExchange:
    exchange = TakenExchange("deepseek", FORMATS[format], path, {"authorization": f"Bearer {KEY}", **headers})
    exchange.request += json.dumps(REQUEST).encode() if request is None else request
    exchange.status, exchange.answer_headers = 200, {"content-type": content_type}
    exchange.answer += answer
    return exchange


def written(*exchanges: TakenExchange, **options: Any) -> dict[str, Any]:
    made = recording_of(exchanges, WriteOptions(random.Random(1), "2026-11-19T12:00:00Z", "1.0", **options))
    entry: dict[str, Any] = read_recording(recording_text(made)).entry
    return entry


def test_a_whole_answer() -> None:
    """What a file says of itself, and of its one exchange."""
    entry = written(
        taken(json.dumps(ANSWER).encode(), headers={"anthropic-beta": "x-1", "user-agent": "me"}), notes=["a note"]
    )
    [exchange] = entry.pop("exchanges")
    assert entry.pop("id").startswith("openai-chat--deepseek--2026-11-19--")
    assert entry == {
        "source": "thoughtline record, 1.0",
        "recorded": "2026-11-19T12:00:00Z",
        "family": "openai-chat",
        "provider": "deepseek",
        "model": "m-1",
        "multi_turn": False,
        "tools": True,
        "streaming": False,
        "reasoning_kinds": ["inline_think_tag"],
        "response_only": False,
        "sanitized": True,
        "texts": "kept",
        "errors": [],
        "notes": ["a note"],
    }
    response = exchange.pop("response")
    assert response["choices"] == ANSWER["choices"]
    assert exchange == {
        "method": "POST",
        "path": "/v1/chat/completions",
        "family": "openai-chat",
        "provider": "deepseek",
        "credential": "KEY_REDACTED_1",
        "request_headers": {"anthropic-beta": "x-1"},
        "request": REQUEST,
        "status": 200,
        "content_type": "application/json",
    }


def test_streams_of_each_framing() -> None:
    event = b'{"type":"ping"}'
    entry = written(
        taken(b"data: " + event + b"\n\n", "text/event-stream; charset=utf-8"),
        taken(event + b"\n", "application/x-ndjson", format="ollama_chat", path="/api/chat"),
        taken(
            encode_event("x", event), "application/vnd.amazon.eventstream", format="bedrock_converse", path="/model/a"
        ),
        taken(b"[" + event + b"]", format="gemini_generate", path="/v1beta/models/m:streamGenerateContent"),
        taken(b"<html>", "text/html"),
    )
    assert entry["families"] == ["openai-chat", "ollama", "bedrock", "gemini"]
    events, lines, binary, array, page = map(RecordedExchange, entry["exchanges"])
    assert (events.stream, events.response) == (b"data: " + event + b"\n\n", None)
    assert lines.stream == event + b"\n"
    assert binary.stream == encode_event("x", event)
    assert binary.recorded["stream_events"] == [{"event": "x", "data": {"type": "ping"}}]
    assert (json.loads(array.stream or b""), array.response) == ([{"type": "ping"}], None)
    assert (page.response, page.stream) == (b"<html>", None)


def test_compressed_bodies() -> None:
    """As clients and providers send them."""
    one = taken(gzip.compress(json.dumps(ANSWER).encode()), request=gzip.compress(json.dumps(REQUEST).encode()))
    one.headers["content-encoding"] = one.answer_headers["content-encoding"] = "gzip"
    [exchange] = written(one)["exchanges"]
    assert exchange["request"] == REQUEST
    assert exchange["response"]["choices"] == ANSWER["choices"]


def test_what_can_t_be_read_is_left_out() -> None:
    """Bytes of an unknown kind may hold anything."""
    one = taken(b"\x1f\x8b broken", request=f"not JSON {KEYS[0]}".encode())
    one.answer_headers["content-encoding"] = "gzip"
    [exchange] = written(one)["exchanges"]
    assert exchange["request"] is None
    assert "response" not in exchange
    assert exchange["note"] == "the response could not be read, and was left out"


def test_two_callers_stay_two() -> None:
    """Whose turns are whose is part of what is replayed."""
    second = taken(b"{}", headers={"authorization": f"Bearer {KEYS[0]}"})
    query = taken(b"{}", path=f"/v1beta/models/m:generateContent?key={KEYS[1]}", format="gemini_generate")
    del query.headers["authorization"]
    credentials = [one["credential"] for one in written(taken(b"{}"), second, query, taken(b"{}"))["exchanges"]]
    assert len(set(credentials)) == 3
    assert credentials[0] == credentials[3]


def test_a_key_that_looks_like_a_word() -> None:
    """What a client shows who it is with is shown nowhere, also where a text or an answer repeats it."""
    request = {"model": "m-1", "messages": [{"role": "user", "content": "Is swordfish my key?"}]}
    one = taken(b'{"error": {"message": "bad key swordfish"}}', request=json.dumps(request).encode())
    one.headers, one.status = {"x-api-key": "swordfish"}, 401
    assert "swordfish" not in json.dumps(written(one))


@pytest.mark.parametrize(
    ("members", "format", "model"),
    [
        (
            {"path": "/v1/messages?beta=true", "family": "anthropic", "request": {"model": "a"}},
            "anthropic_messages",
            "a",
        ),
        ({"path": "/v1beta/models/g:generateContent", "family": "gemini"}, "gemini_generate", "g"),
        ({"path": "/x/y", "family": "openai-responses"}, "openai_responses", ""),
        ({"path": "/v2/chat", "family": "cohere", "provider": "cohere"}, "openai_chat", ""),
        ({"path": "/xai_api.Chat/GetCompletion", "family": "xai-grpc", "provider": "xai"}, None, ""),
        ({}, None, ""),
    ],
)
def test_format_and_model(members: dict[str, Any], format: str | None, model: str) -> None:
    """By the path, the family, or the provider."""
    exchange = RecordedExchange({"method": "POST", **members})
    assert (exchange.format_name, model_of(exchange)) == (format, model)


@pytest.mark.parametrize("text", [b"", b"[]", b"{}", b'{"exchanges": 1}', b'{"exchanges": [1]}', b"[" * 100_000])
def test_what_is_no_recording(text: bytes) -> None:
    with pytest.raises(DecodeError):
        read_recording(text)


def test_the_suite_reads_what_is_written(tmp_path: Path) -> None:
    """A recording that somebody sends can stand beside those that the tests walk."""
    file = tmp_path / "r.json"
    made = recording_of([taken(json.dumps(ANSWER).encode())], WriteOptions(random.Random(1), "2026-11-19", "1.0"))
    file.write_bytes(recording_text(made))
    [exchange] = recording_at(file).exchanges
    assert exchange.format.name == "openai_chat"
    assert exchange.has_tags
    assert exchange.format.bodies.decode_request(exchange.request or b"", exchange.dialect).model == "m-1"


def test_half_a_character(tmp_path: Path) -> None:
    assert json.loads(recording_text({"text": "\ud83d"})) == {"text": "\ud83d"}
