"""A middleware for Anthropic's SDK.

A middleware sees a request before its address and key are set, which both determine its turns. So it finds the client
that it was given to, and wraps that; the request itself is passed on unchanged.
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
    """Return a middleware of a class that anthropic accepts for sync and async clients."""
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
    """Return the client at the end of a chain of middleware: the object of the last function."""
    around = getclosurevars(call_next).nonlocals
    while "self" not in around:
        around = getclosurevars(around["call_next"]).nonlocals
    return around["self"]
