"""Anthropic Messages: signed thinking, in the three profiles of its history.

    classic    Claude 4 and 4.5: thinking is switched on with a budget, its text is shown, other models can't read it
    adaptive   from 4.6: the model may skip thinking; its text is left out unless asked for
    bound      from Opus 5.5: always thinks; a block is good only after the very prefix it was made for

A signature is a token with claims about the block: which model and message made it, which of the message's thinking
blocks it is, what stood around it, a digest of its text and of all that came before.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from thoughtline_sim.exchange import SimExchange
from thoughtline_sim.pieces import CallTool, Piece, Redacted, Say, Think, Thought
from thoughtline_sim.reading import Json, JsonObject, as_object, canonical, objects, string
from thoughtline_sim.refusals import thread_not_found
from thoughtline_sim.tokens import ANTHROPIC, ANTHROPIC_BOUND, Spelling
from thoughtline_sim.values import ModelAnswer, Rejection, last_person
from thoughtline_sim.wires.messages import THINKING, BlockPlace, MessagesStyle, blocks_of, skeleton_of
from thoughtline_sim.writing import digest

THREADS_BETA = "message-threads-2026-08-12"
BINDING_BETA = "thinking-binding-controls-2026-08-01"
REDACTION_TRIGGER = (
    "ANTHROPIC_MAGIC_STRING_TRIGGER_REDACTED_THINKING_46C9A13E193C177646C7398A98432ECCCE4C1253D5E2D82641AC0E52CC2876CB"
)
DOCS = "https://docs.anthropic.com/en/docs/build-with-claude/extended-thinking"
_BLOCK_KEYS = {"thinking": {"type", "thinking", "signature"}, "redacted_thinking": {"type", "data"}}
_READS = {"fable-5-1": ("opus-5", "opus-5-5")}
"""Which models' blocks a model reads beside its own."""


class Block(NamedTuple):
    """A thinking block of a request, with its place and, if it is one of ours, its claims."""

    message: int
    position: int
    body: JsonObject
    claims: JsonObject | None

    @property
    def path(self) -> str:
        return f"messages.{self.message}.content.{self.position}"


def _token_field(block: JsonObject) -> str:
    return "signature" if block["type"] == "thinking" else "data"


def mode_of(exchange: SimExchange) -> str:
    """`enabled`, `adaptive` or `off`."""
    kind = string(as_object(exchange.body.get("thinking")).get("type"))
    if kind in ("enabled", "adaptive"):
        return kind
    return "off" if exchange.profile == "classic" or kind == "disabled" else "adaptive"


def is_thinking(exchange: SimExchange) -> bool:
    return mode_of(exchange) != "off"


def shows_text(exchange: SimExchange) -> bool:
    """`display`: left out by default from 4.7 on."""
    display = as_object(exchange.body.get("thinking")).get("display")
    return display == "summarized" if exchange.profile in ("adaptive", "bound") else display != "omitted"


def _spelling(exchange: SimExchange) -> Spelling:
    return ANTHROPIC_BOUND if exchange.profile == "bound" else ANTHROPIC


def vertex_members(exchange: SimExchange) -> Iterator[str]:
    """Vertex: the address names the model, and the body whose version it is of."""
    if "model" in exchange.body:
        yield "model: Extra inputs are not permitted"
    if not exchange.body.get("anthropic_version"):  # Claude Code 2.1 names `vertex-2023-10-16`, the SDK 2.8 a day
        yield "anthropic_version: Field required"
    if ("streamRawPredict" in exchange.request.path) != (exchange.body.get("stream") is True):
        yield "stream: does not go with the method"


# minting


def sign(exchange: SimExchange, answer: ModelAnswer, place: BlockPlace, piece: Thought) -> JsonObject:
    """A thinking block as the genuine API gives it."""
    text = piece.text if shows_text(exchange) and isinstance(piece, Think) else ""
    claims = {
        "model": answer.model,
        "message": place.message_id,
        "number": place.number,
        "skeleton": place.skeleton,
        "shown": digest(text) if text else "",
        "prefix": prefix_of(exchange.body, len(objects(exchange.body.get("messages")))),
        "hidden": "" if text else piece.text,
    }
    token = exchange.mint.seal(claims, ("anthropic", exchange.account), _spelling(exchange))
    if isinstance(piece, Redacted):
        return {"type": "redacted_thinking", "data": token}
    return {"type": "thinking", "thinking": text, "signature": token}


def pieces_for(exchange: SimExchange, pieces: tuple[Piece, ...]) -> tuple[Piece, ...]:
    """Opus 5.5: text in front of a call comes as thinking. The test prompt of the API redacts all thinking."""
    first = next((message.text for message in exchange.history if message.role == "user"), "")
    if REDACTION_TRIGGER in first:
        pieces = tuple(Redacted(piece.text) if isinstance(piece, Think) else piece for piece in pieces)
    if exchange.profile != "bound":
        return pieces
    last_call = max((place for place, piece in enumerate(pieces) if isinstance(piece, CallTool)), default=-1)
    return tuple(
        Think(piece.text) if isinstance(piece, Say) and place < last_call else piece
        for place, piece in enumerate(pieces)
    )


STYLE = MessagesStyle(
    sign,
    lambda digits, name, number: f"toolu_01{digest(digits, str(number))[:22]}",
    lambda digits: f"msg_01{digits[:22]}",
    pieces_for,
)


def prefix_of(body: JsonObject, count: int) -> str:
    """A digest of all that stands before a message: system, tools, earlier messages; markers and thinking left out."""
    messages = objects(body.get("messages"))[:count]
    called = {string(block.get("name")) for message in messages for block in blocks_of(message)}
    tools = [
        tool
        for tool in objects(body.get("tools"))
        if tool.get("defer_loading") is not True or string(tool.get("name")) in called
    ]
    turns = [
        [message.get("role"), [block for block in blocks_of(message) if block.get("type") not in THINKING]]
        for message in messages
    ]
    system = body.get("system")
    system = [{"type": "text", "text": system}] if isinstance(system, str) else system or []
    return digest(canonical(_unmarked([system, tools, turns])))


def _unmarked(value: Json) -> Json:
    """Without `cache_control`, wherever it stands."""
    if isinstance(value, dict):
        return {key: _unmarked(held) for key, held in value.items() if key != "cache_control"}
    return [_unmarked(held) for held in value] if isinstance(value, list) else value


# checking


def thinking_blocks(exchange: SimExchange) -> Iterator[Block]:
    for index, message in enumerate(objects(exchange.body.get("messages"))):
        if message.get("role") == "assistant":
            for position, body in enumerate(blocks_of(message)):
                if body.get("type") in THINKING:
                    token = string(body.get(_token_field(body)))
                    yield Block(
                        index,
                        position,
                        body,
                        exchange.mint.open(token, ("anthropic", exchange.account), _spelling(exchange)),
                    )


def thinking_kind(exchange: SimExchange) -> Iterator[str]:
    """Always-thinking models take no other type (d10); `block_binding` needs its beta (d9)."""
    thinking = as_object(exchange.body.get("thinking"))
    kind = string(thinking.get("type"))
    if exchange.profile == "bound" and kind in ("disabled", "enabled"):
        yield (
            f'"thinking.type.{kind}" is not supported for this model. Use "thinking.type.adaptive" and '
            '"output_config.effort" to control thinking behavior.'
        )
    betas = f"{exchange.request.headers.get('anthropic-beta', '')},{exchange.body.get('anthropic_beta', '')}"
    if "block_binding" in thinking and BINDING_BETA not in betas:
        yield f"thinking.{kind or 'adaptive'}.block_binding: Extra inputs are not permitted"


def forced_tool(exchange: SimExchange) -> Iterator[str]:
    """(d11)"""
    if is_thinking(exchange) and as_object(exchange.body.get("tool_choice")).get("type") in ("any", "tool"):
        yield "Thinking may not be enabled when tool_choice forces tool use."


def signature_given(exchange: SimExchange) -> Iterator[str]:
    """(d5)"""
    for block in thinking_blocks(exchange):
        field = _token_field(block.body)
        place = f"{block.path}.{block.body['type']}.{field}"
        if field not in block.body:
            yield f"{place}: Field required"
        elif not isinstance(block.body[field], str):
            yield f"{place}.str: Input should be a valid string"
        elif field == "signature" and not isinstance(block.body.get("thinking"), str):
            yield f"{block.path}.thinking.thinking: Field required"


def signature_known(exchange: SimExchange) -> Iterator[str]:
    """(d3, d4) Minted here, for this account; by this model, unless the profile drops what another model made. Changed
    text is no longer what was signed; in the latest turn (d2) reports that."""
    latest = last_person(exchange.history)
    for block in thinking_blocks(exchange):
        is_foreign = block.claims is None or (exchange.profile != "bound" and block.claims["model"] != exchange.model)
        if is_foreign or (block.message < latest and _is_changed(block)):
            yield f"{block.path}: Invalid `{_token_field(block.body)}` in `{block.body['type']}` block"


def _is_changed(block: Block) -> bool:
    """Text that was shown must be what was shown; extra keys (`cache_control`) are changes too."""
    claims = block.claims or {}
    kind = block.body["type"]
    if set(block.body) - _BLOCK_KEYS[kind]:
        return True
    return kind == "thinking" and bool(claims.get("shown")) and digest(block.body["thinking"]) != claims["shown"]


def binding(exchange: SimExchange) -> Iterator[str]:
    """Profile `bound`: another model's blocks are dropped; a changed prefix ends this block and all later ones (d8)."""
    settings = as_object(as_object(exchange.body.get("thinking")).get("block_binding"))
    dropped: list[JsonObject] = []
    for block in thinking_blocks(exchange) if exchange.profile == "bound" else ():
        claims = block.claims or {}
        reason = ""
        if not _reads(exchange.model, claims["model"]):
            reason = "model_binding_mismatch"
        # A prefix holds all that came before: once it is broken, so is that of every later block.
        elif claims["prefix"] != prefix_of(exchange.body, block.message):
            reason = "prefix_binding_mismatch"
            if settings.get("prefix_mismatch_behavior") != "drop_block":
                yield (
                    f"{block.path}: Invalid `signature` in `thinking` block. The block is bound to a different "
                    "conversation. Remove the block, or set `thinking.block_binding.prefix_mismatch_behavior` to "
                    f'"drop_block". That setting requires the `{BINDING_BETA}` value in the `anthropic-beta` header.'
                )
        if reason:
            dropped.append({"type": "thinking_dropped", "path": block.path, "reason": reason})
    if exchange.profile == "bound" and (settings or dropped):
        exchange.notes["input_transformations"] = dropped


def _reads(model: str, maker: str) -> bool:
    others = next((names for name, names in _READS.items() if name in model), ())
    return maker == model or any(maker.endswith(name) for name in others)


def latest_turn_unchanged(exchange: SimExchange) -> Iterator[str]:
    """(d2) Blocks of the turn since the last user text: same content, same order, same neighbours, one message."""
    latest = last_person(exchange.history)
    gone = {note["path"] for note in exchange.notes.get("input_transformations", [])}
    blocks = [block for block in thinking_blocks(exchange) if block.message > latest and block.path not in gone]
    messages = objects(exchange.body.get("messages"))
    for block in blocks:
        siblings = [other for other in blocks if other.message == block.message]
        fits = bool(gone) or _fits(block, siblings, blocks_of(messages[block.message]))
        if _is_changed(block) or not fits:
            yield (
                f"{block.path}: `thinking` or `redacted_thinking` blocks in the latest assistant message cannot be "
                "modified. These blocks must remain as they were in the original response."
            )


def _fits(block: Block, siblings: list[Block], blocks: list[JsonObject]) -> bool:
    """Whether the thinking and the calls around this block are those it was made with, in their order. A message that
    was split in two fits neither half."""
    claims = block.claims or {}
    numbers = [(sibling.claims or {})["number"] for sibling in siblings]
    made = str(claims["skeleton"])
    now = skeleton_of(blocks)
    calls = "us" if "s" in now else "u"  # a client may leave out what the provider ran, it may not move it
    return numbers == list(range(len(numbers))) and _calls_between(now, calls) == _calls_between(made, calls)


def _calls_between(skeleton: str, calls: str) -> list[int]:
    """How many calls of these kinds stand before, between and after the thinking blocks."""
    parts = skeleton.replace("r", "t").split("t")
    return [sum(part.count(letter) for letter in calls) for part in parts]


def server_tools_paired(exchange: SimExchange) -> Iterator[str]:
    """What the provider ran itself has its result in the same message, after it."""
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
    """(d7)"""
    for index, message in enumerate(objects(exchange.body.get("messages"))):
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
    """(d6) The final position is all that was said since the last user text."""
    latest = last_person(exchange.history)
    for block in thinking_blocks(exchange):
        if not is_thinking(exchange) and block.message > latest:
            yield (
                f"{block.path}: When thinking is disabled, an `assistant` message in the final position cannot contain "
                "`thinking`. To use thinking blocks, enable `thinking` in your request."
            )


def thread_known(exchange: SimExchange) -> Iterator[str | Rejection]:
    """Without the beta there is no such field; with it, this simulator takes threads and has always lost them."""
    thread = exchange.body.get("thread")
    if thread is not None and THREADS_BETA not in exchange.request.headers.get("anthropic-beta", ""):
        yield "thread: Extra inputs are not permitted"
    if as_object(thread).get("type") == "continue":
        yield thread_not_found("No thread state was found for `previous_message_id`.")


RULES: tuple[Callable[[SimExchange], Iterator[str]], ...] = (
    thinking_kind,
    forced_tool,
    signature_given,
    signature_known,
    binding,
    latest_turn_unchanged,
    server_tools_paired,
    last_block_not_thinking,
    starts_with_thinking,
    no_thinking_when_off,
)
