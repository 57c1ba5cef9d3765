"""Finds problems of an installation, and how to fix them.

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
    """One line of a report. `remedy` is what to do, if anything."""

    name: str
    state: State
    message: str
    remedy: str = ""


def is_well(checks: Iterable[Check]) -> bool:
    """Whether nothing fails. Warnings and skipped checks are no failures."""
    return all(check.state != "fail" for check in checks)
