"""`tools.untouched` on a made-up recording: what is untouched, what was put back, and what has no reason."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tools.bodies.recorded import conversations
from tools.untouched import UNLISTED, Went, replayed, told

Json = dict[str, Any]
USER = {"role": "user", "content": "Hi"}
SAID = {"role": "assistant", "content": "Hello.", "reasoning_content": "I greet."}


def exchange(messages: list[Json], status: int = 200) -> Json:
    answer = {"choices": [{"index": 0, "message": SAID, "finish_reason": "stop"}], "model": "deepseek-v4-pro"}
    return {
        "family": "openai-chat",
        "provider": "deepseek",
        "path": "/chat/completions",
        "status": status,
        "request": {"model": "deepseek-v4-pro", "messages": messages},
        "response": answer if status == 200 else {"error": {"message": "no"}},
    }


def test_a_recording(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Kept reasoning goes up as it came, and comes back where it was lost; refused requests are left out."""
    later = [USER, SAID, {"role": "user", "content": "And?"}]
    file = {"exchanges": [exchange([USER]), exchange(later), exchange([USER], 400)], "replay_pairs": [[0, 1]]}
    (tmp_path / "index.json").write_text(json.dumps([{"id": "talk"}]))
    (tmp_path / "talk.json").write_text(json.dumps(file))
    sent, pairs = replayed(conversations([tmp_path]))
    assert [(one.name, one.is_untouched) for one in sent] == [("talk 0", True), ("talk 1", True)]
    assert [(one.name, one.is_back) for one in pairs] == [("talk 0 -> 1", True)]
    assert told(sent, pairs) == 0
    verdict = "ok: 2 of 2 requests untouched, 0 changed for a listed reason; 1 of 1 pairs back"
    assert capsys.readouterr().out.splitlines() == [verdict]


def test_a_change_without_a_reason_fails(capsys: pytest.CaptureFixture[str]) -> None:
    """It is listed, and the exit status says so."""
    changed = Went("talk 0", b'{"model": "a"}', b'{"model": "b"}', {}, "")
    assert changed.reason.startswith(UNLISTED)
    assert told([changed], []) == 1
    assert "    talk 0" in capsys.readouterr().out


def test_what_was_put_back_leaves_the_rest_alone() -> None:
    """A restored turn is no reason for losing what the client had kept."""
    came = json.dumps({"messages": [USER, SAID]}).encode()
    lost = Went("talk 0", came, json.dumps({"messages": [USER]}).encode(), {"restored": 1}, "")
    assert lost.reason.startswith(UNLISTED)
