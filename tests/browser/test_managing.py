"""What somebody does who manages: forget, switch, hand out keys, connect, audit, reset."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from playwright.sync_api import Page, expect

from tests.browser.browsed_gateway import PROGRAM, World, world
from tests.browser.conftest import Watched
from tests.gateway.test_admin_settings import refresh
from tests.stores.places import sqlite_url

LOST = {
    "model": "deepseek-v4-pro",
    "messages": [
        {"role": "user", "content": "hi"},
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [{"id": "a", "type": "function", "function": {"name": "b", "arguments": "{}"}}],
        },
        {"role": "tool", "tool_call_id": "a", "content": "x"},
    ],
    "tools": [{"type": "function", "function": {"name": "b", "parameters": {"type": "object"}}}],
}


def test_a_turn_is_found_and_forgotten(page: Page, gateway: World) -> None:
    """By the id of its call; the button asks twice; others stay."""
    chat, other = gateway.chat("Find me", "found"), gateway.chat("Leave me", "left")
    chat.ask("deepseek", "deepseek-v4-pro")
    other.ask("deepseek", "deepseek-v4-pro")
    call = chat.history[1]["tool_calls"][0]["id"]
    gateway.log_in(page, "/memory")
    page.get_by_label("Tool call id").fill(call)
    page.get_by_role("button", name="Find").click()
    expect(page.locator(".entry")).to_have_count(1)
    page.locator(".entry summary").click()
    expect(page.locator(".entry")).to_contain_text("I should call bash before I answer.")
    page.get_by_role("button", name="Forget this turn").click()
    page.get_by_role("button", name="Forget this turn?").click()
    expect(page.get_by_role("status")).to_contain_text("1 turn forgotten.")
    expect(page.get_by_text("No matching turns")).to_be_visible()
    left = gateway.gateway.get("/api/cache/reasoning", session="left")
    assert len(left["entries"]) == 1


def test_continuity_is_switched_on(page: Page, gateway: World) -> None:
    """The next request to another model is told what the last one thought, and its view says so."""
    chat = gateway.chat("Hand me over", "handed")
    chat.ask("deepseek", "deepseek-v4-pro")
    assert "checkpoints=0" in chat.ask("kimi", "kimi-k3").headers["x-thoughtline-replay"]
    gateway.log_in(page, "/settings")
    page.get_by_role("checkbox").check()
    expect(page.get_by_text("use the file's")).to_be_visible()
    page.get_by_label("how many").fill("2")
    page.get_by_label("how many").blur()
    page.get_by_label("when").select_option("always")
    expect(page.get_by_text("use the file's")).to_have_count(3)
    refresh(gateway.gateway)
    again = gateway.chat("Hand me over, too", "handed-again")
    again.ask("deepseek", "deepseek-v4-pro")
    response = again.ask("kimi", "kimi-k3")
    assert "checkpoints=1" in response.headers["x-thoughtline-replay"]
    page.goto(f"{gateway.url}/requests/{response.headers['x-thoughtline-request']}")
    expect(page.locator(".tags").first).to_contain_text("checkpoints 1")
    page.goto(f"{gateway.url}/sessions/handed-again")
    expect(page.locator(".dialogue")).to_contain_text("1 checkpoint quoted here")


def test_a_count_out_of_bounds_is_refused(page: Page, watched: Watched, gateway: World) -> None:
    """With the API's own words; what was set stays."""
    watched.expected = ("400",)  # the refused setting
    gateway.log_in(page, "/settings")
    page.get_by_label("how many").fill("101")
    page.get_by_label("how many").blur()
    expect(page.get_by_role("alert")).to_contain_text("100")


@pytest.fixture
def keyed(tmp_path: Path) -> Iterator[World]:
    with world(takes_keys=True, store_url=sqlite_url(tmp_path)) as one:
        yield one


def test_a_key_is_added_and_revoked(page: Page, keyed: World) -> None:
    """It is shown once, opens the gateway, was last used then; and no longer opens it."""
    keyed.log_in(page, "/settings")
    expect(page.get_by_text("No client keys")).to_be_visible()
    page.get_by_label("Name").fill("ann")
    page.get_by_role("button", name="Add key").click()
    secret = page.locator(".secret > code").first.inner_text()
    assert keyed.chat("With a key", "keyed", key=secret).ask("keyed", "deepseek-v4-pro").status_code == 200
    page.reload()
    row = page.locator("tr", has_text="ann")
    expect(row).to_contain_text("good")
    expect(row.locator("[data-label='last used']")).not_to_have_text("never")
    expect(page.locator("body")).not_to_contain_text(secret)
    row.get_by_role("button", name="Revoke").click()
    row.get_by_role("button", name="Revoke it?").click()
    expect(row).to_contain_text("revoked")
    assert keyed.chat("Without", "keyed", key=secret).ask("keyed", "deepseek-v4-pro").status_code == 401


def test_a_body_is_audited(page: Page, watched: Watched, gateway: World) -> None:
    """Pasted; the finding has the provider's words and its line, and leads there."""
    gateway.log_in(page, "/audit")
    page.get_by_label("Body of a request").fill(json.dumps(LOST, indent=2))
    page.get_by_label("Provider").select_option("deepseek")
    page.get_by_role("button", name="Audit", exact=True).click()
    finding = page.locator(".audit .turn")
    expect(finding).to_contain_text("must be passed back to the API")
    expect(finding).to_contain_text("/messages/1")
    text = json.dumps(LOST, indent=2).splitlines()
    (line,) = [at for at, words in enumerate(text, 1) if words == "    {" and "assistant" in text[at]]
    expect(finding).to_contain_text(f"line {line}")
    expect(page.locator(".source .numbers a.hit")).to_have_text(str(line))
    page.get_by_role("button", name="Edit").click()
    page.get_by_label("Body of a request").fill('{"model": "gpt-4o", "messages": []')
    watched.expected = ("400", "422")  # what is no JSON is refused
    page.get_by_role("button", name="Audit", exact=True).click()
    expect(page.get_by_role("alert")).to_contain_text("can't be read")


def test_a_client_is_connected(page: Page, gateway: World) -> None:
    """What to set is shown with this gateway's address; the light turns green at the first request."""
    gateway.log_in(page, "/connect")
    page.get_by_label("Client").select_option("claude-code")
    page.get_by_label("Provider").select_option("kimi")
    expect(page.locator(".setup pre").first).to_contain_text(f"{gateway.url}/kimi")
    expect(page.locator(".setup")).to_contain_text("thoughtline run claude-code --provider kimi starts it")
    light = page.get_by_role("status")
    expect(light).to_contain_text("Waiting for the first request of Claude Code")
    body = {"model": "kimi-k3", "max_tokens": 64, "messages": [{"role": "user", "content": "hi"}]}
    headers = {"user-agent": PROGRAM, "x-api-key": "someone", "anthropic-version": "2023-06-01"}
    assert httpx.post(f"{gateway.url}/kimi/v1/messages", json=body, headers=headers).status_code == 200
    expect(light).to_contain_text("Claude Code has sent requests here.")


def test_what_was_learned_is_reset(page: Page, gateway: World) -> None:
    """What a refusal taught is listed until somebody resets it."""
    gateway.healed()
    gateway.log_in(page, "/contracts")
    learned = page.locator(".panel", has_text="Learned from refusals")
    expect(learned).to_contain_text("acme")
    learned.get_by_role("button", name="Reset", exact=True).first.click()
    learned.get_by_role("button", name="Reset it?").click()
    expect(learned).to_contain_text("Nothing learned yet")
