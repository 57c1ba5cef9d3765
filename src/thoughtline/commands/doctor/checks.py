"""What a look at something found."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from msgspec import Struct

State = Literal["ok", "warn", "fail"]


class Check(Struct, frozen=True):
    """One line of a report. `remedy` is what to do, where there is something to do."""

    name: str
    state: State
    message: str
    remedy: str = ""


def is_well(checks: Iterable[Check]) -> bool:
    """Whether nothing fails. A warning is no failure."""
    return all(check.state != "fail" for check in checks)
