"""Gemini 3: the first function call of every step of the current turn is signed."""

from __future__ import annotations

from collections.abc import Iterator

from thoughtline_sim.exchange import SimExchange
from thoughtline_sim.reading import JsonObject, objects
from thoughtline_sim.refusals import gemini_error
from thoughtline_sim.values import InputCall, Rejection, last_person
from thoughtline_sim.wires.generate import bound_to, is_2_5, is_array, is_sentinel, spelling_for


def generate_is_signed(exchange: SimExchange) -> Iterator[Rejection]:
    for sentence in chat_is_signed(exchange):
        yield gemini_error(sentence, is_in_array=is_array(exchange))


def results_follow_code(exchange: SimExchange) -> Iterator[Rejection]:
    """What came of code stands right after it."""
    for message in exchange.history:
        before: JsonObject = {}
        for part in objects(message.raw.get("parts")):
            if "codeExecutionResult" in part and "executableCode" not in before:
                yield gemini_error("Request contains an invalid argument.", is_in_array=is_array(exchange))
            before = part


def chat_is_signed(exchange: SimExchange) -> Iterator[str]:
    """The OpenAI-compatible API has the same validator."""
    if is_2_5(exchange.model):
        return
    since = exchange.history[last_person(exchange.history) + 1 :]
    calls = [(message.index + 1, call) for message in since if message.role == "assistant" for call in message.calls]
    for place, (position, call) in enumerate(calls):
        is_first = place == 0 or calls[place - 1][0] != position
        if is_first and not call.signature:
            yield (
                "Function call is missing a thought_signature in functionCall parts. This is required for tools to "
                "work correctly, and missing thought_signature may lead to degraded model performance. Additional "
                f"data, function call `default_api:{call.name}` , position {position}. Please refer to "
                "https://ai.google.dev/gemini-api/docs/thought-signatures for more details."
            )
        if call.signature and not _is_good(exchange, call):
            yield _corrupted(exchange)


def _corrupted(exchange: SimExchange) -> str:
    """Three wordings are known: of most models, of 3.7 Flash, and of Vertex."""
    if "/projects/" in exchange.request.path:
        return (
            "Unable to submit request because Thought signature is not valid.. Learn more: "
            "https://cloud.google.com/vertex-ai/generative-ai/docs/model-reference/gemini"
        )
    return "Invalid thought signature." if "3.7-flash" in exchange.model else "Corrupted thought signature."


def _is_good(exchange: SimExchange, call: InputCall) -> bool:
    if is_sentinel(call.signature):
        return True
    bound = bound_to(exchange, call.name, call.arguments)
    return exchange.mint.open(call.signature, bound, spelling_for(exchange.model)) is not None
