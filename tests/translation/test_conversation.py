"""Turns of a client as turns of an upstream: results that come twice, neighbours, sampling, choices, pictures."""

from __future__ import annotations

from typing import Any

import pytest

from tests.translation.test_requests import BY_FORMAT, CALL, PNG, TOOL, body_of, chat, translated, user
from thoughtline.translation import TranslatedRequest
from thoughtline.values.items import ReasoningText, Text, ToolCall, ToolResult
from thoughtline.values.turns import FormatName

Json = dict[str, Any]


def results_of(request: TranslatedRequest) -> list[tuple[str | None, str]]:
    """The results that go up, with the ids of their calls."""
    items = [item for turn in request.transcript.turns for item in turn.items]
    return [(item.call_id, bytes(item.content).decode()) for item in items if isinstance(item, ToolResult)]


def gemini(*contents: tuple[str, list[Json]]) -> Json:
    return {"contents": [{"role": role, "parts": parts} for role, parts in contents]}


def given(name: str, value: str, id: str | None = None) -> Json:
    return {"functionResponse": {"name": name, "response": {"result": value}} | ({"id": id} if id else {})}


def asked(name: str, id: str | None = None) -> Json:
    return {"functionCall": {"name": name, "args": {}} | ({"id": id} if id else {})}


@pytest.mark.parametrize("to", [to for to in BY_FORMAT if to != "gemini_generate"])
@pytest.mark.parametrize("ids", [("a", "b"), (None, None)], ids=["by id", "by name"])
def test_a_result_that_comes_again_is_one(to: FormatName, ids: tuple[str | None, str | None]) -> None:
    """However often a client sends it, a call has one result: the one that was sent."""
    results = [given("look", "1", ids[0]), given("hear", "2", ids[1])]
    body = gemini(
        ("user", [{"text": "go"}]),
        ("model", [asked("look", ids[0]), asked("hear", ids[1])]),
        ("user", results),
        ("user", results),
        ("model", [{"text": "Done."}]),
        ("user", [*(results if ids[0] else []), {"text": "thanks"}]),
    )
    told = results_of(translated("gemini_generate", body, to))
    assert len(told) == 2
    assert "1" in told[0][1]
    assert "2" in told[1][1]


@pytest.mark.parametrize("to", [to for to in BY_FORMAT if to != "anthropic_messages"])
def test_two_results_of_one_call_are_joined(to: FormatName) -> None:
    """Where they say different things, both are in the one result."""
    block = {"type": "tool_result", "tool_use_id": "c1"}
    messages = [
        user("go"),
        {"role": "assistant", "content": [{"type": "tool_use", "id": "c1", "name": "look", "input": {}}]},
        user([block | {"content": "one"}, block | {"content": "two"}, block | {"content": "one"}]),
    ]
    ((_, told),) = results_of(translated("anthropic_messages", {"model": "m", "messages": messages}, to))
    assert "one" in told
    assert "two" in told
    assert told.count("one") == 1


def test_an_id_that_is_used_again_has_a_result_of_its_own() -> None:
    """Kimi counts from nought in every turn: that is no repeated result."""
    call = {"role": "assistant", "content": None, "tool_calls": [CALL]}
    result = {"role": "tool", "tool_call_id": "call_1", "content": "same"}
    told = results_of(translated("openai_chat", chat(user("go"), call, result, call, result), "anthropic_messages"))
    assert len(told) == 2
    assert told[0][0] != told[1][0]


@pytest.mark.parametrize("to", [to for to in BY_FORMAT if to != "gemini_generate"])
def test_neighbours_of_the_model_are_one_turn(to: FormatName) -> None:
    """Chunks of a stream that a client keeps as contents: words and thoughts whole, both calls before the results."""
    body = gemini(
        ("user", [{"text": "go"}]),
        ("model", [{"text": "Let me th", "thought": True}]),
        ("model", [{"text": "ink.", "thought": True}]),
        ("model", [{"text": "Wait a mo"}]),
        ("model", [{"text": "ment."}]),
        ("model", [asked("look", "a")]),
        ("model", [asked("hear", "b")]),
        ("user", [given("hear", "2", "b")]),
        ("user", [given("look", "1", "a")]),
    )
    request = translated("gemini_generate", body, to)
    roles = [turn.role for turn in request.transcript.turns]
    assert roles.count("assistant") == 1
    step = next(turn for turn in request.transcript.turns if turn.role == "assistant")
    assert [item.text for item in step.items if isinstance(item, Text)] == ["Wait a moment."]
    assert [item.text for item in step.items if isinstance(item, ReasoningText)] in ([], ["Let me think."])
    assert [item.name for item in step.items if isinstance(item, ToolCall)] == ["look", "hear"]
    assert [told for _, told in results_of(request)] == sorted(told for _, told in results_of(request))


def test_a_chunk_of_nothing_but_thoughts_is_kept_with_what_follows() -> None:
    """It was dropped as a turn that said nothing."""
    body = gemini(
        ("user", [{"text": "go"}]),
        ("model", [{"text": "hm", "thought": True}]),
        ("model", [asked("look", "a")]),
        ("user", [given("look", "1", "a")]),
    )
    message = body_of(translated("gemini_generate", body, "openai_chat"))["messages"][1]
    assert message["reasoning_content"] == "hm"
    assert [call["id"] for call in message["tool_calls"]] == ["a"]


# --- sampling, choices, pictures --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("model", "asked_for", "sent", "lost"),
    [
        ("claude-sonnet-4-5", {"temperature": 1, "topP": 0.95}, {"top_p": 0.95}, []),
        ("claude-sonnet-4-5", {"temperature": 0.3, "topP": 0.9}, {"temperature": 0.3}, ["/generationConfig/topP"]),
        ("claude-sonnet-4-5", {"temperature": 0.3, "topP": 1, "topK": 64}, {"temperature": 0.3, "top_k": 64}, []),
        ("claude-opus-4-1-20250805", {"temperature": 0, "topP": 0.95}, {"temperature": 0}, ["/generationConfig/topP"]),
        ("claude-3-7-sonnet", {"temperature": 0.3, "topP": 0.9}, {"temperature": 0.3, "top_p": 0.9}, []),
        ("claude-sonnet-4-20250514", {"temperature": 0.3, "topP": 0.9}, {"temperature": 0.3, "top_p": 0.9}, []),
        ("claude-opus-4-8", {"temperature": 1, "topP": 1}, {}, []),
        (
            "claude-opus-4-8",
            {"temperature": 0.3, "topP": 0.95, "topK": 64},
            {},
            ["/generationConfig/temperature", "/generationConfig/topK", "/generationConfig/topP"],
        ),
    ],
)
@pytest.mark.parametrize("to", ["anthropic_messages", "bedrock_converse"])
def test_claude_gets_the_sampling_that_it_takes(
    to: FormatName, model: str, asked_for: Json, sent: Json, lost: list[str]
) -> None:
    """Since 4.1 not `temperature` and `top_p` together, since 4.7 neither: the setting with the least effect is
    dropped.
    """
    known = {"thinkingConfig": {"thinkingBudget": 0}} if "opus-4-8" not in model else {}
    body = gemini(("user", [{"text": "hi"}])) | {"generationConfig": asked_for | known}
    provider = "anthropic" if to == "anthropic_messages" else "bedrock"
    request = translated("gemini_generate", body, to, provider, model)
    told = body_of(request)
    if to == "bedrock_converse":
        config, own = told.get("inferenceConfig", {}), told.get("additionalModelRequestFields", {})
        told = {"temperature": config.get("temperature"), "top_p": config.get("topP"), "top_k": own.get("top_k")}
    names = ("temperature", "top_p", "top_k")
    assert {name: told[name] for name in names if told.get(name) is not None} == sent
    found = [finding.place for finding in request.findings if finding.place.startswith("/generationConfig/t")]
    assert sorted(place for place in found if "thinking" not in place) == lost


def test_a_claude_that_thinks_keeps_what_it_takes() -> None:
    """`top_p` from 0.95 on, and a temperature of one."""
    thinks = {"thinkingConfig": {"thinkingBudget": 2000}}
    for asked_for, sent in (
        ({"temperature": 1, "topP": 0.95}, {"top_p": 0.95}),
        ({"temperature": 0.5, "topP": 0.5, "topK": 3}, {}),
        ({"temperature": 1}, {"temperature": 1}),
    ):
        body = gemini(("user", [{"text": "hi"}])) | {"generationConfig": asked_for | thinks}
        told = body_of(translated("gemini_generate", body, "anthropic_messages"))
        assert {name: told[name] for name in ("temperature", "top_p", "top_k") if name in told} == sent


def test_converse_offers_nothing_where_nothing_is_to_be_called() -> None:
    """It has no word for that; where the history has calls it wants a tool, and gets one that says there is none."""
    plain = translated("openai_chat", chat(user("hi"), tools=[TOOL], tool_choice="none"), "bedrock_converse")
    assert "toolConfig" not in body_of(plain)
    call = {"role": "assistant", "content": None, "tool_calls": [CALL]}
    result = {"role": "tool", "tool_call_id": "call_1", "content": "x"}
    for more in ({"tools": [TOOL], "tool_choice": "none"}, {}):
        request = translated("openai_chat", chat(user("hi"), call, result, **more), "bedrock_converse")
        tools = body_of(request)["toolConfig"]["tools"]
        assert [tool["toolSpec"]["name"] for tool in tools] == ["no_tool"]
        assert any("there is none" in finding.message for finding in request.findings)


@pytest.mark.parametrize("to", [to for to in BY_FORMAT if to != "gemini_generate"])
def test_pictures_of_a_function_response_are_carried(to: FormatName) -> None:
    """In the result where the wire has a place for them, else as the user's, else with a finding."""
    picture = {"inlineData": {"mimeType": "image/png", "data": PNG}}
    sound = {"inlineData": {"mimeType": "audio/wav", "data": "UklGRg=="}}
    given_back = {
        "functionResponse": {"id": "a", "name": "look", "response": {"result": "x"}, "parts": [picture, sound]}
    }
    body = gemini(("user", [{"text": "go"}]), ("model", [asked("look", "a")]), ("user", [given_back]))
    request = translated("gemini_generate", body, to, "kimi" if to == "openai_chat" else None)  # it takes pictures
    sent = request.transcript.body.decode()
    assert PNG in sent
    assert "UklGRg==" in sent or any("audio" in finding.message for finding in request.findings)
