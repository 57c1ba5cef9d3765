"""Digests of what surrounds a conversation: the frame (its system prompt), the end user and the tools.

    scope_of(transcript)  →  Scope(frame, user, tools)

Two conversations with the same words are different if their frames or end users differ. Common forms of date and time
don't change the frame, nor does Claude Code's attribution line.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache

from msgspec import Raw, Struct

from thoughtline.providers.anthropic import ATTRIBUTION
from thoughtline.replay.visible import without_cache_marks
from thoughtline.values.identity import Identity
from thoughtline.values.items import Text, Unknown, is_cache_point
from thoughtline.values.records import Record, digest, digest_of
from thoughtline.values.turns import Transcript, Turn

_LONGEST_KEPT = 256 * 2**10
"""Longest system prompt whose frame is cached, in characters: the longest one seen has about 100,000."""


class Scope(Struct, frozen=True, gc=False):
    """Tells conversations with the same words apart. `start` is where their lineages begin.

    `any_frame`: ignore the system prompt.
    """

    frame: str = ""
    user: str = ""
    tools: str = ""
    start: bytes = b""
    any_frame: bool = False

    def has(self, record: Record) -> bool:
        """Whether a record has this system prompt and this end user. Records of older versions don't name theirs."""
        is_same_frame = bool(record.frame) and (self.any_frame or record.frame == self.frame)
        return is_same_frame and record.user == self.user

    def is_of_other_user(self, record: Record) -> bool:
        """Whether both name an end user, and the two differ."""
        return bool(record.user and self.user) and record.user != self.user


def scope_of(transcript: Transcript, identity: Identity) -> Scope:
    """Return the scope of a request."""
    frame = frame_digest(_before_the_model(transcript.turns), transcript.references)
    tools = digest(b"".join(map(bytes, transcript.tools))).hex() if transcript.tools else ""
    user = transcript.user or identity.user
    if transcript.user and identity.user:
        user = digest_of(transcript.user.encode(), identity.user.encode()).hex()
    start = digest_of(b"" if identity.any_frame else frame.encode(), user.encode())
    return Scope(frame, user, tools, start, any_frame=identity.any_frame)


def frame_digest(prompt: Iterable[Turn], references: Iterable[Raw] = ()) -> str:
    """Return a digest of a system prompt in any wire format, and of `references`, which are elsewhere
    (`Transcript`)."""
    texts: list[str] = []
    for turn in prompt:
        for item in turn.items:
            if isinstance(item, Text):
                texts.append(item.text)
            elif isinstance(item, Unknown) and not is_cache_point(item):
                texts.append(without_cache_marks(item.raw))
    texts += map(without_cache_marks, references)
    if not texts:
        return _NO_PROMPT
    text = "\n".join(texts)
    return _digest_of_prompt(text) if len(text) <= _LONGEST_KEPT else _digest_of_prompt.__wrapped__(text)


def _before_the_model(turns: Iterable[Turn]) -> Iterator[Turn]:
    """Yield the system messages before the model's first turn."""
    for turn in turns:
        if turn.role == "assistant":
            return
        if turn.role == "system":
            yield turn


_ATTRIBUTION = re.compile(rf"\A\s*{ATTRIBUTION}:[^\n]*")
"""Claude Code's first entry: its version, and until 2.1.181 a token for each request."""

_YEAR = r"20(?:2[4-9]|[3-9]\d)"
"""The year of a clock. A date of birth is not a clock, and changes the frame."""
_DAY = r"(?:(?:Mon|Tues?|Wed(?:nes)?|Thu(?:rs)?|Fri|Sat(?:ur)?|Sun)(?:day)?)"
_MONTH = (
    r"(?:Jan(?:uary)?|Feb(?:ruary)?|Mar(?:ch)?|Apr(?:il)?|May|June?|July?|Aug(?:ust)?|Sep(?:t(?:ember)?)?"
    r"|Oct(?:ober)?|Nov(?:ember)?|Dec(?:ember)?)\.?"
)
_NUMBER = r"[0-3]?\d(?:st|nd|rd|th)?"
_ZONE = r"(?:\s?(?:Z\b|(?:UTC|GMT)(?:[+-]\d{1,2}(?::?\d\d)?)?\b|[A-Z]{2,4}T\b|[+-]\d\d:?\d\d\b|\([A-Z]{2,5}\)))*"
_TIME = rf"(?:[01]?\d|2[0-3])(?::[0-5]\d){{1,2}}(?:[.,]\d{{1,9}})?(?:\s?(?:[AaPp][Mm]\b|[ap]\.m\.))?{_ZONE}"
_DATES = (
    rf"{_YEAR}([-/.])[01]?\d\1[0-3]?\d",
    rf"[0-3]?\d([-/.])[0-3]?\d(?:\2){_YEAR}",
    rf"{_MONTH}\s+{_NUMBER}(?:,?\s+{_TIME})?,?\s+{_YEAR}",
    rf"{_NUMBER}\s+(?:of\s+)?{_MONTH},?\s+{_YEAR}",
    rf"{_MONTH},?\s+{_YEAR}",
    rf"{_YEAR}年[01]?\d月[0-3]?\d日",
)
_CLOCK = re.compile(
    rf"(?<![\w:./-])(?:{_DAY},?\s+)?(?:{'|'.join(_DATES)})(?:(?:T|,?\s+(?:at\s+)?){_TIME})?(?:,?\s*\(?{_DAY}\)?)?(?![\w:-])"
    rf"|(?<![\w:./-]){_TIME}(?![\w:-])"
)


_MAY_BE_CLOCK = re.compile(r"20[2-9]\d|\d:[0-5]\d")
"""A quick check, ten times as fast: only lines that match are searched for dates and times."""


@lru_cache(128)
def _digest_of_prompt(text: str) -> str:
    text = _ATTRIBUTION.sub("", text, count=1)
    if _MAY_BE_CLOCK.search(text) is not None:
        lines = (_CLOCK.sub("\0", line) if _MAY_BE_CLOCK.search(line) else line for line in text.split("\n"))
        text = "\n".join(lines)
    return digest("".join(text.split()).encode("utf-8", "replace")).hex()


_NO_PROMPT = _digest_of_prompt.__wrapped__("")
