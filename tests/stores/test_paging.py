"""Cursors: only those from a page are accepted."""

from __future__ import annotations

import pytest

from thoughtline.stores.base import MAX_CURSOR, decode_cursor
from thoughtline.stores.redis import decode_cursor as decode_pair_cursor
from thoughtline.stores.redis import encode_cursor as encode_pair_cursor
from thoughtline.values.errors import StoreRefused

HOSTILE = ["", ":", "x", "-1", "1.5", "nan:00", "inf:00", "-inf:ff", "1e400:00", "1:zz", "1:", "1:0", "1_0:00", " 1:00"]
HOSTILE += ["1:0 0", "0x10:00", "٣:00", "٣", str(MAX_CURSOR + 1), "9" * 19, "9" * 30, "9" * 30 + ":00"]


@pytest.mark.parametrize("number", [0, 1, 12345, MAX_CURSOR])
def test_a_number_comes_back(number: int) -> None:
    """What is encoded is decoded."""
    assert decode_cursor(str(number)) == number


@pytest.mark.parametrize("created_at", [0.0, 1.0, 1_763_200_000.123456, 1e14])
def test_a_pair_comes_back(created_at: float) -> None:
    """What is encoded is decoded, to the last digit."""
    identity = bytes(range(32))
    assert decode_pair_cursor(encode_pair_cursor(created_at, identity)) == (created_at, identity)


@pytest.mark.parametrize("text", HOSTILE)
def test_what_no_page_gave(text: str) -> None:
    """It is refused before a database sees it, where it would look like a failing store."""
    with pytest.raises(StoreRefused):
        decode_cursor(text)
    with pytest.raises(StoreRefused):
        decode_pair_cursor(text)


def test_no_cursor_is_the_first_page() -> None:
    """None starts at the beginning, before all numbers."""
    assert decode_cursor(None) == MAX_CURSOR
    assert decode_pair_cursor(None) is None
