"""A text goes to the end of the system prompt, in every format and every form it may have; nothing else is touched."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.continuity.desks import encoded
from thoughtline.continuity.handover import inject
from thoughtline.formats import FORMATS
from thoughtline.values.turns import FormatName

Json = dict[str, Any]
TEXT = 'quoted\n```\nthought "1"\n```'
USER = {"role": "user", "content": "Hello"}
MARKED = {"type": "text", "text": "Be brief.", "cache_control": {"type": "ephemeral"}, "odd": 1.50}


def _user_of(format: FormatName) -> Json:
    match format:
        case "gemini_generate":
            return {"contents": [{"role": "user", "parts": [{"text": "Hello"}]}]}
        case "bedrock_converse":
            return {"messages": [{"role": "user", "content": [{"text": "Hello"}]}]}
        case "openai_responses":
            return {"model": "m", "input": "Hello"}
        case _:
            return {"model": "m", "messages": [USER]}


CASES: dict[str, tuple[FormatName, Json, Json]] = {
    "chat, a string": (
        "openai_chat",
        {"messages": [{"role": "system", "content": "Be brief.", "name": "x"}, USER]},
        {"messages": [{"role": "system", "content": f"Be brief.\n\n{TEXT}", "name": "x"}, USER]},
    ),
    "chat, a developer's": (
        "openai_chat",
        {"messages": [{"role": "developer", "content": "Be brief."}, USER]},
        {"messages": [{"role": "developer", "content": f"Be brief.\n\n{TEXT}"}, USER]},
    ),
    "chat, parts": (
        "openai_chat",
        {"messages": [{"role": "system", "content": [MARKED]}, USER]},
        {"messages": [{"role": "system", "content": [MARKED, {"type": "text", "text": TEXT}]}, USER]},
    ),
    "chat, several": (
        "openai_chat",
        {"messages": [{"role": "system", "content": "One."}, {"role": "system", "content": "Two."}, USER]},
        {"messages": [{"role": "system", "content": "One."}, {"role": "system", "content": f"Two.\n\n{TEXT}"}, USER]},
    ),
    "chat, a later one": (
        "openai_chat",
        {"messages": [USER, {"role": "system", "content": "Note."}, USER]},
        {"messages": [{"role": "system", "content": TEXT}, USER, {"role": "system", "content": "Note."}, USER]},
    ),
    "chat, none": (
        "openai_chat",
        {"messages": [USER]},
        {"messages": [{"role": "system", "content": TEXT}, USER]},
    ),
    "chat, empty": (
        "openai_chat",
        {"messages": [{"role": "system", "content": ""}, USER]},
        {"messages": [{"role": "system", "content": TEXT}, USER]},
    ),
    "Anthropic, a string": (
        "anthropic_messages",
        {"system": "Be brief.", "messages": [USER]},
        {"system": f"Be brief.\n\n{TEXT}", "messages": [USER]},
    ),
    "Anthropic, blocks": (
        "anthropic_messages",
        {"system": [MARKED, MARKED], "messages": [USER]},
        {"system": [MARKED, MARKED, {"type": "text", "text": TEXT}], "messages": [USER]},
    ),
    "Anthropic, none": (
        "anthropic_messages",
        {"messages": [USER]},
        {"messages": [USER], "system": TEXT},
    ),
    "Anthropic, empty": (
        "anthropic_messages",
        {"system": "", "messages": [USER]},
        {"system": TEXT, "messages": [USER]},
    ),
    "Gemini, parts": (
        "gemini_generate",
        {"systemInstruction": {"role": "system", "parts": [{"text": "Be brief."}]}, **_user_of("gemini_generate")},
        {
            "systemInstruction": {"role": "system", "parts": [{"text": "Be brief."}, {"text": TEXT}]},
            **_user_of("gemini_generate"),
        },
    ),
    "Gemini, the other spelling": (
        "gemini_generate",
        {"system_instruction": {"parts": [{"text": "Be brief."}]}, **_user_of("gemini_generate")},
        {"system_instruction": {"parts": [{"text": "Be brief."}, {"text": TEXT}]}, **_user_of("gemini_generate")},
    ),
    "Gemini, none": (
        "gemini_generate",
        _user_of("gemini_generate"),
        {**_user_of("gemini_generate"), "systemInstruction": {"parts": [{"text": TEXT}]}},
    ),
    "Bedrock, blocks": (
        "bedrock_converse",
        {"system": [{"text": "Be brief."}, {"cachePoint": {"type": "default"}}], **_user_of("bedrock_converse")},
        {
            "system": [{"text": "Be brief."}, {"cachePoint": {"type": "default"}}, {"text": TEXT}],
            **_user_of("bedrock_converse"),
        },
    ),
    "Bedrock, none": (
        "bedrock_converse",
        _user_of("bedrock_converse"),
        {**_user_of("bedrock_converse"), "system": [{"text": TEXT}]},
    ),
    "Responses, instructions": (
        "openai_responses",
        {"instructions": "Be brief.", "input": [USER]},
        {"instructions": f"Be brief.\n\n{TEXT}", "input": [USER]},
    ),
    "Responses, a developer's message": (
        "openai_responses",
        {"input": [{"role": "developer", "content": "Be brief."}, USER]},
        {"input": [{"role": "developer", "content": "Be brief."}, USER], "instructions": TEXT},
    ),
    "Responses, instructions that are a list": (
        "openai_responses",
        {"instructions": [{"role": "developer", "content": "Be brief."}], "input": [USER]},
        {
            "instructions": [{"role": "developer", "content": "Be brief."}],
            "input": [
                {"type": "message", "role": "developer", "content": [{"type": "input_text", "text": TEXT}]},
                USER,
            ],
        },
    ),
    "Responses, input that is a text": (
        "openai_responses",
        {"input": "Hello"},
        {"input": "Hello", "instructions": TEXT},
    ),
    "Ollama, a message": (
        "ollama_chat",
        {"messages": [{"role": "system", "content": "Be brief."}, USER]},
        {"messages": [{"role": "system", "content": f"Be brief.\n\n{TEXT}"}, USER]},
    ),
    "Ollama, none": (
        "ollama_chat",
        {"messages": [USER]},
        {"messages": [{"role": "system", "content": TEXT}, USER]},
    ),
    "Ollama, a prompt": (
        "ollama_chat",
        {"prompt": "Hello", "system": "Be brief."},
        {"prompt": "Hello", "system": f"Be brief.\n\n{TEXT}"},
    ),
    "Ollama, a prompt alone": (
        "ollama_chat",
        {"prompt": "Hello"},
        {"prompt": "Hello", "system": TEXT},
    ),
}


def _injected(format: FormatName, body: Json, text: str) -> bytes:
    row = FORMATS[format]
    transcript = row.bodies.decode_request(encoded(body), row.dialect)
    return row.bodies.encode_request(inject(transcript, text), row.dialect)


@pytest.mark.parametrize(("format", "before", "after"), CASES.values(), ids=list(CASES))
def test_a_text_goes_to_the_end_of_the_system_prompt(format: FormatName, before: Json, after: Json) -> None:
    """In whatever form the client wrote it; never as a user's message."""
    assert json.loads(_injected(format, before, TEXT)) == after


@pytest.mark.parametrize(("format", "before", "after"), CASES.values(), ids=list(CASES))
def test_no_text_leaves_the_bytes(format: FormatName, before: Json, after: Json) -> None:
    """Byte for byte."""
    assert _injected(format, before, "") == encoded(before)


@pytest.mark.parametrize(("format", "before", "after"), CASES.values(), ids=list(CASES))
def test_the_conversation_keeps_its_bytes(format: FormatName, before: Json, after: Json) -> None:
    """Every message of the client is in the new body unchanged, and so are marks for caching."""
    body = _injected(format, before, TEXT)
    assert json.dumps(USER).encode() in body or b'"Hello"' in body
    if json.dumps(MARKED) in json.dumps(before):
        assert body.count(json.dumps(MARKED).encode()) == json.dumps(before).count(json.dumps(MARKED))
