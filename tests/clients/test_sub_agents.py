"""Claude Code that lets two other agents work for it. `make test-clients` runs this.

Claude Code 2.1.325 adds a system message to a sub-agent's conversation after its first turns: what the model thought
before that is still bound to what stood before it.
"""

from __future__ import annotations

import json

import pytest

from tests.clients.agents import CLAUDE_CODE
from tests.clients.programs import Place, Task, run
from tests.clients.upstreams import reach, start

pytestmark = pytest.mark.programs

SUB_AGENT = """\
Look around.
script:
think: First the names.
call: Bash {"command": "ls", "description": "names"}
---
think: Then the place.
call: Bash {"command": "pwd", "description": "place"}
---
think: That is all.
say: I looked around."""


def _call(description: str) -> str:
    prompt = f"{description}. {SUB_AGENT}"
    return "call: Agent " + json.dumps(
        {"description": description, "prompt": prompt, "subagent_type": "general-purpose"}
    )


PROMPT = f"""\
Please begin.
script:
think: Two of them can look.
{_call("one")}
{_call("two")}
---
think: They will report.
say: They are looking."""


@pytest.mark.parametrize(("profile", "model"), [("bound", "claude-opus-5-5"), ("adaptive", "claude-opus-4-8")])
def test_what_sub_agents_thought_comes_back(profile: str, model: str, place: Place) -> None:
    """Three conversations at once, and of every turn that is sent again the reasoning is whole."""
    upstream = start("anthropic", profile)
    outcome = run(CLAUDE_CODE, CLAUDE_CODE.begin(PROMPT), place, Task(reach(upstream), model))
    assert outcome.status == 0, outcome.remarks
    log = upstream.watched.app.simulation.log
    assert len({entry["conversation"] for entry in log}) == 3
    assert max(len(entry["verdicts"]) for entry in log) >= 2
    assert {verdict for entry in log for verdict in entry["verdicts"]} == {"whole"}
    assert upstream.refusals() == []
