"""Anthropic Messages: signed thinking, by model.

The model's name gives its generation (`claude_models.py`); the profile gives the kind of account, and under `classic`
and `adaptive` every name behaves as Sonnet 4.5 or as Opus 4.8.

A signature is a token with claims about the block: the model and message that made it, which of the message's thinking
blocks it is, its neighbours, a digest of its text, and its place in the chain (`claude_chain.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from thoughtline_sim.exchange import SimExchange
from thoughtline_sim.pieces import CallTool, Piece, Redacted, Say, Think, Thought
from thoughtline_sim.reading import JsonObject, as_object, objects, string
from thoughtline_sim.refusals import thread_not_found
from thoughtline_sim.rules import claude_compaction, claude_settings
from thoughtline_sim.rules.claude_chain import (
    BINDING_BETA,
    Block,
    binding,
    chain_claims,
    claude_of,
    has_beta,
    seal,
    thinking_blocks,
    token_field,
)
from thoughtline_sim.rules.claude_settings import is_thinking, mode_of, shows_text
from thoughtline_sim.values import ModelAnswer, Rejection, last_person
from thoughtline_sim.wires.messages import THINKING, BlockPlace, MessagesStyle, blocks_of, skeleton_of
from thoughtline_sim.writing import digest

THREADS_BETA = "message-threads-2026-08-12"
REDACTION_TRIGGER = (
    "ANTHROPIC_MAGIC_STRING_TRIGGER_REDACTED_THINKING_46C9A13E193C177646C7398A98432ECCCE4C1253D5E2D82641AC0E52CC2876CB"
)
DOCS = "https://docs.anthropic.com/en/docs/build-with-claude/extended-thinking"
_BLOCK_KEYS = {"thinking": {"type", "thinking", "signature"}, "redacted_thinking": {"type", "data"}}


def vertex_members(exchange: SimExchange) -> Iterator[str]:
    """Vertex: the URL names the model, and the body the version. An unknown beta is rejected."""
    if "model" in exchange.body:
        yield "model: Extra inputs are not permitted"
    if not exchange.body.get("anthropic_version"):  # Claude Code 2.1 names `vertex-2023-10-16`, the SDK 2.8 a day
        yield "anthropic_version: Field required"
    if ("streamRawPredict" in exchange.request.path) != (exchange.body.get("stream") is True):
        yield "stream: does not go with the method"
    if has_beta(exchange, BINDING_BETA) and not claude_of(exchange).is_bound:
        yield (
            f"Unexpected value(s) `{BINDING_BETA}` for the `anthropic-beta` header. Please consult our documentation "
            "at docs.claude.com or try again without the header."
        )


# minting


def sign(exchange: SimExchange, answer: ModelAnswer, place: BlockPlace, piece: Thought) -> JsonObject:
    """A thinking block of the genuine API."""
    text = piece.text if shows_text(exchange) and isinstance(piece, Think) else ""
    claims = {
        "model": answer.model,
        "message": place.message_id,
        "number": place.number,
        "skeleton": place.skeleton,
        "shown": digest(text) if text else "",
        "hidden": "" if text else piece.text,
        **chain_claims(exchange, place, claude_compaction.prefix_after(exchange)),
    }
    token = seal(exchange, claims)
    if isinstance(piece, Redacted):
        return {"type": "redacted_thinking", "data": token}
    return {"type": "thinking", "thinking": text, "signature": token}


def pieces_for(exchange: SimExchange, pieces: tuple[Piece, ...]) -> tuple[Piece, ...]:
    """Opus 5.5: text in front of a call comes as thinking. The test prompt of the API redacts all thinking."""
    first = next((message.text for message in exchange.history if message.role == "user"), "")
    if REDACTION_TRIGGER in first:
        pieces = tuple(Redacted(piece.text) if isinstance(piece, Think) else piece for piece in pieces)
    if not _speaks_in_notes(exchange):
        return pieces
    last_call = max((place for place, piece in enumerate(pieces) if isinstance(piece, CallTool)), default=-1)
    return tuple(
        Think(piece.text) if isinstance(piece, Say) and place < last_call else piece
        for place, piece in enumerate(pieces)
    )


def _speaks_in_notes(exchange: SimExchange) -> bool:
    """Fable and Mythos, Opus 5.5, Sonnet 5.5, and later ones."""
    model = claude_of(exchange)
    return model.family in ("fable", "mythos") or (model.is_bound and model.family != "haiku")


STYLE = MessagesStyle(
    sign,
    lambda digits, name, number: f"toolu_01{digest(digits, str(number))[:22]}",
    lambda digits: f"msg_01{digits[:22]}",
    pieces_for,
    claude_compaction.leading_blocks,
)


# checking


def signature_given(exchange: SimExchange) -> Iterator[str]:
    """(d5)"""
    for block in thinking_blocks(exchange):
        field = token_field(block.body)
        place = f"{block.path}.{block.body['type']}.{field}"
        if field not in block.body:
            yield f"{place}: Field required"
        elif not isinstance(block.body[field], str):
            yield f"{place}.str: Input should be a valid string"
        elif field == "signature" and not isinstance(block.body.get("thinking"), str):
            yield f"{block.path}.thinking.thinking: Field required"


def signature_known(exchange: SimExchange) -> Iterator[str]:
    """(d3, d4) Issued here, for this account. Before 5, another model's blocks are rejected too, and text that differs
    from the signed one; in the latest turn (d2) reports that.
    """
    latest = last_person(exchange.history)
    is_strict = not claude_of(exchange).drops_unreadable
    for block in thinking_blocks(exchange):
        is_foreign = block.claims is None or (is_strict and block.claims["model"] != exchange.model)
        if is_foreign or (is_strict and block.message < latest and _is_changed(block)):
            yield f"{block.path}: Invalid `{token_field(block.body)}` in `{block.body['type']}` block"


def _is_changed(block: Block) -> bool:
    """Text that was shown must come back as shown; extra keys (`cache_control`) are changes too."""
    claims = block.claims or {}
    kind = block.body["type"]
    if set(block.body) - _BLOCK_KEYS[kind]:
        return True
    return kind == "thinking" and bool(claims.get("shown")) and digest(block.body["thinking"]) != claims["shown"]


def latest_turn_unchanged(exchange: SimExchange) -> Iterator[str]:
    """(d2) Blocks of the turn since the last user text: same content, same order, same neighbours, one message. Opus 5
    and later accept them edited, moved or removed (measured 2026-09-26).
    """
    latest = last_person(exchange.history)
    is_strict = not claude_of(exchange).drops_unreadable
    blocks = [block for block in thinking_blocks(exchange) if is_strict and block.message > latest]
    messages = objects(exchange.body.get("messages"))
    for block in blocks:
        siblings = [other for other in blocks if other.message == block.message]
        if _is_changed(block) or not _fits(block, siblings, blocks_of(messages[block.message])):
            yield (
                f"{block.path}: `thinking` or `redacted_thinking` blocks in the latest assistant message cannot be "
                "modified. These blocks must remain as they were in the original response."
            )


def _fits(block: Block, siblings: list[Block], blocks: list[JsonObject]) -> bool:
    """Whether the thinking and the calls around this block are the original ones, in order. Neither half of a split
    message fits.
    """
    claims = block.claims or {}
    numbers = [(sibling.claims or {})["number"] for sibling in siblings]
    made = str(claims["skeleton"])
    now = skeleton_of(blocks)
    calls = "us" if "s" in now else "u"  # a client may leave out tools that the provider ran, but not move them
    return numbers == list(range(len(numbers))) and _calls_between(now, calls) == _calls_between(made, calls)


def _calls_between(skeleton: str, calls: str) -> list[int]:
    """How many calls of these kinds are before, between and after the thinking blocks."""
    parts = skeleton.replace("r", "t").split("t")
    return [sum(part.count(letter) for letter in calls) for part in parts]


def server_tools_paired(exchange: SimExchange) -> Iterator[str]:
    """A tool that the provider ran has its result in the same message, after it."""
    for index, message in enumerate(objects(exchange.body.get("messages"))):
        called: set[str] = set()
        for position, block in reversed(list(enumerate(blocks_of(message)))):
            kind, name, use = (string(block.get(key)) for key in ("type", "name", "id"))
            if kind == "server_tool_use" and use not in called:
                yield (
                    f"messages.{index}.content.{position}: `{name}` tool use with id `{use}` was found without a "
                    f"corresponding `{name}_tool_result` block"
                )
            if kind.endswith("_tool_result"):
                called.add(string(block.get("tool_use_id")))


def last_block_not_thinking(exchange: SimExchange) -> Iterator[str]:
    """(d7) Opus 5 and later accept thinking after a call (measured 2026-09-26)."""
    is_strict = not claude_of(exchange).drops_unreadable
    for index, message in enumerate(objects(exchange.body.get("messages")) if is_strict else ()):
        blocks = blocks_of(message)
        if message.get("role") == "assistant" and blocks and blocks[-1].get("type") in THINKING:
            yield f"messages.{index}: The final block in an assistant message cannot be `thinking`."


def starts_with_thinking(exchange: SimExchange) -> Iterator[str]:
    """(d1) Thinking `enabled`, and results for the tools that the latest turn called."""
    since = exchange.history[last_person(exchange.history) + 1 :]
    turn = [message for message in since if message.role == "assistant"]
    if mode_of(exchange) != "enabled" or not turn or not exchange.history[-1].results:
        return
    blocks = blocks_of(turn[0].raw)
    found = string(blocks[0].get("type")) if blocks else "text"
    if found not in THINKING:
        yield expected_thinking(turn[0].index, found)


def expected_thinking(message: int, found: str) -> str:
    return (
        f"messages.{message}.content.0.type: Expected `thinking` or `redacted_thinking`, but found `{found}`. When "
        "`thinking` is enabled, a final `assistant` message must start with a thinking block (preceeding the lastmost "
        "set of `tool_use` and `tool_result` blocks). We recommend you include thinking blocks from previous turns. "
        f"To avoid this requirement, disable `thinking`. Please consult our documentation at {DOCS}"
    )


def no_thinking_when_off(exchange: SimExchange) -> Iterator[str]:
    """(d6) The final position is everything since the last user text."""
    latest = last_person(exchange.history)
    for block in thinking_blocks(exchange):
        if not is_thinking(exchange) and block.message > latest:
            yield (
                f"{block.path}: When thinking is disabled, an `assistant` message in the final position cannot contain "
                "`thinking`. To use thinking blocks, enable `thinking` in your request."
            )


def thread_known(exchange: SimExchange) -> Iterator[str | Rejection]:
    """Without the beta there is no such field; with it, this simulator accepts threads and has always lost them."""
    thread = exchange.body.get("thread")
    if thread is not None and THREADS_BETA not in exchange.request.headers.get("anthropic-beta", ""):
        yield "thread: Extra inputs are not permitted"
    if as_object(thread).get("type") == "continue":
        yield thread_not_found("No thread state was found for `previous_message_id`.")


RULES: tuple[Callable[[SimExchange], Iterator[str | Rejection]], ...] = (
    claude_settings.thinking_kind,
    claude_settings.budget_fits,
    claude_settings.binding_beta_given,
    claude_settings.effort_fits,
    claude_settings.forced_tool,
    claude_settings.edits_fit,
    claude_settings.no_prefill,
    signature_given,
    claude_compaction.blocks_fit,
    signature_known,
    binding,
    latest_turn_unchanged,
    server_tools_paired,
    last_block_not_thinking,
    starts_with_thinking,
    no_thinking_when_off,
)
