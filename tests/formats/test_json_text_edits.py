"""JSON as text: positions of values, and edits that change nothing else."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from msgspec import Raw, Struct

from thoughtline.formats.json_text import (
    Path,
    element_spans,
    elements,
    member_spans,
    members,
    pointer,
    replace_at,
    set_members,
    span_at,
)
from thoughtline.values.errors import DecodeError

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
    """The exact bytes: existing members are changed in place, new ones come last, the rest stays."""
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
    """Unchanged members keep every byte, and so do the bytes before the first and after the last."""
    text = spelled.text()
    edited = set_members(text, changes.items())
    assert unchanged(edited, changes) == unchanged(text, changes)
    assert edited.startswith(spelled.head)
    assert edited.endswith(spelled.tail)


@settings(max_examples=150, deadline=None)
@given(spelled=spelled_objects, value=VALUES)
def test_replacing_values_keeps_every_other_byte(spelled: Spelled, value: bytes) -> None:
    """Without duplicate keys, new values are simply in place of the old ones."""
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
