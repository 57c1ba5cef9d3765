"""The Responses providers as rows, read off recorded answers."""

from __future__ import annotations

from thoughtline_sim.exchange import SimExchange
from thoughtline_sim.tokens import OPENAI as OPENAI_SPELLING
from thoughtline_sim.tokens import XAI as XAI_SPELLING
from thoughtline_sim.values import ModelAnswer, Redacted, Think, TokenCounts
from thoughtline_sim.wire import JsonObject, as_object, digest, string
from thoughtline_sim.wires.responses import ResponsesStyle, echoed, is_stored, uuid_of, wants_ciphertext
from thoughtline_sim.wires.responses_stream import StreamManners


def openai_bound(exchange: SimExchange) -> tuple[str, ...]:
    """Ciphertext is good for its organisation at its endpoint; the item's id is one of its claims."""
    return ("responses", exchange.account)


def _summary(exchange: SimExchange, piece: Think | Redacted) -> list[JsonObject]:
    wanted = string(as_object(exchange.body.get("reasoning")).get("summary"))
    return [{"type": "summary_text", "text": piece.text}] if wanted and isinstance(piece, Think) and piece.text else []


def _openai_reasoning(exchange: SimExchange, answer: ModelAnswer, item_id: str, piece: Think | Redacted) -> JsonObject:
    item: JsonObject = {"id": item_id, "type": "reasoning", "summary": _summary(exchange, piece)}
    if wants_ciphertext(exchange):
        claims = {"item": item_id, "model": answer.model, "text": piece.text}
        item["encrypted_content"] = exchange.mint.seal(claims, openai_bound(exchange), OPENAI_SPELLING)
    return item


def _xai_reasoning(exchange: SimExchange, answer: ModelAnswer, item_id: str, piece: Think | Redacted) -> JsonObject:
    """The summary is always shown; ciphertext is bound to nothing but its maker (contracts.md §14)."""
    shown = [{"text": piece.text, "type": "summary_text"}] if piece.text else []
    item: JsonObject = {"id": item_id, "summary": shown, "type": "reasoning", "status": "completed"}
    if wants_ciphertext(exchange):
        item["encrypted_content"] = exchange.mint.seal({"text": piece.text}, ("xai",), XAI_SPELLING)
    return item


def _deepseek_reasoning(
    exchange: SimExchange, answer: ModelAnswer, item_id: str, piece: Think | Redacted
) -> JsonObject:
    """Thinking in the clear. `encrypted_content` is a handle, `<response id>-0`, that nobody needs back."""
    item: JsonObject = {
        "type": "reasoning",
        "id": item_id,
        "status": "completed",
        "content": [{"type": "reasoning_text", "text": piece.text}],
        "summary": [],
    }
    if wants_ciphertext(exchange) and "include" in exchange.body:
        item["encrypted_content"] = f"{uuid_of(answer.id)}-0"
    return item


def _around(exchange: SimExchange, answer: ModelAnswer) -> JsonObject:
    """What every provider's answer tells back of its request."""
    reasoning = as_object(exchange.body.get("reasoning"))
    return {
        "background": False,
        "completed_at": answer.created + 1,
        "error": None,
        "frequency_penalty": 0.0,
        "instructions": echoed(exchange, "instructions", None),
        "max_output_tokens": echoed(exchange, "max_output_tokens", None),
        "max_tool_calls": None,
        "metadata": echoed(exchange, "metadata", {}),
        "parallel_tool_calls": True,
        "presence_penalty": 0.0,
        "previous_response_id": echoed(exchange, "previous_response_id", None),
        "prompt_cache_key": echoed(exchange, "prompt_cache_key", None),
        "reasoning": {"effort": reasoning.get("effort", "medium"), "summary": reasoning.get("summary")},
        "safety_identifier": None,
        "service_tier": "default",
        "store": is_stored(exchange),
        "temperature": 1.0,
        "text": {"format": {"type": "text"}, "verbosity": "medium"},
        "tool_choice": echoed(exchange, "tool_choice", "auto"),
        "tools": echoed(exchange, "tools", []),
        "top_logprobs": 0,
        "top_p": 1.0,
        "truncation": "disabled",
        "user": None,
    }


def _openai_around(exchange: SimExchange, answer: ModelAnswer) -> JsonObject:
    return {**_around(exchange, answer), "prompt_cache_retention": None}


def _azure_around(exchange: SimExchange, answer: ModelAnswer) -> JsonObject:
    return {**_openai_around(exchange, answer), "content_filters": None}


def _deepseek_around(exchange: SimExchange, answer: ModelAnswer) -> JsonObject:
    around = {**_azure_around(exchange, answer), "moderation": None, "store": False}
    return {**around, "text": {"format": {"type": "text"}, "verbosity": None}}


_COPILOT_LEAVES_OUT = (
    "background",
    "completed_at",
    "error",
    "frequency_penalty",
    "max_tool_calls",
    "metadata",
    "presence_penalty",
    "store",
    "top_logprobs",
    "user",
)


def _copilot_around(exchange: SimExchange, answer: ModelAnswer) -> JsonObject:
    """A whole answer is shorter than the one in the last event of a stream, and tells what it cost (recorded)."""
    around = _openai_around(exchange, answer)
    del around["prompt_cache_key"]
    around["reasoning"] = {"context": "current_turn", **around["reasoning"]}
    if exchange.is_streaming:
        return around
    kept = {key: value for key, value in around.items() if key not in _COPILOT_LEAVES_OUT}
    batch = {"batch_size": 1_000_000, "cost_per_batch": 175_000_000_000}
    details = [{**batch, "token_count": answer.usage.output, "token_type": "output"}]
    return {**kept, "output_text": None, "copilot_usage": {"token_details": details, "total_nano_aiu": 1000}}


def _copilot_reasoning(exchange: SimExchange, answer: ModelAnswer, item_id: str, piece: Think | Redacted) -> JsonObject:
    return {**_openai_reasoning(exchange, answer, item_id, piece), "content": []}


def _xai_around(exchange: SimExchange, answer: ModelAnswer) -> JsonObject:
    return {**_around(exchange, answer), "text": {"format": {"type": "text"}}}


def _usage(usage: TokenCounts) -> JsonObject:
    return {
        "input_tokens": usage.input,
        "input_tokens_details": {"cached_tokens": 0},
        "output_tokens": usage.output,
        "output_tokens_details": {"reasoning_tokens": usage.reasoning},
        "total_tokens": usage.total,
    }


def _xai_usage(usage: TokenCounts) -> JsonObject:
    counted = {"num_sources_used": 0, "num_server_side_tools_used": 0, "cost_in_usd_ticks": usage.total * 100}
    return {**_usage(usage), **counted, "context_details": {"input_tokens": usage.input, "output_tokens": usage.output}}


def _openai_item_id(kind: str, digits: str, number: int) -> str:
    return f"{kind}_{digits[:16]}00{digest(digits, str(number))}{digits[:8]}"


OPENAI = ResponsesStyle(
    _openai_item_id,
    lambda digits: f"resp_{digits[:16]}00{digest(digits)}{digits[:8]}",
    lambda digits, number: f"call_{digest(digits, str(number))}",
    _openai_reasoning,
    _openai_around,
    _usage,
    manners=StreamManners(obfuscates=True, announces_ciphertext=True),
)
AZURE = OPENAI._replace(around=_azure_around)
COPILOT = OPENAI._replace(
    around=_copilot_around,
    reasoning=_copilot_reasoning,
    has_phase=True,
    manners=StreamManners(announces_ciphertext=True),
    keeps=False,
)
DEEPSEEK = OPENAI._replace(
    item_id=lambda kind, digits, number: uuid_of(kind, digits, str(number)),
    reply_id=lambda digits: uuid_of(digits),
    call_id=lambda digits, number: f"call_{number:02d}_{digest(digits, str(number))}",
    reasoning=_deepseek_reasoning,
    around=_deepseek_around,
    has_phase=True,
    manners=StreamManners(),
    keeps=False,
)
XAI = OPENAI._replace(
    item_id=lambda kind, digits, number: (
        f"{kind}_{uuid_of(digits)}" + (f"_{number}" if number > 1 or kind == "fc" else "")
    ),
    reply_id=lambda digits: uuid_of(digits),
    reasoning=_xai_reasoning,
    around=_xai_around,
    usage=_xai_usage,
    manners=StreamManners(),
)
