"""The chat providers as rows. What an answer looks like was read off recorded ones; where none was recorded (Kimi,
MiMo, MiniMax, vLLM, Copilot's and OpenAI's chat) it follows what contracts.md says and names."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeAlias

from thoughtline_sim.exchange import SimExchange
from thoughtline_sim.tokens import ANTHROPIC
from thoughtline_sim.values import CallTool, ModelAnswer, Redacted, Think, TokenCounts
from thoughtline_sim.wire import JsonObject, canonical_arguments, digest, objects, pieces_of, string
from thoughtline_sim.wires.chat import ChatStyle, call_deltas, field_deltas
from thoughtline_sim.wires.generate import bound_to, signs_answer, spelling_for

PutReasoning: TypeAlias = Callable[[SimExchange, ModelAnswer, JsonObject], JsonObject]
Extras: TypeAlias = Callable[[ModelAnswer], JsonObject]


def _uuid(digits: str) -> str:
    return f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:32]}"


def _chatcmpl_uuid(digits: str) -> str:
    return f"chatcmpl-{_uuid(digits)}"


def _chatcmpl(digits: str) -> str:
    return f"chatcmpl-{digits[:24]}"


def _call_id(digits: str, name: str, number: int) -> str:
    return f"call_{digest(digits, str(number))}"


def _field(name: str) -> PutReasoning:
    def put(exchange: SimExchange, answer: ModelAnswer, message: JsonObject) -> JsonObject:
        return {**message, name: answer.thinking} if answer.thinking else message

    return put


def _always_field(exchange: SimExchange, answer: ModelAnswer, message: JsonObject) -> JsonObject:
    """Where the field must come back, it is there even if the model thought nothing (contracts.md §1 e)."""
    return {**message, "reasoning_content": answer.thinking} if exchange.thinks else message


def _nothing(exchange: SimExchange, answer: ModelAnswer, message: JsonObject) -> JsonObject:
    return message


def _think_tags(answer: ModelAnswer, message: JsonObject) -> JsonObject:
    if not answer.thinking:
        return message
    return {**message, "content": f"<think>\n{answer.thinking}\n</think>\n\n{message['content'] or ''}"}


def _minimax(exchange: SimExchange, answer: ModelAnswer, message: JsonObject) -> JsonObject:
    """`<think>` in the text, or details if the request asks for `reasoning_split` (contracts.md §5)."""
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
    """Text, and an opaque token bound to the model and the account (contracts.md §29)."""
    if not answer.thinking:
        return message
    token = exchange.mint.seal(
        {"text": digest(answer.thinking)}, ("copilot", answer.model, exchange.account), ANTHROPIC
    )
    return {**message, "reasoning_text": answer.thinking, "reasoning_opaque": token}


def google_seal(exchange: SimExchange, call: CallTool | None) -> str:
    name, arguments = (call.name, canonical_arguments(call.arguments)) if call else ("", "")
    return exchange.mint.seal({"call": name}, bound_to(exchange, name, arguments), spelling_for(exchange.model))


def _google(exchange: SimExchange, answer: ModelAnswer, message: JsonObject) -> JsonObject:
    """On the first call, or on the message where there is none (contracts.md §11)."""
    if not signs_answer(exchange, answer):
        return message
    signature = google_seal(exchange, answer.calls[0] if answer.calls else None)
    extra = {"google": {"thought_signature": signature}}
    if not answer.calls:
        return {**message, "extra_content": extra}
    first, *others = message["tool_calls"]
    return {**message, "tool_calls": [{**first, "extra_content": extra}, *others]}


def _tagged_deltas(message: JsonObject, chunk_chars: int, style: ChatStyle) -> Iterator[JsonObject]:
    """MiniMax: tags are words of the text; details come in pieces with one id and index."""
    for entry in objects(message.get("reasoning_details")):
        for piece in pieces_of(entry["text"], chunk_chars):
            yield {"role": "assistant", "content": "", "reasoning_details": [{**entry, "text": piece}]}
    for piece in pieces_of(string(message.get("content")), chunk_chars):
        yield {"role": "assistant", "content": piece}
    yield from call_deltas(message, chunk_chars, style)


def _mistral_deltas(message: JsonObject, chunk_chars: int, style: ChatStyle) -> Iterator[JsonObject]:
    """Empty strings, then list-valued thinking, then plain strings (recorded)."""
    yield {"role": "assistant", "content": ""}
    content = message.get("content")
    for part in objects(content):
        for piece in pieces_of("".join(text["text"] for text in objects(part.get("thinking"))), chunk_chars):
            yield {"content": [{"type": "thinking", "thinking": [{"type": "text", "text": piece}]}]}
    words = content if isinstance(content, str) else "".join(string(part.get("text")) for part in objects(content))
    for piece in pieces_of(words, chunk_chars):
        yield {"content": piece}
    yield from call_deltas(message, chunk_chars, style)


def _google_deltas(message: JsonObject, chunk_chars: int, style: ChatStyle) -> Iterator[JsonObject]:
    for piece in pieces_of(string(message.get("content")), chunk_chars):
        yield {"role": "assistant", "content": piece}
    for number, call in enumerate(objects(message.get("tool_calls"))):
        yield {"role": "assistant", "tool_calls": [{"index": number, **call}]}
    if "extra_content" in message:
        yield {"role": "assistant", "content": "", "extra_content": message["extra_content"]}


def thoughts_of(answer: ModelAnswer) -> list[Think | Redacted]:
    return [piece for piece in answer.pieces if isinstance(piece, (Think, Redacted))]


def _usage(usage: TokenCounts) -> JsonObject:
    return {
        "prompt_tokens": usage.input,
        "completion_tokens": usage.output,
        "total_tokens": usage.total,
        "prompt_tokens_details": {"cached_tokens": 0},
        "completion_tokens_details": {"reasoning_tokens": usage.reasoning},
    }


def _plain_usage(usage: TokenCounts) -> JsonObject:
    return {"prompt_tokens": usage.input, "completion_tokens": usage.output, "total_tokens": usage.total}


def _deepseek_usage(usage: TokenCounts) -> JsonObject:
    return {**_usage(usage), "prompt_cache_hit_tokens": 0, "prompt_cache_miss_tokens": usage.input}


def _xai_usage(usage: TokenCounts) -> JsonObject:
    prompt = {"text_tokens": usage.input, "audio_tokens": 0, "image_tokens": 0, "cached_tokens": 0}
    predicted = {"audio_tokens": 0, "accepted_prediction_tokens": 0, "rejected_prediction_tokens": 0}
    return {
        **_plain_usage(usage),
        "prompt_tokens_details": prompt,
        "completion_tokens_details": {"reasoning_tokens": usage.reasoning, **predicted},
        "num_sources_used": 0,
        "cost_in_usd_ticks": usage.total * 100,
    }


def _openai_usage(usage: TokenCounts) -> JsonObject:
    predicted = {"audio_tokens": 0, "accepted_prediction_tokens": 0, "rejected_prediction_tokens": 0}
    return {
        **_plain_usage(usage),
        "prompt_tokens_details": {"cached_tokens": 0, "audio_tokens": 0},
        "completion_tokens_details": {"reasoning_tokens": usage.reasoning, **predicted},
    }


def _groq_usage(usage: TokenCounts) -> JsonObject:
    times = {"queue_time": 0.005, "prompt_time": 0.01, "completion_time": 0.1, "total_time": 0.11}
    return {**_plain_usage(usage), **times, "completion_tokens_details": {"reasoning_tokens": usage.reasoning}}


def _cerebras_usage(usage: TokenCounts) -> JsonObject:
    predicted = {"accepted_prediction_tokens": 0, "rejected_prediction_tokens": 0}
    details = {**predicted, "reasoning_tokens": usage.reasoning}
    return {**_usage(usage), "completion_tokens_details": details}


def _mistral_usage(usage: TokenCounts) -> JsonObject:
    return {**_plain_usage(usage), "prompt_tokens_details": {"cached_tokens": 0}}


def _fingerprint(value: str | None) -> Extras:
    return lambda answer: {"system_fingerprint": value}


def _cerebras_times(answer: ModelAnswer) -> JsonObject:
    times = {"queue_time": 0.002, "prompt_time": 0.01, "completion_time": 0.1, "total_time": 0.112}
    return {"time_info": {"created": float(answer.created), **times}}


def _groq_whole(answer: ModelAnswer) -> JsonObject:
    request = {"id": f"req_{answer.id[:26]}", "seed": 1}
    tier = {"service_tier": "on_demand", "system_fingerprint": "fp_simulated"}
    return {"usage_breakdown": None, **tier, "x_groq": request}


_BLANK = {"content": None, "reasoning_content": ""}

DEEPSEEK = ChatStyle(
    _uuid,
    lambda digits, name, number: f"call_{number:02d}_{digest(digits, str(number))}",
    _deepseek_usage,
    _always_field,
    field_deltas,
    no_content="",
    calls_have_index=True,
    choice_extras={"logprobs": None},
    whole_extras=_fingerprint("fp_simulated_prod_fp8_kvcache"),
    chunk_extras=lambda answer: {"system_fingerprint": "fp_simulated_prod_fp8_kvcache", "usage": None},
    first_delta={"role": "assistant", **_BLANK},
    think_extras={"content": None},
    say_extras={"reasoning_content": None},
    last_delta={"content": "", "reasoning_content": None},
)
KIMI = DEEPSEEK._replace(
    reply_id=_chatcmpl,
    call_id=lambda digits, name, number: f"functions.{name}:{number}",
    usage=lambda usage: {**_plain_usage(usage), "cached_tokens": 0},
    choice_extras={},
    whole_extras=lambda answer: {},
    chunk_extras=lambda answer: {},
    first_delta={"role": "assistant", "content": ""},
    think_extras={},
    say_extras={},
    last_delta={},
    usage_in="own",
)
MIMO = DEEPSEEK._replace(
    reply_id=lambda digits: digits,
    call_id=_call_id,
    usage=_usage,
    choice_extras={},
    whole_extras=lambda answer: {},
    chunk_extras=lambda answer: {},
)
GLM = MIMO._replace(
    reply_id=lambda digits: f"20261115{digits[:22]}",
    whole_extras=lambda answer: {"request_id": f"20261115{answer.id[:22]}"},
    first_delta=None,
    think_extras={"role": "assistant"},
    say_extras={"role": "assistant"},
    last_delta={"role": "assistant", "content": ""},
    says_null_finish=False,
    splits_arguments=False,
)
QWEN = DEEPSEEK._replace(
    reply_id=_chatcmpl_uuid,
    call_id=_call_id,
    usage=_usage,
    whole_extras=_fingerprint(None),
    chunk_extras=lambda answer: {"system_fingerprint": None, "usage": None},
    usage_in="own",
    ends_with_done=True,
)
MINIMAX = KIMI._replace(
    reply_id=lambda digits: digits,
    call_id=lambda digits, name, number: f"call_function_{digest(digits)[:12]}_{number + 1}",
    usage=_usage,
    put_reasoning=_minimax,
    deltas=_tagged_deltas,
)
GOOGLE = ChatStyle(
    lambda digits: digits[:22],
    lambda digits, name, number: f"function-call-{int(digest(digits, str(number))[:14], 16)}",
    _plain_usage,
    _google,
    _google_deltas,
    leaves_out_content=True,
    last_delta={"role": "assistant"},
    usage_in="last",
)
OPENAI = ChatStyle(
    _chatcmpl,
    _call_id,
    _openai_usage,
    _nothing,
    field_deltas,
    message_extras={"refusal": None, "annotations": []},
    whole_extras=lambda answer: {"service_tier": "default", "system_fingerprint": None},
    chunk_extras=lambda answer: {"service_tier": "default", "system_fingerprint": None},
    first_delta={"role": "assistant", "content": "", "refusal": None},
    usage_in="asked",
)
XAI = ChatStyle(
    _uuid,
    lambda digits, name, number: f"call_{int(digest(digits, str(number))[:8], 16) % 10**8:08d}",
    _xai_usage,
    _field("reasoning_content"),
    field_deltas,
    no_content="",
    message_extras={"refusal": None},
    whole_extras=_fingerprint("fp_simulated"),
    chunk_extras=_fingerprint("fp_simulated"),
    role_in_first_delta=True,
    says_null_finish=False,
    splits_arguments=False,
    usage_in="own",
)
MISTRAL = ChatStyle(
    lambda digits: digits,
    lambda digits, name, number: digest(digits, str(number))[:9],
    _mistral_usage,
    _mistral,
    _mistral_deltas,
    no_content="",
    last_delta={"content": ""},
    splits_arguments=False,
)
GROQ = ChatStyle(
    _chatcmpl_uuid,
    lambda digits, name, number: f"fc_{_uuid(digest(digits, str(number)) + digits)}",
    _groq_usage,
    _groq,
    field_deltas,
    leaves_out_content=True,
    choice_extras={"logprobs": None},
    whole_extras=_groq_whole,
    chunk_extras=_fingerprint("fp_simulated"),
    first_delta={"role": "assistant", "content": ""},
    think_extras={"channel": "analysis"},
    splits_arguments=False,
    last_extras=lambda answer, usage: {"x_groq": {"id": f"req_{answer.id[-26:]}", "usage": usage}},
)
CEREBRAS = ChatStyle(
    _chatcmpl_uuid,
    lambda digits, name, number: digest(digits, str(number))[:9],
    _cerebras_usage,
    _field("reasoning"),
    field_deltas,
    leaves_out_content=True,
    whole_extras=lambda answer: {"system_fingerprint": "fp_simulated", **_cerebras_times(answer)},
    chunk_extras=_fingerprint("fp_simulated"),
    first_delta={"role": "assistant"},
    says_null_finish=False,
    splits_arguments=False,
    last_extras=lambda answer, usage: _cerebras_times(answer),
)
OLLAMA = ChatStyle(
    lambda digits: f"chatcmpl-{int(digits[:6], 16) % 1000}",
    lambda digits, name, number: f"call_{digest(digits, str(number))[:8]}",
    _plain_usage,
    _field("reasoning"),
    field_deltas,
    no_content="",
    calls_have_index=True,
    whole_extras=_fingerprint("fp_ollama"),
    chunk_extras=_fingerprint("fp_ollama"),
    delta_extras={"role": "assistant", "content": ""},
    splits_arguments=False,
    usage_in="asked",
)
VLLM = ChatStyle(
    lambda digits: f"chatcmpl-{digits}",
    lambda digits, name, number: f"chatcmpl-tool-{digest(digits, str(number))}{digest(digits)[:8]}",
    _usage,
    _field("reasoning"),
    field_deltas,
    message_extras={"refusal": None, "annotations": None, "audio": None, "function_call": None},
    choice_extras={"logprobs": None},
    whole_extras=lambda answer: {"service_tier": None, "system_fingerprint": None, "prompt_logprobs": None},
    first_delta={"role": "assistant", "content": ""},
    usage_in="asked",
)
COPILOT = OPENAI._replace(put_reasoning=_copilot, message_extras={}, usage_in="own")
