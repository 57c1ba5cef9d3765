"""The door of Anthropic's SDK: a middleware.

A middleware sees a request before its address and its key are put in, and both decide whose turns these are. It finds
the client that it was given to, and has that remember; the request then goes on as it came.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import cache
from inspect import getclosurevars
from typing import TYPE_CHECKING, Any

from thoughtline.engine.capture import log_problem

if TYPE_CHECKING:
    from thoughtline.library.door import ReplayLine


def middleware_of(line: ReplayLine) -> Any:
    """Of a class that anthropic takes for sync and async clients alike."""
    anthropic = sys.modules.get("anthropic")
    if anthropic is None or not hasattr(anthropic, "Middleware"):
        raise RuntimeError("import anthropic first, in a version that has middleware; or pass it line.http_client()")
    return _kind(anthropic.Middleware)(line)


@cache
def _kind(base: type[Any]) -> type[Any]:
    return type("Remembers", (_Remembers, base), {})


class _Remembers:
    def __init__(self, line: ReplayLine) -> None:
        self._line = line

    def handle(self, request: Any, call_next: Callable[[Any], Any]) -> Any:
        self._prepare(call_next)
        return call_next(request)

    async def handle_async(self, request: Any, call_next: Callable[[Any], Any]) -> Any:
        self._prepare(call_next)
        return await call_next(request)

    def _prepare(self, call_next: Callable[[Any], Any]) -> None:
        try:
            self._line.remember(_client_of(call_next))
        except (LookupError, TypeError) as problem:
            log_problem("a middleware does not know its client", problem)


def _client_of(call_next: Callable[[Any], Any]) -> object:
    """The client at the end of a chain of middleware: what the last of its functions was made for."""
    around = getclosurevars(call_next).nonlocals
    while "self" not in around:
        around = getclosurevars(around["call_next"]).nonlocals
    return around["self"]
