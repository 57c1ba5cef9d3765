"""How a turn is recognised: what clients' habits don't change, and what makes it a different turn."""

from __future__ import annotations

import pytest
from msgspec import Raw

from thoughtline.replay.visible import (
    Visible,
    VisibleCall,
    brief,
    canonical_json,
    is_bare,
    is_part_of,
    is_same_call,
    other_name,
    other_value,
    result_text,
    said_by,
    shown_of,
    shows,
    shows_glued,
    visible_of,
    without_cache_marks,
)
from thoughtline.values.items import Item, Text, ToolCall, ToolResult, Unknown
from thoughtline.values.turns import Turn

DEEP = "[" * 100_000 + "]" * 100_000  # more than any Python reads
LS, PWD = VisibleCall("ls", "{}"), VisibleCall("pwd", "{}")


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ('{"a":1,"b":[true,null]}', ' { "b" : [ true , null ], "a" : 1 } '),
        ('{"a":1}', '{"a":1.0}'),
        ('{"a":100}', '{"a":1e2}'),
        ('{"a":"é/"}', '{"a":"\\u00e9\\/"}'),
        ("", "{}"),
        ('{"a":', ' {"a": '),
    ],
)
def test_arguments_that_say_the_same(one: str, other: str) -> None:
    """Key order, white space, forms of numbers and escapes don't count."""
    assert canonical_json(one) == canonical_json(other)
    assert is_same_call(ToolCall("f", one, "1"), ToolCall("f", other, "2"))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ('{"a":1}', '{"a":2}'),
        ('{"a":1}', '{"a":"1"}'),
        ('{"a":1}', '{"a":true}'),
        ('{"a":[1,2]}', '{"a":[2,1]}'),
        ('{"a":9007199254740993}', '{"a":9007199254740992}'),
        ('{"a":1e999}', '{"a":2e999}'),
        ('{"a":', '{"b":'),
        (DEEP, f"[{DEEP}]"),
    ],
)
def test_arguments_that_differ(one: str, other: str) -> None:
    """Unreadable arguments, or numbers that no float can hold, are equal only to themselves."""
    assert canonical_json(one) != canonical_json(other)
    assert not is_same_call(ToolCall("f", one, "1"), ToolCall("f", other, "1"))
    assert not is_same_call(ToolCall("f", one, "1"), ToolCall("g", one, "1"))


RESULTS = [
    ([b'"a"', b'" a\\n"', b'[{"type":"text","text":"a"}]', b'{"output":"a"}', b'{"result":" a "}', b'["a"]'], "a"),
    (
        [
            b'"{\\"b\\":1.0,\\"a\\":2}"',
            b'{"a":2,"b":1}',
            b'[{"json":{"b":1,"a":2}}]',
            b'{"content":"{\\"a\\":2,\\"b\\":1}"}',
        ],
        '{"a":2,"b":1}',
    ),
    ([b'[{"type":"text","text":"a"},{"type":"image","source":1}]'], "a\nimage"),
    ([b'{"output":"a","exit":0}'], '{"exit":0,"output":"a"}'),
    ([b'{"other":"a"}'], '{"other":"a"}'),
    ([b"1.50", b" 1.50 "], "1.50"),
    ([b'"{no"'], "{no"),
    ([b'"\xff"'], '"\ufffd"'),
]  # fmt: skip  one row for each result


@pytest.mark.parametrize(("forms", "text"), RESULTS)
def test_a_result_in_every_form(forms: list[bytes], text: str) -> None:
    """A string, parts, an object around it, or JSON in a string."""
    assert {result_text(Raw(form)) for form in forms} == {text}


def test_a_result_that_is_too_deep_is_itself() -> None:
    assert result_text(Raw(DEEP.encode())) == DEEP


def test_a_step_by_its_words_and_calls() -> None:
    """White space does not count; calls of one step have no order, but their number counts."""
    ls, pwd = ToolCall("ls", "{}", "1"), ToolCall("pwd", "{}", "2")
    step = shown_of([Text("Look\n here."), ls, pwd])
    assert step.content == shown_of([Text(" Look"), pwd, ls, Text("here. ")]).content
    assert step.content != shown_of([Text("Lookhere."), ls]).content
    assert shown_of([ls]).content != shown_of([ls, ls]).content
    assert (step.is_bare, step.is_empty, step.words) == (True, False, "Lookhere.")
    assert visible_of([Text("Look\n here."), ls, pwd]) == Visible("Lookhere.", (LS, PWD))


def test_texts_do_not_run_into_each_other() -> None:
    """Lengths come before texts: no other step gives the same bytes."""
    steps: list[list[Item]] = [
        [Text("a"), ToolCall("b", '"c"', "1")],
        [Text("ab"), ToolCall("", '"c"', "1")],
        [ToolCall("ab", '"c"', "1")],
        [ToolCall("a", '"b"', "1"), ToolCall("", '"c"', "2")],
        [Text('a1:b3:"c"')],
        [ToolCall("a{}", "1", "1")],
        [ToolCall("a", "{}1", "1")],
    ]  # fmt: skip  as a table
    assert len({shown_of(step).content for step in steps}) == len(steps)


def test_other_kinds_count_where_nothing_else_does() -> None:
    """A `computer_call` alone counts by its id or else its value; clients drop it next to text. Reasoning never
    counts."""
    call = Unknown("computer_call", Raw(b'{"type":"computer_call","id":"cu_1","action":{}}'))
    anonymous = Unknown("computer_call", Raw(b'{"type":"computer_call","action":{"x":1}}'))
    thought = Unknown("reasoning_x", Raw(b'{"id":"r"}'))
    assert visible_of([call, thought]).calls == (VisibleCall("computer_call", "cu_1"),)
    assert visible_of([anonymous]).calls == (VisibleCall("computer_call", '{"action":{"x":1},"type":"computer_call"}'),)
    assert visible_of([Text("Hi."), call]) == Visible("Hi.", ())
    assert shown_of([call]).content != shown_of([anonymous]).content != shown_of([thought]).content
    assert shown_of([thought]).is_empty
    assert shown_of([Text("Hi."), call]).content == shown_of([Text("Hi.")]).content


def test_what_others_say() -> None:
    """By its trimmed text, in one part or several, and by images without a client's marker."""
    picture, marked = b'{"type":"image","source":{"a":1}}', b'{"source":{"a":1.0},"cache_control":{},"type":"image"}'
    assert said_by(Turn("user", (Text(" hi "),))) == said_by(Turn("user", (Text("hi"), Text(" "))))
    assert said_by(Turn("user", (Text("hi"),))) != said_by(Turn("system", (Text("hi"),)))
    first = said_by(Turn("user", (Text("hi"), Unknown("image", Raw(picture)))))
    assert first == said_by(Turn("user", (Text("hi"), Unknown("image", Raw(marked)))))
    assert first != said_by(Turn("user", (Text("hi"),)))


@pytest.mark.parametrize("raw", [b'{"cache_control":', b'["cache_control", {}]', b'{"cache_control":' + DEEP.encode()])
def test_a_mark_in_what_is_no_object(raw: bytes) -> None:
    """It stays: what can't be read is equal only to itself."""
    assert "cache_control" in without_cache_marks(Raw(raw))


@pytest.mark.parametrize(
    ("request_", "is_shown"),
    [
        (Visible("Hi.", (LS, PWD)), True),
        (Visible("", (PWD,)), True),
        (Visible("Hi.", ()), False),
        (Visible("", ()), False),
        (Visible("Ho.", (LS, PWD)), False),
        (Visible("Hi.", (LS, LS)), False),
        (Visible("Hi.", (VisibleCall("rm", "{}"),)), False),
    ],
)
def test_what_is_left_of_a_turn(request_: Visible, is_shown: bool) -> None:
    """Some calls of a set or the text next to them may be dropped; nothing may be added."""
    assert shows(request_, Visible("Hi.", (LS, PWD))) == is_shown


@pytest.mark.parametrize(
    ("words", "is_glued"),
    [
        ("<think>Look.</think>Hi.", True),
        ("Look.Hi.", True),
        ("<THINKINGid=1>Look.Hi.", True),
        ("Hi.", False),
        ("Hi.Look.", False),
        ("", False),
    ],
)
def test_reasoning_glued_to_the_words(words: str, is_glued: bool) -> None:
    """The record's own reasoning, completely, before the text."""
    record = Visible("Hi.", (LS,))
    assert shows_glued(Visible(words, ()), record, "Lo ok.") == is_glued
    assert not shows_glued(Visible(words, (PWD,)), record, "Look.")
    assert not shows_glued(Visible(words, ()), record, " ")


def unknown(raw: bytes, kind: str = "server_tool_use") -> Unknown:
    return Unknown(kind, Raw(raw))


def test_the_id_of_another_kind() -> None:
    """Its own, that of the call it answers, or one inside the member named by the kind."""
    assert other_name(unknown(b'{"id":"srv_1","tool_use_id":"x"}')) == "srv_1"
    assert other_name(unknown(b'{"toolUse":{"toolUseId":"t_1"}}', "toolUse")) == "t_1"
    assert other_name(unknown(b'{"id":"","call_id":7}')) == ""
    assert other_name(unknown(b"[1]")) == ""
    assert [other_name(ToolResult(Raw(b'"a"'), name)) for name in ("c_1", None)] == ["c_1", ""]


def test_the_value_of_another_kind() -> None:
    """Without markers, seals and empty members."""
    plain = unknown(b'{"a":[{"b":1}],"c":"d"}')
    marked = unknown(b'{"c":"d","x":null,"cache_control":{},"a":[{"b":1.0,"thoughtSignature":"s"}]}')
    assert other_value(plain) == other_value(marked) == '{"a":[{"b":1}],"c":"d"}'
    assert other_value(ToolResult(Raw(b'{"output":"a"}'), "c_1")) == "a"
    assert DEEP in other_value(unknown(DEEP.encode()))


@pytest.mark.parametrize(
    ("shown", "is_part"),
    [
        (b'{"id":"a","list":[{"b":1},2]}', True),
        (b'{"list":[{},2]}', True),
        (b'{"data":"QUJDREVGR0hJSktMTU5PUFFSU1RVVg"}', True),
        (b'{"list":[{"b":1}]}', False),
        (b'{"id":"b"}', False),
        (b'{"more":1}', False),
        (b'{"data":"QUJDREVGR0hJSktMTU5PUFFSU1RVVw"}', False),
        (DEEP.encode(), False),
    ],
)
def test_what_a_library_left_of_an_item(shown: bytes, is_part: bool) -> None:
    """Members may be missing; none may be added or changed. Base64 is the same in either alphabet."""
    made = unknown(b'{"id":"a","list":[{"b":1,"c":3},2],"data":"QUJDREVGR0hJSktMTU5PUFFSU1RVVg=="}')
    assert is_part_of(unknown(shown), made) == is_part
    assert not is_part_of(ToolResult(Raw(shown), "a"), made)


@pytest.mark.parametrize(
    ("raw", "is_it"),
    [
        (b"", True),
        (b'{"text":"a","type":"text"}', True),
        (b'{"text":"a","citations":[]}', False),
        (b"[]", False),
        (b"{", False),
    ],
)
def test_a_text_with_nothing_on_it(raw: bytes, is_it: bool) -> None:
    """No marker and no citation; an unreadable item is not bare."""
    assert is_bare(Text("a", raw=Raw(raw))) == is_it


def test_long_content_is_digested() -> None:
    assert brief(b"a" * 256) == b"a" * 256
    assert len(brief(b"a" * 257)) < 64
    assert brief(b"a" * 257) != brief(b"a" * 258)


def test_a_cache_point_says_nothing() -> None:
    """Converse's marker for prompt caching moves from turn to turn: with or without it, a turn has the same content."""
    point = unknown(b'{"cachePoint":{"type":"default"}}', "cachePoint")
    words, call = Text("Look."), ToolCall("look", "{}", "t1")
    assert said_by(Turn("user", (words, point))) == said_by(Turn("user", (words,)))
    assert shown_of((words, call, point)) == shown_of((words, call))
    assert visible_of((point,)) == visible_of(())
