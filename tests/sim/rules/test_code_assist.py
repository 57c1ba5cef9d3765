"""Code Assist and Antigravity: Gemini's sentences for Gemini, Anthropic's inside Google's for Claude."""

from __future__ import annotations

import json

from tests.sim.faces import HTTP, Body, Dialogue
from tests.sim.rules.test_gemini import GEMINI_MISSING, google
from tests.sim.served_simulators import served
from tests.sim.violations import called, case_of, flipped, other_account
from thoughtline_sim.rules.anthropic import expected_thinking

GEMINI = case_of("code-assist", "gemini_code_assist", "gemini-3")
CLAUDE = case_of("code-assist", "gemini_code_assist", "claude")
INVALID = "messages.1.content.0: Invalid `signature` in `thinking` block"


def part(dialogue: Dialogue) -> Body:
    first: Body = dialogue.history[1]["parts"][0]
    return first


def claude_said(answer: Body) -> str:
    """Anthropic's sentence, in its error, in a string in Google's."""
    assert answer["error"]["status"] == "INVALID_ARGUMENT"
    inner = json.loads(answer["error"]["message"])
    assert (inner["type"], inner["error"]["type"]) == ("error", "invalid_request_error")
    return str(inner["error"]["message"])


def test_gemini_s_sentences() -> None:
    """Without its signature, and with one that was changed; errors stand in no envelope."""
    dialogue = called(GEMINI, "enveloped")
    whole = part(dialogue)["thoughtSignature"]
    del part(dialogue)["thoughtSignature"]
    assert dialogue.post().json() == google(GEMINI_MISSING)
    part(dialogue)["thoughtSignature"] = flipped(whole)
    assert dialogue.post().json() == google("Corrupted thought signature.")


def test_claude_s_signature() -> None:
    """Changed, of another account, missing, or Gemini's sentinel: none passes."""
    dialogue = called(CLAUDE, "claude")
    whole = part(dialogue)["thoughtSignature"]
    for wrong in (flipped(whole), "skip_thought_signature_validator", ""):
        part(dialogue)["thoughtSignature"] = wrong
        assert claude_said(dialogue.post().json()) == INVALID
    part(dialogue)["thoughtSignature"] = whole
    assert dialogue.post().status_code == 200
    other_account(dialogue)
    assert claude_said(dialogue.post().json()) == INVALID


def test_claude_s_loop_begins_with_its_thinking() -> None:
    """Left out altogether; fine if thinking is switched off."""
    dialogue = called(CLAUDE, "bare")
    del dialogue.history[1]["parts"][0]
    assert claude_said(dialogue.post().json()) == expected_thinking(1, "tool_use")
    dialogue.body["generationConfig"] = {"thinkingConfig": {"thinkingBudget": 0}}
    assert dialogue.post().status_code == 200


def test_requests_besides_those_for_the_model() -> None:
    """A tier and a project, so that clients skip their setup; unused answers are empty."""
    url = served("code-assist").url
    answer = HTTP.post(f"{url}/v1internal:loadCodeAssist", json={}).json()
    assert answer["currentTier"]["id"]
    assert answer["cloudaicompanionProject"]
    assert HTTP.post(f"{url}/v1internal:recordCodeAssistMetrics", json={}).json() == {}
    assert HTTP.post(f"{url}/v1internal:generateContent", json={}).status_code == 400
