"""Families that refuse a field for being there: Mistral, Groq, Cerebras, OpenAI's chat, Ollama, Nova, gpt-oss."""

from __future__ import annotations

import pytest

from tests.sim.faces import Dialogue
from tests.sim.violations import Edit, Violation, adding, brief, called, case_of, check_violation, openai, setting

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


def signed_as(signature: str) -> Edit:
    def edit(dialogue: Dialogue) -> None:
        dialogue.history[1]["content"][0]["reasoningContent"]["reasoningText"]["signature"] = signature

    return edit


def text_null(dialogue: Dialogue) -> None:
    dialogue.history[1]["content"][0]["reasoningContent"]["reasoningText"]["text"] = None


def ends_with_assistant(dialogue: Dialogue) -> None:
    del dialogue.history[2:]


VIOLATIONS = (
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
        brief(
            "'messages.1' : for 'role:assistant' the following must be satisfied[('messages.1' : property "
            "'reasoning_content' is unsupported)]"
        ),
    ),
    Violation(
        "groq, a client's own member",
        GROQ,
        called,
        (adding("refusal", None),),
        brief(
            "'messages.1' : for 'role:assistant' the following must be satisfied[('messages.1' : property "
            "'refusal' is unsupported)]"
        ),
    ),
    Violation(
        "mistral, a client's own member",
        MISTRAL,
        called,
        (adding("refusal", None),),
        '{"object":"error","message":{"detail":[{"type":"extra_forbidden","loc":["body","messages",1,"assistant",'
        '"refusal"],"msg":"Extra inputs are not permitted","input":null}]},"type":"invalid_request_error",'
        '"param":null,"code":null}',
        422,
    ),
    Violation(
        "openai chat, a client's own member",
        OPENAI_CHAT,
        called,
        (adding("__copilotMessageSource", "user"),),
        openai(
            "Unknown parameter: 'messages[1].__copilotMessageSource'.",
            "messages[1].__copilotMessageSource",
            "unknown_parameter",
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
            'invalid reasoning value: "x" (must be "minimal", "low", "medium", "high", "xhigh", "ultra", '
            '"max", or "none")'
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
        '{"message":"User messages cannot contain reasoning content. Please remove the reasoning '
        'content and try again."}',
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
        case_of("bedrock", "bedrock_converse", "claude")._replace(model="us.anthropic.claude-sonnet-5", extra={}),
        called,
        (ends_with_assistant,),
        {
            "message": "This model does not support assistant message prefill. The conversation must end with a user "
            "message."
        },
    ),
)


@pytest.mark.parametrize("row", VIOLATIONS, ids=lambda row: row.name)
def test_violation(row: Violation) -> None:
    """Each gives its documented answer."""
    check_violation(row)


def test_bedrock_names_its_error_in_a_header() -> None:
    """Amazon's SDKs read the kind of an error there."""
    response = called(NOVA, "header").post()
    assert response.headers["x-amzn-errortype"] == "ValidationException"


def test_tools_with_effort_in_chat() -> None:
    """Recorded: gpt-5.4-mini sends its callers to Responses."""
    response = Dialogue(OPENAI_CHAT._replace(model="gpt-5.4-mini"), "hi", reasoning_effort="low").post()
    assert response.status_code == 400
    assert response.json()["error"]["message"] == (
        "Function tools with reasoning_effort are not supported for gpt-5.4-mini in /v1/chat/completions. Please use "
        "/v1/responses instead."
    )
