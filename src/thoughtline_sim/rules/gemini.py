"""Gemini 3: the first function call of every step of the current turn is signed (contracts.md §10, §11)."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from typing import NamedTuple

from thoughtline_sim.exchange import SimExchange
from thoughtline_sim.refusals import gemini_error
from thoughtline_sim.values import Rejection, last_person
from thoughtline_sim.wire import JsonObject, canonical_arguments, objects, string
from thoughtline_sim.wires.chat import google_signature
from thoughtline_sim.wires.generate import bound_to, call_of, is_2_5, is_sse, signature_of, spelling_for

_SENTINEL_WORDS = ("skip_thought_signature_validator", "context_engineering_is_the_way_to_go")
SENTINELS = {
    spelled.rstrip("=").translate(str.maketrans("-_", "+/"))
    for word in _SENTINEL_WORDS
    for spelled in (word, base64.b64encode(word.encode()).decode())
}
"""Both the words and their base64 are sent in practice (contracts.md §10 f); the SDK writes the latter."""


class SignedCall(NamedTuple):
    """A call of the current turn: where its step stands, which of its calls it is, and what it is signed with."""

    position: int
    number: int
    name: str
    arguments: str
    signature: str


def _generate_calls(exchange: SimExchange) -> Iterator[SignedCall]:
    for message in exchange.history[last_person(exchange.history) + 1 :]:
        if message.role == "assistant":
            parts = [part for part in objects(message.raw.get("parts")) if call_of(part)]
            for number, part in enumerate(parts):
                call = call_of(part)
                arguments = canonical_arguments(call.get("args"))
                yield SignedCall(message.index + 1, number, string(call.get("name")), arguments, signature_of(part))


def _chat_calls(exchange: SimExchange) -> Iterator[SignedCall]:
    for message in exchange.history[last_person(exchange.history) + 1 :]:
        raw_calls = objects(message.raw.get("tool_calls"))
        for number, (call, raw) in enumerate(zip(message.calls, raw_calls, strict=True)):
            yield SignedCall(message.index + 1, number, call.name, call.arguments, google_signature(raw))


def generate_is_signed(exchange: SimExchange) -> Rejection | None:
    is_in_array = exchange.is_streaming and not is_sse(exchange)
    return _check(exchange, _generate_calls(exchange), is_in_array)


def results_follow_code(exchange: SimExchange) -> Rejection | None:
    """What came of code stands right after it."""
    for message in exchange.history:
        before: JsonObject = {}
        for part in objects(message.raw.get("parts")):
            if "codeExecutionResult" in part and "executableCode" not in before:
                return gemini_error(
                    "Request contains an invalid argument.", exchange.is_streaming and not is_sse(exchange)
                )
            before = part
    return None


def chat_is_signed(exchange: SimExchange) -> Rejection | None:
    """The OpenAI-compatible API has the same validator, its errors always in an array."""
    return _check(exchange, _chat_calls(exchange), True)


def _check(exchange: SimExchange, calls: Iterator[SignedCall], is_in_array: bool) -> Rejection | None:
    if is_2_5(exchange.model):
        return None
    for call in calls:
        if not call.signature and call.number == 0:
            return gemini_error(_missing(call), is_in_array)
        if call.signature and not _is_good(exchange, call):
            return gemini_error(_corrupted(exchange), is_in_array)
    return None


def _missing(call: SignedCall) -> str:
    return (
        "Function call is missing a thought_signature in functionCall parts. This is required for tools "
        "to work correctly, "
        "and missing thought_signature may lead to degraded model performance. Additional data, function call "
        f"`default_api:{call.name}` , position {call.position}. Please refer to "
        "https://ai.google.dev/gemini-api/docs/thought-signatures for more details."
    )


def _corrupted(exchange: SimExchange) -> str:
    """Three wordings are known: of most models, of 3.7 Flash, and of Vertex."""
    if "/projects/" in exchange.path:
        return (
            "Unable to submit request because Thought signature is not valid.. Learn more: "
            "https://cloud.google.com/vertex-ai/generative-ai/docs/model-reference/gemini"
        )
    return "Invalid thought signature." if "3.7-flash" in exchange.model else "Corrupted thought signature."


def _is_good(exchange: SimExchange, call: SignedCall) -> bool:
    if call.signature.rstrip("=").translate(str.maketrans("-_", "+/")) in SENTINELS:
        return True
    bound = bound_to(exchange, call.name, call.arguments)
    return exchange.mint.open(call.signature, bound, spelling_for(exchange.model)) is not None
