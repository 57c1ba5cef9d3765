"""The kinds of values that settings may have: how each is checked and described."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable
from typing import Annotated, Any, NamedTuple, TypeAlias
from urllib.parse import urlsplit

import msgspec
from msgspec import Meta

from thoughtline.destinations.addresses import host_name
from thoughtline.stores.settings import decode_duration, decode_size
from thoughtline.values.errors import StoreRefused

Converter: TypeAlias = Callable[[object, bool], object]
"""From a value, and whether it always comes as text, to the checked value. Raises one of `NOT_OF_KIND`."""

NOT_OF_KIND = (ValueError, TypeError, OverflowError, StoreRefused, msgspec.ValidationError)

_HEADER = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_OWN_HEADERS = frozenset({"host", "content-length", "transfer-encoding", "connection", "te", "upgrade", "trailer"})
"""Headers that the gateway sets itself: they frame a message (RFC 9110, 7.6.1)."""


_ORIGIN = re.compile(r"[a-z][a-z0-9+.-]*://(\[[0-9a-f:.]+\]|[a-z0-9._-]+)(:[1-9][0-9]{0,4})?")
"""RFC 6454, 6.1. Applications built on browsers have schemes of their own."""


_EXAMPLE_SECRET = re.compile(r"change[-_ ]?(me|this|it)", re.IGNORECASE)
"""How secrets in examples begin, ours (`deploy/kubernetes.yaml`) and others'."""


class ExampleSecret(ValueError):
    """A secret copied from an example, which everyone can read."""


class Kind(NamedTuple):
    """`expected` completes the sentence "expected …"; `words` are all allowed values, unless there are too many."""

    expected: str
    convert: Converter
    words: tuple[str, ...] = ()


def _converted(type_: Any, *, reads_text: bool = False) -> Converter:
    """A value of a type. `reads_text`: also accept it as text, as from the environment."""
    return lambda value, is_text: msgspec.convert(value, type_, strict=not (is_text and reads_text))


def _text(value: object, is_text: bool) -> str:
    found = msgspec.convert(value, str).strip()
    if not found or not found.isprintable():
        raise ValueError
    return found


def _maybe_text(value: object, is_text: bool) -> str | None:
    """An empty string counts as not set: `"${TOKEN:-}"`."""
    return _text(value, is_text) if value != "" else None


def _own_secret(secret: str) -> str:
    if _EXAMPLE_SECRET.match(secret):
        raise ExampleSecret
    return secret


def _secret(value: object, is_text: bool) -> str | None:
    found = _maybe_text(value, is_text)
    return found if found is None else _own_secret(found)


def _duration(value: object, is_text: bool) -> float:
    seconds = decode_duration(msgspec.convert(value, str))
    if not math.isfinite(seconds) or seconds <= 0:
        raise ValueError
    return seconds


def _size_or_zero(value: object, is_text: bool) -> int:
    size = msgspec.convert(value, int) if isinstance(value, int) else decode_size(msgspec.convert(value, str))
    if size < 0:
        raise ValueError
    return size


def _size(value: object, is_text: bool) -> int:
    size = _size_or_zero(value, is_text)
    if size == 0:
        raise ValueError
    return size


def _token(value: object, is_text: bool) -> str | None:
    """Too long to guess, and valid in a header."""
    found = _secret(value, is_text)
    if found is not None and (len(found) < 16 or not found.isascii() or " " in found):
        raise ValueError
    return found


def url_of(value: object, is_text: bool) -> str:
    """The URL of a server. A part before an `@` is a credential, which belongs in `api_key`."""
    found = msgspec.convert(value, str).strip()
    parts = urlsplit(found)
    is_plain = found.isascii() and found.isprintable() and not re.search(r"[\s\\<>\"]", found)
    if parts.scheme not in ("http", "https") or not parts.hostname or not is_plain or parts.port == 0:
        raise ValueError
    if "@" in parts.netloc or parts.query or parts.fragment or ".." in parts.path.split("/"):
        raise ValueError
    return found.rstrip("/")


def _keys(value: object, is_text: bool) -> tuple[str, ...]:
    given = [value] if isinstance(value, str) else msgspec.convert(value, list[str])
    found = [key.strip() for key in given]
    if any(not key.isascii() or not key.isprintable() or " " in key for key in found):
        raise ValueError
    return tuple(_own_secret(key) for key in found if key)


def header_of(name: str, value: object) -> str:
    """A header's value; raises if the name or the value is invalid, or the gateway sets the header itself."""
    found = msgspec.convert(value, str)
    if not _HEADER.fullmatch(name) or name.lower() in _OWN_HEADERS or not found.isprintable() or not found.isascii():
        raise ValueError
    return found


def _path(value: object, is_text: bool) -> str:
    found = msgspec.convert(value, str)
    if not re.fullmatch(r"(/[A-Za-z0-9._~:-]+)+", found) or ".." in found.split("/"):
        raise ValueError
    return found


def whole(least: int, most: int) -> Kind:
    bounded = Annotated[int, Meta(ge=least, le=most)]
    noun = "a port" if (least, most) == (0, 65535) else "a whole number"
    return Kind(f"{noun} from {least:,} to {most:,}", _converted(bounded, reads_text=True))


def one_of(words: Iterable[str]) -> Kind:
    """A word of a closed set."""
    known = tuple(words)

    def convert(value: object, is_text: bool) -> str:
        if value not in known:
            raise ValueError
        return str(value)

    return Kind(f"one of {', '.join(known)}", convert, known)


def one_known(words: Callable[[], Iterable[str]]) -> Kind:
    """A name in the current table of facts, which overlays change."""
    shown = one_of(words())
    return shown._replace(convert=lambda value, is_text: one_of(words()).convert(value, is_text))


def some_of(words: Iterable[str], least: int = 0) -> Kind:
    """Several words of a closed set, in order, each once."""
    known = tuple(words)

    def convert(value: object, is_text: bool) -> tuple[str, ...]:
        entries = value.split(",") if is_text and isinstance(value, str) else value
        found = tuple(word.strip() for word in msgspec.convert(entries, list[str]))
        if len(found) < least or len(set(found)) < len(found) or not set(found) <= set(known):
            raise ValueError
        return found

    return Kind(f"a list of words, each once: {', '.join(known)}", convert, known)


def _hosts(value: object, is_text: bool) -> tuple[str, ...]:
    """Names without ports. An IPv6 address may omit its brackets."""
    names = value.split(",") if is_text and isinstance(value, str) else msgspec.convert(value, list[str])
    written = [name.strip() for name in names]
    found = [host_name(f"[{name}]" if name.count(":") > 1 and "[" not in name else name) for name in written]
    if None in found or any(re.search(r":\d*$", name) and name.count(":") == 1 for name in written):
        raise ValueError
    return tuple(dict.fromkeys(name for name in found if name))


def _origins(value: object, is_text: bool) -> tuple[str, ...]:
    """As browsers write them: a scheme, a host in lower case, a port if it is not the default, and nothing else."""
    names = value.split(",") if is_text and isinstance(value, str) else msgspec.convert(value, list[str])
    found = [name.strip().rstrip("/").lower() for name in names]
    if not all(_ORIGIN.fullmatch(name) for name in found):
        raise ValueError
    usual = {"http": ":80", "https": ":443"}
    return tuple(dict.fromkeys(name.removesuffix(usual.get(name.partition(":")[0], "/")) for name in found))


TEXT = Kind("text", _text)
ANY_TEXT = Kind("text, which may be empty", _converted(str))
FLAG = Kind("true or false", _converted(bool, reads_text=True))
DURATION = Kind('a duration, such as "30s", "15m", "2h", "7d"', _duration)
SIZE = Kind('a size, such as "500kB", "32MiB", "1GiB"', _size)
SIZE_OR_ZERO = Kind('a size, such as "500kB", "32MiB", "1GiB", or 0', _size_or_zero)
URL = Kind("a URL, http://HOST or https://HOST, with an optional path and nothing else", url_of)
KEYS = Kind("a key, or a list of keys", _keys)
PATH = Kind('a path, such as "/chat/completions"', _path)
NAMED: dict[str, Kind] = {
    "text": TEXT,
    "secret": Kind("text", _secret),
    "token": Kind("at least 16 characters without spaces", _token),
    "hosts": Kind('a list of host names without ports, such as ["gateway.example"]', _hosts),
    "origins": Kind('a list of origins, such as ["https://app.example"]; there is no "*"', _origins),
    "url": URL,
    "duration": DURATION,
    "size": SIZE,
    "size_or_zero": SIZE_OR_ZERO,
    "texts": Kind("a list of strings", _converted(tuple[str, ...])),
    "weights": Kind("a list of whole numbers of 1 or more", _converted(tuple[Annotated[int, Meta(ge=1)], ...])),
}
"""Kinds by their names in `thoughtline.values.setting`."""
