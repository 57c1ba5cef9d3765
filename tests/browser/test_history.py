"""The history and people: over real traffic of three people, through a restart in the middle."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.browser.browsed_gateway import World, world
from tests.browser.test_pages import SIZES, check_texts, check_width, look


@pytest.fixture(scope="module")
def later(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """A gateway after a restart: forty sessions of three people before it and a few since, with failures."""
    url = f"sqlite:///{tmp_path_factory.mktemp('history')}/turns.db"
    with world(store_url=url) as before:
        for number in range(40):
            chat = before.chat(f"Fix {number}", f"session-{number:02}", key=("ann", "ben", "cem")[number % 3])
            chat.ask("deepseek", "deepseek-v4-pro")
            if number % 8 == 0:
                chat.ask("kimi", "kimi-k3")
        before.refused()
    with world(store_url=url) as after:
        chat = after.chat("And now", "after-the-restart", key="ann")
        chat.ask("deepseek", "deepseek-v4-pro")
        yield after


def test_what_was_before_the_restart(page: Page, later: World) -> None:
    """Figures, sums and requests of the whole range; a search finds a session; one is explained."""
    later.log_in(page)
    page.goto(f"{later.url}/history?range=1h")
    expect(page.get_by_role("heading", name="History")).to_be_visible()
    expect(page.locator(".figures").get_by_text("requests", exact=True).locator("xpath=../dd")).to_contain_text("47")
    expect(page.get_by_role("region", name="Numbers").get_by_text("kimi", exact=True)).to_be_visible()
    expect(page.locator(".request")).to_have_count(47)
    page.get_by_label("Filter").fill("session-17")
    expect(page.locator(".request")).to_have_count(1)
    assert "q=session-17" in page.url
    page.get_by_label("Filter").fill("-provider:deepseek status:4xx")
    expect(page.locator(".request")).to_contain_text("refused")
    page.locator(".request").click()
    expect(page.get_by_role("link", name="HAR")).to_be_visible()


def test_filters_that_there_are_none_of_are_named(page: Page, later: World) -> None:
    later.log_in(page)
    page.goto(f"{later.url}/history?q=modle:x")
    expect(page.get_by_role("alert")).to_contain_text("There is no filter modle")


def test_sums_are_exported(page: Page, later: World) -> None:
    """By person, as CSV."""
    later.log_in(page)
    page.goto(f"{later.url}/history?by=tenant&range=24h")
    expect(page.get_by_role("region", name="Numbers").get_by_role("row")).to_have_count(5)
    with page.expect_download() as waiting:
        page.get_by_role("link", name="CSV").first.click()
    rows = list(csv.DictReader(io.StringIO(Path(waiting.value.path()).read_text())))
    assert sum(int(row["requests"]) for row in rows) == 47


def test_a_person_is_seen_and_deleted(page: Page, later: World) -> None:
    """What was deleted is told, and nothing of it is left in any page."""
    later.log_in(page)
    page.goto(f"{later.url}/people")
    rows = page.get_by_role("region", name="People").get_by_role("row")
    expect(rows).to_have_count(5)
    one = next(row for row in later.gateway.get("/api/people")["people"] if row["figures"]["requests"] == 15)
    page.goto(f"{later.url}/people/{one['id']}")
    expect(page.get_by_role("region", name="Models")).to_contain_text("deepseek-v4-pro")
    look(page, "person")
    page.get_by_role("button", name="Delete this person's data").click()
    page.get_by_role("button", name="Delete all of it?").click()
    expect(page.get_by_role("status")).to_contain_text("Deleted: 15 turns in 13 sessions, and 15 requests")
    page.goto(f"{later.url}/people")
    expect(rows).to_have_count(4)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_nothing_sticks_out(page: Page, later: World, scheme: str, size: str) -> None:
    page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]  # a word of a fixed set
    page.set_viewport_size(SIZES[size])  # type: ignore[arg-type]  # has both members
    later.log_in(page)
    someone = later.gateway.get("/api/people")["people"][0]["id"]
    for path in ("history?range=24h", "people", f"people/{someone}"):
        page.goto(f"{later.url}/{path}")
        expect(page.locator(".waiting")).to_have_count(0)
        check_width(page)
        check_texts(page)
        look(page, f"{path.partition('?')[0].replace('/', '-')[:12]}-{scheme}-{size}")
