"""Bedrock: Claude's rules with Amazon's messages, models that want no reasoning back, and signed requests.

Signature Version 4 as AWS checks it (AWS, "Create a signed AWS API request", read 2026-11), with the key in the
examples of its documentation and no other. A request without a signature has a bearer key: any is accepted.
"""

from __future__ import annotations

import hmac
import re
from collections.abc import Iterator
from hashlib import sha256
from urllib.parse import quote

from thoughtline_sim.exchange import Rule, SimExchange
from thoughtline_sim.pieces import Thought
from thoughtline_sim.reading import JsonObject, as_object, objects
from thoughtline_sim.refusals import bedrock_error
from thoughtline_sim.rules import anthropic, asking, claude_settings
from thoughtline_sim.values import HttpRequest, ModelAnswer, Rejection
from thoughtline_sim.wires import messages
from thoughtline_sim.wires.converse import claude_message, is_claude
from thoughtline_sim.wires.messages import BlockPlace
from thoughtline_sim.writing import digest

KEY_ID = "AKIAIOSFODNN7EXAMPLE"
SECRET = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"
_METHOD = "AWS4-HMAC-SHA256"
_SIGNED = re.compile(
    _METHOD + r" Credential=(\w+)/(\d{8}/[\w-]+/bedrock/aws4_request), *SignedHeaders=([\w;-]+), *Signature=(\w+)"
)
_UNKNOWN = "The security token included in the request is invalid."
_WRONG = (
    "The request signature we calculated does not match the signature you provided. Check your AWS Secret Access Key "
    "and signing method. Consult the service documentation for details."
)
_UPSTREAM = "The model returned the following errors: "
_BARE = ("Invalid `signature`", "block_binding", "assistant message prefill")
"""Parts of Claude's messages that Amazon passes on unchanged."""


def signature_holds(exchange: SimExchange) -> Iterator[Rejection]:
    shown = exchange.request.headers.get("authorization", "")
    if not shown.startswith("AWS4-"):
        return
    found = _SIGNED.fullmatch(shown)
    if found is None or found[1] != KEY_ID:
        yield bedrock_error(_UNKNOWN, 403, "UnrecognizedClientException")
    elif not hmac.compare_digest(signature_of(exchange.request, found[2], found[3].split(";")), found[4]):
        yield bedrock_error(_WRONG, 403, "InvalidSignatureException")


def signature_of(request: HttpRequest, scope: str, names: list[str]) -> str:
    """The correct signature of a request."""
    key = b"AWS4" + SECRET.encode()
    for part in scope.split("/"):
        key = hmac.digest(key, part.encode(), "sha256")
    lines = (_METHOD, request.headers.get("x-amz-date", ""), scope, _digest(_canonical(request, names).encode()))
    return hmac.digest(key, "\n".join(lines).encode(), "sha256").hex()


def _canonical(request: HttpRequest, names: list[str]) -> str:
    query = "&".join(
        f"{quote(name, safe='~')}={quote(value, safe='~')}" for name, value in sorted(request.query.items())
    )
    headers = "".join(f"{name}:{' '.join(request.headers.get(name, '').split())}\n" for name in names)
    path = quote(request.raw_path, safe="/~")
    return "\n".join((request.method, path, query, headers, ";".join(names), _digest(request.body)))


def _digest(data: bytes) -> str:
    return sha256(data).hexdigest()


def takes_no_reasoning(exchange: SimExchange) -> Iterator[str]:
    """Nova and DeepSeek-R1. The message speaks of user messages though the block is in an assistant's."""
    is_refused = "nova" in exchange.model or "deepseek" in exchange.model
    if is_refused and any(message.thoughts for message in exchange.history):
        yield "User messages cannot contain reasoning content. Please remove the reasoning content and try again."


def _reasoning_texts(exchange: SimExchange) -> Iterator[tuple[str, JsonObject]]:
    """`reasoningText` members with their positions; Amazon counts from 1."""
    for index, message in enumerate(objects(exchange.body.get("messages")), 1):
        for number, block in enumerate(objects(message.get("content")), 1):
            reasoning = as_object(block.get("reasoningContent"))
            if "reasoningText" in reasoning:
                yield f"messages.{index}.member.content.{number}.member", as_object(reasoning["reasoningText"])


def text_not_null(exchange: SimExchange) -> Iterator[str]:
    for place, reasoning in _reasoning_texts(exchange):
        if reasoning.get("text") is None:
            member = f"{place}.reasoningContent.reasoningText.text"
            yield f"Value at '{member}' failed to satisfy constraint: Member must not be null"


def takes_no_signature(exchange: SimExchange) -> Iterator[str]:
    """gpt-oss and the other open models; an empty signature counts too."""
    field = "reasoningContent.reasoningText.signature"
    if not is_claude(exchange.model) and any("signature" in text for _, text in _reasoning_texts(exchange)):
        yield f"This model doesn't support the {field} field. Remove {field} and try again."


def invoke_members(exchange: SimExchange) -> Iterator[str]:
    """InvokeModel: the URL has the model and whether to stream, the body the version."""
    again = ", please reformat your input and try again."
    for name in ("model", "stream"):
        if name in exchange.body:
            yield f"Malformed input request: #: extraneous key [{name}] is not permitted{again}"
    if "anthropic_version" not in exchange.body:
        yield f"Malformed input request: #: required key [anthropic_version] not found{again}"


def as_messages(exchange: SimExchange) -> SimExchange:
    """The same request in Claude's own format, which Claude's rules read."""
    fields = as_object(exchange.body.get("additionalModelRequestFields"))
    settings = as_object(exchange.body.get("toolConfig"))
    inference = as_object(exchange.body.get("inferenceConfig"))
    sampling = {"temperature": inference.get("temperature"), "top_p": inference.get("topP")}
    body: JsonObject = {
        **sampling,
        **fields,
        "system": exchange.body.get("system"),
        "tools": [as_object(tool.get("toolSpec")) for tool in objects(settings.get("tools"))],
        "tool_choice": {"type": next(iter(as_object(settings.get("toolChoice"))), "auto")},
        "messages": [claude_message(message) for message in objects(exchange.body.get("messages"))],
    }
    return exchange._replace(body=body)


def _claude(rule: Rule) -> Rule:
    """A rule of Claude's. Most of its messages get Amazon's prefix."""

    def check(exchange: SimExchange) -> Iterator[str]:
        for found in rule(as_messages(exchange)) if is_claude(exchange.model) else ():
            sentence = found if isinstance(found, str) else found.message
            is_bare = any(words in sentence for words in _BARE)
            yield sentence if is_bare else _UPSTREAM + sentence

    return check


def is_thinking(exchange: SimExchange) -> bool:
    """Claude by `thinking`; Nova by `reasoningConfig`, off by default; the others think."""
    fields = as_object(exchange.body.get("additionalModelRequestFields"))
    if is_claude(exchange.model):
        return claude_settings.is_thinking(exchange._replace(body=fields))
    if "nova" in exchange.model:
        return as_object(fields.get("reasoningConfig")).get("type") == "enabled"
    return True


def _sign(exchange: SimExchange, answer: ModelAnswer, place: BlockPlace, piece: Thought) -> JsonObject:
    """Claude's signing, over the request in Claude's own format."""
    return anthropic.sign(as_messages(exchange), answer, place, piece)


STYLE = messages.MessagesStyle(
    _sign,
    lambda digits, name, number: f"tooluse_{digest(digits, str(number))[:22]}",
    lambda digits: f"msg_bdrk_01{digits[:22]}",
)
INVOKE_STYLE = STYLE._replace(thinking=anthropic.sign, pieces=anthropic.pieces_for)
INVOKE_RULES: tuple[Rule, ...] = (
    signature_holds,
    invoke_members,
    asking.claude_tool_kinds,
    claude_settings.sampling_fits,
    asking.claude_results,
    *anthropic.RULES,
)
RULES: tuple[Rule, ...] = (
    signature_holds,
    takes_no_reasoning,
    text_not_null,
    takes_no_signature,
    asking.converse_tools_given,
    asking.converse_results,
    _claude(claude_settings.sampling_fits),
    *(_claude(rule) for rule in anthropic.RULES),
)
