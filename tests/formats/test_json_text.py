"""JSON as text: problems with their places, spans, and edits that touch nothing else."""

from __future__ import annotations

import json
import sys
from typing import Any

import msgspec
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from msgspec import Raw, Struct

from thoughtline.errors import DecodeError, EncodeError, LimitExceeded
from thoughtline.formats.json_text import (
    NULL,
    Path,
    arguments_object,
    array,
    decode,
    decode_content,
    decode_kind,
    decode_list,
    element_spans,
    elements,
    is_array,
    is_given,
    is_json,
    member_spans,
    members,
    object_of,
    own,
    pointer,
    replace_at,
    set_members,
    span_at,
)

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
    """The elements of an array, or an error where it should stand."""
    assert decode_list(b'[1,"a"]') == [Raw(b"1"), Raw(b'"a"')]
    with pytest.raises(DecodeError) as wrong:
        decode_list(b"{}", "/messages")
    assert wrong.value.place == "/messages"


# --- spans -----------------------------------------------------------------------------------------------------------

Pairs = list[tuple[str, bytes]]

OBJECTS: dict[str, tuple[bytes, Pairs]] = {
    "plain": (b'{"a":1,"b":"x"}', [("a", b"1"), ("b", b'"x"')]),
    "white space everywhere": (b' {\n"a"\t:\r\n1 ,\n "b" : [ 1 , 2 ]\n} \n', [("a", b"1"), ("b", b"[ 1 , 2 ]")]),
    "empty": (b"{}", []),
    "empty with white space": (b" { \n } ", []),
    "containers": (b'{"a":{"b":[{}]},"c":[[],"]"]}', [("a", b'{"b":[{}]}'), ("c", b'[[],"]"]')]),
    "empty containers": (b'{"a":{},"b":[],"c":""}', [("a", b"{}"), ("b", b"[]"), ("c", b'""')]),
    "escaped keys": (b'{"\\u0061":1,"\\"}":2,"\\\\":3}', [("a", b"1"), ('"}', b"2"), ("\\", b"3")]),
    "empty key": (b'{"":1}', [("", b"1")]),
    "keys beyond ASCII": ('{"é":1,"\\ud83d\\ude00":2}'.encode(), [("é", b"1"), ("😀", b"2")]),
    "quotes and brackets in values": (
        b'{"a":"}\\",\\"b\\":2","b":"\\\\"}',
        [("a", b'"}\\",\\"b\\":2"'), ("b", b'"\\\\"')],
    ),
    "literals": (
        b'{"a":null,"b":true,"c":false,"d":-1.50e+3}',
        [("a", b"null"), ("b", b"true"), ("c", b"false"), ("d", b"-1.50e+3")],
    ),
    "duplicates": (b'{"a":1,"b":2,"a":"x"}', [("a", b"1"), ("b", b"2"), ("a", b'"x"')]),
    "duplicates spelled otherwise": (b'{"a":[1],"\\u0061":{}}', [("a", b"[1]"), ("a", b"{}")]),
    "equal duplicates": (b'{"a":1,"a":1}', [("a", b"1"), ("a", b"1")]),
    "a duplicate that the first begins with": (b'{"a":12,"a":1}', [("a", b"12"), ("a", b"1")]),
    "a fraction that a duplicate begins": (b'{"a":1.5 ,"b":{},"a":1}', [("a", b"1.5"), ("b", b"{}"), ("a", b"1")]),
    "duplicates of every kind": (
        b'{"a":{"x":"}"},"a":["]"],"a":"\\"","a":null,"a" : -0 }',
        [("a", b'{"x":"}"}'), ("a", b'["]"]'), ("a", b'"\\""'), ("a", b"null"), ("a", b"-0")],
    ),
}


@pytest.mark.parametrize("name", OBJECTS)
def test_members_stand_where_they_stand(name: str) -> None:
    """Every member in its order, duplicates included, each with the bytes of its key and of its value."""
    text, pairs = OBJECTS[name]
    spans = member_spans(text)
    assert [(span.key, text[span.value_start : span.end]) for span in spans] == pairs
    assert all(json.loads(text[span.start : span.value_start].rstrip(b" \t\r\n:")) == span.key for span in spans)


@pytest.mark.parametrize("name", OBJECTS)
def test_of_several_members_with_one_key_the_last_wins(name: str) -> None:
    """Members by key are what every JSON reader sees."""
    text, pairs = OBJECTS[name]
    assert {key: bytes(value) for key, value in members(text).items()} == dict(pairs)


ARRAYS: dict[str, tuple[bytes, list[bytes]]] = {
    "plain": (b'[1,"a",null]', [b"1", b'"a"', b"null"]),
    "white space everywhere": (b' [\n1 ,\t{ "a" : 1 }\r\n, [ ] ] ', [b"1", b'{ "a" : 1 }', b"[ ]"]),
    "empty": (b"[]", []),
    "empty with white space": (b" [ \n ] ", []),
    "commas and brackets in values": (b'[", ]",[1,[2]],{"]":","}]', [b'", ]"', b"[1,[2]]", b'{"]":","}']),
    "equal elements": (b"[1,1,1]", [b"1", b"1", b"1"]),
}


@pytest.mark.parametrize("name", ARRAYS)
def test_elements_stand_where_they_stand(name: str) -> None:
    """Every element with its bytes."""
    text, values = ARRAYS[name]
    assert [text[start:end] for start, end in element_spans(text)] == values
    assert [bytes(element) for element in elements(text)] == values


SPACES = st.sampled_from([b"", b"", b" ", b"\n  ", b"\r\n", b"\t"])
KEYS = st.sampled_from([b'"a"', b'"\\u0061"', b'"b"', b'"c d"', b'""', b'"\\"}"', '"é"'.encode()])
SCALARS = [b"1", b"12", b"1.5", b"-0", b"1e4", b"null", b"true", b'""', b'"a"', b'"\\"}"', b'"],{"', '"é"'.encode()]
VALUES = st.sampled_from([*SCALARS, b"{}", b"[]", b"[1, 2]", b'{"a":1}', b'{"a":{"b":"}"} }'])


class Spelled(Struct):
    """An object as a list of members, each with its white space; a field of its own for each piece of text."""

    head: bytes
    members: list[tuple[bytes, bytes, bytes, bytes]]
    tail: bytes

    def text(self) -> bytes:
        return self.head + b",".join(b"".join(member) for member in self.members) + self.tail

    def pairs(self) -> Pairs:
        return [(json.loads(key), value) for _, key, _, value in self.members]


spelled_members = st.lists(
    st.tuples(SPACES, KEYS, st.builds(lambda a, b: a + b":" + b, SPACES, SPACES), VALUES), min_size=1, max_size=6
)
spelled_objects = st.builds(
    Spelled, SPACES.map(lambda space: space + b"{"), spelled_members, SPACES.map(lambda space: space + b"}" + space)
)


@settings(max_examples=150, deadline=None)
@given(spelled=spelled_objects)
def test_members_of_any_object(spelled: Spelled) -> None:
    """Any keys, values, duplicates and white space."""
    text = spelled.text()
    found = [(text[span.start : span.value_start], text[span.value_start : span.end]) for span in member_spans(text)]
    assert found == [(key + colon, value) for _, key, colon, value in spelled.members]


# --- setting members -------------------------------------------------------------------------------------------------

Changes = list[tuple[str, bytes | None]]

EDITS: dict[str, tuple[bytes, Changes, bytes]] = {
    "nothing": (b' { "a":1 } ', [], b' { "a":1 } '),
    "replace the only one": (b'{"a":1}', [("a", b"2")], b'{"a":2}'),
    "replace in place": (b'{ "a" : 1 ,\n"b":[ 2 ],"c":3 }', [("b", b"{}")], b'{ "a" : 1 ,\n"b":{},"c":3 }'),
    "replace two": (b'{"a":1,"b":2,"c":3}', [("c", b"4"), ("a", b"5")], b'{"a":5,"b":2,"c":4}'),
    "replace by the same": (b'{"a": 1.0}', [("a", b"1.0")], b'{"a": 1.0}'),
    "replace under an escaped key": (b'{"\\u0061" : 1}', [("a", b"2")], b'{"\\u0061" : 2}'),
    "append": (b'{"a":1 }', [("b", b"2")], b'{"a":1,"b":2 }'),
    "append two": (b'{"a":1}', [("c", b"3"), ("b", b"2")], b'{"a":1,"c":3,"b":2}'),
    "append a key to be escaped": (b'{"a":1}', [('"\n', b"2")], b'{"a":1,"\\"\\n":2}'),
    "remove the first": (b'{"a":1 , "b":2, "c":3}', [("a", None)], b'{"b":2, "c":3}'),
    "remove the middle": (b'{"a":1 , "b":2, "c":3}', [("b", None)], b'{"a":1, "c":3}'),
    "remove the last": (b'{"a":1 , "b":2, "c":3}', [("c", None)], b'{"a":1 , "b":2}'),
    "remove the first two": (b'{"a":1,"b":2, "c":3 }', [("a", None), ("b", None)], b'{"c":3 }'),
    "remove the last two": (b'{ "a":1,"b":2, "c":3 }', [("b", None), ("c", None)], b'{ "a":1 }'),
    "remove all": (b'{"a":1,"b":2}', [("a", None), ("b", None)], b"{}"),
    "remove what is not there": (b'{"a":1}', [("b", None)], b'{"a":1}'),
    "remove all and append": (b'{"a":1,"b":2}', [("a", None), ("c", b"3"), ("b", None)], b'{"c":3}'),
    "remove the first and append": (b'{"a":1,"b":2}', [("a", None), ("c", b"3")], b'{"b":2,"c":3}'),
    "into an empty object": (b"{}", [("a", b"1"), ("b", b"2")], b'{"a":1,"b":2}'),
    "into an empty object with white space": (b" { } ", [("a", b"1")], b' {"a":1 } '),
    "remove from an empty object": (b" { } ", [("a", None)], b" { } "),
    "replace a duplicate": (b'{"a":1,"b":2,"a":3}', [("a", b"4")], b'{"b":2,"a":4}'),
    "remove a duplicate": (b'{"a":1,"b":2,"a":3}', [("a", None)], b'{"b":2}'),
    "other duplicates stay": (b'{"a":1,"b":2,"a":3}', [("b", b"4")], b'{"a":1,"b":4,"a":3}'),
    "numbers that begin alike": (b'{"a":12,"a":1,"b":2}', [("b", b"3")], b'{"a":12,"a":1,"b":3}'),
    "spelling of the others": (
        b'{"x":1.0e+2,"a":1,"y":"\\u00e9\\/","z":"\xc3\xa9"}',
        [("a", b"2")],
        b'{"x":1.0e+2,"a":2,"y":"\\u00e9\\/","z":"\xc3\xa9"}',
    ),
    "the last change of a key counts": (b'{"a":1}', [("a", b"2"), ("a", b"3")], b'{"a":3}'),
}


@pytest.mark.parametrize("name", EDITS)
def test_an_edit_touches_nothing_else(name: str) -> None:
    """The exact bytes: what exists is changed in place, what is new comes last, the rest stays."""
    text, changes, edited = EDITS[name]
    assert set_members(text, changes) == edited
    assert set_members(Raw(text), changes) == edited
    assert set_members(text, changes, member_spans(text)) == edited


changes_of_any = st.dictionaries(
    st.sampled_from(["a", "b", "c d", "", '"}', "é", "new"]), st.none() | VALUES, max_size=5
)


def edited_pairs(pairs: Pairs, changes: dict[str, bytes | None]) -> Pairs:
    """The same edit on a list of pairs."""
    last = {key: at for at, (key, _) in enumerate(pairs)}
    kept = [
        (key, changes.get(key, value)) for at, (key, value) in enumerate(pairs) if key not in changes or at == last[key]
    ]
    fresh = [(key, value) for key, value in changes.items() if key not in last]
    return [(key, value) for key, value in [*kept, *fresh] if value is not None]


def value_of(text: bytes) -> Any:
    """A value whose objects are lists of pairs: order and duplicates count."""
    return json.loads(text, object_pairs_hook=list)


@settings(max_examples=150, deadline=None)
@given(spelled=spelled_objects, changes=changes_of_any)
def test_any_edit_gives_the_value_of_the_model(spelled: Spelled, changes: dict[str, bytes | None]) -> None:
    """Values and order of all members, duplicates included, are those of a list of pairs with the same edit."""
    edited = set_members(spelled.text(), changes.items())
    expected = edited_pairs(spelled.pairs(), changes)
    assert value_of(edited) == [(key, value_of(value)) for key, value in expected]


@settings(max_examples=150, deadline=None)
@given(spelled=spelled_objects, changes=changes_of_any)
@example(spelled=Spelled(b"{", [(b"", b'"a"', b":", b"12"), (b"", b'"a"', b":", b"1")], b"}"), changes={})
def test_bytes_outside_the_changed_members_stay(spelled: Spelled, changes: dict[str, bytes | None]) -> None:
    """Members that nobody changed keep every byte, and so does what stands before the first and after the last."""
    text = spelled.text()
    edited = set_members(text, changes.items())
    assert unchanged(edited, changes) == unchanged(text, changes)
    assert edited.startswith(spelled.head)
    assert edited.endswith(spelled.tail)


@settings(max_examples=150, deadline=None)
@given(spelled=spelled_objects, value=VALUES)
def test_replacing_values_keeps_every_other_byte(spelled: Spelled, value: bytes) -> None:
    """Where no key is double, new values simply stand where the old ones stood."""
    unique = {json.loads(member[1]): member for member in spelled.members}
    before = Spelled(spelled.head, list(unique.values()), spelled.tail)
    after = Spelled(spelled.head, [(*member[:3], value) for member in unique.values()], spelled.tail)
    assert set_members(before.text(), [(key, value) for key in unique]) == after.text()


def unchanged(text: bytes, changes: dict[str, bytes | None]) -> list[bytes]:
    """The spelling of each member that an edit does not name."""
    return [text[span.start : span.end] for span in member_spans(text) if span.key not in changes]


# --- places inside ---------------------------------------------------------------------------------------------------

BODY = b' { "a" : [ 1 , {"b":"x"} ] , "c":{"d":null}, "e":1, "e":2, "f":[], "g/h":{"":3} } \n'

PLACES: dict[str, tuple[Path, bytes]] = {
    "a member": (("a",), b'[ 1 , {"b":"x"} ]'),
    "an element": (("a", 0), b"1"),
    "a member of an element": (("a", 1, "b"), b'"x"'),
    "null": (("c", "d"), b"null"),
    "the last of two": (("e",), b"2"),
    "an empty array": (("f",), b"[]"),
    "odd keys": (("g/h", ""), b"3"),
    "the whole": ((), BODY.strip()),
}


@pytest.mark.parametrize("name", PLACES)
def test_a_value_is_found_by_its_path(name: str) -> None:
    """The value without the white space around it."""
    path, value = PLACES[name]
    for body in (BODY, BODY.strip()):
        found = span_at(body, path)
        assert found is not None
        assert body[found[0] : found[1]] == value


@pytest.mark.parametrize("name", PLACES)
def test_a_value_is_replaced_by_its_path(name: str) -> None:
    """All bytes before and after it stay."""
    path, _ = PLACES[name]
    start, end = span_at(BODY, path) or (0, 0)
    assert replace_at(BODY, path, b'"new"') == BODY[:start] + b'"new"' + BODY[end:]


ABSENT: dict[str, Path] = {
    "no such member": ("z",),
    "no such element": ("a", 2),
    "nothing in an empty array": ("f", 0),
    "no such member inside": ("c", "z"),
    "a member of an array": ("a", "b"),
    "an element of an object": ("c", 0),
    "a member of a number": ("a", 0, "b"),
}


@pytest.mark.parametrize("name", ABSENT)
def test_a_path_to_nothing(name: str) -> None:
    """Nothing is found; replacing it is an error with the place."""
    path = ABSENT[name]
    assert span_at(BODY, path) is None
    with pytest.raises(DecodeError, match="nothing to replace") as wrong:
        replace_at(BODY, path, b"1")
    assert wrong.value.place == pointer(path)


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
    """Any value counts, and stands as arguments as it is spelled."""
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


def test_what_is_kept_is_no_view_of_its_body() -> None:
    """The same bytes; what was taken out no longer keeps the body alive."""
    body = b'{"a":"' + b"x" * 1000 + b'","b":[1]}'
    holders = sys.getrefcount(body)
    view = members(body)["b"]
    kept = own(view)
    assert sys.getrefcount(body) == holders + 1
    del view
    assert sys.getrefcount(body) == holders
    assert kept == Raw(b"[1]")
