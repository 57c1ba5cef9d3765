"""Elements that a server refuses are left out of a conversation, and no other byte changes."""

from __future__ import annotations

import pytest

from thoughtline.formats.mending import (
    EMPTY_THINKING,
    THOUGHT_PARTS,
    UNSIGNED_THOUGHTS,
    WORDS_BESIDE_THOUGHTS,
    items_of,
    mended,
)

CALLS = b'"tool_calls":[{"id":"c"}]'


@pytest.mark.parametrize(
    ("name", "before", "after"),
    [
        (
            EMPTY_THINKING,
            b'{"messages": [{"content": [{"type":"thinking","thinking":" "},{"type":"text"}]}, {"content":"x"}]}',
            b'{"messages": [{"content": [{"type":"text"}]},{"content":"x"}]}',
        ),
        (
            THOUGHT_PARTS,
            b'{"contents":[{"parts":[{"thought":true},{"text":"y"}]}]}',
            b'{"contents":[{"parts":[{"text":"y"}]}]}',
        ),
        (UNSIGNED_THOUGHTS, b'{"input":[{"type":"thought","signature":""},{"a":1}]}', b'{"input":[{"a":1}]}'),
        (items_of("odd"), b'{"input":[{"type":"odd"},{"a":1}]}', b'{"input":[{"a":1}]}'),
        (
            WORDS_BESIDE_THOUGHTS,
            b'{"messages":[{"content":"x","reasoning":"y",' + CALLS + b"}]}",
            b'{"messages":[{"content":"","reasoning":"y",' + CALLS + b"}]}",
        ),
    ],
)
def test_a_mend(name: str, before: bytes, after: bytes) -> None:
    """What it names goes, and it says that it did something."""
    assert mended(before, (name,)) == (after, (name,))
    assert mended(after, (name,)) == (after, ())


@pytest.mark.parametrize(
    "body",
    [
        b'{"messages":[{"content":[{"type":"thinking","thinking":"","signature":"s"}]}]}',
        b'{"messages":[{"content":[{"type":"thinking","thinking":""}]}]}',
        b'{"messages":"x"}',
        b"[]",
    ],
)
def test_what_is_signed_or_alone_stays(body: bytes) -> None:
    """A signed block has its thought in the signature, and a message keeps one element at least."""
    assert mended(body, (EMPTY_THINKING, "a mend of another version")) == (body, ())
