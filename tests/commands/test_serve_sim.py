"""`serve --sim`: a simulator in the process of the gateway."""

from __future__ import annotations

import json
import shlex

import httpx
import pytest

from thoughtline.commands.serve import start_sim, to_paste


@pytest.mark.parametrize(("name", "provider"), [("deepseek-r1", "deepseek"), ("gemini-2.5", "gemini")])
def test_it_stands_for_its_provider(name: str, provider: str) -> None:
    """Where a provider has a simulator for each generation, that of all of them; and it serves the model it names."""
    sim = start_sim(name)
    assert sim.provider == provider
    response = httpx.post(f"{sim.url}/v1/chat/completions", json={"model": sim.model, "messages": []}, timeout=60)
    assert response.status_code < 500
    assert response.headers["content-type"].startswith("application/json")


def test_what_is_pasted_is_two_requests_of_one_conversation() -> None:
    """The second without what the model thought in the first."""
    lines = to_paste("http://127.0.0.1:8642", "deepseek-reasoner").splitlines()
    first, second = (json.loads(shlex.split(line)[-1]) for line in lines)
    assert [shlex.split(line)[:3] for line in lines] == [
        ["curl", "-si", "http://127.0.0.1:8642/v1/chat/completions"]
    ] * 2
    assert first["model"] == second["model"] == "deepseek-reasoner"
    assert second["messages"][:1] == first["messages"]
    assert [message["role"] for message in second["messages"]] == ["user", "assistant", "user"]
    assert "reasoning_content" not in second["messages"][1]
