"""Which thinking blocks may be in one request."""

from __future__ import annotations

import pytest
from msgspec import Raw

from thoughtline.replay.links import FIRST, STRANGER, Link, binding_of, broken, is_compaction, last_block_of
from thoughtline.values.items import ReasoningText, Text, Unknown
from thoughtline.values.turns import Turn


def kept(at: int, after: str = "", *, is_cut: bool = False) -> Link:
    """A step whose block the client sent; its name is its position."""
    return Link((at,), str(at), after, is_cut=is_cut)


def restored(at: int, after: str = "") -> Link:
    return Link((at,), str(at), after, is_ours=True)


@pytest.mark.parametrize(
    ("links", "ours", "refused"),
    [
        ([restored(1, FIRST), kept(3, "1"), restored(5, "3")], [], []),
        ([restored(1, FIRST), kept(3, FIRST)], [1], []),
        ([restored(1, FIRST), restored(3, "1"), kept(5, "1")], [3], []),
        ([restored(1, FIRST), restored(5, "3")], [1], []),
        ([kept(1, FIRST), restored(5, "3")], [5], []),
        ([restored(1), restored(3), kept(5)], [], []),
        ([restored(1, FIRST), kept(3, STRANGER), restored(5, "3")], [1], []),
        ([kept(1, FIRST), kept(3, "1"), kept(5, "1", is_cut=True)], [], [3]),
        ([kept(1, FIRST), kept(3, "1"), Link((5,), "", FIRST, is_cut=True)], [], [1, 3]),
        ([kept(1, FIRST), kept(3, "1"), kept(5, "1")], [], []),
        ([], [], []),
    ],
    ids=[
        *("an unbroken run", "made without the one before", "one in the middle was found late"),
        *("a hole: the later side stays", "a hole after the client's own", "nobody knows better", "a stranger"),
        *("cut out before", "cut out before, nothing thought since", "the client's own, in its own order", "nothing"),
    ],
)
def test_what_is_left_out(links: list[Link], ours: list[int], refused: list[int]) -> None:
    """Our own are removed before the client's; the client's own only if the provider has refused them."""
    found = broken(links)
    assert [sorted(at for (at,) in places) for places in found] == [ours, refused]


def test_the_last_block_of_a_request() -> None:
    """The model's blocks count, except those before a compaction."""
    block = ReasoningText("", "EsigA")
    turns = (Turn("user", (Text("Hi"),)), Turn("assistant", (block, Text("Hm."))), Turn("user", (Text("Go on"),)))
    name = last_block_of(turns)
    assert name not in ("", FIRST)
    assert last_block_of(turns[:1]) == FIRST
    assert last_block_of(turns[:1], "earlier") == "earlier"
    summary = Unknown("compaction", Raw(b'{"type":"compaction","content":"All was said."}'))
    assert last_block_of((*turns, Turn("assistant", (summary,)))) == FIRST
    failed = Unknown("compaction", Raw(b'{"type": "compaction", "content": null}'))
    assert not is_compaction(failed)
    assert last_block_of((*turns, Turn("assistant", (failed,)))) == name


@pytest.mark.parametrize(
    ("thinking", "expected"),
    [
        (b'{"type":"adaptive","block_binding":{"prefix_mismatch_behavior":"error"}}', "error"),
        (b'{"block_binding":{"mismatch_behavior":"drop_block"}}', "drop_block"),
        (b'{"type":"adaptive"}', ""),
        (b'"adaptive"', ""),
    ],
)
def test_what_a_request_wants_of_a_block_of_elsewhere(thinking: bytes, expected: str) -> None:
    """By either name of the field; an unreadable request says nothing."""
    assert binding_of(b'{"messages":[],"thinking":%b}' % thinking) == expected
