"""Requests between formats: content and options are kept, and no loss is silent."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.formats.test_recordings import decode_request, supported
from tests.recordings import SUPPORTED, Recording, name_of, needs_recordings
from tests.translation.lanes import EVERY_CLIENT, UPSTREAMS, Upstream
from tests.translation.sdk_types import check_request
from tests.wire_cases import REQUESTS, WireCase
from tests.wire_cases import name_of as case_name
from thoughtline.formats import FORMATS
from thoughtline.replay.detection import resolve
from thoughtline.replay.visible import canonical_json
from thoughtline.translation import TranslatedRequest, runs, translate_request
from thoughtline.translation.conversation import refusal_of
from thoughtline.translation.envelopes import letters_of
from thoughtline.values.destination import Destination
from thoughtline.values.errors import DecodeError, Untranslatable
from thoughtline.values.items import Item, Text, ToolCall, Unknown
from thoughtline.values.turns import FormatName, Transcript

Json = dict[str, Any]
BY_FORMAT: dict[FormatName, Upstream] = {upstream.format: upstream for upstream in UPSTREAMS}


def transcript_of(format: FormatName, body: Json) -> Transcript:
    bodies = FORMATS[format].bodies
    return bodies.decode_request(json.dumps(body).encode(), FORMATS[format].dialect)


def translated(
    format: FormatName, body: Json, to: FormatName, provider: str | None = None, model: str | None = None
) -> TranslatedRequest:
    upstream = BY_FORMAT[to]
    target = Destination(provider or upstream.provider, "https://h", model or upstream.model, to)
    return translate_request(
        transcript_of(format, body), to, resolve(target), model or upstream.model, is_streaming=False
    )


def body_of(request: TranslatedRequest) -> Json:
    loaded: Json = json.loads(request.transcript.body)
    return loaded


def visible(transcript: Transcript) -> tuple[str, list[tuple[str, str]]]:
    """What the model said and called, as far as every wire can hold it."""
    items = [item for turn in transcript.turns if turn.role == "assistant" for item in turn.items]
    return "".join("".join(_words(item) for item in items).split()), [
        _call(i) for i in items if isinstance(i, ToolCall)
    ]


def _words(item: Item) -> str:
    if isinstance(item, Unknown) and item.kind == "refusal":
        return refusal_of(item)
    return item.text if isinstance(item, Text) else ""


def _call(call: ToolCall) -> tuple[str, str]:
    """Free text may have become an object that holds it."""
    if call.is_custom:
        return call.name, canonical_json(json.dumps({"input": call.arguments}))
    return call.name, canonical_json(call.arguments or "{}")


def check_pairs(transcript: Transcript) -> None:
    for to, upstream in BY_FORMAT.items():
        if to == transcript.format:
            continue
        try:
            request = translate_request(
                transcript, upstream.format, upstream.contract, upstream.model, is_streaming=False
            )
        except (Untranslatable, DecodeError) as error:
            assert error.status == 400
            assert error.place
            continue
        words, calls = visible(transcript)
        assert visible(request.transcript)[0] == words
        if not any(call.is_custom for call in _custom(transcript)) or upstream.format in ("anthropic_messages",):
            assert [(_own(request, name), told) for name, told in visible(request.transcript)[1]] == calls
        check_request(upstream.format, request.transcript.body)
        again = translate_request(transcript, upstream.format, upstream.contract, upstream.model, is_streaming=False)
        assert again.transcript.body == request.transcript.body


def _own(request: TranslatedRequest, name: str) -> str:
    """The client's name of a tool in a namespace."""
    return request.tools.called(ToolCall(name, "{}")).name


def _custom(transcript: Transcript) -> list[ToolCall]:
    return [item for turn in transcript.turns for item in turn.items if isinstance(item, ToolCall)]


@pytest.mark.parametrize("case", [case for case in REQUESTS if case.format.name in EVERY_CLIENT], ids=case_name)
def test_hand_made_requests_say_the_same_everywhere(case: WireCase) -> None:
    """To every upstream: the same words and calls, a body that the SDK's types take, the same bytes each time."""
    bodies = case.format.bodies
    check_pairs(bodies.decode_request(case.bytes_of("request.json") or b"", case.dialect))


@needs_recordings
@pytest.mark.parametrize("recording", SUPPORTED, ids=name_of)
def test_recorded_requests_say_the_same_everywhere(recording: Recording) -> None:
    """The same of what real clients sent to real providers."""
    for exchange in supported(recording):
        transcript = decode_request(exchange)
        if transcript is not None and transcript.format in EVERY_CLIENT:
            check_pairs(transcript)


# --- the conversation -------------------------------------------------------------------------------------------------

CALL = {"id": "call_1", "type": "function", "function": {"name": "look", "arguments": '{"at": 1}'}}
OTHER = {"id": "call_2", "type": "function", "function": {"name": "hear", "arguments": "{}"}}
TOOL = {"type": "function", "function": {"name": "look", "parameters": {"type": "object"}}}
PNG = "iVBORw0KGgo="


def chat(*messages: Json, **members: Any) -> Json:
    return {"model": "m", "messages": list(messages)} | members


def user(content: Any) -> Json:
    return {"role": "user", "content": content}


def test_results_stand_first_and_in_the_order_of_their_calls() -> None:
    """Results that came in another order, with words between them, are one turn of Anthropic's, the words last."""
    body = chat(
        user("go"),
        {"role": "assistant", "content": None, "tool_calls": [CALL, OTHER]},
        {"role": "tool", "tool_call_id": "call_2", "content": "two"},
        user("by the way"),
        {"role": "tool", "tool_call_id": "call_1", "content": "one"},
    )
    blocks = body_of(translated("openai_chat", body, "anthropic_messages"))["messages"][2]["content"]
    assert [block.get("content") or block["text"] for block in blocks] == ["one", "two", "by the way"]
    assert [block.get("tool_use_id") for block in blocks] == ["call_1", "call_2", None]


@pytest.mark.parametrize(
    ("to", "found"),
    [
        ("anthropic_messages", {"type": "base64", "media_type": "image/png", "data": PNG}),
        ("gemini_generate", {"mimeType": "image/png", "data": PNG}),
        ("openai_responses", f"data:image/png;base64,{PNG}"),
        ("ollama_chat", PNG),
        ("bedrock_converse", {"bytes": PNG}),
    ],
)
def test_a_picture_in_every_wire(to: FormatName, found: Any) -> None:
    """A picture with its bytes goes everywhere, in each wire's own shape."""
    image = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PNG}"}}
    sent = json.dumps(body_of(translated("openai_chat", chat(user([image])), to)))
    assert json.dumps(found) in sent


def test_a_picture_by_address_where_a_wire_fetches_nothing() -> None:
    """Ollama and Converse can't fetch: a finding names the place."""
    image = {"type": "image_url", "image_url": {"url": "https://pictures.example/1.png"}}
    request = translated("openai_chat", chat(user([{"type": "text", "text": "see"}, image])), "ollama_chat")
    assert [finding.place for finding in request.findings] == ["/messages/0"]


def test_a_result_with_a_picture_for_a_chat_model() -> None:
    """A tool message holds text alone: the picture follows as the user's."""
    source = {"type": "base64", "media_type": "image/png", "data": PNG}
    result = {
        "type": "tool_result",
        "tool_use_id": "t1",
        "content": [{"type": "text", "text": "seen"}, {"type": "image", "source": source}],
    }
    body = {
        "model": "m",
        "max_tokens": 99,
        "messages": [
            user("go"),
            {"role": "assistant", "content": [{"type": "tool_use", "id": "t1", "name": "look", "input": {}}]},
            {"role": "user", "content": [result]},
        ],
    }
    messages = body_of(translated("anthropic_messages", body, "openai_chat", "kimi", "kimi-k2.6"))["messages"]
    assert messages[2] == {"role": "tool", "tool_call_id": "t1", "content": "seen"}
    assert messages[3]["content"][1]["image_url"]["url"] == f"data:image/png;base64,{PNG}"


def test_a_failed_tool_is_marked_as_failed() -> None:
    """`is_error` has a mark of its own on Converse and Gemini, and words where there is none."""
    result = {"type": "tool_result", "tool_use_id": "t1", "content": "no such file", "is_error": True}
    use = {"type": "tool_use", "id": "t1", "name": "look", "input": {}}
    body = {"max_tokens": 9, "messages": [user("go"), {"role": "assistant", "content": [use]}, user([result])]}
    sent = {
        to: json.dumps(body_of(translated("anthropic_messages", body, to)))
        for to in BY_FORMAT
        if to != "anthropic_messages"
    }
    assert '"status": "error"' in sent["bedrock_converse"]
    assert '"response": {"error": "no such file"}' in sent["gemini_generate"]
    assert '"content": "Error: no such file"' in sent["openai_chat"]


@pytest.mark.parametrize("to", sorted(BY_FORMAT))
def test_system_prompts_find_their_place(to: FormatName) -> None:
    """A system message before the conversation goes where the format has it; in the middle of the conversation it keeps
    its place.
    """
    body = {
        "model": "m",
        "instructions": "Be brief.",
        "input": [user("a"), {"role": "developer", "content": "Be loud."}, user("b")],
    }
    if to == "openai_responses":
        return
    sent = json.dumps(body_of(translated("openai_responses", body, to)))
    assert sent.index("Be brief.") != sent.index("Be loud.")
    assert sent.index('"a"') < sent.index("Be loud.") < sent.index('"b"')
    request = translated("openai_responses", body, to)
    stands_as_users = any("mid conversation" in finding.message for finding in request.findings)
    in_blocks = ("anthropic_messages", "bedrock_converse", "gemini_generate", "gemini_code_assist")
    assert stands_as_users == (to in in_blocks)


def test_a_conversation_that_the_model_opened() -> None:
    """Anthropic requires the user to speak first: a message is added."""
    body = chat({"role": "assistant", "content": "Welcome!"}, user("hi"))
    messages = body_of(translated("openai_chat", body, "anthropic_messages"))["messages"]
    assert [message["role"] for message in messages] == ["user", "assistant", "user"]


def test_a_turn_of_nothing_but_thinking() -> None:
    """A turn that was cut off before it said anything is dropped: every format rejects it."""
    thought = {"role": "assistant", "content": None, "reasoning_content": "hm"}
    messages = body_of(translated("openai_chat", chat(user("a"), thought, user("b")), "ollama_chat"))["messages"]
    assert [message["role"] for message in messages] == ["user", "user"]


def test_arguments_that_are_no_object() -> None:
    """A call cut short by a token limit still goes to a wire that wants objects, and is found."""
    cut = {"id": "call_1", "type": "function", "function": {"name": "look", "arguments": '{"at": '}}
    body = chat(user("go"), {"role": "assistant", "content": None, "tool_calls": [cut]})
    request = translated("openai_chat", body, "anthropic_messages")
    assert body_of(request)["messages"][1]["content"][0]["input"] == {"arguments": '{"at": '}
    assert any("no object" in finding.message for finding in request.findings)


def test_a_gemini_client_without_ids() -> None:
    """Calls and results are paired by name and order, under ids that the conversation gives."""
    call = {"functionCall": {"name": "look", "args": {}}}
    answers = [{"functionResponse": {"name": "look", "response": {"output": word}}} for word in ("one", "two")]
    contents = [{"role": "user", "parts": [{"text": "go"}]}, {"role": "model", "parts": [call, call]}]
    body = {"contents": [*contents, {"role": "user", "parts": answers}]}
    messages = body_of(translated("gemini_generate", body, "openai_chat"))["messages"]
    ids = [one["id"] for one in messages[1]["tool_calls"]]
    assert len(set(ids)) == 2
    assert [(one["tool_call_id"], one["content"]) for one in messages[2:]] == [(ids[0], "one"), (ids[1], "two")]


# --- options ----------------------------------------------------------------------------------------------------------

EVERYTHING = chat(
    user("hi"),
    max_completion_tokens=500,
    temperature=0.5,
    top_p=0.9,
    stop=["END"],
    seed=7,
    frequency_penalty=0.1,
    presence_penalty=0.2,
    n=2,
    tools=[TOOL],
    tool_choice={"type": "function", "function": {"name": "look"}},
    parallel_tool_calls=False,
    response_format={"type": "json_schema", "json_schema": {"name": "a", "schema": {"type": "object"}, "strict": True}},
    service_tier="flex",
    metadata={"a": "b"},
    user="me",
    made_up=1,
)


@pytest.mark.parametrize("to", [to for to in BY_FORMAT if to != "openai_chat"])
def test_every_option_is_carried_or_found(to: FormatName) -> None:
    """Each member of a full request is in the upstream's body or named in a finding."""
    model = {"anthropic_messages": "claude-3-5-haiku", "openai_responses": "gpt-4.1"}.get(to)
    request = translated("openai_chat", EVERYTHING, to, model=model)
    sent = json.dumps(body_of(request))
    found = {finding.place for finding in request.findings}
    facts = {
        "/max_completion_tokens": "500",
        "/temperature": "0.5",
        "/top_p": "0.9",
        "/stop": '"END"',
        "/seed": ": 7",
        "/frequency_penalty": "0.1",
        "/presence_penalty": "0.2",
        "/n": ": 2",
        "/tools": '"look"',
        "/tool_choice": '"look"',
        "/parallel_tool_calls": "arallel",
        "/response_format": '"format": {"type": "object"}' if to == "ollama_chat" else "chema",
        "/service_tier": '"flex"',
        "/metadata": '"b"',
        "/user": '"me"',
    }
    assert "/made_up" in found
    assert [place for place, fact in facts.items() if fact not in sent and place not in found] == []


def test_what_is_kept_at_a_provider_can_not_be_looked_up_by_another() -> None:
    """`previous_response_id` and references are refused with their remedy, not dropped."""
    for body in (
        {"model": "m", "input": "hi", "previous_response_id": "resp_1"},
        {"model": "m", "input": [{"type": "item_reference", "id": "rs_1"}, user("hi")]},
    ):
        with pytest.raises(Untranslatable):
            translated("openai_responses", body, "anthropic_messages")


def test_geminis_own_schemas_become_json_schemas() -> None:
    """Types in capitals, `nullable` and numbers in strings are Google's alone."""
    own = {
        "type": "OBJECT",
        "properties": {"at": {"type": "STRING", "nullable": True, "maxLength": "9"}},
        "propertyOrdering": ["at"],
    }
    body = {
        "contents": [{"role": "user", "parts": [{"text": "hi"}]}],
        "tools": [{"functionDeclarations": [{"name": "look", "parameters": own}]}],
    }
    function = body_of(translated("gemini_generate", body, "openai_chat"))["tools"][0]["function"]
    assert function["parameters"] == {
        "type": "object",
        "properties": {"at": {"type": ["string", "null"], "maxLength": 9}},
    }


def test_a_function_is_strict_in_responses_only_if_it_was() -> None:
    """Responses takes a function for strict unless it says no; chat the other way round."""
    tools = body_of(translated("openai_chat", chat(user("hi"), tools=[TOOL]), "openai_responses"))["tools"]
    assert tools[0]["strict"] is False


def test_nothing_is_kept_at_the_provider_unasked() -> None:
    """A client whose format keeps nothing gets a request that keeps nothing, and asks for the ciphertext instead."""
    sent = body_of(translated("openai_chat", chat(user("hi")), "openai_responses"))
    assert (sent["store"], sent["include"]) == (False, ["reasoning.encrypted_content"])


@pytest.mark.parametrize("model", ["claude-sonnet-4-5", "claude-opus-5-5"])
def test_a_forced_tool_and_thinking(model: str) -> None:
    """Claude can't have both: the tool is no longer forced, the model thinks, and a finding says so."""
    body = chat(
        user("hi"),
        tools=[TOOL],
        tool_choice={"type": "function", "function": {"name": "look"}},
        reasoning_effort="high",
    )
    request = translated("openai_chat", body, "anthropic_messages", "anthropic", model)
    sent = body_of(request)
    assert sent["tool_choice"] == {"type": "auto"}
    assert "thinking" in sent
    assert any("forces no tool" in finding.message for finding in request.findings)


def test_in_one_format_nothing_is_touched() -> None:
    """A request that needs no translation is the very request."""
    transcript = transcript_of("openai_chat", EVERYTHING)
    upstream = BY_FORMAT["openai_chat"]
    assert translate_request(transcript, "openai_chat", upstream.contract, upstream.model).transcript is transcript


def test_a_member_of_the_wrong_type_is_the_clients_mistake() -> None:
    """400, with its place."""
    with pytest.raises(DecodeError) as refused:
        translated("openai_chat", chat(user("hi"), temperature="hot"), "anthropic_messages")
    assert (refused.value.status, refused.value.place) == (400, "/temperature")


def test_functions_of_the_time_before_tools() -> None:
    """`functions` and `function_call` are tools and a choice by their old names."""
    body = chat(
        user("hi"), functions=[{"name": "look", "parameters": {"type": "object"}}], function_call={"name": "look"}
    )
    sent = body_of(translated("openai_chat", body, "gemini_generate"))
    assert sent["tools"][0]["functionDeclarations"][0]["name"] == "look"
    assert sent["toolConfig"]["functionCallingConfig"] == {"mode": "ANY", "allowedFunctionNames": ["look"]}


def test_a_choice_among_some_tools() -> None:
    """Where a wire can't say it, the other tools are not offered."""
    tools = [TOOL, {"type": "function", "function": {"name": "hear", "parameters": {"type": "object"}}}]
    allowed = {"mode": "auto", "tools": [{"type": "function", "function": {"name": "hear"}}]}
    body = chat(user("hi"), tools=tools, tool_choice={"type": "allowed_tools", "allowed_tools": allowed})
    assert [tool["name"] for tool in body_of(translated("openai_chat", body, "anthropic_messages"))["tools"]] == [
        "hear"
    ]


def test_a_long_name_of_a_user_is_replaced_by_its_digest() -> None:
    """Claude Code's `user_id` is longer than OpenAI takes."""
    body = {"max_tokens": 9, "messages": [user("hi")], "metadata": {"user_id": "u" * 150}}
    assert len(body_of(translated("anthropic_messages", body, "openai_responses"))["user"]) <= 64


@pytest.mark.parametrize("target", ["anthropic_messages", "gemini_generate", "openai_responses"])
def test_neighbours_are_joined_in_one_pass(target: FormatName, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run of the model's messages becomes one turn, and each of them is looked at once for that."""
    looked: list[str] = []

    def counted(text: str) -> int:
        looked.append(text)
        return letters_of(text)

    monkeypatch.setattr(runs, "letters_of", counted)
    messages = [{"role": "assistant", "content": f"a{number}"} for number in range(300)]
    made = translated("openai_chat", {"model": "m", "messages": [{"role": "user", "content": "u"}, *messages]}, target)
    assert sum(turn.role == "assistant" for turn in made.transcript.turns) == 1
    assert len(looked) <= 600
