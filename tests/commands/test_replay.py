"""`thoughtline replay` as a person meets it; what it says of live recordings: `test_record.py`."""

from __future__ import annotations

import io
import json
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.recording.test_replaying import FIRST, LATER, REFUSAL, USER, exchange
from thoughtline.cli import main

SECOND = exchange([USER, *LATER], status=400, response=REFUSAL)
FILE = json.dumps({"id": "r-1", "exchanges": [FIRST, SECOND, {**FIRST, "request": None}]})


def test_for_people(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A line for each exchange, below it each turn and what the provider said; at the end how many there were."""
    (tmp_path / "r.json").write_text(FILE)
    assert main(["replay", str(tmp_path / "r.json")]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "1 openai_chat deepseek/deepseek-v4-pro  would be sent untouched; 1 turn captured",
        "2 openai_chat deepseek/deepseek-v4-pro  would be sent changed: 1 restored",
        "  /messages/1  restored: same conversation so far, same system prompt",
        "  400 as recorded: a turn lacks the reasoning that it must carry; remedy: put back what was lost",
        "3 openai_chat deepseek  left out: its request was not recorded",
        "1 untouched, 1 changed, 1 skipped",
    ]


def test_for_programs(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """From standard input, with the body that would be sent."""
    monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=io.BytesIO(FILE.encode())))
    assert main(["replay", "-", "--json", "--provider", "deepseek", "--model", "deepseek-v4-pro"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert shown["id"] == "r-1"
    assert shown["exchanges"][1]["sent"]["messages"][1]["reasoning_content"] == "First, I look."
    assert shown["exchanges"][1]["turns"][0]["treatment"] == "restored"


@pytest.mark.parametrize(("text", "why"), [("{}", "it is no recording"), ("[", "it is not JSON")])
def test_what_is_no_recording(text: str, why: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "r.json").write_text(text)
    assert main(["replay", str(tmp_path / "r.json")]) == 2
    assert why in capsys.readouterr().err
    assert main(["replay", str(tmp_path / "none.json")]) == 2
