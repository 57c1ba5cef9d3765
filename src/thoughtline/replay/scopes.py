"""Which turns of a request a contract is about.

"The last user message" is the last one that says something itself: a message that only brings results continues a
tool loop.
"""

from __future__ import annotations

from collections.abc import Sequence

from thoughtline.providers import Contract, Scope
from thoughtline.values.items import ToolCall, ToolResult
from thoughtline.values.turns import Transcript, Turn

DEPEND_ON_THE_END: frozenset[Scope] = frozenset(("calls_after_user", "first_call_of_step", "loop_head"))
"""Scopes in which a turn that must carry reasoning need not any more when the user has spoken again."""


def required_turns(transcript: Transcript, contract: Contract, assistant: Sequence[int]) -> tuple[int, ...]:
    """Positions of the assistant turns that must carry reasoning in this request, of all `assistant` turns."""
    if contract.only_when_thinking and not contract.thinks(transcript):
        return ()
    turns = transcript.turns
    match contract.scope:
        case "nowhere" | "pairs":
            return ()
        case "all_with_tools":
            return tuple(assistant) if transcript.tools else ()
        case "calls":
            return tuple(position for position in assistant if has_calls(turns[position]))
        case "calls_after_user" | "first_call_of_step":
            start = after_last_user(turns)
            return tuple(position for position in assistant if position >= start and has_calls(turns[position]))
        case "loop_head":
            return _loop_head(turns, assistant)


def _loop_head(turns: Sequence[Turn], assistant: Sequence[int]) -> tuple[int, ...]:
    """The first assistant turn since the last user message, if the request ends with results: all that follows it is
    one turn to Anthropic, whoever made it."""
    if not turns or not any(isinstance(item, ToolResult) for item in turns[-1].items):
        return ()
    start = after_last_user(turns)
    loop = [position for position in assistant if position >= start]
    return tuple(loop[:1]) if any(has_calls(turns[position]) for position in loop) else ()


def has_calls(turn: Turn) -> bool:
    return any(isinstance(item, ToolCall) for item in turn.items)


def after_last_user(turns: Sequence[Turn]) -> int:
    """Where the current turn of the conversation starts: after the last message in which a user says something."""
    for position in range(len(turns) - 1, -1, -1):
        turn = turns[position]
        if is_said_by_user(turn):
            return position + 1
    return 0


def is_said_by_user(turn: Turn) -> bool:
    """Whether it is a user's message that says something itself."""
    return turn.role == "user" and not any(isinstance(item, ToolResult) for item in turn.items)
