"""Compaction blocks of both kinds, and the thinking that stays good behind them."""

from __future__ import annotations

import json

import pytest

from tests.sim.faces import Body, Dialogue
from tests.sim.rules.test_claude_chain import BOUND, SENTENCE, conversation, refusal

DEMAND = "compact-2026-09-04"
THRESHOLD = "compact-2026-01-12"


def summarized(mark: str, turns: int = 1, beta: str = DEMAND) -> tuple[Dialogue, Body]:
    """A conversation, and the block that stands for all of it."""
    dialogue = conversation(turns, mark)
    del dialogue.history[-1]
    dialogue.headers["anthropic-beta"] = beta
    dialogue.body["messages"].append({"role": "user", "content": "So far so good."})
    dialogue.body["compaction"] = {"type": "summarize"}
    answer = dialogue.post().json()
    del dialogue.body["compaction"]
    assert answer["stop_reason"] == "compaction"
    (block,) = answer["content"]
    return dialogue, block


def test_on_demand() -> None:
    """The answer is one signed block, whole at the start of a stream; it goes first in later requests."""
    dialogue, block = summarized("demand")
    assert set(block) == {"type", "content", "signature"}
    dialogue.history[:] = [
        {"role": "assistant", "content": [block]},
        {"role": "user", "content": "Go on.\nscript:\nthink: a\nsay: b\n---\nthink: c\nsay: d"},
    ]
    dialogue.go_on(dialogue.ask())
    assert dialogue.post().status_code == 200


def test_the_turns_kept_behind_it_stay_good() -> None:
    """A block made before the compaction is good behind a summary of exactly what stood before it."""
    dialogue = conversation(2, "kept")
    kept = dialogue.history[2:]
    dialogue.history[:] = dialogue.history[:2]
    dialogue.headers["anthropic-beta"] = DEMAND
    dialogue.body["compaction"] = {"type": "summarize"}
    (block,) = dialogue.post().json()["content"]
    del dialogue.body["compaction"]
    dialogue.history[:] = [{"role": "assistant", "content": [block]}, *kept]
    assert dialogue.post().status_code == 200
    kept[0]["content"] += " "
    assert refusal(dialogue).startswith(SENTENCE.format(at="2.content.0"))


@pytest.mark.parametrize(
    ("edit", "message", "code"),
    [
        ("content", "`compaction` block `content` does not match its `signature`", "compaction_content_mismatch"),
        (
            "signature",
            "messages.0.content.0: Invalid `signature` in `compaction` block",
            "compaction_signature_invalid",
        ),
    ],
)
def test_a_changed_summary(edit: str, message: str, code: str) -> None:
    """The signature holds the summary."""
    dialogue, block = summarized(f"changed {edit}")
    block[edit] += "AAAA"
    dialogue.history[:] = [{"role": "assistant", "content": [block]}, {"role": "user", "content": "Go on."}]
    error = dialogue.post().json()["error"]
    assert (error["message"], error["details"]) == (message, {"error_code": code})


def test_a_block_out_of_place() -> None:
    """It comes first."""
    dialogue, block = summarized("misplaced")
    dialogue.history.extend([{"role": "assistant", "content": [block]}, {"role": "user", "content": "Go on."}])
    assert dialogue.post().json()["error"]["details"] == {"error_code": "compaction_block_misplaced"}


def test_betas_of_compaction() -> None:
    """Neither the member nor the signed block is known without the beta."""
    dialogue, block = summarized("beta")
    dialogue.headers.clear()
    dialogue.body["compaction"] = {"type": "summarize"}
    assert refusal(dialogue) == "compaction: Extra inputs are not permitted"
    del dialogue.body["compaction"]
    dialogue.history[:] = [{"role": "assistant", "content": [block]}, {"role": "user", "content": "Go on."}]
    assert refusal(dialogue) == "messages.0.content.0.compaction.signature: Extra inputs are not permitted"


def over_the_threshold(mark: str) -> Dialogue:
    edit = {"type": "compact_20260112", "trigger": {"type": "input_tokens", "value": 50}}
    dialogue = Dialogue(BOUND, f"{mark}\nscript:\nthink: a\nsay: b\n---\nthink: c\nsay: d\n---\nsay: e")
    dialogue.headers["anthropic-beta"] = THRESHOLD
    dialogue.body["context_management"] = {"edits": [edit]}
    return dialogue


def test_at_a_threshold() -> None:
    """The answer begins with a block that has no signature; what stood before it may go."""
    dialogue = over_the_threshold("threshold")
    answer = dialogue.ask()
    assert [block["type"] for block in answer["content"]] == ["compaction", "thinking", "text"]
    assert set(answer["content"][0]) == {"type", "content"}
    dialogue.go_on(answer)
    assert dialogue.post().status_code == 200
    del dialogue.history[0]
    assert dialogue.post().status_code == 200
    dialogue.history[0]["content"][0]["content"] += " And more."
    assert refusal(dialogue).startswith(SENTENCE.format(at="0.content.1"))


def test_a_threshold_block_needs_its_edit() -> None:
    """Field and beta travel together."""
    dialogue = over_the_threshold("edit")
    dialogue.go_on(dialogue.ask())
    del dialogue.body["context_management"]
    assert (
        refusal(dialogue) == "`compaction` blocks require a `compact_20260112` strategy in `context_management.edits`."
    )


def test_streams_of_compaction() -> None:
    """The unsigned kind is announced empty and filled by one delta; the signed kind comes whole."""
    events = [
        json.loads(line.removeprefix("data: "))
        for line in over_the_threshold("stream").post(is_streaming=True).text.splitlines()
        if line.startswith("data: ")
    ]
    assert events[1]["content_block"] == {"type": "compaction", "content": None}
    deltas = [event["delta"] for event in events if event.get("index") == 0 and "delta" in event]
    assert [set(delta) for delta in deltas] == [{"type", "content"}]
    assert deltas[0]["type"] == "compaction_delta"
