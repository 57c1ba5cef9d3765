"""The preserver's helpers: the small functions over JSON."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from thoughtline.library.preserver import (
    ReasoningDetails,
    attach_to_tool_calls,
    build_assistant_message_with_reasoning,
    build_google_model_message_with_thinking,
    extract_from_response,
    extract_from_stream_chunk,
    extract_from_tool_calls,
    extract_thought_signature_from_part,
    merge_stream_details,
    reasoning_request_params,
    requires_reasoning_preservation,
)
from thoughtline.values.errors import DecodeError

# --- which models ----------------------------------------------------------------------------------------------------

PRESERVED: list[tuple[str, str, bool]] = [
    ("google/gemini-3-pro-preview", "openrouter", True),
    ("Google/Gemini-2.5-Flash", "OpenRouter", True),
    ("google/gemma-3", "openrouter", True),
    ("deepseek/deepseek-v4-pro", "openrouter", True),
    ("moonshotai/kimi-k2-thinking", "openrouter", True),
    ("xiaomi/mimo-v2-flash", "openrouter", True),
    ("anthropic/claude-opus-5-5", "openrouter", True),
    ("openai/gpt-5.6", "openrouter", True),
    ("openai/gpt-4o", "openrouter", False),
    ("meta-llama/llama-4", "openrouter", False),
    ("gemini-2.0-flash", "google", True),
    ("anything", "google", True),
    ("anything", "gemini", True),
    ("deepseek-v4-flash", "deepseek", True),
    ("k3", "kimi", True),
    ("k3", "moonshot", True),
    ("mimo-v2.5-pro", "xiaomi-mimo", True),
    ("claude-sonnet-5-5", "anthropic", True),
    ("o3", "openai", True),
    ("gpt-5", "openai", True),
    ("gpt-4o-mini", "openai", False),
    ("my-deployment", "azure", True),
    ("anthropic.claude-opus-5-v1:0", "bedrock", True),
    ("amazon.nova-2-lite-v1:0", "bedrock", False),
    ("us.deepseek.r1-v1:0", "bedrock", False),
    ("deepseek-r1-distill-llama-70b", "groq", False),
    ("magistral-medium", "mistral", False),
    ("grok-4.7", "xai", False),
    ("anything", "opencode-go", True),
    ("qwen3-235b-thinking", "somewhere", True),
    ("qwq-32b", "somewhere", True),
    ("glm-4.5-thinking", "somewhere", True),
    ("qwen3-max", "somewhere", False),
    ("", "", False),
]


@pytest.mark.parametrize(("model", "provider", "expected"), PRESERVED)
def test_which_models_want_their_reasoning_back(model: str, provider: str, expected: bool) -> None:
    """Those that fail without it; not those that refuse it, nor those that never had any."""
    assert requires_reasoning_preservation(model, provider) is expected


PARAMS: list[tuple[str, str, bool, dict[str, Any]]] = [
    ("google/gemini-2.5-pro", "openrouter", True, {"reasoning": {"max_tokens": 8192, "exclude": False}}),
    ("google/gemini-3-pro", "openrouter", True, {"reasoning": {"max_tokens": 8192, "exclude": False}}),
    ("google/gemini-3-pro", "openrouter", False, {}),
    ("openai/gpt-4o", "openrouter", True, {}),
    ("gemini-2.5-flash", "google", True, {"thinkingBudget": 8192}),
    ("gemini-flash-latest", "google", True, {"thinkingBudget": 8192}),
    ("gemini-3-pro-preview", "google", True, {"thinkingLevel": "high"}),
    ("models/gemini-3.7-flash", "gemini", True, {"thinkingLevel": "high"}),
    ("Gemini-10-ultra", "google", True, {"thinkingLevel": "high"}),
    ("gemini-3-pro-preview", "google", False, {}),
    ("deepseek-v4-pro", "deepseek", True, {}),
    ("llama", "somewhere", True, {}),
]


@pytest.mark.parametrize(("model", "provider", "has_tools", "expected"), PARAMS)
def test_what_to_ask_for(model: str, provider: str, has_tools: bool, expected: dict[str, Any]) -> None:
    """A budget or a level, in the provider's own words, and only for a request with tools."""
    assert reasoning_request_params(model, provider, has_tools) == expected


# --- from responses --------------------------------------------------------------------------------------------------

A = {"type": "reasoning.text", "text": "a", "index": 0, "format": "anthropic-claude-v1"}
B = {"type": "reasoning.encrypted", "data": "gAAAA", "index": 1, "id": "rs_1"}

CHUNKS: dict[str, tuple[dict[str, Any], list[Any] | None]] = {
    "in the delta": ({"choices": [{"delta": {"reasoning_details": [A]}}]}, [A]),
    "in a whole message": ({"choices": [{"message": {"reasoning_details": [A]}}]}, [A]),
    "beside the delta": ({"choices": [{"delta": {}, "reasoning_details": [A]}]}, [A]),
    "at the top": ({"reasoning_details": [A], "choices": []}, [A]),
    "an empty list at the top hides nothing": (
        {"reasoning_details": [], "choices": [{"delta": {"reasoning_details": [A]}}]},
        [A],
    ),
    "lists in two places are both read": (
        {"reasoning_details": [A], "choices": [{"delta": {"reasoning_details": [B]}}]},
        [A, B],
    ),
    "the same list in two places is read once": (
        {"reasoning_details": [A], "choices": [{"delta": {"reasoning_details": [A]}}]},
        [A],
    ),
    "an empty list says something": ({"choices": [{"delta": {"reasoning_details": []}}]}, []),
    "another answer's is not this one's": ({"choices": [{"index": 1, "delta": {"reasoning_details": [A]}}]}, None),
    "none": ({"choices": [{"delta": {"content": "x"}}]}, None),
    "null": ({"choices": [{"delta": {"reasoning_details": None}}, None]}, None),
    "no choices": ({"choices": None}, None),
    "choices that are none": ({"choices": 5, "usage": {}}, None),
}


@pytest.mark.parametrize("name", CHUNKS)
def test_what_a_chunk_brings(name: str) -> None:
    """Entries from any of their places."""
    parsed, expected = CHUNKS[name]
    assert extract_from_stream_chunk(parsed) == expected


def test_a_chunk_of_another_answer() -> None:
    """Selected by its index."""
    assert extract_from_stream_chunk({"choices": [{"index": 1, "delta": {"reasoning_details": [A]}}]}, choice=1) == [A]


def test_later_lists_of_a_stream_are_not_lost() -> None:
    """Keeping only the first list would keep a syllable: text is joined, the signature comes last, data stays
    separate."""
    deltas = [
        [{"type": "reasoning.text", "text": "I thi", "index": 0, "format": "anthropic-claude-v1"}],
        None,
        [{"type": "reasoning.text", "text": "nk.", "index": 0}],
        [{"type": "reasoning.text", "signature": "c2ln", "index": 0}, {**B, "data": "one"}],
        [{**B, "data": "two"}],
    ]
    chunks = [{"choices": [{"delta": {"reasoning_details": entries}}]} for entries in deltas]
    whole = merge_stream_details(map(extract_from_stream_chunk, chunks))
    text = {"type": "reasoning.text", "text": "I think.", "index": 0, "format": "anthropic-claude-v1"}
    assert whole == [{**text, "signature": "c2ln"}, {**B, "data": "one"}, {**B, "data": "two"}]


ANSWERS: dict[str, tuple[dict[str, Any], ReasoningDetails | None]] = {
    "details": ({"message": {"reasoning_details": [A]}}, {"reasoning_details": [A]}),
    "empty details": ({"message": {"reasoning_details": []}}, {"reasoning_details": []}),
    "a signature": ({"message": {"thought_signature": "c2ln"}}, {"thought_signature": "c2ln"}),
    "a signature, the other spelling": ({"message": {"thoughtSignature": "c2ln"}}, {"thought_signature": "c2ln"}),
    "Google's compatible endpoint": (
        {"message": {"extra_content": {"google": {"thought_signature": "c2ln"}}}},
        {"thought_signature": "c2ln"},
    ),
    "plain text": ({"message": {"reasoning_content": "why"}}, {"reasoning_content": "why"}),
    "all at once": (
        {"message": {"reasoning_details": [A], "thought_signature": "c2ln", "reasoning_content": "why"}},
        {"reasoning_details": [A], "thought_signature": "c2ln", "reasoning_content": "why"},
    ),
    "nulls": ({"message": {"reasoning_details": None, "thought_signature": "", "reasoning_content": None}}, None),
    "none": ({"message": {"content": "x"}}, None),
    "no message": ({"finish_reason": "stop"}, None),
}


@pytest.mark.parametrize("name", ANSWERS)
def test_what_an_answer_brings(name: str) -> None:
    """Every member that is not empty."""
    choice, expected = ANSWERS[name]
    assert extract_from_response(choice) == expected


@pytest.mark.parametrize(
    ("part", "expected"),
    [
        ({"functionCall": {}, "thoughtSignature": "c2ln"}, "c2ln"),
        ({"functionCall": {}, "thought_signature": "c2ln"}, "c2ln"),
        ({"thoughtSignature": "", "thought_signature": "c2ln"}, "c2ln"),
        ({"text": "x", "thoughtSignature": ""}, None),
        ({"text": "x", "thoughtSignature": 5}, None),
        ({}, None),
    ],
)
def test_the_signature_of_a_part(part: dict[str, Any], expected: str | None) -> None:
    """In both spellings; an empty one counts as none."""
    assert extract_thought_signature_from_part(part) == expected


# --- on tool calls ---------------------------------------------------------------------------------------------------


def call(name: str, **members: Any) -> dict[str, Any]:
    return {"id": f"id_{name}", "type": "function", "function": {"name": name, "arguments": '{"a":1}'}, **members}


def test_one_signature_is_not_copied_onto_parallel_calls() -> None:
    """Gemini signs the first call of a step; a copy on other calls is a signature that it never gave them."""
    calls = attach_to_tool_calls([call("a"), call("b"), call("c")], {"thought_signature": "c2ln"})
    assert [found.get("thought_signature") for found in calls] == ["c2ln", None, None]


def test_a_call_keeps_what_it_has_of_its_own() -> None:
    """Its own signature was made for it."""
    own = [call("a", extra_content={"google": {"thought_signature": "own"}}), call("b", thought_signature="two")]
    assert attach_to_tool_calls(own, {"thought_signature": "other"}) == own


def test_details_and_text_go_on_every_call() -> None:
    """So that any returned call brings them."""
    calls = attach_to_tool_calls([call("a"), call("b")], {"reasoning_details": [A, B], "reasoning_content": "why"})
    assert calls == [call(name, reasoning_details=[A, B], reasoning_content="why") for name in "ab"]


@pytest.mark.parametrize("reasoning", [None, {}])
def test_nothing_to_attach(reasoning: ReasoningDetails | None) -> None:
    """The calls are unchanged."""
    assert attach_to_tool_calls([call("a")], reasoning) == [call("a")]
    assert attach_to_tool_calls([], {"thought_signature": "c2ln"}) == []


CARRIED: dict[str, tuple[list[dict[str, Any]], ReasoningDetails | None]] = {
    "both details and signature, on one call": (
        [call("a", reasoning_details=[A], thought_signature="c2ln")],
        {"reasoning_details": [A], "thought_signature": "c2ln"},
    ),
    "both, on two calls": (
        [call("a", thought_signature="c2ln"), call("b", reasoning_details=[A])],
        {"reasoning_details": [A], "thought_signature": "c2ln"},
    ),
    "copies are one": (
        [call("a", reasoning_details=[A]), call("b", reasoning_details=[A])],
        {"reasoning_details": [A]},
    ),
    "entries of each call": (
        [call("a", reasoning_details=[A]), call("b", reasoning_details=[B])],
        {"reasoning_details": [A, B]},
    ),
    "an entry twice in one list stays twice": ([call("a", reasoning_details=[A, A])], {"reasoning_details": [A, A]}),
    "the first signature": (
        [call("a"), call("b", thought_signature="one"), call("c", thought_signature="two")],
        {"thought_signature": "one"},
    ),
    "empty details": ([call("a", reasoning_details=[])], {"reasoning_details": []}),
    "none": ([call("a")], None),
    "no calls": ([], None),
}


@pytest.mark.parametrize("name", CARRIED)
def test_what_calls_carry(name: str) -> None:
    """All kinds, not only the first one found."""
    calls, expected = CARRIED[name]
    assert extract_from_tool_calls(calls) == expected


some_reasoning = st.fixed_dictionaries(
    {},
    optional={
        "reasoning_details": st.lists(st.sampled_from([A, B]), max_size=3),
        "thought_signature": st.text(min_size=1, max_size=4),
        "reasoning_content": st.text(max_size=4),
    },
)


@given(reasoning=some_reasoning, count=st.integers(1, 4))
def test_what_was_attached_is_extracted(reasoning: ReasoningDetails, count: int) -> None:
    """From any number of calls."""
    calls = attach_to_tool_calls([call(str(at)) for at in range(count)], reasoning)
    assert extract_from_tool_calls(calls) == (reasoning or None)


# --- into requests ---------------------------------------------------------------------------------------------------


def test_details_stand_on_each_call_and_on_the_message() -> None:
    """As OpenRouter's Gemini requires; ids, arguments and unknown members stay; a signature stays with its call."""
    calls = [call("a", reasoning_details=[A], thought_signature="c2ln", index=0), call("b", reasoning_details=[A])]
    message = build_assistant_message_with_reasoning(calls, "Let me look.")
    assert message == {
        "role": "assistant",
        "content": "Let me look.",
        "tool_calls": calls,
        "reasoning_details": [A],
    }


def test_text_is_only_on_the_message() -> None:
    """Where DeepSeek and similar providers read it; they would refuse a call with an unknown member."""
    calls = attach_to_tool_calls([call("a"), call("b")], {"reasoning_content": "why"})
    message = build_assistant_message_with_reasoning(calls)
    assert message["reasoning_content"] == "why"
    assert message["tool_calls"] == [call("a"), call("b")]
    assert message["content"] is None


def test_a_turn_without_calls_keeps_its_reasoning() -> None:
    """The whole turn has reasoning, not only its calls."""
    message = build_assistant_message_with_reasoning([], "Hi.", {"reasoning_details": [A], "reasoning_content": ""})
    assert message == {"role": "assistant", "content": "Hi.", "reasoning_details": [A], "reasoning_content": ""}


WRITTEN_CALLS: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({"id": "1", "function": {"name": "f", "arguments": '{"b": 1.0}'}}, {"name": "f", "arguments": '{"b": 1.0}'}),
    ({"id": "1", "name": "f", "parameters": {"city": "Köln"}}, {"name": "f", "arguments": '{"city": "Köln"}'}),
    ({"id": "1", "name": "f"}, {"name": "f", "arguments": "{}"}),
    ({"id": "1", "name": "f", "arguments": '{"x":1}'}, {"name": "f", "arguments": '{"x":1}'}),
    ({"id": "1", "function": {"name": "f", "arguments": {"x": 1}}}, {"name": "f", "arguments": '{"x": 1}'}),
    (
        {"id": "1", "function": {"name": "f", "arguments": "", "strict": True}, "parameters": {"x": 1}},
        {"name": "f", "arguments": '{"x": 1}', "strict": True},
    ),
]


@pytest.mark.parametrize(("given_call", "function"), WRITTEN_CALLS)
def test_arguments_from_wherever_they_are(given_call: dict[str, Any], function: dict[str, Any]) -> None:
    """Text is returned letter for letter; an object is written as text."""
    message = build_assistant_message_with_reasoning([given_call])
    assert message["tool_calls"] == [{"id": "1", "type": "function", "function": function}]


def test_a_call_without_an_id_gets_none() -> None:
    """None is invented: no result would match it."""
    assert "id" not in build_assistant_message_with_reasoning([{"name": "f"}])["tool_calls"][0]


def test_a_custom_call_stays_custom() -> None:
    """Its input is not JSON and must not become arguments."""
    custom = {"id": "1", "type": "custom", "custom": {"name": "f", "input": "free"}, "reasoning_content": "why"}
    message = build_assistant_message_with_reasoning([custom])
    assert message["tool_calls"] == [{"id": "1", "type": "custom", "custom": {"name": "f", "input": "free"}}]


SIGNATURES: list[tuple[list[str | None], list[str | None]]] = [
    (["one", None, None], ["one", None, None]),
    (["one", "one", "one"], ["one", None, None]),
    (["one", "two", "three"], ["one", "two", "three"]),
    (["one", None, "three"], ["one", None, "three"]),
    ([None, "one", "one"], ["one", None, None]),
    ([None, None], [None, None]),
    ([], []),
]


@pytest.mark.parametrize(("given_signatures", "written"), SIGNATURES)
def test_which_parts_are_signed(given_signatures: list[str | None], written: list[str | None]) -> None:
    """The first one, once, unless calls have their own."""
    calls = [call(str(at), thought_signature=signature) for at, signature in enumerate(given_signatures)]
    message = build_google_model_message_with_thinking(calls)
    assert message["role"] == "model"
    assert [part.get("thoughtSignature") for part in message["parts"]] == written


def test_a_google_call_keeps_id_name_and_arguments() -> None:
    """Arguments as an object, from text or from `parameters`; missing ones become an empty object."""
    calls = [call("a"), {"name": "b", "parameters": {"x": [1]}}, {"function": {"name": "c", "arguments": ""}}]
    assert build_google_model_message_with_thinking(calls)["parts"] == [
        {"functionCall": {"id": "id_a", "name": "a", "args": {"a": 1}}},
        {"functionCall": {"name": "b", "args": {"x": [1]}}},
        {"functionCall": {"name": "c", "args": {}}},
    ]


@pytest.mark.parametrize("arguments", ['{"a":', "secret", "[1]", "5", '"text"', "[" * 100_000])
def test_arguments_that_are_no_object_are_refused_by_name(arguments: str) -> None:
    """With the place, and without their content."""
    bad = {"function": {"name": "f", "arguments": arguments}}
    with pytest.raises(DecodeError) as refused:
        build_google_model_message_with_thinking([call("a"), bad])
    assert refused.value.place == "/tool_calls/1/function/arguments"
    assert "secret" not in str(refused.value)


READERS: dict[str, Callable[[Any], object]] = {
    "stream chunk": lambda given: extract_from_stream_chunk(given["chunk"]),
    "response": lambda given: extract_from_response(given["choice"]),
    "attach": lambda given: attach_to_tool_calls(given["calls"], given["reasoning"]),
    "extract": lambda given: extract_from_tool_calls(given["calls"]),
    "build": lambda given: build_assistant_message_with_reasoning(given["calls"], None, given["reasoning"]),
    "build from calls": lambda given: build_assistant_message_with_reasoning(given["calls"]),
    "build google": lambda given: build_google_model_message_with_thinking(given["calls"]),
    "merge": lambda given: merge_stream_details([given["reasoning"]["reasoning_details"]]),
}


def _emptied(value: object) -> None:
    """Empty this value at any depth."""
    for inner in list(value.values()) if isinstance(value, dict) else value if isinstance(value, list) else ():
        _emptied(inner)
    if isinstance(value, (dict, list)):
        value.clear()


@pytest.mark.parametrize("name", READERS)
def test_inputs_are_never_changed(name: str) -> None:
    """Neither by the call, nor by later changes of its result."""
    given_input: dict[str, Any] = {
        "chunk": {"choices": [{"delta": {"reasoning_details": [A, B]}}]},
        "choice": {"message": {"reasoning_details": [A, B], "thought_signature": "c2ln"}},
        "calls": [
            call("a", reasoning_details=[A], thought_signature="c2ln", reasoning_content="why"),
            call("b", parameters={"x": []}),
            {"name": "c", "parameters": {"x": [1]}},
        ],
        "reasoning": {"reasoning_details": [A, B], "thought_signature": "c2ln", "reasoning_content": "why"},
    }
    given_input = copy.deepcopy(given_input)
    before = copy.deepcopy(given_input)
    _emptied(READERS[name](given_input))
    assert given_input == before
