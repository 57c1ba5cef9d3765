"""OpenRouter: no contract of its own; the upstream's applies, and its error comes wrapped (contracts.md §13).

A chat request is read as the upstream would get it (thinking blocks from `reasoning_details`, and so on), the
upstream's own rules look at that, and the upstream's own tokens stand in the answer's details.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from thoughtline_sim.exchange import Rule, SimExchange
from thoughtline_sim.refusals import deepseek_error, kimi_error, mimo_error, openrouter_error
from thoughtline_sim.rules import anthropic, gemini, responses
from thoughtline_sim.tokens import OPENAI
from thoughtline_sim.values import InputMessage, ModelAnswer, Redacted, Rejection, Think, TokenCounts
from thoughtline_sim.wire import JsonObject, as_object, objects, pieces_of, string, text_of
from thoughtline_sim.wires import chat, messages
from thoughtline_sim.wires.chat import ChatStyle, call_deltas
from thoughtline_sim.wires.chat_styles import OPENAI as OPENAI_CHAT
from thoughtline_sim.wires.chat_styles import google_seal
from thoughtline_sim.wires.messages import BlockPlace
from thoughtline_sim.wires.responses_styles import openai_bound


class Upstream(NamedTuple):
    """A row: which models it serves, what it is called in errors, its rule, its way with details."""

    prefix: str
    provider_name: str
    rule: Rule
    details: Callable[[SimExchange, ModelAnswer, JsonObject], list[JsonObject]]


def is_thinking(exchange: SimExchange) -> bool:
    reasoning = as_object(exchange.body.get("reasoning"))
    return reasoning.get("enabled") is not False and reasoning.get("effort") != "none"


def _has_any(message: InputMessage) -> bool:
    """Details, an empty list included, or plain reasoning under either name."""
    raw = message.raw
    return (
        isinstance(raw.get("reasoning_details"), list)
        or isinstance(raw.get("reasoning"), str)
        or isinstance(raw.get("reasoning_content"), str)
    )


def _bare(exchange: SimExchange) -> Iterator[InputMessage]:
    if is_thinking(exchange):
        for message in exchange.history:
            if message.role == "assistant" and not _has_any(message):
                yield message


def _deepseek(exchange: SimExchange) -> Rejection | None:
    if exchange.body.get("tools") and any(_bare(exchange)):
        return deepseek_error("The `reasoning_content` in the thinking mode must be passed back to the API.")
    return None


def _kimi(exchange: SimExchange) -> Rejection | None:
    for message in _bare(exchange):
        if message.calls:
            return kimi_error(
                "thinking is enabled but reasoning_content is missing in assistant tool call message "
                f"at index {message.index}"
            )
    return None


def _mimo(exchange: SimExchange) -> Rejection | None:
    if any(message.calls for message in _bare(exchange)):
        return mimo_error("The reasoning_content in the thinking mode must be passed back to the API.")
    return None


def _nothing(exchange: SimExchange) -> Rejection | None:
    return None


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
    for message in history:
        if message.results and made and _is_results(made[-1]):
            made[-1]["content"].append(_tool_result(message))
        elif message.results:
            made.append({"role": "user", "content": [_tool_result(message)]})
        elif message.role == "assistant":
            made.append({"role": "assistant", "content": _assistant_blocks(message)})
        else:
            made.append({"role": "user", "content": [{"type": "text", "text": message.text}]})
    return made


def _is_results(message: JsonObject) -> bool:
    return any(block.get("type") == "tool_result" for block in message["content"][:1])


def _tool_result(message: InputMessage) -> JsonObject:
    return {"type": "tool_result", "tool_use_id": message.results[0], "content": message.text}


def _assistant_blocks(message: InputMessage) -> list[JsonObject]:
    """`reasoning` without details becomes thinking that nobody signed."""
    blocks = [_thinking(entry) for entry in objects(message.raw.get("reasoning_details"))]
    if not blocks and string(message.raw.get("reasoning")):
        blocks = [{"type": "thinking", "thinking": message.raw["reasoning"], "signature": ""}]
    if message.text:
        blocks.append({"type": "text", "text": message.text})
    return [*blocks, *({"type": "tool_use", "id": call.id, "name": call.name} for call in message.calls)]


def _thinking(entry: JsonObject) -> JsonObject:
    if entry.get("type") == "reasoning.encrypted":
        return {"type": "redacted_thinking", "data": string(entry.get("data"))}
    return {"type": "thinking", "thinking": string(entry.get("text")), "signature": string(entry.get("signature"))}


def _anthropic(exchange: SimExchange) -> Rejection | None:
    upstream = as_messages(exchange)
    return next((refusal for rule in anthropic.RULES if (refusal := rule(upstream)) is not None), None)


def _anthropic_details(exchange: SimExchange, answer: ModelAnswer, message: JsonObject) -> list[JsonObject]:
    # Details come before words and calls: that is the order they go back in.
    thoughts = [piece for piece in answer.pieces if isinstance(piece, (Think, Redacted))]
    letters = {Think: "t", Redacted: "r"}
    tail = ("x" if answer.text else "") + "u" * len(answer.calls)
    skeleton = "".join(letters[type(piece)] for piece in thoughts) + tail
    upstream = as_messages(exchange)
    details = []
    for number, piece in enumerate(thoughts):
        block = anthropic.sign(upstream, answer, BlockPlace(answer.id, number, skeleton), piece)
        base = {"format": "anthropic-claude-v1", "index": number}
        if isinstance(piece, Redacted):
            details.append({"type": "reasoning.encrypted", "data": block["data"], **base})
        else:
            details.append(
                {"type": "reasoning.text", "text": block["thinking"], "signature": block["signature"], **base}
            )
    return details


# Gemini, OpenAI, the rest


def _gemini(exchange: SimExchange) -> Rejection | None:
    """A signature is the encrypted entry whose id is the call's."""
    upstream = []
    for message in objects(exchange.body.get("messages")):
        seals = {string(entry.get("id")): entry.get("data") for entry in objects(message.get("reasoning_details"))}
        calls = [
            _with_seal(call, string(seals.get(string(call.get("id"))))) for call in objects(message.get("tool_calls"))
        ]
        upstream.append({**message, "tool_calls": calls} if calls else message)
    body = {**exchange.body, "messages": upstream}
    refusal = gemini.chat_is_signed(exchange._replace(body=body, history=chat.read(body)))
    if refusal is None:
        return None
    return Rejection(400, refusal.body[1:-1], refusal.message, refusal.content_type)


def _with_seal(call: JsonObject, signature: str) -> JsonObject:
    return {**call, "extra_content": {"google": {"thought_signature": signature}}}


def _gemini_details(exchange: SimExchange, answer: ModelAnswer, message: JsonObject) -> list[JsonObject]:
    base = {"format": "google-gemini-v1", "index": 0}
    shown = [{"type": "reasoning.text", "text": answer.thinking, **base}] if not answer.calls else []
    if not answer.calls:
        return [*shown, {"type": "reasoning.encrypted", "data": google_seal(exchange, None), **base}]
    first = message["tool_calls"][0]["id"]
    return [{"type": "reasoning.encrypted", "data": google_seal(exchange, answer.calls[0]), "id": first, **base}]


def _openai(exchange: SimExchange) -> Rejection | None:
    items: list[JsonObject] = [
        {"type": "reasoning", "id": entry.get("id"), "encrypted_content": entry.get("data"), "summary": []}
        for message in objects(exchange.body.get("messages"))
        for entry in objects(message.get("reasoning_details"))
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
    Upstream("anthropic/", "Anthropic", _anthropic, _anthropic_details),
    Upstream("google/", "Google AI Studio", _gemini, _gemini_details),
    Upstream("openai/", "OpenAI", _openai, _openai_details),
    Upstream("deepseek/", "DeepSeek", _deepseek, _text_details),
    Upstream("moonshotai/", "Moonshot AI", _kimi, _text_details),
    Upstream("xiaomi/", "Xiaomi", _mimo, _text_details),
    Upstream("", "Simulated", _nothing, _text_details),
)


def upstream_of(model: str) -> Upstream:
    return next(row for row in UPSTREAMS if model.startswith(row.prefix))


def upstream_agrees(exchange: SimExchange) -> Rejection | None:
    """The one rule: what the upstream refuses, wrapped."""
    upstream = upstream_of(exchange.model)
    refusal = upstream.rule(exchange)
    return None if refusal is None else openrouter_error(refusal, upstream.provider_name)


def _put_reasoning(exchange: SimExchange, answer: ModelAnswer, message: JsonObject) -> JsonObject:
    """`reasoning` is what the details show; an empty list of them is a sign that must come back too."""
    upstream = upstream_of(exchange.model)
    has_thought = any(isinstance(piece, (Think, Redacted)) for piece in answer.pieces)
    is_signed = upstream.details is _gemini_details and bool(answer.calls)
    details = upstream.details(exchange, answer, message) if has_thought or is_signed else []
    shown = "".join(string(entry.get("text")) or string(entry.get("summary")) for entry in details)
    told = {**message, "reasoning": shown or None}
    return {**told, "reasoning_details": details} if details or exchange.thinks else told


def _deltas(message: JsonObject, chunk_chars: int, style: ChatStyle) -> Iterator[JsonObject]:
    base = {"role": "assistant", "content": ""}
    for entry in objects(message.get("reasoning_details")):
        field = "text" if "text" in entry else "summary" if "summary" in entry else None
        if field is None:
            yield {**base, "reasoning": None, "reasoning_details": [entry]}
            continue
        head = {key: value for key, value in entry.items() if key not in (field, "signature")}
        for piece in pieces_of(entry[field], chunk_chars):
            yield {**base, "reasoning": piece, "reasoning_details": [{**head, field: piece}]}
        if "signature" in entry:
            yield {**base, "reasoning": None, "reasoning_details": [{**head, "signature": entry["signature"]}]}
    for piece in pieces_of(text_of(message.get("content")), chunk_chars):
        yield {"role": "assistant", "content": piece, "reasoning": None, "reasoning_details": []}
    yield from call_deltas(message, chunk_chars, style)


def _usage(usage: TokenCounts) -> JsonObject:
    cost = {"upstream_inference_cost": None, "upstream_inference_prompt_cost": 0.0}
    return {
        "prompt_tokens": usage.input,
        "completion_tokens": usage.output,
        "total_tokens": usage.total,
        "prompt_tokens_details": {"cached_tokens": 0, "audio_tokens": 0},
        "completion_tokens_details": {"reasoning_tokens": usage.reasoning, "image_tokens": 0},
        "cost": 0.0001,
        "is_byok": False,
        "cost_details": {**cost, "upstream_inference_completions_cost": 0.0},
    }


STYLE = OPENAI_CHAT._replace(
    reply_id=lambda digits: f"gen-1763200000-{digits[:20]}",
    usage=_usage,
    put_reasoning=_put_reasoning,
    deltas=_deltas,
    calls_have_index=True,
    message_extras={"refusal": None},
    choice_extras={"logprobs": None, "native_finish_reason": None},
    whole_extras=lambda answer: {"provider": upstream_of(answer.model).provider_name, "system_fingerprint": None},
    chunk_extras=lambda answer: {"provider": upstream_of(answer.model).provider_name},
    delta_extras={"role": "assistant", "content": None},
    last_delta={"content": ""},
    usage_in="last",
    comment=b": OPENROUTER PROCESSING\n\n",
)
