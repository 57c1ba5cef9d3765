"""Claude Code and SDKs in their modes for Bedrock and Vertex, through a gateway that signs. `make test-clients` runs
the program."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from itertools import groupby
from typing import Any, NamedTuple

import pytest
from msgspec.structs import replace

from tests.clients.agents import CLAUDE_CODE_BEDROCK, CLAUDE_CODE_SIGNING, CLAUDE_CODE_VERTEX
from tests.clients.apps import ANSWERS, App, BedrockApp, Setup, VertexApp, VertexGenerateApp, Way, converse
from tests.clients.programs import Place, Program, Task, run
from tests.clients.upstreams import Upstream, start
from tests.gateway.gateways import Running, moved, running
from thoughtline.providers import AuthStyle
from thoughtline.settings import Settings
from thoughtline_sim.rules.bedrock import KEY_ID, SECRET

TURNS = 10


class Cloud(NamedTuple):
    """A program, whom it asks, and with which credentials of the gateway's own."""

    program: Program
    simulator: str
    model: str
    profile: str
    auth: AuthStyle = "bearer"
    keys: tuple[str, ...] = ()

    @property
    def id(self) -> str:
        return f"{self.program.name}-{self.profile}"


CLOUDS = (
    Cloud(
        *(CLAUDE_CODE_BEDROCK, "bedrock", "us.anthropic.claude-sonnet-4-5-20250929-v1:0", "classic"),
        *("aws", (f"{KEY_ID}:{SECRET}",)),
    ),
    Cloud(
        *(CLAUDE_CODE_SIGNING, "bedrock", "us.anthropic.claude-opus-4-8", "adaptive"),
        *("aws", (f"{KEY_ID}:{SECRET}",)),
    ),
    Cloud(CLAUDE_CODE_VERTEX, "vertex", "claude-sonnet-4-5@20250929", "classic"),
)


def _script() -> str:
    """Calls in every turn but the last; in two turns a thought between calls, which Claude Code 2.1.325 moves."""

    def turn(number: int) -> str:
        first = f'think: Step {number}.|say: Step {number}:|call: Bash {{"command": "echo {number}"}}'
        more = f'|think: And once more.|call: Bash {{"command": "echo {number}b"}}' if number in (3, 7) else ""
        return first + more

    return "|---|".join([*(turn(number) for number in range(1, TURNS)), "think: That was all.|say: Ten turns."])


def _gateway(cloud: Cloud, upstream: Upstream) -> AbstractContextManager[Running]:
    provider = replace(moved(cloud.simulator, upstream.url), auth=cloud.auth, api_keys=cloud.keys)
    return running({}, Settings(providers={cloud.simulator: provider}))


EXPECTED = ("modified", "thinking", "/inference-profiles")
"""What refusals may be about: turns in another order, and a list that the simulator does not have."""


@pytest.mark.programs
@pytest.mark.parametrize("cloud", CLOUDS, ids=[cloud.id for cloud in CLOUDS])
def test_ten_turns_with_tools(cloud: Cloud, place: Place) -> None:
    """Every turn that is sent again is whole. Where the program wrote one in another order, it is refused once and put
    right. Each request has a signature that holds, where the gateway has credentials to sign with."""
    upstream = start(cloud.simulator, cloud.profile, _script())
    with _gateway(cloud, upstream) as gateway:
        task = Task(f"{gateway.url}/{cloud.simulator}", cloud.model)
        done = run(cloud.program, cloud.program.begin("Ten steps, please."), place, task)
        restored = [line.get("restored", 0) for line in gateway.lines]
    assert (done.status, done.answer) == (0, "Ten turns."), (done, upstream.refusals())
    verdicts = upstream.verdicts()
    assert len(verdicts) <= TURNS + 2
    assert [verdict for verdict, _ in groupby(verdicts)] == [["whole"] * before for before in range(TURNS)]
    assert any(restored)
    assert all(any(word in refusal for word in EXPECTED) for refusal in upstream.refusals()), upstream.refusals()
    assert place.trap.strangers(cloud.program) == []


THINKS: dict[str, Any] = {"thinking": {"type": "enabled", "budget_tokens": 2048}, "max_tokens": 8000}
BEDROCK, _, VERTEX = CLOUDS
SDKS: tuple[tuple[str, Cloud, Callable[[Setup], App]], ...] = (
    ("anthropic-bedrock", BEDROCK, BedrockApp),
    ("anthropic-vertex", VERTEX, VertexApp),
    ("genai-vertex", VERTEX._replace(model="gemini-3-pro-preview"), VertexGenerateApp),
)


@pytest.mark.parametrize("way", ["whole", "streamed"])
@pytest.mark.parametrize(("cloud", "app"), [row[1:] for row in SDKS], ids=[row[0] for row in SDKS])
def test_an_sdk_that_strips_gets_its_reasoning_back(cloud: Cloud, app: Callable[[Setup], App], way: Way) -> None:
    """Signed by the SDK with its own keys for Amazon, and signed again by the gateway."""
    upstream = start(cloud.simulator, cloud.profile)
    with _gateway(cloud, upstream) as gateway:
        setup = Setup(f"{gateway.url}/{cloud.simulator}", cloud.model, "strips", way, THINKS)
        assert converse(app(setup)) == ANSWERS
    assert upstream.refusals() == []
    assert not {"altered", "foreign", "missing"} & set(upstream.verdicts()[-1])
