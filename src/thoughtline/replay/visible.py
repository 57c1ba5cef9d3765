"""The visible content of a turn, in a form that clients' habits don't change.

Clients trim text, turn strings into lists of parts and back, add cache markers, rename ids, rewrite arguments with
other spacing, key order, number forms and escapes, and send results in the order in which tools finished. None of that
may change how a turn is recognised. The model's text and calls do.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple, TypeAlias

import msgspec
from msgspec import Raw

from thoughtline.values.items import CACHE_POINT, Item, Text, ToolCall, ToolResult, Unknown, is_cache_point, plain_token
from thoughtline.values.records import digest
from thoughtline.values.turns import Turn


class VisibleCall(NamedTuple):
    """A call by name and arguments."""

    name: str
    arguments: str


class Visible(NamedTuple):
    """What a user could see of a model step: its text without white space, and its calls."""

    words: str
    calls: tuple[VisibleCall, ...]


class Shown(NamedTuple):
    """A model step as its lineage sees it. `is_bare`: it has only text and calls, and no seals.

    `words` and `calls` are the same for an outline: the calls in their order, with their ids, and items of unknown
    kinds. `text` is the text including inner white space.
    """

    content: bytes
    is_bare: bool
    words: str
    is_empty: bool
    calls: list[str]
    text: str


def shown_of(items: Sequence[Item]) -> Shown:
    """Return the visible content of a model step. Calls count as a multiset: parallel calls have no order.

    Items of other kinds count only if there is nothing else, such as a `computer_call` alone: clients drop them.
    """
    words = ""
    calls = []
    named = []
    is_bare = True
    for item in items:
        if isinstance(item, Text):
            words += item.text
            is_bare = is_bare and item.seal is None
        elif isinstance(item, ToolCall):
            name, arguments = visible_call(item)
            call = f"{len(name)}:{name}{len(arguments)}:{arguments}"
            calls.append(call)
            named.append(f"{item.id}\0{call}")
            is_bare = is_bare and item.seal is None
        elif not is_cache_point(item):
            is_bare = False
            if isinstance(item, Unknown):
                named.append(f"\0{item.kind}\0")
    if not words and not calls and not is_bare:
        calls = [f"{len(name)}:{name}{len(value)}:{value}" for name, value in _others(items)]
    if len(calls) > 1:
        calls.sort()
    text, words = words.strip(), "".join(words.split())
    content = f"step:{len(words)}:{words}{''.join(calls)}".encode()
    return Shown(content, is_bare, words, not words and not calls, calls=named, text=text)


def packed(kind: str, *parts: str) -> bytes:
    """Encode texts unambiguously as bytes."""
    text = f"{kind}:"
    for part in parts:
        text += f"{len(part)}:{part}"
    return text.encode()


_BRIEF = 256
"""A digest of this few bytes costs no more than one of sixteen."""


def brief(content: bytes) -> bytes:
    """Return the content of a turn, or its digest if it is long, so that long texts are hashed once."""
    return content if len(content) <= _BRIEF else b"digest:" + digest(content)


def visible_of(items: Sequence[Item]) -> Visible:
    """Return the visible content of a model step."""
    words = ""
    calls = []
    for item in items:
        if isinstance(item, Text):
            words += item.text
        elif isinstance(item, ToolCall):
            calls.append(visible_call(item))
    return Visible("".join(words.split()), tuple(calls or (() if words else _others(items))))


def _others(items: Sequence[Item]) -> list[VisibleCall]:
    """Return the items that are neither text nor calls nor reasoning, by their ids or else by their values."""
    kinds = ("reasoning", CACHE_POINT)
    others = [item for item in items if isinstance(item, Unknown) and not item.kind.startswith(kinds)]
    return [VisibleCall(item.kind, other_name(item) or other_value(item)) for item in others if item.kind]


def is_same_call(one: ToolCall, other: ToolCall) -> bool:
    """Whether two calls ask for the same thing."""
    if one.name != other.name:
        return False
    return one.arguments == other.arguments or visible_call(one) == visible_call(other)


def visible_call(call: ToolCall) -> VisibleCall:
    arguments = call.arguments.strip() if call.is_custom else canonical_json(call.arguments)
    return VisibleCall(call.name, arguments)


def _number(text: str) -> float:
    """Read a number, so that `1.0` and `1e0` equal `1`."""
    value = float(text)
    if math.isinf(value):
        raise ValueError("a number that no float holds")
    return int(value) if value.is_integer() and abs(value) < 2**53 else value


_decode_value = msgspec.json.Decoder(float_hook=_number).decode
_encode_value = msgspec.json.Encoder(order="deterministic").encode


_SHORT = 512
"""Maximum length of arguments whose value is cached: histories repeat the same ones."""


def canonical_json(text: str) -> str:
    """Return arguments by their value: key order, white space, number form and escapes don't matter."""
    if text in ("", "{}"):
        return "{}"
    return _canonical_short(text) if len(text) <= _SHORT else _canonical(text)


def _canonical(text: str) -> str:
    try:
        return _encode_value(_decode_value(text)).decode()
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
        return text.strip()  # truncated, or a number that no float can hold: equal only to itself


_canonical_short = lru_cache(8192)(_canonical)


def said_by(turn: Turn) -> bytes:
    """Return the content of a turn that is not the model's: its text and images, and who says it; its results count
    separately."""
    if len(turn.items) == 1 and isinstance(turn.items[0], Text) and not turn.speaker:
        return f"{turn.role}-says:{turn.items[0].text.strip()}".encode()
    texts = [item.text for item in turn.items if isinstance(item, Text)]
    parts = [item for item in turn.items if isinstance(item, Unknown) and not is_cache_point(item)]
    others = [without_cache_marks(item.raw) for item in parts]
    text = "\n".join(texts).strip()
    if turn.speaker:
        return packed(turn.role, "named", turn.speaker, text, *others)
    return packed(turn.role, text, *others) if others else f"{turn.role}-says:{text}".encode()


def without_cache_marks(value: Raw) -> str:
    """Return the value of a part or tool, without the marker where a client wants its prompt cached."""
    text = str(bytes(value), "utf-8", "replace")
    if '"cache_control"' not in text:
        return canonical_json(text)
    try:
        known = _decode_value(value)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return text
    if isinstance(known, dict):
        known.pop("cache_control", None)
    return _encode_value(known).decode()


# A text result is inside an object where a wire requires one, and an object is JSON text where a wire requires text.
# Both are the same result.
_ONE_TEXT = ("result", "output", "content", "error")


def result_text(content: Raw) -> str:
    """Return the text of a result, from a string or a list of text parts; other JSON unchanged."""
    try:
        value = _decode_value(content)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return str(bytes(content), "utf-8", "replace").strip()
    if isinstance(value, dict) and len(value) == 1:
        name, held = next(iter(value.items()))
        value = held if name in _ONE_TEXT and isinstance(held, str) else value
    match value:
        case str():
            text = value.strip()
        case list():
            text = "\n".join(map(_part_text, value)).strip()
        case dict():
            return _encode_value(value).decode()
        case _:
            return bytes(content).decode().strip()
    if text[:1] != "{":
        return text
    try:
        value = _decode_value(text)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return text
    return _encode_value(value).decode() if isinstance(value, dict) else text


def _part_text(part: Any) -> str:
    if isinstance(part, dict):
        for name in ("text", "json"):
            if name in part:
                value = part[name]
                return value if isinstance(value, str) else _encode_value(value).decode()
        return str(part.get("type", ""))
    return str(part)


def shows(request: Visible, record: Visible) -> bool:
    """Whether a client's turn is what is left of the record's visible content.

    A client may have dropped calls of a parallel set or the text with them; it may not show a call or a word that the
    model did not write. A turn without calls does not match a record with some.
    """
    if bool(request.calls) != bool(record.calls) or not _is_subset(request.calls, record.calls):
        return False
    if request.words == record.words:
        return True
    return bool(request.calls) and not request.words


_TAG = re.compile(r"</?(think|thinking|thought|reasoning)[^<>]*>", re.IGNORECASE)


def shows_glued(request: Visible, record: Visible, thought: str) -> bool:
    """Whether a client put the record's own reasoning, tagged or not, before its text."""
    own = "".join(thought.split())
    if not own or not request.words or not _is_subset(request.calls, record.calls):
        return False
    return "".join(_TAG.sub("", request.words).split()) == own + record.words


def _is_subset(some: Sequence[VisibleCall], all_of_them: Sequence[VisibleCall]) -> bool:
    return not some or Counter(some) <= Counter(all_of_them)


# --- items of other kinds: a provider's own tools and their results ---------------------------------------------------

Other: TypeAlias = Unknown | ToolResult

_IDS = ("id", "tool_use_id", "call_id", "toolUseId")
_MARKS = ("cache_control", "thoughtSignature", "thought_signature")
"""Members that don't identify an item: a client's marker, and a seal, which is compared separately."""

_BASE64 = re.compile(r"[A-Za-z0-9+/_=-]{24,}")


def other_name(item: Other) -> str:
    """Return the id that its maker gave an item, or that of the call it answers; empty if it has none."""
    if isinstance(item, ToolResult):
        return item.call_id or ""
    value = _value_of(item.raw)
    inner = value.get(item.kind) if isinstance(value, dict) else None
    for held in (value, inner):  # Gemini and Converse name the kind by a member, which contains the id
        if isinstance(held, dict):
            for name in _IDS:
                if isinstance(held.get(name), str) and held[name]:
                    return str(held[name])
    return ""


def other_value(item: Other) -> str:
    """Return the value of an item, without markers and empty members: clients write those or leave them out."""
    if isinstance(item, ToolResult):
        return result_text(item.content)
    try:
        return _encode_value(_value_of(item.raw)).decode()
    except RecursionError:
        return str(bytes(item.raw), "utf-8", "replace")


def is_bare(item: Text) -> bool:
    """Whether a text has nothing but its words: no client's marker, no citation."""
    try:
        return not item.raw or _decode_value(item.raw).keys() <= {"type", "text"}
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, AttributeError):
        return False


def is_part_of(shown: Other, made: Other) -> bool:
    """Whether a client shows the rest of an item after its library removed members that it does not know."""
    if isinstance(shown, ToolResult) or isinstance(made, ToolResult):
        return False
    try:
        return _is_within(_value_of(shown.raw), _value_of(made.raw))
    except RecursionError:
        return False


def _value_of(raw: Raw) -> Any:
    try:
        return _pruned(_decode_value(raw))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return str(bytes(raw), "utf-8", "replace")


def _pruned(value: Any) -> Any:
    """Return the value without markers and empty members."""
    if isinstance(value, list):
        return [_pruned(held) for held in value]
    if isinstance(value, dict):
        return {name: _pruned(held) for name, held in value.items() if held is not None and name not in _MARKS}
    return value


def _is_within(some: Any, whole: Any) -> bool:
    if isinstance(some, dict) and isinstance(whole, dict):
        return all(name in whole and _is_within(held, whole[name]) for name, held in some.items())
    if isinstance(some, list) and isinstance(whole, list):
        return len(some) == len(whole) and all(map(_is_within, some, whole))
    if isinstance(some, str) and isinstance(whole, str) and _BASE64.fullmatch(some):
        return plain_token(some) == plain_token(whole)
    return bool(some == whole)
