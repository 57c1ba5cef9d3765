"""Reads and writes the options of a request, and tracks which members were read and which options were written.

A format lists the members that are one option each; it reads and writes the rest itself. A `Reader` returns members by
name and remembers their positions; members not read are left over. An `OptionWriter` collects members; an option that
is set but not written is reported as dropped.
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
"""Options written elsewhere: by the URL, the framing, the table of efforts, the conversation."""

ANY_OBJECT = b'{"type":"object","properties":{}}'
"""The schema of a function without parameters, for formats that require one."""


class Member(NamedTuple):
    """A member that is an option: the first of its names is written, all are read."""

    option: str
    kind: Any
    names: tuple[str, ...]


def member(option: str, kind: Any, *names: str) -> Member:
    """A row of a table. `kind` is a type, `tuple` for a list of strings, `Raw` for JSON that is passed on; the default
    name of the member is that of the option.
    """
    return Member(option, kind, names or (option,))


@cache
def _decoder(kind: Any) -> msgspec.json.Decoder[Any]:
    return msgspec.json.Decoder(kind)


class Reader:
    """The members of an object, read one by one."""

    def __init__(self, body: bytes | Raw, place: str = "", places: dict[str, str] | None = None) -> None:
        self._members = members(body)
        self._place = place
        self._left = dict.fromkeys(self._members)
        self.places: dict[str, str] = {} if places is None else places

    def raw(self, field: str, *names: str) -> Raw | None:
        """The first of these members that is present and not null."""
        for name in names or (field,):
            value = self._members.get(name)
            self._left.pop(name, None)
            if value is not None and is_given(value):
                self.places.setdefault(field, self._place + pointer([name]))
                return value
        return None

    def take(self, kind: type[T], field: str, *names: str) -> T | None:
        """The same, decoded as this type; another type is the client's error, reported with its position."""
        value = self.raw(field, *names)
        if value is None:
            return None
        decoder: msgspec.json.Decoder[Any] = _decoder(kind)  # type: ignore[arg-type]  # a type can be hashed
        taken: T = decode(decoder, value, self.places[field])
        return taken

    def names(self, field: str, *names: str) -> tuple[str, ...]:
        """A list of strings; a single string is a list of one."""
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
        """The object in a member of this one; an empty one if it is missing."""
        for name in names:
            value = self._members.get(name)
            self._left.pop(name, None)
            if value is not None and bytes(value)[:1] == b"{":
                return Reader(value, self._place + pointer([name]), self.places)
        return Reader(b"{}", self._place, self.places)

    def switch(self, *names: str) -> ThinkingSwitch:
        """The value of these members that switch thinking."""
        raws = [self.raw("thinking", name) for name in names]
        return thinking_switch(*(NULL if raw is None else raw for raw in raws))

    def skip(self, *names: str) -> None:
        """Ignore members that are read elsewhere."""
        for name in names:
            self._left.pop(name, None)

    def skip_default(self, name: str, *values: bytes) -> None:
        """Ignore a member that asks for the default."""
        if bytes(self._members.get(name, NULL)) in values:
            self._left.pop(name, None)

    @property
    def leftovers(self) -> tuple[str, ...]:
        return tuple(self._place + pointer([name]) for name in self._left if is_given(self._members[name]))

    def done(self, options: Options, *inner: Reader) -> ReadOptions:
        left = (*self.leftovers, *(place for reader in inner for place in reader.leftovers))
        return ReadOptions(options, self.places, left)


class OptionWriter:
    """Members under construction."""

    def __init__(self, options: Options) -> None:
        self._options = options
        self._members: list[tuple[str, bytes]] = []
        self._carried: set[str] = set(_APART)

    def put(self, field: str, name: str, value: object) -> None:
        """Write a member for an option, if it is set."""
        self._carried.add(field)
        if value is not None and value != ():
            self._members.append((name, bytes(value) if isinstance(value, Raw) else encode(value)))

    def put_json(self, name: str, value: bytes) -> None:
        """Write a member that is already JSON text."""
        self._members.append((name, value))

    def put_object(self, name: str, value: bytes) -> None:
        """Write an object unless it is empty."""
        if value != b"{}":
            self.put_json(name, value)

    def write(self, rows: Iterable[Member]) -> None:
        """Write the members of these rows."""
        for row in rows:
            self.put(row.option, row.names[0], getattr(self._options, row.option))

    def inner(self, rows: Iterable[Member], *rest: tuple[str, object]) -> bytes:
        """An object with the members of these rows and others, to be written as a member of this one."""
        inner = OptionWriter(self._options)
        inner.write(rows)
        self.carry(*inner._carried)
        inner._members += [(key, encode(value)) for key, value in rest]
        return object_of(inner._members)

    def carry(self, *fields: str) -> None:
        """Note options that were written by other means."""
        self._carried.update(fields)

    def done(self) -> WrittenOptions:
        unwritten = [name for name in Options.__struct_fields__ if name not in self._carried]
        dropped = [name for name in unwritten if getattr(self._options, name) != getattr(_NO_OPTIONS, name)]
        return WrittenOptions(tuple(self._members), tuple(dropped))


def given(raw: Raw) -> Raw | None:
    """A member that is passed on; None if it is missing."""
    return raw if is_given(raw) else None


def effort_named(word: str | None) -> Effort | None:
    return next((effort for effort in EFFORTS if effort == word), None)


def described(tool: FunctionTool | CustomTool, *rest: tuple[str, bytes | Raw | None]) -> bytes:
    """The object of a tool: its name, its description, and what its format adds."""
    description = encode(tool.description) if tool.description is not None else None
    return object_of([("name", encode(tool.name)), ("description", description), *rest])


def schema_members(output: StructuredOutput) -> dict[str, object]:
    """The members with the schema of an answer in OpenAI's formats."""
    schema: dict[str, object] = {"name": output.name or "answer", "schema": output.schema}
    return schema | ({"description": output.description} if output.description is not None else {})
