"""Every story of `identity_stories.py` through a gateway, in every format, whole and streamed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import httpx
import pytest

from tests.gateway.gateways import running
from tests.gateway.upstreams import upstream
from tests.identity_stages import Post, Stage, Upstream
from tests.identity_stories import CASES, PROVIDERS, TOLD_TRANSLATED, TRANSLATED, Story
from tests.written_exchanges import Json, Speaker

WAYS = pytest.mark.parametrize("is_streaming", [False, True], ids=["whole", "stream"])


@pytest.fixture(scope="module")
def thinking() -> Upstream:
    return Upstream()


@pytest.fixture(scope="module")
def post(thinking: Upstream) -> Iterator[Post]:
    with (
        upstream(thinking) as up,
        running(dict.fromkeys(PROVIDERS, up.url)) as gateway,
        httpx.Client(timeout=60) as http,
    ):

        def send(path: str, body: Json, headers: Mapping[str, str]) -> httpx.Response:
            return http.post(gateway.url + path, json=body, headers=headers)

        yield send


@WAYS
@pytest.mark.parametrize(("story", "speaker"), CASES)
def test_a_story(post: Post, thinking: Upstream, story: Story, speaker: Speaker, is_streaming: bool) -> None:
    """No request carries another conversation's reasoning; distinguishable turns are restored."""
    story(Stage(post, thinking, speaker, is_streaming=is_streaming))


@WAYS
@pytest.mark.parametrize("story", TOLD_TRANSLATED, ids=lambda story: story.__name__)
def test_a_translated_story(post: Post, thinking: Upstream, story: Story, is_streaming: bool) -> None:
    """The same for translated requests."""
    story(Stage(post, thinking, TRANSLATED, is_streaming=is_streaming))
