"""`translate_history`: a conversation handed to another model inside an application."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.line.asking import CALL, HEADERS, MESSAGE, PATH, RESULT, THOUGHT, USER, request, whole
from thoughtline import Line
from thoughtline.formats import FORMATS

HISTORY: list[Any] = [USER, {**MESSAGE, "reasoning_content": THOUGHT}, RESULT, {"role": "user", "content": "And now?"}]
SEALED: list[Any] = [
    {"role": "user", "content": "How is the weather?"},
    {
        "role": "assistant",
        "content": [
            {"type": "thinking", "thinking": THOUGHT, "signature": "c2VhbA=="},
            {"type": "tool_use", "id": "toolu_1", "name": "weather", "input": {}},
        ],
    },
    {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "toolu_1", "content": "sunny"}]},
]


def test_a_model_that_takes_text_gets_it_as_its_own(line: Line) -> None:
    """Between two models of chat completions the text stays where it was."""
    given = line.translate_history(HISTORY, to="kimi/kimi-k2.6")
    assert given["messages"][1]["reasoning_content"] == THOUGHT


@pytest.mark.parametrize(
    ("to", "members"),
    [
        ("anthropic/claude-opus-4-8", {"messages", "system"}),
        ("openai/gpt-5.1", {"input", "instructions"}),
        ("gemini/gemini-3-pro-preview", {"contents", "systemInstruction"}),
    ],
)
def test_a_model_that_takes_only_its_own_gets_a_checkpoint(line: Line, to: str, members: set[str]) -> None:
    """In the format of its provider, quoted where its system prompt stands."""
    given = line.translate_history(HISTORY, to=to)
    assert set(given) == members
    history, system = (json.dumps(given[name]) for name in sorted(members, key=_is_system))
    assert THOUGHT in system
    assert THOUGHT not in history


def _is_system(name: str) -> bool:
    return name in ("system", "instructions", "systemInstruction")


@pytest.mark.parametrize("to", ["deepseek/deepseek-v4-pro", "openai/gpt-5.1", "gemini/gemini-3-pro-preview"])
def test_no_seal_goes_to_another_maker(line: Line, to: str) -> None:
    """What Anthropic signed is text elsewhere, and its signature is nowhere."""
    given = json.dumps(line.translate_history(SEALED, to=to))
    assert THOUGHT in given
    assert "c2VhbA" not in given


def test_what_the_history_lost_comes_from_the_store(line: Line) -> None:
    """A turn that the line remembers is quoted too, for whoever holds the key that it was asked with."""
    exchange = line.begin_sync("POST", f"https://api.deepseek.com{PATH}", HEADERS, request())
    exchange.read(whole())
    exchange.end()
    bare = [USER, {"role": "assistant", "content": "", "tool_calls": [CALL]}, RESULT]
    key = HEADERS["authorization"].removeprefix("Bearer ")
    assert THOUGHT in json.dumps(line.translate_history(bare, to="anthropic/claude-opus-4-8", key=key))
    assert THOUGHT not in json.dumps(line.translate_history(bare, to="anthropic/claude-opus-4-8"))


def test_a_name_that_nobody_knows_is_an_error(line: Line) -> None:
    """It names what it was given."""
    with pytest.raises(ValueError, match="provider/model"):
        line.translate_history(HISTORY, to="nobody/at-all")


def test_every_history_is_known_by_its_format(line: Line) -> None:
    """What is made for one model can be handed on to the next."""
    first = line.translate_history(HISTORY, to="gemini/gemini-3-pro-preview")
    again = line.translate_history(first["contents"], to="kimi/kimi-k2.6")
    assert [message["role"] for message in again["messages"]] == ["user", "assistant", "tool", "user"]
    assert FORMATS["gemini_generate"].list_member == "contents"
