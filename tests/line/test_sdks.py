"""Applications over the official SDKs that lose reasoning, with clients that remember: no other process."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import anthropic
import openai
import pytest
from google import genai

from tests.clients.apps import APPS, KEY, Setup, Way, converse
from tests.clients.test_sdks import Row, both_ways, check_whole, every_row
from tests.clients.upstreams import Upstream, start
from thoughtline import Line, remember

pytestmark = pytest.mark.filterwarnings("ignore:The model:DeprecationWarning")


def forgetful(row: Row, upstream: Upstream, way: Way) -> Any:
    """An application that sends back only what a user sees."""
    return APPS[row.app](Setup(upstream.url, row.model, "strips", way, row.extra))


@every_row
@both_ways
def test_a_client_remembers(row: Row, way: Way, line: Line) -> None:
    """Lost reasoning is restored before the provider sees it, without additional requests."""
    upstream = start(row.simulator, row.profile)
    app = forgetful(row, upstream, way)
    assert remember(app.client, line) is app.client
    check_whole(upstream, converse(app))


DOORS: dict[str, Callable[[Line, str], Any]] = {
    "openai-chat": lambda line, url: openai.OpenAI(base_url=f"{url}/v1", api_key=KEY, http_client=line.http_client()),
    "anthropic": lambda line, url: anthropic.Anthropic(base_url=url, api_key=KEY, middleware=[line.anthropic]),
    "google-genai": lambda line, url: genai.Client(api_key=KEY, http_options=line.google(base_url=url)),
}
STRICT = (
    Row("openai-chat", "deepseek", "deepseek-v4-pro"),
    Row("anthropic", "deepseek", "deepseek-v4-pro", None, {"max_tokens": 8000}),
    Row("google-genai", "gemini", "gemini-3-pro-preview"),
)


@pytest.mark.parametrize("row", STRICT, ids=[row.id for row in STRICT])
@both_ways
def test_each_sdk_has_a_door_of_its_own(row: Row, way: Way, line: Line) -> None:
    """`http_client`, `middleware` and `http_options` do the same as `remember`."""
    upstream = start(row.simulator, row.profile)
    app = forgetful(row, upstream, way)
    app.client = DOORS[row.app](line, upstream.url)
    check_whole(upstream, converse(app))


def test_what_asks_with_nothing_we_know_is_told_so(line: Line) -> None:
    """An object without an HTTP client of either library is an error, and nothing is wrapped."""
    with pytest.raises(TypeError, match="no httpx or httpx2 client"):
        line.remember(object())
