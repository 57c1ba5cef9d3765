"""Code Assist and Antigravity: Gemini's validator for Gemini, Anthropic's for Claude, whose errors come as a string.

Which sentence Antigravity has for Claude's loop without its thinking is unverified: Anthropic's own is taken.
"""

from __future__ import annotations

from collections.abc import Iterator

from thoughtline_sim.exchange import Rule, SimExchange
from thoughtline_sim.reading import JsonObject, objects
from thoughtline_sim.refusals import anthropic_error, gemini_error
from thoughtline_sim.rules.anthropic import expected_thinking
from thoughtline_sim.tokens import ANTHROPIC
from thoughtline_sim.values import Rejection, last_person
from thoughtline_sim.wires.code_assist import bound_thought, is_claude
from thoughtline_sim.wires.generate import is_array, signature_of


def for_gemini(rule: Rule) -> Rule:
    """A rule that Claude is not held to."""
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
