"""Estimates the tokens of a request by its characters, for counts that no provider can give.

A token for 4.5 letters or blanks, for 2.5 digits or signs, for 3 bytes of anything else (a Chinese character), and
fixed numbers for images, files and the instructions that come with tools. Names and values of the JSON count, as tools
and their schemas reach the model.

Rounded up, because a client with too low a number compacts its conversation too late. Linear in the size of the
request; no tokenizer is loaded.
"""

from __future__ import annotations

import math
import re
import string

import msgspec
from msgspec import Struct

from thoughtline.formats import FORMATS
from thoughtline.formats.json_text import NULL, encode, members
from thoughtline.formats.wire import Wire
from thoughtline.values.turns import FormatName

ESTIMATE_HEADER = (b"x-thoughtline-estimate", b"true")

MEDIA_TOKENS = 1500
"""An image of one megapixel: about 1,400 tokens at Anthropic, 765 to 1,100 at OpenAI, 258 to 1,100 at Google."""

TOOLS_TOKENS = 300
"""Instructions for calling tools: 290 to 350 tokens at Anthropic (docs, Tool use), fewer elsewhere."""

_UNCOUNTED = frozenset({404, 405, 501})
_LETTERS = (string.ascii_letters + string.whitespace).encode()
_SIGNS = (string.digits + string.punctuation).encode()
_OPAQUE = frozenset({"signature", "thoughtSignature", "thought_signature", "encrypted_content", "reasoning_opaque"})
"""Opaque reasoning, for which a provider counts the tokens it stands for: about one per six characters."""

_MEDIA = re.compile(r"data:|[A-Za-z0-9+/_=-]{1000}")


def is_uncounted(status: int, body: bytes, model: str) -> bool:
    """Whether the provider has no address for counting tokens, rather than no such model."""
    return status in _UNCOUNTED and not (model and model.encode("utf-8", "replace") in body)


def counted_request(body: bytes, wire: Wire) -> bytes:
    """Return the part of the request to be counted."""
    try:
        return bytes(members(body).get(wire.count_inside, body)) if wire.count_inside else body
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return body


def count_of(answer: bytes, wire: Wire, format: FormatName) -> bytes | None:
    """Return a provider's count in the client's format; None if the answer has none."""
    try:
        number = msgspec.json.decode(members(answer).get(wire.count_member, NULL), type=int)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None
    return count_body(number, format)


def count_body(number: int, format: FormatName) -> bytes:
    """Return the answer of a token count in a client's format."""
    wire = FORMATS[format]
    return encode({**wire.count_beside, wire.count_member: number})


def estimate_tokens(body: bytes) -> int:
    """Return an upper estimate. A body that can't be decoded counts as text."""
    try:
        read: object = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return math.ceil(_of_bytes(body))
    has_tools = isinstance(read, dict) and (read.get("tools") or read.get("toolConfig"))
    total = float(TOOLS_TOKENS) if has_tools else 0.0
    left: list[tuple[str, object]] = [("", read)]
    while left:
        name, value = left.pop()
        match value:
            case str():
                total += _of_text(name, value)
            case dict():
                total += sum(_of_bytes(key.encode()) for key in value)
                left += value.items()
            case list():
                left += [(name, one) for one in value]
            case _:
                total += 1
    return max(1, math.ceil(total))


def _of_text(name: str, text: str) -> float:
    if name in _OPAQUE:
        return len(text) / 6
    if len(text) >= 1000 and _MEDIA.match(text):
        return MEDIA_TOKENS
    return _of_bytes(text.encode("utf-8", "replace"))


def _of_bytes(text: bytes) -> float:
    rest = text.translate(None, _LETTERS)
    others = len(rest.translate(None, _SIGNS))
    return (len(text) - len(rest)) / 4.5 + (len(rest) - others) / 2.5 + others / 3


# --- the ratio of a model's count to our estimate ---------------------------------------------------------------------
# Learned from its answers to correct the next estimate: only for models whose tokens clients ask for, and from one
# answer in ten, since an estimate reads a whole request.


EVERY = 10
_MAX_TARGETS = 256
_MARGIN = 1.05
"""A client with too low a number compacts too late."""

_LEAST, _MOST = 0.25, 4.0
"""Beyond these, something else is being counted: images by another measure, or a prompt that the provider adds."""

_WEIGHT = 0.3


class _Ratio(Struct):
    value: float = 0.0
    answers: int = 0


class TokenRatios:
    """Ratios by the name of a target."""

    def __init__(self) -> None:
        self.targets: dict[str, _Ratio] = {}

    def corrected(self, target: str, estimate: int) -> int:
        """Return the estimate corrected for the model; unchanged until something was learned."""
        known = self.targets.get(target)
        if known is None and len(self.targets) < _MAX_TARGETS:
            self.targets[target] = _Ratio()
        return math.ceil(estimate * known.value * _MARGIN) if known is not None and known.value else estimate

    def wants(self, target: str) -> bool:
        """Whether to learn from the next answer of a target."""
        known = self.targets.get(target)
        if known is None:
            return False
        known.answers += 1
        return known.answers % EVERY == 1

    def learn(self, target: str, estimate: int, counted: int) -> None:
        """Learn from a provider's count for a request with this estimate."""
        known = self.targets.get(target)
        if known is None or estimate <= 0 or counted <= 0:
            return
        ratio = min(max(counted / estimate, _LEAST), _MOST)
        known.value = ratio if not known.value else known.value + _WEIGHT * (ratio - known.value)
