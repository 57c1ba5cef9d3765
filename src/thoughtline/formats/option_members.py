"""Reading and writing the options of a request: which members were read, which options could be written.

A format lists the members that are one option each; the rest it reads and writes itself. A `Reader` takes members by
name and remembers where they stood; what nobody took is left over. An `OptionWriter` collects members; an option that
is set and that nobody wrote is dropped, and says so.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from typing import Any, NamedTuple, TypeVar

import msgspec
from msgspec import Raw

from thoughtline.formats.bodies import thinking_switch
from thoughtline.formats.json_text import NULL, decode, encode, is_given, members, object_of, pointer
from thoughtline.values.options import (
    EFFORTS,
    CustomTool,
    Effort,
    FunctionTool,
    Options,
    ReadOptions,
    StructuredOutput,
    WrittenOptions,
)
from thoughtline.values.turns import ThinkingSwitch

T = TypeVar("T")
_NO_OPTIONS = Options()
_APART = frozenset({"model", "is_streaming", "wants_usage", "thinking", "cache_mark"})
"""Options that somebody else writes: the address, the framing, the table of efforts, the conversation."""

ANY_OBJECT = b'{"type":"object","properties":{}}'
"""The schema of a function that says nothing of its parameters, for formats that insist on one."""


class Member(NamedTuple):
    """A member that is an option: of its names the first is written, all are read."""

    option: str
    kind: Any
    names: tuple[str, ...]


def member(option: str, kind: Any, *names: str) -> Member:
    """A row of a table. `kind` is a type, `tuple` for a list of strings, `Raw` for JSON that is passed on; without a
    name the member has that of the option."""
    return Member(option, kind, names or (option,))


@cache
def _decoder(kind: Any) -> msgspec.json.Decoder[Any]:
    return msgspec.json.Decoder(kind)


class Reader:
    """The members of an object, taken one by one."""

    def __init__(self, body: bytes | Raw, place: str = "", places: dict[str, str] | None = None) -> None:
        self._members = members(body)
        self._place = place
        self._left = dict.fromkeys(self._members)
        self.places: dict[str, str] = {} if places is None else places

    def raw(self, field: str, *names: str) -> Raw | None:
        """The first of these members that is there and not null."""
        for name in names or (field,):
            value = self._members.get(name)
            self._left.pop(name, None)
            if value is not None and is_given(value):
                self.places.setdefault(field, self._place + pointer([name]))
                return value
        return None

    def take(self, kind: type[T], field: str, *names: str) -> T | None:
        """The same, read as this type; one of another type is the client's mistake, told with its place."""
        value = self.raw(field, *names)
        if value is None:
            return None
        decoder: msgspec.json.Decoder[Any] = _decoder(kind)  # type: ignore[arg-type]  # a type can be hashed
        taken: T = decode(decoder, value, self.places[field])
        return taken

    def names(self, field: str, *names: str) -> tuple[str, ...]:
        """A list of strings; one string by itself is a list of one."""
        value = self.raw(field, *names)
        if value is None:
            return ()
        if bytes(value)[:1] == b'"':
            return (decode(_decoder(str), value, self.places[field]),)
        return tuple(decode(_decoder(list[str]), value, self.places[field]))

    def read(self, rows: Iterable[Member]) -> dict[str, Any]:
        """The options of these rows that are set."""
        found = {row.option: self._read(row) for row in rows}
        return {option: value for option, value in found.items() if value is not None}

    def _read(self, row: Member) -> Any:
        if row.kind is Raw:
            return self.raw(row.option, *row.names)
        if row.kind is tuple:
            return self.names(row.option, *row.names)
        return self.take(row.kind, row.option, *row.names)

    def elements(self, field: str, *names: str) -> tuple[Raw, ...]:
        value = self.raw(field, *names)
        return () if value is None else tuple(decode(_decoder(list[Raw]), value, self.places[field]))

    def inner(self, *names: str) -> Reader:
        """The object that is a member of this one; an empty one if it is not there."""
        for name in names:
            value = self._members.get(name)
            self._left.pop(name, None)
            if value is not None and bytes(value)[:1] == b"{":
                return Reader(value, self._place + pointer([name]), self.places)
        return Reader(b"{}", self._place, self.places)

    def switch(self, *names: str) -> ThinkingSwitch:
        """What these members say about thinking."""
        raws = [self.raw("thinking", name) for name in names]
        return thinking_switch(*(NULL if raw is None else raw for raw in raws))

    def skip(self, *names: str) -> None:
        """Members that are read elsewhere."""
        for name in names:
            self._left.pop(name, None)

    def skip_default(self, name: str, *values: bytes) -> None:
        """A member that asks for what is done anyway."""
        if bytes(self._members.get(name, NULL)) in values:
            self._left.pop(name, None)

    @property
    def leftovers(self) -> tuple[str, ...]:
        return tuple(self._place + pointer([name]) for name in self._left if is_given(self._members[name]))

    def done(self, options: Options, *inner: Reader) -> ReadOptions:
        left = (*self.leftovers, *(place for reader in inner for place in reader.leftovers))
        return ReadOptions(options, self.places, left)


class OptionWriter:
    """Members in the making."""

    def __init__(self, options: Options) -> None:
        self._options = options
        self._members: list[tuple[str, bytes]] = []
        self._carried: set[str] = set(_APART)

    def put(self, field: str, name: str, value: object) -> None:
        """A member for an option; an option that is not set gets none."""
        self._carried.add(field)
        if value is not None and value != ():
            self._members.append((name, bytes(value) if isinstance(value, Raw) else encode(value)))

    def put_json(self, name: str, value: bytes) -> None:
        """A member that is JSON text already."""
        self._members.append((name, value))

    def put_object(self, name: str, value: bytes) -> None:
        """An object, if anything is in it."""
        if value != b"{}":
            self.put_json(name, value)

    def write(self, rows: Iterable[Member]) -> None:
        """The members of these rows."""
        for row in rows:
            self.put(row.option, row.names[0], getattr(self._options, row.option))

    def inner(self, rows: Iterable[Member], *rest: tuple[str, object]) -> bytes:
        """An object with the members of these rows, and some more, to be put into this one."""
        inner = OptionWriter(self._options)
        inner.write(rows)
        self.carry(*inner._carried)
        inner._members += [(key, encode(value)) for key, value in rest]
        return object_of(inner._members)

    def carry(self, *fields: str) -> None:
        """Options that were written by other means."""
        self._carried.update(fields)

    def done(self) -> WrittenOptions:
        unwritten = [name for name in Options.__struct_fields__ if name not in self._carried]
        dropped = [name for name in unwritten if getattr(self._options, name) != getattr(_NO_OPTIONS, name)]
        return WrittenOptions(tuple(self._members), tuple(dropped))


def given(raw: Raw) -> Raw | None:
    """A member that is passed on; None if it is not there."""
    return raw if is_given(raw) else None


def effort_named(word: str | None) -> Effort | None:
    return next((effort for effort in EFFORTS if effort == word), None)


def described(tool: FunctionTool | CustomTool, *rest: tuple[str, bytes | Raw | None]) -> bytes:
    """The object of a tool: its name, what is said of it, and what its format adds."""
    description = encode(tool.description) if tool.description is not None else None
    return object_of([("name", encode(tool.name)), ("description", description), *rest])


def schema_members(output: StructuredOutput) -> dict[str, object]:
    """How OpenAI's formats tell the schema of an answer."""
    schema: dict[str, object] = {"name": output.name or "answer", "schema": output.schema}
    return schema | ({"description": output.description} if output.description is not None else {})
