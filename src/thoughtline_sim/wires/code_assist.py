"""Code Assist's and Antigravity's `v1internal`: generateContent in an envelope; Claude's thoughts as signed parts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import assert_never

from thoughtline_sim.exchange import SimExchange
from thoughtline_sim.pieces import CallTool, Hosted, Redacted, Say, Think
from thoughtline_sim.reading import JsonObject
from thoughtline_sim.tokens import ANTHROPIC
from thoughtline_sim.values import ModelAnswer
from thoughtline_sim.wires.converse import is_claude
from thoughtline_sim.wires.generate import GENERATE, chunks, either, framed, parts, response_of, thinking_config
from thoughtline_sim.wires.messages import arguments_of
from thoughtline_sim.writing import digest


def is_thinking(exchange: SimExchange) -> bool:
    """Gemini unless told not to; Claude if told to."""
    config = thinking_config(exchange)
    budget = either(config, "thinkingBudget", "thinking_budget")
    return bool(config) and budget != 0 if is_claude(exchange.model) else budget != 0


def seal_thought(exchange: SimExchange, text: str) -> str:
    return exchange.mint.seal({"thought": digest(text)}, bound_thought(exchange, text), ANTHROPIC)


def bound_thought(exchange: SimExchange, text: str) -> tuple[str, ...]:
    """What the signature of a thought is good for: these words of this model for this account."""
    return ("antigravity", exchange.model, exchange.account, text)


def _claude_parts(exchange: SimExchange, answer: ModelAnswer) -> Iterator[JsonObject]:
    """Every thought is signed, and nothing else (CLIProxyAPI#570)."""
    for number, piece in enumerate(answer.pieces):
        match piece:
            case Think() | Redacted():
                yield {"text": piece.text, "thought": True, "thoughtSignature": seal_thought(exchange, piece.text)}
            case Say():
                yield {"text": piece.text}
            case CallTool() | Hosted():
                call_id = f"toolu_vrtx_{digest(answer.id, str(number))[:20]}"
                yield {"functionCall": {"name": piece.name, "args": arguments_of(piece), "id": call_id}}
            case _:
                assert_never(piece)


def _write(exchange: SimExchange, answer: ModelAnswer) -> JsonObject:
    made = _claude_parts(exchange, answer) if is_claude(answer.model) else parts(exchange, answer)
    return {"response": response_of(answer, made), "traceId": answer.id[:16]}


def _frames(exchange: SimExchange, whole: JsonObject, chunk_chars: int) -> list[bytes]:
    around = {name: value for name, value in whole.items() if name != "response"}
    return framed(exchange, ({"response": chunk, **around} for chunk in chunks(whole["response"], chunk_chars)))


CODE_ASSIST = GENERATE._replace(
    format="gemini_code_assist",
    write=_write,
    frames=_frames,
    echo=lambda whole: GENERATE.echo(whole["response"]),
)
