"""The Responses providers as rows, read off recorded answers."""

from __future__ import annotations

from thoughtline_sim.exchange import SimExchange
from thoughtline_sim.pieces import Think, Thought
from thoughtline_sim.reading import JsonObject, as_object, string
from thoughtline_sim.tokens import OPENAI as OPENAI_SPELLING
from thoughtline_sim.tokens import XAI as XAI_SPELLING
from thoughtline_sim.values import ModelAnswer
from thoughtline_sim.wires.responses import ResponsesStyle, wants_ciphertext
from thoughtline_sim.writing import digest, uuid_of


def openai_bound(exchange: SimExchange) -> tuple[str, ...]:
    """Ciphertext is good for its organisation at its endpoint; the item's id is one of its claims."""
    return ("responses", exchange.account)


def _summary(exchange: SimExchange, piece: Thought) -> list[JsonObject]:
    wanted = string(as_object(exchange.body.get("reasoning")).get("summary"))
    return [{"type": "summary_text", "text": piece.text}] if wanted and isinstance(piece, Think) and piece.text else []


def _openai_reasoning(exchange: SimExchange, answer: ModelAnswer, item_id: str, piece: Thought) -> JsonObject:
    item: JsonObject = {"id": item_id, "type": "reasoning", "summary": _summary(exchange, piece)}
    if wants_ciphertext(exchange):
        claims = {"item": item_id, "model": answer.model, "text": piece.text}
        item["encrypted_content"] = exchange.mint.seal(claims, openai_bound(exchange), OPENAI_SPELLING)
    return item


def _xai_reasoning(exchange: SimExchange, answer: ModelAnswer, item_id: str, piece: Thought) -> JsonObject:
    """The summary is always shown; ciphertext is bound to nothing but its maker."""
    shown = [{"text": piece.text, "type": "summary_text"}] if piece.text else []
    item: JsonObject = {"id": item_id, "summary": shown, "type": "reasoning", "status": "completed"}
    if wants_ciphertext(exchange):
        item["encrypted_content"] = exchange.mint.seal({"text": piece.text}, ("xai",), XAI_SPELLING)
    return item


def _deepseek_reasoning(exchange: SimExchange, answer: ModelAnswer, item_id: str, piece: Thought) -> JsonObject:
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
