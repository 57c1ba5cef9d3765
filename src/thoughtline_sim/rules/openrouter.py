"""OpenRouter: no contract of its own; the upstream's applies, and its error comes wrapped.

A chat request is read as the upstream would get it (thinking blocks from `reasoning_details`, and so on), the
upstream's own rules check that, and the upstream's own tokens are in the answer's details.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import groupby
from typing import NamedTuple

from msgspec.structs import replace

from thoughtline_sim import refusals
from thoughtline_sim.exchange import Reject, Rule, SimExchange
from thoughtline_sim.pieces import Say
from thoughtline_sim.reading import JsonObject, as_object, objects, string
from thoughtline_sim.rules import anthropic, gemini, presence, responses, switches
from thoughtline_sim.tokens import OPENAI
from thoughtline_sim.values import InputMessage, ModelAnswer, Rejection
from thoughtline_sim.wires import messages
from thoughtline_sim.wires.chat_styles import OPENAI as OPENAI_CHAT
from thoughtline_sim.wires.chat_styles import google_seal
from thoughtline_sim.wires.responses import openai_bound


class Upstream(NamedTuple):
    """A row: its models, its name in errors, its rule and envelope, its handling of details."""

    prefix: str
    provider_name: str
    rule: Rule
    reject: Reject
    details: Callable[[SimExchange, ModelAnswer, JsonObject], list[JsonObject]]


def is_thinking(exchange: SimExchange) -> bool:
    reasoning = as_object(exchange.body.get("reasoning"))
    return reasoning.get("enabled") is not False and reasoning.get("effort") != "none"


def _details_of(message: InputMessage) -> list[JsonObject]:
    return objects(message.raw.get("reasoning_details"))


def _bare(exchange: SimExchange) -> Iterator[InputMessage]:
    """Turns without details (an empty list counts as details) and without plain reasoning under either name."""
    for message in exchange.history if exchange.thinks else ():
        has_text = any(isinstance(message.raw.get(name), str) for name in ("reasoning", "reasoning_content"))
        has_any = has_text or isinstance(message.raw.get("reasoning_details"), list)
        if message.role == "assistant" and not has_any:
            yield message


def _deepseek(exchange: SimExchange) -> Iterator[str]:
    if exchange.body.get("tools") and any(_bare(exchange)):
        yield "The `reasoning_content` in the thinking mode must be passed back to the API."


def _calls_require(missing: Callable[[SimExchange, int], str | Rejection]) -> Rule:
    """Kimi's rule and MiMo's."""
    return lambda exchange: (missing(exchange, message.index) for message in _bare(exchange) if message.calls)


# Anthropic


def as_messages(exchange: SimExchange) -> SimExchange:
    """The chat request as the Messages request that OpenRouter makes of it."""
    body: JsonObject = {
        "system": "".join(message.text for message in exchange.history if message.role == "system"),
        "tools": exchange.body.get("tools"),
        "messages": _merged(message for message in exchange.history if message.role != "system"),
        "thinking": {"type": "enabled"} if is_thinking(exchange) else {"type": "disabled"},
    }
    return exchange._replace(body=body, history=messages.read(body), profile="classic")


def _merged(history: Iterator[InputMessage]) -> list[JsonObject]:
    """Consecutive tool results are one user message."""
    made: list[JsonObject] = []
    for has_results, group in groupby(history, lambda message: bool(message.results)):
        if has_results:
            results = [
                {"type": "tool_result", "tool_use_id": message.results[0], "content": message.text} for message in group
            ]
            made.append({"role": "user", "content": results})
            continue
        for message in group:
            is_model = message.role == "assistant"
            blocks = _assistant_blocks(message) if is_model else [{"type": "text", "text": message.text}]
            made.append({"role": "assistant" if is_model else "user", "content": blocks})
    return made


def _assistant_blocks(message: InputMessage) -> list[JsonObject]:
    """`reasoning` without details becomes unsigned thinking."""
    blocks = [_thinking(entry) for entry in _details_of(message)]
    if not blocks and string(message.raw.get("reasoning")):
        blocks = [{"type": "thinking", "thinking": message.raw["reasoning"], "signature": ""}]
    if message.text:
        blocks.append({"type": "text", "text": message.text})
    return [*blocks, *({"type": "tool_use", "id": call.id, "name": call.name} for call in message.calls)]


def _thinking(entry: JsonObject) -> JsonObject:
    if entry.get("type") == "reasoning.encrypted":
        return {"type": "redacted_thinking", "data": string(entry.get("data"))}
    return {"type": "thinking", "thinking": string(entry.get("text")), "signature": string(entry.get("signature"))}


def _anthropic(exchange: SimExchange) -> Iterator[str | Rejection]:
    """Anthropic's rules of 2025: OpenRouter does not enforce the chain (its page on Claude 5.5)."""
    upstream = as_messages(exchange)
    for rule in anthropic.RULES:
        yield from rule(upstream)


_AS_CLAUDE = messages.MessagesStyle(anthropic.sign, anthropic.STYLE.call_id, anthropic.STYLE.reply_id)


def _anthropic_details(exchange: SimExchange, answer: ModelAnswer, message: JsonObject) -> list[JsonObject]:
    # Details come before text and calls: they go back in that order.
    words = (Say(answer.text),) if answer.text else ()
    ordered = replace(answer, pieces=(*answer.thoughts, *words, *answer.calls))
    blocks = messages.written_blocks(_AS_CLAUDE, as_messages(exchange), ordered)
    details: list[JsonObject] = []
    for number, block in enumerate(blocks[: len(answer.thoughts)]):
        base = {"format": "anthropic-claude-v1", "index": number}
        if "data" in block:
            details.append({"type": "reasoning.encrypted", "data": block["data"], **base})
        else:
            shown = {"text": block["thinking"], "signature": block["signature"]}
            details.append({"type": "reasoning.text", **shown, **base})
    return details


# Gemini, OpenAI, the rest


def _gemini(exchange: SimExchange) -> Iterator[str]:
    yield from gemini.chat_is_signed(exchange._replace(history=tuple(map(_with_seals, exchange.history))))


def _with_seals(message: InputMessage) -> InputMessage:
    """A signature is the encrypted entry with the call's id."""
    seals = {string(entry.get("id")): string(entry.get("data")) for entry in _details_of(message)}
    calls = tuple(replace(call, signature=seals.get(call.id or "", "")) for call in message.calls)
    return replace(message, calls=calls)


def _gemini_details(exchange: SimExchange, answer: ModelAnswer, message: JsonObject) -> list[JsonObject]:
    base = {"format": "google-gemini-v1", "index": 0}
    if not answer.calls:
        shown = {"type": "reasoning.text", "text": answer.thinking, **base}
        return [shown, {"type": "reasoning.encrypted", "data": google_seal(exchange, None), **base}]
    first = message["tool_calls"][0]["id"]
    return [{"type": "reasoning.encrypted", "data": google_seal(exchange, answer.calls[0]), "id": first, **base}]


def _openai(exchange: SimExchange) -> Iterator[Rejection]:
    items = [
        {"type": "reasoning", "id": entry.get("id"), "encrypted_content": entry.get("data")}
        for message in exchange.history
        for entry in _details_of(message)
        if entry.get("type") == "reasoning.encrypted"
    ]
    return responses.ciphertext_opens(exchange._replace(body={"input": items}))


def _openai_details(exchange: SimExchange, answer: ModelAnswer, message: JsonObject) -> list[JsonObject]:
    """Summary and ciphertext share an index; only the ciphertext has the item's id (recorded)."""
    name = f"rs_{answer.id}"
    base = {"format": "openai-responses-v1", "index": 0}
    data = exchange.mint.seal({"item": name, "text": answer.thinking}, openai_bound(exchange), OPENAI)
    return [
        {"type": "reasoning.summary", "summary": answer.thinking, **base},
        {"type": "reasoning.encrypted", "data": data, "id": name, **base},
    ]


def _text_details(exchange: SimExchange, answer: ModelAnswer, message: JsonObject) -> list[JsonObject]:
    return [{"type": "reasoning.text", "text": answer.thinking, "format": "unknown", "index": 0}]


UPSTREAMS: tuple[Upstream, ...] = (
    Upstream("anthropic/", "Anthropic", _anthropic, refusals.anthropic_error, _anthropic_details),
    Upstream("google/", "Google AI Studio", _gemini, refusals.gemini_error, _gemini_details),
    Upstream("openai/", "OpenAI", _openai, refusals.openai_error, _openai_details),
    Upstream("deepseek/", "DeepSeek", _deepseek, refusals.deepseek_error, _text_details),
    Upstream("moonshotai/", "Moonshot AI", _calls_require(presence.kimi_missing), refusals.typed_error, _text_details),
    Upstream(
        "xiaomi/", "Xiaomi", _calls_require(lambda *_: presence.MIMO_SENTENCE), refusals.mimo_error, _text_details
    ),
    Upstream("", "Simulated", lambda exchange: iter(()), refusals.openai_error, _text_details),
)


def upstream_of(model: str) -> Upstream:
    return next(row for row in UPSTREAMS if model.startswith(row.prefix))


def upstream_agrees(exchange: SimExchange) -> Iterator[Rejection]:
    """The only rule: the upstream's error, wrapped."""
    yield from switches.openrouter_mandatory(exchange)
    upstream = upstream_of(exchange.model)
    for found in upstream.rule(exchange):
        rejection = upstream.reject(found) if isinstance(found, str) else found
        yield refusals.openrouter_error(rejection, upstream.provider_name)


def _put_reasoning(exchange: SimExchange, answer: ModelAnswer, message: JsonObject) -> JsonObject:
    """`reasoning` is the readable part of the details; an empty list is a marker that must come back too."""
    upstream = upstream_of(exchange.model)
    is_signed = upstream.details is _gemini_details and bool(answer.calls)
    details = upstream.details(exchange, answer, message) if answer.thoughts or is_signed else []
    shown = "".join(string(entry.get("text")) or string(entry.get("summary")) for entry in details)
    message = {**message, "reasoning": shown or None}
    return {**message, "reasoning_details": details} if details or exchange.thinks else message


STYLE = OPENAI_CHAT._replace(
    reply_id=lambda digits: f"gen-1763200000-{digits[:20]}",
    put_reasoning=_put_reasoning,
    message_extras={"refusal": None},
    chunk_extras={},
    first_delta=None,
    usage_in="last",
    comment=b": OPENROUTER PROCESSING\n\n",
)
