"""An admin request as handlers see it, its answers, and the row of the table that names them."""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Mapping
from typing import Literal, NamedTuple, TypeAlias, TypeVar, get_args
from urllib.parse import unquote_plus

import msgspec
from msgspec import NODEFAULT, Struct
from msgspec.structs import FieldInfo

from thoughtline.gateway.state import State
from thoughtline.values.errors import Declined
from thoughtline.values.nearest import did_you_mean

MAX_PARAMETER_CHARS = 1024
_INTEGER = re.compile(r"([+-]?)0*(0|[1-9][0-9]*)")
Query = TypeVar("Query", bound=Struct)


class AdminRequest(NamedTuple):
    """A request. `names` are the values of the path's open parts."""

    state: State
    method: str
    headers: Mapping[bytes, bytes]
    query: str
    names: Mapping[str, str]
    body: bytes
    peer: str
    scheme: str
    http_version: str = "1.1"

    def header(self, name: bytes) -> str:
        return self.headers.get(name, b"").decode("latin-1").strip()


class Whole(NamedTuple):
    """An answer with one body: a struct as JSON, or bytes of another kind.

    For the audit trail: `code` is that of an error, `done` what was changed.
    """

    content: Struct | bytes
    status: int = 200
    content_type: str = "application/json"
    headers: tuple[tuple[bytes, bytes], ...] = ()
    code: str = ""
    done: str = ""

    @property
    def body(self) -> bytes:
        return self.content if isinstance(self.content, bytes) else msgspec.json.encode(self.content)


class Stream(NamedTuple):
    """An answer that continues until the client or the server disconnects."""

    pieces: AsyncGenerator[bytes, None]
    content_type: str


def nearest(name: str, known: Iterable[str]) -> str:
    """Return a remedy for an unknown name: a similar one, or else the list of all."""
    remedy = did_you_mean(name, sorted(known))
    return remedy[0].upper() + remedy[1:]


def decode_query(text: str, kind: type[Query]) -> Query:
    """Decode the parameters of a query. Raises `Declined` for an unknown name or an invalid value."""
    fields = {field.encode_name: field for field in msgspec.structs.fields(kind)}
    given: dict[str, str | int] = {}
    for part in filter(None, text.split("&")):
        name, _, value = part.partition("=")
        name, value = _unquoted(name), _unquoted(value)
        if name not in fields:
            raise Declined(400, "unknown_parameter", f"There is no parameter {name[:60]!r}.", nearest(name, fields))
        if name in given:
            raise Declined(400, "repeated_parameter", f"{name} is given twice.", "Give it once.")
        given[name] = _value(fields[name], value)
    missing = [name for name, field in fields.items() if field.default is NODEFAULT and name not in given]
    if missing:
        raise Declined(400, "missing_parameter", f"{missing[0]} is missing.", f"Add ?{missing[0]}=…")
    return msgspec.convert(given, kind)


def choices_of(field: FieldInfo) -> tuple[str, ...]:
    """Return the allowed words of a parameter; empty if it may be any."""
    kinds = (field.type, *get_args(field.type))
    return next((words for kind in kinds if (words := _words(kind))), ())


def _words(kind: object) -> tuple[str, ...]:
    words = get_args(kind)
    return words if words and all(isinstance(word, str) for word in words) else ()


def _unquoted(text: str) -> str:
    try:
        plain = unquote_plus(text, errors="strict")
    except UnicodeDecodeError:
        raise Declined(400, "bad_parameter", "The query is not UTF-8.", "Percent-encode it as UTF-8.") from None
    if "\0" in plain or len(plain) > MAX_PARAMETER_CHARS:
        raise Declined(
            400, "bad_parameter", f"A parameter has at most {MAX_PARAMETER_CHARS} characters, none of them NUL.", ""
        )
    return plain


def _value(field: FieldInfo, text: str) -> str | int:
    if field.type is int:
        return _integer(field.encode_name, text)
    words = choices_of(field)
    if words and text not in words:
        problem = f"{field.encode_name} can't be {text[:60]!r}."
        raise Declined(400, "bad_parameter", problem, nearest(text, words))
    return text


def _integer(name: str, text: str) -> int:
    """Decode an integer of any length, and clamp it to 18 digits: its use has narrower bounds."""
    found = _INTEGER.fullmatch(text)
    if found is None:
        raise Declined(400, "bad_parameter", f"{name} is a whole number, not {text[:60]!r}.", "")
    return int(found[1] + found[2][:18]) if len(found[2]) <= 18 else int(found[1] + "9" * 18)


Handler: TypeAlias = Callable[[AdminRequest], Awaitable[Whole | Stream]]
Access = Literal["open", "admin", "metrics"]


class Nothing(Struct, frozen=True):
    """No parameters."""


class Row(NamedTuple):
    """An address. `answer` is the type of its JSON; `body` that of its request, with at most `max_body` bytes.

    `also` are statuses with the same answer as `status`. `takes_any_object`: a body of another shape is also valid.
    """

    method: str
    path: str
    serve: Handler
    summary: str
    answer: type[Struct] | None
    access: Access = "admin"
    query: type[Struct] = Nothing
    body: type[Struct] | None = None
    body_types: tuple[str, ...] = ("application/json",)
    takes_any_object: bool = False
    max_body: int | None = None
    content_type: str = "application/json"
    status: int = 200
    refusals: tuple[int, ...] = ()
    also: tuple[int, ...] = ()
