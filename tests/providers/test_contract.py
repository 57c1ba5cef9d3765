"""Which turns must carry reasoning, told in one pass."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from msgspec import Raw

from thoughtline.providers import CONTRACTS, contract
from thoughtline.providers.contract import required_turns
from thoughtline.values.items import ToolCall, ToolResult
from thoughtline.values.turns import Transcript, Turn


def test_a_long_loop_of_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the user spoke last is looked for once, not once for each turn of the model."""
    looked: list[int] = []
    find = contract.after_last_user

    def counted(turns: Sequence[Turn]) -> int:
        looked.append(len(turns))
        return find(turns)

    monkeypatch.setattr(contract, "after_last_user", counted)
    call, result = ToolCall("f", "{}", "1"), ToolResult(Raw(b'"x"'), "1")
    steps = [(Turn("assistant", (call,)), Turn("user", (result,)))] * 99
    transcript = Transcript("anthropic_messages", tuple(turn for step in steps for turn in step), thinking="on")
    claude = CONTRACTS["anthropic"]
    assert claude.scope == "loop_head"
    assert required_turns(transcript, claude, range(0, 198, 2)) == (0,)
    assert len(looked) == 1
