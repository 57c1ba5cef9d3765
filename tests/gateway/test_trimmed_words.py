"""Text that a client trims while it keeps the thinking: it goes back as the model wrote it."""

from __future__ import annotations

import json
from typing import Any

import httpx
import pytest

from tests.gateway.gateways import Running, running
from tests.sim.served_simulators import served
from thoughtline.settings import Settings
from thoughtline.stores import StoreSettings

ONE_KEY = Settings(store=StoreSettings(encryption_key="0123456789abcdef0123456789abcdef"))
"""Gateways that share only the key of their envelopes."""

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


def _ask_stream(gateway: Running, contents: list[Any]) -> list[Any]:
    """The parts of a stream; pieces of one text are joined as clients do."""
    url = f"{gateway.url}/anthropic/v1beta/models/{MODEL}:streamGenerateContent?alt=sse"
    response = httpx.post(url, json={"contents": contents}, headers={"x-goog-api-key": "k"})
    assert response.status_code == 200, response.text
    chunks = [json.loads(line[6:]) for line in response.text.splitlines() if line.startswith("data: ")]
    parts: list[Any] = []
    for part in [part for chunk in chunks for part in chunk["candidates"][0].get("content", {}).get("parts", [])]:
        if parts and part.keys() == {"text"} == parts[-1].keys():
            parts[-1]["text"] += part["text"]
        else:
            parts.append(part)
    return parts


def _trimmed(part: dict[str, Any]) -> dict[str, Any]:
    return {**part, "text": part["text"].strip()} if "text" in part else part


@pytest.mark.parametrize("keeps_thoughts", [True, False], ids=["kept", "dropped"])
def test_trimmed_words_are_put_back(keeps_thoughts: bool) -> None:
    """Gemini CLI trims text when it resumes; Claude has bound its thinking to every space before it."""
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


@pytest.mark.parametrize("ask", [_ask, _ask_stream], ids=["whole", "stream"])
def test_trimmed_words_are_put_back_where_no_record_is_left(ask: Any) -> None:
    """The session is resumed at a gateway that never saw it: the envelopes have the original text."""
    upstream = served("anthropic", "bound")
    contents: list[Any] = [{"role": "user", "parts": [{"text": SCRIPT.format(mark=f"Alone, {ask.__name__}.")}]}]
    with running({"anthropic": upstream.url}, ONE_KEY) as gateway:
        for _ in range(2):
            contents += [{"role": "model", "parts": ask(gateway, contents)}]
            contents += [{"role": "user", "parts": [{"text": "Go on."}]}]
    resumed = [{**content, "parts": [_trimmed(part) for part in content["parts"]]} for content in contents[1:]]
    assert resumed != contents[1:]
    with running({"anthropic": upstream.url}, ONE_KEY) as other:
        ask(other, [contents[0], *resumed])
    last = upstream.app.simulation.log[-1]
    assert (last["status"], last["verdicts"], last["refusal"]) == (200, ["whole", "whole"], None)
    assert other.lines[-1]["healed"] == 0


def test_words_trimmed_under_an_envelope_that_stands_before_them() -> None:
    """A Responses client's envelope is sent before the text and can't contain it. If no record is left either, the
    thinking bound to the text is left out, and the request is answered."""
    upstream = served("anthropic", "bound")
    said: list[Any] = [{"role": "user", "content": SCRIPT.format(mark="Responses.")}]
    with running({"anthropic": upstream.url}, ONE_KEY) as gateway:
        for _ in range(2):
            said += [*_respond(gateway, said), {"role": "user", "content": "Go on."}]
    for item in said:
        for part in item["content"] if item.get("type") == "message" else ():
            part["text"] = part["text"].strip()
    with running({"anthropic": upstream.url}, ONE_KEY) as other:
        _respond(other, said)
    last = upstream.app.simulation.log[-1]
    assert (last["status"], last["verdicts"]) == (200, ["whole", "missing"])
    assert other.lines[-1]["healed"] == 1


def _respond(gateway: Running, said: list[Any]) -> list[Any]:
    body = {"model": MODEL, "input": said, "store": False}
    response = httpx.post(f"{gateway.url}/anthropic/v1/responses", json=body, headers={"authorization": "Bearer k"})
    assert response.status_code == 200, response.text
    output: list[Any] = response.json()["output"]
    return output
