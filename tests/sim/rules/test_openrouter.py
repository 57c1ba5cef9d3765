"""Copilot and OpenRouter: tokens of others, errors wrapped; and what every face knows."""

from __future__ import annotations

import pytest

from tests.sim.faces import Body, Dialogue, verdicts_of
from tests.sim.violations import Edit, called, case_of, flipped


@pytest.mark.parametrize("change", ["flipped", "text", "model", "account"])
def test_copilot(change: str) -> None:
    """Text and token belong together, to a model and an account."""
    dialogue = called(case_of("copilot"), f"copilot {change}")
    message = dialogue.history[1]
    if change == "flipped":
        message["reasoning_opaque"] = flipped(message["reasoning_opaque"])
    elif change == "text":
        message["reasoning_text"] += "!"
    elif change == "model":
        dialogue.body["model"] = "claude-opus-4.5"
    else:
        dialogue.key = "key-2"
    assert dialogue.post().text == (
        '{"error":{"message":"messages.1.content.0: Invalid `signature` in `thinking` block",'
        '"code":"invalid_request_body"}}'
    )


def wrapped(raw: str, provider_name: str) -> Body:
    metadata = {"raw": raw, "provider_name": provider_name, "is_byok": True}
    error = {"message": "Provider returned error", "code": 400, "metadata": metadata}
    return {"error": error, "user_id": "user_simulated"}


def _no_details(dialogue: Dialogue) -> None:
    for field in ("reasoning_details", "reasoning"):
        dialogue.history[1].pop(field)


def _text_alone(dialogue: Dialogue) -> None:
    del dialogue.history[1]["reasoning_details"]


def _details_flipped(dialogue: Dialogue) -> None:
    entry = dialogue.history[1]["reasoning_details"][-1]
    field = "signature" if "signature" in entry else "data"
    entry[field] = flipped(entry[field])


KIMI_RAW = (
    '{"error":{"message":"thinking is enabled but reasoning_content is missing in assistant tool '
    'call message at index 1",'
    '"type":"invalid_request_error"}}'
)
DEEPSEEK_RAW = (
    '{"error":{"message":"The `reasoning_content` in the thinking mode must be passed back to the API.",'
    '"type":"invalid_request_error","param":null,"code":"invalid_request_error"}}'
)
CORRUPTED_RAW = '{"error":{"code":400,"message":"Corrupted thought signature.","status":"INVALID_ARGUMENT"}}'


@pytest.mark.parametrize(
    ("model", "edit", "raw", "provider_name"),
    [
        ("moonshotai", _no_details, KIMI_RAW, "Moonshot AI"),
        ("deepseek", _no_details, DEEPSEEK_RAW, "DeepSeek"),
        ("google", _details_flipped, CORRUPTED_RAW, "Google AI Studio"),
    ],
)
def test_openrouter_wraps(model: str, edit: Edit, raw: str, provider_name: str) -> None:
    """The upstream's body as a string."""
    dialogue = called(case_of("openrouter", part=model), f"wrapped {model}")
    edit(dialogue)
    assert dialogue.post().json() == wrapped(raw, provider_name)


@pytest.mark.parametrize("edit", [_text_alone, _details_flipped])
def test_openrouter_anthropic(edit: Edit) -> None:
    """Text without details becomes unsigned thinking, which Anthropic refuses as it refuses a forged one."""
    dialogue = called(case_of("openrouter", part="anthropic"), f"or anthropic {edit.__name__}")
    edit(dialogue)
    raw = dialogue.post().json()["error"]["metadata"]["raw"]
    assert '"message":"messages.1.content.0: Invalid `signature` in `thinking` block"' in raw


def test_openrouter_openai() -> None:
    """Ciphertext that does not open."""
    dialogue = called(case_of("openrouter", part="openai.gpt"), "or openai")
    _details_flipped(dialogue)
    assert "invalid_encrypted_content" in dialogue.post().json()["error"]["metadata"]["raw"]


def test_every_face_knows_altered_reasoning() -> None:
    """For advisory families too: text that changed on its way is seen."""
    for simulator, field in (("glm", "reasoning_content"), ("qwen", "reasoning_content"), ("vllm", "reasoning")):
        dialogue = called(case_of(simulator), f"altered {simulator}")
        dialogue.history[1][field] += " indeed"
        assert dialogue.post().status_code == 200
        assert verdicts_of(dialogue) == ["altered"]
