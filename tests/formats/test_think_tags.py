"""Think tags: reasoning and text, whole and in pieces."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from thoughtline.formats.think_tags import Splitter, join, split

TEXTS: dict[str, tuple[str, str | None, str]] = {
    "reasoning and text": ("<think>why</think>so", "why", "so"),
    "white space stays on both sides": ("<think>\nwhy\n</think>\n\nso", "\nwhy\n", "\n\nso"),
    "white space before the tag": ("\n <think>why</think>so", "why", "so"),
    "no reasoning in the tags": ("<think></think>so", "", "so"),
    "no text after the tags": ("<think>why</think>", "why", ""),
    "never closed": ("<think>why", "why", ""),
    "only the opening tag": ("<think>", "", ""),
    "cut in the closing tag": ("<think>why</thi", "why</thi", ""),
    "no tag": ("so", None, "so"),
    "white space and no tag": ("\n so ", None, "\n so "),
    "nothing": ("", None, ""),
    "only white space": (" \n", None, " \n"),
    "a tag in mid-text": ("so <think>why</think>", None, "so <think>why</think>"),
    "a closing tag alone": ("why</think>so", None, "why</think>so"),
    "cut in the opening tag": ("<thin", None, "<thin"),
    "another tag": ("<thinking>why</thinking>", None, "<thinking>why</thinking>"),
    "capitals": ("<Think>why</Think>", None, "<Think>why</Think>"),
    "two pairs": ("<think>a</think>b<think>c</think>", "a", "b<think>c</think>"),
    "an opening tag inside": ("<think>a<think>b</think>c", "a<think>b", "c"),
    "half closing tags inside": ("<think>a</</thin</think>b", "a</</thin", "b"),
}


def in_pieces(*pieces: str) -> tuple[str, str]:
    """All the reasoning and all the text that a splitter gives."""
    splitter = Splitter()
    given_so_far = [*map(splitter.feed, pieces), splitter.finish()]
    return "".join(reasoning for reasoning, _ in given_so_far), "".join(text for _, text in given_so_far)


@pytest.mark.parametrize("name", TEXTS)
def test_reasoning_at_the_head_of_a_text(name: str) -> None:
    """Only a tag that opens the text counts."""
    text, reasoning, rest = TEXTS[name]
    assert split(text) == (reasoning, rest)


@pytest.mark.parametrize("name", TEXTS)
def test_a_text_cut_anywhere_is_split_alike(name: str) -> None:
    """In two pieces at any character, and character by character."""
    text, reasoning, rest = TEXTS[name]
    for at in range(len(text) + 1):
        assert in_pieces(text[:at], "", text[at:]) == (reasoning or "", rest)
    assert in_pieces(*text) == (reasoning or "", rest)


fragments = st.sampled_from(
    ["<think>", "</think>", "<", "</", "<think", "</think", ">", "/", "th", "ink>", " ", "\n", "a"]
)
tagged_texts = st.lists(fragments, max_size=10).map("".join)


@settings(max_examples=150, deadline=None)
@given(text=tagged_texts | st.text(max_size=20), cuts=st.lists(st.integers(0, 60), max_size=8))
@example(text="<think>a</</think>b", cuts=[9, 11])
def test_any_text_cut_anywhere_is_split_alike(text: str, cuts: list[int]) -> None:
    """A splitter gives in pieces what `split` gives at once."""
    marks = sorted({min(mark, len(text)) for mark in cuts} | {0, len(text)})
    reasoning, rest = split(text)
    assert in_pieces(*(text[start:end] for start, end in pairwise(marks))) == (reasoning or "", rest)


@settings(max_examples=100, deadline=None)
@given(reasoning=tagged_texts.filter(lambda text: "</think>" not in text + "</think>"[:-1]), text=tagged_texts)
def test_joined_texts_are_split_again(reasoning: str, text: str) -> None:
    """Both come back with their white space."""
    assert split(join(reasoning, text)) == (reasoning, text)


@settings(max_examples=100, deadline=None)
@given(text=tagged_texts.map(lambda text: "<think>" + text))
def test_split_texts_are_joined_again(text: str) -> None:
    """A text that opens with the tag and closes it is the text that came."""
    reasoning, rest = split(text)
    assert reasoning is not None
    assert join(reasoning, rest) == (text if "</think>" in text else text + "</think>")


@pytest.mark.parametrize(
    ("pieces", "parts"),
    [
        pytest.param(["so"], [("", "so")], id="text at once"),
        pytest.param(["<", "b"], [("", ""), ("", "<b")], id="what is no tag after all"),
        pytest.param([" ", "so", " "], [("", ""), ("", " so"), ("", " ")], id="white space with its text"),
        pytest.param(["<think>a", "b"], [("a", ""), ("b", "")], id="reasoning at once"),
        pytest.param(["<thi", "nk>a"], [("", ""), ("a", "")], id="opening tag in two"),
        pytest.param(["<think>a<", "b"], [("a", ""), ("<b", "")], id="only what could be a tag is held"),
        pytest.param(["<think>a</th", "ink>b"], [("a", ""), ("", "b")], id="closing tag in two"),
        pytest.param(["<think>a</think>b", "<"], [("a", "b"), ("", "<")], id="nothing is held in the text"),
    ],
)
def test_only_what_could_be_a_tag_is_held_back(pieces: list[str], parts: list[tuple[str, str]]) -> None:
    """Everything else is given with the piece that brings it."""
    splitter = Splitter()
    assert [splitter.feed(piece) for piece in pieces] == parts
    assert splitter.finish() == ("", "")


@pytest.mark.parametrize(
    ("text", "last"),
    [(" <thi", ("", " <thi")), ("<think>a</thi", ("</thi", "")), ("<think>a</think>b", ("", "")), ("", ("", ""))],
)
def test_what_was_held_back_comes_at_the_end(text: str, last: tuple[str, str]) -> None:
    """As reasoning or as text, depending on where it is."""
    splitter = Splitter()
    splitter.feed(text)
    assert splitter.finish() == last
