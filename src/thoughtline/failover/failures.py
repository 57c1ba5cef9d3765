"""Recognizes failures of a target that another target may not have.

If a target can't be reached, answers late, is busy, overloaded or broken, the next one is tried. A request that was
rejected for its content would be rejected elsewhere too, or have surprising results there: the client gets that error.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator
from typing import Any, NamedTuple, TypeAlias

from thoughtline.formats import FORMATS
from thoughtline.formats.json_text import plain_value
from thoughtline.providers import FactTable, facts
from thoughtline.providers.row import FailureCodes
from thoughtline.values.errors import FailureKind

Json: TypeAlias = Any

LONGEST_PAUSE_SECONDS = 3600.0
"""The longest `retry-after` that is respected: some providers give the time until tomorrow's quota."""

_LOOKED_AT_BYTES = 64 * 2**10
_BUSY = frozenset({408, 409, 429})
_KEY = frozenset({401, 402, 403})


# A target may forward another server's error, so the words of every provider count, whatever the HTTP status.
class _Signs(NamedTuple):
    words: dict[str, FailureKind]
    codes: tuple[FailureCodes, ...]
    flags: frozenset[str]


@functools.lru_cache(2)
def _signs_of(table: FactTable) -> _Signs:
    rows = table.every_row
    known = (*(wire.errors.failures for wire in FORMATS.values()), *(row.failures for row in rows))
    return _Signs(
        {word: kind for words in known for word, kind in words.items()},
        tuple(row.failure_codes for row in rows if row.failure_codes is not None),
        frozenset(flag for row in rows for flag in row.flags),
    )


def failure_holders() -> tuple[str, ...]:
    """Members of a body that contain a failure's number."""
    return tuple(codes.holder for codes in _signs_of(facts()).codes)


_ERRORS: dict[str, FailureKind] = {
    "upstream_unreachable": "unreachable",
    "upstream_failed": "broken",
    "upstream_timeout": "late",
}
_SECONDS = re.compile(r"\d{1,9}(?:\.\d+)?")


class TargetFailure(NamedTuple):
    """Why the next target, or the next key, is tried. `pause_seconds` is the pause that the provider
    asks for, if any.
    """

    kind: FailureKind
    pause_seconds: float | None = None


def failure_of(status: int, body: bytes = b"", retry_after: str = "") -> TargetFailure | None:
    """The failure in an answer; None for a success, or a rejection of the request itself."""
    pause = _pause(retry_after)
    if status in _KEY:
        return None if status == 403 and _is_moderated(body) else TargetFailure("key_rejected", pause)
    if status >= 500:
        return TargetFailure(
            "overloaded" if status in (503, 529) else "late" if status in (504, 524) else "broken", pause
        )
    if status in _BUSY:
        return TargetFailure("busy", pause)
    kind = _kind_in(body[:_LOOKED_AT_BYTES])
    return TargetFailure(kind, pause) if kind is not None else None


def failure_of_error(code: str) -> TargetFailure | None:
    """The failure in an error of ours: the codes for failed upstream requests."""
    kind = _ERRORS.get(code)
    return TargetFailure(kind) if kind is not None else None


def falls_over(failure: TargetFailure, *, is_own_key: bool) -> bool:
    """Whether to try the next target. A client must see that its own key was rejected."""
    return failure.kind != "key_rejected" or is_own_key


def _is_moderated(body: bytes) -> bool:
    """Some reject flagged input with 403: that is about the request, not the key."""
    value = plain_value(body[:_LOOKED_AT_BYTES])
    error = value.get("error") if isinstance(value, dict) else None
    metadata = error.get("metadata") if isinstance(error, dict) else None
    return isinstance(metadata, dict) and not _signs_of(facts()).flags.isdisjoint(metadata)


def _pause(retry_after: str) -> float | None:
    """Seconds. A date is ignored: clocks differ, and every known provider sends seconds."""
    if _SECONDS.fullmatch(retry_after.strip()) is None:
        return None
    return min(float(retry_after), LONGEST_PAUSE_SECONDS)


def _kind_in(body: bytes) -> FailureKind | None:
    """The failure in a body, or in the first event of a stream."""
    value = plain_value(_first_event(body))
    if isinstance(value, list):
        value = value[0] if value else None
    if not isinstance(value, dict):
        return None
    for word in _error_words(value):
        kind = _signs_of(facts()).words.get(word.lower())
        if kind is not None:
            return kind
    return _kind_of_number(value)


def _first_event(body: bytes) -> bytes:
    for line in body.splitlines():
        if line.startswith(b"data:"):
            return line[5:]
        if line and not line.startswith((b"event:", b":", b"id:")):
            break
    return body


def _error_words(value: dict[str, Json]) -> Iterator[str]:
    """The members of an error that name its kind. A message is prose: it is not searched."""
    response = value.get("response")
    holders = [value.get("error"), response.get("error") if isinstance(response, dict) else None]
    is_error = value.get("type") in ("error", "response.failed") or value.get("object") == "error" or "__type" in value
    for holder in (*holders, value if is_error else None):
        if isinstance(holder, dict):
            for name in ("type", "code", "status", "__type"):
                word = holder.get(name)
                if isinstance(word, str):
                    yield word.rpartition("#")[2]


def _kind_of_number(value: dict[str, Json]) -> FailureKind | None:
    """A provider's own numbers; else an HTTP status as an error's code, even in a response of 200 (OpenRouter)."""
    for codes in _signs_of(facts()).codes:
        holder = value.get(codes.holder)
        if isinstance(holder, dict) and isinstance(holder.get(codes.member), int):
            return codes.kinds.get(holder[codes.member])
    error = value.get("error")
    code = error.get("code") if isinstance(error, dict) else None
    if isinstance(code, int) and not isinstance(code, bool) and (code in _BUSY or 500 <= code < 600):
        found = failure_of(code)
        return found.kind if found is not None else None
    return None
