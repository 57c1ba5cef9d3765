"""Streams for every client: every word in its own shape, nothing held back, and whole answers made of them and back."""

from __future__ import annotations

import json
from typing import Any

import pytest
from msgspec import Raw

from tests.translation.lanes import EVERY_CLIENT, MORE_UPSTREAMS, NOW, UPSTREAMS, Client, Lane, StreamReader, Upstream
from tests.translation.sdk_types import check_body, check_stream, payloads
from thoughtline import providers
from thoughtline.formats import FORMATS
from thoughtline.translation import (
    ResponseContext,
    reply_events,
    stream_reply,
    translate_error,
    translate_reply,
    translate_request,
    whole_reply,
)
from thoughtline.translation.calls import CallIds, rule_of
from thoughtline.translation.replies import ResponseTranslator
from thoughtline.values.events import CallDelta, Event, ItemDone, Other, Started, TextDelta, TurnDone, fold
from thoughtline.values.items import DEEPSEEK_V1, REASONING_KINDS, Item, ReasoningText, Text, ToolCall, Unknown
from thoughtline.values.turns import Candidate, Finish, FormatName, Reply, Turn, Usage

clients = pytest.mark.parametrize("to", EVERY_CLIENT)
TOOL_CALLS = Finish("tool_calls", "tool_calls")
ANSWER: tuple[Item, ...] = (
    ReasoningText("I should look.", None, DEEPSEEK_V1),
    Text("Let me see."),
    ToolCall("look", '{"at": 1}', "call_1"),
    ToolCall("hear", '{"at": 2}', "call_2"),
)
USAGE = Usage(100, 40, 15, 60)


def way_to(to: FormatName, source: FormatName = "openai_chat", **changes: Any) -> ResponseContext:
    ids = CallIds(rule_of(to, FORMATS[to].dialect), 0, frozenset(), "salt")
    dialect = providers.DEEPSEEK if source == "openai_chat" else FORMATS[source].dialect
    return ResponseContext(source, dialect, to, FORMATS[to].dialect, ids, None, True, NOW)._replace(**changes)


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


def translated(frames: list[bytes], way: ResponseContext) -> bytes:
    translator = StreamReader(way)
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
    translator = StreamReader(way_to(to))
    given = [translator.feed(frame).data for frame in STREAM[1:5]]
    for word, data in zip(("I should ", "look.", "Let me ", "see."), given, strict=True):
        assert json.dumps(word).encode()[1:-1] in data


@clients
def test_the_end_of_a_turn_is_separate(to: FormatName) -> None:
    """What tells the client that its turn is over comes as `ending`: it may wait until the turn is saved."""
    if to == "openai_chat":
        return
    translator = StreamReader(way_to(to))
    chunks = [translator.feed(frame) for frame in STREAM]
    last = translator.finish()
    marks = {
        "openai_responses": b"response.completed",
        "anthropic_messages": b"message_delta",
        "gemini_generate": b"finishReason",
        "ollama_chat": b'"done":true',
        "command_code_generate": b'"type":"finish"',
    }
    assert not any(marks[to] in chunk.data for chunk in chunks)
    assert marks[to] in b"".join(chunk.ending for chunk in (*chunks, last))


@clients
def test_calls_that_grow_side_by_side(to: FormatName) -> None:
    """Alternating pieces of two parallel calls: each call is sent complete, one after the other."""
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
        case "command_code_generate":
            assert (events[-1]["type"], events[-1]["error"]["message"]) == ("error", "Overloaded.")
        case _:
            assert events[-1] == {"error": "Overloaded."}


@clients
def test_a_stream_that_breaks_off(to: FormatName) -> None:
    """No end is invented: the received content is sent, and the turn stays open."""
    if to == "openai_chat":
        return
    reply = folded(translated(chat_stream({"content": "Let"}, finish=None, usage=False), way_to(to)), to)
    assert kinds(reply) == [("Text", "Let")]
    assert reply.candidates[0].finish is None


@clients
def test_an_error_of_ours_in_mid_stream(to: FormatName) -> None:
    """Bytes that can't be read end in the client's own error event."""
    translator = StreamReader(way_to(to))
    translator.feed(STREAM[1])
    assert b"went wrong" in translator.fail("the upstream went wrong")


def test_pings_are_kept() -> None:
    """A ping of Anthropic's keeps a chat client's connection alive, and says nothing."""
    outward = ResponseTranslator(way_to("openai_chat", "anthropic_messages"))
    outward.feed(Started("m1", "m"))
    assert outward.feed(Other(Raw(b'{"type":"ping"}'))) == [Other(Raw(b'{"type":"ping"}'))]


def test_what_a_client_has_no_place_for_is_found() -> None:
    """What a provider's own tool did is left out of the answer, and found."""
    events: list[Event] = [
        Started(),
        ItemDone(0, 0, Unknown("server_tool_use", Raw(b"{}"))),
        *_later("hi"),
        TurnDone(0, TOOL_CALLS),
    ]
    outward = ResponseTranslator(way_to("openai_chat", "anthropic_messages"))
    said = [one for event in events for one in outward.feed(event)]
    assert [finding.rule for finding in outward.findings] == ["untranslatable"]
    assert [event.item for event in said if isinstance(event, ItemDone)] == [Text("hi")]


def _later(text: str) -> list[Event]:
    return [TextDelta(0, 1, text), ItemDone(0, 1, Text(text))]


@clients
def test_a_name_that_comes_late(to: FormatName) -> None:
    """A call is sent once it has a name, with all its earlier pieces."""
    outward = ResponseTranslator(way_to(to, "anthropic_messages" if to == "openai_chat" else "openai_chat"))
    outward.feed(Started())
    assert outward.feed(CallDelta(0, 0, '{"a"')) == []
    told = outward.feed(CallDelta(0, 0, ": 1}", "call_1", "look"))
    assert [(event.name, event.arguments) for event in told if isinstance(event, CallDelta)] == [("look", '{"a": 1}')]


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


# --- content after the text -------------------------------------------------------------------------------------------

WORDS = """Hello.
script:
think: what to say
say: All of the answer.
---
think: one call
say: Let me look.
call: weather {"city": "Paris"}
---
redacted
say: And goodbye."""


@pytest.mark.parametrize("is_streaming", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("client", ["anthropic_messages", "openai_responses"])
@pytest.mark.parametrize("upstream", [*UPSTREAMS, *MORE_UPSTREAMS], ids=lambda upstream: upstream.id)
def test_no_thinking_comes_after_the_words(upstream: Upstream, client: FormatName, is_streaming: bool) -> None:
    """Claude Code takes the last block of an answer for the answer: an envelope comes before the text, or before the
    calls, whenever its seals arrived.
    """
    if upstream.format == client:
        return
    talking = Client(Lane(upstream, client), WORDS)
    for _ in range(3):
        talking.ask(is_streaming)
        items = talking.replies[-1].candidates[0].turn.items
        kinds = [
            "thought" if isinstance(item, REASONING_KINDS) else "call" if isinstance(item, ToolCall) else "words"
            for item in items
        ]
        assert kinds[-1] != "thought", kinds
        talking.go_on()


@pytest.mark.parametrize("client", ["anthropic_messages", "openai_responses", "gemini_generate"])
def test_a_seal_that_comes_with_the_thinking_is_in_the_envelope_before_the_words(client: FormatName) -> None:
    """OpenRouter signs its thinking before the words begin: a client that keeps what it gets needs no store."""
    upstream = next(one for one in MORE_UPSTREAMS if one.simulator == "openrouter")
    talking = Client(Lane(upstream, client, keeps=False), WORDS)
    for _ in range(3):
        talking.ask(True)
        talking.go_on()
    assert set(talking.lane.verdicts) <= {"whole", "none"}


def test_a_seal_that_comes_after_the_words_stays_with_the_record() -> None:
    """The client gets no block for it; the next turn has it from the store."""
    chunks: list[dict[str, Any]] = [
        {"delta": {"reasoning_text": "hm"}},
        {"delta": {"content": "All of it."}},
        {"delta": {"reasoning_opaque": "late"}},
        {"delta": {}, "finish_reason": "stop"},
    ]
    stream = b"".join(
        b"data: " + json.dumps({"id": "c", "model": "m", "choices": [{"index": 0, **one}]}).encode() + b"\n\n"
        for one in chunks
    )
    copilot = next(one for one in MORE_UPSTREAMS if one.simulator == "copilot")
    lane = Lane(copilot, "anthropic_messages")
    body = json.dumps({"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "hi"}]}).encode()
    bodies = FORMATS["anthropic_messages"].bodies
    asked = bodies.decode_request(body, FORMATS["anthropic_messages"].dialect)
    request = translate_request(asked, "openai_chat", copilot.contract, copilot.model)
    translator = StreamReader(lane.way(request))
    first, last = translator.feed(stream), translator.finish()
    out = first.data + first.ending + last.data + last.ending
    starts = [line for line in out.splitlines() if line.startswith(b"data") and b"content_block_start" in line]
    kinds = [json.loads(line[6:])["content_block"]["type"] for line in starts]
    assert kinds == ["thinking", "text"]
    known = [event.item for event in first.events if isinstance(event, ItemDone)]
    assert any(isinstance(item, ReasoningText) and item.signature == "late" for item in known)


# --- usage, empty arguments -------------------------------------------------------------------------------------------


def messages_stream(begun: dict[str, Any], ended: dict[str, Any]) -> bytes:
    events: list[dict[str, Any]] = [
        {"type": "message_start", "message": {"id": "m", "model": "c", "usage": begun}},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "tool_use", "id": "t1", "name": "look"}},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": ended},
        {"type": "message_stop"},
    ]
    return b"".join(f"event: {one['type']}\ndata: {json.dumps(one)}\n\n".encode() for one in events)


@pytest.mark.parametrize("to", [to for to in EVERY_CLIENT if to != "anthropic_messages"])
@pytest.mark.parametrize(
    ("begun", "ended"),
    [
        ({"input_tokens": 7, "cache_read_input_tokens": 90, "cache_creation_input_tokens": 3}, {"output_tokens": 5}),
        (
            {"input_tokens": 7, "cache_read_input_tokens": 90, "cache_creation_input_tokens": 3, "output_tokens": 1},
            {"input_tokens": 7, "cache_read_input_tokens": 90, "cache_creation_input_tokens": 3, "output_tokens": 5},
        ),
        ({"input_tokens": 10, "cache_read_input_tokens": 90}, {"input_tokens": 0, "output_tokens": 5}),
        ({"input_tokens": 0}, {"input_tokens": 10, "cache_read_input_tokens": 90, "output_tokens": 5}),
    ],
)
def test_the_input_that_a_stream_tells_at_its_start_counts(to: FormatName, begun: Any, ended: Any) -> None:
    """Anthropic tells it there, cached input apart; context meters go by it."""
    translator = StreamReader(way_to(to, "anthropic_messages"))
    first, last = translator.feed(messages_stream(begun, ended)), translator.finish()
    decoder = FORMATS[to].stream_decoder(FORMATS[to].dialect)
    out = first.data + first.ending + last.data + last.ending
    usage = fold([*decoder.feed(out), *decoder.finish()], to).usage
    assert usage is not None
    assert (usage.input, usage.output) == (100, 5)
    assert usage.cached in (90, 0 if to == "ollama_chat" else 90)


@pytest.mark.parametrize("to", ["openai_chat", "openai_responses"])
def test_a_call_without_arguments_has_an_empty_object(to: FormatName) -> None:
    """Clients read the arguments as JSON: streamed, at the end, and whole."""
    stream = messages_stream({"input_tokens": 1}, {"output_tokens": 1})
    translator = StreamReader(way_to(to, "anthropic_messages"))
    first, last = translator.feed(stream), translator.finish()
    out = first.data + first.ending + last.data + last.ending
    said = [json.loads(line[6:]) for line in out.splitlines() if line.startswith(b"data: {")]
    if to == "openai_chat":
        deltas = [call for one in said if one["choices"] for call in one["choices"][0]["delta"].get("tool_calls", ())]
        assert "".join(call["function"].get("arguments", "") for call in deltas) == "{}"
    else:
        grown = [one["delta"] for one in said if one["type"] == "response.function_call_arguments.delta"]
        done = next(one for one in said if one["type"] == "response.output_item.done")
        assert ("".join(grown), done["item"]["arguments"]) == ("{}", "{}")
    whole = json.loads(whole_reply(first.events, way_to(to, "anthropic_messages")).body)
    assert '"arguments": "{}"' in json.dumps(whole)


BREAKS = "a\u0085b\u2028c\u2029d"
BROKEN: tuple[Item, ...] = (
    ReasoningText(BREAKS, None, DEEPSEEK_V1),
    Text(BREAKS),
    ToolCall("look", json.dumps({"at": BREAKS}, ensure_ascii=False), "call_1"),
    ToolCall("look", json.dumps({"at": BREAKS}), "call_2"),
)


def is_on_lines(data: bytes) -> bool:
    """Whether nobody who reads a stream line by line, by any rule, sees another line in it."""
    return [line.encode() for line in data.decode().splitlines()] == data.splitlines()


@clients
@pytest.mark.parametrize("ensure_ascii", [True, False], ids=["escaped", "raw"])
def test_line_breaks_inside_strings_are_escaped(to: FormatName, ensure_ascii: bool) -> None:
    """However the provider spelled them: in words, thoughts and arguments, in streams and whole answers. What goes
    on as the provider's own bytes keeps its spelling."""
    deltas = [
        {"reasoning_content": BREAKS},
        {"content": BREAKS},
        call_delta(0, json.dumps({"at": BREAKS}), "c", "look"),
    ]
    lines = [
        b"data: " + json.dumps(json.loads(line[6:]), ensure_ascii=ensure_ascii).encode() + b"\n\n"
        for line in chat_stream(*deltas)[:-1]
    ]
    translator = StreamReader(way_to(to))
    said = b"".join(translator.feed(line).data for line in lines)
    ended = translator.finish()
    assert is_on_lines(said + ended.data + ended.ending) is (to != "openai_chat" or ensure_ascii)
    reply = Reply("openai_chat", (Candidate(Turn("assistant", BROKEN), 0, TOOL_CALLS),), b"", "c1", "m", USAGE)
    assert is_on_lines(stream_reply(reply, way_to(to)).body)
    whole = translate_reply(reply, way_to(to)).body
    assert is_on_lines(whole)
    read = [json.loads(line) for line in whole.split(b"\n") if line]
    assert json.dumps(read, ensure_ascii=False).count("\u2028") >= 3


@clients
def test_line_breaks_in_errors_are_escaped(to: FormatName) -> None:
    """Whole, and in the middle of a stream."""
    body = json.dumps({"error": {"message": BREAKS, "type": "x"}}).encode()
    assert is_on_lines(translate_error(400, body, "openai_chat", to)[1])
    assert is_on_lines(StreamReader(way_to(to)).fail(BREAKS))


@pytest.mark.parametrize("arguments", [{"arguments": ""}, {}], ids=["empty", "none"])
def test_a_chat_call_without_arguments_has_an_empty_object(arguments: dict[str, str]) -> None:
    """The same for a Responses client of a chat provider."""
    call = {"index": 0, "id": "c", "type": "function", "function": {"name": "look", **arguments}}
    translator = StreamReader(way_to("openai_responses"))
    chunks = [*map(translator.feed, chat_stream({"tool_calls": [call]})), translator.finish()]
    out = b"".join(chunk.data + chunk.ending for chunk in chunks)
    said = [json.loads(line[6:]) for line in out.splitlines() if line.startswith(b"data: {")]
    (done,) = [one["item"] for one in said if one["type"] == "response.output_item.done"]
    events = [event for chunk in chunks for event in chunk.events]
    (whole,) = json.loads(whole_reply(events, way_to("openai_responses")).body)["output"]
    assert (done["arguments"], whole["arguments"]) == ("{}", "{}")
