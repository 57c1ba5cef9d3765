"""The body that a provider's token counter accepts for a request."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import TypeAlias

from thoughtline.formats.json_text import encode, members, object_of, set_members

CountBody: TypeAlias = Callable[[bytes, str], bytes]
"""From a request and a model to the body for the counter."""

ENCLOSED = "generateContentRequest"
"""The member in which Gemini's counter accepts a whole request."""


def only(names: Collection[str]) -> CountBody:
    """Only these members: the counter rejects others, which control the answer."""

    def count_body(body: bytes, model: str) -> bytes:
        return object_of((name, value) for name, value in members(body).items() if name in names)

    return count_body


def enclosed(body: bytes, model: str) -> bytes:
    """The whole request, in a member of its own that also names the model."""
    return object_of([(ENCLOSED, set_members(body, [("model", encode(f"models/{model}"))]))])
