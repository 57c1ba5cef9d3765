"""Finds the records that other steps of a request corroborate, if a step's own history has changed.

    proven(steps, found, identity)  →  the ids of records that `match_step` and `match_merged` may use

A record is corroborated by the next step, if that step's record came after it; by the step before, if it came after
that one; and by the outline of the conversation, if results were cleared and nothing else has changed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from thoughtline.replay.ids import is_distinctive
from thoughtline.replay.keys import (
    ModelStep,
    call_key,
    place_after,
    said_between,
    said_by_results,
)
from thoughtline.replay.matching import (
    looks_of,
    match_merged,
    match_step,
)
from thoughtline.replay.plans import Found, Match, is_of_other_session
from thoughtline.replay.visible import result_text, shown_of
from thoughtline.values.identity import Identity
from thoughtline.values.items import ToolCall, ToolResult
from thoughtline.values.records import MAX_PER_KEY, Key, Record

_LONGEST_NOTICE = 300
_NOTICE = re.compile(
    r"[\[<(.…].*\b(clear|prun|truncat|remov|omit|compact|elid|trim|hid|mask|delet|drop|discard|strip|redact|expir|archiv"
    r"|offload|no longer|not shown|sav\w+ (space|context|tokens))",
    re.IGNORECASE | re.DOTALL,
)
"""Replacements for results that clients have cleared: `[cleared]` (LangChain), `[Old tool result content cleared]`
(opencode, Claude Code), `[[NOTE] This file read has been removed to save space…]` (Cline), `<MASKED>` (OpenHands). The
wording is from memory, not checked against their sources."""


def proven(steps: Sequence[ModelStep], found: Found, identity: Identity) -> frozenset[str]:
    """Return the records that other steps corroborate. Reads nothing if every step has its own history, or none has."""
    if not any(found.values()) or all(step.lineage is None or found.get(step.lineage) for step in steps):
        return frozenset()
    chain = _Chain(found, identity)
    for at, step in enumerate(steps):
        if step.lineage is not None and not found.get(step.lineage):
            after = steps[at + 1] if at + 1 < len(steps) else None
            chain.look_at(step, after)
        chain.go_on(step)
    return frozenset(chain.proven)


class _Chain:
    """Walks the steps of a request, and keeps the record of the last one and the corroborated records."""

    def __init__(self, found: Found, identity: Identity) -> None:
        self._found = found
        self._identity = identity
        self._before: ModelStep | None = None
        self._record: Record | None = None
        self._is_read = True
        self._has_unique_id = False
        self._has_notice = False
        self.proven: set[str] = set()

    def go_on(self, step: ModelStep) -> None:
        """Advance past this step. Its record is determined when the next step needs it."""
        calls = (item for item in step.items if isinstance(item, ToolCall) and item.id)
        self._has_unique_id = self._has_unique_id or any(is_distinctive(call.id or "", call.name) for call in calls)
        self._has_notice = self._has_notice or any(map(_is_notice, step.results))
        self._before, self._is_read = step, False

    def look_at(self, step: ModelStep, after: ModelStep | None) -> None:
        """Look at a step whose own history is unknown."""
        if after is not None:
            self.proven.update(_followed(step, after, self._found, self._identity))
        previous = self._previous()
        place = step.place = self._place_after(previous, step)
        self.proven.update(record.id for record in self._outlined(step, previous, place))
        if place is not None and not isinstance(match_step(step, self._found, self._identity, self.proven), Match):
            merged = match_merged(step, self._found, self._identity, self.proven, place)
            self.proven.update(record.id for record in merged)

    def _previous(self) -> Record | None:
        """Return the record of the step before; the last of several."""
        if not self._is_read and self._before is not None:
            self._is_read = True
            match = match_step(self._before, self._found, self._identity, self.proven)
            if isinstance(match, Match):
                self._record = match.record
            else:
                merged = match_merged(self._before, self._found, self._identity, self.proven)
                self._record = merged[-1] if merged else None
        return self._record

    def _outlined(self, step: ModelStep, previous: Record | None, place: Key | None) -> list[Record]:
        """Return the records with the outline of a step: those that came after the one before, or else all
        candidates."""
        looks = [look for look in looks_of(step, self._found, self._identity) if "outline" in look.evidence]
        records = [look.record for look in looks]
        if not records:
            return []
        linked = [record for record in records if place is not None and place in record.keys]
        if linked or self._has_unique_id:
            return linked or records
        if previous is None or not self._has_notice:
            return []
        is_cleared = self._before is not None and any(map(_is_notice, self._before.results))
        near = [look for look in looks if look.is_in_scope and (is_cleared or "before" in look.evidence)]
        return [look.record for look in near if not is_of_other_session(look.record, self._identity)]

    def _place_after(self, previous: Record | None, step: ModelStep) -> Key | None:
        """Return the place of a step that follows this record and the messages that the client shows between the
        two."""
        before = self._before
        between = said_between(before, step) if previous is not None and before is not None else None
        if previous is None or before is None or between is None:
            return None
        own = [one for one in before.results if one.call_id in previous.call_ids]
        if own and len(own) < len(before.results):  # the results of several steps, merged into one
            between = (said_by_results(own, shown_of(previous.items).calls), *between[1:])
        return place_after(previous, between)


def _is_notice(result: ToolResult) -> bool:
    is_short = len(bytes(result.content)) <= _LONGEST_NOTICE
    return is_short and _NOTICE.match(result_text(result.content)) is not None


def _followed(step: ModelStep, following: ModelStep, found: Found, identity: Identity) -> Iterable[str]:
    """Return the ids of records that made the same calls as a step and that the next step's record came after.

    They identify the first steps of a conversation whose opening was rewritten, where call ids repeat and the session
    has no name: Gemini CLI 0.61.0, resumed, on Kimi; seen on 2026-11-15.
    """
    calls = [call_key(item) for item in step.items if isinstance(item, ToolCall)]
    records = [record for one in calls for record in found.get(one, ())[:MAX_PER_KEY]]
    between = said_between(step, following) if records else None
    match = match_step(following, found, identity) if between is not None else None
    if between is None or not isinstance(match, Match):
        return ()
    return [record.id for record in records if place_after(record, between) in match.record.keys]
