"""Gemini's partial arguments: a value for every place, and a named error for what has none."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import Raw

from thoughtline.formats.gemini_generate.partial_arguments import MAX_INDEX, PartialArguments
from thoughtline.values.errors import DecodeError, LimitExceeded

Piece = tuple[str, str]


def arguments_of(*pieces: Piece) -> str:
    """The arguments that pieces amount to: each a path, and the JSON of the members that bring its value."""
    arguments = PartialArguments()
    for path, value in pieces:
        arguments.add(Raw(f'{{"jsonPath":{json.dumps(path)}{"," if value else ""}{value}}}'.encode()))
    return arguments.text()


def string(value: str) -> str:
    return f'"stringValue":{json.dumps(value)}'


TRUE = '"boolValue":true'
ONE = '"numberValue":1'
NULL = '"nullValue":null'

PIECES: dict[str, tuple[list[Piece], str]] = {
    "none": ([], "{}"),
    "a member": ([("$.a", string("x"))], '{"a":"x"}'),
    "members in their order": ([("$.b", ONE), ("$.a", TRUE)], '{"b":1,"a":true}'),
    "a member inside": ([("$.a.b.c", ONE)], '{"a":{"b":{"c":1}}}'),
    "two members inside": ([("$.a.b", ONE), ("$.a.c", TRUE)], '{"a":{"b":1,"c":true}}'),
    "a name in single quotes": ([("$['a b']", ONE)], '{"a b":1}'),
    "a name in double quotes": ([('$["a.b"]["c[0]"]', ONE)], '{"a.b":{"c[0]":1}}'),
    "an empty name": ([("$['']", ONE)], '{"":1}'),
    "a name that is a number": ([("$['0']", ONE)], '{"0":1}'),
    "an escaped quote in a name": ([("$['it\\'s']", ONE)], '{"it\'s":1}'),
    "another quote in a name": ([('$["it\'s"]', ONE)], '{"it\'s":1}'),
    "an escaped backslash in a name": ([("$['a\\\\b']", ONE)], '{"a\\\\b":1}'),
    "names beyond ASCII": ([("$.größe", ONE)], '{"größe":1}'),
    "elements": ([("$.a[0]", ONE), ("$.a[1]", TRUE)], '{"a":[1,true]}'),
    "members of elements": ([("$.a[0].b", ONE), ("$.a[1].b", TRUE)], '{"a":[{"b":1},{"b":true}]}'),
    "elements of elements": ([("$.a[0][0]", ONE), ("$.a[0][1]", ONE), ("$.a[1][0]", ONE)], '{"a":[[1,1],[1]]}'),
    "an element before others": ([("$.a[2]", ONE), ("$.a[0]", TRUE)], '{"a":[true,null,1]}'),
    "the last element that is allowed": (
        [(f"$.a[{MAX_INDEX}]", ONE)],
        '{"a":[' + "null," * MAX_INDEX + "1]}",
    ),
    "a string continued": ([("$.a", string("on")), ("$.a", string("go")), ("$.a", string("ing"))], '{"a":"ongoing"}'),
    "strings continued in turns": (
        [("$.a", string("x")), ("$.b", string("1")), ("$.a", string("y")), ("$.b", string("2"))],
        '{"a":"xy","b":"12"}',
    ),
    "a string continued in an element": ([("$.a[0]", string("x")), ("$.a[0]", string("y"))], '{"a":["xy"]}'),
    "an empty string": ([("$.a", string(""))], '{"a":""}'),
    "a string begun empty": ([("$.a", string("")), ("$.a", string("x")), ("$.a", string(""))], '{"a":"x"}'),
    "a string with quotes": ([("$.a", string('"\n\\'))], '{"a":"\\"\\n\\\\"}'),
    "an end that brings nothing": ([("$.a", string("x")), ("$.a", '"willContinue":false')], '{"a":"x"}'),
    "numbers as they are spelled": (
        [("$.a", '"numberValue":1.50'), ("$.b", '"numberValue":-0'), ("$.c", '"numberValue":1E+400')],
        '{"a":1.50,"b":-0,"c":1E+400}',
    ),
    "numbers beyond 64 bits": (
        [("$.a", '"numberValue":123456789012345678901234567890')],
        '{"a":123456789012345678901234567890}',
    ),
    "zero": ([("$.a", '"numberValue":0')], '{"a":0}'),
    "true and false": ([("$.a", TRUE), ("$.b", '"boolValue":false')], '{"a":true,"b":false}'),
    "null": ([("$.a", NULL), ("$.b[1]", NULL)], '{"a":null,"b":[null,null]}'),
    "no value": ([("$.a", "")], '{"a":null}'),
    "a place first, then what is inside": ([("$.a", ""), ("$.a.b", ONE)], '{"a":{"b":1}}'),
    "members nobody knows": ([("$.a", f'"x":[1],{ONE},"willContinue":true')], '{"a":1}'),
}


@pytest.mark.parametrize("name", PIECES)
def test_pieces_amount_to_arguments(name: str) -> None:
    """Each value is at its place, in the order in which the places came."""
    pieces, arguments = PIECES[name]
    assert arguments_of(*pieces) == arguments


def test_arguments_can_be_read_at_any_time() -> None:
    """Those of a call that was cut are what came."""
    arguments = PartialArguments()
    seen = []
    for value in ("a", "b"):
        arguments.add(Raw(json.dumps({"jsonPath": "$.x", "stringValue": value}).encode()))
        seen.append(arguments.text())
    assert seen == ['{"x":"a"}', '{"x":"ab"}']


# --- what has no place -----------------------------------------------------------------------------------------------

MISFITS: dict[str, list[Piece]] = {
    "no path": [("", ONE)],
    "the root": [("$", ONE)],
    "a path from elsewhere": [("x.a", ONE)],
    "an element of the root": [("$[0]", ONE)],
    "a member of an array": [("$.a[0]", ONE), ("$.a.b", ONE)],
    "an element of an object": [("$.a.b", ONE), ("$.a[0]", ONE)],
    "a member of a string": [("$.a", string("x")), ("$.a.b", ONE)],
    "an element of a string": [("$.a", string("x")), ("$.a[0]", ONE)],
    "a member of a number": [("$.a", ONE), ("$.a.b", ONE)],
    "a member of a truth": [("$.a", TRUE), ("$.a.b.c", ONE)],
    "a string in the place of an object": [("$.a.b", ONE), ("$.a", string("x"))],
    "a number in the place of an array": [("$.a[0]", ONE), ("$.a", ONE)],
    "an index that is none": [("$.a[x]", ONE)],
    "an index from the end": [("$.a[-1]", ONE)],
    "every element": [("$.a[*].b", ONE)],
    "a name without its quote": [("$.a['b]", ONE)],
}


@pytest.mark.parametrize("name", MISFITS)
def test_a_piece_without_a_place_is_refused(name: str) -> None:
    """Nothing that came before is overwritten, and nothing is put where it does not belong."""
    with pytest.raises(DecodeError, match="partial argument"):
        arguments_of(*MISFITS[name])


@pytest.mark.parametrize("index", [str(MAX_INDEX + 1), "4294967296", "9" * 30, "9" * 5000], ids=lambda text: text[:12])
def test_an_index_beyond_the_bound_is_refused(index: str) -> None:
    """However long it is: no room is made for it."""
    with pytest.raises(LimitExceeded):
        arguments_of((f"$.a[{index}]", ONE))


def test_nesting_without_end_is_refused() -> None:
    """A path that JSON could not express is a named error, not a stack overflow."""
    with pytest.raises(LimitExceeded):
        arguments_of(("$" + ".a" * 50_000, ONE))


@pytest.mark.parametrize(
    "paths",
    [
        pytest.param(["$.a" + f"[{MAX_INDEX}]" * 100], id="one path"),
        pytest.param([f"$.a{name}[{MAX_INDEX}]" for name in range(100)], id="many paths"),
    ],
)
def test_indexes_below_the_bound_do_not_add_up(paths: list[str]) -> None:
    """A few kilobytes of pieces never make room for millions of nulls."""
    text = ""
    with suppress(LimitExceeded):
        text = arguments_of(*((path, ONE) for path in paths))
    assert text.count("null") < 10 * MAX_INDEX


# --- any arguments ---------------------------------------------------------------------------------------------------

names = st.text("abé_ .[]0-", min_size=1, max_size=4) | st.just("")
trees: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=6),
    lambda inner: st.lists(inner, min_size=1, max_size=3) | st.dictionaries(names, inner, min_size=1, max_size=3),
    max_leaves=8,
)


def pieces_of(value: Any, path: str) -> Iterator[dict[str, Any]]:
    """The pieces in which a value would come, strings character by character."""
    match value:
        case dict():
            for name, inner in value.items():
                yield from pieces_of(inner, f"{path}['{name}']" if not name.isalpha() else f"{path}.{name}")
        case list():
            for index, inner in enumerate(value):
                yield from pieces_of(inner, f"{path}[{index}]")
        case str():
            yield from ({"jsonPath": path, "stringValue": piece} for piece in ["", *value])
        case bool():
            yield {"jsonPath": path, "boolValue": value}
        case int():
            yield {"jsonPath": path, "numberValue": value}
        case _:
            yield {"jsonPath": path}


@settings(max_examples=150, deadline=None)
@given(value=st.dictionaries(names, trees, max_size=4))
def test_any_arguments_in_pieces(value: dict[str, Any]) -> None:
    """A value taken to pieces and put together is the same value, its members in the same order."""
    arguments = PartialArguments()
    for piece in pieces_of(value, "$"):
        arguments.add(Raw(json.dumps(piece).encode()))
    assert arguments.text() == json.dumps(value, ensure_ascii=False, separators=(",", ":"))
