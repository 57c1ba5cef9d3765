"""What the model says: the pieces of a turn, as its script has them."""

from __future__ import annotations

from typing import Literal, TypeAlias

from msgspec import Struct

FinishWord = Literal["stop", "tool_calls", "length"]


class Think(Struct, frozen=True):
    """Reasoning. Empty text: a block that is signed and shows nothing."""

    text: str


class Redacted(Struct, frozen=True):
    """Reasoning that the provider hides."""

    text: str


class Say(Struct, frozen=True):
    """Text that the user sees. `recalls` is a pattern: what of it the model finds in what it was told in private."""

    text: str
    recalls: str = ""


class CallTool(Struct, frozen=True):
    """A tool call; `arguments` is JSON text as the model wrote it."""

    name: str
    arguments: str


class Hosted(Struct, frozen=True):
    """A tool that the provider runs itself: call and outcome are in the answer where the wire has them."""

    name: str
    arguments: str


Thought: TypeAlias = Think | Redacted
Piece: TypeAlias = Thought | Say | CallTool | Hosted


class ScriptedTurn(Struct, frozen=True):
    """One turn of the model, and how its stream is cut."""

    pieces: tuple[Piece, ...]
    finish: FinishWord | None = None
    chunk_chars: int | None = None
    delay_ms: int | None = None
    cut_after: int | None = None
    has_ids: bool = True
