"""Google's APIs: the first function call of every step of Gemini 3's current turn is signed.

Interactions: no public error is known for a missing or changed thought; that these are rejected as in generateContent,
and every message, is unverified. Code Assist and Antigravity: Gemini's validator for Gemini, Anthropic's for Claude,
with errors as a string; Antigravity's message for Claude's loop without its thinking is unverified: Anthropic's own
is used.
"""

from __future__ import annotations

from collections.abc import Iterator

from thoughtline_sim.exchange import Rule, SimExchange
from thoughtline_sim.reading import JsonObject, objects, string
from thoughtline_sim.refusals import anthropic_error, gemini_error
from thoughtline_sim.rules.anthropic import expected_thinking
from thoughtline_sim.tokens import ANTHROPIC, GEMINI
from thoughtline_sim.values import InputCall, Rejection, last_person
from thoughtline_sim.wires import interactions
from thoughtline_sim.wires.converse import is_claude
from thoughtline_sim.wires.generate import (
    bound_thought,
    bound_to,
    is_2_5,
    is_array,
    is_sentinel,
    signature_of,
    spelling_for,
)


def generate_is_signed(exchange: SimExchange) -> Iterator[Rejection]:
    for sentence in chat_is_signed(exchange):
        yield gemini_error(sentence, is_in_array=is_array(exchange))


def results_follow_code(exchange: SimExchange) -> Iterator[Rejection]:
    """The result of code comes right after it."""
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
    """A call has its own signature, or that of a call in the same request: clients copy it to every call of a parallel
    set (ruby_llm, recorded and answered; goose 1.34, also if it writes each call as a step of its own).
    """
    if is_sentinel(call.signature):
        return True
    calls = [other for message in exchange.history for other in message.calls]
    bounds = {bound_to(exchange, other.name, other.arguments) for other in (call, *calls)}
    return any(exchange.mint.open(call.signature, one, spelling_for(exchange.model)) is not None for one in bounds)


# Interactions


def previous_known(exchange: SimExchange) -> Iterator[Rejection]:
    """An interaction that was not stored can't be named."""
    name = string(exchange.body.get("previous_interaction_id"))
    known = exchange.ledger.responses.get((exchange.account, name)) if name else None
    if name and (known is None or not known.is_stored):
        yield gemini_error(f"Interaction {name} not found.", status=404)


def thoughts_lead_to_calls(exchange: SimExchange) -> Iterator[str]:
    """In each turn since the last user text, a call comes after a thought. Older models don't check this."""
    if is_2_5(exchange.model) or exchange.model.endswith("3.5-flash"):
        return
    has_thought = False
    for message in exchange.history[last_person(exchange.history) + 1 :]:
        has_thought = bool(message.thoughts) or (has_thought and message.role == "assistant")
        if message.calls and not has_thought:
            yield f"Function call is missing a thought signature. Step {message.index + 1}, `{message.calls[0].name}`."


def signatures_open(exchange: SimExchange) -> Iterator[str]:
    """A thought without a signature must not come back (js-genai#1735)."""
    for message in exchange.history:
        if message.raw.get("type") == "thought" and not message.raw.get("signature"):
            yield "Request contains an invalid argument."
        signature = string(message.raw.get("signature"))
        if signature and exchange.mint.open(signature, interactions.bound_to(exchange), GEMINI) is None:
            yield "Corrupted thought signature."


# Code Assist


def for_gemini(rule: Rule) -> Rule:
    """A rule that does not apply to Claude."""
    return lambda exchange: iter(()) if is_claude(exchange.model) else rule(exchange)


def claude_is_signed(exchange: SimExchange) -> Iterator[Rejection]:
    """Antigravity-Manager#777: Anthropic's error as a string in Google's."""
    for sentence in _wrong_thoughts(exchange) if is_claude(exchange.model) else ():
        message = anthropic_error(sentence).body.decode()
        yield gemini_error(message, is_in_array=is_array(exchange))


def _wrong_thoughts(exchange: SimExchange) -> Iterator[str]:
    for message in exchange.history:
        for position, part in enumerate(objects(message.raw.get("parts"))):
            if part.get("thought") is True and not _opens(exchange, part):
                yield f"messages.{message.index}.content.{position}: Invalid `signature` in `thinking` block"
    since = exchange.history[last_person(exchange.history) + 1 :]
    first = next((message for message in since if message.role == "assistant"), None)
    if exchange.thinks and first is not None and first.calls and not first.thoughts:
        yield expected_thinking(first.index, "tool_use")


def _opens(exchange: SimExchange, part: JsonObject) -> bool:
    text = str(part.get("text", ""))
    return exchange.mint.open(signature_of(part), bound_thought(exchange, text), ANTHROPIC) is not None
