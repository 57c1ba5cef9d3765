"""Streams of each format with a text in given pieces, and everything around it in real streams."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from thoughtline.formats import FORMATS
from thoughtline.values.events import Event, ItemDone, ReasoningDelta, TextDelta
from thoughtline.values.items import ReasoningText, Text
from thoughtline.values.turns import FormatName

Json = dict[str, Any]
Quote = Callable[[str], str]


def plain(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def ascii_only(text: str) -> str:
    return json.dumps(text)


def escaped(text: str) -> str:
    """Every character that can be is an escape, in both cases of its digits."""
    pieces = [f"\\u{ord(c):04x}" if n % 2 else f"\\u{ord(c):04X}" for n, c in enumerate(text) if ord(c) < 0x10000]
    assert len(pieces) == len(text)
    return '"' + "".join(pieces) + '"'


def google(text: str) -> str:
    """As Go and Google's servers write it: brackets as escapes."""
    return json.dumps(text, ensure_ascii=False).replace("<", "\\u003c").replace(">", "\\u003e")


def sse(payload: str, name: str = "") -> bytes:
    return ((f"event: {name}\n" if name else "") + f"data: {payload}\n\n").encode()


def chat(pieces: list[str], quote: Quote = plain) -> list[bytes]:
    """Pings, a role, deltas with odd spacing and unknown members, a call, the end."""
    head = '{"id": "c1",  "object":"chat.completion.chunk","model":"m","choices":[{"index":0,"delta":'
    events = [b": keep-alive\n\n", sse(head + '{"role":"assistant","content":""},"finish_reason":null}]}')]
    for piece in pieces:
        events.append(
            sse(head + f'{{"content" : {quote(piece)}, "odd":1.50}},"logprobs":null, "finish_reason":null}}]}}')
        )
    events.append(sse(head + '{},"finish_reason":"stop"}],"usage":{"prompt_tokens":1,"completion_tokens":2}}'))
    return [*events, b"data: [DONE]\n\n"]


def messages(pieces: list[str], quote: Quote = plain) -> list[bytes]:
    start = '{"type":"message_start","message":{"id":"m1","model":"m","role":"assistant","content":[]}}'
    events = [sse(start, "message_start")]
    block = '{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}'
    events += [sse(block, "content_block_start"), sse('{"type": "ping"}', "ping")]
    for piece in pieces:
        delta = f'{{"type":"content_block_delta","index":0,"delta":{{"type":"text_delta","text":{quote(piece)}}}}}'
        events.append(sse(delta, "content_block_delta"))
    events.append(sse('{"type":"content_block_stop","index":0}', "content_block_stop"))
    stop = '{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":3}}'
    return [*events, sse(stop, "message_delta"), sse('{"type":"message_stop"}', "message_stop")]


def responses(pieces: list[str], quote: Quote = plain) -> list[bytes]:
    text = quote("".join(pieces))
    part = f'{{"type":"output_text","text":{text},"annotations":[]}}'
    item = f'{{"id":"msg_1","type":"message","status":"completed","role":"assistant","content":[{part}]}}'
    whole = f'{{"id":"r1","model":"m","status":"completed","output":[{item}]}}'
    events = [
        ("response.created", '"response":{"id":"r1","model":"m","status":"in_progress","output":[]}'),
        ("response.output_item.added", '"output_index":0,"item":{"id":"msg_1","type":"message","content":[]}'),
        *[
            ("response.output_text.delta", f'"output_index":0,"content_index":0,"delta":{quote(piece)}')
            for piece in pieces
        ],
        ("response.output_text.done", f'"output_index":0,"content_index":0,"text":{text}'),
        ("response.content_part.done", f'"output_index":0,"content_index":0,"part":{part}'),
        ("response.output_item.done", f'"output_index":0,"item":{item}'),
        ("response.completed", f'"response":{whole}'),
    ]
    return [sse(f'{{"type":"{name}",{rest}}}', name) for name, rest in events]


def _gemini(pieces: list[str], quote: Quote) -> list[str]:
    chunks = [
        f'{{"candidates": [{{"content": {{"parts": [{{"text": {quote(piece)}}}],"role": "model"}},"index": 0}}]}}'
        for piece in pieces
    ]
    end = '{"candidates": [{"content": {"parts": [{"text": ""}],"role": "model"},"finishReason": "STOP","index": 0}]}'
    return [*chunks, end]


def gemini(pieces: list[str], quote: Quote = plain) -> list[bytes]:
    return [f"data: {chunk}\r\n\r\n".encode() for chunk in _gemini(pieces, quote)]


def gemini_array(pieces: list[str], quote: Quote = plain) -> list[bytes]:
    first, *others = _gemini(pieces, quote)
    return [f"[{first}".encode(), *(f"\n,\r\n{other}".encode() for other in others), b"\n]\n"]


def ollama(pieces: list[str], quote: Quote = plain) -> list[bytes]:
    head = '{"model":"m","message":{"role":"assistant","content":'
    lines = [f'{head}{quote(piece)}}},"done":false}}\n'.encode() for piece in pieces]
    return [*lines, f'{head}""}},"done_reason":"stop","done":true,"eval_count":3}}\n'.encode()]


STREAMS: dict[str, tuple[FormatName, Callable[[list[str], Quote], list[bytes]]]] = {
    "chat": ("openai_chat", chat),
    "messages": ("anthropic_messages", messages),
    "responses": ("openai_responses", responses),
    "gemini": ("gemini_generate", gemini),
    "gemini array": ("gemini_generate", gemini_array),
    "ollama": ("ollama_chat", ollama),
}


def events_of(format: FormatName, stream: bytes) -> list[Event]:
    row = FORMATS[format]
    decoder = row.stream_decoder(row.dialect)
    return [*decoder.feed(stream), *decoder.finish()]


def deltas_of(format: FormatName, stream: bytes) -> tuple[str, str]:
    """What the deltas of a stream say: visible text, and reasoning."""
    events = events_of(format, stream)
    texts = "".join(event.text for event in events if isinstance(event, TextDelta))
    return texts, "".join(event.text for event in events if isinstance(event, ReasoningDelta))


def items_of(format: FormatName, stream: bytes) -> tuple[str, str]:
    """What the items of a stream say, when they are whole."""
    items = [event.item for event in events_of(format, stream) if isinstance(event, ItemDone)]
    texts = "".join(item.text for item in items if isinstance(item, Text))
    return texts, "".join(item.text for item in items if isinstance(item, ReasoningText))
