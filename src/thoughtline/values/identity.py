"""Who is asking."""

from __future__ import annotations

from msgspec import Struct


class Identity(Struct, frozen=True, gc=False):
    """`tenant` decides what can be found at all; the session and its agent only narrow the search."""

    tenant: str
    session: str | None = None
    agent: str | None = None
