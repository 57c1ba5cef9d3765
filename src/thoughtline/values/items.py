"""The content of an assistant turn: an ordered list of items.

An item is visible (`Text`, `ToolCall`, `ToolResult`), reasoning (four kinds), or `Unknown` to us and kept unchanged.
Reasoning has one of two placements: as an item in the list, or as a `Seal` attached to another item, as Gemini
does with its signature on a call. `raw` is the JSON an item was decoded from, and is sent back.
"""

from __future__ import annotations

from typing import Literal, NewType, TypeAlias, TypeGuard

from msgspec import Raw, Struct

ReasoningFormat = NewType("ReasoningFormat", str)
"""The provider of a piece of reasoning, and so who can read it. An open set: unknown names pass through."""

ANTHROPIC_CLAUDE_V1 = ReasoningFormat("anthropic-claude-v1")
ANTIGRAVITY_CLAUDE_V1 = ReasoningFormat("antigravity-claude-v1")
AZURE_OPENAI_RESPONSES_V1 = ReasoningFormat("azure-openai-responses-v1")
BEDROCK_OPENAI_RESPONSES_V1 = ReasoningFormat("bedrock-openai-responses-v1")
BEDROCK_XAI_RESPONSES_V1 = ReasoningFormat("bedrock-xai-responses-v1")
COHERE_V2 = ReasoningFormat("cohere-v2")
COMMAND_CODE_V1 = ReasoningFormat("command-code-v1")
COPILOT_V1 = ReasoningFormat("copilot-v1")
DEEPSEEK_V1 = ReasoningFormat("deepseek-v1")
GLM_V1 = ReasoningFormat("glm-v1")
GOOGLE_GEMINI_V1 = ReasoningFormat("google-gemini-v1")
GOOGLE_INTERACTIONS_V1 = ReasoningFormat("google-interactions-v1")
KIMI_V1 = ReasoningFormat("kimi-v1")
META_RESPONSES_V1 = ReasoningFormat("meta-responses-v1")
MIMO_V1 = ReasoningFormat("mimo-v1")
MINIMAX_RESPONSE_V1 = ReasoningFormat("MiniMax-response-v1")
MISTRAL_V1 = ReasoningFormat("mistral-v1")
OPENAI_RESPONSES_V1 = ReasoningFormat("openai-responses-v1")
QWEN_V1 = ReasoningFormat("qwen-v1")
UNKNOWN_FORMAT = ReasoningFormat("unknown")
XAI_RESPONSES_V1 = ReasoningFormat("xai-responses-v1")


NO_RAW = Raw(b"")
"""An item that was never on a wire, or whose JSON has no more than the item."""


# Frozen structs, not dataclasses: five times cheaper to make, and a long history makes thousands
# (docs/decisions/0002-values-are-msgspec-structs.md). gc=False: no item can be part of a cycle.
class Seal(Struct, frozen=True, gc=False, omit_defaults=True):
    """An opaque token that only its maker can read, attached to an item that is not reasoning itself."""

    data: str
    format: ReasoningFormat = UNKNOWN_FORMAT


class Text(Struct, frozen=True, gc=False, tag=True, omit_defaults=True):
    """Text that the user sees. `id` is the provider's id, if there is one (`msg_…`)."""

    text: str
    seal: Seal | None = None
    id: str | None = None
    raw: Raw = NO_RAW


class ToolCall(Struct, frozen=True, gc=False, tag=True, omit_defaults=True):
    """A call the model asks for.

    `arguments` is JSON text as it was on the wire, or free text if `is_custom`. `id` pairs it with its result;
    `item_id` is the second id in Responses (`fc_…`), or the one that we gave to a call without any, which is never sent
    upstream; `namespace` is the group of tools that `name` is in.
    """

    name: str
    arguments: str
    id: str | None = None
    item_id: str | None = None
    is_custom: bool = False
    seal: Seal | None = None
    raw: Raw = NO_RAW
    namespace: str | None = None


class ToolResult(Struct, frozen=True, gc=False, tag=True, omit_defaults=True):
    """The result of a call: its JSON on the wire, a string if it is text."""

    content: Raw
    call_id: str | None = None
    name: str | None = None
    raw: Raw = NO_RAW


class ReasoningText(Struct, frozen=True, gc=False, tag=True, omit_defaults=True):
    """Thinking in the clear, signed by some providers."""

    text: str
    signature: str | None = None
    format: ReasoningFormat = UNKNOWN_FORMAT
    id: str | None = None
    index: int | None = None
    raw: Raw = NO_RAW


class ReasoningSummary(Struct, frozen=True, gc=False, tag=True, omit_defaults=True):
    """A provider's summary of thinking that it does not show."""

    summary: str
    format: ReasoningFormat = UNKNOWN_FORMAT
    id: str | None = None
    index: int | None = None
    raw: Raw = NO_RAW


class ReasoningEncrypted(Struct, frozen=True, gc=False, tag=True, omit_defaults=True):
    """Thinking that only its provider can read."""

    data: str
    format: ReasoningFormat = UNKNOWN_FORMAT
    id: str | None = None
    index: int | None = None
    raw: Raw = NO_RAW


class ReasoningServerToolCall(Struct, frozen=True, gc=False, tag=True, omit_defaults=True):
    """A tool that the provider ran while thinking, kept as part of the thinking."""

    tool_name: str
    format: ReasoningFormat = UNKNOWN_FORMAT
    id: str | None = None
    index: int | None = None
    raw: Raw = NO_RAW


class Unknown(Struct, frozen=True, gc=False, tag=True, omit_defaults=True):
    """An unknown kind. It keeps its place and its JSON; `seal` is set if it has a signature."""

    kind: str
    raw: Raw
    seal: Seal | None = None


Reasoning: TypeAlias = ReasoningText | ReasoningSummary | ReasoningEncrypted | ReasoningServerToolCall
Item: TypeAlias = Text | ToolCall | ToolResult | Reasoning | Unknown

Role = Literal["system", "user", "assistant", "tool", "other"]

REASONING_KINDS = (ReasoningText, ReasoningSummary, ReasoningEncrypted, ReasoningServerToolCall)


def reasoning_of(items: tuple[Item, ...]) -> tuple[Reasoning, ...]:
    """The reasoning items, in order."""
    found: list[Reasoning] = []
    for item in items:
        if isinstance(item, REASONING_KINDS):
            found.append(item)
    return tuple(found)


def is_reasoning(item: Item) -> bool:
    """Whether an item is reasoning or carries a seal: either placement."""
    return isinstance(item, REASONING_KINDS) or seal_of(item) is not None


CACHE_POINT = "cachePoint"
"""The kind of an item that marks everything before it for prompt caching (Converse). It has no content."""


def is_cache_point(item: Item) -> bool:
    """Whether an item is a mark for prompt caching and nothing else."""
    return isinstance(item, Unknown) and item.kind == CACHE_POINT


def is_strange_reasoning(item: Item) -> TypeGuard[Unknown]:
    """Whether an item is reasoning of an unknown kind."""
    return isinstance(item, Unknown) and item.kind.startswith("reasoning.")


def readable_text(item: Item) -> str:
    """The readable text of a piece of reasoning: the text itself or a summary, and empty for anything else."""
    if isinstance(item, ReasoningText):
        return item.text
    return item.summary if isinstance(item, ReasoningSummary) else ""


ENVELOPE_MARK = "TLT1"
"""How our own seals begin: an envelope around content that a client's format can't hold (see `translation`)."""


def is_envelope(token: str) -> bool:
    """Whether a token claims to be one of ours."""
    return token.startswith(ENVELOPE_MARK)


def plain_token(data: str) -> str:
    """A token in one spelling for all base64 alphabets: with the same two letters, without padding."""
    return data.replace("-", "+").replace("_", "/").rstrip("=")


def seal_of(item: Item) -> Seal | None:
    """The opaque token of an item, in either placement."""
    if isinstance(item, (Text, ToolCall, Unknown)):
        return item.seal
    if isinstance(item, ReasoningText):
        return Seal(item.signature, item.format) if item.signature else None
    return Seal(item.data, item.format) if isinstance(item, ReasoningEncrypted) else None
