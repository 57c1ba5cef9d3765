"""Each violation of a contract gives exactly its documented answer: status, content type, envelope, wording, index."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, NamedTuple

import pytest

from tests.sim.faces import CASES, NO_STORE, Body, Case, Dialogue

OPENING = 'Weather? {mark}\nscript:\nthink: I look it up.\ncall: weather {{"city": "Paris"}}\n---\n'
OPENING += (
    'think: That is all.\nsay: It is warm.\n---\nthink: Again.\ncall: weather {{"city": "Rome"}}\n---\nsay: Warm.\n'
)
JSON = "application/json"
OCTETS = "application/octet-stream"


def case_of(simulator: str, format: str = "openai_chat", part: str = "") -> Case:
    return next(case for case in CASES if (case.simulator, case.format) == (simulator, format) and part in case.id)


def called(case: Case, mark: str, **extra: Any) -> Dialogue:
    """user, assistant that called, result."""
    dialogue = Dialogue(case, OPENING.format(mark=mark), **extra)
    dialogue.go_on(dialogue.ask())
    return dialogue


def answered(case: Case, mark: str, **extra: Any) -> Dialogue:
    """user, assistant that called, result, assistant that answered, user."""
    dialogue = called(case, mark, **extra)
    dialogue.go_on(dialogue.ask())
    return dialogue


def without(field: str) -> Callable[[Dialogue], None]:
    """Every assistant message loses a field."""

    def edit(dialogue: Dialogue) -> None:
        for message in dialogue.history:
            if message.get("role") == "assistant":
                message.pop(field, None)

    return edit


def without_thinking(dialogue: Dialogue) -> None:
    for message in dialogue.history:
        if message["role"] == "assistant":
            message["content"] = [block for block in message["content"] if "thinking" not in block["type"]]


def without_reasoning_items(dialogue: Dialogue) -> None:
    dialogue.history[:] = [item for item in dialogue.history if item.get("type") != "reasoning"]


def adding(field: str, value: Any, at: int = 1) -> Callable[[Dialogue], None]:
    def edit(dialogue: Dialogue) -> None:
        dialogue.history[at][field] = value

    return edit


def setting(**members: Any) -> Callable[[Dialogue], None]:
    def edit(dialogue: Dialogue) -> None:
        dialogue.body.update(members)

    return edit


def system_first(dialogue: Dialogue) -> None:
    dialogue.history.insert(0, {"role": "system", "content": "Be kind."})


class Violation(NamedTuple):
    """A row: who, after what, what is done wrong, what is answered."""

    name: str
    case: Case
    after: Callable[..., Dialogue]
    edits: tuple[Callable[[Dialogue], None], ...]
    body: Any
    status: int = 400
    content_type: str = JSON
    is_streaming: bool = False


def openai(message: str, param: str | None = None, code: str | None = None) -> Body:
    return {"error": {"message": message, "type": "invalid_request_error", "param": param, "code": code}}


def deepseek(message: str) -> Body:
    return openai(message, code="invalid_request_error")


DEEPSEEK = case_of("deepseek")
DEEPSEEK_MESSAGES = case_of("deepseek", "anthropic_messages")
DEEPSEEK_RESPONSES = case_of("deepseek", "openai_responses")
V3_2 = case_of("deepseek-v3.2")
KIMI = case_of("kimi")
MIMO = case_of("mimo")
MIMO_BODY = (
    '{"error":{"code":"400","message":"Param Incorrect","param":"The reasoning_content in the thinking mode must be '
    'passed back to the API.","type":""}}'
)
V4 = "The `reasoning_content` in the thinking mode must be passed back to the API."
GUIDE = "https://api-docs.deepseek.com/guides/thinking_mode#tool-calls"
FORCED = {"type": "function", "function": {"name": "weather"}}
MISSING_3_2 = "Missing `reasoning_content` field in the assistant message at message index {}. For more information, "
MISSING_3_2 += f"please refer to {GUIDE}"
KIMI_MISSING = "thinking is enabled but reasoning_content is missing in assistant tool call message at index {}"
R1 = Case("deepseek-r1", "openai_chat", "/chat/completions", "deepseek-reasoner", DEEPSEEK.dialect)
TOOLCALLS = DEEPSEEK._replace(profile="toolcalls")
NONBLANK = DEEPSEEK._replace(profile="nonblank")


def kimi(message: str) -> Body:
    return {"error": {"message": message, "type": "invalid_request_error"}}


def last_lacks(dialogue: Dialogue) -> None:
    """Only the plain turn loses its reasoning."""
    dialogue.history[3].pop("reasoning_content")


PRESENCE = (
    Violation(
        "r1 is told its own reasoning",
        R1,
        called,
        (),
        deepseek("simulated wording: `reasoning_content` is not allowed in the input (message index 1)."),
        content_type=OCTETS,
    ),
    Violation("v3.2", V3_2, called, (without("reasoning_content"),), deepseek(MISSING_3_2.format(1)), 400, OCTETS),
    Violation(
        "v3.2 counts the system message",
        V3_2,
        called,
        (without("reasoning_content"), system_first),
        deepseek(MISSING_3_2.format(2)),
        400,
        OCTETS,
    ),
    Violation("v4 chat", DEEPSEEK, called, (without("reasoning_content"),), deepseek(V4), 400, OCTETS),
    Violation(
        "v4 null is not there", DEEPSEEK, called, (adding("reasoning_content", None),), deepseek(V4), 400, OCTETS
    ),
    Violation("v4 plain turn", DEEPSEEK, answered, (last_lacks,), deepseek(V4), 400, OCTETS),
    Violation("v4 by calls", TOOLCALLS, called, (without("reasoning_content"),), deepseek(V4), 400, OCTETS),
    Violation("v4 not blank", NONBLANK, called, (adding("reasoning_content", ""),), deepseek(V4), 400, OCTETS),
    Violation(
        "v4 messages",
        DEEPSEEK_MESSAGES,
        called,
        (without_thinking,),
        deepseek("The `content[].thinking` in the thinking mode must be passed back to the API."),
        400,
        OCTETS,
    ),
    Violation(
        "v4 responses",
        DEEPSEEK_RESPONSES,
        called,
        (without_reasoning_items,),
        deepseek("The `reasoning_text` in the thinking mode must be passed back to the API."),
        400,
        OCTETS,
    ),
    Violation(
        "forced tool",
        DEEPSEEK,
        called,
        (setting(tool_choice=FORCED),),
        deepseek("Thinking mode does not support this tool_choice"),
        400,
        OCTETS,
    ),
    Violation(
        "tool of another kind",
        DEEPSEEK,
        called,
        (setting(tools=[{"type": "web_search"}]),),
        deepseek("unknown variant 'web_search', expected 'function'"),
        400,
        OCTETS,
    ),
    Violation("kimi", KIMI, called, (without("reasoning_content"),), kimi(KIMI_MISSING.format(1))),
    Violation(
        "kimi in an older turn",
        KIMI,
        answered,
        (without("reasoning_content"), system_first),
        kimi(KIMI_MISSING.format(2)),
    ),
    Violation(
        "kimi messages",
        case_of("kimi", "anthropic_messages"),
        called,
        (without_thinking,),
        kimi(KIMI_MISSING.format(1)),
    ),
    Violation(
        "kimi two switches",
        KIMI,
        called,
        (setting(thinking={"type": "enabled"}, reasoning_effort="high"),),
        kimi("cannot specify both 'thinking' and 'reasoning_effort'"),
    ),
    Violation(
        "kimi thinking is a bool",
        KIMI,
        called,
        (setting(thinking=True),),
        kimi("the thinking field in the request (expected type object) is illegal, and bool is not acceptable"),
    ),
    Violation(
        "kimi empty text at the coding endpoint",
        KIMI._replace(path="/coding/v1/chat/completions"),
        called,
        (adding("content", [{"type": "text", "text": ""}]),),
        kimi("text content is empty"),
    ),
    Violation("mimo", MIMO, called, (without("reasoning_content"),), MIMO_BODY),
    Violation("mimo streamed", MIMO, called, (without("reasoning_content"),), f"data:{MIMO_BODY}", is_streaming=True),
    Violation("mimo messages", case_of("mimo", "anthropic_messages"), called, (without_thinking,), MIMO_BODY),
)

MISTRAL = case_of("mistral")
GROQ = case_of("groq")
CEREBRAS = case_of("cerebras")
OPENAI_CHAT = case_of("openai")
NOVA = case_of("bedrock", "bedrock_converse", "gpt-oss")._replace(
    model="us.amazon.nova-2-lite",
    extra={"additionalModelRequestFields": {"reasoningConfig": {"type": "enabled", "maxReasoningEffort": "low"}}},
)
GPT_OSS = case_of("bedrock", "bedrock_converse", "gpt-oss")
PLACE = "messages.1.assistant.reasoning_content"


def signed_as(signature: str) -> Callable[[Dialogue], None]:
    def edit(dialogue: Dialogue) -> None:
        dialogue.history[1]["content"][0]["reasoningContent"]["reasoningText"]["signature"] = signature

    return edit


def text_null(dialogue: Dialogue) -> None:
    dialogue.history[1]["content"][0]["reasoningContent"]["reasoningText"]["text"] = None


def ends_with_assistant(dialogue: Dialogue) -> None:
    del dialogue.history[2:]


FORBIDDEN = (
    Violation(
        "mistral",
        MISTRAL,
        called,
        (adding("reasoning_content", "so"),),
        '{"object":"error","message":{"detail":[{"type":"extra_forbidden","loc":["body","messages",1,"assistant",'
        '"reasoning_content"],"msg":"Extra inputs are not permitted","input":"so"}]},"type":"invalid_request_error",'
        '"param":null,"code":null}',
        422,
    ),
    Violation(
        "groq",
        GROQ,
        called,
        (adding("reasoning_content", "so"),),
        kimi(
            "'messages.1' : for 'role:assistant' the following must be satisfied[('messages.1' : property "
            "'reasoning_content' is unsupported)]"
        ),
    ),
    Violation(
        "cerebras",
        CEREBRAS,
        called,
        (adding("reasoning_content", "so"),),
        {
            "message": f"{PLACE}: property '{PLACE}' is unsupported",
            "type": "invalid_request_error",
            "param": "validation_error",
            "code": "wrong_api_format",
        },
    ),
    Violation(
        "cerebras tells all",
        CEREBRAS,
        called,
        (adding("reasoning_content", "so"), setting(reasoning={})),
        {
            "message": f"reasoning: property 'reasoning' is unsupported\n{PLACE}: property '{PLACE}' is unsupported",
            "type": "invalid_request_error",
            "param": "validation_error",
            "code": "wrong_api_format",
        },
    ),
    Violation(
        "openai chat",
        OPENAI_CHAT,
        called,
        (adding("reasoning_content", "so"),),
        openai(
            "Unknown parameter: 'messages[1].reasoning_content'.", "messages[1].reasoning_content", "unknown_parameter"
        ),
    ),
    Violation(
        "openai chat parameter",
        OPENAI_CHAT,
        called,
        (setting(reasoning={}),),
        openai("Unknown parameter: 'reasoning'.", "reasoning", "unknown_parameter"),
    ),
    Violation(
        "ollama effort",
        case_of("ollama"),
        called,
        (setting(reasoning_effort="x"),),
        openai(
            'invalid reasoning value: "x" (must be "minimal", "low", "medium", "high", "xhigh", "ultra", "max", or "none")'
        ),
    ),
    Violation(
        "ollama can't think",
        case_of("ollama", "ollama_chat")._replace(model="llama3.2"),
        called,
        (setting(think=True),),
        '{"error":"\\"llama3.2\\" does not support thinking"}',
    ),
    Violation(
        "nova",
        NOVA,
        called,
        (),
        '{"message":"User messages cannot contain reasoning content. Please remove the reasoning content and try again."}',
    ),
    Violation(
        "gpt-oss signed",
        GPT_OSS,
        called,
        (signed_as(""),),
        {
            "message": "This model doesn't support the reasoningContent.reasoningText.signature field. Remove "
            "reasoningContent.reasoningText.signature and try again."
        },
    ),
    Violation(
        "bedrock text null",
        GPT_OSS,
        called,
        (text_null,),
        {
            "message": "Value at 'messages.2.member.content.1.member.reasoningContent.reasoningText.text' failed to "
            "satisfy constraint: Member must not be null"
        },
    ),
    Violation(
        "bedrock prefill",
        case_of("bedrock", "bedrock_converse", "claude")._replace(model="us.anthropic.claude-sonnet-5"),
        called,
        (ends_with_assistant,),
        {
            "message": "This model does not support assistant message prefill. The conversation must end with a user "
            "message."
        },
    ),
)


@pytest.mark.parametrize("row", [*PRESENCE, *FORBIDDEN], ids=lambda row: row.name)
def test_violation(row: Violation) -> None:
    """The answer is the documented one, byte for byte."""
    dialogue = row.after(row.case, row.name)
    for edit in row.edits:
        edit(dialogue)
    response = dialogue.post(is_streaming=row.is_streaming)
    expected = (
        row.body if isinstance(row.body, str) else json.dumps(row.body, separators=(",", ":"), ensure_ascii=False)
    )
    assert response.text == expected
    assert response.status_code == row.status
    assert response.headers["content-type"] == row.content_type


def test_bedrock_names_its_error_in_a_header() -> None:
    """Amazon's SDKs read the kind of an error there."""
    response = called(NOVA, "header").post()
    assert response.headers["x-amzn-errortype"] == "ValidationException"


def bare(dialogue: Dialogue) -> None:
    for field in ("reasoning_content", "reasoning"):
        without(field)(dialogue)


WAYS_OUT = {
    "deepseek, thinking off": (DEEPSEEK, (bare, setting(thinking={"type": "disabled"}))),
    "deepseek, no tools": (DEEPSEEK, (bare, setting(tools=[]))),
    "deepseek, an empty field": (DEEPSEEK, (adding("reasoning_content", ""),)),
    "deepseek by calls, a plain turn": (TOOLCALLS, (last_lacks,)),
    "deepseek v3.2, older turns": (V3_2, (bare,)),
    "kimi, thinking off": (KIMI, (bare, setting(thinking={"type": "disabled"}))),
    "kimi, a plain turn": (KIMI, (last_lacks,)),
    "mimo, thinking off": (MIMO, (bare, setting(thinking={"type": "disabled"}))),
    "glm": (case_of("glm"), (bare,)),
    "qwen": (case_of("qwen"), (bare,)),
    "vllm": (case_of("vllm"), (bare,)),
    "groq": (case_of("groq"), (bare,)),
}


@pytest.mark.parametrize("name", WAYS_OUT)
def test_ways_out(name: str) -> None:
    """What a contract does not demand is not refused: older turns, thinking off, no tools, advisory families."""
    case, edits = WAYS_OUT[name]
    dialogue = answered(case, name)
    for edit in edits:
        edit(dialogue)
    assert dialogue.post().status_code == 200


def test_calls_of_a_batch_come_before_what_is_said() -> None:
    """DeepSeek's Responses: a message between a call and its output."""
    dialogue = called(DEEPSEEK_RESPONSES, "interleaved")
    call_id = dialogue.history[2]["call_id"]
    dialogue.history.insert(3, {"type": "message", "role": "assistant", "content": "one moment"})
    assert dialogue.post().json() == deepseek(f"No tool output found for tool call {call_id}.")


def test_effort_that_a_model_has_not() -> None:
    """Recorded: o4-mini knows three."""
    case = case_of("openai", "openai_responses")._replace(model="o4-mini", extra=NO_STORE)
    response = Dialogue(case, "hi", reasoning={"effort": "minimal"}).post()
    assert response.json() == openai(
        "Unsupported value: 'minimal' is not supported with the 'o4-mini' model. Supported values are: 'low', 'medium', "
        "and 'high'.",
        "reasoning.effort",
        "unsupported_value",
    )


def test_tools_with_effort_in_chat() -> None:
    """Recorded: gpt-5.4-mini sends its callers to Responses."""
    response = Dialogue(OPENAI_CHAT._replace(model="gpt-5.4-mini"), "hi", reasoning_effort="low").post()
    assert response.status_code == 400
    assert response.json()["error"]["message"] == (
        "Function tools with reasoning_effort are not supported for gpt-5.4-mini in /v1/chat/completions. Please use "
        "/v1/responses instead."
    )
