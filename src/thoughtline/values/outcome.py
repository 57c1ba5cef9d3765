"""What was done with a request: for its record, the response header, the journal and the metrics."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from operator import attrgetter
from typing import Any, Literal

from msgspec import Struct

REPLAY_HEADER = "x-thoughtline-replay"
FINDINGS_HEADER = "x-thoughtline-findings"


class Counts(Struct, frozen=True, gc=False, omit_defaults=True):
    """How many turns had their reasoning restored, inherited, left blank, stripped, or still lack it; whether the
    request was healed, and how many checkpoints were quoted in it.
    """

    restored: int = 0
    inherited: int = 0
    blank: int = 0
    stripped: int = 0
    missing: int = 0
    healed: int = 0
    checkpoints: int = 0

    @property
    def counted(self) -> dict[str, Any]:
        """Each count by its name."""
        return dict(zip(COUNTED, counts_of(self), strict=True))


COUNTED: tuple[str, ...] = Counts.__struct_fields__
counts_of: Callable[[Counts], tuple[int, ...]] = attrgetter(*COUNTED)
"""Only the counts, in that order."""


class Outcome(Counts, frozen=True, gc=False, omit_defaults=True):
    """What was done with the request that a turn answers: for people to look at, not part of the turn.

    `client` is the program that sent it, if it is known. `findings` are pairs of a rule and a position. Milliseconds
    are those spent here and those spent waiting for the provider. For requests to a route: its name, how many targets
    were tried, who made the turn before if that was another target, how many characters of checkpoints were quoted, and
    how many tool results were errors. `finish` is the finish reason.
    """

    request: str = ""
    client: str = ""
    findings: tuple[tuple[str, str], ...] = ()
    upstream_ms: float = 0.0
    own_ms: float = 0.0
    route: str = ""
    attempts: int = 1
    handoff: str = ""
    added_chars: int = 0
    tool_errors: int = 0
    finish: str = ""


@lru_cache(1024)
def replay_words(counts: tuple[int, ...], store: str, is_unread: bool) -> bytes:
    """The value of `REPLAY_HEADER`: what was done, and the state of the store unless it is healthy."""
    words = ", ".join([f"{name}={count}" for name, count in zip(COUNTED, counts, strict=True)])
    words += ", unread=1" if is_unread else ""
    return (words if store == "ok" else f"{words}, store={store}").encode()


def finding_words(counts: Mapping[str, int]) -> str:
    """The value of `FINDINGS_HEADER`: the number of findings of each rule."""
    return ", ".join(f"{rule}={count}" for rule, count in counts.items() if count)


# --- what was done with one turn, and why: collected with the plan, shown on request ----------------------------------


Treatment = Literal[
    "kept",  # the client sent it, and it was forwarded
    "restored",  # its own reasoning was put back
    "inherited",  # it got the reasoning of an earlier turn
    "blank",  # it got the least that is accepted
    "stripped",  # reasoning that would be rejected was removed
    "missing",  # it must have some, but has none
]
Evidence = Literal["lineage", "outline", "call", "item", "seal", "context", "before", "session", "place", "prefix"]
"""The evidence by which a record was found."""

Reason = (
    Evidence
    | Literal[
        "",
        "merged",  # several records that the client wrote into one turn
        "any_frame",  # its lineage, where system prompts are ignored
        # Why its own could not be put back.
        "no_record",
        "ambiguous",
        "other_user",
        "other_frame",
        "text_differs",
        "unproven",
        "expired",
        "other_account",
        "other_maker",
        "cut_short",
        "seal_refused",
        "prefix_changed",
        "had_none",
        # Why reasoning was removed, besides these.
        "foreign_seal",
        "unsigned",
        "forbidden",
        "stale_id",
    ]
)


class TurnNote(Struct, frozen=True, gc=False, array_like=True):
    """`at` is the position of the turn in the request's list.

    `record` is the id of the record that was used; for a turn without one its lineage, if any of it is visible.
    """

    at: int
    treatment: Treatment
    why: Reason = ""
    record: str = ""


class NoteChain(Struct, frozen=True, gc=False):
    """Notes after those of earlier turns, which later requests of the conversation share.

    `missed` is how many of all of them lack required reasoning.
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
    missed = before.missed if before is not None else 0
    for note in own:
        # It needed reasoning and did not get its own back. A turn that never had any misses nothing.
        if note.treatment in ("inherited", "blank", "missing") and note.why != "had_none":
            missed += 1
    while before is not None and len(before.own) <= len(own):
        own, before = before.own + own, before.before
    return NoteChain(before, own, missed)
