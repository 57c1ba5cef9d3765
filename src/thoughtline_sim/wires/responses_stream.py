"""The stream of the Responses API: every event numbered, every item announced, filled and closed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from thoughtline_sim.wire import JsonObject, compact, digest, pieces_of


class StreamManners(NamedTuple):
    """Habits of one provider: padding beside deltas, and an unfinished ciphertext where an item is announced."""

    obfuscates: bool = False
    announces_ciphertext: bool = False


def frames_of(whole: JsonObject, chunk_chars: int, manners: StreamManners) -> list[bytes]:
    frames = []
    for number, event in enumerate(_events(whole, chunk_chars, manners)):
        told = {**event, "sequence_number": number}
        if manners.obfuscates and event["type"].endswith(".delta"):
            told["obfuscation"] = digest(whole["id"], str(number))[: 16 - len(event["delta"]) % 16]
        frames.append(b"event: " + event["type"].encode() + b"\ndata: " + compact(told) + b"\n\n")
    return frames


def _events(whole: JsonObject, chunk_chars: int, manners: StreamManners) -> Iterator[JsonObject]:
    begun = {**whole, "status": "in_progress", "output": [], "usage": None, "incomplete_details": None}
    if "completed_at" in begun:
        begun["completed_at"] = None
    yield {"type": "response.created", "response": begun}
    yield {"type": "response.in_progress", "response": begun}
    for index, item in enumerate(whole["output"]):
        yield {"type": "response.output_item.added", "output_index": index, "item": _opened(item, manners)}
        for event in _filling(item, chunk_chars):
            yield {**event, "item_id": item["id"], "output_index": index}
        yield {"type": "response.output_item.done", "output_index": index, "item": item}
    yield {"type": f"response.{whole['status']}", "response": whole}


def _opened(item: JsonObject, manners: StreamManners) -> JsonObject:
    """An item as it is announced. Its ciphertext there is not the final one and opens nowhere (contracts.md §12.1)."""
    opened = dict(item)
    if "status" in opened:
        opened["status"] = "in_progress"
    for name in ("content", "summary"):
        if name in opened:
            opened[name] = []
    ciphertext = opened.pop("encrypted_content", None)
    if ciphertext and manners.announces_ciphertext:
        opened["encrypted_content"] = ciphertext[:-48]
    if "arguments" in opened:
        opened["arguments"] = ""
    return opened


def _filling(item: JsonObject, chunk_chars: int) -> Iterator[JsonObject]:
    match item["type"]:
        case "reasoning":
            yield from _summary(item, chunk_chars)
            yield from _raw_reasoning(item, chunk_chars)
        case "message":
            yield from _text(item, chunk_chars)
        case kind if "arguments" not in item:
            yield {"type": f"response.{kind}.in_progress"}
            yield {"type": f"response.{kind}.completed"}
        case _:
            for piece in pieces_of(item["arguments"], chunk_chars):
                yield {"type": "response.function_call_arguments.delta", "delta": piece}
            yield {"type": "response.function_call_arguments.done", "arguments": item["arguments"]}


def _summary(item: JsonObject, chunk_chars: int) -> Iterator[JsonObject]:
    for index, part in enumerate(item.get("summary", [])):
        place = {"summary_index": index}
        yield {"type": "response.reasoning_summary_part.added", **place, "part": {**part, "text": ""}}
        for piece in pieces_of(part["text"], chunk_chars):
            yield {"type": "response.reasoning_summary_text.delta", **place, "delta": piece}
        yield {"type": "response.reasoning_summary_text.done", **place, "text": part["text"]}
        yield {"type": "response.reasoning_summary_part.done", **place, "part": part}


def _raw_reasoning(item: JsonObject, chunk_chars: int) -> Iterator[JsonObject]:
    for index, part in enumerate(item.get("content", [])):
        place = {"content_index": index}
        yield {"type": "response.content_part.added", **place, "part": {**part, "text": ""}}
        for piece in pieces_of(part["text"], chunk_chars):
            yield {"type": "response.reasoning_text.delta", **place, "delta": piece}
        yield {"type": "response.reasoning_text.done", **place, "text": part["text"]}
        yield {"type": "response.content_part.done", **place, "part": part}


def _text(item: JsonObject, chunk_chars: int) -> Iterator[JsonObject]:
    for index, part in enumerate(item["content"]):
        place = {"content_index": index}
        yield {"type": "response.content_part.added", **place, "part": {**part, "text": ""}}
        for piece in pieces_of(part["text"], chunk_chars):
            yield {"type": "response.output_text.delta", **place, "delta": piece, "logprobs": []}
        yield {"type": "response.output_text.done", **place, "text": part["text"], "logprobs": []}
        yield {"type": "response.content_part.done", **place, "part": part}
