"""Words that a client trims under thinking that it keeps: they go back as the model said them."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from tests.gateway.world import Running, running
from tests.sim.serving import served

MODEL = "claude-opus-5-5"
SCRIPT = """{mark}
script:
think: first
say: Let me see.\u0020
\u0020
---
think: second
say: Once more.

---
think: third
say: Done."""


def _ask(gateway: Running, contents: list[Any]) -> list[Any]:
    body = {"contents": contents, "generationConfig": {"thinkingConfig": {"includeThoughts": True}}}
    url = f"{gateway.url}/anthropic/v1beta/models/{MODEL}:generateContent"
    response = httpx.post(url, json=body, headers={"x-goog-api-key": "k"})
    assert response.status_code == 200, response.text
    parts: list[Any] = response.json()["candidates"][0]["content"]["parts"]
    return parts


def _trimmed(part: dict[str, Any]) -> dict[str, Any]:
    return {**part, "text": part["text"].strip()} if "text" in part else part


@pytest.mark.parametrize("keeps_thoughts", [True, False], ids=["kept", "dropped"])
def test_trimmed_words_are_put_back(keeps_thoughts: bool) -> None:
    """Gemini CLI trims text when it resumes; Claude has bound its thinking to every blank before it."""
    with running({"anthropic": served("anthropic", "bound").url}) as gateway:
        mark = f"Look around, {'kept' if keeps_thoughts else 'dropped'}."
        contents: list[Any] = [{"role": "user", "parts": [{"text": SCRIPT.format(mark=mark)}]}]
        for _ in range(2):
            parts = _ask(gateway, contents)
            assert any(part.get("text", "").endswith((" ", "\n")) for part in parts)
            kept = [_trimmed(part) for part in parts if keeps_thoughts or not part.get("thought")]
            contents += [{"role": "model", "parts": kept}, {"role": "user", "parts": [{"text": "Go on."}]}]
        _ask(gateway, contents)
    last = served("anthropic", "bound").app.simulation.log[-1]
    assert (last["status"], last["verdicts"]) == (200, ["whole", "whole"])
