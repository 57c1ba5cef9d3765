"""What is kept of what was said to a model, where it is kept."""

from __future__ import annotations

import msgspec
import pytest
from msgspec import Raw

from thoughtline.engine.said import MAX_CHARS, first_words, said_in, text_of
from thoughtline.formats import FORMATS
from thoughtline.providers import facts
from thoughtline.values.items import Item, Text, ToolResult, Unknown
from thoughtline.values.turns import FormatName, Transcript

CALL = {"id": "c", "type": "function", "function": {"name": "bash", "arguments": "{}"}}
RESULT = {"type": "tool_result", "tool_use_id": "c", "content": [{"type": "text", "text": "a.py"}]}
DIALECTS = {
    "anthropic_messages": "anthropic",
    "openai_chat": "deepseek",
    "openai_responses": "openai_responses",
    "gemini_generate": "gemini",
    "bedrock_converse": "bedrock_plain",
    "ollama_chat": "ollama",
}
MESSAGES = {
    "anthropic_messages": {
        "system": "Be short",
        "messages": [
            {"role": "user", "content": "First"},
            {"role": "assistant", "content": [{"type": "tool_use", "id": "c", "name": "bash", "input": {}}]},
            {"role": "user", "content": [RESULT, {"type": "text", "text": "Now fix it"}]},
        ],
    },
    "openai_chat": {
        "messages": [
            {"role": "system", "content": "Be short"},
            {"role": "user", "content": "First"},
            {"role": "assistant", "content": None, "tool_calls": [CALL]},
            {"role": "tool", "tool_call_id": "c", "content": "a.py"},
            {"role": "user", "content": "Now fix it"},
        ],
    },
    "openai_responses": {
        "input": [
            {"role": "developer", "content": "Be short"},
            {"role": "user", "content": "First"},
            {"type": "function_call", "call_id": "c", "name": "bash", "arguments": "{}"},
            {"type": "function_call_output", "call_id": "c", "output": "a.py"},
            {"role": "user", "content": [{"type": "input_text", "text": "Now fix it"}]},
        ],
    },
    "gemini_generate": {
        "systemInstruction": {"parts": [{"text": "Be short"}]},
        "contents": [
            {"role": "user", "parts": [{"text": "First"}]},
            {"role": "model", "parts": [{"functionCall": {"name": "bash", "args": {}}}]},
            {"role": "user", "parts": [{"functionResponse": {"name": "bash", "response": {"output": "a.py"}}}]},
            {"role": "user", "parts": [{"text": "Now fix it"}]},
        ],
    },
    "bedrock_converse": {
        "system": [{"text": "Be short"}],
        "messages": [
            {"role": "user", "content": [{"text": "First"}]},
            {"role": "assistant", "content": [{"toolUse": {"toolUseId": "c", "name": "bash", "input": {}}}]},
            {
                "role": "user",
                "content": [
                    {"toolResult": {"toolUseId": "c", "content": [{"text": "a.py"}]}},
                    {"text": "Now fix it"},
                ],
            },
        ],
    },
    "ollama_chat": {
        "messages": [
            {"role": "system", "content": "Be short"},
            {"role": "user", "content": "First"},
            {"role": "assistant", "tool_calls": [{"function": {"name": "bash", "arguments": {}}}]},
            {"role": "tool", "content": "a.py", "tool_name": "bash"},
            {"role": "user", "content": "Now fix it"},
        ],
    },
}


def read(format: FormatName, body: object) -> Transcript:
    return FORMATS[format].bodies.decode_request(msgspec.json.encode(body), facts().dialects[DIALECTS[format]])


@pytest.mark.parametrize("format", MESSAGES)
def test_what_stands_behind_the_last_turn_is_kept(format: FormatName) -> None:
    """Results and the user's words in order, in every format alike; no system prompt, nothing older."""
    result, words = said_in(read(format, MESSAGES[format]))
    assert isinstance(result, ToolResult)
    assert "a.py" in msgspec.json.decode(result.content, type=str)
    assert "c" in (result.call_id, "c" if result.name == "bash" else "")
    assert words == Text("Now fix it")
    assert said_in(None) == ()


def test_a_long_result_is_cut() -> None:
    """And says by how much; an image keeps its kind alone."""
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}
    content = [{"type": "text", "text": "x" * (MAX_CHARS + 1234)}, image]
    (long, other) = said_in(read("openai_chat", {"messages": [{"role": "user", "content": content}]}))
    assert isinstance(long, Text)
    assert long.text.endswith("x\n… (1,234 more characters)")
    assert isinstance(other, Unknown)
    assert bytes(other.raw) == b"null"


TITLES: list[tuple[tuple[Item, ...], str]] = [
    ((Text("Fix the parser\nand its tests"),), "Fix the parser"),
    ((Text("<system-reminder>\nrules\n</system-reminder>"), Text("  Why is   it slow? ")), "Why is it slow?"),
    ((Text("<a>1</a>\n<b>2</b> Explain"),), "Explain"),
    ((Text("<never closed> words"),), ""),
    ((ToolResult(Raw(b'"x"')), Text("Go on")), "Go on"),
    ((Text("word " * 40),), ("word " * 40)[:79].rstrip() + "…"),
    ((), ""),
]


@pytest.mark.parametrize(("items", "title"), TITLES)
def test_the_first_words_are_a_title(items: tuple[Item, ...], title: str) -> None:
    assert first_words(items) == title


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (b'"plain"', "plain"),
        (b'[{"type":"text","text":"a"},{"type":"image","source":{}}]', "a\n[image]"),
        (b'{"ok":true}', '{"ok":true}'),
        (b"[1, 2]", "[1, 2]"),
    ],
)
def test_a_result_as_text(content: bytes, text: str) -> None:
    assert text_of(Raw(content)) == text
