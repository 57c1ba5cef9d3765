"""What changes of an answer on its way to the client: one edit after the other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol


class EditsAnswer(Protocol):
    """Changes what goes to the client."""

    def whole(self, body: bytes) -> bytes: ...

    def feed(self, data: bytes) -> bytes: ...

    def finish(self) -> bytes: ...


class Edits:
    """One edit after the other."""

    def __init__(self, edits: Sequence[EditsAnswer]) -> None:
        self._edits = edits

    def whole(self, body: bytes) -> bytes:
        for edit in self._edits:
            body = edit.whole(body)
        return body

    def feed(self, data: bytes) -> bytes:
        for edit in self._edits:
            data = edit.feed(data)
        return data

    def finish(self) -> bytes:
        data = b""
        for edit in self._edits:
            data = (edit.feed(data) if data else b"") + edit.finish()
        return data
