"""What `tools.bodies` compares, and how its clients read streams."""

from __future__ import annotations

import json

import pytest

from tools.bodies.__main__ import compare
from tools.bodies.clients import WIRES


def test_names_that_differ_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    """Those that differ, are gone and are new; the exit status says whether there are any."""
    assert compare({"a": "1", "b": "2", "c": "3"}, {"a": "1", "b": "9", "d": "4"}) == 1
    assert capsys.readouterr().out.splitlines() == ["differs  b", "is gone  c", "is new   d", "3 of 4 names differ"]
    assert compare({"a": "1"}, {"a": "1"}) == 0


def test_a_chat_stream_is_folded() -> None:
    """Texts grow, calls are found by their index, and no index is kept."""
    deltas = [
        {"role": "assistant", "reasoning_content": "I "},
        {"reasoning_content": "think."},
        {"tool_calls": [{"index": 0, "id": "a", "function": {"name": "weather", "arguments": "{"}}]},
        {
            "tool_calls": [
                {"index": 0, "function": {"arguments": "}"}},
                {"index": 1, "id": "b", "function": {"name": "x"}},
            ]
        },
    ]
    stream = (
        "".join(f"data: {json.dumps({'choices': [{'delta': delta}]})}\n\n" for delta in deltas) + "data: [DONE]\n\n"
    )
    (message,) = WIRES["openai_chat"].fold(stream.encode())
    assert message["reasoning_content"] == "I think."
    assert message["tool_calls"] == [
        {"id": "a", "function": {"name": "weather", "arguments": "{}"}},
        {"id": "b", "function": {"name": "x"}},
    ]
    assert "reasoning_content" not in WIRES["openai_chat"].forget([message])[0]
