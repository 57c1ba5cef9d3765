"""Every story of `identity_stories.py` in the library, in every format, whole and streamed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

import httpx
import pytest

import thoughtline
from tests.gateway.upstreams import upstream
from tests.identity_stages import Post, Stage, Upstream
from tests.identity_stories import CASES, PROVIDERS, Story
from tests.written_exchanges import CHAT, MESSAGES, Frame, Json, Speaker
from thoughtline import Line

WAYS = pytest.mark.parametrize("is_streaming", [False, True], ids=["whole", "stream"])


@pytest.fixture(scope="module")
def thinking() -> Upstream:
    return Upstream()


@pytest.fixture(scope="module")
def url(thinking: Upstream) -> Iterator[str]:
    with upstream(thinking) as up:
        yield up.url


def _base(provider: str) -> str:
    """The address of a provider. Converse's paths are known only at the root of a host."""
    return "" if provider == "bedrock" else f"/{provider}"


@pytest.fixture(scope="module")
def shared_line(url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Line]:
    """A line whose providers are all at the upstream."""
    config: Path = tmp_path_factory.mktemp("line") / "thoughtline.toml"
    config.write_text("".join(f'[providers.{name}]\nbase_url = "{url}{_base(name)}"\n' for name in PROVIDERS))
    with Line("memory://", config=config) as opened:
        yield opened


@pytest.fixture(scope="module")
def post(url: str, shared_line: Line) -> Iterator[Post]:
    with thoughtline.remember(httpx.Client(timeout=60), shared_line) as http:

        def send(path: str, body: Json, headers: Mapping[str, str]) -> httpx.Response:
            return http.post(url + path.removeprefix("/bedrock"), json=body, headers=headers)

        yield send


@WAYS
@pytest.mark.parametrize(("story", "speaker"), CASES)
def test_a_story(post: Post, thinking: Upstream, story: Story, speaker: Speaker, is_streaming: bool) -> None:
    """No request carries another conversation's reasoning; distinguishable turns are restored."""
    story(Stage(post, thinking, speaker, is_streaming=is_streaming))


@WAYS
@pytest.mark.parametrize("speaker", [CHAT, MESSAGES], ids=lambda speaker: speaker.provider)
def test_sessions_of_a_line(
    post: Post, thinking: Upstream, shared_line: Line, speaker: Speaker, is_streaming: bool
) -> None:
    """`line.session(…)` tells conversations with equal words apart, under any system prompt."""
    stage = Stage(post, thinking, speaker, is_streaming=is_streaming)
    anna, bert = stage.client("Anna"), stage.client("Bert")
    for count, place in enumerate(("harbour", "kitchen", "garden")):
        for one in (anna, bert):
            one.frame = Frame(f"You work in the {place}.")
            with shared_line.session(f"task of {one.own(0)}"):
                assert one.ask("Go on", "Done.").marks == one.own(*range(1, count + 1))
