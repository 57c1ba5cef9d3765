"""What somebody sees who watches: the way in, requests as they come, and why one was refused."""

from __future__ import annotations

import re

import httpx
import pytest
from playwright.sync_api import Page, expect

from tests.browser.browsed_gateway import SENTENCE, World, lost_turn
from tests.browser.conftest import Watched


def test_the_way_in(page: Page, watched: Watched, gateway: World) -> None:
    """A wrong token is told so, the right one leads to the view that was asked for."""
    watched.expected = ("401",)  # Chromium tells of the refused token
    page.goto(f"{gateway.url}/memory")
    page.get_by_label("Admin token").fill("wrong")
    page.get_by_role("button", name="Log in").click()
    expect(page.get_by_role("alert")).to_contain_text("That isn't the admin token.")
    gateway.log_in(page, "/memory")
    expect(page.get_by_role("heading", name="Memory")).to_be_visible()
    page.reload()
    expect(page.get_by_role("heading", name="Memory")).to_be_visible()


def test_a_link_is_good_once(page: Page, watched: Watched, gateway: World) -> None:
    """Then there is a page to log in at, and the address no longer holds it."""
    watched.expected = ("401",)  # the used link
    link = gateway.url + gateway.gateway.link()
    page.goto(link)
    expect(page.locator(".shell")).to_be_visible()
    page.context.clear_cookies()
    page.goto(link)
    expect(page.get_by_text("This login link has already been used")).to_be_visible()
    expect(page).to_have_url(f"{gateway.url}/login")


def test_a_stream_arrives(page: Page, gateway: World) -> None:
    """It is there as soon as it begins, streams, and is done, without a reload."""
    gateway.log_in(page)
    expect(page.get_by_role("status")).to_contain_text("listening")
    row = page.locator(".row", has_text="slow-1").first
    with gateway.streaming():
        expect(row).to_contain_text("streaming")
        row.click()
        expect(page.locator(".detail")).to_contain_text("streaming…")
    expect(row).to_contain_text("200")
    expect(page.locator(".detail .timeline")).to_contain_text("over: 200")


def test_why_a_request_was_refused(page: Page, gateway: World) -> None:
    """The provider's own words, the rule, the turn, what helps: one click from the list."""
    request = gateway.refused()
    gateway.log_in(page)
    page.get_by_label("Filter").fill("status:4xx provider:wall")
    row = page.locator(".row").first
    expect(row).to_contain_text("400")
    row.click()
    expect(page).to_have_url(re.compile(request))
    detail = page.locator(".detail")
    expect(detail.locator(".said")).to_contain_text(SENTENCE)
    expect(detail.locator(".said")).to_contain_text("What helps:")
    expect(detail.locator(".turns")).to_contain_text("/messages/1")


def test_how_a_request_was_healed(page: Page, gateway: World) -> None:
    """What was refused, that it was sent again, and what was learned; the bodies stand beside each other."""
    request = gateway.healed()
    gateway.log_in(page, f"/requests/{request}")
    expect(page.locator(".head .tag")).to_have_text("healed")
    expect(page.locator(".said")).to_contain_text("then took the corrected request")
    expect(page.locator(".timeline")).to_contain_text("corrected and sent again")
    expect(page.locator(".beside .changed").first).to_contain_text("assistant")
    page.goto(f"{gateway.url}/contracts")
    expect(page.locator("table").first).to_contain_text("acme")


def test_a_request_as_curl(page: Page, gateway: World) -> None:
    """With its body, and without the key it came with."""
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    request = gateway.refused()
    gateway.log_in(page, f"/requests/{request}")
    page.get_by_role("button", name="Copy as curl").click()
    expect(page.get_by_role("button", name="Copied")).to_be_visible()
    copied: str = page.evaluate("navigator.clipboard.readText()")
    assert copied.startswith(f"curl -X POST {gateway.url}/wall/v1/chat/completions")
    assert "Mend the tokenizer" in copied
    assert "$API_KEY" in copied
    assert "someone" not in copied


def test_the_body_of_a_request_is_audited(page: Page, gateway: World) -> None:
    """From the request itself: the finding stands at its line."""
    request = gateway.refused()
    gateway.log_in(page, f"/requests/{request}")
    page.get_by_role("link", name="Audit this").click()
    page.get_by_label("Provider").select_option("deepseek")
    page.get_by_role("button", name="Audit", exact=True).click()
    expect(page.locator(".audit")).to_contain_text("1 finding")
    expect(page.locator(".source .numbers a.hit")).to_have_count(1)


def test_a_session_shows_what_was_thought(page: Page, gateway: World) -> None:
    """Turns in order, the change of the model, reasoning when it is unfolded."""
    chat = gateway.chat("A long story", "story")
    chat.ask("deepseek", "deepseek-v4-pro")
    chat.ask("kimi", "kimi-k3")
    gateway.log_in(page, "/sessions")
    page.get_by_role("link", name="story", exact=True).click()
    expect(page.locator(".dialogue")).to_contain_text("deepseek/deepseek-v4-pro → kimi/kimi-k3")
    expect(page.locator(".thought").first).to_contain_text("I should call bash before I answer.")


def test_the_keys(page: Page, gateway: World) -> None:
    """`/` filters, Esc leaves, j and k walk and show, ? explains, digits change the view."""
    gateway.refused()
    gateway.refused()
    gateway.log_in(page)
    expect(page.locator(".row").nth(1)).to_be_visible()
    page.keyboard.press("/")
    expect(page.get_by_label("Filter")).to_be_focused()
    page.keyboard.press("Escape")
    page.keyboard.press("j")
    expect(page.locator(".row").nth(0)).to_have_attribute("aria-current", "true")
    page.keyboard.press("j")
    expect(page.locator(".row").nth(1)).to_have_attribute("aria-current", "true")
    page.keyboard.press("k")
    expect(page.locator(".row").nth(0)).to_have_attribute("aria-current", "true")
    page.keyboard.press("?")
    expect(page.locator("dialog")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.locator("dialog")).to_have_count(0)
    page.keyboard.press("3")
    expect(page.get_by_role("heading", name="Memory")).to_be_visible()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_dark_and_light(page: Page, gateway: World, scheme: str) -> None:
    """As the system says, until it is switched; and it stays switched."""
    ground = "getComputedStyle(document.body).backgroundColor"
    page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]  # a word of a fixed set
    gateway.log_in(page)
    before = page.evaluate(ground)
    other = "Dark" if scheme == "light" else "Light"
    switch = page.get_by_title("Dark or light")
    for word in ("Light", "Dark")[: 2 if scheme == "light" else 1]:
        switch.click()
        expect(switch).to_have_text(word)
    expect(page.locator("body")).not_to_have_css("background-color", before)
    page.reload()
    expect(page.get_by_title("Dark or light")).to_have_text(other)


def test_what_the_filter_takes(page: Page, gateway: World) -> None:
    """The beginning of a session and of a tenant as they are shown, names in any case, all others with a minus; a name
    that is none is said to be none."""
    chat = gateway.chat("Look here", "filtered-by-name")
    assert chat.ask("deepseek", "deepseek-v4-pro").status_code == 200
    gateway.refused()
    tenant = gateway.gateway.get("/api/requests")["requests"][0]["tenant"]
    gateway.log_in(page)
    written, wall = page.get_by_label("Filter"), page.locator(".row").filter(has_text="wall")
    others = page.locator(".row").filter(has_not_text="wall")
    for words, shown, hidden in [
        ("session:filtered-by", others, wall),
        ("Provider:wall", wall, others),
        ("-provider:deepseek status:400", wall, others),
        ("-status:400 session:filtered", others, wall),
        (f"tenant:{tenant[:10]} provider:wall", wall, others),
    ]:
        written.fill(words)
        expect(hidden).to_have_count(0)
        expect(shown.first).to_be_visible()
    written.fill("foo:bar")
    expect(page.get_by_text("There is no filter foo")).to_be_visible()
    written.fill("client:nothing-of-that-name")
    expect(page.get_by_text("No matching requests")).to_be_visible()


def test_a_turn_that_went_up_blank(page: Page, gateway: World) -> None:
    """An outcome of its own, with a whole sentence."""
    chat = gateway.chat("Look at the log", "blank")
    chat.history += lost_turn()
    response = chat.ask("deepseek", "deepseek-v4-pro")
    assert response.status_code == 200
    gateway.log_in(page, f"/requests/{response.headers['x-thoughtline-request']}")
    expect(page.locator(".head .tag")).to_have_text("blank")
    expect(page.locator(".turns p")).to_have_text(re.compile("^there is no record of this turn"))


def test_a_request_that_went_nowhere_has_no_bodies(page: Page, gateway: World) -> None:
    """Bodies are kept here, so the page does not say that they are not."""
    request = httpx.post(f"{gateway.url}/nowhere/v1/x", json={}).headers["x-thoughtline-request"]
    gateway.log_in(page, f"/requests/{request}")
    expect(page.get_by_text("This request did not go to a provider")).to_be_visible()
    expect(page.get_by_text("Bodies are not kept")).to_have_count(0)


def test_since_when_requests_are_counted(page: Page, gateway: World) -> None:
    """Not the last 24 hours, if it runs since a moment ago."""
    gateway.log_in(page)
    expect(page.locator(".top p").first).to_contain_text("Since the start, ")
    expect(page.get_by_text("Last 24 h")).to_have_count(0)


@pytest.mark.parametrize("view", ["live", "health"])
def test_a_gateway_that_is_gone_has_no_good_store(page: Page, watched: Watched, gateway: World, view: str) -> None:
    watched.expected = ("ERR_FAILED",)  # what is aborted below
    gateway.log_in(page)
    page.goto(f"{gateway.url}/{view}")
    expect(page.locator(".state")).to_contain_text("Store OK")
    page.route("**/*", lambda route: route.abort())
    expect(page.locator(".state")).to_contain_text("Gateway is down", timeout=15_000)  # asked every five seconds
    expect(page.get_by_text("The store is OK")).to_have_count(0)
    page.unroute("**/*")
