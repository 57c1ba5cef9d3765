"""The shell and Live: what the words mean, whether the gateway is up, the way out, and plots of the first day."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect

from tests.browser.browsed_gateway import World, world
from tests.browser.conftest import Watched
from tests.browser.test_accessibility import findings
from tests.browser.test_pages import look


def test_the_words_have_a_legend(page: Page, gateway: World) -> None:
    """Every outcome that the API has, and every treatment of a turn."""
    gateway.log_in(page)
    page.get_by_text("What the words mean").click()
    words = set(page.locator("dl.legend dt").all_inner_texts())
    spec = gateway.gateway.get("/api/openapi.json")
    outcomes = spec["components"]["schemas"]["RequestRow"]["properties"]["outcome"]["enum"]
    treatments = spec["components"]["schemas"]["TurnView"]["properties"]["treatment"]["enum"]
    assert words == {*outcomes, *treatments} - {"pending"}
    assert findings(page) == []


def test_a_turn_without_its_reasoning_is_no_success(page: Page, gateway: World) -> None:
    """A blank is called so in the list and on its page, in its own colour."""
    chat = gateway.chat("Never seen before", "unseen")
    call = {"id": "c-1", "type": "function", "function": {"name": "bash", "arguments": "{}"}}
    chat.history += [
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c-1", "content": "a"},
    ]
    request = chat.ask("deepseek", "deepseek-v4-pro").headers["x-thoughtline-request"]
    gateway.log_in(page)
    row = page.locator(f'.row[href*="{request}"]')
    expect(row.locator(".tag.blank").first).to_have_text("blank")
    expect(row.locator(".tag.restored")).to_have_count(0)
    row.click()
    expect(page.locator(".detail .head .tag")).to_have_text("blank")


def test_the_way_out(page: Page, watched: Watched, gateway: World) -> None:
    """The cookie goes; going back or reloading shows the login page."""
    watched.expected = ("401",)
    gateway.log_in(page, "/sessions")
    page.get_by_role("button", name="Log out").click()
    expect(page.get_by_label("Admin token")).to_be_visible()
    assert [one for one in page.context.cookies() if one["value"]] == []
    page.goto(f"{gateway.url}/memory")
    expect(page.get_by_label("Admin token")).to_be_visible()


def test_other_sites_can_not_log_out(gateway: World) -> None:
    """Only our own page."""
    http = gateway.gateway.anyone
    headers = {"sec-fetch-site": "cross-site", "origin": "https://elsewhere.example"}
    assert http.post("/logout", headers=headers).status_code == 403
    assert http.post("/logout").status_code == 403
    response = http.post("/logout", headers={"sec-fetch-site": "same-origin"})
    assert response.status_code == 303
    assert "Max-Age=0" in response.headers["set-cookie"]


def test_a_gateway_that_is_down_is_shown_as_down(page: Page, watched: Watched) -> None:
    """Not as one whose store works."""
    watched.expected = ("ERR_CONNECTION_REFUSED", "Failed to load resource", "ERR_")
    with world() as one:
        one.log_in(page)
        expect(page.locator(".side .state")).to_contain_text("Store OK")
    expect(page.locator(".side .state")).to_contain_text("Gateway is down", timeout=20_000)
    expect(page.locator(".side .state .dot.bad")).to_be_visible()
    expect(page.locator(".list [role=status]")).to_contain_text("connecting again…")


def test_the_plots_of_a_new_gateway_are_of_its_time(page: Page, gateway: World) -> None:
    """A quarter of an hour, not a line at the right edge of a day."""
    gateway.chat("Anything", "plots").ask("deepseek", "deepseek-v4-pro")
    gateway.log_in(page, "/health")
    expect(page.locator(".plot").first).to_be_visible()
    words = page.get_by_text("From ").first.inner_text()
    first, last = (int(part[:2]) * 60 + int(part[3:5]) for part in words.removeprefix("From ").split(" to "))
    assert (last - first) % 1440 == 14
    look(page, "health-new")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_continuity_shows_what_it_would_quote(page: Page, scheme: str) -> None:
    """For a session and a model that are chosen, by a count that is not yet saved; and why not for others."""
    page.emulate_media(color_scheme=scheme, reduced_motion="reduce")  # type: ignore[arg-type]  # a word of a fixed set
    with world() as one:
        chat = one.chat("Why is the parser slow?", "slow-parser")
        for _ in range(4):
            chat.ask("deepseek", "deepseek-v4-pro")
        one.log_in(page, "/settings")
        page.get_by_label("if this model took over").select_option("anthropic/claude-opus-5-5")
        preview = page.locator(".preview")
        expect(page.get_by_label("of the session")).to_have_text("slow-parser")
        assert page.get_by_label("of the session").input_value().endswith(" slow-parser")
        expect(preview.get_by_role("status")).to_contain_text(
            "3 checkpoints would be quoted to anthropic/claude-opus-5-5"
        )
        expect(preview.get_by_role("status")).to_contain_text("Continuity is off")
        preview.locator("details.quote summary").first.click()
        expect(preview.locator(".thought-text").first).to_contain_text("I have what I need to answer.")
        expect(preview).to_contain_text("Not quoted: 1 turn, because newer ones are quoted.")
        assert findings(page) == []
        look(page, f"preview-{scheme}")
        page.get_by_label("if this model took over").select_option("deepseek/deepseek-v4-pro")
        expect(preview.get_by_role("status")).to_contain_text("Nothing would be quoted")
        expect(preview).to_contain_text("the same model made it, and gets it natively")
