"""Claude's prefix, the content before a thinking block: every block of a bound model has a digest of it.

It includes the system prompt, the tools, and all messages before the block without their thinking. It does not include
`cache_control`, the order of keys, a tool that is deferred until it is referred to, and the attribution line that
Claude Code sends to Anthropic itself. It begins at the latest compaction block (Anthropic, "Preserved thinking", "What
counts as an edit").
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from typing import NamedTuple

from thoughtline_sim.exchange import SimExchange
from thoughtline_sim.ledger import PrefixParts
from thoughtline_sim.reading import Json, JsonObject, as_object, canonical, objects, string
from thoughtline_sim.rules.claude_models import Platform
from thoughtline_sim.tokens import ANTHROPIC_BOUND
from thoughtline_sim.wires.messages import THINKING, blocks_of
from thoughtline_sim.writing import digest

_ATTRIBUTION = "x-anthropic-billing-header:"


class Prefixes(NamedTuple):
    """The prefixes in one request: for each message, that of a block at its start."""

    parts: PrefixParts
    before: tuple[str, ...]
    compacted: dict[int, tuple[int, str]]
    """By message: the position of its compaction block, and the prefix after it in that message."""
    end: str
    """Of the next answer, which continues an assistant message at the end of the request."""
    whole: str
    """Of all messages."""

    def at(self, message: int, position: int) -> str:
        place, after = self.compacted.get(message, (position, ""))
        return after if place < position else self.before[message]


def platform_of(exchange: SimExchange) -> Platform:
    """The platform of this API, by its URL."""
    path = exchange.request.path
    if "/model/" in path:
        return "bedrock"
    return "google" if "awPredict" in path else "api"


def prefixes_of(exchange: SimExchange) -> Prefixes:
    body = exchange.body
    tools = objects(body.get("tools"))
    deferred = {string(tool.get("name")): tool for tool in tools if tool.get("defer_loading") is True}
    messages = objects(body.get("messages"))
    digests = tuple(tuple(_block_digest(block, deferred) for block in blocks_of(message)) for message in messages)
    parts = PrefixParts(
        digest(canonical(_unmarked(_system(exchange)))),
        digest(canonical(_unmarked([tool for tool in tools if tool.get("defer_loading") is not True]))),
        digests,
    )
    head = digest(parts.system, parts.tools)
    before: list[str] = []
    compacted: dict[int, tuple[int, str]] = {}
    current = head
    for role, run in groupby(enumerate(messages), lambda pair: string(pair[1].get("role"))):
        start = current
        held: list[str] = [role]
        for index, message in run:
            before.append(start)
            for position, block in enumerate(blocks_of(message)):
                if block.get("type") == "compaction" and block.get("content") is not None:
                    start = summary_prefix(exchange, block) or digest(head, "compaction", string(block["content"]))
                    compacted[index] = (position, start)
                    held = [role]
                elif digests[index][position]:
                    held.append(digests[index][position])
        current = digest(start, *held) if len(held) > 1 else start
    last = messages[-1] if messages else {}
    end = before[-1] if last.get("role") == "assistant" and before else current
    return Prefixes(parts, tuple(before), compacted, end, current)


def summary_prefix(exchange: SimExchange, block: JsonObject) -> str:
    """The prefix that a signed compaction block stands for; empty for an unsigned one."""
    claims = exchange.mint.open(string(block.get("signature")), compaction_bound(exchange), ANTHROPIC_BOUND)
    return string((claims or {}).get("stands_for"))


def compaction_bound(exchange: SimExchange) -> tuple[str, ...]:
    return ("anthropic compaction", exchange.account)


def _system(exchange: SimExchange) -> list[JsonObject]:
    """The system prompt as blocks. Anthropic itself removes the attribution line of Claude Code."""
    system = exchange.body.get("system")
    blocks = [{"type": "text", "text": system}] if isinstance(system, str) else objects(system)
    is_attributed = blocks and string(blocks[0].get("text")).startswith(_ATTRIBUTION)
    return blocks[1:] if is_attributed and platform_of(exchange) == "api" else blocks


def _block_digest(block: JsonObject, deferred: dict[str, JsonObject]) -> str:
    """A block, with the deferred tools that it refers to; empty for thinking, which is in no prefix."""
    if block.get("type") in THINKING:
        return ""
    referred = [deferred[name] for name in sorted(set(_names_in(block))) if name in deferred]
    return digest(canonical(_unmarked([block, referred])))


def _names_in(block: JsonObject) -> Iterator[str]:
    if block.get("type") == "tool_use":
        yield string(block.get("name"))
    if block.get("type") == "tool_reference":
        yield string(block.get("tool_name"))
    content = block.get("content")
    for inner in (*objects(content), *objects(as_object(content).get("tool_references"))):
        yield from _names_in(inner)


def _unmarked(value: Json) -> Json:
    """Without `cache_control`, at any depth."""
    if isinstance(value, dict):
        return {key: _unmarked(held) for key, held in value.items() if key != "cache_control"}
    return [_unmarked(held) for held in value] if isinstance(value, list) else value


def difference(made: PrefixParts | None, now: PrefixParts) -> str:
    """The message about the changed part, if it is known."""
    if made is None:
        return ""
    if made.system != now.system:
        return " The `system` prompt differs from the one this block was created with."
    if made.tools != now.tools:
        return " The `tools` list differs from the one this block was created with."
    for index, (old, new) in enumerate(zip(made.messages, now.messages, strict=False)):
        seen = [(position, name) for position, name in enumerate(new) if name]
        kept = [name for name in old if name]
        place = next((at for at, (_, name) in enumerate(seen) if at >= len(kept) or kept[at] != name), None)
        if place is not None or len(seen) < len(kept):
            position = seen[place][0] if place is not None else len(new)
            return (
                " Content before this block differs from when it was created, first at "
                f"`messages.{index}.content.{position}`."
            )
    return ""
