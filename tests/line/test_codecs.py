"""Codecs: reading the reasoning of one message and writing it back, in every shape."""

from __future__ import annotations

import json
from typing import Any

import pytest
from msgspec.structs import replace

from tests.line.test_openrouter_codec import ENTRY, OPENROUTER, WHY
from tests.wire_cases import RESPONSES, WireCase, name_of
from thoughtline import providers
from thoughtline.library.codecs import FormatReasoningCodec, ReasoningCodec, Thought, codec_for
from thoughtline.providers import Dialect, ProviderRow
from thoughtline.replay.detection import resolve
from thoughtline.values.destination import Destination
from thoughtline.values.errors import DecodeError, EncodeError, ForeignSeal
from thoughtline.values.items import (
    DEEPSEEK_V1,
    GOOGLE_GEMINI_V1,
    NO_RAW,
    UNKNOWN_FORMAT,
    ReasoningEncrypted,
    ReasoningFormat,
    ReasoningSummary,
    ReasoningText,
)
from thoughtline.values.turns import FormatName

CODECS = [OPENROUTER, codec_for("deepseek"), codec_for("anthropic"), codec_for("gemini"), codec_for("openai")]
NO_MESSAGE = [b"", b"{", b"\xff", b"5", b"null", b'{"role":"assistant"} x']


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("raw", [*NO_MESSAGE, {"choices": 5, "candidates": 5, "output": 5, "content": 5}, [5]])
def test_what_is_no_message_is_refused_by_name(codec: ReasoningCodec, raw: Any) -> None:
    """Never with another library's error."""
    with pytest.raises(DecodeError):
        codec.parse_response(raw)


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("message", [*NO_MESSAGE, b"[5]"])
def test_nothing_is_written_on_what_is_no_message(codec: ReasoningCodec, message: bytes) -> None:
    """With or without items to write."""
    for items in ([], [WHY]):
        with pytest.raises(DecodeError):
            codec.write_assistant(message, items)


# --- every other shape -----------------------------------------------------------------------------------------------

STRIPPED = ("reasoning_content", "reasoning", "reasoning_details", "reasoning_text", "reasoning_opaque", "thinking")
BLOCKS = ("thinking", "redacted_thinking", "reasoning")
IN_ORDER = (
    *("anthropic_messages", "bedrock_converse", "gemini_generate", "openai_responses"),
    *("gemini_code_assist", "gemini_interactions"),
)
ANSWER: dict[str, list[str | int]] = {
    "openai_chat": ["choices", 0, "message"],
    "ollama_chat": ["message"],
    "bedrock_converse": ["output", "message"],
    "gemini_generate": ["candidates", 0, "content"],
    "gemini_code_assist": ["response", "candidates", 0, "content"],
    "gemini_interactions": ["steps"],
    "openai_responses": ["output"],
}


def stripped(message: Any) -> Any:
    """The message from a client that forgets."""
    if isinstance(message, list):
        return [element for element in message if element.get("type") not in ("reasoning", "thought")]
    bare = {name: value for name, value in message.items() if name not in STRIPPED}
    for name in ("content", "parts"):
        if isinstance(bare.get(name), list):
            bare[name] = [without_signature(block) for block in bare[name] if not is_reasoning(block)]
    return bare


def is_reasoning(block: Any) -> bool:
    return block.get("type") in BLOCKS or bool(block.get("thought")) or "reasoningContent" in block


def without_signature(block: Any) -> Any:
    return {name: value for name, value in block.items() if name not in ("thoughtSignature", "thought_signature")}


def answer_of(case: WireCase) -> Any:
    message = json.loads(case.bytes_of("response.json") or b"")
    for step in ANSWER.get(case.format.name, []):
        message = message[step]
    return message


def without_raw(items: tuple[Thought, ...]) -> list[Thought]:
    return [replace(item, raw=NO_RAW) for item in items]


def codec_of(case: WireCase) -> FormatReasoningCodec:
    return FormatReasoningCodec(case.format.name, case.dialect)


def thinks(case: WireCase) -> bool:
    return bool(codec_of(case).parse_response(case.bytes_of("response.json") or b""))


THINKING = [case for case in RESPONSES if thinks(case) and "generate_prompt" not in case.name]


@pytest.mark.parametrize("case", THINKING, ids=name_of)
def test_reasoning_of_an_answer_goes_back_on_the_answer_without(case: WireCase) -> None:
    """A client forgot it, the codec restores it: if reasoning has an order there, the answer is complete again."""
    codec, message = codec_of(case), answer_of(case)
    items = codec.parse_response(case.bytes_of("response.json") or b"")
    written = codec.write_assistant(json.dumps(stripped(message)).encode(), items)
    if case.format.name in IN_ORDER:
        assert json.loads(written) == message
    if "string_beside_details" not in case.name:  # there the string becomes an entry of its own
        assert without_raw(codec.parse_response(written)) == without_raw(items)


@pytest.mark.parametrize("case", THINKING, ids=name_of)
def test_reasoning_that_is_there_stays_as_it_is(case: WireCase) -> None:
    """Writing a message's own reasoning changes no byte of it."""
    codec = codec_of(case)
    message = json.dumps(
        {"role": "assistant", **answer_of(case)} if case.format.name == "openai_chat" else answer_of(case)
    )
    items = codec.parse_response(message.encode())
    assert codec.write_assistant(message.encode(), items) == message.encode()
    assert codec.write_assistant(message.encode(), ()) == message.encode()


def test_thinking_between_calls_goes_back_between_them() -> None:
    """Anthropic refuses blocks that moved."""
    codec = codec_for("anthropic")
    blocks = [
        {"type": "thinking", "thinking": "a", "signature": "s1"},
        {"type": "text", "text": "x"},
        {"type": "redacted_thinking", "data": "d"},
        {"type": "thinking", "thinking": "b", "signature": "s2", "new": True},
        {"type": "tool_use", "id": "t1", "name": "f", "input": {}},
        {"type": "tool_use", "id": "t2", "name": "f", "input": {}},
    ]
    items = codec.parse_response(blocks)
    assert [getattr(item, "index", None) for item in items] == [0, 2, 3]
    bare = {"role": "assistant", "content": [blocks[1], *blocks[4:]]}
    assert json.loads(codec.write_assistant(json.dumps(bare).encode(), items))["content"] == blocks


def gemini(*parts: dict[str, Any]) -> bytes:
    return json.dumps({"role": "model", "parts": parts}).encode()


def test_a_gemini_signature_goes_back_on_its_own_call() -> None:
    """By the call's id, or by its place if it has none; never on another call."""
    codec = codec_for("gemini")
    named = [{"functionCall": {"id": str(at), "name": "f", "args": {}}} for at in range(3)]
    for calls in (named, [{"functionCall": {"name": "f", "args": {"n": at}}} for at in range(3)]):
        whole = gemini({"text": "hm", "thought": True}, calls[0] | {"thoughtSignature": "c2ln"}, calls[1], calls[2])
        items = codec.parse_response(whole)
        assert [type(item) for item in items] == [ReasoningText, ReasoningEncrypted]
        assert json.loads(codec.write_assistant(gemini(*calls), items)) == json.loads(whole)


def test_reasoning_that_is_there_gives_way() -> None:
    """A message has the written reasoning, and none that it had before."""
    old, new = {"type": "thinking", "thinking": "old", "signature": "s1"}, ReasoningText("new", None, UNKNOWN_FORMAT)
    text = {"type": "text", "text": "x"}
    for provider, message, expected in (
        (
            "deepseek",
            {"role": "assistant", "reasoning_content": "old"},
            {"role": "assistant", "reasoning_content": "new"},
        ),
        (
            "openrouter",
            {"reasoning_details": [{"type": "reasoning.text"}]},
            {"reasoning_details": [{**ENTRY, "text": "new"}]},
        ),
        (
            "anthropic",
            {"role": "assistant", "content": [old, text, old]},
            {"role": "assistant", "content": [{"type": "thinking", "thinking": "new"}, text]},
        ),
    ):
        assert json.loads(codec_for(provider).write_assistant(json.dumps(message).encode(), [new])) == expected


def test_a_signature_that_is_there_gives_way() -> None:
    """A signature on a call is reasoning, too."""
    calls = [{"functionCall": {"id": str(at), "name": "f", "args": {}}} for at in range(2)]
    stale = gemini(calls[0], {**calls[1], "thoughtSignature": "b2xk"})
    written = codec_for("gemini").write_assistant(stale, [ReasoningEncrypted("bmV3", GOOGLE_GEMINI_V1, "0", 0)])
    assert json.loads(written)["parts"] == [{**calls[0], "thoughtSignature": "bmV3"}, calls[1]]


def test_what_a_user_said_is_no_reasoning() -> None:
    """Even if it has a reasoning type."""
    quoted = {"role": "user", "content": [{"type": "thinking", "thinking": "quoted", "signature": "s1"}]}
    assert codec_for("anthropic").parse_response(quoted) == codec_for("mistral").parse_response(quoted) == ()


def test_a_signature_whose_call_is_gone_is_refused() -> None:
    """It does not belong to another call."""
    other = gemini({"functionCall": {"id": "2", "name": "f", "args": {}}})
    with pytest.raises(EncodeError):
        codec_for("gemini").write_assistant(other, [ReasoningEncrypted("c2ln", GOOGLE_GEMINI_V1, "1", 0)])


def test_an_openrouter_entry_of_gemini_fits_the_native_wire() -> None:
    """Both name the call that the signature is for."""
    entry = {"type": "reasoning.encrypted", "data": "c2ln", "format": "google-gemini-v1", "id": "1", "index": 0}
    call = {"functionCall": {"id": "1", "name": "f", "args": {}}}
    written = codec_for("google").write_assistant(gemini(call), OPENROUTER.parse_response([entry]))
    assert json.loads(written)["parts"] == [{**call, "thoughtSignature": "c2ln"}]


def test_a_step_of_responses_is_a_list() -> None:
    """A single object, a whole response and an empty step are also read."""
    codec = codec_for("openai")
    element = {"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "told"}]}
    element["encrypted_content"] = "gAAAA"
    items = codec.parse_response(element)
    assert [type(item) for item in items] == [ReasoningSummary, ReasoningEncrypted]
    assert json.loads(codec.write_assistant(b"[]", items)) == [element]
    assert codec.parse_response({"output": []}) == codec.parse_response([]) == codec.parse_response({"output": None})


def test_reasoning_next_to_elements_of_the_user_is_decoded() -> None:
    """A compaction returns them among the model's."""
    user = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "hi"}]}
    element = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "gAAAA"}
    assert [type(item) for item in codec_for("openai").parse_response([user, element])] == [ReasoningEncrypted]


@pytest.mark.parametrize(
    ("provider", "message"),
    [
        ("deepseek", {"role": "user", "content": "hi"}),
        ("anthropic", {"role": "user", "content": "hi"}),
        ("gemini", {"role": "user", "parts": []}),
        ("openai", [{"role": "user", "content": "hi"}]),
        ("openai", [{"role": "assistant", "content": "a"}, {"role": "user", "content": "b"}]),
    ],
)
def test_reasoning_is_never_written_on_what_a_user_said(provider: str, message: Any) -> None:
    """Only the model's."""
    with pytest.raises(DecodeError):
        codec_for(provider).write_assistant(json.dumps(message).encode(), [ReasoningText("why")])


@pytest.mark.parametrize("provider", ["anthropic", "gemini", "openai", "deepseek", "groq", "copilot"])
def test_a_seal_is_not_written_for_another_maker(provider: str) -> None:
    """It would be refused there, and reveal data to another maker."""
    foreign = ReasoningText("why", "c2ln", ReasoningFormat("made-elsewhere-v1"))
    message = b"[]" if provider == "openai" else b"{}"
    with pytest.raises(ForeignSeal):
        codec_for(provider).write_assistant(message, [foreign])


def test_plain_text_goes_into_the_field_of_the_dialect() -> None:
    """All other bytes of the message stay."""
    message = (
        b'{"role":"assistant","content":null , "tool_calls":[{"id":"1","function":{"name":"f","arguments":"{}"}}] }'
    )
    for provider, field in (("deepseek", b"reasoning_content"), ("vllm", b"reasoning")):
        written = codec_for(provider).write_assistant(message, [ReasoningText("why")])
        assert written == message[:-2] + b',"' + field + b'":"why"}'


# --- which codec -----------------------------------------------------------------------------------------------------

CHOSEN: list[tuple[str, str, FormatName, Dialect]] = [
    ("anthropic", "", "anthropic_messages", providers.ANTHROPIC),
    ("Anthropic", "claude-opus-5-5", "anthropic_messages", providers.ANTHROPIC),
    ("google", "gemini-3-pro", "gemini_generate", providers.GEMINI),
    ("gemini", "", "gemini_generate", providers.GEMINI),
    ("vertex", "gemini-3-pro", "gemini_generate", providers.GEMINI),
    ("vertex", "claude-opus-5", "anthropic_messages", providers.ANTHROPIC),
    ("openai", "gpt-5.6", "openai_responses", providers.OPENAI_RESPONSES),
    ("azure", "", "openai_responses", providers.AZURE_RESPONSES),
    ("xai", "grok-4.7", "openai_responses", providers.XAI_RESPONSES),
    ("bedrock", "anthropic.claude-opus-5-v1:0", "bedrock_converse", providers.BEDROCK_CLAUDE),
    ("bedrock", "openai.gpt-oss-120b", "bedrock_converse", providers.BEDROCK_PLAIN),
    ("ollama", "qwen3", "ollama_chat", providers.OLLAMA),
    ("deepseek", "", "openai_chat", providers.DEEPSEEK),
    ("kimi", "k3", "openai_chat", providers.KIMI),
    ("moonshot", "k3", "openai_chat", providers.KIMI),
    ("xiaomi-mimo", "", "openai_chat", providers.MIMO),
    ("zai", "", "openai_chat", providers.GLM),
    ("dashscope", "", "openai_chat", providers.QWEN),
    ("mistral", "", "openai_chat", providers.MISTRAL),
    ("cohere", "", "openai_chat", providers.COHERE),
    ("copilot", "", "openai_chat", providers.COPILOT),
    ("minimax", "", "openai_chat", providers.MINIMAX_TAGS),
    ("groq", "qwen3", "openai_chat", providers.REASONING),
    ("together", "", "openai_chat", providers.REASONING),
    ("fireworks", "accounts/fireworks/models/kimi-k2-thinking", "openai_chat", providers.KIMI),
    ("siliconflow", "deepseek-ai/DeepSeek-V4", "openai_chat", providers.DEEPSEEK),
    ("cerebras", "zai-glm-4.7", "openai_chat", providers.THINK_TAGS),
    ("cerebras", "gpt-oss-120b", "openai_chat", providers.REASONING),
    ("perplexity", "sonar-reasoning", "openai_chat", providers.NO_REASONING),
    ("claude", "", "anthropic_messages", providers.ANTHROPIC),
    ("x-ai", "", "openai_responses", providers.XAI_RESPONSES),
    ("aws-bedrock", "anthropic.claude-opus-5-v1:0", "bedrock_converse", providers.BEDROCK_CLAUDE),
    ("github-copilot", "", "openai_chat", providers.COPILOT),
    ("somewhere", "llama", "openai_chat", providers.REASONING_CONTENT),
    ("", "", "openai_chat", providers.REASONING_CONTENT),
]


@pytest.mark.parametrize(("provider", "model", "format", "dialect"), CHOSEN)
def test_the_codec_of_a_provider(provider: str, model: str, format: FormatName, dialect: Dialect) -> None:
    """By its name; by the model where one provider speaks several ways, or none is known."""
    assert codec_for(provider, model) == FormatReasoningCodec(format, dialect)


@pytest.mark.parametrize("row", [row for row in providers.PROVIDERS if row.formats], ids=lambda row: row.name)
def test_the_gateway_and_the_codec_agree(row: ProviderRow) -> None:
    """For all names of a provider, and any model."""
    for name in (row.name, *row.aliases):
        for model in ("", "glm-5", "deepseek-v4-pro", "gpt-5", "gemini-3-pro", row.example_model):
            contract = resolve(Destination(name, "", model or name, row.formats[0]))
            codec = codec_for(name, model)
            assert codec == OPENROUTER or getattr(codec, "dialect", None) == contract.dialect


def test_openrouter_has_its_own_codec() -> None:
    """For every maker of the model."""
    assert codec_for("OpenRouter", "anthropic/claude-opus-5-5") == OPENROUTER


def test_the_text_of_a_plain_family_says_whose_it_is() -> None:
    """So that an audit knows what its maker demands."""
    (item,) = codec_for("deepseek").parse_response({"choices": [{"message": {"reasoning_content": "why"}}]})
    assert item == ReasoningText("why", None, DEEPSEEK_V1)


@pytest.mark.parametrize("provider", ["openrouter", "deepseek"])
def test_messages_may_be_dictionaries(provider: str) -> None:
    """The result has the form of the input: bytes, or Python objects."""
    codec = codec_for(provider, "deepseek-v4-pro")
    said: dict[str, Any] = {"role": "assistant", "content": "Sunny.", "reasoning_content": "The forecast says so."}
    details = [{"type": "reasoning.text", "text": "The forecast says so.", "format": "unknown", "index": 0}]
    said |= {"reasoning_details": details} if provider == "openrouter" else {}
    items = codec.parse_response(said)
    assert codec.parse_response(json.dumps(said)) == items
    plain: dict[str, object] = {"role": "assistant", "content": "Sunny."}
    written = codec.write_assistant(plain, items)
    assert written == json.loads(codec.write_assistant(json.dumps(plain).encode(), items))
    assert written != plain
    assert plain == {"role": "assistant", "content": "Sunny."}
    wrong: Any = 5
    with pytest.raises(TypeError, match="JSON is bytes, text, a dictionary or a list, not int"):
        codec.parse_response(wrong)
