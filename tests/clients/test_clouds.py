"""Claude Code and SDKs in their modes for Bedrock and Vertex, through a gateway that signs. `make test-clients` runs
the program."""

from __future__ import annotations

from typing import NamedTuple

import pytest
from msgspec.structs import replace

from tests.clients.agents import CLAUDE_CODE_BEDROCK, CLAUDE_CODE_VERTEX
from tests.clients.programs import Place, Program, Task, run
from tests.clients.upstreams import Upstream, start
from tests.gateway.world import moved, running
from thoughtline.settings import Settings
from thoughtline_sim.rules.signed import KEY_ID, SECRET

TURNS = 10


class Cloud(NamedTuple):
    """A program, whom it asks, and with which credentials of the gateway's own."""

    program: Program
    simulator: str
    model: str
    profile: str
    auth: str = "bearer"
    keys: tuple[str, ...] = ()

    @property
    def id(self) -> str:
        return f"{self.simulator}-{self.profile}"


CLOUDS = (
    Cloud(
        *(CLAUDE_CODE_BEDROCK, "bedrock", "us.anthropic.claude-sonnet-4-5-20250929-v1:0", "classic"),
        *("aws", (f"{KEY_ID}:{SECRET}",)),
    ),
    Cloud(CLAUDE_CODE_VERTEX, "vertex", "claude-sonnet-4-5@20250929", "classic"),
)


def _script() -> str:
    """Calls in every turn but the last; in two turns a thought between calls, which Claude Code 2.1.325 moves."""

    def turn(number: int) -> str:
        first = f'think: Step {number}.|call: Bash {{"command": "echo {number}"}}'
        more = f'|think: And once more.|call: Bash {{"command": "echo {number}b"}}' if number in (3, 7) else ""
        return first + more

    return "|---|".join([*(turn(number) for number in range(1, TURNS)), "think: That was all.|say: Ten turns."])


def _asked(upstream: Upstream) -> set[str]:
    return {seen.path for seen in upstream.watched.seen if seen.status != 200}


@pytest.mark.programs
@pytest.mark.parametrize("cloud", CLOUDS, ids=[cloud.id for cloud in CLOUDS])
def test_ten_turns_with_tools(cloud: Cloud, place: Place) -> None:
    """Every turn that is sent again is whole, those that the program wrote in another order too; each request has a
    signature that holds, where the gateway has credentials to sign with."""
    upstream = start(cloud.simulator, cloud.profile, _script())
    provider = replace(moved(cloud.simulator, upstream.url), auth=cloud.auth, api_keys=cloud.keys)
    with running({}, Settings(providers={cloud.simulator: provider})) as gateway:
        task = Task(f"{gateway.url}/{cloud.simulator}", cloud.model)
        done = run(cloud.program, cloud.program.begin("Ten steps, please."), place, task)
        restored = [line.get("restored", 0) for line in gateway.lines]
    assert (done.status, done.answer) == (0, "Ten turns."), (done, upstream.refusals())
    assert upstream.verdicts() == [["whole"] * before for before in range(TURNS)]
    assert any(restored)
    assert _asked(upstream) <= {"/inference-profiles"}
    assert place.trap.strangers(cloud.program) == []
