"""Gemini: signatures missing, altered, moved, of another call, model or account."""

from __future__ import annotations

import pytest

from tests.sim.faces import Body, Case, Dialogue, verdicts_of
from tests.sim.violations import Edit, answered, called, case_of, flipped, other_account

GEMINI = case_of("gemini", "gemini_generate", "3-pro")
GEMINI_CHAT = case_of("gemini")
GEMINI_MISSING = (
    "Function call is missing a thought_signature in functionCall parts. This is required for tools "
    "to work correctly, and "
    "missing thought_signature may lead to degraded model performance. Additional data, function call "
    "`default_api:weather` , position 2. Please refer to https://ai.google.dev/gemini-api/docs/thought-signatures for "
    "more details."
)


def google(message: str) -> Body:
    return {"error": {"code": 400, "message": message, "status": "INVALID_ARGUMENT"}}


def part(dialogue: Dialogue) -> Body:
    first: Body = dialogue.history[1]["parts"][0]
    return first


def test_gemini_signature_missing() -> None:
    """Plain, and in an array for a stream without `alt=sse`."""
    dialogue = called(GEMINI, "missing")
    del part(dialogue)["thoughtSignature"]
    response = dialogue.post()
    assert response.json() == google(GEMINI_MISSING)
    assert response.status_code == 400
    assert dialogue.post(is_streaming=True).json() == google(GEMINI_MISSING)
    dialogue.case = GEMINI._replace(stream_path="/v1beta/models/{model}:streamGenerateContent")
    assert dialogue.post(is_streaming=True).json() == [google(GEMINI_MISSING)]


def _gemini_flip(dialogue: Dialogue) -> None:
    part(dialogue)["thoughtSignature"] = flipped(part(dialogue)["thoughtSignature"])


def _gemini_arguments(dialogue: Dialogue) -> None:
    part(dialogue)["functionCall"]["args"] = {"city": "Oslo"}


def _gemini_model(dialogue: Dialogue) -> None:
    dialogue.case = dialogue.case._replace(model="gemini-3-flash-preview")


@pytest.mark.parametrize("edit", [_gemini_flip, _gemini_arguments, _gemini_model, other_account])
def test_gemini_signature_corrupted(edit: Edit) -> None:
    """Altered, on another call, of another model, of another account."""
    dialogue = called(GEMINI, f"corrupted {edit.__name__}")
    edit(dialogue)
    assert dialogue.post().json() == google("Corrupted thought signature.")


@pytest.mark.parametrize(
    ("case", "sentence"),
    [
        (GEMINI._replace(model="gemini-3.7-flash"), "Invalid thought signature."),
        (
            GEMINI._replace(path="/v1/projects/p/locations/l/publishers/google/models/{model}:generateContent"),
            "Unable to submit request because Thought signature is not valid.. Learn more: "
            "https://cloud.google.com/vertex-ai/generative-ai/docs/model-reference/gemini",
        ),
    ],
    ids=["3.7 flash", "vertex"],
)
def test_gemini_other_wordings(case: Case, sentence: str) -> None:
    """Of one model, and of Vertex."""
    dialogue = called(case, sentence[:9])
    _gemini_flip(dialogue)
    assert dialogue.post().json() == google(sentence)


@pytest.mark.parametrize(
    "sentinel",
    [
        "skip_thought_signature_validator",
        "context_engineering_is_the_way_to_go",
        "c2tpcF90aG91Z2h0X3NpZ25hdHVyZV92YWxpZGF0b3I=",
    ],
)
def test_gemini_sentinels(sentinel: str) -> None:
    """Words that pass for a signature, or their base64."""
    dialogue = called(GEMINI, f"sentinel {sentinel}")
    part(dialogue)["thoughtSignature"] = sentinel
    assert dialogue.post().status_code == 200


def test_gemini_looks_at_the_current_turn_only() -> None:
    """Older calls may be bare; so may the siblings of a signed call."""
    dialogue = answered(GEMINI, "older")
    del part(dialogue)["thoughtSignature"]
    assert dialogue.post().status_code == 200


PARALLEL = '{mark}\nscript:\nthink: two\ncall: weather {{"city": "A"}}\ncall: weather {{"city": "B"}}\n---\nsay: done'


def test_gemini_signs_the_first_of_parallel_calls() -> None:
    """A signature moved to its sibling is missing where it belongs."""
    dialogue = Dialogue(GEMINI, PARALLEL.format(mark="parallel"))
    dialogue.go_on(dialogue.ask())
    first, second = dialogue.history[1]["parts"]
    assert "thoughtSignature" in first
    assert "thoughtSignature" not in second
    second["thoughtSignature"] = first.pop("thoughtSignature")
    assert dialogue.post().json() == google(GEMINI_MISSING)


def test_gemini_url_safe_spelling_is_taken() -> None:
    """The SDK re-encodes signatures in the other alphabet."""
    dialogue = called(GEMINI, "url safe")
    part(dialogue)["thoughtSignature"] = part(dialogue)["thoughtSignature"].replace("+", "-").replace("/", "_")
    assert dialogue.post().status_code == 200


def test_gemini_chat_face() -> None:
    """The same validator; errors in an array."""
    dialogue = called(GEMINI_CHAT, "chat face")
    kept = dialogue.history[1]["tool_calls"][0].pop("extra_content")
    assert dialogue.post().json() == [google(GEMINI_MISSING)]
    signature = flipped(kept["google"]["thought_signature"])
    dialogue.history[1]["tool_calls"][0]["extra_content"] = {"google": {"thought_signature": signature}}
    assert dialogue.post().json() == [google("Corrupted thought signature.")]


def test_gemini_2_5_never_refuses() -> None:
    """But knows what is missing."""
    dialogue = called(case_of("gemini-2.5", "gemini_generate"), "2.5")
    del part(dialogue)["thoughtSignature"]
    assert dialogue.post().status_code == 200
    assert verdicts_of(dialogue) == ["missing"]
