"""Gemini's Interactions API: steps, and answers that are stored by default."""

from __future__ import annotations

from collections.abc import Iterator
from typing import assert_never

from thoughtline_sim.exchange import SimExchange, WireFormat
from thoughtline_sim.ledger import StoredResponse
from thoughtline_sim.model import OfferedTools, offered
from thoughtline_sim.pieces import CallTool, Hosted, Redacted, Say, Think, Thought
from thoughtline_sim.reading import JsonObject, as_object, call_arguments, objects, standard, string, text_of
from thoughtline_sim.tokens import GEMINI
from thoughtline_sim.values import InputCall, InputMessage, ModelAnswer
from thoughtline_sim.wires.messages import arguments_of
from thoughtline_sim.writing import compact, digest, pieces_of

_STATUS = {"stop": "completed", "tool_calls": "requires_action", "length": "incomplete"}


def problem_of(body: JsonObject) -> str | None:
    if not body.get("model") and not body.get("agent"):
        return "Either model or agent must be set."
    given = body.get("input")
    if isinstance(given, list) and len(objects(given)) != len(given):
        return "Invalid input."
    return None if isinstance(given, (str, dict, list)) else "Input is required."


def steps_of(body: JsonObject) -> list[JsonObject]:
    """The input as steps: a text, or contents, are a user's."""
    given = body.get("input")
    if isinstance(given, str):
        given = {"type": "text", "text": given}
    listed = objects(given) if isinstance(given, list) else [as_object(given)]
    if all(string(one.get("type")) in ("text", "image", "audio", "document", "video") for one in listed):
        return [{"type": "user_input", "content": listed}]
    return listed


def read(body: JsonObject) -> tuple[InputMessage, ...]:
    return tuple(_read_step(index, step) for index, step in enumerate(steps_of(body)))


def _read_step(index: int, step: JsonObject) -> InputMessage:
    match step.get("type"):
        case "thought":
            signature = standard(string(step.get("signature")))
            return InputMessage("assistant", index, thoughts=(signature,) if signature else (), raw=step)
        case "function_call":
            arguments = call_arguments(step.get("arguments"))
            call = InputCall(string(step.get("name")), arguments, string(step.get("id")))
            return InputMessage("assistant", index, calls=(call,), raw=step)
        case "function_result":
            return InputMessage("tool", index, results=(string(step.get("call_id")),), raw=step)
        case "user_input":
            contents = objects(step.get("content"))
            results = tuple(string(one.get("call_id")) for one in contents if one.get("type") == "function_result")
            return InputMessage("user", index, text_of(step.get("content")), results=results, raw=step)
        case _:
            return InputMessage("assistant", index, text_of(step.get("content")), raw=step)


def offer(body: JsonObject) -> OfferedTools:
    functions = [tool for tool in objects(body.get("tools")) if tool.get("type") == "function"]
    choice = as_object(body.get("generation_config")).get("tool_choice")
    return offered(((one.get("name"), one.get("parameters")) for one in functions), may_call=choice != "none")


def bound_to(exchange: SimExchange) -> tuple[str, ...]:
    """What the signature of a thought is bound to: this model for this account."""
    return ("interactions", exchange.model, exchange.account)


def _write(exchange: SimExchange, answer: ModelAnswer) -> JsonObject:
    steps = list(_steps(exchange, answer))
    whole = {
        "id": f"v1_{answer.id}",
        "object": "interaction",
        "status": _STATUS[answer.finish],
        "model": answer.model,
        "steps": steps,
        "usage": {
            "total_input_tokens": answer.usage.input,
            "total_output_tokens": answer.usage.output - answer.usage.reasoning,
            "total_thought_tokens": answer.usage.reasoning,
            "total_cached_tokens": 0,
            "total_tokens": answer.usage.total,
        },
        "created": "2026-11-16T00:00:00Z",
        "updated": "2026-11-16T00:00:00Z",
    }
    stored = StoredResponse(tuple(steps), (), exchange.body.get("store") is not False)
    exchange.ledger.remember_response(exchange.account, string(whole["id"]), stored)
    return whole


def _steps(exchange: SimExchange, answer: ModelAnswer) -> Iterator[JsonObject]:
    if answer.calls and not answer.thoughts:
        yield _thought(exchange, Think(""))  # Gemini 3 signs its calls even at minimal thinking
    for number, piece in enumerate(answer.pieces):
        match piece:
            case Think() | Redacted():
                yield _thought(exchange, piece)
            case Say():
                yield {"type": "model_output", "content": [{"type": "text", "text": piece.text}]}
            case CallTool():
                call_id = digest(answer.id, str(number))[:8]
                yield {"type": "function_call", "id": call_id, "name": piece.name, "arguments": arguments_of(piece)}
            case Hosted():
                call_id, signature = digest(answer.id, str(number))[:8], _seal(exchange, piece.name)
                call = {"id": call_id, "arguments": arguments_of(piece), "signature": signature}
                yield {"type": f"{piece.name}_call", **call}
                yield {"type": f"{piece.name}_result", "call_id": call_id, "result": [], "signature": signature}
            case _:
                assert_never(piece)


def _thought(exchange: SimExchange, piece: Thought) -> JsonObject:
    """The summary is included on request."""
    shows = as_object(exchange.body.get("generation_config")).get("thinking_summaries") == "auto"
    summary = {"summary": [{"type": "text", "text": piece.text}]} if shows and piece.text else {}
    # js-genai#1735 (2026-06): these two return a thought without a signature next to its summary.
    is_unsigned = shows and exchange.model.endswith(("2.5-flash", "3.5-flash"))
    return {"type": "thought", "signature": "" if is_unsigned else _seal(exchange, piece.text), **summary}


def _seal(exchange: SimExchange, text: str) -> str:
    return exchange.mint.seal({"thought": digest(text)}, bound_to(exchange), GEMINI)


def _frames(exchange: SimExchange, whole: JsonObject, chunk_chars: int) -> list[bytes]:
    frames = [_frame(event) for event in _events(whole, chunk_chars)]
    return [*frames, b"event: done\ndata: [DONE]\n\n"]


def _frame(event: JsonObject) -> bytes:
    return b"event: " + string(event["event_type"]).encode() + b"\ndata: " + compact(event) + b"\n\n"


def _events(whole: JsonObject, chunk_chars: int) -> Iterator[JsonObject]:
    begun = {name: whole[name] for name in ("id", "object", "model")} | {"status": "in_progress"}
    yield {"interaction": begun, "event_type": "interaction.created"}
    yield {"interaction_id": whole["id"], "status": "in_progress", "event_type": "interaction.status_update"}
    for index, step in enumerate(whole["steps"]):
        opened, deltas = _opened(step, chunk_chars)
        yield {"index": index, "step": opened, "event_type": "step.start"}
        for delta in deltas:
            yield {"index": index, "delta": delta, "event_type": "step.delta"}
        yield {"index": index, "event_type": "step.stop"}
    done = {name: value for name, value in whole.items() if name != "steps"}
    yield {"interaction": done, "event_type": "interaction.completed"}


def _opened(step: JsonObject, chunk_chars: int) -> tuple[JsonObject, list[JsonObject]]:
    """A step at its start, and its deltas. A signature comes empty first (recorded)."""
    match step["type"]:
        case "thought":
            summary = [piece for one in step.get("summary", []) for piece in pieces_of(one["text"], chunk_chars)]
            deltas: list[JsonObject] = []
            for piece in summary:
                deltas.append({"content": {"text": piece, "type": "text"}, "type": "thought_summary"})
                deltas.append({"signature": "", "type": "thought_signature"})
            return {"type": "thought"}, [*deltas, {"signature": step["signature"], "type": "thought_signature"}]
        case "model_output":
            pieces = pieces_of(step["content"][0]["text"], chunk_chars)
            return {"type": "model_output"}, [{"text": piece, "type": "text"} for piece in pieces]
        case "function_call":
            pieces = pieces_of(compact(step["arguments"]).decode(), chunk_chars)
            return {**step, "arguments": {}}, [{"arguments": piece, "type": "arguments_delta"} for piece in pieces]
        case _:
            return step, []


INTERACTIONS = WireFormat(
    "gemini_interactions",
    problem_of,
    read,
    offer=offer,
    write=_write,
    frames=_frames,
    echo=lambda whole: {"input": whole["steps"]},
)
