"""Gemini's Interactions API: thoughts missing, changed, of another account; interactions that were not kept."""

from __future__ import annotations

import pytest

from tests.sim.faces import Dialogue
from tests.sim.rules.test_gemini import google
from tests.sim.violations import called, case_of, flipped, other_account

INTERACTIONS = case_of("gemini", "gemini_interactions")


def thought_at(dialogue: Dialogue) -> int:
    return next(at for at, step in enumerate(dialogue.history) if step["type"] == "thought")


def test_a_call_without_its_thought() -> None:
    """Since the last words of the user; a model before Gemini 3 does not mind."""
    dialogue = called(INTERACTIONS, "missing")
    del dialogue.history[thought_at(dialogue)]
    assert dialogue.post().json() == google("Function call is missing a thought signature. Step 2, `weather`.")
    dialogue.body["model"] = "gemini-2.5-pro"
    assert dialogue.post().status_code == 200


def test_a_signature_that_does_not_open() -> None:
    """Changed, or of another account."""
    dialogue = called(INTERACTIONS, "flipped")
    thought = dialogue.history[thought_at(dialogue)]
    whole, thought["signature"] = thought["signature"], flipped(thought["signature"])
    assert dialogue.post().json() == google("Corrupted thought signature.")
    thought["signature"] = whole
    assert dialogue.post().status_code == 200
    other_account(dialogue)
    assert dialogue.post().json() == google("Corrupted thought signature.")


def test_an_interaction_that_was_not_kept() -> None:
    """`store: false`, or an unknown name: 404. A stored one continues with new steps only."""
    for stores, status in ((False, 404), (True, 200)):
        dialogue = Dialogue(INTERACTIONS, f"kept {stores}", store=stores)
        dialogue.body["previous_interaction_id"] = dialogue.ask()["id"]
        dialogue.body["input"] = [dialogue.wire.say("And then?")]
        assert dialogue.post().status_code == status
    dialogue.body["previous_interaction_id"] = "v1_nobody"
    assert dialogue.post().json()["error"]["status"] == "NOT_FOUND"


@pytest.mark.parametrize("model", ["gemini-2.5-flash", "gemini-3.5-flash"])
def test_a_thought_without_a_signature(model: str) -> None:
    """Two models return one next to a summary, and reject it when it comes back (js-genai#1735)."""
    dialogue = called(INTERACTIONS._replace(model=model), f"unsigned {model}")
    assert dialogue.history[1]["signature"] == ""
    response = dialogue.post()
    assert (response.status_code, response.json()["error"]["message"]) == (400, "Request contains an invalid argument.")
    del dialogue.history[1]
    assert dialogue.post().status_code == 200
