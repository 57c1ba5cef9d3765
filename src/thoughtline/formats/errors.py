"""Decodes errors of every format: the provider's and ours.

Servers of one format send envelopes of another (DeepSeek's Messages API answers in OpenAI's, Google's chat in an
array), so `read_error` accepts them all. Each format writes its own.
"""

from __future__ import annotations

import re
from html import unescape
from typing import Any

import msgspec
from msgspec.structs import replace

from thoughtline.formats.json_text import encode
from thoughtline.values.errors import ErrorReply

MAX_MESSAGE = 8_000
"""Characters of an error page that is not JSON: enough to recognize it."""

_MAX_DEPTH = 6
_PAGE = re.compile(
    rb"\s*(?:<\?xml[^>]*>\s*)?(?:<!--(?:(?!-->).)*-->\s*)*<(?:!doctype\s+html|html)\b", re.IGNORECASE | re.DOTALL
)
_HEADING = re.compile(r"<(title|h1)\b[^<>]*>", re.IGNORECASE)
_TAG = re.compile(r"<[^<>]*>")
_MESSAGE_MEMBERS = ("message", "Message", "detail", "msg", "error")


def read_error(status: int, body: bytes) -> ErrorReply:
    """The content of an error in any envelope; of a web page its title; of any other body its text."""
    text = bytes(body).strip().removeprefix(b"data:").strip()
    try:
        value = msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        page = str(text[:MAX_MESSAGE], "utf-8", "replace")
        page = title_of(page) if is_page(text) else page
        return ErrorReply(status, page or "the upstream sent an empty error")
    return _read(status, value, 0)


def is_page(body: bytes) -> bool:
    """Whether a body is HTML: a page for a browser in place of an API error."""
    return _PAGE.match(body[:MAX_MESSAGE]) is not None


def title_of(page: str) -> str:
    """The title of a web page, without tags."""
    found = _HEADING.search(page)
    inner = page[found.end() :] if found else ""
    end = inner.lower().find(f"</{found[1].lower()}") if found else 0
    title = " ".join(unescape(_TAG.sub(" ", inner[: max(0, end)])).split())
    return f"a web page: {title}" if title else "a web page without a title"


def _read(status: int, value: Any, depth: int) -> ErrorReply:
    match value:
        case str():
            return ErrorReply(status, value)
        case [first, *_] if depth < _MAX_DEPTH:
            return _read(status, first, depth + 1)
        case {"error": inner} if isinstance(inner, (dict, str, list)) and depth < _MAX_DEPTH:
            error = _read(status, inner, depth + 1)
            return error if error.code or "code" not in value else replace(error, code=str(value["code"]))
        case dict():
            return _read_members(status, value, depth)
        case _:
            return ErrorReply(status, "the upstream failed without saying why")


def _read_members(status: int, value: dict[str, Any], depth: int) -> ErrorReply:
    """The usual members; OpenRouter quotes its upstream in `metadata.raw`, MiMo puts the message into `param`."""
    metadata = value.get("metadata")
    quoted = metadata.get("raw") if isinstance(metadata, dict) else None
    if isinstance(quoted, str) and quoted and depth < _MAX_DEPTH:
        return read_error(status, quoted.encode())
    message = _text(value, *_MESSAGE_MEMBERS)
    param = _text(value, "param")
    if param is not None and " " in param:
        message, param = f"{message or ''}: {param}".removeprefix(": "), None
    if message is None and len(value) == 1 and depth < _MAX_DEPTH:
        return _read(status, next(iter(value.values())), depth + 1)
    message = message or encode(value).decode()[:MAX_MESSAGE]
    return ErrorReply(status, message, _text(value, "code"), param)


def _text(value: dict[str, Any], *names: str) -> str | None:
    for name in names:
        found = value.get(name)
        if isinstance(found, str) and found:
            return found
        if isinstance(found, (int, dict, list)) and not isinstance(found, bool) and found:
            return encode(found).decode()
    return None


def word_for(words: dict[int, str], status: int, *, client: str, server: str) -> str:
    """A format's name for a status; without one, its name for a fault of the client or of the server."""
    return words.get(status, client if status < 500 else server)
