"""Recorded answers of real providers in the words of every client: nothing is lost but by a rule that has a name."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from tests.formats.test_recordings import SEVERAL_RESPONSES_IN_ONE_STREAM, decode_reply, supported
from tests.recordings import SUPPORTED, Exchange, Recording, name_of, needs_recordings
from tests.translation.lanes import EVERY_CLIENT, KEY, NOW, TENANT, StreamReader
from tests.translation.sdk_types import check_body, check_stream
from thoughtline.formats import FORMATS
from thoughtline.formats.json_text import encode, is_json
from thoughtline.replay.visible import canonical_json
from thoughtline.translation import ResponseContext, Sealer, Sealing, stream_reply, translate_reply
from thoughtline.translation.calls import CallIds, rule_of
from thoughtline.values.events import fold
from thoughtline.values.items import (
    NO_RAW,
    REASONING_KINDS,
    Item,
    ReasoningSummary,
    ReasoningText,
    Text,
    ToolCall,
    Unknown,
    is_envelope,
    readable_text,
    seal_of,
)
from thoughtline.values.turns import FormatName, Provenance, Reply

pytestmark = needs_recordings
recordings = pytest.mark.parametrize("recording", SUPPORTED, ids=name_of)
Said = list[tuple[str, str]]


def way_to(exchange: Exchange, to: FormatName) -> ResponseContext:
    where = Provenance(TENANT, "p", "https://h", "a", "m", "m", exchange.format.name, exchange.dialect.name)
    ids = CallIds(rule_of(to, FORMATS[to].dialect), 0, frozenset(), "salt")
    sealing = Sealing(Sealer(KEY, TENANT), where)
    return ResponseContext(exchange.format.name, exchange.dialect, to, FORMATS[to].dialect, ids, sealing, True, NOW)


def answered(recording: Recording) -> list[tuple[Exchange, Reply]]:
    """The exchanges that have an answer."""
    pairs = [(exchange, decode_reply(exchange)) for exchange in supported(recording)]
    return [(exchange, reply) for exchange, reply in pairs if reply and reply.candidates and reply.error is None]


def others(exchange: Exchange) -> list[FormatName]:
    return [to for to in EVERY_CLIENT if to != exchange.format.name]


def decoded(body: bytes, to: FormatName) -> Reply:
    bodies = FORMATS[to].bodies
    return bodies.decode_response(body, FORMATS[to].dialect)


def streamed(stream: bytes, to: FormatName) -> Reply:
    decoder = FORMATS[to].stream_decoder(FORMATS[to].dialect)
    return fold([*decoder.feed(stream), *decoder.finish()], to)


# --- what a format can't express, by rule -----------------------------------------------------------------------------


def said(items: tuple[Item, ...], to: FormatName) -> Said:
    """What items say, as far as the client's format can say it.

    words-only    words of a refusal are words; an empty text says nothing
    no-server     what a provider's own tools did has no place in another's format
    no-summary    only Responses tells a summary from the text of thinking
    hidden        thinking that nobody can read shows in no field, but for Anthropic's block without words
    one-field     chat and Ollama have one field for all thinking and one for all words, before the calls
    neighbours    Gemini's parts grow over chunks: two neighbours of one kind are one; so are words in a Responses list
    an-object     arguments that are no object stand inside one, where a wire wants objects
    """
    told: Said = []
    for item in items:
        match item:
            case Text():
                told += [("text", item.text)] if item.text else []
            case Unknown(kind="refusal"):
                told.append(("text", bytes(item.raw).decode().strip('"')))
            case ToolCall():
                told.append(("call", f"{item.name} {_arguments(item, to)}"))
            case ReasoningSummary() if to == "openai_responses":
                told += [("summary", item.summary)] if item.summary else []
            case ReasoningText() | ReasoningSummary():
                told += [("thought", readable_text(item))] if readable_text(item) else []
            case _:
                pass
    if to in ("gemini_generate", "openai_responses"):
        return _joined(told, ("text",) if to == "openai_responses" else ("text", "thought"))
    return _in_one_field(told) if to in ("openai_chat", "ollama_chat") else told


def _joined(told: Said, kinds: tuple[str, ...]) -> Said:
    joined: Said = []
    for kind, text in told:
        if joined and kind in kinds and joined[-1][0] == kind:
            joined[-1] = (kind, joined[-1][1] + text)
        else:
            joined.append((kind, text))
    return joined


def _arguments(call: ToolCall, to: FormatName) -> str:
    is_object = to not in ("openai_chat", "openai_responses")
    if call.is_custom:
        return canonical_json(f'{{"input": {_quoted(call.arguments)}}}') if is_object else call.arguments
    text = call.arguments.strip()
    if is_object and not (text.startswith("{") and is_json(text)):
        return "{}" if text in ("", "null") else canonical_json(f'{{"arguments": {_quoted(call.arguments)}}}')
    return canonical_json(call.arguments)


def _quoted(text: str) -> str:
    return encode(text).decode()


def _in_one_field(told: Said) -> Said:
    thoughts = [text for kind, text in told if kind == "thought"]
    words = [text for kind, text in told if kind == "text"]
    first = [("thought", "\n\n".join(thoughts))] if thoughts else []
    return [*first, *([("text", "".join(words))] if words else []), *(one for one in told if one[0] == "call")]


def sealed(items: tuple[Item, ...]) -> list[Item]:
    """The reasoning of an answer, and its calls that carry a seal: what an envelope is to hold."""
    kept = [item for item in items if isinstance(item, REASONING_KINDS) or (isinstance(item, ToolCall) and item.seal)]
    return [item if isinstance(item, REASONING_KINDS) else replace(item, raw=NO_RAW) for item in kept]


def opened(items: tuple[Item, ...]) -> list[Item]:
    """What the envelopes of a client's answer hold, together."""
    sealer = Sealer(KEY, TENANT)
    found: list[Item] = []
    for item in items:
        seal = seal_of(item)
        if seal is not None and is_envelope(seal.data):
            held = sealer.open(seal.data)
            assert held is not None
            found += held.items
    return found


def by_kind(items: list[Item]) -> list[str]:
    """Items in an order of their own: an envelope that comes late holds what it holds, and its place."""
    return sorted(encode(item).decode() for item in items)


@recordings
def test_whole_answers_say_the_same(recording: Recording) -> None:
    """Translated into any client's format and read back: the same items, and a body that the official SDK takes."""
    for exchange, reply in answered(recording):
        for to in others(exchange):
            body = translate_reply(reply, way_to(exchange, to)).body
            check_body(to, body)
            back = decoded(body, to).candidates[0]
            assert said(back.turn.items, to) == said(reply.candidates[0].turn.items, to)
            finish = reply.candidates[0].finish
            assert back.finish is not None or finish is None


@recordings
def test_envelopes_hold_all_that_was_thought(recording: Recording) -> None:
    """Where the client has a slot, its envelopes hold the reasoning as the provider gave it, JSON and seals and all.
    A Gemini client's hold words beside it, those with white space around them."""
    for exchange, reply in answered(recording):
        for to in others(exchange):
            if to in ("openai_chat", "ollama_chat", "command_code_generate"):
                continue
            body = translate_reply(reply, way_to(exchange, to)).body
            items = decoded(body, to).candidates[0].turn.items
            held = opened(items)
            words = [item for item in held if isinstance(item, Text)]
            assert by_kind([item for item in held if item not in words]) == by_kind(
                sealed(reply.candidates[0].turn.items)
            )
            assert to == "gemini_generate" or not words
            assert {item.text for item in words} <= {item.text for item in items if isinstance(item, Text)}


BLANKS_BEHIND_CALLS = ("avian-kimi-multi-tool-streaming", "avian-kimi-thinking-streaming")
"""Streams in which words go on after a call: one more blank."""


@recordings
def test_streams_say_what_the_whole_says(recording: Recording) -> None:
    """A recorded stream, or one made from a whole answer: the client's stream folds into the client's whole answer."""
    if any(part in recording.id for part in SEVERAL_RESPONSES_IN_ONE_STREAM):
        return  # the steps of an agent, stored one after the other: no stream of a provider's
    if any(part in recording.id for part in BLANKS_BEHIND_CALLS):
        return  # a whole answer has them before its calls
    for exchange, reply in answered(recording):
        for to in others(exchange):
            way = way_to(exchange, to)
            stream = _translated(exchange, way) if exchange.stream is not None else stream_reply(reply, way).body
            if not any(isinstance(item, ToolCall) and item.is_custom for item in reply.candidates[0].turn.items):
                check_stream(to, stream)  # the SDK has no type for a custom call in a chat chunk
            whole = decoded(translate_reply(reply, way).body, to)
            told = said(streamed(stream, to).candidates[0].turn.items, to)
            assert _unkinded(told) == _unkinded(said(whole.candidates[0].turn.items, to))


def _unkinded(told: Said) -> Said:
    """A chat stream brings thinking before it says that it is a summary: by then it has gone out as text."""
    return [("thought" if kind == "summary" else kind, text) for kind, text in told]


def _translated(exchange: Exchange, way: ResponseContext) -> bytes:
    translator = StreamReader(way)
    first, last = translator.feed(exchange.stream or b""), translator.finish()
    return first.data + first.ending + last.data + last.ending
