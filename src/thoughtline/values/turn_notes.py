"""What was done about one turn of a request, and why: small values that are made as a plan is, and told when asked."""

from __future__ import annotations

from typing import Literal, NamedTuple

Deed = Literal[
    "kept",  # the client sent it, and it went up
    "restored",  # its own reasoning was put back
    "inherited",  # it got that of an earlier turn
    "blank",  # it got the least that is accepted
    "stripped",  # what would be refused was taken out
    "missing",  # it must have some, and has none
]
Reason = Literal[
    "",
    # By which evidence its record was found.
    "lineage",
    "outline",
    "call",
    "item",
    "seal",
    "context",
    "before",
    "session",
    "place",
    "merged",
    "envelope",
    # Why it could not be restored.
    "no_record",
    "ambiguous",
    "text_differs",
    "expired",
    "other_account",
    "other_maker",
    "cut_short",
    "seal_refused",
    "prefix_changed",
    "had_none",
    # Why something was taken out, beside these.
    "foreign_seal",
    "unsigned",
    "forbidden",
    "stale_id",
    "thinking_off",
]


class TurnNote(NamedTuple):
    """`at` is where the turn stands in the request's list, `record` the id of the record that was used, if one was."""

    at: int
    deed: Deed
    why: Reason = ""
    record: str = ""
