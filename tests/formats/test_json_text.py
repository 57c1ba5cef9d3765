"""JSON as text: problems with their places, values that say what they are, and texts that are JSON or not."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import Raw, Struct

from thoughtline.formats.json_text import (
    NULL,
    Path,
    arguments_object,
    array,
    decode,
    decode_content,
    decode_each,
    decode_kind,
    decode_list,
    is_array,
    is_given,
    is_json,
    member_spans,
    members,
    object_of,
    pointer,
    set_members,
)
from thoughtline.values.errors import DecodeError, EncodeError, LimitExceeded

# --- problems and their places ---------------------------------------------------------------------------------------


class Leaf(Struct):
    name: str = ""


class Tree(Struct):
    leaf: Leaf | None = None
    leaves: list[Leaf] = []
    by_name: dict[str, Leaf] = {}
    count: int = 0


tree_decoder = msgspec.json.Decoder(Tree)
DEEP = b'{"leaf":' + b'{"x":' * 100_000

PROBLEMS: dict[str, tuple[bytes, str, str]] = {
    "a member": (b'{"count":"1"}', "", "/count"),
    "a member further out": (b'{"count":"1"}', "/messages/3", "/messages/3/count"),
    "a nested member": (b'{"leaf":{"name":1}}', "", "/leaf/name"),
    "an element": (b'{"leaves":[{},{"name":null}]}', "/x", "/x/leaves/1/name"),
    "a value whose key is not ours": (b'{"by_name":{"k":{"name":1}}}', "", "/by_name/*/name"),
    "the value itself": (b"[]", "", "/"),
    "the value itself further out": (b"[]", "/x", "/x"),
    "not JSON": (b'{"count":1,}', "", "byte 11"),
    "not JSON further out": (b'{"count":1,}', "/x", "/x byte 11"),
    "cut short": (b'{"count":', "", "byte 9"),
    "cut short further out": (b'{"count":', "/x", "/x byte 9"),
    "nothing": (b"", "", "byte 0"),
    "bytes that are no UTF-8": (b'{"leaf":{"name":"\xff"}}', "", "/"),
    "bytes that are no UTF-8 further out": (b'{"leaf":{"name":"\xff"}}', "/x", "/x"),
}


@pytest.mark.parametrize("name", PROBLEMS)
def test_a_problem_has_its_place(name: str) -> None:
    """A pointer where a value is wrong, a byte offset where the bytes are no JSON, both seen from the outside."""
    text, outside, place = PROBLEMS[name]
    for spelling in (text, Raw(text)):
        with pytest.raises(DecodeError) as wrong:
            decode(tree_decoder, spelling, outside)
        assert wrong.value.place == place
        assert not isinstance(wrong.value, LimitExceeded)


@pytest.mark.parametrize(("outside", "place"), [("", "/"), ("/x", "/x")])
def test_nesting_without_end_is_beyond_a_bound(outside: str, place: str) -> None:
    """Brackets that would overflow the stack are a named error with its place."""
    with pytest.raises(LimitExceeded, match="nested too deeply") as wrong:
        decode(tree_decoder, DEEP, outside)
    assert wrong.value.place == place


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b'{"count":"hush"}', "Expected int, got str (at /count)"),
        (b'{"count":1,}', "JSON is malformed: trailing comma in object (at byte 11)"),
        (b'{"leaf":{"name":"hush\xff"}}', "invalid UTF-8 in a string: byte 0xff (at /)"),
    ],
    ids=["a wrong type", "no JSON", "no UTF-8"],
)
def test_a_problem_says_what_was_expected(text: bytes, message: str) -> None:
    """The types or the mistake, without the value."""
    with pytest.raises(DecodeError) as wrong:
        decode(tree_decoder, text)
    assert str(wrong.value) == message


def test_what_is_right_is_decoded() -> None:
    """Bytes and raw values alike."""
    assert decode(tree_decoder, b' {"count":2} ') == decode(tree_decoder, Raw(b'{"count":2}')) == Tree(count=2)


@pytest.mark.parametrize(
    ("path", "written"),
    [
        ((), ""),
        (("messages", 3, "role"), "/messages/3/role"),
        (("a/b",), "/a~1b"),
        (("m~n",), "/m~0n"),
        (("~1", "~0/"), "/~01/~00~1"),
        (("", " ", 'k"l', "é"), '// /k"l/é'),
    ],
)
def test_pointers_are_escaped(path: Path, written: str) -> None:
    """RFC 6901: a tilde first, then a slash."""
    assert pointer(path) == written


# --- values that say what they are -----------------------------------------------------------------------------------


class Picture(Struct):
    type: str = ""
    width: int = 0


picture_decoder = msgspec.json.Decoder(Picture)


@pytest.mark.parametrize(
    ("text", "decoded"),
    [
        pytest.param(b'{"type":"picture","width":3}', Picture("picture", 3), id="known"),
        pytest.param(b'{"type":"drawing","width":3}', Picture("drawing", 3), id="unknown with members of our types"),
        pytest.param(b'{"type":"drawing","width":"wide"}', "drawing", id="unknown with members of other types"),
        pytest.param(b'{"width":[]}', "", id="no kind at all"),
    ],
)
def test_a_kind_is_read_if_nothing_else_can_be(text: bytes, decoded: Picture | str) -> None:
    """What we don't know may use our names for other things."""
    assert decode_kind(picture_decoder, Raw(text), ("picture",)) == decoded


@pytest.mark.parametrize(
    ("text", "place"),
    [
        pytest.param(b'{"type":"picture","width":"wide"}', "/x/width", id="known kind, wrong type"),
        pytest.param(b'{"type":7}', "/x/type", id="a kind that is no text"),
        pytest.param(b"[]", "/x", id="no object"),
        pytest.param(b'{"type":"drawing",', "/x byte 18", id="no JSON"),
    ],
)
def test_a_kind_we_know_must_be_right(text: bytes, place: str) -> None:
    """A known kind with a wrong member is an error, and so is what has no kind."""
    with pytest.raises(DecodeError) as wrong:
        decode_kind(picture_decoder, Raw(text), ("picture",), "/x")
    assert wrong.value.place == place


@pytest.mark.parametrize(
    ("content", "decoded"),
    [
        (NULL, None),
        (Raw(b"null"), None),
        (Raw(b'"hello"'), "hello"),
        (Raw(b"[]"), []),
        (Raw(b'[1, {"a":2}]'), [Raw(b"1"), Raw(b'{"a":2}')]),
    ],
    ids=["absent", "null", "text", "no parts", "parts"],
)
def test_content_is_text_or_parts_or_nothing(content: Raw, decoded: str | list[Raw] | None) -> None:
    """Parts are not looked into."""
    assert decode_content(content) == decoded


@pytest.mark.parametrize("content", [b"1", b"{}", b'"\xff"', b"true"])
def test_content_of_another_kind_has_its_place(content: bytes) -> None:
    """The place is the member."""
    with pytest.raises(DecodeError) as wrong:
        decode_content(Raw(content))
    assert wrong.value.place == "/content"


def test_a_list_that_is_none_has_its_place() -> None:
    """The elements of an array, or an error."""
    assert decode_list(b'[1,"a"]') == [Raw(b"1"), Raw(b'"a"')]
    with pytest.raises(DecodeError) as wrong:
        decode_list(b"{}", "/messages")
    assert wrong.value.place == "/messages"


# --- texts that are JSON or not --------------------------------------------------------------------------------------

JSON_TEXTS = ["{}", " [1, 2]\n", "null", '"a"', "-0", "1E+2", "1e400", '{"a":{"a":1}}', '"\\u00e9\\n"', "true", '"é"']
OTHER_TEXTS = [
    "",
    "  ",
    '{"a":',
    "{} {}",
    "01",
    "1.",
    "-",
    "+1",
    ".5",
    "NaN",
    "tru",
    '"\\q"',
    '"\n"',
    '{"a":1,}',
    "[1,]",
]
OTHER_TEXTS += ["{'a':1}", "{1:2}", "\ufeff{}", '"\\ud800"', '"abc', "[" * 100_000]


@pytest.mark.parametrize("text", JSON_TEXTS)
def test_texts_that_are_json(text: str) -> None:
    """Any value counts, and is kept as it is spelled."""
    assert is_json(text)
    assert arguments_object(text) == text.encode()


@pytest.mark.parametrize("text", OTHER_TEXTS, ids=lambda text: repr(text[:12]))
def test_texts_that_are_no_json(text: str) -> None:
    """Nothing is repaired."""
    assert not is_json(text)


@pytest.mark.parametrize("text", [text for text in OTHER_TEXTS if text], ids=lambda text: repr(text[:12]))
def test_arguments_that_are_no_json_are_refused(text: str) -> None:
    """Where JSON is expected, free text can't go."""
    with pytest.raises(EncodeError):
        arguments_object(text)


def test_arguments_of_a_call_cut_short_are_none() -> None:
    """No text at all is an empty object."""
    assert arguments_object("") == b"{}"


@settings(max_examples=100, deadline=None)
@given(value=st.recursive(st.none() | st.booleans() | st.integers() | st.text(), st.lists, max_leaves=5))
def test_whatever_is_written_as_json_is_json(value: Any) -> None:
    """And no longer so without its last bracket."""
    text = json.dumps([value])
    assert is_json(text)
    assert not is_json(text[:-1])


# --- small pieces ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("raw", "given"), [(NULL, False), (Raw(b"null"), False), (Raw(b'""'), True), (Raw(b"0"), True), (Raw(b"{}"), True)]
)
def test_absent_and_null_are_not_given(raw: Raw, given: bool) -> None:
    """Everything else is, however empty."""
    assert is_given(raw) is given


def test_arrays_are_known_by_their_bracket() -> None:
    """Of a value without white space around it."""
    assert [is_array(text) for text in (b"[]", Raw(b"[1]"), b"{}", b'"["', b"")] == [True, True, False, False, False]


def test_containers_of_text_that_is_json_already() -> None:
    """The values keep their spelling; members that are None are left out."""
    assert array([b"1.0", Raw(b' "a"')]) == b'[1.0, "a"]'
    assert array([]) == b"[]"
    assert object_of([("a", b"1.0"), ("b", None), ('"', Raw(b"[]"))]) == b'{"a":1.0,"\\"":[]}'
    assert object_of([("a", None)]) == b"{}"


def test_the_element_with_a_problem_is_named() -> None:
    """Every element is decoded; errors name the element's position."""

    def number(raw: Raw) -> int:
        return decode(msgspec.json.Decoder(int), raw)

    assert decode_each([Raw(b"1"), Raw(b"2")], number, "/list") == (1, 2)
    with pytest.raises(DecodeError) as caught:
        decode_each([Raw(b"1"), Raw(b'"x"')], number, "/list")
    assert caught.value.place.startswith("/list/1")


ODD = b'{ "a": 1, "\xff\xc3": {"\xfe": "\xff"}, "caf\xc3\xa9": [2],"a" : 3 }'
"""With names that are no UTF-8."""


def test_a_name_that_is_no_utf8_is_another_member() -> None:
    """It hides no other member, its value stays unchanged, and an edit of another member leaves its bytes."""
    found = members(ODD)
    assert {name: bytes(value) for name, value in found.items()} == {
        "a": b"3",
        "??": b'{"\xfe": "\xff"}',
        "caf\u00e9": b"[2]",
    }
    assert bytes(members(found["??"])["?"]) == b'"\xff"'
    assert [ODD[one.value_start : one.end] for one in member_spans(ODD)] == [b"1", b'{"\xfe": "\xff"}', b"[2]", b"3"]
    assert set_members(ODD, [("caf\u00e9", b"4")]) == ODD.replace(b"[2]", b"4")
