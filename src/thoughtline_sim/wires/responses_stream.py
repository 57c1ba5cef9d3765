"""The stream of the Responses API: every event numbered, every item announced, filled and closed."""

from __future__ import annotations

from collections.abc import Iterator

from thoughtline_sim.exchange import SimExchange
from thoughtline_sim.reading import JsonObject
from thoughtline_sim.writing import compact, pieces_of

_PARTS = {
    "summary_text": ("reasoning_summary_part", "reasoning_summary_text"),
    "reasoning_text": ("content_part", "reasoning_text"),
    "output_text": ("content_part", "output_text"),
}
"""By the type of a part: what its events are called, and those of its text."""


def frames_of(exchange: SimExchange, whole: JsonObject, chunk_chars: int, *, announces_ciphertext: bool) -> list[bytes]:
    return [
        b"event: " + event["type"].encode() + b"\ndata: " + compact({**event, "sequence_number": number}) + b"\n\n"
        for number, event in enumerate(_events(whole, chunk_chars, announces_ciphertext))
    ]


def _events(whole: JsonObject, chunk_chars: int, announces_ciphertext: bool) -> Iterator[JsonObject]:
    begun = {**whole, "status": "in_progress", "output": [], "usage": None, "incomplete_details": None}
    yield {"type": "response.created", "response": begun}
    yield {"type": "response.in_progress", "response": begun}
    for index, item in enumerate(whole["output"]):
        yield {"type": "response.output_item.added", "output_index": index, "item": _opened(item, announces_ciphertext)}
        for event in _filling(item, chunk_chars):
            yield {**event, "item_id": item["id"], "output_index": index}
        yield {"type": "response.output_item.done", "output_index": index, "item": item}
    yield {"type": f"response.{whole['status']}", "response": whole}


def _opened(item: JsonObject, announces_ciphertext: bool) -> JsonObject:
    """An item as it is announced. Its ciphertext there is not the final one and opens nowhere (contracts.md §12.1)."""
    empty = {"status": "in_progress", "content": [], "summary": [], "arguments": ""}
    opened = {key: empty.get(key, value) for key, value in item.items() if key != "encrypted_content"}
    if item.get("encrypted_content") and announces_ciphertext:
        opened["encrypted_content"] = item["encrypted_content"][:-48]
    return opened


def _filling(item: JsonObject, chunk_chars: int) -> Iterator[JsonObject]:
    kind = item["type"]
    if "arguments" in item:
        for piece in pieces_of(item["arguments"], chunk_chars):
            yield {"type": "response.function_call_arguments.delta", "delta": piece}
        yield {"type": "response.function_call_arguments.done", "arguments": item["arguments"]}
    elif kind not in ("reasoning", "message"):
        yield {"type": f"response.{kind}.in_progress"}
        yield {"type": f"response.{kind}.completed"}
    for name in ("summary", "content"):
        for index, part in enumerate(item.get(name, [])):
            for event in _part(part, chunk_chars):
                yield {**event, f"{name}_index": index}


def _part(part: JsonObject, chunk_chars: int) -> Iterator[JsonObject]:
    name, text = _PARTS[part["type"]]
    beside: JsonObject = {"logprobs": []} if text == "output_text" else {}
    yield {"type": f"response.{name}.added", "part": {**part, "text": ""}}
    for piece in pieces_of(part["text"], chunk_chars):
        yield {"type": f"response.{text}.delta", "delta": piece, **beside}
    yield {"type": f"response.{text}.done", "text": part["text"], **beside}
    yield {"type": f"response.{name}.done", "part": part}
