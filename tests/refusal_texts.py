"""Refusals of settings as providers word them, what is refused by them, and the smallest change that is accepted.

A row says what a request has, the sentence, and which of its top-level members change into what. `GONE` is a member that
is left out. `test_setting_refusals.py` sends each row through a gateway.
"""

# ruff: noqa: E501, RUF001 (a case is one row of a table, its sentence as the provider sends it)

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, NamedTuple

from thoughtline.values.turns import FormatName

GONE = "<gone>"
Body = dict[str, Any]


class Row(NamedTuple):
    """`has` are members of the request, `wants` what becomes of them. `passed`: the refusal reaches the client.
    `instead` says it in words, for the page."""

    sentence: str
    has: Body
    wants: Body
    format: FormatName = "openai_chat"
    model: str = "novel-9"
    status: int = 400
    param: str | None = None
    passed: bool = False
    provider: str = "acme"
    instead: str = ""


def messages(sentence: str, has: Body, wants: Body, model: str = "novel-9", **more: Any) -> Row:
    return Row(sentence, has, wants, "anthropic_messages", model, **more)


def responses(sentence: str, has: Body, wants: Body, model: str = "novel-9", **more: Any) -> Row:
    return Row(sentence, has, wants, "openai_responses", model, **more)


def gemini(sentence: str, has: Body, wants: Body, model: str = "novel-9", **more: Any) -> Row:
    return Row(sentence, has, wants, "gemini_generate", model, **more)


def level(**config: Any) -> Body:
    return {"generationConfig": {"thinkingConfig": {"includeThoughts": True, **config}}}


NAMED = {"type": "function", "function": {"name": "bash"}}
ADAPTIVE = {"type": "adaptive"}
OFF = {"type": "disabled"}
ENABLED = {"type": "enabled", "budget_tokens": 4000}
USE_ADAPTIVE = 'Use "thinking.type.adaptive" and "output_config.effort" to control thinking behavior.'
EDITS = {"edits": [{"type": "clear_tool_uses_20250919"}, {"type": "clear_thinking_20251015"}]}

# One row a line, however long: providers' own sentences.
# fmt: off
ROWS: dict[str, Row] = {
    # Anthropic
    "A3": messages("thinking.adaptive.block_binding: Extra inputs are not permitted", {"thinking": {"type": "adaptive", "block_binding": {"prefix_mismatch_behavior": "drop_block"}}}, {"thinking": ADAPTIVE}),
    "A4": messages(f'"thinking.type.enabled" is not supported for this model. {USE_ADAPTIVE}', {"thinking": ENABLED}, {"thinking": ADAPTIVE, "output_config": {"effort": "medium"}}),
    "A5": messages(f'"thinking.type.disabled" is not supported for this model. {USE_ADAPTIVE}', {"thinking": OFF}, {"thinking": ADAPTIVE, "output_config": {"effort": "low"}}),
    "A6": messages('"thinking.type.disabled" is not supported for this model. Thinking defaults to adaptive mode when not specified; use "thinking.type.enabled" with "budget_tokens" for extended thinking.', {"thinking": OFF}, {"thinking": GONE}),
    "A7": messages('"thinking.type.disabled" is not supported for this model. Use "thinking.type.between_tools" for the lowest thinking setting, or "thinking.type.adaptive" and "output_config.effort" to control thinking behavior.', {"thinking": OFF, "output_config": {"effort": "max"}}, {"thinking": {"type": "between_tools"}, "output_config": {"effort": "high"}}),
    "A8": messages("adaptive thinking is not supported on this model", {"thinking": ADAPTIVE, "output_config": {"effort": "low"}}, {"thinking": {"type": "enabled", "budget_tokens": 2048}, "output_config": GONE}),
    "A10": messages("This model does not support the effort parameter.", {"output_config": {"effort": "high"}}, {"output_config": GONE}),
    "A13": messages("Thinking may not be enabled when tool_choice forces tool use.", {"thinking": ADAPTIVE, "tool_choice": {"type": "any"}}, {"tool_choice": {"type": "auto"}}),
    "A14": messages("`temperature` may only be set to 1 when thinking is enabled or in adaptive mode. Please consult our documentation at https://docs.claude.com/en/docs/build-with-claude/extended-thinking#important-considerations-when-using-extended-thinking", {"thinking": ADAPTIVE, "temperature": 0.2}, {"temperature": GONE}),
    "A15": messages("`top_p` must be greater than or equal to 0.95 or unset when thinking is enabled or in adaptive mode.", {"thinking": ADAPTIVE, "top_p": 0.5}, {"top_p": GONE}),
    "A17": messages("`clear_thinking_20251015` strategy requires `thinking` to be enabled or adaptive", {"context_management": EDITS}, {"context_management": {"edits": EDITS["edits"][:1]}}),
    "A18": messages("context_management: `clear_thinking_20251015` must be the first strategy in `context_management.edits` when provided", {"context_management": EDITS}, {"context_management": {"edits": EDITS["edits"][::-1]}}),
    "A19": messages("`compaction` blocks require a `compact_20260112` strategy in `context_management.edits`.", {"context_management": EDITS}, {}, passed=True),
    "A23": messages("This model does not support assistant message prefill. The conversation must end with a user message.", {"messages": [{"role": "user", "content": "x"}, {"role": "assistant", "content": "So"}]}, {}, passed=True),
    "A24": messages("messages.5.content.0.thinking: each thinking block must contain thinking", {"messages": [{"role": "user", "content": "x"}, {"role": "assistant", "content": [{"type": "thinking", "thinking": ""}, {"type": "text", "text": "y"}]}, {"role": "user", "content": "z"}]}, {"messages": [{"role": "user", "content": "x"}, {"role": "assistant", "content": [{"type": "text", "text": "y"}]}, {"role": "user", "content": "z"}]}),
    "A25": messages("output_config: Extra inputs are not permitted", {"output_config": {"effort": "high"}}, {"output_config": GONE}),
    "A28": messages('"***.***.enabled" is not supported for this model. Use "***.***.adaptive" and "output_config.effort" to control thinking behavior. (request id: 2026)', {"thinking": ENABLED}, {"thinking": ADAPTIVE, "output_config": {"effort": "medium"}}),
    "A29": messages("This model does not support assistant prefill", {"messages": [{"role": "user", "content": "x"}, {"role": "assistant", "content": "So"}]}, {}, passed=True),
    "A31": messages("output_config.effort 'xhigh' is not supported when thinking is disabled on this model. Use effort 'high' or below, or enable thinking.", {"thinking": OFF, "output_config": {"effort": "xhigh"}}, {"output_config": {"effort": "high"}}),
    "A32": messages("This model does not support effort level 'xhigh'. Supported levels: high, low, max, medium.", {"output_config": {"effort": "xhigh"}}, {"output_config": {"effort": "max"}}),
    "A33": messages("thinking.between_tools.display: Extra inputs are not permitted", {"thinking": {"type": "between_tools", "display": "summarized"}}, {"thinking": {"type": "between_tools"}}),
    "A35": messages("claude-opus-5-5 requires adaptive thinking; omit thinking or use ***.type=adaptive and output_config.effort (request id: x)", {"thinking": OFF}, {"thinking": ADAPTIVE, "output_config": {"effort": "low"}}),
    # OpenAI
    "O4": responses("Unsupported value: 'none' is not supported with the 'gpt-6-astra' model. Supported values are: 'low', 'medium', 'high', 'xhigh', and 'max'.", {"reasoning": {"effort": "none"}}, {"reasoning": {"effort": "low"}}, model="gpt-6-astra", param="reasoning.effort"),
    "O5": Row("Unsupported value: 'reasoning_effort' does not support 'max' with this model. Supported values are: 'low', 'medium', 'high', and 'xhigh'.", {"reasoning_effort": "max"}, {"reasoning_effort": "xhigh"}),
    "O6": Row("Unsupported value: 'reasoning_effort' does not support 'minimal' with this model. Supported values are: 'none', 'low', 'medium', 'high', and 'xhigh'.", {"reasoning_effort": "minimal"}, {"reasoning_effort": "low"}),
    "O7": Row("Unsupported value: 'reasoning_effort' does not support null with this model. Supported values are: 'none', 'low', 'medium', and 'high'.", {"reasoning_effort": None}, {"reasoning_effort": GONE}),
    "O8": responses("Unsupported parameter: 'reasoning.effort' is not supported with this model.", {"reasoning": {"effort": "low"}}, {"reasoning": GONE}),
    "O9": responses("Unsupported parameter: 'temperature' is not supported with this model.", {"temperature": 0.2, "top_p": 0.9}, {"temperature": GONE}),
    "O11": responses("Your organization must be verified to generate reasoning summaries. Please go to: https://platform.openai.com/settings/organization/general and click on Verify Organization.", {"reasoning": {"effort": "low", "summary": "auto"}}, {"reasoning": {"effort": "low"}}),
    "O12": responses("Unsupported parameter: 'reasoning_effort'. In the Responses API, this parameter has moved to 'reasoning.effort'.", {"reasoning_effort": "high"}, {"reasoning_effort": GONE, "reasoning": {"effort": "high"}}),
    "O16": responses("Encrypted content is not supported with this model.", {"include": ["reasoning.encrypted_content"], "store": False}, {"include": GONE}),
    "O19": responses("Invalid value: 'context_compaction'. Supported values are: 'apply_patch_call', 'compaction', 'reasoning', and 'web_search_call'.", {"input": [{"type": "context_compaction", "id": "c"}, {"role": "user", "content": "x"}]}, {"input": [{"role": "user", "content": "x"}]}, param="input[0]"),
    "O20": responses("Store must be set to false", {"store": True}, {"store": False}),
    # xAI
    "X1": responses("Model grok-4.20-0309-reasoning does not support parameter reasoningEffort.", {"reasoning": {"effort": "high"}}, {"reasoning": GONE}),
    "X2": Row("Model grok-4-latest does not support parameter reasoningEffort.", {"reasoning_effort": "high"}, {"reasoning_effort": GONE}),
    # Gemini
    "G1": gemini("Thinking level is not supported for this model.", level(thinkingLevel="low"), level()),
    "G2": gemini("Thinking level MINIMAL is not supported for this model.", level(thinkingLevel="MINIMAL"), level(thinkingLevel="LOW")),
    "G4": gemini("Budget 0 is invalid. This model only works in thinking mode.", level(thinkingBudget=0), level()),
    "G5": gemini("The thinking budget 0 is invalid. Please choose a value between 128 and 32768.", level(thinkingBudget=0), level(thinkingBudget=128)),
    "G6": gemini("You can only set only one of thinking budget and thinking level.", level(thinkingBudget=512, thinkingLevel="low"), level(thinkingLevel="low")),
    "G7": gemini("Request contains an invalid argument.", level(thinkingLevel="low"), {}, passed=True),
    "G9": gemini("Unsupported part type: go/debugstr   \nthought: true\n", {"contents": [{"role": "user", "parts": [{"text": "x"}]}, {"role": "model", "parts": [{"text": "hm", "thought": True}, {"text": "y"}]}, {"role": "user", "parts": [{"text": "z"}]}]}, {"contents": [{"role": "user", "parts": [{"text": "x"}]}, {"role": "model", "parts": [{"text": "y"}]}, {"role": "user", "parts": [{"text": "z"}]}]}),
    # Kimi
    "K1": Row("tool_choice 'specified' is incompatible with thinking enabled", {"tool_choice": NAMED}, {"tool_choice": "auto"}, model="kimi-k2.6"),
    "K1 on K3": Row("tool_choice 'specified' is incompatible with thinking enabled", {"tool_choice": NAMED}, {"tool_choice": "required"}, model="kimi-k3"),
    "K3": Row("invalid temperature: only 1 is allowed for this model", {"temperature": 0.3, "top_p": 0.9}, {"temperature": GONE, "top_p": GONE}),
    "K4": Row("invalid temperature: only 0.6 is allowed for this model", {"temperature": 0.3}, {"temperature": GONE}),
    "K8": Row("invalid thinking: only type=enabled is allowed for this model", {"thinking": OFF}, {"thinking": GONE}),
    "K9": Row("cannot specify both 'thinking' and 'reasoning_effort'", {"thinking": {"type": "enabled"}, "reasoning_effort": "high"}, {"reasoning_effort": GONE}, model="kimi-k2.6"),
    "K9 on K3": Row("cannot specify both 'thinking' and 'reasoning_effort'", {"thinking": {"type": "enabled"}, "reasoning_effort": "high"}, {"thinking": GONE}, model="kimi-k3"),
    "K10": Row("Cannot override enforced sampling params", {"temperature": 0.3, "top_p": 0.9}, {"temperature": GONE, "top_p": GONE}),
    # DeepSeek, and hosts that deserialize as strictly
    "D1": Row("Thinking mode does not support this tool_choice", {"tool_choice": "required"}, {"tool_choice": "auto"}, model="deepseek-v4-pro"),
    "D3": Row("Failed to deserialize the JSON body into the target type: reasoning_effort: unknown variant `xhigh`, expected one of `low`, `medium`, `high` at line 1 column 131", {"reasoning_effort": "xhigh"}, {"reasoning_effort": "high"}, status=422),
    "D4": Row("Failed to deserialize the JSON body into the target type: reasoning_effort: unknown variant `ultra`, expected one of `none`, `minimal`, `low`, `medium`, `high`, `xhigh`, `max` at line 1 column 74", {"reasoning_effort": "ultra"}, {"reasoning_effort": "max"}, status=422),
    # Qwen, GLM, Groq, OpenRouter
    "Q1": Row("parameter.enable_thinking must be set to false for non-streaming calls", {"enable_thinking": True}, {"enable_thinking": False}),
    "Q2": Row("Unexpected reasoning effort high. Supported types are xhigh (default), medium, and low.", {"reasoning_effort": "high"}, {"reasoning_effort": "xhigh"}, status=500),
    "Q3": Row("Jinja Exception: Unexpected reasoning effort max. Supported types are xhigh (default), medium, and low.", {"chat_template_kwargs": {"reasoning_effort": "max"}}, {"chat_template_kwargs": {"reasoning_effort": "xhigh"}}, status=500),
    "Q4": Row("Disabling thinking is not supported.", {"chat_template_kwargs": {"enable_thinking": False}}, {"chat_template_kwargs": GONE}, status=500),
    "Z2": Row("The messages parameter is illegal. Please check the documentation.", {"temperature": 0.3}, {}, passed=True),
    "R1": Row("`reasoning_effort` is not supported with this model", {"reasoning_effort": "high"}, {"reasoning_effort": GONE}),
    "R2": Row("`reasoning_effort` must be one of `none` or `default`", {"reasoning_effort": "high"}, {"reasoning_effort": "default"}),
    "P1": Row("Reasoning is mandatory for this endpoint and cannot be disabled.", {"reasoning": {"enabled": False}}, {"reasoning": GONE}),
    # Copilot, Ollama, templates
    "C1": messages('output_config.effort "high" is not supported by model claude-opus-4.7; supported values: [medium]', {"output_config": {"effort": "high"}}, {"output_config": {"effort": "medium"}}),
    "C2": messages('output_config.effort "high" was provided, but model claude-haiku-4.5 does not support reasoning effort', {"output_config": {"effort": "high"}}, {"output_config": GONE}),
    "C3": Row('reasoning_effort "medium" was provided, but model gpt-4o-2024-11-20 does not support reasoning effort', {"reasoning_effort": "medium"}, {"reasoning_effort": GONE}),
    "C4": responses('input[1].type "reasoning" is not a valid input item type', {"input": [{"role": "user", "content": "x"}, {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "gAAA"}, {"role": "user", "content": "y"}]}, {"input": [{"role": "user", "content": "x"}, {"role": "user", "content": "y"}]}),
    "L1": Row('think value "high" is not supported for this model', {"think": "high"}, {"think": True}, format="ollama_chat"),
    "L2": Row('"llama3.2:1b" does not support thinking', {"think": True}, {"think": GONE}, format="ollama_chat"),
    "T1": Row("reasoning_effort error : medium, should be no_think/low/high", {"reasoning_effort": "medium"}, {"reasoning_effort": "high"}, status=500),
    "H1": Row("Cannot pass both content and thinking in an assistant message with tool calls! Put the analysis message in one or the other, but not both.", {"messages": [{"role": "user", "content": "x"}, {"role": "assistant", "content": "Well.", "reasoning_content": "hm", "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "bash", "arguments": "{}"}}]}, {"role": "tool", "tool_call_id": "c1", "content": "a"}]}, {"messages": [{"role": "user", "content": "x"}, {"role": "assistant", "content": "", "reasoning_content": "hm", "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "bash", "arguments": "{}"}}]}, {"role": "tool", "tool_call_id": "c1", "content": "a"}]}, status=500),
}

OTHER_WORDINGS: dict[str, Row] = {
    "a tag": messages("thinking: Input tag 'adaptive' found using 'type' does not match any of the expected tags: 'disabled', 'enabled'", {"thinking": ADAPTIVE}, {"thinking": {"type": "enabled", "budget_tokens": 6400}}),
    "a tag of between_tools": messages("thinking: Input tag 'between_tools' found using 'type' does not match any of the expected tags: 'adaptive', 'disabled', 'enabled'", {"thinking": {"type": "between_tools"}}, {"thinking": OFF}),
    "pydantic's literal": messages("output_config.effort: Input should be 'low', 'medium' or 'high'", {"output_config": {"effort": "max"}}, {"output_config": {"effort": "high"}}),
    "deprecated": messages("`temperature` is deprecated for this model.", {"temperature": 0.3}, {"temperature": GONE}),
    "not both": messages("`temperature` and `top_p` cannot both be specified for this model. Please use only one.", {"temperature": 0.3, "top_p": 0.9}, {"top_p": GONE}),
    "a budget above the limit": messages("`max_tokens` must be greater than `thinking.budget_tokens`. Please consult our documentation.", {"thinking": {"type": "enabled", "budget_tokens": 9000}}, {"thinking": {"type": "enabled", "budget_tokens": 7999}}),
    "a small budget": messages("thinking.enabled.budget_tokens: Input should be greater than or equal to 1024", {"thinking": {"type": "enabled", "budget_tokens": 100}}, {"thinking": {"type": "enabled", "budget_tokens": 1024}}),
    "a forced tool": messages("tool_choice.type: 'tool' is not supported for this model", {"tool_choice": {"type": "tool", "name": "bash"}}, {"tool_choice": {"type": "auto"}}),
    "effort while off": messages("output_config.effort 'max' is not supported when thinking type is between_tools. Use effort 'high' or below.", {"thinking": {"type": "between_tools"}, "output_config": {"effort": "max"}}, {"output_config": {"effort": "high"}}),
    "only the default": Row("Unsupported value: 'temperature' does not support 0.2 with this model. Only the default (1) value is supported.", {"temperature": 0.2, "top_p": 0.5}, {"temperature": GONE}),
    "another name": Row("Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.", {"max_tokens": 99}, {"max_tokens": GONE, "max_completion_tokens": 99}),
    "named beside": responses("Invalid value: 'xhigh'. Supported values are: 'low', 'medium', and 'high'.", {"reasoning": {"effort": "xhigh"}}, {"reasoning": {"effort": "high"}}, param="reasoning.effort"),
    "a summary": responses("Unsupported value: 'concise' is not supported with the 'novel-9' model. Supported values are: 'detailed'.", {"reasoning": {"summary": "concise"}}, {"reasoning": {"summary": "detailed"}}),
    "Google's unknown name": gemini("Invalid JSON payload received. Unknown name \"thinkingLevel\" at 'generation_config.thinking_config': Cannot find field.", level(thinkingLevel="low"), level()),
    "Google's range": gemini("Unable to submit request because thinking_budget is out of range; supported values are integers from 1 to 24576", level(thinkingBudget=50000), level(thinkingBudget=24576)),
    "required": Row("tool_choice 'required' is incompatible with thinking enabled", {"tool_choice": "required"}, {"tool_choice": "auto"}),
    "a list without quotes": Row("invalid reasoning_effort: only low, high, max are allowed", {"reasoning_effort": "medium"}, {"reasoning_effort": "high"}),
    "effort while disabled": Row("thinking options type cannot be disabled when reasoning_effort is set", {"thinking": OFF, "reasoning_effort": "high"}, {"reasoning_effort": GONE}),
    "an argument": Row("Unrecognized request argument supplied: reasoning_effort", {"reasoning_effort": "high"}, {"reasoning_effort": GONE}),
    "camel case": Row("Argument not supported on this model: presencePenalty", {"presence_penalty": 0.3}, {"presence_penalty": GONE}),
    "Python's repr": Row("[{'type': 'literal_error', 'loc': ('body', 'reasoning_effort'), 'msg': \"Input should be 'low', 'medium' or 'high'\", 'input': 'xhigh'}]", {"reasoning_effort": "xhigh"}, {"reasoning_effort": "high"}),
    "restricted": Row("The value of the enable_thinking parameter is restricted to True.", {"enable_thinking": False}, {"enable_thinking": True}),
    "two numbers": Row("thinking_budget and reasoning_effort cannot be used together", {"thinking_budget": 100, "reasoning_effort": "high"}, {"thinking_budget": GONE}),
    "a type": Row("The thinking type disabled is not supported by glm-6", {"thinking": OFF}, {"thinking": GONE}),
    "can't be off": Row("reasoning_effort 'none' is not supported; reasoning cannot be disabled", {"reasoning_effort": "none"}, {"reasoning_effort": "low"}),
}

_SIGNED = {"type": "thinking", "thinking": "Hm.", "signature": "c2lnbmF0dXJl"}
_LATER = {"type": "thinking", "thinking": "And?", "signature": "bGF0ZXI="}
_TALK = [
    {"role": "user", "content": "List the files."},
    {"role": "assistant", "content": [_SIGNED, {"type": "text", "text": "Which?"}]},
    {"role": "user", "content": "All."},
    {"role": "assistant", "content": [_LATER, {"type": "text", "text": "These."}]},
    {"role": "user", "content": "And now?"},
]
_CUT = [*_TALK[:1], {"role": "assistant", "content": [{"type": "text", "text": "Which?"}]}, *_TALK[2:3], {"role": "assistant", "content": [{"type": "text", "text": "These."}]}, *_TALK[4:]]
_BOUND = "Invalid `signature` in `thinking` block. The block is bound to a different conversation. Remove the block, or set "
_TO_DROP = '`thinking.block_binding.prefix_mismatch_behavior` to "drop_block".'

CHAIN: dict[str, Row] = {
    "A1": messages(f"messages.1.content.0: {_BOUND}{_TO_DROP} Content before this block differs from when it was created, first at `messages.0.content.0`.", {"thinking": ADAPTIVE, "messages": _TALK}, {"messages": _CUT}, instead="without the named block and all later ones"),
    "A2": messages(f"messages.1.content.0: {_BOUND}{_TO_DROP} Content before this block was rewritten since it was created, first at `messages.0.content.0`.", {"thinking": ADAPTIVE, "messages": _TALK}, {"messages": _CUT}, instead="without the named block and all later ones"),
    "A30": messages(f'messages.3.content.0: {_BOUND}`thinking.block_binding.mismatch_behavior` to "drop_block".', {"thinking": ADAPTIVE, "messages": _TALK}, {"messages": [*_TALK[:3], _CUT[3], *_TALK[4:]]}, instead="without the named block and all later ones"),
}
"""Refusals of a broken chain: healed in one retry. What they say is about one conversation, and no lesson for others."""

DOORS: dict[str, Row] = {
    "O1": Row("Function tools with reasoning_effort are not supported for gpt-6-sol in /v1/chat/completions. To use function tools, use /v1/responses or set reasoning_effort to 'none'.", {"reasoning_effort": "high"}, {}, instead="the request in Responses"),
    "O2": Row("Function tools with reasoning_effort are not supported for gpt-5.4 in /v1/chat/completions. Please use /v1/responses instead.", {"reasoning_effort": "high"}, {}, instead="the request in Responses"),
}
"""Refusals that name another endpoint: the request goes there, and so does the next one."""

REPORTED: dict[str, Row] = {
    # From reports of users, by repository and number of the thread. 2026-11.
    "siliconflow": Row("Value error, current model does not support parameter `enable_thinking`.", {'enable_thinking': False}, {'enable_thinking': GONE}),  # UmiOCR-AI-OCR-Plugin#39
    "reasoning.enabled": responses("Unknown parameter: 'reasoning.enabled'.", {'reasoning': {'enabled': True, 'effort': 'high'}}, {'reasoning': {'effort': 'high'}}, param="reasoning.enabled"),  # ccr-plugin-openai-res#2
    "ark combo": Row("Invalid combination of reasoning_effort and thinking type: high + disabled", {'thinking': OFF, 'reasoning_effort': 'high'}, {'reasoning_effort': GONE}),  # Roo-Code#11395
    "ark type": Row("Unsupported thinking type for the current model", {'thinking': {'type': 'auto'}}, {'thinking': GONE}),  # models.dev#5518
    "ark msg": Row("The parameter `thinking.type` specified in the request are not valid: unsupported thinking type for the current model. Request id: 0217", {'thinking': {'type': 'auto'}}, {'thinking': GONE}),  # Ark
    "nim type": Row("Validation: `thinking.type` must be `enabled` or `disabled`", {'thinking': ADAPTIVE}, {'thinking': {'type': 'enabled'}}),  # 9router#2023
    "nim type msg": messages("Validation: `thinking.type` must be `enabled` or `disabled`", {'thinking': ADAPTIVE}, {'thinking': {'type': 'enabled', 'budget_tokens': 6400}}),  # 9router#2023
    "dashscope restricted": Row("<400> InternalError.Algo.InvalidParameter: The value of the enable_thinking parameter is restricted to True. (request id: 20250730)", {'enable_thinking': False}, {'enable_thinking': True}),  # lobehub#8613
    "dashscope tool": Row("<400> InternalError.Algo.InvalidParameter: The tool_choice parameter does not support being set to required or object in thinking mode", {'tool_choice': 'required', 'enable_thinking': True}, {'tool_choice': 'auto'}),  # eino#994
    "dashscope budget": Row("<400> InternalError.Algo.InvalidParameter: The thinking_budget parameter must be a positive integer and not greater than 38912", {'enable_thinking': True, 'thinking_budget': 77824}, {'thinking_budget': 38912}),  # cherry-studio#7263
    "qwen simultaneously": Row("'reasoning_effort' and 'thinking_budget' cannot be set simultaneously", {'reasoning_effort': 'high', 'thinking_budget': 100}, {'thinking_budget': GONE}),  # opencode#41531
    "gem budget paren": gemini("The thinking budget (52428) is invalid.", {'generationConfig': {'thinkingConfig': {'includeThoughts': True, 'thinkingBudget': 52428}}}, {'generationConfig': {'thinkingConfig': {'includeThoughts': True}}}),  # Roo-Code#4399
    "vertex off": gemini("Unable to submit request because Thinking can't be disabled for this model. Remove 'thinking_config.thinking_budget' from your request and try again.", {'generationConfig': {'thinkingConfig': {'includeThoughts': True, 'thinkingBudget': 0}}}, {'generationConfig': {'thinkingConfig': {'includeThoughts': True}}}),  # pydantic-ai#1967
    "vertex level": gemini("Unable to submit request because thinking_level is not supported by this model.. Learn more: https://cloud.google.com/vertex-ai/generative-ai/docs/model-reference/gemini", {'generationConfig': {'thinkingConfig': {'includeThoughts': True, 'thinkingLevel': 'high'}}}, {'generationConfig': {'thinkingConfig': {'includeThoughts': True}}}),  # gemini-cli#14025
    "gemma budget": gemini("Thinking budget is not supported for this model.", {'generationConfig': {'thinkingConfig': {'includeThoughts': True, 'thinkingBudget': 512}}}, {'generationConfig': {'thinkingConfig': {'includeThoughts': True}}}),  # herm#23
    "include thoughts": gemini("Thinking_config.include_thoughts is only enabled when thinking is enabled.", {'generationConfig': {'thinkingConfig': {'includeThoughts': True, 'thinkingBudget': 0}}}, {'generationConfig': {'thinkingConfig': {'thinkingBudget': 0}}}),  # crewAI#4921
    "sgl literal": Row("1 validation error:\n  {'type': 'literal_error', 'loc': ('body', 'reasoning_effort'), 'msg': \"Input should be 'low', 'medium' or 'high'\", 'input': 'xhigh', 'ctx': {'expected': \"'low', 'medium' or 'high'\"}}\n\n  File \"/sgl-workspace/sglang/python/sglang/srt/entrypoints/http_server.py\", line 1324, in openai_v1_chat_completions", {'reasoning_effort': 'xhigh'}, {'reasoning_effort': 'high'}),  # CLIProxyAPI#1572
    "vllm extra": Row("[{'type': 'extra_forbidden', 'loc': ('body', 'bad_words'), 'msg': 'Extra inputs are not permitted', 'input': ['x']}]", {'bad_words': ['x']}, {'bad_words': GONE}),  # WebThinker#7
    "bedrock oss": Row("The model returned the following errors: Failed to deserialize the JSON body into the target type: thinking: unknown field `thinking`, expected one of `messages`, `model`, `store`, `reasoning_effort`, `metadata`, `frequency_penalty`, `temperature`, `top_p`, `tools`, `tool_choice` at line 1 column 212", {'thinking': {'type': 'enabled'}, 'temperature': 0.4, 'reasoning_effort': 'low'}, {'thinking': GONE}),  # litellm#14225
    "litellm unsup": Row("litellm.UnsupportedParamsError: openai does not support parameters: ['reasoning_effort'], for model=o4-mini. To drop these, set `litellm.drop_params=True`", {'reasoning_effort': 'high'}, {'reasoning_effort': GONE}),  # litellm#10108
    "mistral mode": Row("Reasoning prompt mode is not enabled for this model", {'prompt_mode': 'reasoning'}, {'prompt_mode': GONE}),  # pi#3096
    "mistral values": Row("Reasoning effort 'medium' is not supported for this model. Supported values: ['low', 'high', 'max']", {'reasoning_effort': 'medium'}, {'reasoning_effort': 'high'}),  # mistral-vibe#1117
    "glm always": Row("This model always engages in thinking and cannot be disabled; please use low, high, or max.", {'thinking': OFF}, {'thinking': GONE}),  # catwalk#603
    "crush": Row('Model "glm-5.3-flash" does not support reasoning effort "max", accepted values: low, high, xhigh.', {'reasoning_effort': 'max'}, {'reasoning_effort': 'xhigh'}),  # catwalk#603
    "runware": Row("Unsupported parameter 'chat_template_kwargs.enable_thinking'; use 'reasoning_effort'.", {'chat_template_kwargs': {'enable_thinking': False}}, {'chat_template_kwargs': GONE}),  # llmgateway#3965
    "minimax m3": Row('invalid params, invalid thinking.type: "enabled" (allowed: adaptive, disabled) (2013)', {'thinking': {'type': 'enabled'}}, {'thinking': ADAPTIVE}),  # cherry-studio#16431
    "baseten conflict": Row("Invalid request: Conflicting thinking controls: `reasoning_effort` is 'none', but `chat_template_kwargs.enable_thinking` is True.", {'reasoning_effort': 'none', 'chat_template_kwargs': {'enable_thinking': True}}, {'reasoning_effort': GONE}),  # crush#3386
    "ollama think": Row('invalid think value: "xhigh" (must be "high", "medium", "low")', {'think': 'xhigh'}, {'think': 'high'}, format="ollama_chat", status=500),  # litellm#34574
    "groq prop": Row("property 'reasoning' is unsupported", {'reasoning': {'effort': 'high'}}, {'reasoning': GONE}),  # musistudio/llms#64
    "groq did you mean": Row("property 'reasoning_effort' is unsupported, did you mean 'reasoning_format'?", {'reasoning_effort': 'high'}, {'reasoning_effort': GONE}),  # cherry-studio#1099
    "cerebras body": Row("body.thinking: property 'body.thinking' is unsupported", {'thinking': {'type': 'enabled'}}, {'thinking': GONE}),  # opencode#6648
    "stdapi": Row("This model does not support 'thinking_budget'. Use 'reasoning_effort' instead.", {'thinking_budget': 1000}, {'thinking_budget': GONE}),  # stdapi.ai#181
    "nim immutable": Row("Validation: top_p is immutable for this model and must be 0.95, got 1", {'top_p': 1}, {'top_p': GONE}),  # free-claude-code#1609
    "typo": responses("Invalid value: 'xhign'. Supported values are: 'none', 'minimal', 'low', 'medium', 'high', and 'xhigh'.", {'reasoning': {'effort': 'xhign'}}, {'reasoning': {'effort': 'xhigh'}}, param="reasoning.effort"),  # sub2api#3782
    "stop": Row("Unsupported parameter: 'stop' is not supported with this model.", {'stop': ['x']}, {'stop': GONE}, param="stop"),  # smolagents#1671
    "siliconflow type": Row("thinking type should be enabled or disabled", {'thinking': ADAPTIVE}, {'thinking': {'type': 'enabled'}}),  # cc-switch#1489
    "openrouter tool_choice": Row("No endpoints found that support the provided 'tool_choice' value. To learn more about provider routing, visit: https://openrouter.ai/docs/provider-routing", {'tool_choice': 'required'}, {'tool_choice': 'auto'}, status=404),  # zed#36094
    "adaptive.effort": messages("thinking.adaptive.effort: Extra inputs are not permitted", {'thinking': {'type': 'adaptive', 'effort': 'high'}}, {'thinking': ADAPTIVE}),  # sub2api#1619
    "disabled.display": messages("thinking.disabled.display: Extra inputs are not permitted", {'thinking': {'type': 'disabled', 'display': 'omitted'}}, {'thinking': OFF}),  # claude-code#69618
    "ctx mgmt": messages("context_management: Extra inputs are not permitted", {'context_management': {'edits': [{'type': 'clear_tool_uses_20250919'}, {'type': 'clear_thinking_20251015'}]}}, {'context_management': GONE}),  # claude-relay-service#660
    "sonnet5 effort": messages("The model returned the following errors: reasoning_effort: Extra inputs are not permitted", {'reasoning_effort': 'low'}, {'reasoning_effort': GONE}),  # ruby_llm#851
    "temp top_p plain": messages("temperature and top_p cannot both be specified for this model. Please use only one.", {'temperature': 0.2, 'top_p': 0.4}, {'top_p': GONE}),  # oai-compatible-copilot#42
    "null temp": Row("Malformed input request: #/temperature: expected type: Number, found: Null, please reformat your input and try again.", {'temperature': None}, {'temperature': GONE}),  # celi#91
    "o4": Row("invalid top_p: only 0.95 is allowed for this model", {'top_p': 1, 'temperature': 0.4}, {'top_p': GONE, 'temperature': GONE}),  # cherry-studio#12691
}

MORE_WORDINGS: dict[str, Row] = {
    "bedrock unknown field plain": Row("Failed to deserialize the JSON body into the target type: unknown field `reasoning`, expected one of `messages`, `model`, `temperature`, `reasoning_effort` at line 1 column 90", {'reasoning': {'effort': 'low'}, 'temperature': 0.4}, {'reasoning': GONE}),
    "litellm two": Row("litellm.UnsupportedParamsError: vertex_ai does not support parameters: ['reasoning_effort', 'top_p'], for model=gemini-2.5-pro. To drop these, set `litellm.drop_params=True` or for proxy:", {'reasoning_effort': 'low', 'top_p': 0.4, 'temperature': 0.3}, {'reasoning_effort': GONE, 'top_p': GONE}),
    "litellm dict": Row("litellm.UnsupportedParamsError: bedrock does not support parameters: {'tool_choice': 'required'}, for model=x. To drop these, set `litellm.drop_params=True`", {'tool_choice': 'required'}, {'tool_choice': 'auto'}),
    "mistral effort": Row("reasoning_effort is not enabled for this model", {'reasoning_effort': 'high'}, {'reasoning_effort': GONE}),
    "glm always effort": Row("This model always engages in thinking and cannot be disabled; please use low, high, or max.", {'reasoning_effort': 'none'}, {'reasoning_effort': 'low'}),
    "minimax m3 msg": messages('invalid params, invalid thinking.type: "enabled" (allowed: adaptive, disabled) (2013)', {'thinking': {'type': 'enabled', 'budget_tokens': 4000}}, {'thinking': ADAPTIVE, 'output_config': {'effort': 'medium'}}),
    "ollama think2": Row('invalid think value: "none" (must be "high", "medium", "low", true, or false)', {'think': 'none'}, {'think': False}, format="ollama_chat"),
    "ollama effort": Row("invalid reasoning value: 'xhigh' (must be \"high\", \"medium\", \"low\", or \"none\")", {'reasoning_effort': 'xhigh'}, {'reasoning_effort': 'high'}),
    "codex trunc": responses("Unsupported parameter: truncation", {'truncation': 'auto'}, {'truncation': GONE}),
    "siliconflow type msg": messages("thinking type should be enabled or disabled", {'thinking': ADAPTIVE}, {'thinking': {'type': 'enabled', 'budget_tokens': 6400}}),
    "disabled budget": messages("thinking.disabled.budget_tokens: Extra inputs are not permitted", {'thinking': {'type': 'disabled', 'budget_tokens': 1024}}, {'thinking': OFF}),
    "xai stop": Row("Argument not supported on this model: stop", {'stop': ['x']}, {'stop': GONE}),
    "xai pen": Row("Model grok-4.7 does not support parameter presencePenalty.", {'presence_penalty': 0.1}, {'presence_penalty': GONE}),
    "k budget": messages("`thinking.budget_tokens` must be greater than or equal to 1024", {'thinking': {'type': 'enabled', 'budget_tokens': 100}}, {'thinking': {'type': 'enabled', 'budget_tokens': 1024}}),
    "budget less": messages("`budget_tokens` must be less than `max_tokens`", {'thinking': {'type': 'enabled', 'budget_tokens': 9000}}, {'thinking': {'type': 'enabled', 'budget_tokens': 7999}}),
    "top_k": messages("`top_k` must be unset when thinking is enabled or in adaptive mode. Please consult our documentation", {'thinking': ADAPTIVE, 'top_k': 5}, {'top_k': GONE}),
    "temp dep": messages("`temperature`: this parameter is deprecated for claude-opus-4-7", {'temperature': 0.3}, {'temperature': GONE}),
    "speed": messages("speed: Extra inputs are not permitted", {'speed': 'fast'}, {'speed': GONE}),
    "beta block": messages("thinking.adaptive.block_binding: Extra inputs are not permitted", {'thinking': {'type': 'adaptive', 'block_binding': {'prefix_mismatch_behavior': 'drop_block'}}}, {'thinking': ADAPTIVE}),
    "Chinese 1": Row("该模型不支持 reasoning_effort 参数", {'reasoning_effort': 'high'}, {'reasoning_effort': GONE}),
    "Chinese 2": Row("参数 reasoning_effort 取值错误，可选值为：low、medium、high", {'reasoning_effort': 'xhigh'}, {'reasoning_effort': 'high'}),
    "Chinese 3": Row("当前模型不支持关闭思考模式", {'thinking': OFF}, {'thinking': GONE}),
    "Chinese 4": Row("思考模式下不支持该 tool_choice", {'tool_choice': 'required'}, {'tool_choice': 'auto'}),
    "Chinese 5": Row("temperature 参数非法：该模型仅支持 temperature=1", {'temperature': 0.3}, {'temperature': GONE}),
    "Chinese 6": Row("thinking 与 reasoning_effort 不能同时设置", {'thinking': {'type': 'enabled'}, 'reasoning_effort': 'high'}, {'reasoning_effort': GONE}),
    "Chinese 7": Row("temperature 参数取值范围为 [0, 1]", {'temperature': 1.5}, {'temperature': 1}),
    "Chinese 8": Row("不支持的参数：top_k", {'top_k': 5}, {'top_k': GONE}),
    "Chinese 9": Row("enable_thinking 参数在非流式调用时必须设置为 false", {'enable_thinking': True}, {'enable_thinking': False}),
    "Chinese 10": Row("参数 thinking_budget 超出范围，取值范围 1 到 32768", {'thinking_budget': 50000}, {'thinking_budget': 32768}),
    "legal values 1": Row("Invalid value for 'reasoning_effort': 'xhigh'. Must be one of: low, medium, high.", {'reasoning_effort': 'xhigh'}, {'reasoning_effort': 'high'}),
    "legal values 2": Row("reasoning_effort: 'max' is not one of ['low', 'medium', 'high']", {'reasoning_effort': 'max'}, {'reasoning_effort': 'high'}),
    "legal values 3": Row("'max' is not one of ['low', 'medium', 'high'] - 'reasoning_effort'", {'reasoning_effort': 'max'}, {'reasoning_effort': 'high'}),
    "legal values 4": Row("body -> reasoning_effort: value is not a valid enumeration member; permitted: 'low', 'medium', 'high'", {'reasoning_effort': 'max'}, {'reasoning_effort': 'high'}, status=422),
    "legal values 5": Row("Reasoning effort must be low, medium or high", {'reasoning_effort': 'max'}, {'reasoning_effort': 'high'}),
    "legal values 6": Row("The reasoning_effort parameter only accepts low and high.", {'reasoning_effort': 'medium'}, {'reasoning_effort': 'high'}),
    "legal values 7": Row("Parameter 'reasoning_effort' must be in {low, medium, high}", {'reasoning_effort': 'max'}, {'reasoning_effort': 'high'}),
    "legal values 8": Row('reasoning_effort="max" is invalid; valid options: low|medium|high', {'reasoning_effort': 'max'}, {'reasoning_effort': 'high'}),
    "legal values 9": Row('Model kimi-k9 accepts reasoning_effort values low, high, max only (got "medium")', {'reasoning_effort': 'medium'}, {'reasoning_effort': 'high'}),
    "legal values 10": Row("Unsupported value: “reasoning_effort” does not support “max” with this model. Supported values are: “low”, “medium”, and “high”.", {'reasoning_effort': 'max'}, {'reasoning_effort': 'high'}),
    "legal values 11": Row("Expected reasoning_effort to be one of low, medium, high but got max", {'reasoning_effort': 'max'}, {'reasoning_effort': 'high'}),
    "unsupported 1": Row("The parameter temperature is not supported by this model", {'temperature': 0.3}, {'temperature': GONE}),
    "unsupported 2": Row("This model doesn't accept the 'top_p' parameter.", {'top_p': 0.3}, {'top_p': GONE}),
    "unsupported 3": Row("top_k is not allowed", {'top_k': 3}, {'top_k': GONE}),
    "unsupported 4": Row("Unexpected keyword argument 'enable_thinking'", {'enable_thinking': True}, {'enable_thinking': GONE}),
    "unsupported 5": Row("Unknown field: thinking_budget", {'thinking_budget': 3}, {'thinking_budget': GONE}),
    "unsupported 6": Row('unrecognized field "preserve_thinking" in request body', {'preserve_thinking': True}, {'preserve_thinking': GONE}),
    "unsupported 7": Row('json: unknown field "reasoning_effort"', {'reasoning_effort': 'high'}, {'reasoning_effort': GONE}),
    "unsupported 8": Row("Please remove the `temperature` parameter for this model.", {'temperature': 0.3}, {'temperature': GONE}),
    "unsupported 9": Row("`parallel_tool_calls` cannot be used with this model", {'parallel_tool_calls': True}, {'parallel_tool_calls': GONE}),
    "unsupported 10": Row("Invalid parameter: logprobs is unsupported for reasoning models", {'logprobs': True}, {'logprobs': GONE}),
    "unsupported 11": Row("'verbosity' is only supported on gpt-5 and later", {'verbosity': 'low'}, {'verbosity': GONE}),
    "unsupported 12": Row("ignored or unsupported parameters: min_p", {'min_p': 0.1}, {'min_p': GONE}),
    "one value 1": Row("temperature must be 1 for this model", {'temperature': 0.3}, {'temperature': GONE}),
    "one value 2": Row("Only temperature=1 is supported for reasoning models", {'temperature': 0.3}, {'temperature': GONE}),
    "one value 3": Row("temperature is fixed at 1.0 for this model and cannot be changed", {'temperature': 0.3}, {'temperature': GONE}),
    "one value 5": Row("presence_penalty must be 0 for this model", {'presence_penalty': 0.4}, {'presence_penalty': GONE}),
    "one value 6": Row("Setting temperature is not allowed when thinking is enabled.", {'temperature': 0.3, 'thinking': {'type': 'enabled'}}, {'temperature': GONE}),
    "a range 1": Row("temperature must be between 0 and 1", {'temperature': 1.6}, {'temperature': 1}),
    "a range 2": Row("temperature: Input should be less than or equal to 1", {'temperature': 1.6}, {'temperature': 1}),
    "a range 3": Row("Invalid 'temperature': decimal above maximum value. Expected a value <= 2, but got 3 instead.", {'temperature': 3}, {'temperature': 2}),
    "a range 4": Row("top_p must be in (0, 1]", {'top_p': 1.5}, {'top_p': 1}),
    "a range 5": Row("thinking_budget must be in the range [128, 32768]", {'thinking_budget': 1}, {'thinking_budget': 128}),
    "a range 6": Row("The value of thinking_budget should be less than or equal to 32768", {'thinking_budget': 99999}, {'thinking_budget': 32768}),
    "a range 7": Row("temperature should be in range 0.0 ~ 1.0", {'temperature': 1.6}, {'temperature': 1}),
    "a conflict 1": Row("tool_choice 'required' is not supported when reasoning is enabled", {'tool_choice': 'required', 'reasoning_effort': 'high'}, {'tool_choice': 'auto'}),
    "a conflict 2": Row("Forcing a tool call is not supported with thinking", {'tool_choice': 'required', 'thinking': {'type': 'enabled'}}, {'tool_choice': 'auto'}),
    "a conflict 3": Row("tool_choice must be 'auto' or 'none' when thinking is enabled", {'tool_choice': 'required', 'thinking': {'type': 'enabled'}}, {'tool_choice': 'auto'}),
    "a conflict 4": Row("Only tool_choice auto is supported in reasoning mode.", {'tool_choice': {'type': 'function', 'function': {'name': 'bash'}}}, {'tool_choice': 'auto'}),
    "a conflict 5": Row("temperature and top_p are mutually exclusive", {'temperature': 0.3, 'top_p': 0.4}, {'top_p': GONE}),
    "a conflict 6": Row("Specify either `reasoning.effort` or `reasoning.max_tokens`, not both", {'reasoning': {'effort': 'high', 'max_tokens': 100}}, {'reasoning': {'effort': 'high'}}),
    "a conflict 7": Row('Only one of "reasoning.effort" and "reasoning.max_tokens" can be specified', {'reasoning': {'effort': 'high', 'max_tokens': 100}}, {'reasoning': {'effort': 'high'}}),
    "always on 1": Row("Thinking cannot be turned off for this model", {'enable_thinking': False}, {'enable_thinking': GONE}),
    "always on 2": Row("This model requires thinking to be enabled.", {'thinking': OFF}, {'thinking': GONE}),
    "always on 3": Row("thinking.type=disabled is not supported by this model", {'thinking': OFF}, {'thinking': GONE}),
    "always on 4": Row("reasoning is required for this model; reasoning_effort 'none' is invalid", {'reasoning_effort': 'none'}, {'reasoning_effort': 'low'}),
    "always on 5": Row("Model does not support thinking=false", {'think': False}, {'think': GONE}),
    "a mode 1": messages("thinking.type: Input should be 'adaptive'", {'thinking': {'type': 'enabled', 'budget_tokens': 4000}}, {'thinking': ADAPTIVE, 'output_config': {'effort': 'medium'}}),
    "a mode 2": messages('This model only supports adaptive thinking. Please set thinking.type to "adaptive".', {'thinking': {'type': 'enabled', 'budget_tokens': 4000}}, {'thinking': ADAPTIVE, 'output_config': {'effort': 'medium'}}),
    "a mode 3": messages("Extended thinking with budget_tokens is not supported on claude-opus-6; use adaptive thinking.", {'thinking': {'type': 'enabled', 'budget_tokens': 4000}}, {'thinking': ADAPTIVE, 'output_config': {'effort': 'medium'}}),
    "a mode 4": messages("thinking type 'enabled' is no longer supported for claude-opus-6. Use 'adaptive' instead.", {'thinking': {'type': 'enabled', 'budget_tokens': 4000}}, {'thinking': ADAPTIVE, 'output_config': {'effort': 'medium'}}),
    "a mode 5": messages('thinking: type must be "adaptive" or "disabled"', {'thinking': {'type': 'enabled', 'budget_tokens': 4000}}, {'thinking': ADAPTIVE, 'output_config': {'effort': 'medium'}}),
    "a list of Go": Row("invalid reasoning_effort: medium is not one of [low high max]", {'reasoning_effort': 'medium'}, {'reasoning_effort': 'high'}),
    "a list of Go, and a number": Row("invalid params, reasoning_effort invalid, must be one of [low medium high max] (2013)", {'reasoning_effort': 'minimal'}, {'reasoning_effort': 'low'}),
    "two variants": Row("Failed to deserialize the JSON body into the target type: thinking.type: unknown variant `adaptive`, expected `enabled` or `disabled` at line 1 column 90", {'thinking': ADAPTIVE}, {'thinking': {'type': 'enabled'}}, status=422),
    "no variant": Row("Failed to deserialize the JSON body into the target type: tool_choice: data did not match any variant of untagged enum ToolChoice at line 1 column 300", {'tool_choice': NAMED}, {'tool_choice': 'auto'}, status=422),
    "a null": Row("Failed to deserialize the JSON body into the target type: reasoning_effort: invalid type: null, expected a string at line 1 column 131", {'reasoning_effort': None}, {'reasoning_effort': GONE}, status=422),
    "None": Row("None is not of type 'string' - 'reasoning_effort'", {'reasoning_effort': None}, {'reasoning_effort': GONE}),
    "levels of effort": messages("output_config.effort: 'xhigh' is not a supported effort level for claude-opus-4-6. Supported effort levels are low, medium, high and max.", {'output_config': {'effort': 'xhigh'}}, {'output_config': {'effort': 'max'}}),
    "the most": messages("effort 'max' requires a model of the Opus family; this model supports effort up to 'high'", {'output_config': {'effort': 'max'}}, {'output_config': {'effort': 'high'}}),
    "the highest": Row("reasoning effort 'max' not supported, highest is 'high'", {'reasoning_effort': 'max'}, {'reasoning_effort': 'high'}),
    "the maximum": Row("The requested reasoning_effort 'max' exceeds this model's maximum 'high'.", {'reasoning_effort': 'max'}, {'reasoning_effort': 'high'}),
    "the least": Row("reasoning_effort must be 'low' or higher for this model", {'reasoning_effort': 'none'}, {'reasoning_effort': 'low'}),
    "a value alone": responses("Invalid reasoning effort: minimal", {'reasoning': {'effort': 'minimal'}}, {'reasoning': {'effort': 'low'}}),
    "a value that tools exclude": responses("The following tools cannot be used with reasoning.effort 'minimal': image_gen, web_search.", {'reasoning': {'effort': 'minimal'}}, {'reasoning': {'effort': 'low'}}),
    "none": Row("Muse Spark cannot run with reasoning effort 'none'", {'reasoning_effort': 'none'}, {'reasoning_effort': 'low'}),
    "a number above another": messages("thinking.budget_tokens: 40000 > 32000, the maximum thinking budget for this model", {'thinking': {'type': 'enabled', 'budget_tokens': 40000}}, {'thinking': {'type': 'enabled', 'budget_tokens': 32000}}),
    "below a limit": messages("max_tokens must be greater than thinking budget", {'thinking': {'type': 'enabled', 'budget_tokens': 9000}}, {'thinking': {'type': 'enabled', 'budget_tokens': 7999}}),
    "an open end": Row("invalid params, temperature must be in (0, 1] (2013)", {'temperature': 0}, {'temperature': GONE}),
    "another open end": Row("Temperature should be in [0.0, 2.0)", {'temperature': 2}, {'temperature': GONE}),
    "inclusive": gemini("Unable to submit request because it has a topK value of 64 but the supported range is from 1 (inclusive) to 40 (inclusive). Update the value and try again.", {'generationConfig': {'topK': 64}}, {'generationConfig': {'topK': 40}}),
    "three names": messages("The model claude-opus-7 does not support temperature, top_p or top_k. Remove these parameters.", {'temperature': 0.3, 'top_k': 3}, {'temperature': GONE, 'top_k': GONE}),
    "two names": Row("frequency_penalty, presence_penalty not supported by model.", {'frequency_penalty': 0.3, 'presence_penalty': 0.1}, {'frequency_penalty': GONE, 'presence_penalty': GONE}),
    "two arguments": Row("Unrecognized request arguments supplied: enable_thinking, thinking_budget", {'enable_thinking': True, 'thinking_budget': 3}, {'enable_thinking': GONE, 'thinking_budget': GONE}),
    "may only be": messages("temperature: may only be 1 on this model", {'temperature': 0.3}, {'temperature': GONE}),
    "can't set": Row("You can't set temperature with a reasoning model.", {'temperature': 0.3}, {'temperature': GONE}),
    "cannot specify": messages("Cannot specify `temperature` for models with adaptive thinking", {'temperature': 0.3}, {'temperature': GONE}),
    "must not be": Row("Field 'seed' must not be set", {'seed': 3}, {'seed': GONE}),
    "no such parameter": Row("seed is not a supported parameter", {'seed': 3}, {'seed': GONE}),
    "the first word": messages("speed 'fast' is not supported on this model", {'speed': 'fast'}, {'speed': GONE}),
    "an extraneous key": messages("Malformed input request: extraneous key [thinking] is not permitted, please reformat your input and try again.", {'thinking': ADAPTIVE}, {'thinking': GONE}),
    "the reasoning parameter": Row("Model does not support reasoning. Remove the reasoning parameter.", {'reasoning': {'effort': 'low'}}, {'reasoning': GONE}),
    "only with others": responses("Unsupported parameter: 'reasoning.mode' is only supported with gpt-5.x-pro models.", {'reasoning': {'effort': 'low', 'mode': 'pro'}}, {'reasoning': {'effort': 'low'}}),
    "summaries": responses("Reasoning summaries are not available for your organization.", {'reasoning': {'effort': 'low', 'summary': 'auto'}}, {'reasoning': {'effort': 'low'}}),
    "verbosity": responses("Unsupported value: 'low' is not supported with the 'gpt-5-codex' model. Supported values are: 'medium'.", {'text': {'verbosity': 'low', 'format': {'type': 'text'}}}, {'text': {'verbosity': 'medium', 'format': {'type': 'text'}}}, param="text.verbosity"),
    "a word of a list": responses("Invalid value: 'reasoning.encrypted_content'. Supported values are: 'file_search_call.results', 'message.output_text.logprobs'.", {'include': ['reasoning.encrypted_content']}, {'include': GONE}),
    "an edit": messages("context_management.edits.0.type: Input tag 'clear_thinking_20251015' found using 'type' does not match any of the expected tags: 'clear_tool_uses_20250919'", {'context_management': EDITS}, {'context_management': {'edits': EDITS['edits'][:1]}}),
    "choices": messages("tool_choice.type must be one of auto, none when thinking is on", {'tool_choice': {'type': 'tool', 'name': 'bash'}, 'thinking': ADAPTIVE}, {'tool_choice': {'type': 'auto'}}),
    "choices as JSON": messages('When thinking is enabled, `tool_choice` only supports {"type": "auto"} or {"type": "none"}', {'tool_choice': {'type': 'any'}, 'thinking': ADAPTIVE}, {'tool_choice': {'type': 'auto'}}),
    "choices in words": Row("tool_choice must be one of: auto, none, required", {'tool_choice': NAMED}, {'tool_choice': 'required'}),
    "a choice without thinking": responses("Tool choice 'required' is not supported with reasoning.effort 'none'", {'tool_choice': 'required', 'reasoning': {'effort': 'none'}}, {'tool_choice': 'auto'}),
    "a choice without tools": Row("'tool_choice' is not supported without 'tools'", {'tool_choice': 'auto'}, {'tool_choice': GONE}),
    "a switch beside a format": Row("<400> InternalError.Algo.InvalidParameter: Json mode response is not supported when enable_thinking is true", {'enable_thinking': True, 'response_format': {'type': 'json_object'}}, {'enable_thinking': False}),
    "another name": responses("Unsupported parameter: 'max_completion_tokens'. In the Responses API, use 'max_output_tokens'.", {'max_completion_tokens': 99}, {'max_completion_tokens': GONE, 'max_output_tokens': 99}),
    "Chinese 11": Row("thinking.type 参数有误", {'thinking': ADAPTIVE}, {'thinking': GONE}),
    "Chinese 12": Row("参数 tool_choice 目前仅支持 auto。", {'tool_choice': NAMED}, {'tool_choice': 'auto'}),
    "Chinese 13": Row("temperature 不能大于 1", {'temperature': 1.6}, {'temperature': 1}),
}
"""Each shape in further words."""

PASSED_ON: dict[str, Row] = {
    "a compaction": messages("compaction: Extra inputs are not permitted", {"compaction": {"type": "summarize"}}, {}, passed=True),
    "what is not to be stored": responses("Background mode is not supported with store=false", {"store": False}, {}, passed=True),
    "a tool of that name": Row("The tool 'temperature' does not exist", {"temperature": 1}, {}, passed=True),
    "a model of that name": Row("Unknown model: reasoning_effort-2", {"reasoning_effort": "high"}, {}, passed=True),
    "broken JSON": Row("Failed to parse JSON: unexpected token at temperature", {"temperature": 1}, {}, passed=True),
    "memory": Row("CUDA out of memory. temperature is unsupported", {"temperature": 1}, {}, passed=True, status=500),
    "please stop": Row("Please stop sending requests. Only 3 are allowed at the same time", {"stop": ["x"]}, {}, passed=True),
    "another setting's list": Row("reasoning_effort: Supported values are 'low', 'high'", {"reasoning_effort": "low"}, {}, passed=True),
    "a key": Row("Incorrect API key provided: temperature", {"temperature": 1}, {}, passed=True, status=401),
    "a schema": Row("Invalid schema for function 'temperature': In context=(), 'additionalProperties' is required", {"temperature": 1}, {}, passed=True),
    "images": Row("This model does not support image input.", {"temperature": 1}, {}, passed=True),
    "a format": Row("Unsupported parameter: 'response_format' is not supported with this model.", {"response_format": {"type": "json_object"}}, {}, passed=True),
    "no such setting": Row("Unsupported parameter: 'temperature' is not supported with this model.", {"top_p": 0.5}, {}, passed=True),
    "a tool": Row("tools.0.custom.strict: Extra inputs are not permitted", {"strict": True}, {}, passed=True),
    "a server's own error": Row("Internal server error", {"temperature": 1}, {}, passed=True, status=500),
    "vague": Row("Invalid request parameters. Please check the documentation.", {"reasoning_effort": "high"}, {}, passed=True),
    "codex detail": Row("Unsupported parameter: background", {'background': True}, {}, passed=True),  # sub2api#2054
    "codex max": responses("Unsupported parameter: max_output_tokens", {'max_output_tokens': 100}, {'max_output_tokens': GONE}),
    "elsewhere 1": Row("You exceeded your current quota, please check your plan and billing details.", {'temperature': 1, 'reasoning_effort': 'high'}, {}, status=429, passed=True),
    "elsewhere 2": Row("This model's maximum context length is 128000 tokens. However, your messages resulted in 130000 tokens. Please reduce the length of the messages.", {'temperature': 1, 'reasoning_effort': 'high'}, {}, passed=True),
    "elsewhere 3": Row("prompt is too long: 210000 tokens > 200000 maximum", {'temperature': 1}, {}, passed=True),
    "elsewhere 4": Row("Input should be a valid dictionary", {'temperature': 1}, {}, passed=True),
    "elsewhere 5": Row('messages: roles must alternate between "user" and "assistant", but found multiple "user" roles in a row', {'temperature': 1, 'reasoning_effort': 'high'}, {}, passed=True),
    "elsewhere 6": Row("Invalid schema for function 'bash': schema must be a JSON Schema of 'type: \"object\"', got 'type: \"None\"'.", {'temperature': 1, 'tool_choice': 'required'}, {}, passed=True),
    "elsewhere 7": Row("The response was filtered due to the prompt triggering content management policy. Please modify your prompt and retry. temperature", {'temperature': 1}, {}, passed=True),
    "elsewhere 8": Row("max_tokens is too large: 99999. This model supports at most 16384 completion tokens, whereas you provided 99999.", {'max_tokens': 99999, 'temperature': 1}, {}, passed=True),
    "elsewhere 9": Row("max_tokens must be at least 1024 greater than thinking.budget_tokens", {'thinking': {'type': 'enabled'}}, {}, passed=True),
    "elsewhere 10": Row("The model `gpt-9` does not exist or you do not have access to it.", {'reasoning_effort': 'high'}, {}, status=404, passed=True),
    "elsewhere 11": Row("An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'.", {'tool_choice': 'required', 'reasoning_effort': 'high'}, {}, passed=True),
    "elsewhere 12": Row("tools.0.function.parameters: Extra inputs are not permitted", {'temperature': 1}, {}, passed=True),
    "elsewhere 13": Row("Invalid type for 'messages[0].content': expected one of a string or array of objects, but got an integer instead.", {'temperature': 1}, {}, passed=True),
    "elsewhere 14": Row('"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set', {'tool_choice': 'auto'}, {}, passed=True),
    "elsewhere 15": Row("This model does not support tools.", {'tool_choice': 'auto', 'temperature': 1}, {}, passed=True),
    "elsewhere 16": Row("registry.ollama.ai/library/gemma3:latest does not support tools", {'reasoning_effort': 'high'}, {}, passed=True),
    "elsewhere 17": Row("No endpoints found that support tool use. To learn more about provider routing, visit: https://openrouter.ai/docs/provider-routing", {'tool_choice': 'auto', 'reasoning_effort': 'high'}, {}, status=404, passed=True),
    "elsewhere 18": Row("Model qwen3.7-max is not supported for format oa-compat", {'reasoning_effort': 'high'}, {}, passed=True),
    "elsewhere 19": Row("The requested model is not supported.", {'reasoning_effort': 'high', 'temperature': 1}, {}, passed=True),
    "elsewhere 20": Row("The request is not supported by this model.", {'reasoning_effort': 'high'}, {}, passed=True),
    "elsewhere 21": Row("Tool names must be unique.", {'tool_choice': 'required'}, {}, passed=True),
    "elsewhere 22": Row("Could not process image", {'temperature': 1}, {}, passed=True),
    "elsewhere 23": Row("This request would exceed your organization's rate limit of 50,000 input tokens per minute", {'temperature': 1}, {}, status=429, passed=True),
    "elsewhere 24": Row("Invalid request: the message at position 72 with role 'assistant' must not be empty", {'temperature': 1}, {}, passed=True),
    "elsewhere 25": Row("output_format.schema: For 'object' type, 'additionalProperties' must be explicitly set to false", {'temperature': 1}, {}, passed=True),
    "elsewhere 26": Row("Failed to parse tool call arguments as JSON: temperature is not allowed here", {'temperature': 1}, {}, status=500, passed=True),
    "elsewhere 27": Row("The tool call did not match schema: errors: [`/temperature`: expected number, but got string]", {'temperature': 1}, {}, passed=True),
    "elsewhere 28": Row("API 调用参数有误，请检查文档。", {'temperature': 1, 'thinking': {'type': 'disabled'}}, {}, passed=True),
    "elsewhere 29": Row("余额不足或无可用资源包,请充值。", {'temperature': 1}, {}, status=429, passed=True),
    "elsewhere 30": Row("输入内容可能包含不安全或敏感内容 temperature", {'temperature': 1}, {}, passed=True),
    "elsewhere 31": Row("Unterminated string in JSON at position 4 (line 1 column 5)", {'temperature': 1}, {}, passed=True),
    "elsewhere 32": Row("Your credit balance is too low to access the Anthropic API.", {'temperature': 1}, {}, passed=True),
    "elsewhere 33": Row("tool_choice: tool 'bash' not found in tools", {'tool_choice': {'type': 'function', 'function': {'name': 'bash'}}}, {}, passed=True),
    "elsewhere 34": Row("Tool 'bash' not found in provided tools", {'tool_choice': {'type': 'function', 'function': {'name': 'bash'}}}, {}, passed=True),
    "elsewhere 35": Row("Tool choice is required, but model did not call a tool", {'tool_choice': 'required', 'reasoning_effort': 'high'}, {}, passed=True),
    "elsewhere 36": Row("Invalid 'tools[0].function.name': string does not match pattern. Expected a string that matches the pattern '^[a-zA-Z0-9_-]+$'.", {'temperature': 1}, {}, passed=True),
    "elsewhere 37": Row("A maximum of 4 blocks with cache_control may be provided. Found 5.", {'cache_control': {'type': 'ephemeral'}}, {}, passed=True),
    "elsewhere 38": Row("seed: the random seed server is unavailable", {'temperature': 1}, {}, passed=True),
}
# fmt: on


def _of_openrouter(error: bytes) -> bytes:
    metadata = {"raw": error.decode(), "provider_name": "Novel"}
    return json.dumps({"error": {"message": "Provider returned error", "code": 400, "metadata": metadata}}).encode()


def _of_litellm(error: bytes) -> bytes:
    message = f"litellm.BadRequestError: OpenAIException - {error.decode()}"
    return json.dumps({"error": {"message": message, "type": None, "param": None, "code": "400"}}).encode()


def _said(error: bytes) -> str:
    """The sentence of an error."""
    said = json.loads(error)["error"]
    return str(said["message"] if isinstance(said, dict) else said)


WRAPPERS: dict[str, Callable[[bytes], bytes]] = {
    "OpenRouter": _of_openrouter,
    "OpenRouter twice": lambda error: _of_openrouter(_of_openrouter(error)),
    "LiteLLM": _of_litellm,
    "an event": lambda error: b"data: " + error,
    "an array": lambda error: b"[" + error + b"]",
    "a string": lambda error: json.dumps({"error": error.decode()}).encode(),
    "text": lambda error: _said(error).encode(),
    "Python's notation": lambda error: json.dumps({"error": f"Error code: 400 - {json.loads(error)!r}"}).encode(),
    "a router": lambda error: json.dumps(
        {"error": {"message": f"Error from provider(a,b: 400): {error.decode()}Error: at c"}}
    ).encode(),
    "an SDK": lambda error: json.dumps(
        {"error": {"message": f"got status: 400 Bad Request. {error.decode()}"}}
    ).encode(),
    "a reseller": lambda error: json.dumps(
        {"error": {"type": "<nil>", "message": f"{error.decode()}（traceid: 54） (request id: 2025)"}}
    ).encode(),
    "DashScope": lambda error: json.dumps(
        {"code": "InvalidParameter", "message": f"<400> InternalError.Algo.InvalidParameter: {_said(error)}"}
    ).encode(),
    "AWS": lambda error: json.dumps({"message": f"The model returned the following errors: {_said(error)}"}).encode(),
    "Cloudflare": lambda error: json.dumps(
        {"success": False, "errors": [{"message": f"AiError: {_said(error)}", "code": 5006}]}
    ).encode(),
    "a detail": lambda error: json.dumps({"detail": [{"msg": _said(error)}]}).encode(),
    "a list of words": lambda error: json.dumps({"errors": [_said(error)]}).encode(),
}
"""What relays put around an error."""


def line_of(row: Row) -> str:
    """A row as `docs/refusals.md` shows it."""
    sentence = " ".join(row.sentence.split()).replace("|", "\\|")
    if row.passed or row.instead:
        return f"| {row.status} | {sentence} | {row.instead or 'passed on'} |"
    changes = [
        f"without `{name}`" if value == GONE else f"`{name}`: `{json.dumps(value)}`"
        for name, value in row.wants.items()
    ]
    if any(name in ("messages", "contents", "input") for name in row.wants):
        changes = ["without the element that is refused"]
    return f"| {row.status} | {sentence} | {', '.join(changes)} |"
