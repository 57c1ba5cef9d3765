"""The grammar of each client's streams: how they begin, nest and end, and the official SDKs that read them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import anthropic
import httpx
import httpx2
import openai
import pytest
from google import genai
from msgspec import Raw

from tests.translation.lanes import NOW
from tests.translation.sdk_types import check_stream, payloads
from tests.translation.test_streams import ANSWER, STREAM, TOOL_CALLS, USAGE, clients, translated, way_to
from thoughtline.formats import FORMATS
from thoughtline.translation import ResponseContext
from thoughtline.translation.replies import ResponseTranslator
from thoughtline.values.events import (
    CallDelta,
    Event,
    Failed,
    ItemDone,
    ReasoningDelta,
    Started,
    TextDelta,
    TurnDone,
    UsageReported,
)
from thoughtline.values.items import Text
from thoughtline.values.turns import Finish, FormatName


def test_chat_streams_end_as_chat_clients_expect() -> None:
    """The role first, then the finish, then usage if it was asked for, then `[DONE]`."""
    events: list[Event] = [
        Started("m1", "m"),
        UsageReported(USAGE),
        *_spoken("hi"),
        TurnDone(0, Finish("stop", "end_turn")),
    ]
    for wants_usage in (True, False):
        stream = _encoded(events, way_to("openai_chat", "anthropic_messages", wants_usage=wants_usage))
        check_stream("openai_chat", stream)
        chunks = [json.loads(payload) for payload in payloads("openai_chat", stream)]
        assert chunks[0]["choices"][0]["delta"]["role"] == "assistant"
        assert chunks[0]["created"] == NOW
        finishes = [chunk["choices"][0]["finish_reason"] for chunk in chunks if chunk["choices"]]
        assert finishes[-1] == "stop"
        assert ("usage" in chunks[-1]) == wants_usage
        assert stream.endswith(b"data: [DONE]\n\n")


def _spoken(text: str) -> list[Event]:
    return [TextDelta(0, 0, text), ItemDone(0, 0, Text(text))]


def _encoded(events: list[Event], way: ResponseContext) -> bytes:
    outward, encoder = ResponseTranslator(way), FORMATS[way.to].stream_encoder(way.dialect)
    said = [one for event in events for one in outward.feed(event)]
    return b"".join([*map(encoder.encode, [*said, *outward.finish()]), encoder.finish()])


def test_anthropics_blocks_are_numbered_and_closed() -> None:
    """Start, deltas, stop, one block at a time, indexes from zero, the message around them."""
    events = [
        json.loads(payload)
        for payload in payloads("anthropic_messages", translated(STREAM, way_to("anthropic_messages")))
    ]
    assert [event["type"] for event in events][:1] + [event["type"] for event in events][-2:] == [
        "message_start",
        "message_delta",
        "message_stop",
    ]
    open_block = None
    for event in events[1:-2]:
        match event["type"]:
            case "content_block_start":
                assert open_block is None
                open_block = event["index"]
            case "content_block_stop":
                assert open_block == event["index"]
                open_block = None
            case _:
                assert open_block == event["index"]
    assert [event["index"] for event in events if event["type"] == "content_block_start"] == [0, 1, 2, 3]


def test_responses_events_are_numbered_and_nested() -> None:
    """Sequence numbers without a gap; every item is added, grows, and is done; the last event has them all."""
    events = [
        json.loads(payload) for payload in payloads("openai_responses", translated(STREAM, way_to("openai_responses")))
    ]
    assert [event["sequence_number"] for event in events] == list(range(len(events)))
    assert [event["type"] for event in events[:2]] == ["response.created", "response.in_progress"]
    added = [event["item"]["id"] for event in events if event["type"] == "response.output_item.added"]
    done = [event["item"]["id"] for event in events if event["type"] == "response.output_item.done"]
    assert added == done == [item["id"] for item in events[-1]["response"]["output"]]
    assert len(set(added)) == 4
    assert {event["item_id"] for event in events if "item_id" in event} <= set(added)


@clients
def test_the_first_event_of_a_stream_that_fails_at_once(to: FormatName) -> None:
    """An error before any content is sent as an error."""
    stream = _encoded(
        [Failed(Raw(b'{"message":"no"}'))], way_to(to, "ollama_chat" if to != "ollama_chat" else "openai_chat")
    )
    assert b"no" in stream


# --- the SDKs' own helpers --------------------------------------------------------------------------------------------


def _streams(stream: bytes) -> httpx.Client:
    headers = {"content-type": "text/event-stream"}
    return httpx.Client(transport=httpx.MockTransport(lambda _: httpx.Response(200, content=stream, headers=headers)))


def _streams2(stream: bytes) -> httpx2.Client:
    headers = {"content-type": "text/event-stream"}
    return httpx2.Client(
        transport=httpx2.MockTransport(lambda _: httpx2.Response(200, content=stream, headers=headers))
    )


def _anthropic(stream: bytes) -> list[tuple[str, str]]:
    client = anthropic.Anthropic(api_key="k", http_client=_streams2(stream))
    with client.messages.stream(model="m", max_tokens=99, messages=[{"role": "user", "content": "hi"}]) as events:
        message = events.get_final_message()
    assert message.stop_reason == "tool_use"
    assert message.usage.output_tokens == 40
    return [(block.type, str(getattr(block, "name", ""))) for block in message.content]


def _responses(stream: bytes) -> list[tuple[str, str]]:
    client = openai.OpenAI(api_key="k", http_client=_streams2(stream))
    with client.responses.stream(model="m", input="hi") as events:
        for _ in events:
            pass
        response = events.get_final_response()
    assert response.status == "completed"
    return [(item.type, str(getattr(item, "name", ""))) for item in response.output]


def _chat(stream: bytes) -> list[tuple[str, str]]:
    client = openai.OpenAI(api_key="k", http_client=_streams2(stream))
    with client.chat.completions.stream(model="m", messages=[{"role": "user", "content": "hi"}]) as events:
        for _ in events:
            pass
        message = events.get_final_completion().choices[0].message
    return [("text", str(message.content)), *(("call", call.function.name) for call in message.tool_calls or [])]


def _google(stream: bytes) -> list[tuple[str, str]]:
    options = genai.types.HttpOptions(httpx_client=_streams(stream))
    chunks = genai.Client(api_key="k", http_options=options).models.generate_content_stream(model="m", contents="hi")
    parts = [part for chunk in chunks for part in _parts(chunk)]
    return [("call", str(part.function_call.name)) for part in parts if part.function_call]


def _parts(chunk: Any) -> Iterator[Any]:
    for candidate in chunk.candidates or []:
        yield from (candidate.content.parts or []) if candidate.content else []


HELPERS: list[tuple[FormatName, FormatName, Callable[[bytes], list[tuple[str, str]]], list[tuple[str, str]]]] = [
    (
        "anthropic_messages",
        "openai_chat",
        _anthropic,
        [("thinking", ""), ("text", ""), ("tool_use", "look"), ("tool_use", "hear")],
    ),
    (
        "openai_responses",
        "openai_chat",
        _responses,
        [("reasoning", ""), ("message", ""), ("function_call", "look"), ("function_call", "hear")],
    ),
    ("openai_chat", "ollama_chat", _chat, [("text", "Let me see."), ("call", "look"), ("call", "hear")]),
    ("gemini_generate", "openai_chat", _google, [("call", "look"), ("call", "hear")]),
]


@pytest.mark.parametrize(
    ("to", "source", "read", "expected"), HELPERS, ids=lambda value: value if isinstance(value, str) else ""
)
def test_the_official_helpers_read_it(
    to: FormatName, source: FormatName, read: Callable[[bytes], list[tuple[str, str]]], expected: list[tuple[str, str]]
) -> None:
    """The streaming helpers of the openai, anthropic and google-genai SDKs give the message that was said."""
    events: list[Event] = [
        Started("c1", "m"),
        ReasoningDelta(0, 0, "I should look."),
        TextDelta(0, 1, "Let me see."),
        CallDelta(0, 2, '{"at": 1}', "call_1", "look"),
        CallDelta(0, 3, '{"at": 2}', "call_2", "hear"),
        *(ItemDone(0, position, item) for position, item in enumerate(ANSWER)),
        UsageReported(USAGE),
        TurnDone(0, TOOL_CALLS),
    ]
    assert read(_encoded(events, way_to(to, source))) == expected
