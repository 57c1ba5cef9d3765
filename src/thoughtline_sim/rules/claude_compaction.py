"""Compaction blocks: written by the threshold edit, or on demand with a signature.

    threshold   the edit `compact_20260112`: the block has no signature, and comes back with its edit and beta
    on demand   the member `compaction`, beta `compact-2026-09-04`: signed, and first in the conversation

Everything before a compaction block is ignored (Anthropic, "Compaction and preserved thinking"; 13 probes of 2026-09).
Of the errors on demand only the codes are known, and the message about a changed summary.
"""

from __future__ import annotations

from collections.abc import Iterator

from thoughtline_sim.exchange import SimExchange
from thoughtline_sim.reading import JsonObject, as_object, objects, string
from thoughtline_sim.refusals import anthropic_error
from thoughtline_sim.rules.claude_chain import claude_of, has_beta
from thoughtline_sim.rules.claude_prefix import compaction_bound, prefixes_of
from thoughtline_sim.tokens import ANTHROPIC_BOUND
from thoughtline_sim.values import Rejection
from thoughtline_sim.wires.messages import blocks_of
from thoughtline_sim.writing import digest

DEMAND_BETA = "compact-2026-09-04"
_EDIT = "compact_20260112"
_DEFAULT_TRIGGER = 150_000
_SUMMARY = "Summary: the user asked, tools were called, and their results are known."


def _is_on_demand(exchange: SimExchange) -> bool:
    return as_object(exchange.body.get("compaction")).get("type") == "summarize"


def _edit(exchange: SimExchange) -> JsonObject | None:
    edits = objects(as_object(exchange.body.get("context_management")).get("edits"))
    return next((edit for edit in edits if edit.get("type") == _EDIT), None)


def leading_blocks(exchange: SimExchange) -> tuple[list[JsonObject], bool]:
    """The compaction block at the beginning of an answer, if any, and whether the answer ends there."""
    if _is_on_demand(exchange):
        stands_for = prefixes_of(exchange).whole if claude_of(exchange).is_bound else ""
        claims = {"summary": digest(_SUMMARY), "stands_for": stands_for}
        token = exchange.mint.seal(claims, compaction_bound(exchange), ANTHROPIC_BOUND)
        return [{"type": "compaction", "content": _SUMMARY, "signature": token}], True
    edit = _edit(exchange)
    if edit is None or not _is_over(exchange, edit):
        return [], False
    return [{"type": "compaction", "content": _SUMMARY}], edit.get("pause_after_compaction") is True


def _is_over(exchange: SimExchange, edit: JsonObject) -> bool:
    trigger = as_object(edit.get("trigger")).get("value")
    limit = trigger if isinstance(trigger, int) else _DEFAULT_TRIGGER
    return len(exchange.request.body) // 4 >= limit


def prefix_after(exchange: SimExchange) -> str:
    """The prefix of thinking after a compaction block at the beginning of this answer; empty without one."""
    blocks, _ = leading_blocks(exchange)
    if not blocks:
        return ""
    messages = [*objects(exchange.body.get("messages")), {"role": "assistant", "content": blocks}]
    prefixes = prefixes_of(exchange._replace(body={**exchange.body, "messages": messages}))
    return prefixes.at(len(messages) - 1, len(blocks))


def _coded(message: str, code: str) -> Rejection:
    return anthropic_error(message, code)


def blocks_fit(exchange: SimExchange) -> Iterator[str | Rejection]:
    if "compaction" in exchange.body and not has_beta(exchange, DEMAND_BETA):
        yield "compaction: Extra inputs are not permitted"
    if _is_on_demand(exchange) and not any(message.role == "assistant" for message in exchange.history):
        yield _coded("There is nothing to summarize.", "compaction_nothing_to_summarize")
    for index, message in enumerate(objects(exchange.body.get("messages"))):
        for position, block in enumerate(blocks_of(message)):
            if block.get("type") == "compaction":
                yield from _problems(exchange, (index, position), block)


def _problems(exchange: SimExchange, place: tuple[int, int], block: JsonObject) -> Iterator[str | Rejection]:
    path = f"messages.{place[0]}.content.{place[1]}"
    if "signature" not in block:
        if _edit(exchange) is None:
            yield f"`compaction` blocks require a `{_EDIT}` strategy in `context_management.edits`."
        return
    if not has_beta(exchange, DEMAND_BETA):
        yield f"{path}.compaction.signature: Extra inputs are not permitted"
    if place != (0, 0):
        yield _coded(f"{path}: `compaction` block must come first in the conversation", "compaction_block_misplaced")
    claims = exchange.mint.open(string(block["signature"]), compaction_bound(exchange), ANTHROPIC_BOUND)
    if claims is None:
        yield _coded(f"{path}: Invalid `signature` in `compaction` block", "compaction_signature_invalid")
    elif claims["summary"] != digest(string(block.get("content"))):
        yield _coded("`compaction` block `content` does not match its `signature`", "compaction_content_mismatch")
