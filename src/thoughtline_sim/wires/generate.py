"""Gemini's generateContent, with both framings of its stream; and `v1internal` of Code Assist and Antigravity, the same
in an envelope, with Claude's thoughts as signed parts."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Iterator
from typing import assert_never

from thoughtline_sim.exchange import SimExchange, WireFormat
from thoughtline_sim.model import OfferedTools, offered
from thoughtline_sim.pieces import CallTool, Hosted, Redacted, Say, Think
from thoughtline_sim.reading import JsonObject, as_object, call_arguments, objects, standard, string
from thoughtline_sim.tokens import ANTHROPIC, GEMINI, GEMINI_2_5, Spelling
from thoughtline_sim.values import InputCall, InputMessage, ModelAnswer, Role
from thoughtline_sim.wires.converse import is_claude
from thoughtline_sim.wires.messages import arguments_of
from thoughtline_sim.writing import compact, digest, pieces_of

_SENTINEL_WORDS = ("skip_thought_signature_validator", "context_engineering_is_the_way_to_go")
_SENTINELS = {
    standard(spelled.rstrip("="))
    for word in _SENTINEL_WORDS
    for spelled in (word, base64.b64encode(word.encode()).decode())
}
"""Both the words and their base64 are sent in practice; the SDK sends the latter."""
_STOPS = {"stop": "STOP", "tool_calls": "STOP", "length": "MAX_TOKENS"}


def either(holder: JsonObject, camel: str, snake: str) -> object:
    """A member in one of the two spellings that the API accepts."""
    return holder.get(camel, holder.get(snake))


def call_of(part: JsonObject) -> JsonObject:
    return as_object(either(part, "functionCall", "function_call"))


def result_of(part: JsonObject) -> JsonObject:
    return as_object(either(part, "functionResponse", "function_response"))


def signature_of(part: JsonObject) -> str:
    return string(either(part, "thoughtSignature", "thought_signature"))


def is_sentinel(signature: str) -> bool:
    """Whether it marks a missing signature. The AI SDK writes one on every call without a signature."""
    return standard(signature.rstrip("=")) in _SENTINELS


def is_2_5(model: str) -> bool:
    return "2.5" in model or "2-5" in model


def spelling_for(model: str) -> Spelling:
    return GEMINI_2_5 if is_2_5(model) else GEMINI


def bound_to(exchange: SimExchange, name: str, arguments: str) -> tuple[str, ...]:
    """What a signature is bound to: this call of this model for this account. No name: a text part."""
    return ("gemini", exchange.model, exchange.account, name, arguments)


def seal(exchange: SimExchange, name: str, arguments: str) -> str:
    return exchange.mint.seal({"call": name}, bound_to(exchange, name, arguments), spelling_for(exchange.model))


def thinking_config(exchange: SimExchange) -> JsonObject:
    settings = as_object(either(exchange.body, "generationConfig", "generation_config"))
    return as_object(either(settings, "thinkingConfig", "thinking_config"))


def problem_of(body: JsonObject) -> str | None:
    contents = body.get("contents")
    if not isinstance(contents, list) or not contents:
        return "* GenerateContentRequest.contents: contents is not specified"
    for index, content in enumerate(contents):
        parts = content.get("parts") if isinstance(content, dict) else None
        if not isinstance(parts, list) or len(objects(parts)) != len(parts):
            return f"* GenerateContentRequest.contents[{index}].parts: contents.parts must not be empty."
    return None


def read(body: JsonObject) -> tuple[InputMessage, ...]:
    return tuple(_read_content(index, content) for index, content in enumerate(objects(body.get("contents"))))


def _read_content(index: int, content: JsonObject) -> InputMessage:
    parts = objects(content.get("parts"))
    role: Role = "assistant" if content.get("role") == "model" else "user"
    # The summary may be dropped, the signature may not: only the signature counts as reasoning that comes back.
    signatures = [signature_of(part) for part in parts if signature_of(part) and not is_sentinel(signature_of(part))]
    return InputMessage(
        role,
        index,
        text="".join(string(part.get("text")) for part in parts if part.get("thought") is not True),
        thoughts=tuple(map(standard, signatures)) if role == "assistant" else (),
        calls=tuple(_read_call(part) for part in parts if call_of(part)),
        results=tuple(string(result_of(part).get("name")) for part in parts if result_of(part)),
        raw=content,
    )


def _read_call(part: JsonObject) -> InputCall:
    call = call_of(part)
    name, call_id = string(call.get("name")), string(call.get("id")) or None
    return InputCall(name, call_arguments(call.get("args")), call_id, signature=signature_of(part))


def offer(body: JsonObject) -> OfferedTools:
    declared: list[JsonObject] = []
    for tool in objects(body.get("tools")):
        declared += objects(either(tool, "functionDeclarations", "function_declarations"))
    settings = as_object(either(body, "toolConfig", "tool_config"))
    choice = as_object(either(settings, "functionCallingConfig", "function_calling_config"))
    named = ((function.get("name"), either(function, "parameters", "parametersJsonSchema")) for function in declared)
    return offered(named, may_call=choice.get("mode") != "NONE")


def _write(exchange: SimExchange, answer: ModelAnswer) -> JsonObject:
    return response_of(answer, parts(exchange, answer))


def response_of(answer: ModelAnswer, parts: Iterable[JsonObject]) -> JsonObject:
    content = {"parts": list(parts), "role": "model"}
    return {
        "candidates": [{"content": content, "finishReason": _STOPS[answer.finish], "index": 0}],
        "usageMetadata": {
            "promptTokenCount": answer.usage.input,
            "candidatesTokenCount": answer.usage.output - answer.usage.reasoning,
            "totalTokenCount": answer.usage.total,
            "thoughtsTokenCount": answer.usage.reasoning,
        },
        "modelVersion": answer.model,
        "responseId": answer.id[:22],
    }


def parts(exchange: SimExchange, answer: ModelAnswer) -> Iterator[JsonObject]:
    """Summaries on request; the signature on the first call of the step, or on the last text if there is none."""
    shows = either(thinking_config(exchange), "includeThoughts", "include_thoughts") is True
    signs = signs_answer(exchange, answer)
    says = [piece for piece in answer.pieces if isinstance(piece, Say)]
    calls = 0
    for piece in answer.pieces:
        match piece:
            case Think() | Redacted():
                if shows and piece.text:
                    yield {"text": piece.text, "thought": True}
            case Say():
                signed = signs and not answer.calls and piece is says[-1]
                yield {"text": piece.text, **({"thoughtSignature": seal(exchange, "", "")} if signed else {})}
            case CallTool():
                yield _call_part(exchange, answer, piece, calls, signs)
                calls += 1
            case Hosted():
                # Code that Google ran, signed, and its result (recorded).
                code = {"language": "PYTHON", "code": f"{piece.name}({piece.arguments})"}
                yield {"executableCode": code, "thoughtSignature": seal(exchange, "", "")}
                yield {"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "ok"}}
            case _:
                assert_never(piece)


def signs_answer(exchange: SimExchange, answer: ModelAnswer) -> bool:
    """Gemini 3 signs its calls even at minimal thinking; 2.5 only its thoughts, and only if tools were declared."""
    if is_2_5(answer.model):
        return bool(answer.thoughts and exchange.body.get("tools"))
    return bool(answer.thoughts or answer.calls)


def _call_part(exchange: SimExchange, answer: ModelAnswer, call: CallTool, number: int, signs: bool) -> JsonObject:
    arguments = arguments_of(call)
    body: JsonObject = {"name": call.name, "args": arguments}
    if answer.has_ids and not is_2_5(answer.model):
        body["id"] = digest(answer.id, str(number))[:8]
    if not signs or number > 0:
        return {"functionCall": body}
    return {"functionCall": body, "thoughtSignature": seal(exchange, call.name, call_arguments(arguments))}


def _frames(exchange: SimExchange, whole: JsonObject, chunk_chars: int) -> list[bytes]:
    return framed(exchange, chunks(whole, chunk_chars))


def framed(exchange: SimExchange, partial: Iterable[JsonObject]) -> list[bytes]:
    """Partial responses as events, or as one array."""
    bodies = [compact(chunk) for chunk in partial]
    if is_sse(exchange):
        return [b"data: " + body + b"\r\n\r\n" for body in bodies]
    opening = [(b"[" if number == 0 else b",\r\n") + body for number, body in enumerate(bodies)]
    return [*opening, b"\n]"]


def is_sse(exchange: SimExchange) -> bool:
    return exchange.request.query.get("alt") == "sse"


def is_array(exchange: SimExchange) -> bool:
    """Whether the answer is one JSON array: a stream without `alt=sse`."""
    return exchange.is_streaming and not is_sse(exchange)


def chunks(whole: JsonObject, chunk_chars: int) -> Iterator[JsonObject]:
    """Each chunk is a partial response; a signature comes with its part, on text as a trailing empty one (recorded)."""
    candidate = whole["candidates"][0]
    tail = {key: value for key, value in whole.items() if key != "candidates"}
    last: list[JsonObject] = [{"text": ""}]
    for part in candidate["content"]["parts"]:
        for piece in _split(part, chunk_chars):
            content = {"parts": [piece], "role": "model"}
            yield {"candidates": [{"content": content, "index": 0}], **tail}
        if part.get("thought") is True and "thoughtSignature" in part:
            signed = {"parts": [{**part, "text": ""}], "role": "model"}
            yield {"candidates": [{"content": signed, "index": 0}], **tail}
        elif "text" in part and "thoughtSignature" in part:
            last = [{"text": "", "thoughtSignature": part["thoughtSignature"]}]
    closing = {**candidate, "content": {"parts": last, "role": "model"}}
    yield {"candidates": [closing], **tail}


def _split(part: JsonObject, chunk_chars: int) -> Iterator[JsonObject]:
    if "text" not in part:
        yield part
        return
    rest = {key: value for key, value in part.items() if key not in ("text", "thoughtSignature")}
    for piece in pieces_of(part["text"], chunk_chars):
        yield {"text": piece, **rest}


GENERATE = WireFormat(
    "gemini_generate",
    problem_of,
    read,
    offer=offer,
    write=_write,
    frames=_frames,
    echo=lambda whole: {"contents": [whole["candidates"][0]["content"]]},
    stream_type=lambda exchange: "text/event-stream" if is_sse(exchange) else "application/json; charset=UTF-8",
)


# Code Assist


def code_assist_thinks(exchange: SimExchange) -> bool:
    """Gemini thinks by default. Claude thinks if it has a budget, or `-thinking` in its name; `includeThoughts` alone
    asks only to see what there is. No page says so: it is what Antigravity's clients send.
    """
    budget = either(thinking_config(exchange), "thinkingBudget", "thinking_budget")
    is_asked = not is_claude(exchange.model) or budget is not None or "-thinking" in exchange.model
    return is_asked and budget != 0


def bound_thought(exchange: SimExchange, text: str) -> tuple[str, ...]:
    """What the signature of a thought is bound to: this text of this model for this account."""
    return ("antigravity", exchange.model, exchange.account, text)


def _claude_parts(exchange: SimExchange, answer: ModelAnswer) -> Iterator[JsonObject]:
    """Every thought is signed, and nothing else (CLIProxyAPI#570)."""
    for number, piece in enumerate(answer.pieces):
        match piece:
            case Think() | Redacted():
                bound = bound_thought(exchange, piece.text)
                signature = exchange.mint.seal({"thought": digest(piece.text)}, bound, ANTHROPIC)
                yield {"text": piece.text, "thought": True, "thoughtSignature": signature}
            case Say():
                yield {"text": piece.text}
            case CallTool() | Hosted():
                call_id = f"toolu_vrtx_{digest(answer.id, str(number))[:20]}"
                yield {"functionCall": {"name": piece.name, "args": arguments_of(piece), "id": call_id}}
            case _:
                assert_never(piece)


def _write_enveloped(exchange: SimExchange, answer: ModelAnswer) -> JsonObject:
    made = _claude_parts(exchange, answer) if is_claude(answer.model) else parts(exchange, answer)
    return {"response": response_of(answer, made), "traceId": answer.id[:16]}


def _enveloped_frames(exchange: SimExchange, whole: JsonObject, chunk_chars: int) -> list[bytes]:
    around = {name: value for name, value in whole.items() if name != "response"}
    return framed(exchange, ({"response": chunk, **around} for chunk in chunks(whole["response"], chunk_chars)))


CODE_ASSIST = GENERATE._replace(
    format="gemini_code_assist",
    write=_write_enveloped,
    frames=_enveloped_frames,
    echo=lambda whole: GENERATE.echo(whole["response"]),
)
