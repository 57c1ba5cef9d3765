"""Bedrock's Claude: the same rules in Amazon's clothes."""

from __future__ import annotations

from tests.sim.faces import Body, Dialogue
from tests.sim.violations import called, case_of, flipped


def block(dialogue: Dialogue, at: int = 1) -> Body:
    first: Body = dialogue.history[at]["content"][0]
    return first


BEDROCK = case_of("bedrock", "bedrock_converse", "claude")


def test_bedrock_passes_claudes_words_on() -> None:
    """Claude's own sentence; in front of most of them, Amazon's."""
    dialogue = called(BEDROCK, "bedrock")
    text = block(dialogue)["reasoningContent"]["reasoningText"]
    kept = text["signature"]
    text["signature"] = flipped(kept)
    assert dialogue.post().json() == {"message": "messages.1.content.0: Invalid `signature` in `thinking` block"}
    text["signature"] = kept
    text["text"] += " "
    assert (
        dialogue.post()
        .json()["message"]
        .startswith(
            "The model returned the following errors: messages.1.content.0: `thinking` or `redacted_thinking` blocks"
        )
    )
    del dialogue.history[1]["content"][0]
    assert "Expected `thinking` or `redacted_thinking`, but found `tool_use`" in dialogue.post().json()["message"]


def test_bedrock_redacted() -> None:
    """Base64 of what was base64 already."""
    dialogue = Dialogue(BEDROCK, "redacted\nscript:\nredacted\ncall: weather {}\n---\nsay: so")
    dialogue.go_on(dialogue.ask())
    assert dialogue.history[1]["content"][0]["reasoningContent"]["redactedContent"].startswith("R")
    assert dialogue.post().status_code == 200


def test_bedrock_binding_without_its_beta() -> None:
    """The beta stands in the additional fields there."""
    fields = {"thinking": {"type": "adaptive", "block_binding": {"prefix_mismatch_behavior": "drop_block"}}}
    case = BEDROCK._replace(model="us.anthropic.claude-opus-5-5")
    dialogue = Dialogue(case, "hi", additionalModelRequestFields=fields)
    assert dialogue.post().json() == {"message": "thinking.adaptive.block_binding: Extra inputs are not permitted"}
