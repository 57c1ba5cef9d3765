"""JSON as text: decodes what we need, with the position of every problem, and edits without changing any other byte.

Decoding uses typed msgspec decoders. Editing works on spans: msgspec gives the length of each raw value, so a member or
element is found by adding up lengths, without decoding its content.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Container, Iterable, Sequence
from functools import lru_cache, wraps
from typing import Any, NamedTuple, ParamSpec, TypeAlias, TypeVar

import msgspec
from msgspec import Raw

from thoughtline.formats.lone_surrogates import readable
from thoughtline.formats.nesting import TOO_DEEP, check_nesting
from thoughtline.values.errors import DecodeError, EncodeError, LimitExceeded

T = TypeVar("T")
P = ParamSpec("P")
Json: TypeAlias = bytes | Raw
Path: TypeAlias = Sequence[str | int]

NULL = Raw(b"null")
"""Default for members that are not decoded: absent and null look alike."""

_LINE_BREAKS = ((b"\xc2\x85", rb"\u0085"), (b"\xe2\x80\xa8", rb"\u2028"), (b"\xe2\x80\xa9", rb"\u2029"))
"""Characters that JSON allows in strings, but at which readers of streams end a line: JavaScript's expressions at
U+2028 and U+2029 (@google/genai), Python's `splitlines` at U+0085 too (httpx `iter_lines`).
"""

_BETWEEN = b", \t\n\r"
_BLANK = b" \t\n\r"
_SHORT_NAME = 40
_AFTER_VALUE = (b",", b"}", b" ", b"\t", b"\n", b"\r")
_WHITE = re.compile(rb"[ \t\n\r]*")
_STRING = re.compile(rb'"(?:[^"\\]|\\.)*"', re.DOTALL)
_SCALAR = re.compile(rb"[^ \t\n\r,\]}]+")
_STRUCTURAL = re.compile(rb'"(?:[^"\\]|\\.)*"|[\[{]|[\]}]', re.DOTALL)
_NO_UTF8 = re.compile("[\udc80-\udcff]")
"""How Python decodes such bytes: PEP 383."""

_UNREADABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
_MSGSPEC_PLACE = re.compile(r" - at `\$?([^`]*)`$")
_MSGSPEC_STEP = re.compile(r"\.([^.\[\]]+)|\[(\d+|\.\.\.)\]")
_MSGSPEC_BYTE = re.compile(r" \(byte (\d+)\)")

_text_of = msgspec.json.Encoder().encode
_list_decoder = msgspec.json.Decoder(list[Raw])
_any_decoder = msgspec.json.Decoder(Raw)
_plain_decoder = msgspec.json.Decoder()
_string_decoder = msgspec.json.Decoder(str)
_string_of = _string_decoder.decode
_content_decoder: msgspec.json.Decoder[str | list[Raw] | None] = msgspec.json.Decoder(str | list[Raw] | None)
_content_of = _content_decoder.decode

_members_of: Callable[[Json], dict[str, Raw]] = msgspec.json.Decoder(dict[str, Raw]).decode

elements: Callable[[Json], list[Raw]] = _list_decoder.decode
"""The elements of an array, not decoded."""


def members(text: Json) -> dict[str, Raw]:
    """The members of an object, values not decoded. The last of several members with one key wins.

    A name that is not UTF-8 matches no name we look for: its bytes are read as question marks, and stay unchanged.
    """
    try:
        return _members_of(text)
    except UnicodeDecodeError:
        whole = bytes(text)
        return {one.key: Raw(whole[one.value_start : one.end]) for one in member_spans(whole)}


class Member(NamedTuple):
    """One member of an object: its key, and the positions of key and value."""

    key: str
    start: int
    value_start: int
    end: int


def encode(value: object) -> bytes:
    """A value as JSON text on a single line for every reader."""
    text = _text_of(value)
    return text if text.isascii() else escape_line_breaks(text)


def json_given(value: object) -> bytes:
    """The JSON of what a program passes: bytes as they are, text, or what Python reads JSON as."""
    if isinstance(value, bytes):
        return value
    if isinstance(value, str | bytearray | memoryview):
        return value.encode() if isinstance(value, str) else bytes(value)
    if not isinstance(value, dict | list):
        raise TypeError(f"JSON is bytes, text, a dictionary or a list, not {type(value).__name__}")
    return json.dumps(value).encode()


def escape_line_breaks(text: bytes) -> bytes:
    """JSON text with the line breaks in its strings escaped. JSON has none of them outside of strings."""
    if not text.isascii():
        for character, escape in _LINE_BREAKS:
            text = text.replace(character, escape)
    return text


def pointer(path: Path) -> str:
    """A JSON pointer (RFC 6901)."""
    return "".join("/" + str(step).replace("~", "~0").replace("/", "~1") for step in path)


def of_upstream(read: Callable[P, T]) -> Callable[P, T]:
    """Decorates a function that decodes an upstream's data: errors in it are the upstream's fault."""

    @wraps(read)
    def reading(*args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return read(*args, **kwargs)
        except DecodeError as error:
            raise error.from_upstream() from None

    return reading


def decode(decoder: msgspec.json.Decoder[T], text: Json, place: str = "") -> T:
    """Decode, or raise an error with the problem and its position."""
    try:
        return decoder.decode(text)
    except msgspec.ValidationError as error:
        raise _wrong_type(error, place) from None
    except msgspec.DecodeError as error:
        check_nesting(bytes(text), place or "/")
        raise _not_json(error, place, len(bytes(text))) from None
    except UnicodeDecodeError as error:
        raise DecodeError(f"invalid UTF-8 in a string: byte 0x{error.object[error.start]:02x}", place or "/") from None
    except RecursionError:
        raise LimitExceeded(TOO_DEEP, place or "/") from None


class _Kind(msgspec.Struct, gc=False):
    type: str = ""


_kind_decoder = msgspec.json.Decoder(_Kind)


def decode_kind(decoder: msgspec.json.Decoder[T], text: Raw, known: Container[str], place: str = "") -> T | str:
    """Decode a value that names its kind in `type`. An unknown kind may have members with our names and other types:
    then only the kind is decoded and returned.
    """
    try:
        return decode(decoder, text, place)
    except DecodeError:
        kind = decode(_kind_decoder, text, place).type
        if kind in known:
            raise
        return kind


def _wrong_type(error: msgspec.ValidationError, place: str) -> DecodeError:
    message = str(error)
    found = _MSGSPEC_PLACE.search(message)
    if found is None:
        return DecodeError(message, place or "/")
    steps = _MSGSPEC_STEP.findall(found.group(1))
    inner = pointer([name or ("*" if number == "..." else number) for name, number in steps])
    return DecodeError(message[: found.start()].replace("`", ""), place + inner or "/")


def _not_json(error: msgspec.DecodeError, place: str, size: int) -> DecodeError:
    message = str(error)
    found = _MSGSPEC_BYTE.search(message)
    problem = message[: found.start()] if found else message
    where = f"byte {found.group(1) if found else size}"
    return DecodeError(problem, f"{place} {where}" if place else where)


def decode_content(content: Raw) -> str | list[Raw] | None:
    """A `content` that is text, a list of parts, or null."""
    if content is NULL:
        return None
    try:
        return _content_of(content)  # called for every message of every history: the direct way
    except (msgspec.DecodeError, UnicodeDecodeError):
        return decode(_content_decoder, content, "/content")


def decode_list(text: Json, place: str = "") -> list[Raw]:
    """The elements of a value that must be an array."""
    return decode(_list_decoder, text, place)


def read_or_none(decoder: msgspec.json.Decoder[T], text: Json) -> T | None:
    """The decoded JSON; None if it can't be decoded, or has another shape."""
    try:
        return decoder.decode(text)
    except _UNREADABLE:
        return None


def peek(decoder: msgspec.json.Decoder[T], body: bytes) -> T | None:
    """The same for a client's body, which may have lone surrogates."""
    try:
        return decoder.decode(body)
    except _UNREADABLE:
        spelled = readable(body)
        return None if spelled is None else read_or_none(decoder, spelled)


def plain_value(text: Json) -> Any:
    """JSON as plain values; None if it can't be read."""
    try:
        check_nesting(bytes(text))
    except LimitExceeded:
        return None
    return read_or_none(_plain_decoder, text)


def those_given(*values: Raw) -> tuple[Raw, ...]:
    """The values of members that are present and not null."""
    return tuple(value for value in values if value is not NULL and is_given(value))


def is_given(raw: Raw) -> bool:
    """Whether a member that is not decoded is present and not null."""
    return raw is not NULL and bytes(raw) != b"null"


def is_array(text: Json) -> bool:
    return bytes(text)[:1] == b"["


def _skip_white(text: bytes, position: int) -> int:
    found = _WHITE.match(text, position)
    return found.end() if found else position


def _skip_value(text: bytes, start: int) -> int:
    """The end of the value that starts here. Reads every token: only for values of unknown length."""
    first = text[start : start + 1]
    if first not in (b"{", b"["):
        found = (_STRING if first == b'"' else _SCALAR).match(text, start)
        return found.end() if found else len(text)
    depth = 0
    for token in _STRUCTURAL.finditer(text, start):
        kind = token.group()[:1]
        if kind != b'"':
            depth += 1 if kind in b"[{" else -1
            if depth == 0:
                return token.end()
    return len(text)


def _with_readable_names(text: bytes) -> bytes:
    """The text with a question mark for each byte that is not UTF-8; all positions stay the same."""
    return _NO_UTF8.sub("?", text.decode("utf-8", "surrogateescape")).encode()


def member_spans(text: bytes) -> list[Member]:
    """The position of each member of an object, duplicates included. `text` must be a valid object."""
    try:
        values = _members_of(text)
    except UnicodeDecodeError:
        text = _with_readable_names(text)
        values = _members_of(text)
    spans = []
    position = text.index(b"{") + 1
    if text[position] in _BLANK:
        position = _skip_white(text, position)
    while text[position : position + 1] not in (b"}", b""):
        if text[position : position + 1] == b",":
            position += 1
            if text[position] in _BLANK:
                position = _skip_white(text, position)
        found = _STRING.match(text, position)
        if found is None:  # impossible for text that msgspec accepted
            raise DecodeError("unreadable member name", f"byte {position}")
        key = _string_of(found.group())
        value_start = found.end() + 1
        if text[value_start - 1] in _BLANK or text[value_start] in _BLANK:
            value_start = _skip_white(text, _skip_white(text, value_start - 1) + 1)
        value = bytes(values[key])
        # For a duplicated key msgspec knows only the last value: check before trusting the length. A number may begin
        # like another one, so the text after it must end it.
        end = value_start + len(value)
        if not text.startswith(value, value_start) or text[end : end + 1] not in _AFTER_VALUE:
            end = _skip_value(text, value_start)
        spans.append(Member(key, position, value_start, end))
        position = end
        if end < len(text) and text[end] in _BLANK:
            position = _skip_white(text, end)
    return spans


def element_spans(text: bytes, start: int = 0, end: int | None = None) -> list[tuple[int, int]]:
    """The position of each element of an array: the text, or its part between `start` and `end`."""
    spans = []
    position = text.index(b"[", start) + 1
    for element in _list_decoder.decode(text if end is None else memoryview(text)[start:end]):
        while text[position] in _BETWEEN:
            position += 1
        end = position + len(element)
        spans.append((position, end))
        position = end
    return spans


def set_members(text: Json, changes: Iterable[tuple[str, bytes | None]], spans: list[Member] | None = None) -> bytes:
    """Set or remove (`None`) members of an object; every other byte stays.

    An existing member is changed in place and its duplicates are removed; a new one is appended. `spans` avoids finding
    the members again.
    """
    text = bytes(text)
    wanted = dict(changes)
    spans = member_spans(text) if spans is None else spans
    if not spans:
        opening = text.index(b"{") + 1
        fresh = b",".join(encode(key) + b":" + value for key, value in wanted.items() if value is not None)
        return text[:opening] + fresh + text[opening:]
    last: dict[str, int] = {}
    for position, member in enumerate(spans):
        last[member.key] = position
    pieces = [text[: spans[0].start]]
    for position, member in enumerate(spans):
        if member.key in wanted and (wanted[member.key] is None or last[member.key] != position):
            continue
        if len(pieces) > 1:
            pieces.append(text[spans[position - 1].end : member.start])
        value = wanted.get(member.key)
        pieces.append(
            text[member.start : member.end] if value is None else text[member.start : member.value_start] + value
        )
    for key, value in wanted.items():
        if value is not None and key not in last:
            pieces.append((b"," if len(pieces) > 1 else b"") + encode(key) + b":" + value)
    pieces.append(text[spans[-1].end :])
    return b"".join(pieces)


def span_at(text: bytes, path: Path) -> tuple[int, int] | None:
    """The position of the value at this path, or None."""
    start, end = _skip_white(text, 0), len(text.rstrip())
    for step in path:
        found = _inner_span(text[start:end], step)
        if found is None:
            return None
        start, end = start + found[0], start + found[1]
    return start, end


def _inner_span(text: bytes, step: str | int) -> tuple[int, int] | None:
    if isinstance(step, int):
        spans = element_spans(text) if text[:1] == b"[" else []
        return spans[step] if 0 <= step < len(spans) else None
    members_here = member_spans(text) if text[:1] == b"{" else []
    named = [member for member in members_here if member.key == step]
    return (named[-1].value_start, named[-1].end) if named else None


def replace_at(text: bytes, path: Path, value: bytes) -> bytes:
    """The same text with the value at this path replaced."""
    found = span_at(text, path)
    if found is None:
        raise DecodeError("nothing to replace", pointer(path))
    return text[: found[0]] + value + text[found[1] :]


def decode_each(raws: Iterable[Raw], decode: Callable[[Raw], T], place: str) -> tuple[T, ...]:
    """Decode every element of a list; errors name the element's position."""
    found = []
    for position, raw in enumerate(raws):
        try:
            found.append(decode(raw))
        except DecodeError as error:
            raise error.within(f"{place}/{position}") from None
    return tuple(found)


def as_text(text: Json) -> str:
    """JSON as text. It may not have been decoded before: invalid UTF-8 becomes question marks."""
    return str(bytes(text), "utf-8", "replace")


def arguments_text(raw: Raw) -> str:
    """Call arguments of a format that has them as JSON."""
    text = as_text(raw)
    return "{}" if text == "null" else text


def arguments_object(text: str) -> bytes:
    """Call arguments for a format that has them as JSON. Incomplete ones become an empty object."""
    if not is_json(text or "{}"):
        raise EncodeError("call arguments that are no JSON can't go where JSON is expected")
    return escape_line_breaks((text or "{}").encode())


def is_json(text: str) -> bool:
    try:
        check_nesting(text.encode())
        decode(_any_decoder, text.encode())
    except DecodeError:
        return False
    return True


def array(values: Iterable[Json]) -> bytes:
    """An array of values that are already JSON text."""
    return b"[" + b",".join(map(bytes, values)) + b"]"


def object_of(values: Iterable[tuple[str, Json | None]]) -> bytes:
    """An object of values that are already JSON text, without those that are None."""
    named = []
    for key, value in values:
        if value is not None:
            named.append((_short_name(key) if len(key) <= _SHORT_NAME else encode(key) + b":") + bytes(value))
    return b"{" + b",".join(named) + b"}"


@lru_cache(maxsize=1024)
def _short_name(key: str) -> bytes:
    """A key with its colon. Nearly all are names of a format's members."""
    return encode(key) + b":"
