"""Bodies and streams without secrets: nothing planted is left, wherever it stands and however it was cut."""

from __future__ import annotations

import base64
import copy
import json
import random
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.recording.planted_secrets import HOME, KEYS, MAIL, PASSWORD, PLANTED, TEXT, WORD
from thoughtline.engine.user_headers import name_in
from thoughtline.formats import FORMATS
from thoughtline.formats.aws_event_stream import encode_event
from thoughtline.recording.scrubbing import Scrubber, StreamKind, cut_again, json_bytes, replaced

Json = dict[str, Any]
CALL = "call_AbC123xyz789QQ00"
SIGNATURE = base64.b64encode(bytes(range(90))).decode()


def scrubber(*, replaces_texts: bool = False) -> Scrubber:
    return Scrubber(random.Random(11), replaces_texts=replaces_texts)


def learned(one: Scrubber, *bodies: Json) -> list[Json]:
    """As a recording is scrubbed: all of it is looked at first."""
    one.is_learning = True
    for body in bodies:
        one.body(body)
    one.is_learning = False
    return [one.body(body) for body in bodies]


def request(text: str = TEXT) -> Json:
    return {
        "model": "deepseek-v4-pro",
        "user": MAIL,
        "messages": [
            {"role": "system", "content": text},
            {"role": "user", "content": [{"type": "text", "text": text}]},
            {
                "role": "assistant",
                "reasoning_content": text,
                "tool_calls": [
                    {
                        "id": CALL,
                        "type": "function",
                        "function": {"name": "shell", "arguments": json.dumps({"command": text, "password": PASSWORD})},
                    }
                ],
            },
            {"role": "tool", "tool_call_id": CALL, "content": json.dumps({"out": text})},
        ],
        "tools": [{"type": "function", "function": {"name": "shell", "description": text, "parameters": {}}}],
        "metadata": {"api_key": KEYS[0], KEYS[1]: "x"},
    }


def test_a_request_of_every_kind_of_text() -> None:
    """What is left is the conversation: roles, types, names, and the same ids in both places."""
    [shown] = learned(scrubber(), request())
    assert [one for one in PLANTED if one in json.dumps(shown)] == []
    messages = shown["messages"]
    assert messages[2]["tool_calls"][0]["id"] == messages[3]["tool_call_id"] != CALL
    arguments = json.loads(messages[2]["tool_calls"][0]["function"]["arguments"])
    assert arguments["command"] == messages[0]["content"] == json.loads(messages[3]["content"])["out"]
    assert messages[0]["content"].startswith("Mail me at user1@example.com; my files are in /home/user1/project and ")
    assert shown["model"] == "deepseek-v4-pro"
    assert shown["tools"][0]["function"]["name"] == "shell"


def test_it_does_not_touch_what_it_is_given() -> None:
    body = request()
    before = copy.deepcopy(body)
    scrubber().body(body)
    assert body == before


@pytest.mark.parametrize("replaces_texts", [False, True])
def test_twice_is_once(replaces_texts: bool) -> None:
    """A scrubbed body holds nothing that would be replaced again, but for words."""
    one = scrubber(replaces_texts=replaces_texts)
    [shown] = learned(one, request())
    one._replaces_texts = False
    assert one.body(shown) == shown


def chat_stream(pieces: list[str], member: str = "content") -> bytes:
    deltas: list[Json] = [{member: piece} for piece in pieces]
    if member == "arguments":
        deltas = [{"tool_calls": [{"index": 0, "function": {"arguments": piece}}]} for piece in pieces]
        deltas[0]["tool_calls"][0] |= {"id": CALL, "type": "function"}
    chunks = [{"id": "chatcmpl-9aB8cD7eF6gH5iJ4", "choices": [{"index": 0, "delta": delta}]} for delta in deltas]
    return b"".join(b"data: " + json.dumps(chunk).encode() + b"\n\n" for chunk in chunks) + b"data: [DONE]\n\n"


def messages_stream(pieces: list[str], member: str = "text") -> bytes:
    kind = {"text": "text_delta", "thinking": "thinking_delta", "partial_json": "input_json_delta"}
    events = [
        {"type": "content_block_delta", "index": at, "delta": {"type": kind[member], member: piece}}
        for piece in pieces
        for at in (0, 1)
    ]
    return b"".join(b"event: content_block_delta\ndata: " + json.dumps(one).encode() + b"\n\n" for one in events)


def responses_stream(pieces: list[str]) -> bytes:
    events = [
        {"type": "response.output_text.delta", "item_id": "msg_68c42de022c881948db7", "output_index": 0, "delta": piece}
        for piece in pieces
    ]
    return b"".join(b"data: " + json.dumps(one).encode() + b"\n\n" for one in events)


def gemini_stream(pieces: list[str]) -> bytes:
    events = [{"candidates": [{"content": {"parts": [{"text": piece}], "role": "model"}}]} for piece in pieces]
    return b"".join(b"data: " + json.dumps(one).encode() + b"\n\n" for one in events)


def ollama_stream(pieces: list[str]) -> bytes:
    return b"".join(json.dumps({"message": {"role": "assistant", "content": one}}).encode() + b"\n" for one in pieces)


def converse_stream(pieces: list[str]) -> bytes:
    return b"".join(
        encode_event("contentBlockDelta", json.dumps({"contentBlockIndex": 0, "delta": {"text": one}}).encode())
        for one in pieces
    )


def invoke_stream(pieces: list[str]) -> bytes:
    events = [{"type": "content_block_delta", "index": 0, "delta": {"text": one}} for one in pieces]
    inner = [base64.b64encode(json.dumps(one).encode()).decode() for one in events]
    return b"".join(encode_event("chunk", json.dumps({"bytes": one}).encode()) for one in inner)


STREAMS: list[tuple[str, StreamKind, Any]] = [
    ("chat", "events", chat_stream),
    ("reasoning", "events", lambda pieces: chat_stream(pieces, "reasoning_content")),
    ("messages", "events", messages_stream),
    ("thinking", "events", lambda pieces: messages_stream(pieces, "thinking")),
    ("responses", "events", responses_stream),
    ("gemini", "events", gemini_stream),
    ("ollama", "lines", ollama_stream),
    ("converse", "binary", converse_stream),
    ("invoke", "binary", invoke_stream),
]


def texts_in(value: Any) -> str:
    """Every string of a value, one behind the other: what was cut is whole again."""
    if isinstance(value, dict):
        return "".join(map(texts_in, value.values()))
    if isinstance(value, list):
        return "".join(map(texts_in, value))
    return value if (isinstance(value, str) and len(value) < 4) or isinstance(value, str) else ""


@pytest.mark.parametrize(("kind", "make"), [row[1:] for row in STREAMS], ids=[row[0] for row in STREAMS])
@given(data=st.data())
@settings(max_examples=25, deadline=None)
def test_nothing_is_left_however_it_was_cut(kind: StreamKind, make: Any, data: st.DataObject) -> None:
    """The pieces of a stream, joined, are the scrubbed text: the same as of a whole answer."""
    cuts = sorted(data.draw(st.sets(st.integers(1, len(TEXT) - 1), max_size=60)))
    pieces = [TEXT[start:end] for start, end in zip([0, *cuts], [*cuts, len(TEXT)], strict=True)]
    one = scrubber()
    one.text(TEXT)
    expected = one.text(TEXT)
    _, events = one.stream(make(pieces), kind)
    joined = "".join(spoken(event["data"], 0) for event in events)
    assert joined == expected
    assert [planted for planted in PLANTED if planted in joined] == []


def spoken(event: Json, index: int) -> str:
    """The visible text of an event of any of the streams above, of one block."""
    if isinstance(event.get("bytes"), dict):
        event = event["bytes"]
    if event.get("index", index) != index:
        return ""
    if "choices" in event:
        return "".join(event["choices"][0]["delta"].values())
    if "candidates" in event:
        return str(event["candidates"][0]["content"]["parts"][0]["text"])
    if "message" in event:
        return str(event["message"]["content"])
    delta = event["delta"]
    return delta if isinstance(delta, str) else str(delta.get("text", delta.get("thinking")))


@given(size=st.integers(1, 40), replaces_texts=st.booleans())
@settings(max_examples=30, deadline=None)
def test_streamed_arguments_are_those_of_the_request_that_follows(size: int, replaces_texts: bool) -> None:
    """A client sends back as text or as an object what came in pieces of JSON."""
    arguments = {"command": f"cat /home/{HOME}/{WORD}\n{KEYS[2]} é", "password": PASSWORD, "n": 3}
    text = json.dumps(arguments)
    pieces = [text[at : at + size] for at in range(0, len(text), size)]
    one = scrubber(replaces_texts=replaces_texts)
    for _ in range(2):
        _, events = one.stream(chat_stream(pieces, "arguments"), "events")
        back = one.body({"messages": [{"role": "assistant", "content": [{"type": "tool_use", "input": arguments}]}]})
    deltas = [event["data"]["choices"][0]["delta"]["tool_calls"][0] for event in events]
    joined = json.loads("".join(delta["function"]["arguments"] for delta in deltas))
    assert joined == back["messages"][0]["content"][0]["input"]
    assert joined.keys() == arguments.keys()
    assert joined["n"] == 3
    assert [planted for planted in PLANTED if planted in json.dumps(joined)] == []


@given(cuts=st.sets(st.integers(1, len(SIGNATURE) - 1), max_size=6))
def test_a_signature_in_pieces_is_that_of_the_request_that_follows(cuts: set[int]) -> None:
    edges = [0, *sorted(cuts), len(SIGNATURE)]
    pieces = [SIGNATURE[start:end] for start, end in pairwise(edges)]
    events = [
        {"type": "content_block_delta", "index": 0, "delta": {"type": "signature_delta", "signature": piece}}
        for piece in pieces
    ]
    one = scrubber()
    block = {"type": "thinking", "thinking": "so", "signature": SIGNATURE}
    for _ in range(2):
        shown = one.events(copy.deepcopy(events))
        back = one.body({"messages": [{"role": "assistant", "content": [block]}]})
    joined = "".join(event["delta"]["signature"] for event in shown)
    assert joined == back["messages"][0]["content"][0]["signature"]
    assert joined.startswith("SIGREDACTED")


def test_words_are_replaced_and_structure_is_not() -> None:
    """Tags that part thinking from speaking stay, too, as do the provider's words of an error."""
    body = {
        "model": "gpt-6",
        "reasoning": {"effort": "high", "summary": "auto"},
        "messages": [{"role": "assistant", "content": "<think>Is it so?</think>It is so."}],
        "tools": [{"name": "shell", "input_schema": {"type": "object", "properties": {"command": {"type": "string"}}}}],
    }
    one = scrubber(replaces_texts=True)
    shown = one.body(body)
    assert {name: shown[name] for name in ("model", "reasoning", "tools")} == {
        name: body[name] for name in ("model", "reasoning", "tools")
    }
    text = shown["messages"][0]["content"]
    thought, spoken_words = text.removeprefix("<think>").split("</think>")
    assert [len(word) for word in thought.split()] == [2, 2, 3]
    assert thought.split()[1] == spoken_words.split()[0].lower() or "it" not in thought
    assert spoken_words.endswith(f"{thought.split()[2][:2]}.")
    error = {"error": {"message": "`reasoning_content` must be passed back", "type": "invalid_request_error"}}
    assert one.body(error, is_error=True) == error


def test_thoughts_and_texts_of_gemini_are_not_joined() -> None:
    """A word at the end of one and another at the beginning of the next stay two."""
    parts = [{"text": "alpha", "thought": True}, {"text": "beta"}, {"functionCall": {"name": "f", "args": {}}}]
    events = [{"candidates": [{"content": {"parts": [part]}}]} for part in [*parts, {"text": "gamma"}, {"text": "ray"}]]
    one = scrubber(replaces_texts=True)
    shown = [event["candidates"][0]["content"]["parts"][0].get("text") for event in one.events(events)]
    assert [shown[0], shown[1], (shown[3] or "") + (shown[4] or "")] == [
        one.text("alpha"),
        one.text("beta"),
        one.text("gammaray"),
    ]


def test_pictures_and_documents() -> None:
    """The same file is the same stand-in, wherever it is."""
    data = base64.b64encode(random.Random(5).randbytes(600)).decode()
    body = {
        "messages": [
            {
                "role": "user",
                "content": [
                    {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": data}},
                    {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{data}"}},
                    {"inlineData": {"mimeType": "image/png", "data": data[:60]}},
                ],
            }
        ]
    }
    content = scrubber().body(body)["messages"][0]["content"]
    assert content[0]["source"] == {"type": "base64", "media_type": "image/png", "data": "FILE00000001"}
    assert content[1]["image_url"]["url"] == "data:image/png;base64,FILE00000001"
    assert content[2]["inlineData"]["data"] == "FILE00000002"


def test_log_probabilities_are_removed() -> None:
    """They have each piece of a text a second time."""
    choice = {"index": 0, "delta": {"content": "sk"}, "logprobs": {"content": [{"token": "sk", "logprob": -0.1}]}}
    assert scrubber().events([{"choices": [choice]}])[0]["choices"][0]["logprobs"] is None
    assert "logprobsResult" not in scrubber().body({"candidates": [{"logprobsResult": {"a": "b"}}]})["candidates"][0]


def test_bytes_of_a_stream_that_hides_nothing_stay() -> None:
    stream = b': hello\n\nevent: x\ndata: {"type":"ping",  "n": 1.50}\r\n\r\ndata: [DONE]\n\n'
    assert scrubber().stream(stream, "events")[0] == stream


def test_headers_and_addresses() -> None:
    """Versions, sessions and end users stay, without their names; whatever else there is goes."""
    headers = {
        "anthropic-version": "2023-06-01",
        "anthropic-beta": "interleaved-thinking-2025-05-14",
        "x-session-id": "9f86d081884c7d65",
        "x-openwebui-user-email": "ann.lee@example.org",
        "x-portkey-metadata": '{"_user": "ann-lee", "secret": 1}',
        "cookie": "login=abc",
        "authorization": f"Bearer {KEYS[0]}",
        "user-agent": "me/1",
    }
    one = scrubber()
    shown = one.headers(headers)
    users = ["x-openwebui-user-email", "x-portkey-metadata"]
    assert list(shown) == ["anthropic-version", "anthropic-beta", "x-session-id", *users]
    assert "lee" not in str(shown)
    assert "secret" not in str(shown)
    assert all(name_in(name.encode(), shown[name].encode()) for name in users)
    assert (shown["anthropic-version"], shown["anthropic-beta"]) == ("2023-06-01", "interleaved-thinking-2025-05-14")
    assert shown["x-session-id"] == one.stand_ins.id("9f86d081884c7d65") != "9f86d081884c7d65"
    assert one.path(f"/v1/x:generate?key={KEYS[0]}&alt=sse") == "/v1/x:generate?alt=sse"
    assert one.path("/v1/messages?beta=true") == "/v1/messages?beta=true"


@given(st.lists(st.text(max_size=6), max_size=8), st.lists(st.tuples(st.integers(0, 9), st.integers(1, 9)), max_size=5))
def test_stand_ins_of_a_cut_text_join_to_those_of_the_whole(texts: list[str], places: list[tuple[int, int]]) -> None:
    whole, parts, at = "".join(texts), [], 0
    for gap, size in places:
        if at + gap + size <= len(whole):
            parts.append((at + gap, at + gap + size, f"<{at}>"))
            at += gap + size
    shown = cut_again(texts, parts)
    assert "".join(shown) == replaced(whole, parts)
    assert len(shown) == len(texts)


def test_half_a_character_can_be_written() -> None:
    assert json.loads(json_bytes({"text": "\ud83d"})) == {"text": "\ud83d"}


def test_every_format_has_a_family_of_its_own() -> None:
    assert len({wire.family for wire in FORMATS.values()}) == len(FORMATS)
