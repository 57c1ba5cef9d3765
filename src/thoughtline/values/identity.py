"""Who sends a request."""

from __future__ import annotations

from msgspec import Struct


class Identity(Struct, frozen=True, gc=False):
    """`tenant` decides what can be found at all; the session and its agent only narrow the search.

    `any_frame`: turns are the same whatever the system prompt is (`[replay] any_system_prompt`). `model` is the
    requested one: of otherwise equal records, its own come first. `user` is a digest of the end user that headers name.
    """

    tenant: str
    session: str | None = None
    agent: str | None = None
    any_frame: bool = False
    model: str = ""
    user: str = ""
