"""What is wrong with an installation, and how to mend it.

settings ─▶ store, keys ─▶ exposure
        ├─▶ each upstream, with its keys ─▶ clock
        └─▶ the port                                ──▶ `Check`s: ok, warn, fail or skipped, each with a remedy
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from msgspec import Struct

State = Literal["ok", "warn", "fail", "skipped"]


class Check(Struct, frozen=True):
    """One line of a report. `remedy` is what to do, where there is something to do."""

    name: str
    state: State
    message: str
    remedy: str = ""


def is_well(checks: Iterable[Check]) -> bool:
    """Whether nothing fails. A warning is no failure, and neither is what was not checked."""
    return all(check.state != "fail" for check in checks)
