"""What was done about a request: for its record, the response header, the journal and the metrics."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from operator import attrgetter
from typing import Any, Literal

from msgspec import Struct

REPLAY_HEADER = "x-thoughtline-replay"
FINDINGS_HEADER = "x-thoughtline-findings"


class Counts(Struct, frozen=True, gc=False, omit_defaults=True):
    """How many turns had their reasoning restored, inherited, left blank, stripped, or still miss it; whether the
    request was healed, and how many checkpoints were quoted in it."""

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
"""The counts alone, in that order."""


class Outcome(Counts, frozen=True, gc=False, omit_defaults=True):
    """What was done about the request that a turn answers: for people to look at, no part of the turn.

    `findings` are pairs of a rule and a place. Milliseconds are those spent here and spent waiting for the provider.
    Of requests to a route: its name, how many were asked, who made the turn before if that was another target, how many
    characters of checkpoints it brought, and how many results of tools were errors. `finish` is why the turn ended.
    """

    request: str = ""
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
    """The value of `REPLAY_HEADER`: what was done, and how the store is unless it is well."""
    words = ", ".join([f"{name}={count}" for name, count in zip(COUNTED, counts, strict=True)])
    words += ", unread=1" if is_unread else ""
    return (words if store == "ok" else f"{words}, store={store}").encode()


def finding_words(counts: Mapping[str, int]) -> str:
    """The value of `FINDINGS_HEADER`: how many findings there are of each rule."""
    return ", ".join(f"{rule}={count}" for rule, count in counts.items() if count)


# --- what was done about one turn, and why: made as a plan is, and told when asked ------------------------------------


Treatment = Literal[
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
    treatment: Treatment
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
    missed = before.missed if before is not None else 0
    for note in own:
        # It needed reasoning, and did not get its own back. One that never had any misses nothing.
        if note.treatment in ("inherited", "blank", "missing") and note.why != "had_none":
            missed += 1
    while before is not None and len(before.own) <= len(own):
        own, before = before.own + own, before.before
    return NoteChain(before, own, missed)
