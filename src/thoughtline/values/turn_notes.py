"""What was done about one turn of a request, and why: small values that are made as a plan is, and told when asked."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from msgspec import Struct

Deed = Literal[
    "kept",  # the client sent it, and it went up
    "restored",  # its own reasoning was put back
    "inherited",  # it got that of an earlier turn
    "blank",  # it got the least that is accepted
    "stripped",  # what would be refused was taken out
    "missing",  # it must have some, and has none
]
Evidence = Literal["lineage", "outline", "call", "item", "seal", "context", "before", "session", "place", "prefix"]
"""What a record is found by."""

Reason = (
    Evidence
    | Literal[
        "",
        "merged",  # several records that the client wrote into one turn
        # Why its own could not be put back.
        "no_record",
        "ambiguous",
        "text_differs",
        "unproven",
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
    ]
)


class TurnNote(Struct, frozen=True, gc=False, array_like=True):
    """`at` is where the turn stands in the request's list.

    `record` is the id of the record that was used; of a turn without one its lineage, if something is visible of it.
    """

    at: int
    deed: Deed
    why: Reason = ""
    record: str = ""


class NoteChain(Struct, frozen=True, gc=False):
    """Notes behind those of the turns before them, which requests that go on from there share.

    `missed` is how many of all of them lack what they need.
    """

    before: NoteChain | None
    own: tuple[TurnNote, ...]
    missed: int = 0

    def __iter__(self) -> Iterator[TurnNote]:
        if self.before is not None:
            yield from self.before
        yield from self.own


def chained(before: NoteChain | None, own: tuple[TurnNote, ...]) -> NoteChain | None:
    """A chain with these at its end. Each link is longer than the next, so there are few of them."""
    if not own:
        return before
    missed = sum(map(is_missed, own)) + (before.missed if before is not None else 0)
    while before is not None and len(before.own) <= len(own):
        own, before = before.own + own, before.before
    return NoteChain(before, own, missed)


def is_missed(note: TurnNote) -> bool:
    """Whether a turn needed reasoning, and did not get its own back. One that never had any misses nothing."""
    return note.deed in ("inherited", "blank", "missing") and note.why != "had_none"
