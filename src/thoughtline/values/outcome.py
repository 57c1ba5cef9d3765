"""What was done about a request: for its record, the response header, the journal and the metrics."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from operator import attrgetter
from typing import Any

from msgspec import Struct

REPLAY_HEADER = "x-thoughtline-replay"


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
