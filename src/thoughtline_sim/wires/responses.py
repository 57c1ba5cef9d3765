"""The Responses API of OpenAI, Azure, xAI, DeepSeek and Copilot: decoding requests, encoding answers and streams.

Differences are in a `ResponsesStyle`: ids, the content of a reasoning item, whether answers are stored. Its rows are at
the end.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import NamedTuple, assert_never

from thoughtline_sim import tokens
from thoughtline_sim.exchange import SimExchange, WireFormat
from thoughtline_sim.ledger import StoredResponse
from thoughtline_sim.model import OfferedTools, offered
from thoughtline_sim.pieces import CallTool, Hosted, Redacted, Say, Think, Thought
from thoughtline_sim.reading import JsonObject, as_object, call_arguments, canonical, objects, string, text_of
from thoughtline_sim.values import InputCall, InputMessage, ModelAnswer, Role
from thoughtline_sim.wires.messages import arguments_of
from thoughtline_sim.writing import compact, digest, pieces_of, uuid_of

MODEL_ITEMS = ("reasoning", "function_call", "custom_tool_call")
_RESULTS = ("function_call_output", "custom_tool_call_output")
_GROK_SEALED = re.compile(r"grok-(4\.[7-9]|[5-9])")
"""Models of xAI that always return ciphertext."""


class ResponsesStyle(NamedTuple):
    """A provider's variant of Responses."""

    item_id: Callable[[str, str, int], str]
    """From the kind of item (`rs`, `fc`, `msg`), the answer's digits and the item's number."""
    reply_id: Callable[[str], str]
    call_id: Callable[[str, int], str]
    reasoning: Callable[[SimExchange, ModelAnswer, str, Thought], JsonObject]
    has_phase: bool = False
    announces_ciphertext: bool = False
    """Whether an item is announced with an unfinished ciphertext."""
    keeps: bool = True
    """Whether answers can be stored at all."""


def problem_of(body: JsonObject) -> str | None:
    given = body.get("input")
    if isinstance(given, str) or (given is None and "previous_response_id" in body):
        return None
    if not isinstance(given, list) or len(objects(given)) != len(given):
        return "Invalid type for 'input': expected one of a string or an array of objects."
    return None


def items_of(body: JsonObject) -> list[JsonObject]:
    """The input as items; a string is a user message."""
    given = body.get("input")
    if isinstance(given, str):
        return [{"type": "message", "role": "user", "content": given}]
    return objects(given)


def kind_of(item: JsonObject) -> str:
    """A message may omit its type."""
    return string(item.get("type")) or ("message" if "role" in item else "item_reference")


def read(body: JsonObject) -> tuple[InputMessage, ...]:
    return tuple(_read_item(index, item) for index, item in enumerate(items_of(body)))


def _read_item(index: int, item: JsonObject) -> InputMessage:
    kind = kind_of(item)
    if kind == "reasoning":
        return InputMessage("assistant", index, "", _thoughts(item), raw=item)
    if kind in MODEL_ITEMS:
        arguments = call_arguments(item.get("arguments", item.get("input")))
        call = InputCall(string(item.get("name")), arguments, string(item.get("call_id")))
        return InputMessage("assistant", index, calls=(call,), raw=item)
    if kind in _RESULTS:
        return InputMessage("tool", index, results=(string(item.get("call_id")),), raw=item)
    if is_hosted(item):
        return InputMessage("assistant", index, raw=item)
    roles: dict[str, Role] = {"assistant": "assistant", "system": "system", "developer": "system"}
    return InputMessage(roles.get(string(item.get("role")), "user"), index, text_of(item.get("content")), raw=item)


def is_hosted(item: JsonObject) -> bool:
    """Whether an item is a call of a tool that the provider runs."""
    return kind_of(item).endswith("_call") and kind_of(item) not in MODEL_ITEMS


def is_model_item(item: JsonObject) -> bool:
    return kind_of(item) in MODEL_ITEMS or is_hosted(item) or item.get("role") == "assistant"


def prefix_digest(items: Iterable[JsonObject]) -> str:
    """The content before a reasoning item, without ids, states and other reasoning."""
    history = [
        {name: value for name, value in item.items() if name not in ("id", "status", "phase", "type")}
        for item in items
        if kind_of(item) != "reasoning"
    ]
    words = [{**item, "content": text_of(item["content"])} if "content" in item else item for item in history]
    return digest(canonical(words))


def _thoughts(item: JsonObject) -> tuple[str, ...]:
    """The ciphertext must come back; without one, the text, or the id of the stored item."""
    held = string(item.get("encrypted_content")) or text_of(item.get("content")) or text_of(item.get("summary"))
    return (held or string(item.get("id")),) if held or item.get("id") else ()


def offer(body: JsonObject) -> OfferedTools:
    functions = [tool for tool in objects(body.get("tools")) if tool.get("type") == "function"]
    choice = body.get("tool_choice")
    named = ((function.get("name"), function.get("parameters")) for function in functions)
    return offered(named, as_object(choice).get("name"), may_call=choice != "none")


def is_stored(exchange: SimExchange) -> bool:
    return exchange.body.get("store") is not False


def includes_ciphertext(exchange: SimExchange) -> bool:
    included = exchange.body.get("include")
    return isinstance(included, list) and "reasoning.encrypted_content" in included


def wants_ciphertext(exchange: SimExchange) -> bool:
    return includes_ciphertext(exchange) or not is_stored(exchange)


def responses_wire(style: ResponsesStyle) -> WireFormat:
    return WireFormat(
        "openai_responses",
        problem_of,
        read,
        offer=offer,
        write=partial(_write, style),
        frames=partial(frames_of, announces_ciphertext=style.announces_ciphertext),
        echo=lambda whole: {"input": whole["output"]},
    )


def _write(style: ResponsesStyle, exchange: SimExchange, answer: ModelAnswer) -> JsonObject:
    output = _items(exchange, answer, style)
    whole = {
        **_ECHOED,
        **{name: exchange.body[name] for name in _ECHOED if exchange.body.get(name) is not None},
        "id": style.reply_id(answer.id),
        "object": "response",
        "created_at": answer.created,
        "status": "incomplete" if answer.finish == "length" else "completed",
        "incomplete_details": {"reason": "max_output_tokens"} if answer.finish == "length" else None,
        "error": None,
        "model": answer.model,
        "output": output,
        "usage": {
            "input_tokens": answer.usage.input,
            "input_tokens_details": {"cached_tokens": answer.usage.cached},
            "output_tokens": answer.usage.output,
            "output_tokens_details": {"reasoning_tokens": answer.usage.reasoning},
            "total_tokens": answer.usage.total,
        },
    }
    before = (*history_of(exchange), *items_of(exchange.body))
    stored = StoredResponse(tuple(output), before, style.keeps and is_stored(exchange))
    exchange.ledger.remember_response(exchange.account, whole["id"], stored)
    return whole


def history_of(exchange: SimExchange) -> tuple[JsonObject, ...]:
    """What `previous_response_id` stands for: all items of the conversation up to that response."""
    name = string(exchange.body.get("previous_response_id"))
    known = exchange.ledger.responses.get((exchange.account, name)) if name else None
    return (*known.before, *known.items) if known and known.is_stored else ()


def _items(exchange: SimExchange, answer: ModelAnswer, style: ResponsesStyle) -> list[JsonObject]:
    output: list[JsonObject] = []
    calls = 0
    phase = {"phase": "commentary" if answer.calls else "final_answer"} if style.has_phase else {}
    done = {"status": "completed"}
    for number, piece in enumerate(answer.pieces):
        match piece:
            case Think() | Redacted():
                output.append(style.reasoning(exchange, answer, style.item_id("rs", answer.id, number), piece))
            case Say():
                text = {"type": "output_text", "annotations": [], "logprobs": [], "text": piece.text}
                head = {"id": style.item_id("msg", answer.id, number), "type": "message", **done}
                output.append({**head, "content": [text], **phase, "role": "assistant"})
            case CallTool():
                head = {"id": style.item_id("fc", answer.id, number), "type": "function_call", **done}
                call = {"arguments": piece.arguments, "call_id": style.call_id(answer.id, calls), "name": piece.name}
                output.append({**head, **call})
                calls += 1
            case Hosted():
                letters = "".join(word[0] for word in piece.name.split("_"))
                head = {"id": style.item_id(letters, answer.id, number), "type": f"{piece.name}_call", **done}
                output.append({**head, "action": {"type": "search", **arguments_of(piece)}})
            case _:
                assert_never(piece)
    return output


_ECHOED: JsonObject = {
    "instructions": None,
    "metadata": {},
    "parallel_tool_calls": True,
    "previous_response_id": None,
    "store": True,
    "temperature": 1.0,
    "tool_choice": "auto",
    "tools": [],
    "top_p": 1.0,
}
"""Settings of the request that the answer repeats, and their defaults: those that the SDK's types require."""


# --- its stream: every event numbered, every item announced, filled and closed ----------------------------------------


_PARTS = {
    "summary_text": ("reasoning_summary_part", "reasoning_summary_text"),
    "reasoning_text": ("content_part", "reasoning_text"),
    "output_text": ("content_part", "output_text"),
}
"""By the type of a part: the names of its events, and of those for its text."""


def frames_of(exchange: SimExchange, whole: JsonObject, chunk_chars: int, *, announces_ciphertext: bool) -> list[bytes]:
    return [
        b"event: " + event["type"].encode() + b"\ndata: " + compact({**event, "sequence_number": number}) + b"\n\n"
        for number, event in enumerate(_events(whole, chunk_chars, announces_ciphertext))
    ]


def _events(whole: JsonObject, chunk_chars: int, announces_ciphertext: bool) -> Iterator[JsonObject]:
    begun = {**whole, "status": "in_progress", "output": [], "usage": None, "incomplete_details": None}
    yield {"type": "response.created", "response": begun}
    yield {"type": "response.in_progress", "response": begun}
    for index, item in enumerate(whole["output"]):
        yield {"type": "response.output_item.added", "output_index": index, "item": _opened(item, announces_ciphertext)}
        for event in _filling(item, chunk_chars):
            yield {**event, "item_id": item["id"], "output_index": index}
        yield {"type": "response.output_item.done", "output_index": index, "item": item}
    yield {"type": f"response.{whole['status']}", "response": whole}


def _opened(item: JsonObject, announces_ciphertext: bool) -> JsonObject:
    """An item as it is announced. Its ciphertext there is not the final one and is never valid."""
    empty = {"status": "in_progress", "content": [], "summary": [], "arguments": ""}
    opened = {key: empty.get(key, value) for key, value in item.items() if key != "encrypted_content"}
    if item.get("encrypted_content") and announces_ciphertext:
        opened["encrypted_content"] = item["encrypted_content"][:-48]
    return opened


def _filling(item: JsonObject, chunk_chars: int) -> Iterator[JsonObject]:
    kind = item["type"]
    if "arguments" in item:
        for piece in pieces_of(item["arguments"], chunk_chars):
            yield {"type": "response.function_call_arguments.delta", "delta": piece}
        yield {"type": "response.function_call_arguments.done", "arguments": item["arguments"]}
    elif kind not in ("reasoning", "message"):
        yield {"type": f"response.{kind}.in_progress"}
        yield {"type": f"response.{kind}.completed"}
    for name in ("summary", "content"):
        for index, part in enumerate(item.get(name, [])):
            for event in _part(part, chunk_chars):
                yield {**event, f"{name}_index": index}


def _part(part: JsonObject, chunk_chars: int) -> Iterator[JsonObject]:
    name, text = _PARTS[part["type"]]
    beside: JsonObject = {"logprobs": []} if text == "output_text" else {}
    yield {"type": f"response.{name}.added", "part": {**part, "text": ""}}
    for piece in pieces_of(part["text"], chunk_chars):
        yield {"type": f"response.{text}.delta", "delta": piece, **beside}
    yield {"type": f"response.{text}.done", "text": part["text"], **beside}
    yield {"type": f"response.{name}.done", "part": part}


# --- the providers as rows, from recorded answers --------------------------------------------------------------------


def openai_bound(exchange: SimExchange) -> tuple[str, ...]:
    """Ciphertext is bound to its organisation and endpoint; the item's id is one of its claims."""
    return ("responses", exchange.account)


def _summary(exchange: SimExchange, piece: Thought) -> list[JsonObject]:
    wanted = string(as_object(exchange.body.get("reasoning")).get("summary"))
    return [{"type": "summary_text", "text": piece.text}] if wanted and isinstance(piece, Think) and piece.text else []


def _openai_reasoning(exchange: SimExchange, answer: ModelAnswer, item_id: str, piece: Thought) -> JsonObject:
    item: JsonObject = {"id": item_id, "type": "reasoning", "summary": _summary(exchange, piece)}
    if wants_ciphertext(exchange):
        before = (*history_of(exchange), *items_of(exchange.body))
        claims = {"item": item_id, "model": answer.model, "text": piece.text, "after": prefix_digest(before)}
        item["encrypted_content"] = exchange.mint.seal(claims, openai_bound(exchange), tokens.OPENAI)
    return item


def _xai_reasoning(exchange: SimExchange, answer: ModelAnswer, item_id: str, piece: Thought) -> JsonObject:
    """The summary is always shown; ciphertext is bound only to its provider."""
    shown = [{"text": piece.text, "type": "summary_text"}] if piece.text else []
    item: JsonObject = {"id": item_id, "summary": shown, "type": "reasoning", "status": "completed"}
    if wants_ciphertext(exchange) or _GROK_SEALED.search(answer.model):
        item["encrypted_content"] = exchange.mint.seal({"text": piece.text}, ("xai",), tokens.XAI)
    return item


def _deepseek_reasoning(exchange: SimExchange, answer: ModelAnswer, item_id: str, piece: Thought) -> JsonObject:
    """Readable thinking. `encrypted_content` is a handle, `<response id>-0`, that is not needed back."""
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


def _copilot_reasoning(exchange: SimExchange, answer: ModelAnswer, item_id: str, piece: Thought) -> JsonObject:
    return {**_openai_reasoning(exchange, answer, item_id, piece), "content": []}


OPENAI = ResponsesStyle(
    lambda kind, digits, number: f"{kind}_{digits[:16]}00{digest(digits, str(number))}{digits[:8]}",
    lambda digits: f"resp_{digits[:16]}00{digest(digits)}{digits[:8]}",
    lambda digits, number: f"call_{digest(digits, str(number))}",
    _openai_reasoning,
    announces_ciphertext=True,
)
COPILOT = OPENAI._replace(reasoning=_copilot_reasoning, has_phase=True, keeps=False)
DEEPSEEK = OPENAI._replace(
    item_id=lambda kind, digits, number: uuid_of(kind, digits, str(number)),
    reply_id=uuid_of,
    call_id=lambda digits, number: f"call_{number:02d}_{digest(digits, str(number))}",
    reasoning=_deepseek_reasoning,
    has_phase=True,
    announces_ciphertext=False,
    keeps=False,
)
XAI = OPENAI._replace(
    item_id=lambda kind, digits, number: (
        f"{kind}_{uuid_of(digits)}" + (f"_{number}" if number > 1 or kind == "fc" else "")
    ),
    reply_id=uuid_of,
    reasoning=_xai_reasoning,
    announces_ciphertext=False,
)
