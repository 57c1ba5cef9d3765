"""OpenRouter: no contract of its own; the upstream's applies, and its error comes wrapped (contracts.md §13).

A chat request is read as the upstream would get it (thinking blocks from `reasoning_details`, and so on), the
upstream's own rules look at that, and the upstream's own tokens stand in the answer's details.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import groupby
from typing import NamedTuple

from msgspec.structs import replace

from thoughtline_sim.exchange import Reject, SimExchange
from thoughtline_sim.pieces import Piece, Say
from thoughtline_sim.reading import JsonObject, as_object, objects, string, text_of
from thoughtline_sim.refusals import (
    anthropic_error,
    deepseek_error,
    gemini_error,
    mimo_error,
    openai_error,
    openrouter_error,
    typed_error,
)
from thoughtline_sim.rules import anthropic, gemini, presence, responses
from thoughtline_sim.tokens import OPENAI
from thoughtline_sim.values import InputMessage, ModelAnswer, Rejection
from thoughtline_sim.wires import messages
from thoughtline_sim.wires.chat_styles import OPENAI as OPENAI_CHAT
from thoughtline_sim.wires.chat_styles import google_seal
from thoughtline_sim.wires.responses_styles import openai_bound
from thoughtline_sim.writing import pieces_of


class Upstream(NamedTuple):
    """A row: which models it serves, what it is called in errors, its rule and envelope, its way with details."""

    prefix: str
    provider_name: str
    rule: Callable[[SimExchange], Iterator[str | Rejection]]
    reject: Reject
    details: Callable[[SimExchange, ModelAnswer, JsonObject], list[JsonObject]]


def is_thinking(exchange: SimExchange) -> bool:
    reasoning = as_object(exchange.body.get("reasoning"))
    return reasoning.get("enabled") is not False and reasoning.get("effort") != "none"


def _details_of(message: InputMessage) -> list[JsonObject]:
    return objects(message.raw.get("reasoning_details"))


def _bare(exchange: SimExchange) -> Iterator[InputMessage]:
    """Turns without details (an empty list is some) and without plain reasoning under either name."""
    for message in exchange.history if exchange.thinks else ():
        has_text = any(isinstance(message.raw.get(name), str) for name in ("reasoning", "reasoning_content"))
        has_any = has_text or isinstance(message.raw.get("reasoning_details"), list)
        if message.role == "assistant" and not has_any:
            yield message


def _deepseek(exchange: SimExchange) -> Iterator[str]:
    if exchange.body.get("tools") and any(_bare(exchange)):
        yield "The `reasoning_content` in the thinking mode must be passed back to the API."


def _kimi(exchange: SimExchange) -> Iterator[str]:
    yield from (presence.kimi_missing(exchange, message.index) for message in _bare(exchange) if message.calls)


def _mimo(exchange: SimExchange) -> Iterator[str]:
    if any(message.calls for message in _bare(exchange)):
        yield presence.MIMO_SENTENCE


def _nothing(exchange: SimExchange) -> Iterator[str]:
    yield from ()


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
    """Tool results that follow each other are one user message."""
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
    """`reasoning` without details becomes thinking that nobody signed."""
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


def _anthropic(exchange: SimExchange) -> Iterator[str]:
    upstream = as_messages(exchange)
    for rule in anthropic.RULES:
        yield from rule(upstream)


def _anthropic_details(exchange: SimExchange, answer: ModelAnswer, message: JsonObject) -> list[JsonObject]:
    # Details come before words and calls: that is the order they go back in.
    words = (Say(answer.text),) if answer.text else ()
    ordered = replace(answer, pieces=(*answer.thoughts, *words, *answer.calls))
    blocks = messages.written_blocks(anthropic.STYLE._replace(pieces=_as_they_are), as_messages(exchange), ordered)
    details: list[JsonObject] = []
    for number, block in enumerate(blocks[: len(answer.thoughts)]):
        base = {"format": "anthropic-claude-v1", "index": number}
        if "data" in block:
            details.append({"type": "reasoning.encrypted", "data": block["data"], **base})
        else:
            shown = {"text": block["thinking"], "signature": block["signature"]}
            details.append({"type": "reasoning.text", **shown, **base})
    return details


def _as_they_are(exchange: SimExchange, pieces: tuple[Piece, ...]) -> tuple[Piece, ...]:
    return pieces


# Gemini, OpenAI, the rest


def _gemini(exchange: SimExchange) -> Iterator[str]:
    yield from gemini.chat_is_signed(exchange._replace(history=tuple(map(_with_seals, exchange.history))))


def _with_seals(message: InputMessage) -> InputMessage:
    """A signature is the encrypted entry whose id is the call's."""
    seals = {entry.get("id"): string(entry.get("data")) for entry in _details_of(message) if entry.get("id")}
    calls = tuple(replace(call, signature=seals.get(call.id, "")) for call in message.calls)
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
    Upstream("anthropic/", "Anthropic", _anthropic, anthropic_error, _anthropic_details),
    Upstream("google/", "Google AI Studio", _gemini, gemini_error, _gemini_details),
    Upstream("openai/", "OpenAI", _openai, openai_error, _openai_details),
    Upstream("deepseek/", "DeepSeek", _deepseek, deepseek_error, _text_details),
    Upstream("moonshotai/", "Moonshot AI", _kimi, typed_error, _text_details),
    Upstream("xiaomi/", "Xiaomi", _mimo, mimo_error, _text_details),
    Upstream("", "Simulated", _nothing, openai_error, _text_details),
)


def upstream_of(model: str) -> Upstream:
    return next(row for row in UPSTREAMS if model.startswith(row.prefix))


def upstream_agrees(exchange: SimExchange) -> Iterator[Rejection]:
    """The one rule: what the upstream refuses, wrapped."""
    upstream = upstream_of(exchange.model)
    for found in upstream.rule(exchange):
        rejection = upstream.reject(found) if isinstance(found, str) else found
        yield openrouter_error(rejection, upstream.provider_name)


def _put_reasoning(exchange: SimExchange, answer: ModelAnswer, message: JsonObject) -> JsonObject:
    """`reasoning` is what the details show; an empty list of them is a sign that must come back too."""
    upstream = upstream_of(exchange.model)
    is_signed = upstream.details is _gemini_details and bool(answer.calls)
    details = upstream.details(exchange, answer, message) if answer.thoughts or is_signed else []
    shown = "".join(string(entry.get("text")) or string(entry.get("summary")) for entry in details)
    message = {**message, "reasoning": shown or None}
    return {**message, "reasoning_details": details} if details or exchange.thinks else message


def _deltas(message: JsonObject, chunk_chars: int) -> Iterator[JsonObject]:
    for entry in objects(message.get("reasoning_details")):
        field = next((name for name in ("text", "summary") if name in entry), "")
        head = {key: value for key, value in entry.items() if key not in (field, "signature")}
        for piece in pieces_of(string(entry.get(field)), chunk_chars):
            yield {"content": "", "reasoning": piece, "reasoning_details": [{**head, field: piece}]}
        if "signature" in entry:
            head["signature"] = entry["signature"]
        if "signature" in entry or not field:
            yield {"content": "", "reasoning": None, "reasoning_details": [head]}
    for piece in pieces_of(text_of(message.get("content")), chunk_chars):
        yield {"content": piece, "reasoning": None, "reasoning_details": []}


STYLE = OPENAI_CHAT._replace(
    reply_id=lambda digits: f"gen-1763200000-{digits[:20]}",
    put_reasoning=_put_reasoning,
    deltas=_deltas,
    message_extras={"refusal": None},
    first_delta=None,
    usage_in="last",
    comment=b": OPENROUTER PROCESSING\n\n",
)
