"""Errors of our own, in the words of the client's format, so that its SDK raises what its user expects.

Each has a stable code and a remedy. Errors of a provider are not ours: they pass unchanged.
"""

from __future__ import annotations

from thoughtline.formats import FORMATS, USUAL
from thoughtline.values.errors import Declined, ErrorReply, ThoughtlineError
from thoughtline.values.turns import FormatName


def as_declined(error: ThoughtlineError) -> Declined:
    """Any error of ours, as a refusal: its message may be shown, for it never holds content."""
    if isinstance(error, Declined):
        return error
    code = "".join(f"_{c.lower()}" if c.isupper() else c for c in type(error).__name__).lstrip("_")
    return Declined(error.status, code, str(error))


def envelope(error: Declined, format: FormatName | None, request_id: str) -> bytes:
    """The body that tells a client of this format what is wrong and what to do."""
    message = f"{error} {error.remedy}".strip()
    reply = ErrorReply(error.status, message, error.code, is_ours=True, request_id=request_id)
    return FORMATS[format or USUAL.name].errors.write(reply)
