"""The preserver's history inheritance: what it adds to a request's bytes, and what it leaves unchanged."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.wire_cases import REQUESTS, WireCase, name_of
from thoughtline.formats.json_text import element_spans, members
from thoughtline.library.preserver import preserve_reasoning_content

CALLS = [{"id": "call_1", "type": "function", "function": {"name": "look", "arguments": "{}"}}]


def assistant(**members: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": None, **members}


def called(**members: Any) -> dict[str, Any]:
    return assistant(tool_calls=CALLS, **members)


def body(*messages: dict[str, Any]) -> bytes:
    return json.dumps({"model": "m", "messages": messages, "stream": True}).encode()


def texts(request: bytes) -> list[Any]:
    """`reasoning_content` of each message; "absent" if it has none."""
    return [message.get("reasoning_content", "absent") for message in json.loads(request)["messages"]]


def mended(*messages: dict[str, Any]) -> list[Any]:
    return texts(preserve_reasoning_content(body(*messages)))


# --- history inheritance: the eleven cases ---------------------------------------------------------------------------


def test_injects_from_an_earlier_assistant_message() -> None:
    """A later message with tool calls and none of its own gets it."""
    assert mended({"role": "user", "content": "hi"}, called(reasoning_content="why"), called()) == [
        "absent",
        "why",
        "why",
    ]


def test_keeps_an_existing_value() -> None:
    """A message with reasoning, empty or not, is unchanged, to the byte."""
    request = body(called(reasoning_content="first"), called(reasoning_content="second"), called(reasoning_content=""))
    assert preserve_reasoning_content(request) == request


def test_skips_messages_without_tool_calls() -> None:
    """No calls, an empty list of them, or null."""
    request = body(called(reasoning_content="why"), assistant(), assistant(tool_calls=[]), assistant(tool_calls=None))
    assert preserve_reasoning_content(request) == request


def test_no_history_reasoning_means_no_change() -> None:
    """Nothing is invented: not from the content, not as a placeholder."""
    request = body(assistant(content="I think aloud"), called(), called())
    assert preserve_reasoning_content(request) == request


def test_an_empty_value_does_not_overwrite_an_earlier_real_one() -> None:
    """A later message gets the latest real one."""
    assert mended(called(reasoning_content="real"), called(reasoning_content=""), called()) == ["real", "", "real"]


def test_all_empty_history_injects_the_empty_string() -> None:
    """The field is present, with the value from history."""
    assert mended(assistant(reasoning_content=""), called()) == ["", ""]


def test_several_rounds_track_the_latest() -> None:
    """Each message gets the latest value before it."""
    assert mended(called(reasoning_content="one"), called(), called(reasoning_content="two"), called(), called()) == [
        "one",
        "one",
        "two",
        "two",
        "two",
    ]


def test_other_roles_do_not_count() -> None:
    """Neither as a source nor as a target."""
    user = {"role": "user", "content": "x", "reasoning_content": "mine", "tool_calls": CALLS}
    request = body(user, called(), {**user, "role": "developer"}, called())
    assert preserve_reasoning_content(request) == request
    assert mended(called(reasoning_content="why"), {"role": "user", "tool_calls": CALLS}) == ["why", "absent"]


@pytest.mark.parametrize(
    "request_body",
    [b"{", b"not json", b"[]", b"5", b'{"messages":{}}', b'{"model":"m"}', b'{"messages":[1]}', b"\xff\xfe", b" "],
)
def test_invalid_json_comes_back_unchanged(request_body: bytes) -> None:
    """The same for JSON that is not a chat request."""
    assert preserve_reasoning_content(request_body) == request_body


def test_empty_or_missing_input_comes_back_unchanged() -> None:
    """Empty input gives empty output."""
    assert preserve_reasoning_content(b"") == b""
    assert preserve_reasoning_content(None) is None


def test_null_counts_as_seen_but_empty() -> None:
    """It does not replace a real value; alone it gives "" to a later message, and to its own if that calls tools."""
    assert mended(called(reasoning_content="real"), assistant(reasoning_content=None), called()) == [
        "real",
        None,
        "real",
    ]
    assert mended(assistant(reasoning_content=None), called()) == [None, ""]
    assert mended(called(reasoning_content="real"), called(reasoning_content=None)) == ["real", "real"]
    assert mended(called(reasoning_content=None)) == [""]


# --- history inheritance: laws ---------------------------------------------------------------------------------------

some_value = st.sampled_from(["absent", None, "", "a", "bé\n"])
some_message = st.builds(
    lambda role, value, calls: {
        "role": role,
        **({} if value == "absent" else {"reasoning_content": value}),
        **({"tool_calls": CALLS} if calls else {}),
        "content": "x",
    },
    st.sampled_from(["assistant", "assistant", "user", "tool"]),
    some_value,
    st.booleans(),
)


@given(messages=st.lists(some_message, max_size=7))
def test_a_mended_request_stays_as_it_is(messages: list[dict[str, Any]]) -> None:
    """A second run changes nothing; only `reasoning_content` differs; existing strings stay."""
    request = body(*messages)
    once = preserve_reasoning_content(request)
    assert preserve_reasoning_content(once) == once
    for before, after in zip(messages, json.loads(once)["messages"], strict=True):
        assert {**after, "reasoning_content": 0} == {**before, "reasoning_content": 0}
        if isinstance(before.get("reasoning_content"), str):
            assert after["reasoning_content"] == before["reasoning_content"]


def test_every_other_byte_stays() -> None:
    """Spacing, number spellings, escapes, unknown members, duplicate keys, an empty list of details."""
    first = b'{ "role":"assistant", "reasoning_content" : "caf\\u00e9" }'
    second = (
        b'{"tool_calls":[{"id":"c","function":{"name":"f","arguments":"{}"},"z":1.0}],"role":"assistant" , "x":1e400'
    )
    tail = b',\n "reasoning_details":[], "x":2 }'
    request = b' {"seed":1.50, "messages" : [ ' + first + b" ,\n" + second + tail + b'\t] , "model":"m"}\n'
    written = b',"reasoning_content":"caf\xc3\xa9" }'
    expected = request.replace(b'"x":2 }', b'"x":2' + written)
    assert preserve_reasoning_content(request) == expected


@pytest.mark.parametrize("case", [case for case in REQUESTS if case.format.name == "openai_chat"], ids=name_of)
def test_real_requests_change_only_in_the_messages_that_lack(case: WireCase) -> None:
    """For every hand-made chat request: the messages around a changed one keep their bytes."""
    request = case.bytes_of("request.json") or b""
    result = preserve_reasoning_content(request)
    before, after = bytes(members(request)["messages"]), bytes(members(result)["messages"])
    for (b0, b1), (a0, a1) in zip(element_spans(before), element_spans(after), strict=True):
        old, new = json.loads(before[b0:b1]), json.loads(after[a0:a1])
        assert before[b0:b1] == after[a0:a1] or (old["tool_calls"] and old.get("reasoning_content") is None)
        assert {**old, "reasoning_content": 0} == {**new, "reasoning_content": 0}
    assert preserve_reasoning_content(result) == result


def test_a_request_may_be_a_dictionary() -> None:
    """A new one is returned, equal to the bytes' result; one without changes is returned itself."""
    call = {"id": "a", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    first = {"role": "assistant", "content": "", "tool_calls": [call], "reasoning_content": "Thought."}
    second = {"role": "assistant", "content": "", "tool_calls": [call], "reasoning_content": None}
    request = {"model": "m", "messages": [{"role": "user", "content": "Hi"}, first, second]}
    kept = preserve_reasoning_content(request)
    assert kept == json.loads(preserve_reasoning_content(json.dumps(request).encode()))
    assert (kept["messages"][2]["reasoning_content"], second["reasoning_content"]) == ("Thought.", None)
    assert preserve_reasoning_content(kept) is kept
