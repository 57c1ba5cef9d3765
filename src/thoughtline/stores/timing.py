"""A time limit that costs nothing if the call returns at once."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Generator
from types import coroutine
from typing import Any, TypeVar

from thoughtline.values.errors import StoreUnavailable

Result = TypeVar("Result")

TOO_LONG = "the store took too long"


async def within(call: Awaitable[Result], seconds: float) -> Result:
    """Return the result. Raises `StoreUnavailable` after `seconds`. A call that returns at once needs no timer."""
    steps = call.__await__()
    try:
        waits_for = next(steps)
        async with asyncio.timeout(seconds):
            return await _rest(steps, waits_for)
    except StopIteration as done:
        answer: Result = done.value
        return answer
    except TimeoutError:
        raise StoreUnavailable(TOO_LONG) from None


@coroutine
def _rest(steps: Generator[Any, Any, Result], waits_for: object) -> Generator[Any, Any, Result]:
    """Continue a call that was started and now waits."""
    try:
        while True:
            try:
                sent = yield waits_for
            except BaseException as problem:
                waits_for = steps.throw(problem)
            else:
                waits_for = steps.send(sent)
    except StopIteration as done:
        result: Result = done.value
        return result
