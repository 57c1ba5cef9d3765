"""A row of the table of addresses."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Literal, NamedTuple, TypeAlias

from msgspec import Struct

from thoughtline.gateway.admin.requests import AdminRequest, Stream, Whole

Handler: TypeAlias = Callable[[AdminRequest], Awaitable[Whole | Stream]]
Access = Literal["open", "admin", "metrics"]


class Nothing(Struct, frozen=True):
    """No parameters."""


class Row(NamedTuple):
    """An address. `answer` is what its JSON is; `body` what it takes, at most `max_body` bytes of it.

    `also` are statuses that come with the same answer as `status`.
    `takes_any_object`: a body of another shape means something too.
    """

    method: str
    path: str
    serve: Handler
    summary: str
    answer: type[Struct] | None
    access: Access = "admin"
    query: type[Struct] = Nothing
    body: type[Struct] | None = None
    body_types: tuple[str, ...] = ("application/json",)
    takes_any_object: bool = False
    max_body: int | None = None
    content_type: str = "application/json"
    status: int = 200
    refusals: tuple[int, ...] = ()
    also: tuple[int, ...] = ()
