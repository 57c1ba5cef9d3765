"""The one form in which a command says why it can't do what it was asked for: its name, what, where, and a remedy."""

from __future__ import annotations

import sys

from thoughtline.values.errors import ThoughtlineError

FAILED = 2


def tell(command: str, error: ThoughtlineError) -> int:
    """On standard error, a line for each problem; gives the exit status."""
    remedy = getattr(error, "remedy", "")
    for line in f"{error} {remedy}".rstrip().splitlines():
        sys.stderr.write(f"thoughtline {command}: {line}\n")
    return FAILED
