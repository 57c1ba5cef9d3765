"""The facts of a setting, next to its type: its meaning, its bounds, its name if that is not the member's.

    count: Annotated[int, setting("how many checkpoints are quoted", ge=1, le=100)] = 3

The documentation, the example file, the environment variables and the admin API are made from them.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

from msgspec import Meta

KindName: TypeAlias = Literal[
    "", "text", "secret", "token", "hosts", "origins", "url", "duration", "size", "size_or_zero", "texts", "weights"
]
"""The kind of value, if the type alone doesn't say."""


def setting(
    meaning: str, kind: KindName = "", *, key: str = "", short: str = "", ge: int | None = None, le: int | None = None
) -> Meta:
    """`key` is the name in a file if that is not the member's; `short` a shorter environment variable."""
    return Meta(description=meaning, ge=ge, le=le, extra={"kind": kind, "key": key, "short": short})
