"""Refusals are recognised in every envelope, and teach lasting corrections."""

# ruff: noqa: E501 (a case is one row of a table, its sentence as the provider sends it)

from __future__ import annotations

import json
import re
from typing import Any, NamedTuple

import msgspec
import pytest

from thoughtline.providers import refusals
from thoughtline.providers.refusals import Remedy, Rule
from thoughtline.replay.refusals import Correction, Evidence, Refusal, classify, learn


class Case(NamedTuple):
    """An error body as a provider sends it, and what it means."""

    rule: Rule
    family: str
    remedy: Remedy
    field: str
    place: str
    body: Any
    status: int = 400


def openai(message: str, code: object = "invalid_request_error", param: str | None = None) -> dict[str, Any]:
    return {"error": {"message": message, "type": "invalid_request_error", "param": param, "code": code}}


def anthropic(message: str) -> dict[str, Any]:
    error = {"type": "invalid_request_error", "message": message}
    return {"type": "error", "error": error, "request_id": "req_011CWkB65DcNzK2MiofhXx8b"}


def google(message: str) -> dict[str, Any]:
    return {"error": {"code": 400, "message": message, "status": "INVALID_ARGUMENT"}}


def bedrock(message: str) -> dict[str, Any]:
    return {"message": message}


def openrouter(body: Any, provider: str = "Moonshot AI") -> dict[str, Any]:
    raw = body if isinstance(body, str) else json.dumps(body)
    metadata = {"raw": raw, "provider_name": provider, "is_byok": True}
    return {
        "error": {"message": "Provider returned error", "code": 400, "metadata": metadata},
        "user_id": "user_2z4xm5Lo",
    }


def cerebras(message: str) -> dict[str, Any]:
    return {
        "message": message,
        "type": "invalid_request_error",
        "param": "validation_error",
        "code": "wrong_api_format",
    }


def unsupported(path: str) -> str:
    return f"{path}: property '{path}' is unsupported"


def encoded(body: Any) -> bytes:
    if isinstance(body, bytes):
        return body
    return body.encode() if isinstance(body, str) else json.dumps(body).encode()


# One case a line, however long: providers' own sentences.
# fmt: off
PASS_BACK = "in the thinking mode must be passed back to the API."
MIMO = {"code": "400", "message": "Param Incorrect", "param": f"The reasoning_content {PASS_BACK}", "type": ""}
RS = "rs_68c36b7dbd58819e8c05f6f1205cf2fc011e2e4dcb20dbb7"
FC = "fc_68c42de022c881948db7ed1cc2529f2e0202c9ad459e0d23"
MSG = "msg_0a1b2c3d4e5f60718293a4b5c6d7e8f9"
GEMINI_MISSING = "Function call is missing a thought_signature in functionCall parts. This is required for tools to work correctly, and missing thought_signature may lead to degraded model performance. Additional data, function call `default_api:Bash` , position 2. Please refer to https://ai.google.dev/gemini-api/docs/thought-signatures for more details."
THINKING_FIRST = "messages.1.content.0.type: Expected `thinking` or `redacted_thinking`, but found `{}`. When `thinking` is enabled, a final `assistant` message must start with a thinking block (preceeding the lastmost set of `tool_use` and `tool_result` blocks). We recommend you include thinking blocks from previous turns. To avoid this requirement, disable `thinking`. Please consult our documentation at https://docs.anthropic.com/en/docs/build-with-claude/extended-thinking"
NOT_MODIFIED = "messages.5.content.1: `thinking` or `redacted_thinking` blocks in the latest assistant message cannot be modified. These blocks must remain as they were in the original response."
INVALID_SIGNATURE = "messages.1.content.0: Invalid `signature` in `thinking` block"
BOUND = 'messages.5.content.0: Invalid `signature` in `thinking` block. The block is bound to a different conversation. Remove the block, or set `thinking.block_binding.prefix_mismatch_behavior` to "drop_block". That setting requires the `thinking-binding-controls-2026-08-01` value in the `anthropic-beta` header. The first changed message is 2.'
MODE = '"thinking.type.{}" is not supported for this model. Use "thinking.type.adaptive" and "output_config.effort" to control thinking behavior.'
NOT_PERSISTED = "Items are not persisted when `store` is set to false. Try again with `store` set to true, or remove this"
MISTRAL_DETAIL = {"type": "extra_forbidden", "loc": ["body", "messages", 1, "assistant", "reasoning_content"], "msg": "Extra inputs are not permitted", "input": "Let me think about the user's secret plan"}
GROQ = "'messages.1' : for 'role:assistant' the following must be satisfied[('messages.1' : property 'reasoning_content' is unsupported)]"
DEEPSEEK_CASES = {
    "v3.2": Case("missing", "deepseek", "restore", "reasoning_content", "/messages/2", openai("Missing `reasoning_content` field in the assistant message at message index 2. For more information, please refer to https://api-docs.deepseek.com/guides/thinking_mode#tool-calls")),
    "v4": Case("missing", "deepseek", "restore", "reasoning_content", "", openai(f"The `reasoning_content` {PASS_BACK}")),
    "v4 without marks": Case("missing", "deepseek", "restore", "reasoning_content", "", openai(f"The reasoning_content {PASS_BACK}")),
    "v4 of a reseller": Case("missing", "deepseek", "restore", "reasoning_content", "", openai(f"The `reasoning_content` {PASS_BACK} [trace_id=075eefa35d1757e5153230a63c46a7a4]")),
    "messages face": Case("missing", "deepseek", "restore", "content[].thinking", "", openai(f"The `content[].thinking` {PASS_BACK}")),
    "messages face without marks": Case("missing", "deepseek", "restore", "content[].thinking", "", openai(f"The content[].thinking {PASS_BACK}")),
    "responses face": Case("missing", "deepseek", "restore", "reasoning_text", "", openai(f"The `reasoning_text` {PASS_BACK}")),
    "responses face without marks": Case("missing", "deepseek", "restore", "reasoning_text", "", openai(f"The reasoning_text {PASS_BACK}")),
    "a relay's own check": Case("missing", "openai-chat", "restore", "reasoning_content", "/messages/51", openai("litellm.BadRequestError: OpenAIException - messages[51]: assistant message with tool_calls must include reasoning_content. Received Model Group=deepseek-v4-pro")),
}
KIMI_TEXT = "thinking is enabled but reasoning_content is missing in assistant tool call message at index 13"
KIMI_CASES = {
    "kimi": Case("missing", "kimi", "restore", "reasoning_content", "/messages/13", {"error": {"message": KIMI_TEXT, "type": "invalid_request_error"}}),
    "kimi at SiliconFlow": Case("missing", "kimi", "restore", "reasoning_content", "/messages/13", {"code": 20015, "message": KIMI_TEXT, "data": None}),
    "kimi behind a proxy's own error": Case("missing", "kimi", "restore", "reasoning_content", "/messages/13", {"error": "Internal server error", "details": f"400 {KIMI_TEXT}"}),
    "kimi thinking of a wrong type": Case("thinking-conflict", "kimi", "pass_on", "thinking", "", openai("the thinking field in the request (expected type object) is illegal, and bool is not acceptable")),
    "mimo": Case("missing", "mimo", "restore", "reasoning_content", "", {"error": MIMO}),
    "mimo stream": Case("missing", "mimo", "restore", "reasoning_content", "", "data:" + json.dumps({"error": MIMO})),
    "mimo event": Case("missing", "mimo", "restore", "reasoning_content", "", "event: error\ndata: " + json.dumps({"error": MIMO}) + "\n\ndata: [DONE]\n\n"),
    "mimo in one sentence": Case("missing", "mimo", "restore", "reasoning_content", "", openai(f"Param Incorrect: The reasoning_content {PASS_BACK}")),
}
ANTHROPIC_CASES = {
    "1 tool_use": Case("missing", "anthropic", "restore", "thinking", "/messages/1/content/0", anthropic(THINKING_FIRST.format("tool_use"))),
    "1 text": Case("missing", "anthropic", "restore", "thinking", "/messages/1/content/0", anthropic(THINKING_FIRST.format("text"))),
    "2": Case("altered", "anthropic", "restore_exact", "thinking", "/messages/5/content/1", anthropic(NOT_MODIFIED)),
    "3": Case("foreign", "anthropic", "drop_block", "signature", "/messages/1/content/0", anthropic(INVALID_SIGNATURE)),
    "3 without marks": Case("foreign", "anthropic", "drop_block", "signature", "/messages/3/content/0", anthropic("messages.3.content.0: Invalid signature in thinking block")),
    "3 at Copilot": Case("foreign", "copilot", "drop_block", "signature", "/messages/3/content/3", {"message": "messages.3.content.3: Invalid `signature` in `thinking` block", "code": "invalid_request_body"}),
    "3 at Copilot, flat": Case("foreign", "anthropic", "drop_block", "signature", "/messages/3/content/3", {"message": "messages.3.content.3: Invalid `signature` in `thinking` block"}),
    "3 at Vertex": Case("foreign", "anthropic", "drop_block", "signature", "/messages/1/content/0", google(json.dumps(anthropic(INVALID_SIGNATURE)))),
    "3 as an upstream error": Case("foreign", "anthropic", "drop_block", "signature", "/messages/1/content/0", {"type": "error", "error": {"type": "request_fail", "upstream_error": anthropic(INVALID_SIGNATURE)}}),
    "3 through the AWS SDK": Case(
        "foreign",
        "bedrock",
        "drop_block",
        "signature",
        "",
        openai(
            "InvokeModelWithResponseStream: operation error Bedrock Runtime: InvokeModelWithResponseStream, https response error StatusCode: 400, RequestID: 9f83dbec-9a43-41a3-bd42-12f1368c3089, ValidationException: ***.***.content.0: Invalid `signature` in `thinking` block (request id: 20260225141044173361254Wx47AhVR)"
        ),
    ),
    "4": Case("foreign", "anthropic", "drop_block", "data", "/messages/23/content/2", anthropic("messages.23.content.2: Invalid `data` in `redacted_thinking` block")),
    "5 null": Case("missing", "anthropic", "restore", "signature", "/messages/2/content/0", anthropic("messages.2.content.0.thinking.signature.str: Input should be a valid string")),
    "5 absent": Case("missing", "anthropic", "restore", "signature", "/messages/4/content/0", anthropic("messages.4.content.0.thinking.signature: Field required")),
    "5 at Bedrock": Case("missing", "bedrock", "restore", "signature", "/messages/4/content/0", bedrock("ValidationException: The model returned the following errors: messages.4.content.0.thinking.signature: Field required")),
    "6": Case("thinking-off", "anthropic", "bare_loop", "thinking", "/messages/1/content/0", anthropic("messages.1.content.0: When thinking is disabled, an `assistant` message in the final position cannot contain `thinking`. To use thinking blocks, enable `thinking` in your request.")),
    "7": Case("thinking-last", "anthropic", "drop_block", "thinking", "/messages/1", anthropic("messages.1: The final block in an assistant message cannot be `thinking`.")),
    "8": Case("bound-prefix-changed", "anthropic", "drop_block", "signature", "/messages/5/content/0", anthropic(BOUND)),
    "9": Case("forbidden", "anthropic", "drop_member", "block_binding", "/thinking", anthropic("thinking.adaptive.block_binding: Extra inputs are not permitted")),
    "9 at Bedrock": Case("forbidden", "bedrock", "drop_member", "block_binding", "/thinking", bedrock("The model returned the following errors: thinking.adaptive.block_binding: Extra inputs are not permitted")),
    "cache mark on thinking": Case("forbidden", "anthropic", "drop_member", "cache_control", "/messages/1/content/0", anthropic("messages.1.content.0.thinking.cache_control: Extra inputs are not permitted")),
    "a chat field": Case("forbidden", "anthropic", "strip_field", "reasoning_content", "/messages/3", anthropic("messages.3.reasoning_content: Extra inputs are not permitted")),
}
BEDROCK_CASES = {
    "Nova": Case("forbidden", "bedrock", "drop_block", "reasoningContent", "", bedrock("User messages cannot contain reasoning content. Please remove the reasoning content and try again.")),
    "gpt-oss": Case("forbidden", "bedrock", "drop_member", "signature", "", bedrock("This model doesn't support the reasoningContent.reasoningText.signature field. Remove reasoningContent.reasoningText.signature and try again.")),
    "null text": Case("missing", "bedrock", "add_filler_text", "text", "/messages/1/content/0", bedrock("1 validation error detected: Value null at 'messages.2.member.content.1.member.reasoningContent.reasoningText.text' failed to satisfy constraint: Member must not be null")),
    "null text, short": Case("missing", "bedrock", "add_filler_text", "text", "/messages/3/content/1", bedrock("Value at 'messages.4.member.content.2.member.reasoningContent.reasoningText.text' failed to satisfy constraint: Member must not be null")),
    "only reasoning": Case("thinking-last", "bedrock", "drop_block", "reasoningContent", "", bedrock("This model does not support assistant message prefill. The conversation must end with a user message.")),
    "Claude's order": Case("missing", "bedrock", "restore", "thinking", "/messages/1/content/0", bedrock("The model returned the following errors: " + THINKING_FIRST.format("tool_use"))),
    "Claude's blocks": Case("altered", "bedrock", "restore_exact", "thinking", "/messages/5/content/1", bedrock("ValidationException: The model returned the following errors: " + NOT_MODIFIED)),
    "Claude's signature": Case("foreign", "bedrock", "drop_block", "signature", "/messages/1/content/0", bedrock("The model returned the following errors: " + INVALID_SIGNATURE)),
    "Claude's signature, boto": Case("foreign", "bedrock", "drop_block", "signature", "/messages/1/content/0", bedrock("An error occurred (ValidationException) when calling the Converse operation: " + INVALID_SIGNATURE)),
    "Mantle": Case("foreign", "bedrock", "strip_seal", "encrypted_content", "", openai("encrypted content missing recognized prefix (expected `rsn_` or `smry_`)", "validation_error")),
}
GEMINI_CASES = {
    "missing": Case("missing", "gemini", "restore", "thought_signature", "/contents/1", google(GEMINI_MISSING)),
    "missing, in an array": Case("missing", "gemini", "restore", "thought_signature", "/contents/1", [google(GEMINI_MISSING)]),
    "missing, as documented": Case("missing", "gemini", "restore", "thought_signature", "/contents/0", google("Function call `FC1` in the `1.` content block is missing a `thought_signature`.")),
    "missing at Vertex": Case("missing", "gemini", "restore", "thought_signature", "/contents/1", google("Unable to submit request because function call `default_api:run_programming_task` in the 2. content block is missing a `thought_signature`. Learn more: https://docs.cloud.google.com/vertex-ai/thought-signatures")),
    "corrupted": Case("foreign", "gemini", "strip_seal", "thought_signature", "", google("Corrupted thought signature.")),
    "invalid": Case("foreign", "gemini", "strip_seal", "thought_signature", "", google("Invalid thought signature.")),
    "not valid at Vertex": Case("foreign", "gemini", "strip_seal", "thought_signature", "", [google("Unable to submit request because Thought signature is not valid.. Learn more: https://cloud.google.com/vertex-ai/generative-ai/docs/model-reference/gemini")]),
    "through OpenRouter": Case(
        "missing",
        "openrouter",
        "restore",
        "reasoning_details",
        "",
        openrouter("Gemini models require OpenRouter reasoning details to be preserved in each request. Please refer to our docs: https://openrouter.ai/docs/guides/best-practices/reasoning-tokens#preserving-reasoning-blocks. Upstream error: " + json.dumps(google(GEMINI_MISSING), indent=2) + "\n", "Google AI Studio"),
    ),
}
RESPONSES_CASES = {
    "no following item": Case("unpaired", "openai", "unpair", "id", RS, openai(f"Item '{RS}' of type 'reasoning' was provided without its required following item.", None, "input")),
    "call without reasoning": Case("unpaired", "openai", "unpair", "id", FC, openai(f"Item '{FC}' of type 'function_call' was provided without its required 'reasoning' item: '{RS}'.", None)),
    "message without reasoning": Case("unpaired", "openai", "unpair", "id", MSG, openai(f"Item '{MSG}' of type 'message' was provided without its required 'reasoning' item: '{RS}'.", None)),
    "not stored": Case("stale-id", "openai", "drop_item", "id", RS, openai(f"Item with id '{RS}' not found. {NOT_PERSISTED} item from your input.", None, "input"), 404),
    "not stored, Codex": Case("stale-id", "openai", "drop_item", "id", RS, openai(f"Item with id '{RS}' not found. {NOT_PERSISTED} item from your input.", None, "input"), 400),
    "message not stored": Case("stale-id", "openai", "unpair", "id", MSG, openai(f"Item with id '{MSG}' not found. {NOT_PERSISTED} item from your input.", None, "input"), 404),
    "zero data retention": Case("stale-id", "openai", "drop_item", "id", RS, openai(f"Item with id '{RS}' not found. Items are not persisted for Zero Data Retention organizations.", None), 404),
    "unverified": Case("foreign", "openai", "drop_item", "encrypted_content", RS, openai(f"The encrypted content for item {RS} could not be verified. Reason: Encrypted content could not be decrypted or parsed.", "invalid_encrypted_content")),
    "of another item": Case("misplaced", "openai", "drop_item", "encrypted_content", RS, openai(f"The encrypted content for item {RS} could not be verified. Reason: Encrypted content item_id did not match the target item id.", "invalid_encrypted_content")),
    "unverified, older": Case("foreign", "openai", "drop_item", "encrypted_content", "", openai("The encrypted content gAAAAABow2uGw-ThO2mFUOLhHFs4pWVsiAZzjd9hskFl could not be verified.", None)),
    "unverified, the code lost": Case("foreign", "openai", "drop_item", "encrypted_content", "", {"code": 0, "message": "The encrypted content gAAA...WA== could not be verified. Reason: Encrypted content could not be decrypted or parsed. trace_id: 075eefa35d1757e5153230a63c46a7a4", "type": "invalid_request_error"}),
    "unverified, the code alone": Case("foreign", "openai", "drop_item", "encrypted_content", "", openai("Something went wrong.", "invalid_encrypted_content")),
    "response not stored": Case("stale-id", "openai", "restore", "previous_response_id", "", openai("Previous response with id 'resp_68c36b7dbd58' not found.", "previous_response_not_found")),
    "twice": Case("duplicated", "openai", "drop_item", "id", RS, openai(f"Duplicate item found with id {RS}. Remove duplicate items from your input and try again.", None)),
    "no ciphertext": Case("thinking-unsupported", "openai", "stop_asking", "encrypted_content", "/include", openai("Encrypted content is not supported with this model.", None, "include")),
    "status": Case("forbidden", "openai", "drop_member", "status", "/input/1", openai("Unknown parameter: 'input[1].status'.", "unknown_parameter", "input[1].status")),
    "content": Case("forbidden", "openai", "drop_member", "content", "/input/112", openai("Invalid 'input[112].content': array too long. Expected an array with maximum length 0, but got an array with length 1 instead.", "array_above_max_length", "input[112].content")),
    "no summary": Case("missing", "openai", "add_filler_text", "summary", "/input/3", openai("Missing required parameter: 'input[3].summary'.", "missing_required_parameter", "input[3].summary")),
    "a foreign id": Case("foreign", "openai", "unpair", "id", "/input/2", openai("Invalid 'input[2].id': 'toolu_0192'. Expected an ID that begins with 'fc'.", "invalid_value")),
    "xai": Case("foreign", "xai", "strip_seal", "encrypted_content", "", {"code": "invalid-argument", "error": "Could not decrypt the provided encrypted_content. Ensure the value is the unmodified encrypted_content from a previous response."}),
    "xai summary": Case("missing", "xai", "add_filler_text", "summary", "", {"code": "invalid-argument", "error": "Could not decode the compaction blob. Ensure it is unmodified from the compact response."}),
    "of another caller": Case("foreign", "meta", "drop_item", "encrypted_content", "", {"type": "invalid_request_error", "message": "reasoning `encrypted_content` was not issued to this caller"}),
    "of another caller, relayed": Case("foreign", "meta", "drop_item", "encrypted_content", "", openai("Upstream request failed: [invalid_request_error] reasoning `encrypted_content` was not issued to this caller")),
}
FORBIDDING_CASES = {
    "mistral": Case("forbidden", "mistral", "strip_field", "reasoning_content", "/messages/1", {"object": "error", "message": {"detail": [MISTRAL_DETAIL]}, "type": "invalid_request_error", "param": None, "code": None}, 422),
    "mistral, newer": Case("forbidden", "mistral", "strip_field", "reasoning_content", "/messages/1", {"detail": [MISTRAL_DETAIL], "code": 3001}, 422),
    "mistral, two": Case("forbidden", "mistral", "drop_member", "cache", "/messages/0", {"detail": [{**MISTRAL_DETAIL, "loc": ["body", "messages", 0, "user", "cache"]}, MISTRAL_DETAIL]}, 422),
    "groq": Case("forbidden", "groq", "strip_field", "reasoning_content", "/messages/1", openai(GROQ, None)),
    "groq, several": Case("forbidden", "groq", "drop_member", "foo", "/messages/1", openai("'messages.1' : for 'role:assistant' the following must be satisfied[('messages.1' : property 'foo' is unsupported\n'messages.3' : property 'reasoning_content' is unsupported)]", None)),
    "cerebras": Case("forbidden", "cerebras", "strip_field", "reasoning_content", "/messages/2", cerebras(unsupported("messages.2.assistant.reasoning_content"))),
    "cerebras, several": Case("forbidden", "cerebras", "strip_field", "reasoning_content", "/messages/4", cerebras("\n".join(map(unsupported, ["seed", "messages.4.assistant.reasoning_content", "enable_thinking"])))),
    "cerebras parameter": Case("forbidden", "cerebras", "drop_member", "reasoning", "/reasoning", cerebras(unsupported("reasoning"))),
    "cerebras enable_thinking": Case("forbidden", "cerebras", "drop_member", "enable_thinking", "/enable_thinking", cerebras(unsupported("enable_thinking"))),
    "openai message": Case("forbidden", "openai-chat", "strip_field", "reasoning", "/messages/2", openai("Unknown parameter: 'messages[2].reasoning'.", "unknown_parameter", "messages[2].reasoning")),
    "openai reasoning_content": Case("forbidden", "openai-chat", "strip_field", "reasoning_content", "/messages/7", openai("Unknown parameter: 'messages[7].reasoning_content'.", "unknown_parameter", "messages[7].reasoning_content")),
    "openai call": Case("forbidden", "openai-chat", "drop_member", "extra_content", "/messages/2/tool_calls/0", openai("Unknown parameter: 'messages[2].tool_calls[0].extra_content'.", "unknown_parameter")),
    "openai any member": Case("forbidden", "openai-chat", "drop_member", "__copilotMessageSource", "/messages/1", openai("Unknown parameter: 'messages[1].__copilotMessageSource'.", "unknown_parameter", "messages[1].__copilotMessageSource")),
    "mistral any member": Case("forbidden", "mistral", "drop_member", "refusal", "/messages/1", {"detail": [{**MISTRAL_DETAIL, "loc": ["body", "messages", 1, "assistant", "refusal"]}]}, 422),
    "groq any member": Case("forbidden", "groq", "drop_member", "refusal", "/messages/1", openai("'messages.1' : for 'role:assistant' the following must be satisfied[('messages.1' : property 'refusal' is unsupported)]", None)),
    "cerebras any member": Case("forbidden", "cerebras", "drop_member", "refusal", "/messages/2", cerebras(unsupported("messages.2.assistant.refusal"))),
    "a library's copy": Case("forbidden", "anthropic", "drop_member", "provider_specific_fields", "/messages/1", openai("messages.1.provider_specific_fields: Extra inputs are not permitted")),
    "unexpected": Case("forbidden", "openai-chat", "drop_member", "refusal", "/messages/1", openai("Additional properties are not allowed ('refusal' was unexpected) - 'messages.1'")),
    "fireworks": Case("forbidden", "fireworks", "drop_member", "refusal", "/messages/1", openai("Extra inputs are not permitted, field: 'messages[1].refusal', value: None")),
    "google": Case("forbidden", "gemini", "drop_member", "foo", "/contents/1/parts/0", google("Invalid JSON payload received. Unknown name \"foo\" at 'contents[1].parts[0]': Cannot find field.")),
    "converse": Case("forbidden", "bedrock", "drop_member", "foo", "/messages/1", bedrock("#/messages/1: extraneous key [foo] is not permitted")),
    "openai, older": Case("forbidden", "openai-chat", "strip_field", "reasoning_content", "/messages/2", openai("Additional properties are not allowed ('reasoning_content' was unexpected) - 'messages.2'", None)),
    "sglang": Case("missing", "sglang", "restore", "reasoning_content", "", openai("ThinkingMode: thinking, invalid message without reasoning_content/tool_calls `...` after last user message")),
    "llama.cpp": Case("thinking-last", "llama.cpp", "add_filler_text", "content", "", openai("Expected 'content' or 'tool_calls' (ref: https://github.com/ggml-org/llama.cpp/issues/8367 & https://github.com/ggml-org/llama.cpp/issues/12279)")),
    "ollama": Case("thinking-unsupported", "ollama", "stop_asking", "think", "", {"error": '"llama3.2:1b" does not support thinking'}),
    "claude can't think": Case("thinking-unsupported", "ollama", "stop_asking", "think", "", anthropic("'claude-3-5-haiku-20241022' does not support thinking.")),
    "a model can't think": Case("thinking-unsupported", "openai-chat", "stop_asking", "thinking", "", openai("This model does not support reasoning.")),
    "gemini can't think": Case("thinking-unsupported", "gemini", "stop_asking", "thinkingConfig", "", google("Thinking is not enabled for models/gemini-2.0-flash")),
    "no reasoning items": Case("forbidden", "openai", "strip_field", "items", "/input/3", openai('input[3].type "reasoning" is not a valid input item type')),
}

# fmt: on

CASES = {
    **{f"deepseek {name}": case for name, case in DEEPSEEK_CASES.items()},
    **KIMI_CASES,
    **{f"anthropic {name}": case for name, case in ANTHROPIC_CASES.items()},
    **{f"bedrock {name}": case for name, case in BEDROCK_CASES.items()},
    **{f"gemini {name}": case for name, case in GEMINI_CASES.items()},
    **{f"responses {name}": case for name, case in RESPONSES_CASES.items()},
    **{f"forbidding {name}": case for name, case in FORBIDDING_CASES.items()},
}
of_every_case = pytest.mark.parametrize("case", CASES.values(), ids=CASES)


def told(refusal: Refusal | None) -> tuple[str, ...]:
    assert refusal is not None
    return refusal.rule, refusal.family, refusal.remedy, refusal.field, refusal.place


@of_every_case
def test_a_refusal_is_recognised(case: Case) -> None:
    """Each known sentence gives its rule, its provider, the remedy, the field and the place."""
    refusal = classify(case.status, encoded(case.body))
    assert told(refusal) == case[:5]


@of_every_case
def test_a_refusal_is_recognised_through_openrouter(case: Case) -> None:
    """OpenRouter's envelope, and another around it, change only whose request the place refers to."""
    once = openrouter(encoded(case.body).decode())
    for body in (once, openrouter(once)):
        refusal = classify(case.status, encoded(body))
        assert told(refusal) == case[:5]
        assert refusal is not None
        assert refusal.evidence.is_wrapped


@of_every_case
def test_evidence_holds_nothing_of_the_body(case: Case) -> None:
    """Status, a known code and a digest: no id, no token, no word of the conversation."""
    refusal = classify(case.status, encoded(case.body))
    assert refusal is not None
    evidence = refusal.evidence
    assert evidence.status == case.status
    assert re.fullmatch(r"[0-9a-f]{16}", evidence.fingerprint)
    assert re.fullmatch(r"[A-Za-z_-]{0,40}|\d{1,5}", evidence.code)
    written = msgspec.json.encode(evidence).decode()
    for token in re.findall(r"\w*[a-z]{2,7}_\w*\d\w*|gAAA[\w=.-]+|req_\w+", encoded(case.body).decode()):
        assert token not in written


def test_every_meaning_has_a_case() -> None:
    """Every row of the table has an example sentence."""
    read = set()
    for case in CASES.values():
        refusal = classify(case.status, encoded(case.body))
        assert refusal is not None
        read.add((refusal.rule, refusal.family, refusal.remedy))
    assert {(row.rule, family, row.remedy) for family, row in refusals()} <= read


def test_the_same_sentence_about_another_item_is_the_same_evidence() -> None:
    """A fingerprint ignores ids, numbers, names and a reseller's additions."""

    def fingerprint(message: str) -> str:
        refusal = classify(400, encoded(openai(message)))
        assert refusal is not None
        return refusal.evidence.fingerprint

    pairs = [
        (GEMINI_MISSING, GEMINI_MISSING.replace("Bash", "read_the_file").replace("position 2", "position 14")),
        (KIMI_TEXT, KIMI_TEXT.replace("13", "2")),
        (INVALID_SIGNATURE, "messages.12.content.3: Invalid `signature` in `thinking` block (request id: 2026022514)"),
        (f"Item '{RS}' of type 'reasoning' was provided without its required following item.",) * 2,
        (f"Duplicate item found with id {RS}", f"Duplicate item found with id {FC}."),
    ]
    for first, second in pairs:
        assert fingerprint(first) == fingerprint(second)
    assert len({fingerprint(first) for first, _ in pairs}) == len(pairs)


def test_an_unknown_code_is_not_repeated() -> None:
    """A code from a body may be anything, so an unknown one is not repeated."""
    refusal = classify(400, encoded(openai(KIMI_TEXT, "sk-live-0123456789abcdef")))
    assert refusal is not None
    assert refusal.evidence.code == "invalid_request_error"
    flat = classify(400, encoded({"code": "sk-live-0123456789abcdef", "message": KIMI_TEXT}))
    assert flat is not None
    assert flat.evidence.code == ""


def test_what_may_not_be_modified_is_never_stripped() -> None:
    """Something was already removed: the only remedy is to send what was stored."""
    for message in (
        NOT_MODIFIED,
        NOT_MODIFIED.replace("`", ""),
        "The model returned the following errors: " + NOT_MODIFIED,
    ):
        refusal = classify(400, encoded(anthropic(message)))
        assert refusal is not None
        assert refusal.remedy == "restore_exact"


# What is learned

EVIDENCE = Evidence(400, "invalid_request_error", "0" * 16)


def learned(case: Case, sent_filler: str | None = None) -> Correction | None:
    refusal = classify(case.status, encoded(case.body))
    assert refusal is not None
    return learn(refusal, "p", "https://p.example", "m", 1000.0, 60.0, sent_filler)


@pytest.mark.parametrize(
    ("name", "change", "scope", "field"),
    [
        ("deepseek v3.2", "requires", "calls_after_user", "reasoning_content"),
        ("deepseek v4", "requires", "all_with_tools", "reasoning_content"),
        ("deepseek messages face", "requires", "all_with_tools", "content[].thinking"),
        ("kimi", "requires", "calls", "reasoning_content"),
        ("mimo", "requires", "all_with_tools", "reasoning_content"),
        ("anthropic 1 tool_use", "requires", "loop_head", "thinking"),
        ("gemini missing", "requires", "first_call_of_step", "thought_signature"),
        ("gemini through OpenRouter", "requires", "first_call_of_step", "reasoning_details"),
        ("anthropic 8", "binds_prefix", "", "signature"),
        ("anthropic 9", "drops", "", "block_binding"),
        ("bedrock Nova", "forbids", "", "reasoningContent"),
        ("bedrock gpt-oss", "drops", "", "signature"),
        ("bedrock null text", "needs_filler", "", "text"),
        ("responses xai summary", "needs_filler", "", "summary"),
        ("responses no following item", "requires", "pairs", "id"),
        ("forbidding mistral", "forbids", "", "reasoning_content"),
        ("forbidding groq", "forbids", "", "reasoning_content"),
        ("forbidding ollama", "never_thinks", "", "think"),
        ("responses no ciphertext", "never_thinks", "", "encrypted_content"),
    ],
)
def test_a_refusal_corrects_the_contract(name: str, change: str, scope: str, field: str) -> None:
    """What a model always requires or never accepts is learned, with its evidence and an expiry."""
    correction = learned(CASES[name])
    assert correction is not None
    assert (correction.change, correction.scope, correction.field) == (change, scope, field)
    assert (correction.provider, correction.endpoint, correction.model) == ("p", "https://p.example", "m")
    assert (correction.learned_at, correction.expires_at, correction.filler) == (1000.0, 1060.0, None)
    assert msgspec.json.decode(msgspec.json.encode(correction), type=Correction) == correction


@pytest.mark.parametrize(
    "name",
    [
        "anthropic 2",
        "anthropic 3",
        "anthropic 5 null",
        "anthropic 6",
        "gemini corrupted",
        "responses not stored",
        "responses unverified",
        "responses twice",
    ],
)
def test_one_bad_item_teaches_nothing(name: str) -> None:
    """A refusal of this request's own content says nothing about the next."""
    assert learned(CASES[name]) is None


@pytest.mark.parametrize("filler", ["", " "])
def test_a_refused_filler_is_learned(filler: str) -> None:
    """Reasoning is reported missing although a filler was sent: that filler is not accepted here."""
    correction = learned(CASES["kimi"], filler)
    assert correction is not None
    assert (correction.change, correction.filler) == ("refuses_filler", filler)


def test_a_correction_ends() -> None:
    """It is valid from when it was learned until it expires."""
    correction = Correction("p", "e", "m", "forbids", "reasoning", EVIDENCE, learned_at=10.0, expires_at=20.0)
    assert [correction.holds_at(now) for now in (9.0, 10.0, 19.9, 20.0)] == [False, True, True, False]
