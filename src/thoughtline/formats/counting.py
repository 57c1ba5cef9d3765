"""A request as the counter of tokens takes it that a provider has beside the address for the request itself."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import TypeAlias

from thoughtline.formats.json_text import encode, members, object_of, set_members

CountBody: TypeAlias = Callable[[bytes, str], bytes]
"""What is counted of a request for a model."""

ENCLOSED = "generateContentRequest"
"""Where Gemini's counter takes a whole request."""


def only(names: Collection[str]) -> CountBody:
    """These members alone: others, which say how to answer, are refused."""

    def count_body(body: bytes, model: str) -> bytes:
        return object_of((name, value) for name, value in members(body).items() if name in names)

    return count_body


def enclosed(body: bytes, model: str) -> bytes:
    """All of it, in a member of its own that names the model too."""
    return object_of([(ENCLOSED, set_members(body, [("model", encode(f"models/{model}"))]))])
