"""Every view, light and dark, wide and on a phone: no error, no violation of the policy, nothing that sticks out."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.browser.browsed_gateway import World, world
from tests.browser.conftest import Watched

SHOTS = os.environ.get("THOUGHTLINE_SCREENSHOTS")
VIEWS = {
    "live": "Live",
    "sessions": "Sessions",
    "memory": "Memory",
    "health": "Health",
    "connect": "Connect",
    "contracts": "Contracts",
    "audit": "Audit",
    "settings": "Settings",
}
SIZES = {"wide": {"width": 1280, "height": 800}, "phone": {"width": 390, "height": 844}}


@pytest.fixture(scope="module")
def busy() -> Iterator[World]:
    """A gateway where something of everything has happened."""
    with world() as one:
        chat = one.chat("Fix the parser", "fix-the-parser")
        for provider, model in [("deepseek", "deepseek-v4-pro")] * 4 + [("kimi", "kimi-k3")] * 3:
            chat.ask(provider, model)
        one.refused()
        one.healed()
        yield one


@pytest.fixture(scope="module")
def idle() -> Iterator[World]:
    """One where nothing has."""
    with world() as one:
        yield one


def look(page: Page, name: str) -> None:
    """A picture for people, where they want one."""
    if SHOTS:
        Path(SHOTS).mkdir(parents=True, exist_ok=True)
        page.screenshot(path=Path(SHOTS) / f"{name}.png", full_page=True)


def check_width(page: Page) -> None:
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), page.url


STICKING_OUT = """() => [...document.querySelectorAll("main :is(input, select, button, textarea, table, pre)")]
  .filter((one) => {
    const card = one.closest(".panel, .list, .view");
    if (!card || !one.offsetParent || one.closest(".scroll")) return false;
    return one.getBoundingClientRect().right > card.getBoundingClientRect().right + 1;
  }).map((one) => one.outerHTML.slice(0, 80))"""
"""Controls that stand over the edge of their card."""

MARKDOWN = """() => {
  const walker = document.createTreeWalker(document.querySelector("main"), NodeFilter.SHOW_TEXT);
  const found = [];
  while (walker.nextNode()) {
    const { nodeValue, parentElement } = walker.currentNode;
    const isCode = parentElement.closest("pre, code, textarea, .source, .thought-text");
    if (!isCode && /`|\\]\\(/.test(nodeValue)) found.push(nodeValue);
  }
  return found;
}"""
"""Texts with backticks or links of Markdown that are no code."""


def check_texts(page: Page) -> None:
    assert page.evaluate(STICKING_OUT) == [], page.url
    assert page.evaluate(MARKDOWN) == [], page.url


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_view(page: Page, busy: World, scheme: str, size: str) -> None:
    """With something in it."""
    page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]  # a word of a fixed set
    page.set_viewport_size(SIZES[size])  # type: ignore[arg-type]  # has both members
    page.goto(f"{busy.url}/login")
    look(page, f"login-{scheme}-{size}")
    busy.log_in(page)
    newest = busy.gateway.get("/api/requests", status="400")["requests"][0]["id"]
    healed = busy.gateway.get("/api/requests", outcome="healed")["requests"][0]["id"]
    for path, title in VIEWS.items():
        page.goto(f"{busy.url}/{path}")
        expect(page.get_by_role("heading", name=title, exact=True)).to_be_visible()
        expect(page.get_by_text("Loading…")).to_have_count(0)
        check_width(page)
        check_texts(page)
        look(page, f"{path}-{scheme}-{size}")
    more = {
        f"/live/{newest}": ".cause",
        f"/requests/{newest}": ".turns",
        f"/requests/{healed}": ".beside",
        "/sessions/fix-the-parser": ".dialogue",
        f"/audit?request={newest}": ".audit",
        "/connect?client=codex": ".setup",
        "/connect?client=claude-code&provider=bedrock": ".setup",
    }
    for number, (path, part) in enumerate(more.items()):
        page.goto(busy.url + path)
        expect(page.locator(part).first).to_be_visible()
        check_width(page)
        check_texts(page)
        look(page, f"more-{number}-{scheme}-{size}")


def test_every_view_where_nothing_has_happened(page: Page, idle: World) -> None:
    """Says what to do next."""
    idle.log_in(page)
    words = {
        "live": "Waiting for the first request",
        "sessions": "No session yet",
        "memory": "Nothing is remembered yet",
        "health": "No routes",
        "contracts": "Nothing learned yet",
        "audit": "No findings yet",
        "settings": "No client keys",
    }
    for path, empty in words.items():
        page.goto(f"{idle.url}/{path}")
        expect(page.get_by_text(empty)).to_be_visible()
        look(page, f"empty-{path}")


@pytest.mark.parametrize("path", ["/sessions/%E0%A4%A", "/requests/100%", "/live/%zz"])
def test_an_address_with_a_stray_percent_sign(watched: Watched, busy: World, path: str) -> None:
    """The view is there, and says that there is nothing of that name."""
    watched.expected = ("404", "400")
    page = watched.page
    busy.log_in(page)
    page.goto(busy.url + path)
    expect(page.locator(".shell")).to_be_visible()
    expect(page.get_by_text("Loading…")).to_have_count(0)


def test_every_view_leads_to_its_json(page: Page, busy: World) -> None:
    """The link beside the title gives what the view shows."""
    busy.log_in(page)
    for path in (*VIEWS, "sessions/fix-the-parser"):
        if path == "audit":  # which is asked with a body
            continue
        page.goto(f"{busy.url}/{path}")
        target = page.locator("a.json").first.get_attribute("href")
        assert target is not None
        response = page.request.get(busy.url + target)
        assert (response.status, response.headers["content-type"]) == (200, "application/json"), path


def test_what_is_not_there_names_the_remedy(page: Page, watched: Watched, busy: World) -> None:
    """A request that is no longer remembered, a session that never was."""
    watched.expected = ("404",)  # Chromium tells of each
    busy.log_in(page, "/requests/never-there")
    expect(page.get_by_role("alert")).to_be_visible()
    page.goto(f"{busy.url}/sessions/never-there")
    expect(page.get_by_role("alert")).to_contain_text("GET /api/sessions lists all.")
