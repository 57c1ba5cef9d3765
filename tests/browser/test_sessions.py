"""Sessions as conversations: their titles, what was said and thought, what was put back, what is not kept."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.browser.browsed_gateway import PROGRAM, World, world
from tests.browser.test_accessibility import findings
from tests.browser.test_pages import SIZES, check_texts, check_width, look

MADE = "0199a1f2-aaaa-7bbb-8ccc-00000000000"


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """Forty sessions of three people whose words are kept; one goes from one model to another."""
    url = f"sqlite:///{Path(tmp_path_factory.mktemp('kept'))}/turns.db"
    with world(store_url=url, keep_text=True) as one:
        for number in range(38):
            one.chat(f"Question number {number}", f"{MADE}{number:02}", key=f"person-{number % 3}").ask(
                "kimi", "kimi-k3"
            )
        long = one.chat("Why is the parser slow?\nIt takes a minute.", f"{MADE}99", program=PROGRAM)
        for provider, model in [("deepseek", "deepseek-v4-pro")] * 3 + [("kimi", "kimi-k3")] * 2:
            long.ask(provider, model)
        one.chat("Anything", "release-notes").ask("deepseek", "deepseek-v4-pro")
        yield one


@pytest.fixture(scope="module")
def unkept() -> Iterator[World]:
    """The same without words."""
    with world() as one:
        chat = one.chat("Why is the parser slow?", f"{MADE}99", program=PROGRAM)
        for _ in range(3):
            chat.ask("deepseek", "deepseek-v4-pro")
        yield one


def test_sessions_are_recognised(page: Page, kept: World) -> None:
    """By the name that a person gave, else by the first words; the filter finds both, and models."""
    kept.log_in(page, "/sessions")
    names = page.locator(".sessions a.name")
    expect(names).to_have_count(40)
    assert names.all_inner_texts()[:3] == ["release-notes", "Why is the parser slow?", "Question number 37"]
    page.get_by_label("Filter").fill("parser")
    expect(names).to_have_count(1)
    expect(page.locator(".sessions tbody")).to_contain_text("Claude Code")
    expect(page.locator(".sessions tbody")).to_contain_text("kimi/kimi-k3")
    page.get_by_label("Filter").fill("nothing has this")
    expect(page.get_by_text("No session has these words")).to_be_visible()


def test_a_session_reads_as_a_conversation(page: Page, kept: World) -> None:
    """Words, thoughts, calls and results in order; what was put back, by what evidence; where another model came."""
    kept.log_in(page, "/sessions")
    page.get_by_role("link", name="Why is the parser slow?").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Why is the parser slow?")
    expect(page.locator(".dialogue .user").first).to_contain_text("It takes a minute.")
    first = page.locator(".dialogue .model").first
    expect(first.locator(".thought")).to_contain_text("I should call bash before I answer.")
    expect(first.locator("details.call summary")).to_contain_text("bash")
    expect(page.locator(".dialogue .results").first).to_contain_text("bash")
    expect(page.locator(".dialogue .mark").first).to_contain_text("deepseek/deepseek-v4-pro → kimi/kimi-k3")
    third = page.locator(".dialogue .model").nth(2)
    expect(third.locator(".put-back summary")).to_contain_text("restored 2")
    third.locator(".put-back summary").click()
    rows = third.locator(".put-back li")
    expect(rows).to_have_count(2)
    expect(rows.first).to_contain_text("same conversation so far")
    rows.first.get_by_role("link", name="its turn").click()
    expect(first).to_be_in_viewport()
    newest = page.locator(".dialogue .model").nth(3)
    expect(newest.locator(".fate")).to_contain_text("the newest request")
    expect(page.locator(".facts").first).to_contain_text("Claude Code")


def test_without_words_the_page_says_how_to_keep_them(page: Page, unkept: World) -> None:
    """And has what the model said; the session is called by client, model and time."""
    unkept.log_in(page, "/sessions")
    name = page.locator(".sessions a.name")
    expect(name).to_contain_text("Claude Code on deepseek-v4-pro, ")
    name.click()
    expect(page.locator(".dialogue")).not_to_contain_text("Why is the parser slow?")
    expect(page.locator(".dialogue .unknown")).to_have_count(3)
    expect(page.locator(".dialogue .thought").first).to_contain_text("I should call bash before I answer.")
    page.get_by_text("How to see them here").click()
    expect(page.locator(".notice")).to_contain_text("keep_text = true under [dashboard]")


def test_forgetting_a_session_forgets_its_words(page: Page, kept: World) -> None:
    """In one action; the list no longer has it."""
    kept.log_in(page, f"/sessions/{MADE}00")
    expect(page.locator(".dialogue")).to_contain_text("Question number 0")
    page.get_by_role("button", name="Forget this session").click()
    page.get_by_role("button", name="Forget all its turns?").click()
    expect(page.get_by_role("heading", name="Sessions")).to_be_visible()
    expect(page.locator(".sessions")).not_to_contain_text("Question number 0\n")
    assert kept.gateway.admin.get(f"/api/sessions/{MADE}00").status_code == 404


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_sessions_are_accessible(page: Page, kept: World, unkept: World, scheme: str, size: str) -> None:
    """In the list and on a page, folded and unfolded; nothing sticks out."""
    page.emulate_media(color_scheme=scheme, reduced_motion="reduce")  # type: ignore[arg-type]  # a word of a fixed set
    page.set_viewport_size(SIZES[size])  # type: ignore[arg-type]  # has both members
    found: list[str] = []
    for name, one in (("kept", kept), ("unkept", unkept)):
        page.context.clear_cookies()
        one.log_in(page, "/sessions")
        for path in ("sessions", f"sessions/{MADE}99"):
            page.goto(f"{one.url}/{path}")
            expect(page.locator(".sessions, .dialogue").first).to_be_visible()
            check_width(page)
            check_texts(page)
            found += findings(page)
            look(page, f"{name}-{path.replace('/', '-')[:12]}-{scheme}-{size}")
        page.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
        expect(page.locator(".put-back ul").first).to_be_visible()
        check_width(page)
        found += findings(page)
        look(page, f"{name}-open-{scheme}-{size}")
    assert found == []
