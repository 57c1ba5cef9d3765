"""The outcomes of handoffs: for each route, with checkpoints and without, from the records of its turns.

A handoff is a turn whose conversation another target served until then. The report looks at how it ended and at the
three turns after it, up to the next handoff: failed tool results, calls that can't be decoded, turns that were
requested again.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from itertools import takewhile

import msgspec
from msgspec import Struct

from thoughtline.replay.keys import evidence_of
from thoughtline.values.items import ToolCall, ToolResult
from thoughtline.values.outcome import Outcome
from thoughtline.values.records import Key, Record
from thoughtline.values.turns import Transcript

NEXT_TURNS = 3
CHARS_OF_A_TOKEN = 4
"""A rule of thumb for English; no provider reports how many tokens a part of a prompt used."""


class Handoffs(Struct, frozen=True):
    """The handoffs of one route, all with checkpoints or all without. `followed` are the turns after them."""

    route: str
    has_checkpoints: bool
    count: int = 0
    added_chars: int = 0
    finishes: dict[str, int] = {}
    followed: int = 0
    tool_errors: int = 0
    bad_calls: int = 0
    retries: int = 0

    @property
    def added_tokens(self) -> int:
        return self.added_chars // CHARS_OF_A_TOKEN


class _Flag(Struct, gc=False):
    """Where formats report that a tool failed: Anthropic's `is_error`, Bedrock's `status`."""

    is_error: bool | None = None
    status: str | None = None


class _Wrapped(Struct, gc=False, rename="camel"):
    tool_result: _Flag | None = None


def failed_results(transcript: Transcript) -> int:
    """The number of failed tool results at the end of a request, in formats that mark them."""
    latest = takewhile(lambda turn: turn.role != "assistant", reversed(transcript.turns))
    return sum(isinstance(item, ToolResult) and _is_failed(item) for turn in latest for item in turn.items)


def _is_failed(result: ToolResult) -> bool:
    try:
        flag = msgspec.json.decode(result.raw, type=_Flag)
        flag = msgspec.json.decode(result.raw, type=_Wrapped).tool_result or flag
    except (msgspec.DecodeError, UnicodeDecodeError):
        return False
    return bool(flag.is_error) or flag.status == "error"


def report(records: Iterable[Record]) -> tuple[Handoffs, ...]:
    """By route, those without checkpoints first."""
    conversations: dict[tuple[str, str | None, str | None], list[Record]] = defaultdict(list)
    for record in sorted(records, key=lambda one: one.created_at):
        where = record.provenance
        if record.outcome is not None:
            conversations[where.tenant, where.session, where.agent].append(record)
    found: dict[tuple[str, bool], list[tuple[Record, Sequence[Record]]]] = defaultdict(list)
    for turns in conversations.values():
        for at, turn in enumerate(turns):
            outcome = _outcome(turn)
            if outcome.handoff:
                found[outcome.route, bool(outcome.checkpoints)].append((turn, _after(turns, at)))
    return tuple(_summed(route, has, found[route, has]) for route, has in sorted(found))


def _after(turns: Sequence[Record], at: int) -> Sequence[Record]:
    following = turns[at + 1 : at + 1 + NEXT_TURNS]
    until = next((number for number, one in enumerate(following) if _outcome(one).handoff), len(following))
    return following[:until]


def _summed(route: str, has_checkpoints: bool, handoffs: Sequence[tuple[Record, Sequence[Record]]]) -> Handoffs:
    following = [one for _, turns in handoffs for one in turns]
    return Handoffs(
        route,
        has_checkpoints,
        len(handoffs),
        added_chars=sum(_outcome(turn).added_chars for turn, _ in handoffs),
        finishes=dict(Counter(_outcome(turn).finish or "cut" for turn, _ in handoffs)),
        followed=len(following),
        tool_errors=sum(_outcome(one).tool_errors for one in following),
        bad_calls=sum(_bad_calls(one) for turn, turns in handoffs for one in (turn, *turns)),
        retries=sum(_retries((turn, *turns)) for turn, turns in handoffs),
    )


def _bad_calls(record: Record) -> int:
    return sum(not _is_readable(item) for item in record.items if isinstance(item, ToolCall) and not item.is_custom)


def _is_readable(call: ToolCall) -> bool:
    try:
        return isinstance(msgspec.json.decode(call.arguments or "{}"), dict)
    except (msgspec.DecodeError, RecursionError):
        return False


def _retries(turns: Sequence[Record]) -> int:
    """Turns at the same place as another one: the same request was sent again and got another answer."""
    places = [place for turn in turns if (place := _place(turn)) is not None]
    return len(places) - len(set(places))


def _place(record: Record) -> Key | None:
    return next((key for key in record.keys if evidence_of(key) == "place"), None)


def _outcome(record: Record) -> Outcome:
    return record.outcome or Outcome()
