"""Bedrock Converse: Claude's rules in Amazon's clothes, and models that want no reasoning back (contracts.md §8)."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable

from thoughtline_sim.exchange import Rule, SimExchange
from thoughtline_sim.refusals import bedrock_error
from thoughtline_sim.rules import anthropic, asking
from thoughtline_sim.values import Rejection
from thoughtline_sim.wire import Json, JsonObject, as_object, objects, string
from thoughtline_sim.wires import messages
from thoughtline_sim.wires.converse import is_claude

_NO_PREFILL = ("sonnet-5", "fable-5", "opus-5")
_UPSTREAM = "The model returned the following errors: "


def takes_no_reasoning(exchange: SimExchange) -> Rejection | None:
    """Nova and DeepSeek-R1. The sentence speaks of user messages though the block is in an assistant's."""
    if "nova" not in exchange.model and "deepseek" not in exchange.model:
        return None
    if any(message.thoughts for message in exchange.history):
        return bedrock_error(
            "User messages cannot contain reasoning content. Please remove the reasoning content and try again."
        )
    return None


def _reasoning_texts(exchange: SimExchange) -> list[tuple[int, int, JsonObject]]:
    """`reasoningText` members with the numbers Amazon gives to their message and block, counted from 1."""
    found = []
    for index, message in enumerate(objects(exchange.body.get("messages")), 1):
        for number, block in enumerate(objects(message.get("content")), 1):
            reasoning = as_object(block.get("reasoningContent"))
            if "reasoningText" in reasoning:
                found.append((index, number, as_object(reasoning["reasoningText"])))
    return found


def text_not_null(exchange: SimExchange) -> Rejection | None:
    for index, number, reasoning in _reasoning_texts(exchange):
        if reasoning.get("text") is None:
            place = f"messages.{index}.member.content.{number}.member.reasoningContent.reasoningText.text"
            return bedrock_error(f"Value at '{place}' failed to satisfy constraint: Member must not be null")
    return None


def takes_no_signature(exchange: SimExchange) -> Rejection | None:
    """gpt-oss and the other open models; an empty one is one too."""
    field = "reasoningContent.reasoningText.signature"
    if not is_claude(exchange.model) and any("signature" in text for _, _, text in _reasoning_texts(exchange)):
        return bedrock_error(f"This model doesn't support the {field} field. Remove {field} and try again.")
    return None


def no_prefill(exchange: SimExchange) -> Rejection | None:
    last = exchange.history[-1] if exchange.history else None
    if last is not None and last.role == "assistant" and any(name in exchange.model for name in _NO_PREFILL):
        return bedrock_error(
            "This model does not support assistant message prefill. The conversation must end with a user message."
        )
    return None


def as_messages(exchange: SimExchange) -> SimExchange:
    """The same request in Claude's own wire, which is what Claude's rules read."""
    fields = as_object(exchange.body.get("additionalModelRequestFields"))
    settings = as_object(exchange.body.get("toolConfig"))
    inference = as_object(exchange.body.get("inferenceConfig"))
    sampling = {"temperature": inference.get("temperature"), "top_p": inference.get("topP")}
    body: JsonObject = {
        **sampling,
        **fields,
        "system": exchange.body.get("system"),
        "tools": [as_object(tool.get("toolSpec")) for tool in objects(settings.get("tools"))],
        "messages": [
            {"role": message.get("role"), "content": [_block(block) for block in objects(message.get("content"))]}
            for message in objects(exchange.body.get("messages"))
        ],
    }
    return exchange._replace(body=body, history=messages.read(body))


def _block(block: JsonObject) -> JsonObject:
    reasoning = as_object(block.get("reasoningContent"))
    if "redactedContent" in reasoning:
        return {"type": "redacted_thinking", "data": _unwrapped(reasoning["redactedContent"])}
    if reasoning:
        text = as_object(reasoning.get("reasoningText"))
        return {"type": "thinking", **{_THINKING_KEYS.get(key, key): value for key, value in text.items()}}
    if "toolUse" in block:
        return {"type": "tool_use", **as_object(block["toolUse"])}
    if "toolResult" in block:
        return {"type": "tool_result", **as_object(block["toolResult"])}
    return {"type": "text", **block}


_THINKING_KEYS = {"text": "thinking"}


def _unwrapped(value: Json) -> Json:
    """The blob is base64 of what was base64 already."""
    try:
        return base64.b64decode(string(value), validate=True).decode()
    except (binascii.Error, UnicodeDecodeError, ValueError):
        return value


def _claude(rule: Rule) -> Rule:
    def check(exchange: SimExchange) -> Rejection | None:
        refusal = rule(as_messages(exchange)) if is_claude(exchange.model) else None
        if refusal is None:
            return None
        is_bare = "Invalid `signature`" in refusal.message or "block_binding" in refusal.message
        return bedrock_error(refusal.message if is_bare else _UPSTREAM + refusal.message)

    return check


def is_thinking(exchange: SimExchange) -> bool:
    """Claude by `thinking`; Nova by `reasoningConfig`, off by default; the others think."""
    fields = as_object(exchange.body.get("additionalModelRequestFields"))
    if is_claude(exchange.model):
        return anthropic.is_thinking(exchange._replace(body=fields))
    if "nova" in exchange.model:
        return as_object(fields.get("reasoningConfig")).get("type") == "enabled"
    return True


def sign(signer: Callable[..., JsonObject]) -> Callable[..., JsonObject]:
    """Claude's signing, over the request in Claude's own wire."""

    def signed(exchange: SimExchange, *rest: Json) -> JsonObject:
        return signer(as_messages(exchange), *rest)

    return signed


STYLE = anthropic.STYLE._replace(thinking=sign(anthropic.STYLE.thinking))
RULES: tuple[Rule, ...] = (
    takes_no_reasoning,
    text_not_null,
    takes_no_signature,
    no_prefill,
    asking.converse_tools_given,
    asking.converse_results,
    _claude(asking.claude_sampling),
    *(_claude(rule) for rule in anthropic.RULES),
)
