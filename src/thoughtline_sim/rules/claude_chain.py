"""Bound thinking: the chain of Claude's blocks, and what happens to a block that breaks it.

A block has a digest of the prefix before it, and the name of the previous thinking block in its request. It is valid if
the prefix is the same and it is the first thinking block sent, or comes right after the one that it names. What happens
to the others depends on the account (the profile) and on `block_binding`:

    bound     accounts since 2026-08-31: a 400
    older     the block reaches the model and is billed
    oauth     a subscription: the block is dropped silently

Sources: Anthropic, "Preserved thinking" (2026-09-26); the recorded refusals of pydantic-ai of 2026-10.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from thoughtline_sim.exchange import SimExchange
from thoughtline_sim.reading import JsonObject, as_object, canonical, objects, string
from thoughtline_sim.rules.claude_models import ClaudeModel, model_named, reads
from thoughtline_sim.rules.claude_prefix import Prefixes, difference, platform_of, prefixes_of
from thoughtline_sim.tokens import ANTHROPIC, ANTHROPIC_BOUND
from thoughtline_sim.wires.messages import THINKING, BlockPlace, blocks_of

BINDING_BETA = "thinking-binding-controls-2026-08-01"
_FIRST_FIELD = "mismatch_behavior"
_FIELD = "prefix_mismatch_behavior"


class Block(NamedTuple):
    """A thinking block of a request, with its position and, if it is one of ours, its claims."""

    message: int
    position: int
    body: JsonObject
    claims: JsonObject | None

    @property
    def path(self) -> str:
        return f"messages.{self.message}.content.{self.position}"

    @property
    def name(self) -> str:
        claims = self.claims or {}
        return _name(string(claims.get("message")), claims.get("number", 0))


def _name(message: str, number: int) -> str:
    return f"{message}/{number}"


def token_field(block: JsonObject) -> str:
    return "signature" if block["type"] == "thinking" else "data"


def claude_of(exchange: SimExchange) -> ClaudeModel:
    return model_named(exchange.model, exchange.profile)


def has_beta(exchange: SimExchange, beta: str) -> bool:
    """Betas are in a header, on Bedrock in the body."""
    return beta in f"{exchange.request.headers.get('anthropic-beta', '')},{exchange.body.get('anthropic_beta', '')}"


def binding_field(exchange: SimExchange) -> str:
    """Bedrock's first page on binding had another name for the field."""
    return _FIRST_FIELD if exchange.profile == "first-binding" else _FIELD


# minting


def chain_claims(exchange: SimExchange, place: BlockPlace, prefix: str = "") -> JsonObject:
    """A block's claims about its place: the prefix, its predecessor, the account and on Bedrock the end user. A model
    that is not bound records nothing.
    """
    if not claude_of(exchange).is_bound:
        return {"prefix": "", "after": "", "account": exchange.account, "user": ""}
    prefixes = prefixes_of(exchange)
    prefix = prefix or prefixes.end
    exchange.ledger.prefixes[prefix] = prefixes.parts
    last = [block.name for block in thinking_blocks(exchange) if _is_link(exchange, block)][-1:]
    return {
        "prefix": prefix,
        "after": _name(place.message_id, place.number - 1) if place.number else "".join(last),
        "account": exchange.account,
        "user": _end_user(exchange),
    }


def _is_link(exchange: SimExchange, block: Block) -> bool:
    """A block of another model or account counts as a link, though this model did not read it; one that broke the chain
    and was dropped does not.
    """
    return block.path not in exchange.unread or bool(_unreadable(exchange, claude_of(exchange), block))


def seal(exchange: SimExchange, claims: JsonObject) -> str:
    model = claude_of(exchange)
    bound = ("anthropic",) if model.is_account_bound else ("anthropic", exchange.account)
    return exchange.mint.seal(claims, bound, ANTHROPIC_BOUND if model.is_bound else ANTHROPIC)


def _end_user(exchange: SimExchange) -> str:
    """Bedrock binds a block to the end user that the request names, unless it opts out."""
    if platform_of(exchange) != "bedrock" or _settings(exchange).get("bind_to_end_user") is False:
        return ""
    return string(as_object(exchange.body.get("metadata")).get("user_id"))


# checking


def thinking_blocks(exchange: SimExchange) -> Iterator[Block]:
    for index, message in enumerate(objects(exchange.body.get("messages"))):
        if message.get("role") == "assistant":
            for position, body in enumerate(blocks_of(message)):
                if body.get("type") in THINKING:
                    yield Block(index, position, body, _claims(exchange, string(body.get(token_field(body)))))


def _claims(exchange: SimExchange, token: str) -> JsonObject | None:
    for spelling in (ANTHROPIC_BOUND, ANTHROPIC):
        for bound in (("anthropic", exchange.account), ("anthropic",)):
            claims = exchange.mint.open(token, bound, spelling)
            if claims is not None:
                return claims
    return None


def _settings(exchange: SimExchange) -> JsonObject:
    return as_object(as_object(exchange.body.get("thinking")).get("block_binding"))


def binding(exchange: SimExchange) -> Iterator[str]:
    """Blocks that the model may not read are dropped. A broken chain invalidates this block and all later ones."""
    model = claude_of(exchange)
    if not model.drops_unreadable:
        return
    prefixes = prefixes_of(exchange)
    outcome = _outcome(exchange, model)
    report: list[JsonObject] = []
    before: Block | None = None
    is_broken = False
    for block in thinking_blocks(exchange):
        reason = _unreadable(exchange, model, block)
        if not reason and model.is_bound:
            is_broken = is_broken or not _is_linked(prefixes, block, before)
            reason = "prefix_binding_mismatch" if is_broken else ""
            if is_broken and outcome == "error":
                yield _bound_elsewhere(exchange, prefixes, block)
        is_allowed = is_broken and outcome == "allow" and reason == "prefix_binding_mismatch"
        if reason:
            kind = "thinking_mismatch_allowed" if is_allowed else "thinking_dropped"
            report.append({"type": kind, "path": block.path, "reason": reason})
        if reason and not is_allowed:
            exchange.unread[block.path] = canonical(block.body)
        before = block
    if has_beta(exchange, BINDING_BETA):
        exchange.notes["input_transformations"] = report


def _outcome(exchange: SimExchange, model: ClaudeModel) -> str:
    """The result of a broken chain: `error`, `drop_block`, or `allow`."""
    behaviour = string(_settings(exchange).get(binding_field(exchange)))
    if behaviour:
        return behaviour
    if exchange.profile == "first-binding" and has_beta(exchange, BINDING_BETA):
        return "drop_block"
    if model.checks == "always":
        return "error"
    return {"older": "allow", "oauth": "drop_block"}.get(exchange.profile, "error")


def _unreadable(exchange: SimExchange, model: ClaudeModel, block: Block) -> str:
    """Why the model may not read a block, in the provider's order of reasons."""
    claims = block.claims or {}
    if claims.get("account", exchange.account) != exchange.account:
        return "organization_binding_mismatch"
    if claims.get("user") and claims["user"] != _end_user(exchange):
        return "end_user_binding_mismatch"
    maker = model_named(string(claims.get("model")), exchange.profile)
    return "" if reads(model, maker, platform_of(exchange)) else "model_binding_mismatch"


def _is_linked(prefixes: Prefixes, block: Block, before: Block | None) -> bool:
    claims = block.claims or {}
    is_next = before is None or claims.get("after") == before.name
    is_same = claims.get("prefix") == prefixes.at(block.message, block.position)
    return not claims.get("prefix") or (is_next and is_same)


def _bound_elsewhere(exchange: SimExchange, prefixes: Prefixes, block: Block) -> str:
    claims = block.claims or {}
    beta = f" That setting requires the `{BINDING_BETA}` value in the `anthropic-beta` header."
    cause = " A thinking block that stood before this block is missing or misplaced."
    if claims.get("prefix") != prefixes.at(block.message, block.position):
        cause = difference(exchange.ledger.prefixes.get(string(claims.get("prefix"))), prefixes.parts)
    return (
        f"{block.path}: Invalid `{token_field(block.body)}` in `{block.body['type']}` block. The block is bound to a "
        f"different conversation. Remove the block, or set `thinking.block_binding.{binding_field(exchange)}` to "
        f'"drop_block".{"" if has_beta(exchange, BINDING_BETA) else beta}{cause}'
    )
