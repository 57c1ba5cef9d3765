"""Every client's format to every upstream's, through the gateway: over real sockets, against the strict simulators."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import httpx
import pytest
from msgspec.structs import replace

from tests.gateway.world import Running, running
from tests.sim.serving import NOW, listening
from tests.translation.pairs import DIALOGUES, hold
from tests.translation.world import BODY_TYPES, UPSTREAMS, Answer, Upstream
from thoughtline.catalogue import PROVIDERS
from thoughtline.settings import Settings
from thoughtline.sim.app import SimulatorApp, simulator_app
from thoughtline.turns import FormatName

PATHS: dict[FormatName, str] = {
    "openai_chat": "/v1/chat/completions",
    "openai_responses": "/v1/responses",
    "anthropic_messages": "/v1/messages",
    "ollama_chat": "/api/chat",
}


class GatewayLane:
    """A client at a gateway whose one provider is a face of a simulator."""

    def __init__(self, upstream: Upstream, client: FormatName, gateway: Running, simulator: SimulatorApp) -> None:
        self.upstream = upstream
        self.client = client
        self._url = f"{gateway.url}/{upstream.provider}"
        self._simulation = simulator.simulation
        self._http = httpx.Client(headers={"authorization": "Bearer a-key"}, timeout=60)

    def exchange(self, body: bytes, is_streaming: bool) -> Answer:
        response = self._http.post(self._url + self._path(is_streaming), content=self._named(body))
        return Answer(response.status_code, response.content)

    def _path(self, is_streaming: bool) -> str:
        if self.client != "gemini_generate":
            return PATHS[self.client]
        return f"/v1beta/models/{self.upstream.model}:" + (
            "streamGenerateContent?alt=sse" if is_streaming else "generateContent"
        )

    def _named(self, body: bytes) -> bytes:
        return body.replace(b'"some/model"', f'"{self.upstream.model}"'.encode())

    @property
    def verdicts(self) -> list[str]:
        return list(self._simulation.log[-1]["verdicts"])


@contextlib.contextmanager
def lane(upstream: Upstream, client: FormatName) -> Iterator[GatewayLane]:
    """A gateway and a simulator of their own."""
    simulator = simulator_app(upstream.simulator, upstream.profile, seed=7, now=lambda: NOW)
    row = PROVIDERS[upstream.provider]
    row = replace(row, base_url=listening(simulator), bases={}, formats=(upstream.format,), paths={})
    settings = Settings(providers={**PROVIDERS, upstream.provider: row})
    with running({}, settings) as gateway:
        yield GatewayLane(upstream, client, gateway, simulator)


@pytest.mark.parametrize("client", BODY_TYPES)
@pytest.mark.parametrize("upstream", UPSTREAMS, ids=lambda upstream: upstream.id)
def test_no_pair_is_refused_or_loses_reasoning(upstream: Upstream, client: FormatName) -> None:
    """Ten turns with tools, parallel tools, plain ones and interleaved thinking, whole and streamed, with a client that
    keeps everything and one that strips everything: no 4xx, and every thought back whole."""
    with lane(upstream, client) as one:
        for dialogue in DIALOGUES:
            hold(one, dialogue)  # type: ignore[arg-type]  # a lane by what it does
            assert set(one.verdicts) <= {"whole", "none"}, dialogue.id
