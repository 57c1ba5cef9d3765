"""A browser for all tests, and for each a page that must not say a word of error.

`THOUGHTLINE_SCREENSHOTS` names a folder to put pictures of every view into.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, ConsoleMessage, Page, sync_playwright

from tests.browser.browsed_gateway import World, world
from tools.find_browser import found


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if "tests/browser" in item.path.as_posix():
            item.add_marker(pytest.mark.browser)


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    path = found()
    assert path is not None, "no Chromium: `make test-browser` says what to do"
    with sync_playwright() as playwright:
        # Chromium's own sandbox does not start for root, nor in most containers.
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def gateway() -> Iterator[World]:
    with world() as one:
        yield one


class Watched:
    """What a page said that it should not have. `expected` are words of errors that a test brings about itself."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.said: list[str] = []
        self.expected: tuple[str, ...] = ()
        page.on("console", self._hear)
        page.on("pageerror", lambda error: self.said.append(str(error)))

    def _hear(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            self.said.append(message.text)

    @property
    def unexpected(self) -> list[str]:
        return [words for words in self.said if not any(one in words for one in self.expected)]


@pytest.fixture
def watched(browser: Browser) -> Iterator[Watched]:
    """A page of a new visitor. Violations of the policy are errors of the console, and fail the test."""
    context = browser.new_context(viewport={"width": 1280, "height": 800})
    page = context.new_page()
    page.set_default_timeout(15_000)
    watched = Watched(page)
    yield watched
    context.close()
    assert watched.unexpected == []


@pytest.fixture
def page(watched: Watched) -> Page:
    return watched.page
