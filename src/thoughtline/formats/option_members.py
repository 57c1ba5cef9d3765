"""Reading and writing the options of a request: which members were read, which options could be written.

A `Reader` takes members by name and remembers where they stood; what nobody took is left over. A `Writer` collects
members; an option that is set and that nobody wrote is dropped, and says so.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, TypeVar

import msgspec
from msgspec import Raw

from thoughtline.formats.json_text import decode, encode, is_given, members, pointer
from thoughtline.values.items import Unknown
from thoughtline.values.options import Media, Options, ReadOptions, ResultContent, WrittenOptions

T = TypeVar("T")
_NO_OPTIONS = Options()
_APART = frozenset({"model", "is_streaming", "wants_usage", "thinking"})
"""Options that somebody else writes: the address, the framing, the table of efforts."""


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

    def skip(self, *names: str) -> None:
        """Members that are read elsewhere."""
        for name in names:
            self._left.pop(name, None)

    @property
    def leftovers(self) -> tuple[str, ...]:
        return tuple(self._place + pointer([name]) for name in self._left if is_given(self._members[name]))

    def done(self, options: Options, *inner: Reader) -> ReadOptions:
        left = (*self.leftovers, *(place for reader in inner for place in reader.leftovers))
        return ReadOptions(options, self.places, left)


class Writer:
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

    def same(self, *fields: str) -> None:
        """Options whose members have their very names."""
        for field in fields:
            self.put(field, field, getattr(self._options, field))

    def carry(self, *fields: str) -> None:
        """Options that were written by other means."""
        self._carried.update(fields)

    def drop(self, *fields: str) -> None:
        """Options that could not be written after all."""
        self._carried.difference_update(fields)

    @property
    def members(self) -> list[tuple[str, bytes]]:
        return self._members

    def done(self) -> WrittenOptions:
        unwritten = [name for name in Options.__struct_fields__ if name not in self._carried]
        dropped = [name for name in unwritten if getattr(self._options, name) != getattr(_NO_OPTIONS, name)]
        return WrittenOptions(tuple(self._members), tuple(dropped))


# --- data addresses and results --------------------------------------------------------------------------------------


def split_data_url(url: str) -> tuple[str, str] | None:
    """Media type and base64 text of a `data:` address."""
    head, comma, data = url.partition(",")
    if not head.startswith("data:") or not comma or not head.endswith(";base64"):
        return None
    return head.removeprefix("data:").removesuffix(";base64").split(";")[0], data


def data_url(media: Media) -> str:
    """The address of a medium: its own, or one that holds its bytes."""
    return media.url if media.url is not None else f"data:{media.media_type};base64,{media.data or ''}"


def text_of(content: ResultContent) -> str:
    """The text and JSON of a result, one part a line."""
    texts = [part if isinstance(part, str) else bytes(part.value).decode() for part in _said(content)]
    return "\n".join(texts)


def _said(content: ResultContent) -> Sequence[Any]:
    return [part for part in content.parts if not isinstance(part, Media)]


def media_of(content: ResultContent) -> tuple[Media, ...]:
    return tuple(part for part in content.parts if isinstance(part, Media))


def said_of(content: ResultContent) -> str:
    """The text of a result for a wire that has no mark for a tool that failed."""
    return f"Error: {text_of(content)}" if content.is_error else text_of(content)


def hold_media(
    content: ResultContent, encode_media: Callable[[Media], Unknown | None]
) -> tuple[list[Raw], tuple[Media, ...]]:
    """The media of a result that a wire has a place for, as its JSON; and those it has none for."""
    encoded = [(media, encode_media(media)) for media in media_of(content)]
    held = [part.raw for _, part in encoded if part is not None]
    return held, tuple(media for media, part in encoded if part is None)
