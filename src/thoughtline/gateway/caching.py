"""What was worked out before from the same raw values: an agent asks again and again with one head, for one model."""

from __future__ import annotations

from typing import TypeVar

Raw = TypeVar("Raw")
Value = TypeVar("Value")

MOST_ENTRIES = 1024
MAX_ENTRY_BYTES = 4 * 2**10
"""What is made of longer values is made each time."""


class BoundedCache(dict[Raw, Value]):
    """A dict that is emptied when it is full."""

    def keep(self, raw: Raw, value: Value, size: int = 0) -> Value:
        """Keep what was made of raw values of this size, and give it back."""
        if size <= MAX_ENTRY_BYTES:
            if len(self) >= MOST_ENTRIES:
                self.clear()
            self[raw] = value
        return value
