"""Streams for every client: the grammar its SDK expects, nothing held back, and whole answers made of them and back."""

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

from tests.translation.sdk_types import check_body, check_stream, payloads
from tests.translation.world import BODY_TYPES, NOW
from thoughtline import providers
from thoughtline.events import (
    CallDelta,
    Event,
    Failed,
    ItemDone,
    Other,
    ReasoningDelta,
    Started,
    TextDelta,
    TurnDone,
    UsageReported,
)
from thoughtline.formats import FORMATS
from thoughtline.items import DEEPSEEK_V1, Item, ReasoningText, Text, ToolCall, Unknown
from thoughtline.replay.capture import fold
from thoughtline.translation import (
    StreamTranslator,
    Way,
    reply_events,
    stream_reply,
    whole_reply,
)
from thoughtline.translation.calls import CallIds, rule_of
from thoughtline.translation.outward import Outward
from thoughtline.turns import Candidate, Finish, FormatName, Reply, Turn, Usage

clients = pytest.mark.parametrize("to", BODY_TYPES)
TOOL_CALLS = Finish("tool_calls", "tool_calls")
ANSWER: tuple[Item, ...] = (
    ReasoningText("I should look.", None, DEEPSEEK_V1),
    Text("Let me see."),
    ToolCall("look", '{"at": 1}', "call_1"),
    ToolCall("hear", '{"at": 2}', "call_2"),
)
USAGE = Usage(100, 40, 15, 60)


def way_to(to: FormatName, source: FormatName = "openai_chat", **changes: Any) -> Way:
    ids = CallIds(rule_of(to, FORMATS[to].dialect), 0, frozenset(), "salt")
    dialect = providers.DEEPSEEK if source == "openai_chat" else FORMATS[source].dialect
    return Way(source, dialect, to, FORMATS[to].dialect, ids, None, True, NOW)._replace(**changes)


def chat_stream(*deltas: dict[str, Any], finish: str | None = "tool_calls", usage: bool = True) -> list[bytes]:
    """The chunks of a chat stream, one delta each."""
    chunks: list[dict[str, Any]] = [
        {"id": "c1", "model": "m", "choices": [{"index": 0, "delta": delta, "finish_reason": None}]} for delta in deltas
    ]
    if finish is not None:
        chunks.append({"id": "c1", "model": "m", "choices": [{"index": 0, "delta": {}, "finish_reason": finish}]})
    if usage:
        counts = {"prompt_tokens": 100, "completion_tokens": 40, "completion_tokens_details": {"reasoning_tokens": 15}}
        chunks.append({"id": "c1", "choices": [], "usage": counts | {"prompt_tokens_details": {"cached_tokens": 60}}})
    lines = [b"data: " + json.dumps(chunk).encode() + b"\n\n" for chunk in chunks]
    return [*lines, *([b"data: [DONE]\n\n"] if finish else [])]


def call_delta(index: int, arguments: str, id: str | None = None, name: str | None = None) -> dict[str, Any]:
    function = {"arguments": arguments} | ({"name": name} if name else {})
    return {"tool_calls": [{"index": index, "function": function} | ({"id": id, "type": "function"} if id else {})]}


STREAM = chat_stream(
    {"role": "assistant", "content": None, "reasoning_content": ""},
    {"reasoning_content": "I should "},
    {"reasoning_content": "look."},
    {"content": "Let me "},
    {"content": "see."},
    call_delta(0, "", "call_1", "look"),
    call_delta(0, '{"at": '),
    call_delta(0, "1}"),
    call_delta(1, '{"at": 2}', "call_2", "hear"),
)


def translated(frames: list[bytes], way: Way) -> bytes:
    translator = StreamTranslator(way)
    chunks = [translator.feed(frame) for frame in frames]
    last = translator.finish()
    return b"".join(chunk.data + chunk.ending for chunk in (*chunks, last))


def folded(stream: bytes, to: FormatName) -> Reply:
    decoder = FORMATS[to].stream_decoder(FORMATS[to].dialect)
    return fold([*decoder.feed(stream), *decoder.finish()], to)


def kinds(reply: Reply) -> list[tuple[str, str]]:
    return [
        (type(item).__name__, getattr(item, "text", getattr(item, "arguments", "")))
        for item in reply.candidates[0].turn.items
    ]


@clients
def test_a_stream_in_every_clients_words(to: FormatName) -> None:
    """Thinking, words and parallel calls in order, with usage and the reason why it ended; all events fit the SDK."""
    if to == "openai_chat":
        return
    stream = translated(STREAM, way_to(to))
    check_stream(to, stream)
    reply = folded(stream, to)
    assert kinds(reply) == [
        ("ReasoningText", "I should look."),
        ("Text", "Let me see."),
        ("ToolCall", '{"at": 1}'),
        ("ToolCall", '{"at": 2}'),
    ]
    finish = reply.candidates[0].finish
    assert finish is not None
    assert finish.reason == "tool_calls"
    assert reply.usage is not None
    assert (reply.usage.input, reply.usage.output) == (100, 40)
    if to != "ollama_chat":  # its counts have no details
        assert (reply.usage.reasoning, reply.usage.cached) == (15, 60)


@clients
def test_nothing_is_held_back(to: FormatName) -> None:
    """Each delta of thinking and words is with the client before the next one is read."""
    if to == "openai_chat":
        return
    translator = StreamTranslator(way_to(to))
    given = [translator.feed(frame).data for frame in STREAM[1:5]]
    for word, data in zip(("I should ", "look.", "Let me ", "see."), given, strict=True):
        assert json.dumps(word).encode()[1:-1] in data


@clients
def test_the_end_of_a_turn_is_told_apart(to: FormatName) -> None:
    """What tells the client that its turn is over comes as `ending`: it may wait until the turn is saved."""
    if to == "openai_chat":
        return
    translator = StreamTranslator(way_to(to))
    chunks = [translator.feed(frame) for frame in STREAM]
    last = translator.finish()
    marks = {
        "openai_responses": b"response.completed",
        "anthropic_messages": b"message_delta",
        "gemini_generate": b"finishReason",
        "ollama_chat": b'"done":true',
    }
    assert not any(marks[to] in chunk.data for chunk in chunks)
    assert marks[to] in b"".join(chunk.ending for chunk in (*chunks, last))


@clients
def test_calls_that_grow_side_by_side(to: FormatName) -> None:
    """Pieces of two parallel calls in turns: each call is told whole, one after the other."""
    if to == "openai_chat":
        return
    frames = chat_stream(
        call_delta(0, '{"a', "call_1", "look"),
        call_delta(1, '{"b', "call_2", "hear"),
        call_delta(0, '": 1}'),
        call_delta(1, '": 2}'),
    )
    stream = translated(frames, way_to(to))
    check_stream(to, stream)
    assert kinds(folded(stream, to)) == [("ToolCall", '{"a": 1}'), ("ToolCall", '{"b": 2}')]


@clients
def test_thinking_after_words(to: FormatName) -> None:
    """A model that thinks again after it spoke: a second piece of thinking, in its place where the format has one."""
    if to == "openai_chat":
        return
    frames = chat_stream(
        {"reasoning_content": "one"}, {"content": "a"}, {"reasoning_content": "two"}, {"content": "b"}, finish="stop"
    )
    reply = folded(translated(frames, way_to(to)), to)
    if to == "ollama_chat":
        assert kinds(reply) == [("ReasoningText", "one\n\ntwo"), ("Text", "ab")]
    else:
        assert [text for _, text in kinds(reply)] == ["one", "a", "two", "b"]


@clients
def test_a_failure_in_mid_stream(to: FormatName) -> None:
    """The upstream's error is the client format's own error event, with the provider's sentence; nothing follows it."""
    if to == "openai_chat":
        return
    frames = [
        *chat_stream({"content": "Let"}, finish=None, usage=False),
        b'data: {"error":{"message":"Overloaded.","code":529}}\n\n',
    ]
    stream = translated(frames, way_to(to))
    events = [json.loads(payload) for payload in payloads(to, stream)]
    match to:
        case "anthropic_messages":
            assert events[-1] == {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded."}}
        case "openai_responses":
            assert (events[-1]["type"], events[-1]["message"]) == ("error", "Overloaded.")
        case "gemini_generate":
            assert events[-1]["error"]["message"] == "Overloaded."
        case _:
            assert events[-1] == {"error": "Overloaded."}


@clients
def test_a_stream_that_breaks_off(to: FormatName) -> None:
    """No end is made up: what came is told, and the turn is not told to be over."""
    if to == "openai_chat":
        return
    reply = folded(translated(chat_stream({"content": "Let"}, finish=None, usage=False), way_to(to)), to)
    assert kinds(reply) == [("Text", "Let")]
    assert reply.candidates[0].finish is None


@clients
def test_an_error_of_ours_in_mid_stream(to: FormatName) -> None:
    """Bytes that can't be read end in the client's own error event."""
    translator = StreamTranslator(way_to(to))
    translator.feed(STREAM[1])
    assert b"went wrong" in translator.fail("the upstream went wrong")


def test_pings_are_kept() -> None:
    """A ping of Anthropic's keeps a chat client's connection alive, and says nothing."""
    outward = Outward(way_to("openai_chat", "anthropic_messages"))
    outward.take(Started("m1", "m"))
    assert outward.take(Other(Raw(b'{"type":"ping"}'))) == [Other(Raw(b'{"type":"ping"}'))]


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


def _encoded(events: list[Event], way: Way) -> bytes:
    outward, encoder = Outward(way), FORMATS[way.to].stream_encoder(way.dialect)
    said = [one for event in events for one in outward.take(event)]
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


def test_what_a_client_has_no_place_for_is_found() -> None:
    """What a provider's own tool did is left out of the answer, and found."""
    events: list[Event] = [
        Started(),
        ItemDone(0, 0, Unknown("server_tool_use", Raw(b"{}"))),
        *_later("hi"),
        TurnDone(0, TOOL_CALLS),
    ]
    outward = Outward(way_to("openai_chat", "anthropic_messages"))
    said = [one for event in events for one in outward.take(event)]
    assert [finding.rule for finding in outward.findings] == ["untranslatable"]
    assert [event.item for event in said if isinstance(event, ItemDone)] == [Text("hi")]


def _later(text: str) -> list[Event]:
    return [TextDelta(0, 1, text), ItemDone(0, 1, Text(text))]


@clients
def test_a_name_that_comes_late(to: FormatName) -> None:
    """A call is told once it has a name, with all that came before."""
    outward = Outward(way_to(to, "anthropic_messages" if to == "openai_chat" else "openai_chat"))
    outward.take(Started())
    assert outward.take(CallDelta(0, 0, '{"a"')) == []
    told = outward.take(CallDelta(0, 0, ": 1}", "call_1", "look"))
    assert [(event.name, event.arguments) for event in told if isinstance(event, CallDelta)] == [("look", '{"a": 1}')]


@clients
def test_the_first_event_of_a_stream_that_fails_at_once(to: FormatName) -> None:
    """An error before anything was said is told as one."""
    stream = _encoded(
        [Failed(Raw(b'{"message":"no"}'))], way_to(to, "ollama_chat" if to != "ollama_chat" else "openai_chat")
    )
    assert b"no" in stream


# --- whole from stream, stream from whole -----------------------------------------------------------------------------


@clients
def test_a_whole_answer_made_from_a_stream(to: FormatName) -> None:
    """A client that wants a whole answer of an upstream that only streams: a complete body, in both lanes."""
    way = way_to(to)
    decoder = FORMATS["openai_chat"].stream_decoder(providers.DEEPSEEK)
    events = [event for frame in STREAM for event in decoder.feed(frame)] + decoder.finish()
    body = whole_reply(events, way).body
    check_body(to, body)
    bodies = FORMATS[to].bodies
    assert bodies is not None
    reply = bodies.decode_response(body, FORMATS[to].dialect)
    assert kinds(reply)[0] == ("ReasoningText", "I should look.")
    assert [item.name for item in reply.candidates[0].turn.items if isinstance(item, ToolCall)] == ["look", "hear"]
    assert reply.usage is not None


@clients
def test_a_stream_made_from_a_whole_answer(to: FormatName) -> None:
    """A client that wants a stream of an upstream that answers whole, in both lanes."""
    reply = Reply("openai_chat", (Candidate(Turn("assistant", ANSWER), 0, TOOL_CALLS),), b"", "c1", "m", USAGE)
    stream = stream_reply(reply, way_to(to)).body
    check_stream(to, stream)
    assert [text for _, text in kinds(folded(stream, to))] == [
        "I should look.",
        "Let me see.",
        '{"at": 1}',
        '{"at": 2}',
    ]


def test_a_whole_answer_as_events_folds_into_itself() -> None:
    """Nothing is lost between a whole answer and the events of it."""
    reply = Reply(
        "openai_chat", (Candidate(Turn("assistant", ANSWER), 0, TOOL_CALLS),), b"", "c1", "m", USAGE, None, NOW
    )
    assert fold(reply_events(reply), "openai_chat") == reply


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
