"""Errors of an upstream in the envelope of the client's format: the status stays, the sentence is the provider's."""

from __future__ import annotations

from msgspec import Raw
from msgspec.structs import replace

from thoughtline.formats import FORMATS
from thoughtline.formats.json_text import encode
from thoughtline.translation.response_context import ResponseContext
from thoughtline.values.errors import ErrorReply
from thoughtline.values.turns import FormatName


def translate_error(status: int, body: bytes, source: FormatName, to: FormatName) -> tuple[int, bytes]:
    """An upstream's error for a client of another format."""
    return status, FORMATS[to].errors.write(FORMATS[source].errors.read(status, body))


def error_event(error: ErrorReply, to: FormatName) -> Raw:
    """An error as it stands in an event of a stream."""
    return Raw(encode(FORMATS[to].errors.object(error)))


def error_in_stream(error: Raw, context: ResponseContext) -> Raw:
    """An upstream's error in mid-stream, as the client's format has it. Its code may say which status it stands for."""
    read = FORMATS[context.source].errors.read(500, bytes(error))
    code = read.code or ""
    is_status = code.isascii() and code.isdigit() and 400 <= int(code[:4]) < 600
    return error_event(replace(read, status=int(code)) if is_status else read, context.to)
