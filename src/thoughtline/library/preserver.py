"""Helpers for a program that calls models itself: keep the reasoning of a turn, and send it back with the turn.

    response ── extract_… ──> ReasoningDetails ── attach_to_tool_calls ──> calls ── build_… ──> message to send

All of them take and give JSON as Python reads it, and leave what they are given as it was. `preserve_reasoning_content`
also takes the bytes of a chat request, and changes no byte but those of the messages it changes.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from copy import deepcopy
from typing import Any, TypeAlias, TypedDict, cast, overload

from msgspec import Raw

from thoughtline.formats.json_text import element_spans, encode, json_given, members, set_members, span_at
from thoughtline.formats.openai_chat.bodies import decode_request
from thoughtline.formats.reasoning_details import DetailsMerger
from thoughtline.providers import host_named, is_wanted_back
from thoughtline.replay.restoring import inherit
from thoughtline.values.errors import DecodeError

JsonObject: TypeAlias = dict[str, Any]


class ReasoningDetails(TypedDict, total=False):
    """The reasoning of a turn, by its names on the wire."""

    reasoning_details: list[Any]
    thought_signature: str
    reasoning_content: str


# --- whole requests --------------------------------------------------------------------------------------------------


@overload
def preserve_reasoning_content(request: bytes) -> bytes: ...


@overload
def preserve_reasoning_content(request: JsonObject) -> JsonObject: ...


@overload
def preserve_reasoning_content(request: None) -> None: ...


def preserve_reasoning_content(request: bytes | JsonObject | None) -> bytes | JsonObject | None:
    """A chat request whose messages with tool calls have `reasoning_content`, as far as its history has any to give.

    A request that can't be decoded is returned unchanged: its upstream will report the problem.
    """
    if not request:
        return request
    if isinstance(request, bytes):
        return _preserved(request)
    text = json_given(request)
    kept = _preserved(text)
    return request if kept == text else cast(JsonObject, json.loads(kept))


def _preserved(request: bytes) -> bytes:
    try:
        turns = decode_request(request).turns
    except DecodeError:
        return request
    start, end = span_at(request, ("messages",)) or (0, 0)
    messages = request[start:end]
    spans = element_spans(messages)
    blank_at = {at for at, (first, last) in enumerate(spans) if _is_null(messages[first:last], "reasoning_content")}
    for position, item in sorted(inherit(turns, blank_at).items(), reverse=True):
        first, last = spans[position]
        changed = set_members(messages[first:last], [("reasoning_content", encode(item.text))])
        messages = messages[:first] + changed + messages[last:]
    return request[:start] + messages + request[end:]


def _is_null(message: bytes, name: str) -> bool:
    """Whether a message has this member with the value null."""
    return bytes(members(message).get(name, Raw(b""))) == b"null"


# --- which models ----------------------------------------------------------------------------------------------------


def requires_reasoning_preservation(model: str, provider: str) -> bool:
    """Whether this model, at this provider, requires the reasoning of its tool calls back.

    A provider that makes its own models decides for all of them; elsewhere the model decides.
    """
    row = host_named(provider)
    if row is None or row.wants_back == "by model":
        return is_wanted_back(model)
    if row.wants_back == "by contract":
        contract = row.row_for(model.lower(), row.formats[0])
        return contract is not None and contract.takes == "own"
    return row.wants_back == "always"


def reasoning_request_params(model: str, provider: str, has_tools: bool) -> JsonObject:
    """Members to add to a request with tools so that its answer has reasoning that can be sent back."""
    row = host_named(provider)
    if row is None or not has_tools or not requires_reasoning_preservation(model, provider):
        return {}
    return deepcopy(next((added for models, added in row.asks if re.search(models, model.lower())), {}))


# --- from responses --------------------------------------------------------------------------------------------------


def extract_from_stream_chunk(parsed: JsonObject | None, choice: int = 0) -> list[Any] | None:
    """The `reasoning_details` entries of one answer in one chunk; None if it has no such list.

    Pieces of one entry come in several chunks: keep every list, and join them with `merge_stream_details`.
    """
    parsed = parsed or {}
    places = [parsed]
    for at, found in enumerate(_objects(parsed.get("choices"))):
        if found.get("index", at) == choice:
            places += [*_objects([found.get("delta"), found.get("message")]), found]
    lists = [place["reasoning_details"] for place in places if isinstance(place.get("reasoning_details"), list)]
    return _without_repeats(lists) if lists else None


def merge_stream_details(lists: Iterable[Sequence[Any] | None]) -> list[Any]:
    """The entries of a stream's lists: text joined, data never, in the order in which they began."""
    merger = DetailsMerger()
    for entries in lists:
        for entry in entries or ():
            merger.add(Raw(json.dumps(entry).encode()))
    return [json.loads(bytes(raw)) for raw in merger.raws()]


def extract_from_response(choice: JsonObject | None) -> ReasoningDetails | None:
    """The reasoning of one whole answer, in every member that has some. An empty list has a meaning; it is kept."""
    message = (choice or {}).get("message")
    return _reasoning_in(message) if isinstance(message, dict) else None


def extract_thought_signature_from_part(part: JsonObject | None) -> str | None:
    """The signature of a Gemini part, in either spelling. An empty one counts as none."""
    part = part or {}
    found = [part.get("thoughtSignature"), part.get("thought_signature")]
    return next((value for value in found if isinstance(value, str) and value), None)


def _reasoning_in(holder: JsonObject) -> ReasoningDetails | None:
    result: ReasoningDetails = {}
    details, text = holder.get("reasoning_details"), holder.get("reasoning_content")
    signature = _signature_in(holder)
    if isinstance(details, list):
        result["reasoning_details"] = deepcopy(details)
    if signature is not None:
        result["thought_signature"] = signature
    if isinstance(text, str):
        result["reasoning_content"] = text
    return result or None


def _signature_in(holder: JsonObject) -> str | None:
    """A signature next to the payload, or where Google's compatible endpoint has it."""
    places = [holder, *_objects(inner.get("google") for inner in _objects([holder.get("extra_content")]))]
    return next(filter(None, map(extract_thought_signature_from_part, places)), None)


def _objects(values: object) -> Iterator[JsonObject]:
    """The objects among some values; none if it is no list."""
    if isinstance(values, Iterable):
        yield from (value for value in values if isinstance(value, dict))


def _without_repeats(lists: Iterable[list[Any]]) -> list[Any]:
    """The entries of several lists, each entry once: copies of a list on several calls are one list."""
    entries: list[Any] = []
    for found in lists:
        entries += [deepcopy(entry) for entry in found if entry not in entries]
    return entries


# --- on tool calls ---------------------------------------------------------------------------------------------------


def attach_to_tool_calls(
    tool_calls: Sequence[JsonObject] | None, reasoning: ReasoningDetails | None
) -> list[JsonObject]:
    """New calls that carry the reasoning of their turn through other code.

    Details and text belong to the turn, so every call has them. Only the first call gets the signature. A call keeps
    its own members.
    """
    attached = [deepcopy(call) for call in tool_calls or ()]
    for position, call in enumerate(attached):
        if reasoning is None:
            break
        if "reasoning_details" in reasoning:
            call.setdefault("reasoning_details", deepcopy(reasoning["reasoning_details"]))
        if "reasoning_content" in reasoning:
            call.setdefault("reasoning_content", reasoning["reasoning_content"])
        if position == 0 and reasoning.get("thought_signature") and _signature_in(call) is None:
            call["thought_signature"] = reasoning["thought_signature"]
    return attached


def extract_from_tool_calls(tool_calls: Sequence[JsonObject] | None) -> ReasoningDetails | None:
    """All the reasoning on some calls: entries of every call, the first signature, the first text."""
    found = [held for call in tool_calls or () if (held := _reasoning_in(call)) is not None]
    lists = [held["reasoning_details"] for held in found if "reasoning_details" in held]
    result: ReasoningDetails = {"reasoning_details": _without_repeats(lists)} if lists else {}
    for held in reversed(found):
        if "thought_signature" in held:
            result["thought_signature"] = held["thought_signature"]
        if "reasoning_content" in held:
            result["reasoning_content"] = held["reasoning_content"]
    return result or None


# --- into requests ---------------------------------------------------------------------------------------------------


def build_assistant_message_with_reasoning(
    tool_calls: Sequence[JsonObject] | None, content: str | None = None, reasoning: ReasoningDetails | None = None
) -> JsonObject:
    """The chat message of a turn, with its reasoning where OpenRouter and its upstreams look for it.

    Details are on each call and on the message; text is on the message, the only place where a server reads it.
    `reasoning` is for a turn without calls.
    """
    kept = reasoning or extract_from_tool_calls(tool_calls) or {}
    message: JsonObject = {"role": "assistant", "content": content}
    if tool_calls:
        message["tool_calls"] = [_chat_call(deepcopy(call)) for call in tool_calls]
    if "reasoning_details" in kept:
        message["reasoning_details"] = deepcopy(kept["reasoning_details"])
    if "reasoning_content" in kept:
        message["reasoning_content"] = kept["reasoning_content"]
    return message


def build_google_model_message_with_thinking(tool_calls: Sequence[JsonObject] | None) -> JsonObject:
    """The Gemini content of a turn that called tools.

    Gemini checks the first part. A shared signature is written once, there; calls with their own keep them.
    """
    tool_calls = tool_calls or ()
    signatures = [_signature_in(call) for call in tool_calls]
    if signatures and signatures[0] is None:
        signatures[0] = next(filter(None, signatures), None)
    parts: list[JsonObject] = []
    for position, call in enumerate(tool_calls):
        part: JsonObject = {"functionCall": _google_call(call, f"/tool_calls/{position}")}
        signature = signatures[position]
        if signature is not None and signature not in signatures[:position]:
            part["thoughtSignature"] = signature
        parts.append(part)
    return {"role": "model", "parts": parts}


def _name_of(call: JsonObject) -> Any:
    return _function_of(call).get("name") or call.get("name")


def _function_of(call: JsonObject) -> JsonObject:
    function = call.get("function")
    return function if isinstance(function, dict) else {}


def _arguments_of(call: JsonObject) -> Any:
    """The arguments in the caller's form: unchanged text, an object, or nothing."""
    places = (_function_of(call).get("arguments"), call.get("arguments"), call.get("parameters"))
    return next((value for value in places if value not in (None, "")), None)


def _chat_call(call: JsonObject) -> JsonObject:
    """A call in chat's form. Unknown members stay."""
    if isinstance(call.get("custom"), dict):
        return {name: value for name, value in call.items() if name != "reasoning_content"}
    arguments = _arguments_of(call)
    text = arguments if isinstance(arguments, str) else json.dumps(arguments or {}, ensure_ascii=False)
    known: JsonObject = {"id": call["id"]} if call.get("id") is not None else {}
    known |= {"type": "function", "function": {**_function_of(call), "name": _name_of(call), "arguments": text}}
    moved = ("id", "type", "function", "name", "arguments", "parameters", "reasoning_content")
    return {**known, **{name: value for name, value in call.items() if name not in moved}}


def _google_call(call: JsonObject, place: str) -> JsonObject:
    known: JsonObject = {"id": call["id"]} if call.get("id") is not None else {}
    return {**known, "name": _name_of(call), "args": _arguments_object(call, place)}


def _arguments_object(call: JsonObject, place: str) -> JsonObject:
    arguments = _arguments_of(call)
    if isinstance(arguments, str):
        try:
            arguments = json.loads(arguments)
        except (ValueError, RecursionError):
            raise DecodeError("call arguments are not JSON", f"{place}/function/arguments") from None
    if not isinstance(arguments or {}, dict):
        raise DecodeError("call arguments are not a JSON object", f"{place}/function/arguments")
    return deepcopy(arguments or {})
