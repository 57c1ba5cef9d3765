"""Answers with notes on their words, as each provider sends them, whole and streamed; and what a client reads of them.

All say `Look: é warm. Bye.`, cite https://a.example for `warm.`, and are made of two tokens with chances.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, NamedTuple

from tests.translation.lanes import NOW, StreamReader
from tests.translation.sdk_types import payloads
from thoughtline.formats import FORMATS
from thoughtline.formats.aws_event_stream import encode_message
from thoughtline.translation import ResponseContext, Translated, stream_reply, translate_reply, whole_reply
from thoughtline.translation.calls import CallIds, rule_of
from thoughtline.values.turns import FormatName, Reply

Json = dict[str, Any]
BEFORE, CITED, AFTER = "Look: é ", "warm.", " Bye."
WORDS = BEFORE + CITED + AFTER
URL, TITLE = "https://a.example", "A page"
START, END = len(BEFORE), len(BEFORE) + len(CITED)
PLACE = {"start_index": START, "end_index": END}


class Source(NamedTuple):
    """What a provider sends: a body, and the payloads of a stream."""

    format: FormatName
    body: Json
    stream: list[Json]

    @property
    def frames(self) -> list[bytes]:
        if self.format == "bedrock_converse":
            return [_message_of(*event) for one in self.stream for event in one.items()]
        if self.format == "ollama_chat":
            return [json.dumps(one).encode() + b"\n" for one in self.stream]
        return [b"data: " + json.dumps(one).encode() + b"\n\n" for one in self.stream]

    @property
    def reply(self) -> Reply:
        bodies = FORMATS[self.format].bodies
        return bodies.decode_response(json.dumps(self.body).encode(), FORMATS[self.format].dialect)


def _message_of(name: str, payload: Json) -> bytes:
    headers = {":event-type": name, ":content-type": "application/json", ":message-type": "event"}
    return encode_message(headers, json.dumps(payload).encode())


def way_to(source: FormatName, to: FormatName) -> ResponseContext:
    ids = CallIds(rule_of(to, FORMATS[to].dialect), 0, frozenset(), "salt")
    return ResponseContext(source, FORMATS[source].dialect, to, FORMATS[to].dialect, ids, None, True, NOW)


# --- ways to write ----------------------------------------------------------------------------------------------------


def whole(source: Source, to: FormatName) -> Translated:
    return translate_reply(source.reply, way_to(source.format, to))


def made_stream(source: Source, to: FormatName) -> Translated:
    return stream_reply(source.reply, way_to(source.format, to))


def stream(source: Source, to: FormatName) -> Translated:
    translator = StreamReader(way_to(source.format, to))
    chunks = [translator.feed(frame) for frame in source.frames] + [translator.finish()]
    return Translated(b"".join(chunk.data + chunk.ending for chunk in chunks), translator.findings)


def gathered(source: Source, to: FormatName) -> Translated:
    decoder = FORMATS[source.format].stream_decoder(FORMATS[source.format].dialect)
    events = [event for frame in source.frames for event in decoder.feed(frame)] + decoder.finish()
    return whole_reply(
        [event for event in events if not type(event).__name__.endswith("Delta")], way_to(source.format, to)
    )


WHOLE: tuple[Callable[[Source, FormatName], Translated], ...] = (whole, gathered)
STREAMED: tuple[Callable[[Source, FormatName], Translated], ...] = (stream, made_stream)


# --- what providers send ----------------------------------------------------------------------------------------------


def chat_body(message: Json, **choice: Any) -> Json:
    chosen = {"index": 0, "message": {"role": "assistant", "content": WORDS} | message, "finish_reason": "stop"}
    return {"id": "c1", "object": "chat.completion", "created": 1, "model": "m", "choices": [chosen | choice]}


def chat_chunk(delta: Json, finish: str | None = None, **choice: Any) -> Json:
    return {"id": "c1", "model": "m", "choices": [{"index": 0, "delta": delta, "finish_reason": finish} | choice]}


def gemini_body(words: str = WORDS, **candidate: Any) -> Json:
    content = {"role": "model", "parts": [{"text": words}] if words else []}
    return {"responseId": "g1", "modelVersion": "m", "candidates": [{"content": content, "index": 0} | candidate]}


def responses_message(**part: Any) -> Json:
    content = [{"type": "output_text", "text": WORDS, "annotations": []} | part]
    return {"id": "msg_1", "type": "message", "role": "assistant", "status": "completed", "content": content}


def responses_body(message: Json) -> Json:
    return {"id": "resp_1", "object": "response", "model": "m", "status": "completed", "output": [message]}


def responses_stream(message: Json, deltas: list[Json], *, between: list[Json] | None = None) -> list[Json]:
    place = {"item_id": "msg_1", "output_index": 0, "content_index": 0}
    return [
        {"type": "response.created", "response": {"id": "resp_1", "model": "m", "output": []}},
        {"type": "response.output_item.added", "output_index": 0, "item": message | {"content": []}},
        *({"type": "response.output_text.delta", **place} | delta for delta in deltas),
        *({"type": "response.output_text.annotation.added", **place} | one for one in between or ()),
        {"type": "response.output_item.done", "output_index": 0, "item": message},
        {"type": "response.completed", "response": responses_body(message)},
    ]


def messages_stream(*blocks: Json) -> list[Json]:
    events: list[Json] = [{"type": "message_start", "message": {"id": "msg_1", "model": "m"}}]
    for at, block in enumerate(blocks):
        events.append({"type": "content_block_start", "index": at, "content_block": {"type": "text", "text": ""}})
        deltas = [{"type": "citations_delta", "citation": one} for one in block.get("citations", ())]
        deltas.insert(0, {"type": "text_delta", "text": block["text"]})
        events += [{"type": "content_block_delta", "index": at, "delta": delta} for delta in deltas]
        events.append({"type": "content_block_stop", "index": at})
    return [*events, {"type": "message_delta", "delta": {"stop_reason": "end_turn"}}, {"type": "message_stop"}]


def messages_source(*blocks: Json) -> Source:
    body = {"id": "msg_1", "type": "message", "role": "assistant", "model": "m", "stop_reason": "end_turn"}
    content = [{"type": "text"} | block for block in blocks]
    return Source("anthropic_messages", body | {"content": content}, messages_stream(*blocks))


ANNOTATION = {"type": "url_citation", "url_citation": {"url": URL, "title": TITLE, **PLACE}}
URL_CITATION = {"type": "url_citation", "url": URL, "title": TITLE, **PLACE}
LOCATION = {
    "type": "web_search_result_location",
    "url": URL,
    "title": TITLE,
    "cited_text": "It is warm.",
    "encrypted_index": "x",
}
GROUNDING = {
    "groundingChunks": [{"web": {"uri": URL, "title": TITLE}}],
    "groundingSupports": [
        {
            "segment": {"startIndex": len(BEFORE.encode()), "endIndex": len((BEFORE + CITED).encode()), "text": CITED},
            "groundingChunkIndices": [0],
        }
    ],
}
_web = {"title": TITLE, "sourceContent": [{"text": "It is warm."}], "location": {"web": {"url": URL}}}


def converse_source(citation: Json) -> Source:
    blocks = [{"text": BEFORE}, {"citationsContent": {"content": [{"text": CITED}], "citations": [citation]}}]
    message = {"role": "assistant", "content": [*blocks, {"text": AFTER}]}
    usage = {"inputTokens": 1, "outputTokens": 1, "totalTokens": 2}
    deltas: list[tuple[int, Json]] = [
        (0, {"text": BEFORE}),
        (1, {"text": CITED}),
        (1, {"citation": citation}),
        (2, {"text": AFTER}),
    ]
    events: list[Json] = [{"messageStart": {"role": "assistant"}}]
    for index, delta in deltas:
        events.append({"contentBlockDelta": {"contentBlockIndex": index, "delta": delta}})
        if "text" not in delta or index != 1:
            events.append({"contentBlockStop": {"contentBlockIndex": index}})
    events += [{"messageStop": {"stopReason": "end_turn"}}, {"metadata": {"usage": usage}}]
    body = {"output": {"message": message}, "stopReason": "end_turn", "usage": usage}
    return Source("bedrock_converse", body, events)


_message = responses_message(annotations=[URL_CITATION])
CITING: dict[FormatName, Source] = {
    "openai_chat": Source(
        "openai_chat",
        chat_body({"annotations": [ANNOTATION]}),
        [
            chat_chunk({"content": BEFORE}),
            chat_chunk({"content": CITED + AFTER}),
            chat_chunk({"annotations": [ANNOTATION]}),
            chat_chunk({}, "stop"),
        ],
    ),
    "openai_responses": Source(
        "openai_responses",
        responses_body(_message),
        responses_stream(
            _message,
            [{"delta": BEFORE}, {"delta": CITED + AFTER}],
            between=[{"annotation_index": 0, "annotation": URL_CITATION}],
        ),
    ),
    "anthropic_messages": messages_source({"text": BEFORE}, {"text": CITED, "citations": [LOCATION]}, {"text": AFTER}),
    "gemini_generate": Source(
        "gemini_generate",
        gemini_body(finishReason="STOP", groundingMetadata=GROUNDING),
        [
            gemini_body(BEFORE),
            gemini_body(CITED + AFTER),
            gemini_body("", finishReason="STOP", groundingMetadata=GROUNDING),
        ],
    ),
    "bedrock_converse": converse_source(_web),
}

# --- what clients read ------------------------------------------------------------------------------------------------

Cited = list[tuple[str, str, str]]
"""Address, title, and the words that are cited."""


def events_of(to: FormatName, body: bytes) -> list[Json]:
    """The JSON of a body, or of every event of a stream."""
    if body[:1] == b"{" and b"\n" not in body.strip():
        return [json.loads(body)]
    return [json.loads(payload) for payload in payloads(to, body)]


def _choices(events: list[Json]) -> list[Json]:
    return [choice for event in events for choice in event.get("choices", ())]


def _said(choice: Json) -> Json:
    said: Json = choice.get("message") or choice.get("delta") or {}
    return said


def _chat_cited(events: list[Json]) -> Cited:
    said = [_said(choice) for choice in _choices(events)]
    words = "".join(one.get("content") or "" for one in said)
    pages = [note["url_citation"] for one in said for note in one.get("annotations") or ()]
    return [(one["url"], one["title"], words[one["start_index"] : one["end_index"]]) for one in pages]


def _responses_cited(events: list[Json]) -> Cited:
    last = events[-1].get("response", events[-1])
    parts = [part for element in last["output"] for part in element.get("content", ())]
    added = [one["annotation"] for one in events if one.get("type") == "response.output_text.annotation.added"]
    told = [note for part in parts for note in part["annotations"]]
    has_deltas = any(one.get("type") == "response.output_text.delta" for one in events)
    assert added == (told if has_deltas else [])
    return [
        (one["url"], one["title"], part["text"][one["start_index"] : one["end_index"]])
        for part in parts
        for one in part["annotations"]
    ]


def _messages_cited(events: list[Json]) -> Cited:
    blocks: dict[int, Json] = dict(enumerate(events[0].get("content", ())))
    for event in events:
        delta = event.get("delta", {})
        if "index" in event:
            block = blocks.setdefault(event["index"], {"text": "", "citations": []})
            block["text"] += delta.get("text", "")
            block["citations"] += [delta["citation"]] if "citation" in delta else []
    return [
        (one["url"], one["title"], block["text"]) for block in blocks.values() for one in block.get("citations") or ()
    ]


def _gemini_cited(events: list[Json]) -> Cited:
    candidates = [one for event in events for one in event.get("candidates", ())]
    parts = [part.get("text", "") for one in candidates for part in one.get("content", {}).get("parts", ())]
    texts = parts if len(events) == 1 else ["".join(parts)]  # parts of a stream are pieces
    found: Cited = []
    for grounding in (one["groundingMetadata"] for one in candidates if "groundingMetadata" in one):
        pages = [chunk["web"] for chunk in grounding["groundingChunks"]]
        found += [
            (pages[at]["uri"], pages[at].get("title", ""), _segment_of(texts, support["segment"]))
            for support in grounding["groundingSupports"]
            for at in support["groundingChunkIndices"]
        ]
    return found


def _segment_of(texts: list[str], segment: Json) -> str:
    words = texts[segment.get("partIndex", 0)].encode()
    found = words[segment["startIndex"] : segment["endIndex"]].decode()
    assert found == segment["text"]
    return found


CITED_BY: dict[FormatName, Callable[[list[Json]], Cited]] = {
    "openai_chat": _chat_cited,
    "openai_responses": _responses_cited,
    "anthropic_messages": _messages_cited,
    "gemini_generate": _gemini_cited,
}
