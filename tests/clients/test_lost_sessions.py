"""Sessions that Claude Code itself makes unanswerable, as it treats reasoning today. `make test-clients` runs this."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.clients.agents import CLAUDE_CODE
from tests.clients.programs import Outcome, Place, Task, run
from tests.clients.upstreams import reach, start

pytestmark = pytest.mark.programs


class Session(NamedTuple):
    """A first run, a second one with another model if there is one, and how it would end if nothing were refused."""

    habit: str
    simulator: str
    model: str
    next_model: str | None
    script: Callable[[Path], str]
    answer: str
    profile: str | None = None

    @property
    def id(self) -> str:
        return f"{self.habit}-{self.simulator}"


def _thoughts_between_calls(work: Path) -> str:
    """Text, a call, a thought, a call: Claude Code 2.1.325 moves the thought before both calls."""
    return "|".join(
        (
            "think: Two things to look at.",
            "say: The first one:",
            'call: Bash {"command": "echo one"}',
            "think: And the other.",
            'call: Bash {"command": "echo two"}',
            "---",
            "think: That is both.",
            "say: One and two.",
        )
    )


SESSIONS = (
    Session(
        "reorders", "anthropic", "claude-sonnet-4-5", None, _thoughts_between_calls, "One and two.", profile="classic"
    ),
    Session("drops", "deepseek", "deepseek-v4-pro", "deepseek-flash", CLAUDE_CODE.script, "The copy is there."),
    Session("drops", "kimi", "kimi-k2.6", "kimi-k3", CLAUDE_CODE.script, "The copy is there."),
)


def hold(session: Session, base_url: str, place: Place) -> Outcome:
    """The session at that address, to its end."""
    task = Task(base_url, session.model)
    first = run(CLAUDE_CODE, CLAUDE_CODE.begin("Please begin."), place, task)
    if session.next_model is None:
        return first
    assert first.status == 0, first.remarks
    assert CLAUDE_CODE.resume is not None
    return run(CLAUDE_CODE, CLAUDE_CODE.resume("Now a copy."), place, task._replace(model=session.next_model))


@pytest.mark.parametrize("session", SESSIONS, ids=[session.id for session in SESSIONS])
def test_a_session_at_the_provider_itself(session: Session, place: Place) -> None:
    """It ends in a 400: thoughts that stood between calls come back in another order, and those of another model not at
    all."""
    upstream = start(session.simulator, session.profile, session.script(place.work))
    outcome = hold(session, upstream.url, place)
    assert (outcome.status, outcome.answer[:14]) == (1, "API Error: 400"), outcome.answer
    assert upstream.refusals()


@pytest.mark.parametrize("session", SESSIONS, ids=[session.id for session in SESSIONS])
def test_the_same_session_through_the_gateway(session: Session, place: Place) -> None:
    """It goes on to its end: thoughts are put back where they stood, and those of another model are given as text."""
    upstream = start(session.simulator, session.profile, session.script(place.work))
    outcome = hold(session, reach(upstream), place)
    assert (outcome.status, outcome.answer) == (0, session.answer), (outcome.answer, upstream.refusals())
