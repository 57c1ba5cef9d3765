"""Estimates the work that a body takes without decoding it: in linear time, and in steps of a few microseconds.

The cost is not in the length of a body but in the number of its values: a megabyte of text is decoded in a millisecond,
a megabyte of `{}` in seconds. So containers and values are counted outside of strings before any objects are created.
Light bodies are processed at once; others go to a thread, where they block no one else.
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import add
from typing import NamedTuple

from thoughtline.formats import FORMATS
from thoughtline.formats.nesting import outside_of_strings
from thoughtline.providers import Dialect
from thoughtline.values.errors import DecodeError, LimitExceeded
from thoughtline.values.turns import FormatName, Transcript

MAX_TURNS = 25_000
"""Allows ten thousand exchanges of a user and a model: no context window holds that many."""

MAX_CONTAINERS = 100_000
"""Objects and arrays of a body: four for each turn, and tools with their schemas."""

MAX_VALUES = 1_000_000
"""Commas of a body: lists of tokens are the longest that clients send."""

MAX_ESCAPES = 4_000_000
"""Backslashes of a body: a string is decoded in one go, and each of them slows that down. Ten megabytes of source code,
quoted twice, have a million.
"""

_LIGHT_BYTES = 256 * 2**10
_BRIEF_BYTES = 8 * 2**10
_LIGHT_CONTAINERS = 1_000
_LIGHT_ITEMS = 1_000


def is_light(body: bytes) -> bool:
    """Whether any body like this is decoded and planned within a few milliseconds."""
    size = len(body)
    if size <= _BRIEF_BYTES:
        return True
    return size <= _LIGHT_BYTES and body.count(b"{") + body.count(b"[") <= _LIGHT_CONTAINERS


def is_light_conversation(transcript: Transcript) -> bool:
    """The same for a decoded conversation."""
    items = len(transcript.turns)
    for turn in transcript.turns:
        items += len(turn.items)
    return items <= _LIGHT_ITEMS and is_light(transcript.body)


def check_weight(body: bytes) -> None:
    """Raises `LimitExceeded` for a body with more values than are ever decoded."""
    if is_light(body) or weight_of(body).is_read:
        return
    containers = values = escapes = 0
    for outside, escapes_here in outside_of_strings(body):
        escapes += escapes_here
        containers += outside.count(b"{") + outside.count(b"[")
        values += outside.count(b",")
        if containers > MAX_CONTAINERS or values > MAX_VALUES or escapes > MAX_ESCAPES:
            raise LimitExceeded("a conversation of more values than are read")


class Weight(NamedTuple):
    """Upper bounds for containers, values and escapes."""

    containers: int
    values: int
    escapes: int

    def plus(self, other: Weight) -> Weight:
        return Weight(*map(add, self, other))

    @property
    def is_read(self) -> bool:
        """Whether a body of this weight is decoded, whatever its strings contain."""
        return self.containers <= MAX_CONTAINERS and self.values <= MAX_VALUES and self.escapes <= MAX_ESCAPES


def total(weights: Sequence[Weight]) -> Weight:
    """The weight of several parts of a body, of which there is at least one."""
    return Weight(*map(sum, zip(*weights, strict=True)))


def weight_of(body: bytes) -> Weight:
    """Computed from bytes alone, so that it works for part of a body."""
    return Weight(body.count(b"{") + body.count(b"["), body.count(b","), body.count(b"\\"))


def decode_bounded(body: bytes, format: FormatName, dialect: Dialect) -> Transcript:
    """A request that is small enough to be planned. Raises `LimitExceeded` otherwise."""
    wire = FORMATS[format]
    if "shared_address" in wire.quirks and not any(b'"%b"' % name.encode() in body for name in wire.telling_members):
        raise DecodeError("missing: a body of another format", f"/{wire.telling_members[0]}")
    if len(body) > _BRIEF_BYTES:
        check_weight(body)
    transcript = wire.bodies.decode_request(body, dialect)
    if len(transcript.turns) > MAX_TURNS:
        raise LimitExceeded(f"a conversation of more than {MAX_TURNS} turns")
    return transcript
