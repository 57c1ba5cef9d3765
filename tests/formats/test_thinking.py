"""Whether a request asks the model to think, and how it stops asking, in every format."""

from __future__ import annotations

import json
from typing import Any, NamedTuple

import pytest
from msgspec import Raw

from thoughtline.formats import FORMATS
from thoughtline.formats.bodies import thinking_switch
from thoughtline.formats.json_text import NULL
from thoughtline.values.turns import FormatName, ThinkingSwitch

Json = dict[str, Any]


@pytest.mark.parametrize(
    ("members", "said"),
    [
        (["true"], "on"),
        (["false"], "off"),
        (["1024"], "on"),
        (["0"], "off"),
        (['"high"'], "on"),
        (['"None"'], "off"),
        (['"adaptive"'], "adaptive"),
        (['{"type":"enabled","budget_tokens":0}'], "on"),
        (['{"type":"disabled"}'], "off"),
        (['{"thinkingConfig":{"thinkingBudget":0}}'], "off"),
        (['{"thinking":{"type":"adaptive"}}'], "adaptive"),
        (['{"summary":"auto"}'], "unsaid"),
        (['{"summary":"auto"}', '"low"'], "on"),
        (["null", "[]", "{", "[" * 5000], "unsaid"),
        ([], "unsaid"),
    ],
)
def test_what_a_switch_says(members: list[str], said: ThinkingSwitch) -> None:
    """The first member that says anything; what can't be read says nothing."""
    assert thinking_switch(NULL, *(Raw(member.encode()) for member in members)) == said


class Asking(NamedTuple):
    """A request that asks for thinking, and the same request without that."""

    asks: Json
    left: Json


USER = {"role": "user", "content": "hi"}
CHAT: Json = {"messages": [USER], "temperature": 1.0}
GEMINI: Json = {"contents": [{"role": "user", "parts": [{"text": "hi"}]}]}
CONVERSE: Json = {"messages": [{"role": "user", "content": [{"text": "hi"}]}]}
FORMATS_ASKING: dict[FormatName, Asking] = {
    "openai_chat": Asking({**CHAT, "reasoning_effort": "high", "thinking": {"type": "enabled"}}, CHAT),
    "openai_responses": Asking({"input": "hi", "reasoning": {"effort": "high"}}, {"input": "hi"}),
    "anthropic_messages": Asking({**CHAT, "thinking": {"type": "enabled", "budget_tokens": 1024}}, CHAT),
    "gemini_generate": Asking(
        {**GEMINI, "generationConfig": {"topK": 1, "thinkingConfig": {"thinkingBudget": 9}}},
        {**GEMINI, "generationConfig": {"topK": 1}},
    ),
    "gemini_interactions": Asking(
        {"input": "hi", "generation_config": {"top_k": 1, "thinking_level": "high", "thinking_summaries": "auto"}},
        {"input": "hi", "generation_config": {"top_k": 1}},
    ),
    "command_code_generate": Asking({**CHAT, "reasoning_effort": "high"}, CHAT),
    "ollama_chat": Asking({**CHAT, "think": True}, CHAT),
    "bedrock_converse": Asking(
        {**CONVERSE, "additionalModelRequestFields": {"top_k": 1, "thinking": {"type": "enabled"}}},
        {**CONVERSE, "additionalModelRequestFields": {"top_k": 1}},
    ),
}
FORMATS_ASKING["bedrock_invoke"] = FORMATS_ASKING["anthropic_messages"]
FORMATS_ASKING["gemini_code_assist"] = FORMATS_ASKING["gemini_generate"]  # the edit is inside of the envelope


def unasked(format: FormatName, request: Json) -> Json:
    edits = FORMATS[format].unasked(json.dumps(request).encode())
    left = {**request, **{name: json.loads(value) for name, value in edits if value is not None}}
    return {name: value for name, value in left.items() if (name, None) not in edits}


@pytest.mark.parametrize("format", FORMATS)
def test_a_request_stops_asking(format: FormatName) -> None:
    """Every switch is removed; other settings stay, even next to it. A request without a switch stays unchanged."""
    asking = FORMATS_ASKING[format]
    assert unasked(format, asking.asks) == asking.left
    assert unasked(format, asking.left) == asking.left


@pytest.mark.parametrize("format", FORMATS)
def test_what_is_left_asks_for_nothing(format: FormatName) -> None:
    """As the format itself reads it."""
    wire, asking = FORMATS[format], FORMATS_ASKING[format]
    for request, said in ((asking.asks, "on"), (unasked(format, asking.asks), "unsaid")):
        body = {wire.inside: request} if wire.inside else request
        assert wire.bodies.decode_request(json.dumps({"model": "m", **body}).encode(), wire.dialect).thinking == said
