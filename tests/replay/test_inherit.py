"""What a turn without reasoning inherits from earlier turns."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw

from thoughtline.replay.restoring import inherit
from thoughtline.values.items import (
    ANTHROPIC_CLAUDE_V1,
    DEEPSEEK_V1,
    GOOGLE_GEMINI_V1,
    Item,
    ReasoningEncrypted,
    ReasoningSummary,
    ReasoningText,
    Seal,
    Text,
    ToolCall,
    Unknown,
    reasoning_of,
)
from thoughtline.values.turns import Turn

CALL = ToolCall("look", "{}", "call_1")


def thought(text: str) -> ReasoningText:
    return ReasoningText(text, format=DEEPSEEK_V1)


def assistant(*items: Item) -> Turn:
    return Turn("assistant", items)


BORROWED: dict[str, tuple[list[Turn], dict[int, str]]] = {
    "the latest of several": (
        [assistant(thought("old"), CALL), assistant(thought("new"), CALL), assistant(CALL)],
        {2: "new"},
    ),
    "from a turn that called nothing": ([assistant(thought("plain"), Text("hi")), assistant(CALL)], {1: "plain"}),
    "every turn that lacks it": (
        [assistant(thought("a"), CALL), assistant(CALL), assistant(thought("b"), CALL), assistant(CALL)],
        {1: "a", 3: "b"},
    ),
    "never from later": ([assistant(CALL), assistant(thought("late"), CALL)], {}),
    "never by a turn that calls nothing": ([assistant(thought("a")), assistant(Text("hi"))], {}),
    "never from another role": ([Turn("user", (thought("mine"),)), assistant(CALL)], {}),
    "never by another role": ([assistant(thought("a")), Turn("other", (CALL,))], {}),
    "nothing where nothing was": ([assistant(Text("hi")), assistant(CALL)], {}),
    "empty where all was empty": ([assistant(thought("")), assistant(CALL)], {1: ""}),
    "real over a later empty": ([assistant(thought("real")), assistant(thought("")), assistant(CALL)], {2: "real"}),
    "real over a later blank": ([assistant(thought("real")), assistant(thought(" ")), assistant(CALL)], {2: "real"}),
    "blank where all was blank": ([assistant(thought(" ")), assistant(CALL)], {1: " "}),
    "real after a blank": ([assistant(thought(" ")), assistant(thought("real")), assistant(CALL)], {2: "real"}),
    "real after an empty": ([assistant(thought("")), assistant(thought("real")), assistant(CALL)], {2: "real"}),
    "all texts of a turn as one": ([assistant(thought("a"), Text("x"), thought("b")), assistant(CALL)], {1: "ab"}),
    "no summary": ([assistant(ReasoningSummary("told")), assistant(CALL)], {}),
}


@pytest.mark.parametrize("name", BORROWED)
def test_what_is_borrowed(name: str) -> None:
    """Which positions get which text."""
    turns, expected = BORROWED[name]
    assert {position: item.text for position, item in inherit(turns).items()} == expected


HAS_ITS_OWN: dict[str, tuple[Item, ...]] = {
    "text": (thought("own"), CALL),
    "empty text": (thought(""), CALL),
    "summary": (ReasoningSummary("own"), CALL),
    "ciphertext": (ReasoningEncrypted("gAAAA"), CALL),
    "a signature on the call": (ToolCall("look", "{}", seal=Seal("c2ln", GOOGLE_GEMINI_V1)),),
    "an entry of a kind nobody knows": (Unknown("reasoning.image", Raw(b"{}")), CALL),
}


@pytest.mark.parametrize("name", HAS_ITS_OWN)
def test_a_turn_with_reasoning_of_its_own_borrows_none(name: str) -> None:
    """In any placement and of any kind, including empty."""
    assert inherit([assistant(thought("earlier"), CALL), assistant(*HAS_ITS_OWN[name])]) == {}


def test_a_signature_is_not_borrowed() -> None:
    """Only the text is inherited; signature, id, index and JSON belong to their turn."""
    signed = ReasoningText("why", "c2ln", ANTHROPIC_CLAUDE_V1, "r1", 0, Raw(b'{"type":"thinking"}'))
    assert inherit([assistant(signed, CALL), assistant(CALL)]) == {1: ReasoningText("why", format=ANTHROPIC_CLAUDE_V1)}


BLANKS: dict[str, tuple[list[Turn], set[int], dict[int, str]]] = {
    "alone gives empty to a later turn": ([assistant(Text("a")), assistant(CALL)], {0}, {1: ""}),
    "is still a lack": ([assistant(CALL)], {0}, {0: ""}),
    "does not cover a real one": ([assistant(thought("real")), assistant(CALL)], {1}, {1: "real"}),
    "says less than text in another member": ([assistant(thought("real")), assistant(CALL)], {0}, {1: "real"}),
    "of another role is none": ([Turn("user", ()), assistant(CALL)], {0}, {}),
}


@pytest.mark.parametrize("name", BLANKS)
def test_a_null_on_the_wire(name: str) -> None:
    """Seen, and empty."""
    turns, blank_at, expected = BLANKS[name]
    assert {position: item.text for position, item in inherit(turns, blank_at).items()} == expected


some_items: st.SearchStrategy[Item] = st.sampled_from([thought("a"), thought("b"), thought(""), CALL, Text("t")])
some_turns = st.lists(
    st.builds(Turn, st.sampled_from(["assistant", "user", "tool"]), st.lists(some_items, max_size=3).map(tuple)),
    max_size=8,
)


@given(turns=some_turns)
def test_nothing_is_made_up_and_nothing_borrowed_twice(turns: list[Turn]) -> None:
    """Each inherited text comes from an earlier turn, only turns without reasoning inherit, and afterwards none lacks
    any."""
    given_items = inherit(turns)
    for position, item in given_items.items():
        earlier = ["".join(r.text for r in turn.items if isinstance(r, ReasoningText)) for turn in turns[:position]]
        assert item.text in earlier
        assert turns[position].role == "assistant"
        assert not reasoning_of(turns[position].items)
    mended = [
        turn.with_items((given_items[at], *turn.items)) if at in given_items else turn for at, turn in enumerate(turns)
    ]
    assert inherit(mended) == {}
