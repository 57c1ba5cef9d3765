"""Tools of a client at an upstream of another format, or of its own that lacks them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.translation.lanes import EVERY_CLIENT
from tests.translation.test_requests import BY_FORMAT, body_of, translated
from thoughtline.formats import FORMATS
from thoughtline.replay.detection import resolve
from thoughtline.translation import translate_request
from thoughtline.translation.own_format import adapt
from thoughtline.translation.tools import names_for, qualified, unwrapped_text, wrapped_text
from thoughtline.values.destination import Destination
from thoughtline.values.errors import Untranslatable
from thoughtline.values.items import ToolCall
from thoughtline.values.options import FunctionTool
from thoughtline.values.turns import FormatName

Json = dict[str, Any]
SCHEMA = {"type": "object", "properties": {}}
LOOK = {"type": "function", "name": "look", "parameters": SCHEMA}
AGENTS = {"type": "namespace", "name": "agents", "description": "Agents.", "tools": [LOOK | {"name": "spawn"}, LOOK]}
PATCH = {"type": "custom", "name": "patch", "format": {"type": "grammar", "definition": "start: x"}}
SEARCH = {"type": "web_search"}
DEEPSEEK = resolve(Destination("deepseek", "https://api.deepseek.com", "deepseek-v4-pro", "openai_responses"))


def names_in(body: Json) -> list[str]:
    """The functions that a body of any format offers."""
    config = body.get("toolConfig")
    found = body.get("tools") or (config or {}).get("tools") or []
    if found and "functionDeclarations" in found[0]:
        found = found[0]["functionDeclarations"]
    named = [tool.get("function") or tool.get("toolSpec") or tool.get("custom") or tool for tool in found]
    return [one.get("name", one.get("type", next(iter(one)))) for one in named]


@pytest.mark.parametrize("to", [to for to in BY_FORMAT if to != "openai_responses"])
def test_a_namespace_is_opened(to: FormatName) -> None:
    """Its functions are next to the others under combined names; calls of the history have them too."""
    call = {"type": "function_call", "call_id": "c1", "name": "look", "namespace": "agents", "arguments": "{}"}
    history = [
        {"role": "user", "content": "hi"},
        call,
        {"type": "function_call_output", "call_id": "c1", "output": "x"},
    ]
    request = translated("openai_responses", {"model": "m", "input": history, "tools": [LOOK, AGENTS]}, to)
    assert names_in(body_of(request)) == ["look", "agents__spawn", "agents__look"]
    calls = [item for turn in request.transcript.turns for item in turn.items if isinstance(item, ToolCall)]
    assert [one.name for one in calls] == ["agents__look"]
    back = request.tools.called(ToolCall("agents__look", "{}", "c1"))
    assert (back.name, back.namespace) == ("look", "agents")
    assert request.tools.called(ToolCall("look", "{}")) == ToolCall("look", "{}")
    assert not request.findings


@pytest.mark.parametrize("to", [to for to in BY_FORMAT if to != "openai_responses"])
def test_a_tool_of_free_text_is_a_function_with_one_text(to: FormatName) -> None:
    """Its description includes its grammar; a call of it is free text again."""
    body = {"model": "m", "input": "hi", "tools": [PATCH]}
    request = translated("openai_responses", body, to)
    sent = json.dumps(body_of(request))
    assert "start: x" in sent
    assert names_in(body_of(request)) == ["patch"]
    back = request.tools.called(ToolCall("patch", wrapped_text("*** “x”\n")))
    assert (back.arguments, back.is_custom) == ("*** “x”\n", True)


def test_openai_itself_takes_free_text_in_chat() -> None:
    """There it goes over as it is."""
    spoken = FORMATS["openai_responses"]
    asked = spoken.bodies.decode_request(
        json.dumps({"model": "m", "input": "hi", "tools": [PATCH]}).encode(), spoken.dialect
    )
    contract = resolve(Destination("openai", "https://api.openai.com", "gpt-5", "openai_chat"))
    request = translate_request(asked, "openai_chat", contract, "gpt-5")
    assert body_of(request)["tools"][0]["type"] == "custom"


@pytest.mark.parametrize(
    ("tools", "to", "offered"),
    [
        ([SEARCH], "gemini_generate", [{"googleSearch": {}}]),
        ([SEARCH], "anthropic_messages", [{"type": "web_search_20250305", "name": "web_search"}]),
        ([SEARCH], "openai_chat", None),
        ([SEARCH], "ollama_chat", None),
        ([SEARCH], "bedrock_converse", None),
        ([SEARCH | {"external_web_access": False}], "anthropic_messages", None),
        ([{"type": "local_shell"}], "anthropic_messages", None),
        ([{"type": "tool_search", "execution": "server"}], "gemini_generate", None),
    ],
)
def test_a_tool_of_the_provider_goes_where_the_other_one_has_it(
    tools: list[Json], to: FormatName, offered: Any
) -> None:
    """Else it is left out with a finding at its position, or rejected; only one provider has a search limited to a
    cache.
    """
    body = {"model": "m", "input": "hi", "tools": tools}
    request = translated("openai_responses", body, to)
    assert body_of(request).get("tools") == offered
    assert [finding.place for finding in request.findings] == ([] if offered else ["/tools/0"])


@pytest.mark.parametrize("to", ["openai_chat", "openai_responses", "ollama_chat", "bedrock_converse"])
def test_the_search_of_a_messages_client(to: FormatName) -> None:
    """Cline offers it together with its functions: OpenAI's Responses has it, elsewhere it is left out
    with a finding.
    """
    look = {"name": "look", "input_schema": SCHEMA}
    tools = [look, {"type": "web_search_20250305", "name": "web_search"}]
    body = {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "hi"}], "tools": tools}
    request = translated("anthropic_messages", body, to)
    has_search = to == "openai_responses"
    assert names_in(body_of(request)) == ["look", "web_search"][: 1 + has_search]
    places = [finding.place for finding in request.findings]
    assert ("/tools/1" in places) is not has_search


def test_gemini_gets_no_search_together_with_functions() -> None:
    """It refuses the two together."""
    request = translated("openai_responses", {"model": "m", "input": "hi", "tools": [LOOK, SEARCH]}, "gemini_generate")
    assert [list(tool) for tool in body_of(request)["tools"]] == [["functionDeclarations"]]
    assert [finding.place for finding in request.findings] == ["/tools/1"]


@pytest.mark.parametrize(
    "client", [name for name in EVERY_CLIENT if name not in ("ollama_chat", "command_code_generate")]
)
def test_a_setting_refuses_a_tool_that_is_missing(client: FormatName) -> None:
    """400 with the place and what to do, in every client's format."""
    bodies: dict[str, Json] = {
        "openai_chat": {"messages": [{"role": "user", "content": "hi"}], "tools": [{"type": "web_search"}]},
        "openai_responses": {"input": "hi", "tools": [{"type": "computer"}]},
        "anthropic_messages": {
            "max_tokens": 9,
            "messages": [{"role": "user", "content": "hi"}],
            "tools": [{"type": "code_execution_20250825", "name": "code_execution"}],
        },
        "gemini_generate": {"contents": [{"parts": [{"text": "hi"}]}], "tools": [{"codeExecution": {}}]},
    }
    spoken = FORMATS[client]
    asked = spoken.bodies.decode_request(json.dumps({"model": "m"} | bodies[client]).encode(), spoken.dialect)
    upstream = BY_FORMAT["bedrock_converse"]
    with pytest.raises(Untranslatable) as refused:
        translate_request(asked, "bedrock_converse", upstream.contract, upstream.model, missing_tools="refuse")
    assert refused.value.place.startswith("/tools/0")
    assert refused.value.remedy
    assert translate_request(asked, "bedrock_converse", upstream.contract, upstream.model).findings


@pytest.mark.parametrize(
    ("choice", "sent"),
    [
        ({"type": "function", "name": "spawn"}, "agents__spawn"),
        ({"type": "custom", "name": "patch"}, "patch"),
        ({"type": "web_search"}, "auto"),
        ({"type": "function", "name": "gone"}, "auto"),
        ("required", "required"),
    ],
)
def test_a_choice_never_names_what_is_not_offered(choice: Any, sent: str) -> None:
    """One of a tool that is left out leaves it to the model."""
    body = {"model": "m", "input": "hi", "tools": [AGENTS, PATCH, SEARCH], "tool_choice": choice}
    body["reasoning"] = {"effort": "none"}
    told = body_of(translated("openai_responses", body, "openai_chat"))["tool_choice"]
    assert (told if isinstance(told, str) else told["function"]["name"]) == sent
    own = json.loads(adapt(json.dumps(body).encode(), "openai_responses", DEEPSEEK, "leave_out").body)
    told = own.get("tool_choice", "auto")
    assert (told if isinstance(told, str) else told["name"]) == sent


def test_tools_that_stand_in_the_conversation_are_offered_too() -> None:
    """Codex moves them there, and its search for tools answers with them, offered again or not."""
    history = [
        {"type": "additional_tools", "role": "developer", "tools": [AGENTS]},
        {"role": "user", "content": "hi"},
        {"type": "tool_search_call", "call_id": "c1", "execution": "client", "arguments": {"query": "q"}},
        {"type": "tool_search_output", "call_id": "c1", "execution": "client", "tools": [LOOK | {"name": "found"}]},
    ]
    body = {"model": "m", "input": history}
    assert names_in(body_of(translated("openai_responses", body, "openai_chat"))) == [
        "agents__spawn",
        "agents__look",
        "found",
    ]
    own = json.loads(adapt(json.dumps(body).encode(), "openai_responses", DEEPSEEK, "leave_out").body)
    assert names_in(own) == ["agents__spawn", "agents__look", "found"]
    assert [item.get("role") for item in own["input"]] == ["user"]


# --- the client's own format ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("provider", "model", "format"),
    [
        ("openai", "gpt-5", "openai_responses"),
        ("azure", "gpt-5", "openai_responses"),
        ("anthropic", "claude-opus-4-8", "anthropic_messages"),
        ("", "gpt-5", "openai_responses"),
        ("", "some-model", "anthropic_messages"),
    ],
)
def test_where_all_is_taken_the_bytes_are_the_clients(provider: str, model: str, format: FormatName) -> None:
    """OpenAI's tools at OpenAI, Anthropic's at Anthropic; and at unknown servers."""
    contract = resolve(Destination(provider, "https://host.example", model, format))
    body = json.dumps({"input": "hi", "tools": [AGENTS, PATCH, SEARCH, {"type": "web_search_20250305"}]}).encode()
    assert adapt(body, format, contract, "leave_out").body is body


def test_what_a_server_has_of_its_own_is_left_alone() -> None:
    """Groq's search, xAI's: unlisted kinds are forwarded."""
    tools = [{"type": "browser_search"}, {"type": "mcp", "server_url": "x"}]
    for provider in ("groq", "xai", "vllm", "openrouter"):
        contract = resolve(Destination(provider, "", "some-model", "openai_responses"))
        body = json.dumps({"input": "hi", "tools": tools}).encode()
        assert adapt(body, "openai_responses", contract, "leave_out").body is body
    contract = resolve(Destination("xai", "", "grok-4.7", "openai_responses"))
    body = json.dumps({"input": "hi", "tools": [SEARCH, {"type": "x_search"}]}).encode()
    assert adapt(body, "openai_responses", contract, "leave_out").body is body


@pytest.mark.parametrize(
    ("provider", "left"),
    [("kimi", ["look"]), ("glm", ["look"]), ("minimax", ["look"]), ("deepseek", ["look", "web_search"])],
)
def test_server_tools_at_other_messages_servers(provider: str, left: list[str]) -> None:
    """What the server has stays, with every byte of it; a choice that names what goes, goes."""
    contract = resolve(Destination(provider, "", "some-model", "anthropic_messages"))
    look = {"name": "look", "input_schema": SCHEMA, "cache_control": {"type": "ephemeral"}}
    tools: list[Json] = [look, {"type": "web_search_20250305", "name": "web_search", "max_uses": 3}]
    tools.append({"type": "code_execution_20250825", "name": "code_execution"})
    known = {"model": "m", "messages": [], "tools": tools, "tool_choice": {"type": "tool", "name": "code_execution"}}
    adapted = adapt(json.dumps(known).encode(), "anthropic_messages", contract, "leave_out")
    body = json.loads(adapted.body)
    assert body["tools"] == [tool for tool in tools if tool["name"] in left]
    assert "tool_choice" not in body
    assert len(adapted.findings) == 3 - len(left)


def test_elements_that_a_server_takes_keep_their_bytes() -> None:
    """In a long history only elements that name a missing tool are written again."""
    call = '{"type": "custom_tool_call",  "call_id": "c1", "name": "patch", "input": "x"}'
    kept = '{"type":"message", "role": "user",   "content": "caf\\u00e9"}'
    gone = '{"type": "web_search_call", "id": "ws_1", "status": "completed"}'
    body = f'{{"model": "m", "input": [{kept},{gone},{call},{kept}], "tools": [{json.dumps(PATCH)}]}}'.encode()
    adapted = adapt(body, "openai_responses", DEEPSEEK, "leave_out")
    assert adapted.body.count(kept.encode()) == 2
    told = json.loads(adapted.body)["input"]
    assert told[1] == {"type": "function_call", "call_id": "c1", "name": "patch", "arguments": '{"input":"x"}'}
    assert [finding.place for finding in adapted.findings] == ["/input/1"]


def test_an_unreadable_body_is_forwarded_unchanged() -> None:
    """The provider reports the problem."""
    for body in (b"", b"{", b"[]", b'{"tools": 1}', b'{"tools": [1], "input": [null]}', b'{"tools":[{"type":3}]}'):
        assert adapt(body, "openai_responses", DEEPSEEK, "leave_out").body == body


# --- names and texts --------------------------------------------------------------------------------------------------


def test_names_are_such_as_every_provider_takes() -> None:
    """Sixty-four plain characters, different for different tools."""
    assert qualified("mcp__server__", "read") == "mcp__server__read"
    long = [
        qualified("n" * 60, "a" * 60),
        qualified("n" * 60, "a" * 59 + "b"),
        qualified("n.s", "a:b"),
        qualified("n.s", "a.b"),
    ]
    assert len({*long}) == 4
    assert all(len(name) <= 64 and name.replace("_", "").replace("-", "").isalnum() for name in long)


def test_two_tools_never_share_a_name() -> None:
    """A function that is called like a tool in a namespace keeps its own."""
    names = names_for((FunctionTool("a__b"), FunctionTool("b", namespace="a")), opens_custom=True)
    told = names.of_call("b", "a")
    assert told != "a__b"
    assert names.client[told].namespace == "a"
    assert names.of_call("a__b", None) == "a__b"


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ('{"input": "x\\n"}', "x\n"),
        ('{"patch": "x"}', "x"),
        ('"x"', "x"),
        ("*** x", "*** x"),
        ("{}", ""),
        ('{"input": 1}', '{"input": 1}'),
        ('{"a": "1", "b": "2"}', '{"a": "1", "b": "2"}'),
    ],
)
def test_free_text_however_a_model_writes_it(arguments: str, text: str) -> None:
    """In its object, in another, or by itself."""
    assert unwrapped_text(arguments) == text
