"""DeepSeek, Kimi, MiMo: reasoning that is not there; and the families that never mind."""

from __future__ import annotations

import pytest

from tests.sim.faces import Body, Case, Dialogue
from tests.sim.violations import (
    OCTETS,
    Violation,
    adding,
    answered,
    brief,
    called,
    case_of,
    check_violation,
    openai,
    setting,
    without,
)


def without_thinking(dialogue: Dialogue) -> None:
    for message in dialogue.history:
        if message["role"] == "assistant":
            message["content"] = [block for block in message["content"] if "thinking" not in block["type"]]


def without_reasoning_items(dialogue: Dialogue) -> None:
    dialogue.history[:] = [item for item in dialogue.history if item.get("type") != "reasoning"]


def system_first(dialogue: Dialogue) -> None:
    dialogue.history.insert(0, {"role": "system", "content": "Be kind."})


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


def last_lacks(dialogue: Dialogue) -> None:
    """Only the plain turn loses its reasoning."""
    dialogue.history[3].pop("reasoning_content")


VIOLATIONS = (
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
    Violation("kimi", KIMI, called, (without("reasoning_content"),), brief(KIMI_MISSING.format(1))),
    Violation(
        "kimi in an older turn",
        KIMI,
        answered,
        (without("reasoning_content"), system_first),
        brief(KIMI_MISSING.format(2)),
    ),
    Violation(
        "kimi messages",
        case_of("kimi", "anthropic_messages"),
        called,
        (without_thinking,),
        brief(KIMI_MISSING.format(1)),
    ),
    Violation(
        "kimi two switches",
        KIMI,
        called,
        (setting(thinking={"type": "enabled"}, reasoning_effort="high"),),
        brief("cannot specify both 'thinking' and 'reasoning_effort'"),
    ),
    Violation(
        "kimi thinking is a bool",
        KIMI,
        called,
        (setting(thinking=True),),
        brief("the thinking field in the request (expected type object) is illegal, and bool is not acceptable"),
    ),
    Violation(
        "kimi empty text at the coding endpoint",
        KIMI._replace(path="/coding/v1/chat/completions"),
        called,
        (adding("content", [{"type": "text", "text": ""}]),),
        brief("text content is empty"),
    ),
    Violation("mimo", MIMO, called, (without("reasoning_content"),), MIMO_BODY),
    Violation("mimo streamed", MIMO, called, (without("reasoning_content"),), f"data:{MIMO_BODY}", is_streaming=True),
    Violation("mimo messages", case_of("mimo", "anthropic_messages"), called, (without_thinking,), MIMO_BODY),
)


@pytest.mark.parametrize("row", VIOLATIONS, ids=lambda row: row.name)
def test_violation(row: Violation) -> None:
    """Each gives its documented answer."""
    check_violation(row)


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
