"""The chat providers as rows. The shape of answers comes from recordings; without any (Kimi, MiMo, MiniMax, vLLM,
Copilot's and OpenAI's chat) it follows contracts.md.
"""

from __future__ import annotations

from collections.abc import Callable

from thoughtline_sim.exchange import SimExchange
from thoughtline_sim.pieces import CallTool
from thoughtline_sim.reading import JsonObject, call_arguments
from thoughtline_sim.tokens import ANTHROPIC
from thoughtline_sim.values import ModelAnswer
from thoughtline_sim.wires.chat import ChatStyle
from thoughtline_sim.wires.generate import seal, signs_answer
from thoughtline_sim.writing import digest, uuid_of


def _chatcmpl(digits: str) -> str:
    return f"chatcmpl-{digits[:24]}"


def _chatcmpl_uuid(digits: str) -> str:
    return f"chatcmpl-{uuid_of(digits)}"


def _call_id(digits: str, name: str, number: int) -> str:
    return f"call_{digest(digits, str(number))}"


def _short_call_id(digits: str, name: str, number: int) -> str:
    return digest(digits, str(number))[:9]


def _field(name: str) -> Callable[[SimExchange, ModelAnswer, JsonObject], JsonObject]:
    def put(exchange: SimExchange, answer: ModelAnswer, message: JsonObject) -> JsonObject:
        return {**message, name: answer.thinking} if answer.thinking else message

    return put


def _grok_field(exchange: SimExchange, answer: ModelAnswer, message: JsonObject) -> JsonObject:
    """Grok 3 shows its reasoning; later models have no field for it on chat."""
    is_shown = "grok-3" in answer.model and bool(answer.thinking)
    return {**message, "reasoning_content": answer.thinking} if is_shown else message


def _always_field(exchange: SimExchange, answer: ModelAnswer, message: JsonObject) -> JsonObject:
    """If the field must come back, it is present even if the model thought nothing."""
    return {**message, "reasoning_content": answer.thinking} if exchange.thinks else message


def _think_tags(answer: ModelAnswer, message: JsonObject) -> JsonObject:
    if not answer.thinking:
        return message
    return {**message, "content": f"<think>\n{answer.thinking}\n</think>\n\n{message.get('content') or ''}"}


def _minimax(exchange: SimExchange, answer: ModelAnswer, message: JsonObject) -> JsonObject:
    """`<think>` in the text, or details if the request sets `reasoning_split`."""
    if exchange.body.get("reasoning_split") is not True or not answer.thinking:
        return _think_tags(answer, message)
    entry = {"type": "reasoning.text", "id": "reasoning-text-1", "format": "MiniMax-response-v1", "index": 0}
    return {**message, "reasoning_details": [{**entry, "text": answer.thinking}]}


def _groq(exchange: SimExchange, answer: ModelAnswer, message: JsonObject) -> JsonObject:
    """`reasoning_format` decides: in tags, in a field, or not at all."""
    wanted = exchange.body.get("reasoning_format")
    if wanted == "raw":
        return _think_tags(answer, {"content": None, **message})
    if wanted == "hidden" or not answer.thinking:
        return message
    return {**message, "reasoning": answer.thinking}


def _mistral(exchange: SimExchange, answer: ModelAnswer, message: JsonObject) -> JsonObject:
    if not answer.thinking:
        return message
    chunk = {"type": "thinking", "thinking": [{"type": "text", "text": answer.thinking}], "closed": True}
    words = [{"type": "text", "text": answer.text}] if answer.text else []
    return {**message, "content": [chunk, *words]}


def _copilot(exchange: SimExchange, answer: ModelAnswer, message: JsonObject) -> JsonObject:
    """Text, and an opaque token bound to the model and the account."""
    if not answer.thinking:
        return message
    bound = ("copilot", answer.model, exchange.account)
    token = exchange.mint.seal({"text": digest(answer.thinking)}, bound, ANTHROPIC)
    return {**message, "reasoning_text": answer.thinking, "reasoning_opaque": token}


def google_seal(exchange: SimExchange, call: CallTool | None) -> str:
    return seal(exchange, call.name, call_arguments(call.arguments)) if call else seal(exchange, "", "")


def _google(exchange: SimExchange, answer: ModelAnswer, message: JsonObject) -> JsonObject:
    """On the first call, or on the message if there is none."""
    if not signs_answer(exchange, answer):
        return message
    signature = google_seal(exchange, answer.calls[0] if answer.calls else None)
    extra = {"google": {"thought_signature": signature}}
    if not answer.calls:
        return {**message, "extra_content": extra}
    first, *others = message["tool_calls"]
    return {**message, "tool_calls": [{**first, "extra_content": extra}, *others]}


_EMPTY = {"content": ""}
_UNSAID: JsonObject = {"service_tier": "default", "system_fingerprint": None}

DEEPSEEK = ChatStyle(
    uuid_of,
    lambda digits, name, number: f"call_{number:02d}_{digest(digits, str(number))}",
    _always_field,
    no_content=_EMPTY,
    first_delta={"content": None, "reasoning_content": ""},
)
KIMI = DEEPSEEK._replace(
    reply_id=_chatcmpl,
    call_id=lambda digits, name, number: f"functions.{name}:{number}",
    first_delta=_EMPTY,
    usage_in="own",
)
MIMO = DEEPSEEK._replace(reply_id=str, call_id=_call_id)
GLM = MIMO._replace(reply_id=lambda digits: f"20261115{digits[:22]}", first_delta=None, splits_arguments=False)
QWEN = MIMO._replace(reply_id=_chatcmpl_uuid, usage_in="own")
MINIMAX = KIMI._replace(
    reply_id=str,
    call_id=lambda digits, name, number: f"call_function_{digest(digits)[:12]}_{number + 1}",
    put_reasoning=_minimax,
    first_delta=None,
)
GOOGLE = ChatStyle(
    lambda digits: digits[:22],
    lambda digits, name, number: f"function-call-{int(digest(digits, str(number))[:14], 16)}",
    _google,
    no_content={},
    splits_arguments=False,
)
OPENAI = ChatStyle(
    _chatcmpl,
    _call_id,
    lambda exchange, answer, message: message,
    message_extras={"refusal": None, "annotations": []},
    choice_extras={"logprobs": None},
    reply_extras=_UNSAID,
    chunk_extras=_UNSAID,
    first_delta=_EMPTY,
    usage_in="asked",
)
XAI = ChatStyle(
    uuid_of,
    lambda digits, name, number: f"call_{int(digest(digits, str(number))[:8], 16) % 10**8:08d}",
    _grok_field,
    no_content=_EMPTY,
    splits_arguments=False,
    usage_in="own",
)
GROQ = ChatStyle(
    _chatcmpl_uuid,
    lambda digits, name, number: f"fc_{uuid_of(digits, str(number))}",
    _groq,
    no_content={},
    first_delta=_EMPTY,
    splits_arguments=False,
)
CEREBRAS = GROQ._replace(call_id=_short_call_id, put_reasoning=_field("reasoning"), first_delta={})
MISTRAL = GROQ._replace(reply_id=str, call_id=_short_call_id, put_reasoning=_mistral, no_content=_EMPTY)
OLLAMA = XAI._replace(
    reply_id=lambda digits: f"chatcmpl-{int(digits[:6], 16) % 1000}",
    call_id=lambda digits, name, number: f"call_{digest(digits, str(number))[:8]}",
    put_reasoning=_field("reasoning"),
    usage_in="asked",
)
VLLM = OPENAI._replace(
    call_id=lambda digits, name, number: f"chatcmpl-tool-{digest(digits, str(number))}{digest(digits)[:8]}",
    put_reasoning=_field("reasoning"),
)
COPILOT = OPENAI._replace(put_reasoning=_copilot, message_extras={}, usage_in="own")
LLAMACPP = OPENAI._replace(put_reasoning=_field("reasoning_content"), message_extras={}, usage_in="own")
