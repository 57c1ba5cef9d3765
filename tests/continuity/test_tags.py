"""Thinking tags in text: which characters go, which stay, and that it makes no difference how the text was cut."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from thoughtline.continuity.tags import MAX_TAG_CHARS, Scanner, TagMode, Verdict, visible_text

TEXTS: dict[str, tuple[str, str, str]] = {
    # text, visible text without markers, visible text when lifted
    "plain": ("Hello, world", "Hello, world", "Hello, world"),
    "one": ("<think>so</think>Yes.", "soYes.", "Yes."),
    "all names": (
        "<think>a</think><thinking>b</thinking><thought>c</thought><reasoning>d</reasoning><analysis>e</analysis>f",
        "abcdef",
        "f",
    ),
    "odd case": ("<ThInK>a</THINK>b", "ab", "b"),
    "attributes": ("<thinking effort=\"high\" hidden x='1' n=3>a</thinking >b", "ab", "b"),
    "on several lines": ("<think\n  a=b\n>a</think\n>b", "ab", "b"),
    "empty": ("<think/>a<think />b", "ab", "ab"),
    "white space stays": (" <think>\n a \n</think>\n\nb", " \n a \n\n\nb", " \n\nb"),
    "never closed": ("a<think>b", "ab", "a"),
    "never opened": ("a</think>b", "ab", "ab"),
    "nested": ("<think>a<think>b</think>c</think>d", "abcd", "cd"),
    "other names inside": ("<think>a<reasoning>b</reasoning>c</think>d", "abcd", "d"),
    "longer names": (
        "<thinker>a</thinkers><rethink>",
        "<thinker>a</thinkers><rethink>",
        "<thinker>a</thinkers><rethink>",
    ),
    "no names": ("a < b <b>c</b> <3 <", "a < b <b>c</b> <3 <", "a < b <b>c</b> <3 <"),
    "cut short": ("a<thin", "a<thin", "a<thin"),
    "a sentence": ("<think about it, as 3 > 2>", "<think about it, as 3 > 2>", "<think about it, as 3 > 2>"),
    "two brackets": ("<<think>a", "<a", "<"),
    "a tag in a tag": ("<think <think>a", "<think a", "<think "),
    "inline code": (
        "Write `<think>` and ``</think> ` ``, <think>a",
        "Write `<think>` and ``</think> ` ``, a",
        "Write `<think>` and ``</think> ` ``, ",
    ),
    "a backtick alone": ("It's ` here\n<think>a</think>b", "It's ` here\nab", "It's ` here\nb"),
    "a fence": (
        "x\n```xml\n<think>\n</think>\n```\n<think>a</think>b",
        "x\n```xml\n<think>\n</think>\n```\nab",
        "x\n```xml\n<think>\n</think>\n```\nb",
    ),
    "a fence of tildes": ("~~~\n<think>\n```\n~~~\n</think>", "~~~\n<think>\n```\n~~~\n", "~~~\n<think>\n```\n~~~\n"),
    "a longer fence": (
        "````\n```\n<think>\n````\n</think>",
        "````\n```\n<think>\n````\n",
        "````\n```\n<think>\n````\n",
    ),
    "a fence in a list": (
        "- ```\n  <think>\n  ```\n</think>",
        "- ```\n  <think>\n  ```\n",
        "- ```\n  <think>\n  ```\n",
    ),
    "a fence in a quote": (
        "> ```\n> <think>\n> ```\n</think>",
        "> ```\n> <think>\n> ```\n",
        "> ```\n> <think>\n> ```\n",
    ),
    "a fence that never ends": (
        "```\n<think>\n``` no\n<think>",
        "```\n<think>\n``` no\n<think>",
        "```\n<think>\n``` no\n<think>",
    ),
    "three ticks in a line": ("```<think>``` <think>a", "```<think>``` a", "```<think>``` "),
    "a fence behind a marker": ("<think>```\n<think>\n```\n</think>b", "```\n<think>\n```\nb", "b"),
    "Windows lines": ("```\r\n<think>\r\n```\r\n<think>a", "```\r\n<think>\r\n```\r\na", "```\r\n<think>\r\n```\r\n"),
    "other scripts": ("é<think>考える</think>答え🧠", "é考える答え🧠", "é答え🧠"),
}


@pytest.mark.parametrize(("text", "visible", "left"), TEXTS.values(), ids=list(TEXTS))
def test_markers_go_or_what_they_mark(text: str, visible: str, left: str) -> None:
    """Markers: the inner text stays. Lift: it goes. Off: nothing happens."""
    assert visible_text(text, "markers") == visible
    assert visible_text(text, "lift") == left
    assert visible_text(text, "off") == text


def test_what_is_lifted_is_what_stood_between() -> None:
    """With its white space, and all of several."""
    scanner = Scanner("lift")
    runs = [*scanner.feed("<think> a </think>b<thought>\nc</thought>"), *scanner.finish()]
    assert [text for verdict, text in runs if verdict == "lift"] == [" a ", "\nc"]


def _verdicts(mode: TagMode, pieces: list[str]) -> list[Verdict]:
    scanner = Scanner(mode)
    runs = [run for piece in pieces for run in scanner.feed(piece)] + scanner.finish()
    return [verdict for verdict, text in runs for _ in text]


@pytest.mark.parametrize("mode", ["markers", "lift"])
@pytest.mark.parametrize("text", [row[0] for row in TEXTS.values()], ids=list(TEXTS))
def test_a_cut_anywhere_makes_no_difference(text: str, mode: TagMode) -> None:
    """At every place, at every two places, and between all characters."""
    whole = _verdicts(mode, [text])
    assert len(whole) == len(text)
    assert _verdicts(mode, list(text)) == whole
    for first in range(len(text) + 1):
        for second in range(first, len(text) + 1, 3):
            assert _verdicts(mode, [text[:first], text[first:second], text[second:]]) == whole


PARTS = st.sampled_from(
    ["<", ">", "/", "think", "thinking", "THOUGHT", " ", "a=b", 'x="', '"', "`", "```", "~~~", "\n", "é", "</think>"]
)


@given(st.lists(PARTS, max_size=30), st.sampled_from(["markers", "lift"]), st.data())
def test_no_text_and_no_cut_makes_a_difference(parts: list[str], mode: TagMode, data: st.DataObject) -> None:
    """Whatever is made of what the scanner looks at."""
    text = "".join(parts)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=8)))
    pieces = [text[start:end] for start, end in zip([0, *cuts], [*cuts, len(text)], strict=True)]
    assert _verdicts(mode, pieces) == _verdicts(mode, [text])


@pytest.mark.parametrize(
    "text", ["a", "a ", "a <b", "<3", "< ", "<x", "<thinkx", "<think,", "a > b", "`<think", "``` <"]
)
def test_nothing_is_held_that_can_not_become_a_tag(text: str) -> None:
    """Held back no longer than needed to decide."""
    scanner = Scanner("markers")
    scanner.feed(text)
    assert not scanner.finish()


@pytest.mark.parametrize(
    "text", ["a<", "</", "<th", "<think", "<think ", "<think a", "<think a=", '<think a="b c', "</THINK"]
)
def test_what_could_become_a_tag_is_held(text: str) -> None:
    """And not a character before it."""
    scanner = Scanner("markers")
    runs = scanner.feed(text)
    assert sum(len(run.text) for run in runs) == text.index("<")
    assert scanner.finish()


def test_a_tag_that_never_ends_is_let_go() -> None:
    """After a bound, so that an open bracket can't hold up a stream."""
    scanner = Scanner("markers")
    scanner.feed('<think a="')
    runs = scanner.feed("x" * MAX_TAG_CHARS)
    assert not scanner.finish()
    assert sum(len(run.text) for run in runs) == MAX_TAG_CHARS + len('<think a="')
