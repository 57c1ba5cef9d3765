"""Named members taken out of a body: those, and no other byte."""

from __future__ import annotations

import pytest

from thoughtline.formats.leaving_out import is_pattern, pattern_at, without_members

BODY = (
    b'{"model": "m", "thinking": {"type":"enabled", "block_binding" : 1},\n'
    b' "messages": [ {"role":"user","content":"hi","refusal":null},'
    b' {"role":"assistant", "refusal" :"no", "content":[{"type":"thinking","cache_control":{},"thinking":"t"},'
    b' {"type":"text", "cache_control":{"a":1.0}, "text":"\xc3\xa9"}]}],  "reasoning":{"effort":"high"} }'
)


@pytest.mark.parametrize(
    ("pattern", "gone"),
    [
        ("reasoning", [b',  "reasoning":{"effort":"high"}']),
        ("thinking.block_binding", [b', "block_binding" : 1']),
        ("messages[].content[thinking].cache_control", [b'"cache_control":{},']),
        ("messages[].content[].cache_control", [b'"cache_control":{},', b' "cache_control":{"a":1.0},']),
        ("messages[].refusal", [b',"refusal":null']),
    ],
)
def test_all_other_bytes_stay(pattern: str, gone: list[bytes]) -> None:
    """Spaces, numbers and order too. A refusal that says something is what a message says."""
    rest = BODY
    for piece in gone:
        assert piece in rest
        rest = rest.replace(piece, b"", 1)
    less, found = without_members(BODY, [pattern])
    assert (less.replace(b" ", b""), found) == (rest.replace(b" ", b""), (pattern,))
    assert without_members(less, [pattern]) == (less, ())


@pytest.mark.parametrize(
    "pattern",
    [
        "messages[].role",
        "messages[].content",
        "messages[].content[thinking].type",
        "model",
        "refusal",
        "thinking.cache_control",
        "messages.refusal",
        "model[].refusal",
        "messages[assistant].refusal",
        "thinking[].block_binding",
    ],
)
def test_what_stays(pattern: str) -> None:
    """What a message is made of, whatever a refusal says; and members of that name at other places."""
    assert without_members(BODY, [pattern]) == (BODY, ())


def test_the_readable_part_of_a_thought_may_go() -> None:
    """The content of a reasoning item of Responses, of no other item."""
    body = b'{"input":[{"type":"reasoning","content":[],"id":"r"},{"type":"message","content":[]}]}'
    less = b'{"input":[{"type":"reasoning","id":"r"},{"type":"message","content":[]}]}'
    assert without_members(body, ["input[].content"]) == (less, ("input[].content",))
    assert pattern_at(body, "/input/0", "content") == "input[reasoning].content"
    assert pattern_at(body, "/input/1", "content") is None


@pytest.mark.parametrize(
    ("place", "field", "pattern"),
    [
        ("", "reasoning", "reasoning"),
        ("/thinking", "block_binding", "thinking.block_binding"),
        ("/messages/1/content/0", "cache_control", "messages[].content[thinking].cache_control"),
        ("/messages/0", "refusal", "messages[].refusal"),
        ("/messages/1", "refusal", None),
        ("/messages/7", "refusal", None),
        ("/messages/1/content/0", "text", None),
        ("/model/0", "refusal", None),
        ("/nowhere", "refusal", None),
        ("", "tools", None),
    ],
)
def test_the_pattern_of_a_member(place: str, field: str, pattern: str | None) -> None:
    """For every element of its kind; none for missing members, or those that must stay."""
    assert pattern_at(BODY, place, field) == pattern


@pytest.mark.parametrize("text", ["", "a b", "a..b", "a[", "a[]b", "é", ".".join("a" * 10), "a" * 81])
def test_what_is_no_pattern(text: str) -> None:
    """Patterns are kept and shared, so they are short and plain."""
    assert not is_pattern(text)
    assert is_pattern("messages[].content[tool_result].cache_control")
