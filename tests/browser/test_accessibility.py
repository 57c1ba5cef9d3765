"""Every view, light and dark, wide and on a phone, by the rules of axe-core: no finding that is critical or serious."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import resources

import pytest
from playwright.sync_api import Page, expect

from tests.browser.browsed_gateway import World, world
from tests.browser.test_pages import SIZES, VIEWS


@pytest.fixture(scope="module")
def busy() -> Iterator[World]:
    """A gateway with requests, a refusal, something learned, and a client key."""
    with world() as one:
        chat = one.chat("Fix the parser", "fix-the-parser")
        for provider, model in [("deepseek", "deepseek-v4-pro")] * 2 + [("kimi", "kimi-k3")] * 2:
            chat.ask(provider, model)
        one.refused()
        one.healed()
        yield one


def findings(page: Page) -> list[str]:
    """What axe finds, with the element; the views also keep its moderate rules."""
    page.evaluate(resources.files("axe_playwright_python").joinpath("axe.min.js").read_text())
    found = page.evaluate("axe.run()")["violations"]
    return [f"{page.url} {rule['impact']} {rule['id']}: {node['html']}" for rule in found for node in rule["nodes"]]


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing(page: Page, busy: World, scheme: str, size: str) -> None:
    """Labels, contrast, landmarks, names of links and buttons, regions that scroll."""
    page.emulate_media(color_scheme=scheme, reduced_motion="reduce")  # type: ignore[arg-type]  # a word of a fixed set
    page.set_viewport_size(SIZES[size])  # type: ignore[arg-type]  # has both members
    page.goto(f"{busy.url}/login")
    expect(page.get_by_role("main")).to_be_visible()
    found = findings(page)
    busy.log_in(page)
    refused = busy.gateway.get("/api/requests", status="400")["requests"][0]["id"]
    more = [
        f"live/{refused}",
        f"requests/{refused}",
        "sessions/fix-the-parser",
        "connect?client=codex",
        f"audit?request={refused}",
    ]
    for path in (*VIEWS, *more):
        page.goto(f"{busy.url}/{path}")
        expect(page.get_by_role("heading", level=1).first).to_be_visible()
        expect(page.locator(".waiting")).to_have_count(0)
        found += findings(page)
    assert found == []


@pytest.mark.parametrize("view", VIEWS)
def test_the_tab_of_the_view_is_in_sight_on_a_phone(page: Page, busy: World, view: str) -> None:
    page.set_viewport_size(SIZES["phone"])  # type: ignore[arg-type]  # has both members
    busy.log_in(page)
    page.goto(f"{busy.url}/{view}")
    expect(page.locator("nav [aria-current]")).to_be_in_viewport(ratio=0.95)


REACHABLE = """() => [...document.querySelectorAll("a[href], button, input, select, textarea, summary")]
  .filter((one) => one.checkVisibility() && !one.disabled && !one.closest("dialog:not([open])"))
  .map((one, number) => { one.dataset.reach = number; return one.outerHTML.slice(0, 90); })"""
"""What can be used in a view, each with a number."""


@pytest.mark.parametrize("view", [*VIEWS, "sessions/fix-the-parser"])
def test_every_control_is_reached_by_tab_alone(page: Page, busy: World, view: str) -> None:
    """In a ring, without a trap, and it is seen where the focus is."""
    page.emulate_media(reduced_motion="reduce")
    busy.log_in(page)
    page.goto(f"{busy.url}/{view}")
    expect(page.get_by_role("heading", level=1).first).to_be_visible()
    expect(page.locator(".waiting")).to_have_count(0)
    controls: list[str] = page.evaluate(REACHABLE)
    page.evaluate("document.activeElement.blur()")
    reached = set()
    for _ in range(len(controls) + 4):
        page.keyboard.press("Tab")
        reached.add(page.evaluate("document.activeElement.dataset.reach"))
    assert [html for number, html in enumerate(controls) if str(number) not in reached] == []


def test_a_session_is_read_by_keyboard_alone(page: Page, busy: World) -> None:
    """From the list to the thoughts, unfolded, and back."""
    busy.log_in(page)
    page.keyboard.press("2")
    expect(page.get_by_role("heading", name="Sessions")).to_be_visible()
    expect(page.locator("[data-row]").first).to_be_visible()
    page.keyboard.press("/")
    page.keyboard.type("fix-the-parser")
    expect(page.locator("[data-row]")).to_have_count(1)
    page.keyboard.press("Escape")
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="fix-the-parser")).to_be_visible()
    summary = page.locator(".put-back summary").first
    summary.focus()
    page.keyboard.press("Enter")
    expect(page.locator(".put-back li").first).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.get_by_role("heading", name="Sessions")).to_be_visible()
