"""A short conversation with one tool, in a provider's format, and what a client might do to it."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, TypeAlias

from msgspec.structs import replace

from thoughtline.formats import FORMATS, USUAL
from thoughtline.providers.contract import Contract
from thoughtline.providers.knobs import Setting
from thoughtline.providers.thinking import settle
from thoughtline.translation import translate_request
from thoughtline.values.destination import Destination
from thoughtline.values.items import (
    NO_RAW,
    REASONING_KINDS,
    Item,
    ReasoningEncrypted,
    ReasoningSummary,
    ReasoningText,
    Text,
    ToolCall,
)
from thoughtline.values.options import Thinking

Json: TypeAlias = Any
Change: TypeAlias = Callable[[tuple[Item, ...]], tuple[Item, ...]]
"""What a client does to the items of a turn."""

QUESTION = "What is the weather in Paris? Look it up with the tool, then answer in one short sentence."
AGAIN = "Thank you. And in Rome? Look it up too."
RESULT = "Sunny, 21 degrees."
TOOL = "get_weather"
MAX_TOKENS = 2_048
_LEAST_TEXT = 32
_TOOLS: Json = [
    {
        "type": "function",
        "function": {
            "name": TOOL,
            "description": "The weather in a city.",
            "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
        },
    }
]


class Step(NamedTuple):
    """A turn of the model, as it came, and what a client does to it before it sends it back."""

    items: tuple[Item, ...]
    change: Change | None = None

    @property
    def calls(self) -> tuple[ToolCall, ...]:
        return tuple(item for item in self.items if isinstance(item, ToolCall))

    @property
    def text(self) -> str:
        return "".join(item.text for item in self.items if isinstance(item, Text))


class Ask(NamedTuple):
    """What a request asks for in addition to its conversation. `thinking` None leaves it to the model's default.

    `members` are settings in the words of chat; `question` stands in the place of the usual one.
    """

    thinking: Thinking | None = None
    members: Mapping[str, Json] = {}
    is_streaming: bool = False
    question: str = QUESTION
    has_tools: bool = True


def body_of(target: Destination, contract: Contract, steps: tuple[Step, ...], ask: Ask) -> bytes:
    """The request: the question, then each turn of the model with what answers it, changed as its step says."""
    chat: dict[str, Json] = {"model": target.model, "messages": _messages(steps, ask), "max_tokens": MAX_TOKENS}
    if ask.has_tools:
        chat["tools"] = _TOOLS
    chat |= ask.members
    if ask.is_streaming:
        chat["stream"] = True
    source = USUAL.bodies.decode_request(json.dumps(chat).encode(), contract.dialect)
    request = translate_request(
        source, target.format, contract, target.model, marks_prompts=False, is_streaming=ask.is_streaming
    ).transcript
    positions = [position for position, turn in enumerate(request.turns) if turn.role == "assistant"]
    for position, step in zip(positions, steps, strict=True):
        items = step.items if step.change is None else step.change(step.items)
        request = request.with_items(position, items)
    written = FORMATS[target.format].bodies.encode_request(request, contract.dialect)
    if ask.thinking is None:
        return written
    settled = settle(ask.thinking, contract, target.model, MAX_TOKENS)
    outer = FORMATS[target.format].inside
    members = tuple(((outer, *path) if outer else path, value) for path, value in settled.members)
    return with_settings(written, members)


def _messages(steps: tuple[Step, ...], ask: Ask) -> list[Json]:
    messages: list[Json] = [{"role": "user", "content": ask.question}]
    for step in steps:
        calls = [
            {
                "id": call.id or "call_1",
                "type": "function",
                "function": {"name": call.name, "arguments": call.arguments},
            }
            for call in step.calls
        ]
        turn: dict[str, Json] = {"role": "assistant", "content": step.text or None}
        messages.append({**turn, "tool_calls": calls} if calls else turn)
        results = [{"role": "tool", "tool_call_id": call["id"], "content": RESULT} for call in calls]
        messages += results or [{"role": "user", "content": AGAIN}]
    return messages


def with_settings(body: bytes, settings: tuple[Setting, ...]) -> bytes:
    """A request with these settings, each at its path."""
    value = json.loads(body)
    for path, setting in settings:
        holder = value
        for name in path[:-1]:
            inner = holder.get(name)
            holder[name] = inner if isinstance(inner, dict) else {}
            holder = holder[name]
        holder[path[-1]] = setting
    return json.dumps(value, ensure_ascii=False).encode()


# --- what a client might do to a turn ---------------------------------------------------------------------------------


def without_reasoning(items: tuple[Item, ...]) -> tuple[Item, ...]:
    """The turn as a client shows it: no reasoning, no seals."""
    kept = (item for item in items if not isinstance(item, REASONING_KINDS))
    return tuple(_unsealed(item) for item in kept)


def _unsealed(item: Item) -> Item:
    if isinstance(item, (Text, ToolCall)) and item.seal is not None:
        return replace(item, seal=None, raw=NO_RAW)
    return item


def reasoning_last(items: tuple[Item, ...]) -> tuple[Item, ...]:
    """The turn with its reasoning behind what it led to."""
    thoughts = tuple(item for item in items if isinstance(item, REASONING_KINDS))
    return (*(item for item in items if item not in thoughts), *thoughts)


def with_reasoning(text: str) -> Change:
    """The turn with this text in the place of its reasoning, and without seals."""

    def change(items: tuple[Item, ...]) -> tuple[Item, ...]:
        shown = without_reasoning(items)
        made_by = next((item.format for item in items if isinstance(item, ReasoningText)), None)
        return (ReasoningText(text) if made_by is None else ReasoningText(text, format=made_by), *shown)

    return change


def altered(items: tuple[Item, ...]) -> tuple[Item, ...]:
    """The turn with its reasoning changed by a letter: text where it is text, else what seals it."""
    return tuple(_altered(item) for item in items)


def _altered(item: Item) -> Item:
    if isinstance(item, ReasoningEncrypted):
        return replace(item, data=_other(item.data), raw=NO_RAW)
    if isinstance(item, ReasoningText) and (item.text or item.signature):
        if item.text:
            return replace(item, text=f"{item.text} Not.", raw=NO_RAW)
        return replace(item, signature=_other(item.signature or ""), raw=NO_RAW)
    if isinstance(item, ReasoningSummary):
        return item
    if isinstance(item, (Text, ToolCall)) and item.seal is not None:
        return replace(item, seal=replace(item.seal, data=_other(item.seal.data)), raw=NO_RAW)
    return item


def _other(seal: str) -> str:
    """A seal of the same length that no provider has made."""
    middle = len(seal) // 2
    return seal[:middle] + ("A" if seal[middle : middle + 1] != "A" else "B") + seal[middle + 1 :]


def text_of(items: tuple[Item, ...]) -> str:
    """The readable reasoning of a turn; empty where it is too short to be distinguished from its JSON."""
    text = "".join(item.text for item in items if isinstance(item, ReasoningText))
    return text if len(text) > _LEAST_TEXT else ""


def has_reasoning(items: tuple[Item, ...]) -> bool:
    """Whether a turn has reasoning that can go back: text, ciphertext or a seal."""
    return any(isinstance(item, REASONING_KINDS) or getattr(item, "seal", None) is not None for item in items)
