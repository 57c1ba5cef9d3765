"""What the model says: the pieces of a turn, from its script."""

from __future__ import annotations

from typing import Literal, TypeAlias

from msgspec import Struct

FinishWord = Literal["stop", "tool_calls", "length"]


class Think(Struct, frozen=True):
    """Reasoning. Empty text: a signed block without visible text."""

    text: str


class Redacted(Struct, frozen=True):
    """Reasoning that the provider hides."""

    text: str


class Say(Struct, frozen=True):
    """Text that the user sees. `recalls` is a pattern: its match in the model's private input is the text."""

    text: str
    recalls: str = ""


class CallTool(Struct, frozen=True):
    """A tool call; `arguments` is JSON text as the model wrote it."""

    name: str
    arguments: str


class Hosted(Struct, frozen=True):
    """A tool that the provider runs: call and result are in the answer if the format has them."""

    name: str
    arguments: str


Thought: TypeAlias = Think | Redacted
Piece: TypeAlias = Thought | Say | CallTool | Hosted


class ScriptedTurn(Struct, frozen=True):
    """One turn of the model, and how its stream is cut off."""

    pieces: tuple[Piece, ...]
    finish: FinishWord | None = None
    chunk_chars: int | None = None
    delay_ms: int | None = None
    cut_after: int | None = None
    has_ids: bool = True
