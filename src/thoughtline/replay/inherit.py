"""History inheritance: what a turn without reasoning may borrow from the turns before it.

Only real reasoning is borrowed, never made up: the latest that is not empty. An empty one, or a blank that somebody
put in its place, never covers a real one; where all that was ever there is empty, empty is what is borrowed; where
nothing was ever there, nothing is.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from thoughtline.providers import Rung
from thoughtline.values.items import ReasoningText, ToolCall, Unknown, reasoning_of, seal_of
from thoughtline.values.turns import Turn


def inheriting(ladder: tuple[Rung, ...]) -> tuple[Rung, ...]:
    """A ladder with inheritance on it: before a blank, after what is known to have been empty."""
    rest = tuple(rung for rung in ladder if rung not in ("empty", "inherit"))
    return (*(rung for rung in ladder if rung == "empty"), "inherit", *rest)


def inherit(turns: Sequence[Turn], blank_at: Collection[int] = ()) -> dict[int, ReasoningText]:
    """Which assistant turns that call tools and lack reasoning get which, by position.

    `blank_at` names turns whose wire says "none" where reasoning would stand (`null`), which typed items can't show:
    reasoning was looked for there and found empty, and the turn still lacks it.
    """
    latest: ReasoningText | None = None
    given: dict[int, ReasoningText] = {}
    for position, turn in enumerate(turns):
        if turn.role != "assistant":
            continue
        own = _text_of(turn) or (ReasoningText("") if position in blank_at else None)
        if own is not None and (own.text.strip() or latest is None):
            latest = own
        if latest is not None and _calls_tools(turn) and not _has_reasoning(turn):
            given[position] = latest
    return given


def _text_of(turn: Turn) -> ReasoningText | None:
    """All that a turn thought in the clear, as one text that no wire has seen.

    A signature stays where it is: it vouches for its own turn and for no other.
    """
    texts = [item for item in turn.items if isinstance(item, ReasoningText)]
    return ReasoningText("".join(item.text for item in texts), format=texts[0].format) if texts else None


def _calls_tools(turn: Turn) -> bool:
    return any(isinstance(item, ToolCall) for item in turn.items)


def _has_reasoning(turn: Turn) -> bool:
    """In either placement, readable or not, and also of a kind we don't know."""
    sealed = any(seal_of(item) is not None for item in turn.items)
    strange = any(isinstance(item, Unknown) and item.kind.startswith("reasoning.") for item in turn.items)
    return sealed or strange or bool(reasoning_of(turn.items))
