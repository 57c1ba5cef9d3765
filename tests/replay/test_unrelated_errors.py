"""Errors about anything else, and arbitrary bodies: none is taken for a refusal, none raises, none leaks."""

# ruff: noqa: E501 (a case is one row of a table, its sentence as the provider sends it)

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.replay.test_refusals import (
    BOUND,
    GEMINI_MISSING,
    GROQ,
    INVALID_SIGNATURE,
    KIMI_TEXT,
    MISTRAL_DETAIL,
    PASS_BACK,
    anthropic,
    bedrock,
    cerebras,
    encoded,
    google,
    openai,
    openrouter,
    told,
    unsupported,
)
from thoughtline.replay.refusals import classify

# One case a line, however long: providers' own sentences.
# fmt: off
UNRELATED: list[tuple[int, Any]] = [
    # context and size
    (400, openai("This model's maximum context length is 128000 tokens. However, your messages resulted in 130412 tokens.")),
    (400, openai("Your input exceeds the context window of this model.", "context_length_exceeded", "input")),
    (400, anthropic("prompt is too long: 213462 tokens > 200000 maximum")),
    (400, google("The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).")),
    (400, anthropic("max_tokens: 200000 > 64000, which is the maximum allowed number of output tokens")),
    (400, anthropic("`max_tokens` must be greater than `thinking.budget_tokens`.")),
    (400, openai("Range of max_tokens should be [1, 8192]", "invalid_parameter_error")),
    (400, bedrock("Input is too long for requested model.")),
    (413, anthropic("Request exceeds the maximum size")),
    # keys, money, limits, places
    (401, openai("Incorrect API key provided: sk-abc", "invalid_api_key")),
    (401, anthropic("invalid x-api-key")),
    (402, openai("Insufficient Balance")),
    (400, anthropic("Your credit balance is too low to access the Anthropic API.")),
    (400, google("API key not valid. Please pass a valid API key.")),
    (400, google("User location is not supported for the API use.")),
    (403, {"error": {"message": "Country, region, or territory not supported", "code": "unsupported_country"}}),
    (403, {"message": "The security token included in the request is invalid."}),
    (429, anthropic("Number of request tokens has exceeded your per-minute rate limit")),
    (429, {"error": {"code": 429, "message": "Resource has been exhausted", "status": "RESOURCE_EXHAUSTED"}}),
    (400, {"code": 20012, "message": "Model does not exist. Please check it carefully.", "data": None}),
    (400, {"code": 20015, "message": "length of prompt_tokens (70000) must be less than max_seq_len (65536).", "data": None}),
    # models and routes
    (404, openai("The model `gpt-9` does not exist or you do not have access to it.", "model_not_found")),
    (404, anthropic("model: claude-9")),
    (404, google("models/gemini-9 is not found for API version v1beta")),
    (404, {"error": {"message": "No endpoints found that support tool use.", "code": 404}}),
    (404, openai("Response with id 'resp_0123' not found.", None)),
    (404, openai("No such File object: file_0123", None, "id")),
    (400, bedrock("The provided model identifier is invalid.")),
    (400, bedrock("Invocation of model ID anthropic.claude with on-demand throughput isn't supported.")),
    # signatures that are not ours
    (403, {"message": "The request signature we calculated does not match the signature you provided.", "code": "SignatureDoesNotMatch"}),
    (400, {"__type": "InvalidSignatureException", "message": "Signature expired: 20261115T100000Z is now earlier than 20261115T101500Z"}),
    (400, {"message": "Signature expired: 20261115T100000Z is now earlier than 20261115T101500Z (20261115T103000Z - 15 min.)"}),
    (400, {"error": {"message": "Invalid signature", "code": "invalid_signature"}}),
    (400, {"error": "Webhook signature verification failed"}),
    (400, {"error": {"message": "JWT signature verification failed: invalid signature"}}),
    (400, {"error": "invalid_grant", "error_description": "Invalid JWT Signature."}),
    (400, {"message": "'signature' field required in header"}),
    # content
    (400, openai("Invalid image data.", "invalid_image", "messages[0].content[1]")),
    (400, anthropic("messages.0.content.1.image.source.base64: invalid base64 data")),
    (400, google("Unable to process input image. Please retry or report in troubleshooting")),
    (400, openai("Your request was rejected as a result of our safety system.", "content_policy_violation")),
    (400, {"error": {"code": "content_filter", "message": "The response was filtered due to the prompt triggering Azure OpenAI's content management policy."}}),
    (400, {"error": {"code": "1301", "message": "系统检测到输入或生成内容可能包含不安全或敏感内容"}}),
    (400, anthropic("messages.3: all messages must have non-empty content except for the optional final assistant message")),
    (400, anthropic("messages: text content blocks must be non-empty")),
    (400, bedrock("The text field in the ContentBlock object at messages.5.content.0 is blank.")),
    (400, openai("text content is empty")),
    # tools
    (400, openai("Invalid schema for function 'look': In context=(), 'additionalProperties' is required", "invalid_function_parameters", "tools[0].function.parameters")),
    (400, anthropic("tools.0.custom.input_schema: JSON schema is invalid.")),
    (400, anthropic("messages.2.content.0: unexpected `tool_use_id` found in `tool_result` blocks: toolu_01.")),
    (400, anthropic("messages.1.content.1.tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'")),
    (400, anthropic("messages.1: `tool_use` ids were found without `tool_result` blocks immediately after: toolu_01.")),
    (400, anthropic("messages: `tool_use` ids must be unique")),
    (400, google("Please ensure that function call turn comes immediately after a user turn or after a function response turn.")),
    (400, openai("No tool output found for function call call_0123.", None, "input")),
    (400, openai("No tool output found for tool call call-a.")),
    (400, openai("An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'.")),
    (400, openai("Invalid 'input[4].call_id': string too long. Expected a string with maximum length 64.", "string_above_max_length")),
    (400, openai("Invalid value for 'tool_choice': no tool named 'look'", "invalid_value", "tool_choice")),
    (400, openai("unknown variant 'web_search', expected 'function'")),
    (400, openai("Unknown parameter: 'messages[0].tool_calls'.", "unknown_parameter", "messages[0].tool_calls")),
    (400, openai("Unknown parameter: 'messages[2].tool_calls[0].id'.", "unknown_parameter")),
    (400, {"object": "error", "message": "Tool call id was call_1 but must be a-z, A-Z, 0-9, with a length of 9.", "code": 3280}),
    (400, {"error": {"message": "Failed to call a function.", "code": "tool_use_failed", "failed_generation": KIMI_TEXT}}),
    # parameters
    (400, anthropic("temperature: range: 0..1")),
    (400, anthropic("`temperature` and `top_p` cannot both be specified for this model.")),
    (400, openai("Unsupported value: 'temperature' does not support 0.2 with this model.", "unsupported_value", "temperature")),
    (400, openai("Unsupported value: 'minimal' is not supported with the 'o4-mini' model.", "unsupported_value", "reasoning.effort")),
    (400, openai("Unrecognized request argument supplied: reasoning_effort")),
    (400, openai("Unsupported parameter: 'max_tokens' is not supported with this model.", "unsupported_parameter")),
    (400, {"error": 'invalid reasoning value: "x" (must be "minimal", "low", "medium", "high", or "none")'}),
    (400, anthropic("thinking.budget_tokens: Input should be greater than or equal to 1024")),
    (400, anthropic("messages.0.content.0.text.cache_control.ttl: Extra inputs are not permitted")),
    (400, cerebras(unsupported("seed"))),
    (422, {"detail": [{**MISTRAL_DETAIL, "loc": ["body", "messages", 1, "assistant", "name"]}]}),
    (422, {"detail": [{"type": "missing", "loc": ["body", "model"], "msg": "Field required"}]}),
    (422, openai(f"The `reasoning_content` {PASS_BACK}")),
    (400, google("Request contains an invalid argument.")),
    (400, {"error": {"message": "invalid body request", "code": "invalid_request_body"}}),
    (400, openai("We could not parse the JSON body of your request.")),
    # other statuses never are refusals
    *[(status, openai(f"The `reasoning_content` {PASS_BACK}")) for status in (200, 401, 403, 404, 408, 409, 413, 429, 500, 502, 503, 529)],
    (404, anthropic(INVALID_SIGNATURE)),
    (500, google(GEMINI_MISSING)),
    # our words, quoted
    (400, openai(f"Invalid prompt: 'The `reasoning_content` {PASS_BACK}'")),
    (400, openai("Could not parse tool arguments: " + json.dumps(openai(KIMI_TEXT)))),
    (400, {"error": {"message": "bad input", "input": INVALID_SIGNATURE, "body": {"message": INVALID_SIGNATURE}}}),
    (400, {"prompt": KIMI_TEXT}),
    (400, KIMI_TEXT),
    (400, json.dumps(KIMI_TEXT)),
    (400, f"<html><body>{KIMI_TEXT}</body></html>"),
    (400, openrouter("upstream connect error or disconnect/reset before headers")),
    (400, openrouter(openai("This model's maximum context length is 131072 tokens."))),
]
# fmt: on


@pytest.mark.parametrize(("status", "body"), UNRELATED, ids=range(len(UNRELATED)))
def test_other_errors_are_left_alone(status: int, body: Any) -> None:
    """Another status, another subject, or our words in a quotation: not a refusal."""
    assert classify(status, encoded(body)) is None


NESTED = encoded(openai(KIMI_TEXT)).decode()
for _ in range(5):
    NESTED = json.dumps(openrouter(NESTED))
HOSTILE = {
    "empty": b"",
    "white": b" \n\t",
    "not JSON": b"Bad Request",
    "half": b'{"error":{"message":"thinking is enabled but',
    "data alone": b"data:",
    "not UTF-8": b"\xff\xfe\x00{",
    "number": b"400",
    "null": b"null",
    "deep lists": b"[" * 200_000,
    "deep objects": b'{"error":' * 100_000,
    "deep and closed": b'{"error":' * 900 + b"1" + b"}" * 900,
    "wide": b"[" + b'{"message":"x"},' * 100_000 + b"{}]",
    "huge sentence": json.dumps(openai("messages.1." * 200_000)).encode(),
    "huge quotes": json.dumps(openai("'messages.1' : " * 200_000)).encode(),
    "many lines": json.dumps(openai("\n".join(["property 'messages.1.x"] * 150_000))).encode(),
    "too big": json.dumps(openai(KIMI_TEXT + "x" * (5 << 20))).encode(),
    "huge number": b'{"error":{"code":' + b"9" * 10_000 + b"}}",
    "lone surrogate": b'{"error":{"message":"\\ud800","code":"\\udfff","param":"\\ud800 x"}}',
    "wrong types": b'{"error":{"message":[1],"code":{},"param":7,"type":null,"loc":{}},"detail":[[],null,{"loc":[null],"msg":"m"}]}',
}


@pytest.mark.parametrize("body", HOSTILE.values(), ids=HOSTILE)
@pytest.mark.parametrize("status", [400, 404, 422])
def test_hostile_bodies_are_no_refusals(status: int, body: bytes) -> None:
    """No upstream body can raise, nor keep us busy forever."""
    assert classify(status, body) is None


@pytest.mark.parametrize(
    "body",
    [
        encoded(openai(KIMI_TEXT)) + b"\xff\xfe",
        b"\xef\xbb\xbf" + encoded(openai(KIMI_TEXT)),
        json.dumps(json.dumps(openai(KIMI_TEXT))).encode(),
        NESTED.encode(),
        json.dumps(openai(KIMI_TEXT + " \ud800")).encode(),
    ],
    ids=["trailing bytes", "byte order mark", "JSON in a string", "five envelopes", "lone surrogate"],
)
def test_damaged_envelopes_are_still_read(body: bytes) -> None:
    """Changes that relays make to a body don't hide a refusal."""
    assert told(classify(400, body))[:2] == ("missing", "kimi")


def test_a_place_out_of_all_bounds_is_none() -> None:
    """Numbers from outside are bounded."""
    refusal = classify(400, encoded(anthropic(f"messages.{'9' * 150}: Invalid `signature` in `thinking` block")))
    assert refusal is not None
    assert len(refusal.place) < 32


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.sampled_from([KIMI_TEXT, BOUND, GROQ]),
    lambda inner: (
        st.lists(inner)
        | st.dictionaries(
            st.sampled_from(["error", "message", "code", "param", "detail", "loc", "msg", "metadata", "raw", "type"]),
            inner,
        )
    ),
)


@settings(deadline=None)
@given(status=st.integers(), body=st.binary())
def test_no_bytes_raise(status: int, body: bytes) -> None:
    """Any status and any bytes give an answer, and the same one again."""
    assert classify(status, body) == classify(status, body)


@settings(deadline=None)
@given(status=st.sampled_from([400, 404, 422]), value=json_values)
def test_no_json_raises(status: int, value: Any) -> None:
    """Any JSON in the shape of an error gives an answer, and the same one again."""
    body = json.dumps(value).encode()
    assert classify(status, body) == classify(status, body)


@settings(deadline=None)
@given(token=st.text(alphabet="abcdefghijklmnopqrstuvwxyzABCDEFGH0123456789+/=_-", min_size=12, max_size=80))
def test_no_token_reaches_the_evidence(token: str) -> None:
    """Whatever a body repeats of the request, evidence does not contain it."""
    secret = f"sk-{token}"
    for message in (
        f"The encrypted content {secret} could not be verified.",
        f"Item with id 'rs_{secret}' not found.",
        f"Duplicate item found with id {secret}",
        f"{KIMI_TEXT} {secret}",
    ):
        refusal = classify(400, encoded({"message": message, "code": secret, "type": secret, "param": secret}))
        if refusal is not None:
            assert secret not in msgspec.json.encode(refusal.evidence).decode()
