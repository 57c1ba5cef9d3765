"""An edited conversation in the body it came in: exact bytes, for a format of one string a turn."""

from __future__ import annotations

import json
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import Raw
from msgspec.structs import replace

from thoughtline.formats.bodies import encode_conversation, text_member
from thoughtline.formats.json_text import NULL, element_spans, encode, is_given, members
from thoughtline.values.items import Item, Seal, Text, Unknown
from thoughtline.values.turns import SYSTEM_MEMBER, Transcript, Turn


def encode_turn(turn: Turn, before: bytes | None) -> list[bytes]:
    """One element for each text."""
    return [encode(item.text) for item in turn.items if isinstance(item, Text)]


def encode_system(turn: Turn, before: bytes | None) -> bytes:
    return encode("".join(item.text for item in turn.items if isinstance(item, Text)))


def encoded(transcript: Transcript) -> bytes:
    return encode_conversation(transcript, "turns", encode_turn, "system", encode_system)


def new_turn(*texts: str) -> Turn:
    return Turn("user", tuple(map(Text, texts)))


def decoded(body: bytes, spans: Sequence[int] | None = None) -> Transcript:
    """The request of a body: each string is a turn, or as many as `spans` says."""
    found = members(body)
    texts = json.loads(bytes(found["turns"])) if "turns" in found else []
    turns: list[Turn] = []
    if is_given(found.get("system", NULL)):
        turns.append(Turn("system", (Text(json.loads(bytes(found["system"]))),), SYSTEM_MEMBER))
    at = 0
    for size in spans or [1] * len(texts):
        turns.append(Turn("user", tuple(map(Text, texts[at : at + size])), at, size))
        at += size
    return Transcript("openai_chat", tuple(turns), body)


BODY = b' { "model":"m",\n "turns" : [ "a" ,\n  "b","\\u0063"  ] ,"x":1.0 }\n'
HEAD, TAIL = b' { "model":"m",\n "turns" : ', b' ,"x":1.0 }\n'
A, B, C = decoded(BODY).turns

# --- edits of a turn -------------------------------------------------------------------------------------------------


def test_an_unedited_request_is_the_body_itself() -> None:
    """The client's own bytes, not a copy of them."""
    assert encoded(decoded(BODY)) is BODY


@pytest.mark.parametrize(
    ("position", "texts", "turns"),
    [
        pytest.param(0, ["new"], b'[ "new" ,\n  "b","\\u0063"  ]', id="first"),
        pytest.param(1, ["new"], b'[ "a" ,\n  "new","\\u0063"  ]', id="middle"),
        pytest.param(2, ["new"], b'[ "a" ,\n  "b","new"  ]', id="last"),
        pytest.param(1, ["b"], b'[ "a" ,\n  "b","\\u0063"  ]', id="written anew"),
        pytest.param(1, ["b", "c"], b'[ "a" ,\n  "b","c","\\u0063"  ]', id="more elements than before"),
        pytest.param(0, [], b'[ "b","\\u0063"  ]', id="first to nothing"),
        pytest.param(1, [], b'[ "a","\\u0063"  ]', id="middle to nothing"),
        pytest.param(2, [], b'[ "a" ,\n  "b"  ]', id="last to nothing"),
    ],
)
def test_an_edit_keeps_everything_else(position: int, texts: list[str], turns: bytes) -> None:
    """Other turns, the separators between them and the rest of the body keep their bytes."""
    assert encoded(decoded(BODY).with_items(position, tuple(map(Text, texts)))) == HEAD + turns + TAIL


def test_two_edits() -> None:
    """Each in its place."""
    edited = decoded(BODY).with_items(2, (Text("z"),)).with_items(0, (Text("y"),))
    assert encoded(edited) == HEAD + b'[ "y" ,\n  "b","z"  ]' + TAIL


def test_an_edited_turn_of_several_elements() -> None:
    """All its elements are replaced, with the bytes between them."""
    edited = decoded(BODY, [2, 1]).with_items(0, (Text("x"), Text("y"), Text("z")))
    assert encoded(edited) == HEAD + b'[ "x","y","z","\\u0063"  ]' + TAIL


def test_a_format_sees_the_first_element_a_turn_came_from() -> None:
    """With its own spelling; none for a turn that is new."""
    seen = []

    def watch(turn: Turn, before: bytes | None) -> list[bytes]:
        seen.append(before)
        return encode_turn(turn, before)

    transcript = decoded(BODY, [1, 2]).with_items(1, (Text("x"),))
    encode_conversation(transcript, "turns", watch)
    encode_conversation(transcript.with_turns((*transcript.turns, new_turn("y"))), "turns", watch)
    assert seen == [b'"b"', b'"b"', None]


# --- turns added, taken out and moved --------------------------------------------------------------------------------

SHAPES: dict[str, tuple[tuple[Turn, ...], bytes]] = {
    "as they were": ((A, B, C), b'[ "a" ,\n  "b","\\u0063"  ]'),
    "without the first": ((B, C), b'[ "b","\\u0063"  ]'),
    "without the middle": ((A, C), b'[ "a","\\u0063"  ]'),
    "without the last": ((A, B), b'[ "a" ,\n  "b"  ]'),
    "only the last": ((C,), b'[ "\\u0063"  ]'),
    "none": ((), b"[   ]"),
    "one before": ((new_turn("x"), A, B, C), b'[ "x","a" ,\n  "b","\\u0063"  ]'),
    "one between": ((A, new_turn("x"), B, C), b'[ "a","x","b","\\u0063"  ]'),
    "one after": ((A, B, C, new_turn("x")), b'[ "a" ,\n  "b","\\u0063","x"  ]'),
    "two elements between": ((A, B, new_turn("x", "y"), C), b'[ "a" ,\n  "b","x","y","\\u0063"  ]'),
    "only new ones": ((new_turn("x"), new_turn("y")), b'[ "x","y"  ]'),
    "one that is nothing": ((A, new_turn(), B, C), b'[ "a" ,\n  "b","\\u0063"  ]'),
    "first becomes last": ((B, C, A), b'[ "b","\\u0063","a"  ]'),
    "backwards": ((C, B, A), b'[ "\\u0063","b","a"  ]'),
    "one twice": ((A, A, B), b'[ "a","a" ,\n  "b"  ]'),
    "one edited besides": ((C, B.with_items((Text("x"),)), A), b'[ "\\u0063","x","a"  ]'),
    "neighbours one of which is edited": ((A.with_items((Text("x"),)), B), b'[ "x" ,\n  "b"  ]'),
}


@pytest.mark.parametrize("name", SHAPES)
def test_a_reshaped_conversation(name: str) -> None:
    """Turns that are still neighbours keep the bytes between them; every unedited turn keeps its bytes."""
    turns, written = SHAPES[name]
    assert encoded(decoded(BODY).with_turns(turns)) == HEAD + written + TAIL


@pytest.mark.parametrize(
    ("body", "written"),
    [
        pytest.param(b"{}", b'{"turns":["x"]}', id="no list"),
        pytest.param(b'{"m":1}', b'{"m":1,"turns":["x"]}', id="no list among members"),
        pytest.param(b'{"turns":[ ],"m":1}', b'{"turns":["x"],"m":1}', id="an empty list"),
    ],
)
def test_a_turn_where_none_was(body: bytes, written: bytes) -> None:
    """The list is made where there is none."""
    assert encoded(decoded(body).with_turns((new_turn("x"),))) == written


def test_a_list_where_a_text_was() -> None:
    """A conversation that was no list becomes one."""
    turn = Turn("user", (Text("hi"),), 0)
    transcript = Transcript("openai_responses", (turn,), b'{"turns":"hi","m":1}')
    assert encoded(transcript.with_turns((turn, new_turn("x")))) == b'{"turns":["hi","x"],"m":1}'
    assert encoded(transcript.with_items(0, (Text("x"), Text("y")))) == b'{"turns":["x","y"],"m":1}'


def test_the_last_of_two_lists_counts() -> None:
    """As for every JSON reader; the other one goes."""
    edited = decoded(b'{"turns":["a","b"],"m":1,"turns":["c"]}').with_items(0, (Text("x"),))
    assert encoded(edited) == b'{"m":1,"turns":["x"]}'


def test_a_reshaped_turn_of_several_elements_keeps_its_bytes() -> None:
    """Including the bytes between its elements."""
    first, last = decoded(BODY, [2, 1]).turns
    reshaped = decoded(BODY, [2, 1]).with_turns((last, first))
    assert encoded(reshaped) == HEAD + b'[ "\\u0063","a" ,\n  "b"  ]' + TAIL


SPACES = st.sampled_from([b"", b" ", b"\n  ", b"\t"])
spelled_lists = st.lists(
    st.tuples(SPACES, st.sampled_from([b'"a"', b'"\\u0062"', b'"c, ]"', b'""']), SPACES), max_size=6
)


@settings(max_examples=150, deadline=None)
@given(spelled=spelled_lists, data=st.data())
def test_any_new_shape(spelled: list[tuple[bytes, bytes, bytes]], data: st.DataObject) -> None:
    """Whatever is added, taken out, moved and edited: the elements are the turns, each unedited one with its bytes."""
    body = b'{"x":1.0,"turns": [' + b",".join(map(b"".join, spelled)) + b'] ,"y":[]}'
    transcript = decoded(body)
    old = st.sampled_from(transcript.turns) if transcript.turns else st.nothing()
    fresh = st.sampled_from([new_turn("new"), new_turn("two", "more"), new_turn()])
    edited = old.map(lambda turn: turn.with_items((Text("edited"),)))
    turns = data.draw(st.lists(old | edited | fresh, max_size=6))
    expected = []
    for turn in turns:
        is_old = turn.at >= 0 and not turn.is_edited
        expected += [spelled[turn.at][1]] if is_old else encode_turn(turn, None)
    written = encoded(transcript.with_turns(tuple(turns)))
    value = bytes(members(written)["turns"])
    assert [value[start:end] for start, end in element_spans(value)] == expected
    assert written == b'{"x":1.0,"turns": ' + value + b' ,"y":[]}'


# --- members outside of the list --------------------------------------------------------------------------------------

WITH_SYSTEM = b'{"system" : "s", "turns":[ "a" ]}'


def test_an_edited_system_turn_goes_to_its_member() -> None:
    """The list is not touched."""
    edited = decoded(WITH_SYSTEM).with_items(0, (Text("new"),))
    assert encoded(edited) == b'{"system" : "new", "turns":[ "a" ]}'


def test_a_system_turn_and_another_one() -> None:
    """Both, each in its place."""
    edited = decoded(WITH_SYSTEM).with_items(0, (Text("new"),)).with_items(1, (Text("b"),))
    assert encoded(edited) == b'{"system" : "new", "turns":[ "b" ]}'


def test_a_system_turn_stays_where_others_are_added() -> None:
    """It is no element of the list."""
    transcript = decoded(WITH_SYSTEM)
    assert encoded(transcript.with_turns((*transcript.turns, new_turn("b")))) == (
        b'{"system" : "s", "turns":[ "a","b" ]}'
    )


def test_a_system_turn_taken_out_is_gone() -> None:
    """A turn that the conversation no longer has is not sent."""
    transcript = decoded(WITH_SYSTEM)
    assert json.loads(encoded(transcript.with_turns(transcript.turns[1:]))) == {"turns": ["a"]}


def test_a_system_member_that_was_no_turn_stays() -> None:
    """It was not removed: a new shape of the list leaves it unchanged."""
    transcript = decoded(b'{"system" : null, "turns":[ "a" ]}')
    reshaped = transcript.with_turns((*transcript.turns, new_turn("b")))
    assert encoded(reshaped) == b'{"system" : null, "turns":[ "a","b" ]}'


def test_a_system_member_set_together_with_a_new_shape() -> None:
    """Both edits are kept."""
    transcript = decoded(b'{"turns":["a"]}').with_turns((new_turn("b"),))
    assert json.loads(encoded(transcript.with_member("system", b'"s"'))) == {"turns": ["b"], "system": "s"}


def test_the_format_sees_the_system_it_came_from() -> None:
    """With its own spelling."""
    seen = []

    def watch(turn: Turn, before: bytes | None) -> bytes:
        seen.append(before)
        return encode_system(turn, before)

    transcript = decoded(b'{"system":"\\u0073"}').with_items(0, (Text("new"),))
    assert encode_conversation(transcript, "turns", encode_turn, "system", watch) == b'{"system":"new"}'
    bare = replace(transcript, body=b"{}")
    assert encode_conversation(bare, "turns", encode_turn, "system", watch) == b'{"system":"new"}'
    assert seen == [b'"\\u0073"', None]


@pytest.mark.parametrize(
    ("name", "value", "written"),
    [
        pytest.param("x", b"2", HEAD + b'[ "a" ,\n  "b","\\u0063"  ] ,"x":2 }\n', id="set"),
        pytest.param("x", None, HEAD + b'[ "a" ,\n  "b","\\u0063"  ] }\n', id="taken out"),
        pytest.param("y", b"2", HEAD + b'[ "a" ,\n  "b","\\u0063"  ] ,"x":1.0,"y":2 }\n', id="added"),
    ],
)
def test_an_edited_member(name: str, value: bytes | None, written: bytes) -> None:
    """The conversation keeps its bytes."""
    assert encoded(decoded(BODY).with_member(name, value)) == written


def test_an_edited_member_and_an_edited_turn() -> None:
    """Both, each in its place."""
    edited = decoded(BODY).with_member("x", b"2").with_items(1, (Text("new"),))
    assert encoded(edited) == HEAD + b'[ "a" ,\n  "new","\\u0063"  ] ,"x":2 }\n'


# --- a conversation that is one text ---------------------------------------------------------------------------------

PROMPT = b'{"prompt" : "hi","images":[1],"m":1}'
IMAGE = Unknown("image", Raw(b'"aW1n"'))


def prompted(*items: Item, body: bytes = PROMPT) -> Transcript:
    """A request whose one turn was the text of a member, and is now these items."""
    return Transcript("ollama_chat", (Turn("user", (Text("hi"),), 0),), body).with_items(0, items)


TEXTS: dict[str, tuple[Transcript, str, bytes]] = {
    "an edited text": (prompted(Text('"new"')), "", b'{"prompt" : "\\"new\\"","images":[1],"m":1}'),
    "a text without the others it had": (prompted(Text("new")), "images", b'{"prompt" : "new","m":1}'),
    "a text with others": (
        prompted(Text("new"), IMAGE, IMAGE),
        "images",
        b'{"prompt" : "new","images":["aW1n","aW1n"],"m":1}',
    ),
    "others that are new": (
        prompted(Text("new"), IMAGE, body=b'{"prompt":"hi"}'),
        "images",
        b'{"prompt":"new","images":["aW1n"]}',
    ),
}


@pytest.mark.parametrize("name", TEXTS)
def test_an_edited_text_stays_a_text(name: str) -> None:
    """It goes to its member, the system prompt to the other one, and no list is created."""
    transcript, others, written = TEXTS[name]
    assert encoded(text_member(transcript, "prompt", others)) == written


LISTS: dict[str, tuple[Transcript, str]] = {
    "nothing edited": (Transcript("ollama_chat", (Turn("user", (Text("hi"),), 0),), PROMPT), ""),
    "two texts": (prompted(Text("a"), Text("b")), "images"),
    "others without a member for them": (prompted(Text("a"), IMAGE), ""),
    "no text": (prompted(IMAGE), "images"),
    "no item": (prompted(), "images"),
    "a text with a seal": (prompted(Text("a", Seal("token"))), ""),
    "a text with its own JSON": (prompted(Text("a", raw=Raw(b'{"text":"a"}'))), ""),
    "no such member": (prompted(Text("a"), body=b'{"messages":["hi"]}'), ""),
    "a member that is no text": (prompted(Text("a"), body=b'{"prompt":["hi"]}'), ""),
    "two turns": (prompted(Text("a")).with_turns((*prompted(Text("a")).turns, new_turn("b"))), ""),
}


@pytest.mark.parametrize("name", LISTS)
def test_what_is_more_than_a_text_is_left_alone(name: str) -> None:
    """The request is the one that came in."""
    transcript, others = LISTS[name]
    assert text_member(transcript, "prompt", others) is transcript


def test_a_system_turn_next_to_the_text() -> None:
    """It is no turn of the text, and its own edit is kept."""
    system = Turn("system", (Text("s"),), SYSTEM_MEMBER).with_items((Text("t"),))
    transcript = prompted(Text("new"), body=b'{"system":"s","prompt":"hi"}')
    both = replace(transcript, turns=(system, *transcript.turns))
    assert encoded(text_member(both, "prompt")) == b'{"system":"t","prompt":"new"}'
