"""One request: where its time went, attempts side by side, and what differs between what came and what went up."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect

from tests.browser.browsed_gateway import World, world
from tests.browser.test_accessibility import findings
from tests.browser.test_pages import SIZES, check_texts, check_width, look


@pytest.fixture(scope="module")
def kept() -> Iterator[World]:
    """With bodies."""
    with world(has_route=True) as one:
        yield one


@pytest.fixture(scope="module")
def unkept() -> Iterator[World]:
    """Without them."""
    with world(keep_bodies=False, has_route=True) as one:
        yield one


def restored(one: World) -> str:
    """The id of a request whose two turns got their reasoning back."""
    chat = one.chat("Why is the parser slow?", "slow-parser")
    for _ in range(2):
        chat.ask("deepseek", "deepseek-v4-pro")
    return str(chat.ask("deepseek", "deepseek-v4-pro").headers["x-thoughtline-request"])


def failed_over(one: World) -> str:
    """The id of a request that the second target answered."""
    body = {"model": "steady", "messages": [{"role": "user", "content": "Hi"}]}
    response = one.gateway.anyone.post("/v1/chat/completions", json=body, headers={"authorization": "Bearer someone"})
    assert response.status_code == 200, response.text
    return str(response.headers["x-thoughtline-request"])


def bars(page: Page) -> list[str]:
    expect(page.locator(".waterfall th").first).to_be_visible()
    return [" ".join(name.split()) for name in page.locator(".waterfall tbody th").all_inner_texts()]


def test_where_the_time_of_a_request_went(page: Page, kept: World) -> None:
    """A bar for each stage, in order, within the whole; each says from when to when."""
    request = restored(kept)
    kept.log_in(page, f"/requests/{request}")
    names = bars(page)
    order = ["queue", "look-up", "plan", "upstream 200", "hold", "save"]
    assert [name for name in names if name in order] == order
    spans = page.locator(".waterfall svg").evaluate_all(
        "(all) => all.map((one) => ['x', 'width'].map((name) => +one.lastElementChild.getAttribute(name)))"
    )
    assert all(0 <= start <= 1000 and width >= 3 for start, width in spans)
    assert [start for start, _ in spans] == sorted(start for start, _ in spans)
    page.get_by_text("What the stages are").click()
    expect(page.get_by_text("find its turns in the store")).to_be_visible()


def test_attempts_side_by_side(page: Page, kept: World) -> None:
    """The one that failed in red, with its status; the other answered."""
    kept.log_in(page, f"/requests/{failed_over(kept)}")
    names = bars(page)
    assert "upstream 1. down 503" in names
    assert "upstream 2. keyed 200" in names
    expect(page.locator(".waterfall .bar-upstream.bad")).to_have_count(1)
    rows = page.locator("table.cards tbody tr")
    expect(rows).to_have_count(2)
    expect(rows.nth(0)).to_contain_text("1. down")
    expect(rows.nth(1)).to_contain_text("2. keyed")


def test_what_went_up_differs_by_message(page: Page, kept: World) -> None:
    """The reasoning that was put in, member and characters; messages that are the same stand as they were."""
    kept.log_in(page, f"/requests/{restored(kept)}")
    expect(page.locator(".differs")).to_contain_text("2 messages changed, 3 as the client sent them.")
    deltas = page.locator(".delta").all_inner_texts()
    assert deltas == [f"{len(text)} characters added in reasoning_content" for text in thoughts(kept)[:2]]


def test_what_was_changed_where_bodies_are_not_kept(page: Page, unkept: World) -> None:
    """Which message got how many characters of what kind."""
    unkept.log_in(page, f"/requests/{restored(unkept)}")
    rows = page.locator(".differences li")
    expect(rows).to_have_count(2)
    first, second = thoughts(unkept)[:2]
    expect(rows.nth(0)).to_contain_text(f"{len(first)} characters of reasoning added")
    expect(rows.nth(0)).to_contain_text("/messages/1")
    expect(rows.nth(1)).to_contain_text(f"{len(second)} characters of reasoning added")


def thoughts(one: World) -> list[str]:
    """What the model thought in the session, in order."""
    turns = one.gateway.get("/api/sessions/slow-parser")["turns"]
    return [said["text"] for turn in turns for said in turn["says"] if said["kind"] == "thought"]


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_requests_are_accessible(page: Page, kept: World, unkept: World, scheme: str, size: str) -> None:
    """Restored, failed over, healed and refused ones; with and without bodies."""
    page.emulate_media(color_scheme=scheme, reduced_motion="reduce")  # type: ignore[arg-type]  # a word of a fixed set
    page.set_viewport_size(SIZES[size])  # type: ignore[arg-type]  # has both members
    found: list[str] = []
    for name, one in (("kept", kept), ("unkept", unkept)):
        page.context.clear_cookies()
        requests = {
            "restored": restored(one),
            "over": failed_over(one),
            "healed": one.healed(),
            "refused": one.refused(),
        }
        one.log_in(page)
        for kind, request in requests.items():
            page.goto(f"{one.url}/requests/{request}")
            expect(page.locator(".waterfall")).to_be_visible()
            check_width(page)
            check_texts(page)
            found += findings(page)
            look(page, f"request-{kind}-{name}-{scheme}-{size}")
    assert found == []
