"""What clients do over several requests: compaction, forks, toggles, title calls, agents, retries, other accounts.

Groups C3, D, and E of the catalogue of client behaviours, as far as they concern more than one request.
"""

from __future__ import annotations

import copy
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pytest
from msgspec.structs import replace

from tests.gateway.conftest import Gateways, provider_of
from tests.gateway.forgetful_clients import TEN_TURNS, Forgetful
from tests.gateway.gateways import moved, running
from tests.sim.faces import CASES, Case
from tests.sim.served_simulators import served
from thoughtline.gateway.state import with_settings
from thoughtline.settings import Settings

STARTS = (
    "deepseek-openai_chat",
    "deepseek-anthropic_messages",
    "kimi-openai_chat",
    "mimo-openai_chat",
    "anthropic-classic",
    "anthropic-bound",
    "gemini-gemini_generate-gemini-3-pro",
    "gemini-openai_chat",
    "openai-openai_responses-gpt-5",
    "openrouter-openai_chat-anthropic",
)
STRICT = [next(case for case in CASES if case.id.startswith(start)) for start in STARTS]
PRESENCE = STRICT[:4]


def begun(gateways: Gateways, case: Case, mark: str, turns: int = 1) -> Forgetful:
    """A conversation with this many turns, and its next request."""
    opening = TEN_TURNS.format(mark=f"{mark} {case.id}")
    dialogue = Forgetful(f"{gateways(case).url}/{provider_of(case)}", case, opening)
    for _ in range(turns):
        dialogue.go_on(dialogue.ask())
    return dialogue


def verdicts(case: Case) -> list[str]:
    return list(served(case.simulator, case.profile).app.simulation.log[-1]["verdicts"])


def asked(dialogue: Forgetful) -> httpx.Response:
    response = dialogue.post()
    assert response.status_code == 200, response.text
    return response


def restored(response: httpx.Response) -> int:
    return int(response.headers["x-thoughtline-replay"].split(",")[0].removeprefix("restored="))


@pytest.mark.parametrize("case", PRESENCE[::2], ids=lambda case: case.id)
def test_c3_a_call_of_a_parallel_set_is_dropped(gateways: Gateways, case: Case) -> None:
    """The turn is still identified by the remaining call."""
    dialogue = begun(gateways, case, "C3")
    message = next(message for message in dialogue.history if message.get("tool_calls"))
    gone = message["tool_calls"].pop()["id"]
    dialogue.history[:] = [one for one in dialogue.history if one.get("tool_call_id") != gone]
    assert restored(asked(dialogue)) == 1


@pytest.mark.parametrize("case", STRICT, ids=lambda case: case.id)
def test_d1_compaction(gateways: Gateways, case: Case) -> None:
    """A summary of all but the last loop: the request passes, with whatever of the loop can be restored."""
    dialogue = begun(gateways, case, "D1", turns=4)
    wire = dialogue.wire
    start = max(at for at, one in enumerate(dialogue.history) if one == wire.say("And then?"))
    dialogue.body[wire.member] = [wire.say("What happened so far: a lot."), *dialogue.history[start + 1 :]]
    asked(dialogue)


@pytest.mark.parametrize("case", STRICT, ids=lambda case: case.id)
def test_d3_d4_a_fork(gateways: Gateways, case: Case) -> None:
    """One prefix, two questions: each branch continues with its own turns, and both share the earlier ones."""
    dialogue = begun(gateways, case, "D4", turns=3)
    fork = copy.deepcopy(dialogue.body)
    dialogue.go_on(dialogue.ask())
    other = begun(gateways, case, "D4 other", turns=0)
    other.body = fork
    other.history[-1] = other.wire.say("Something else, please.")
    other.go_on(other.ask())
    for branch in (dialogue, other):
        asked(branch)
        assert set(verdicts(case)) == {"whole"}


@pytest.mark.parametrize("case", [*PRESENCE, STRICT[4]], ids=lambda case: case.id)
def test_d8_thinking_is_switched_off_and_on(gateways: Gateways, case: Case) -> None:
    """In the middle of a loop, and at its start: no request is refused."""
    dialogue = begun(gateways, case, "D8", turns=0)
    on = dialogue.body.get("thinking", {"type": "enabled"})
    for turn in range(8):
        dialogue.body["thinking"] = {"type": "disabled"} if turn % 3 == 1 else on
        dialogue.go_on(dialogue.ask())


@pytest.mark.parametrize("case", STRICT, ids=lambda case: case.id)
def test_e1_e3_side_calls_at_the_same_moment(gateways: Gateways, case: Case) -> None:
    """Title calls of the same session, over the same history, during the turn: each has its own reasoning."""
    dialogue = begun(gateways, case, "E1", turns=2)
    title = begun(gateways, case, "E1", turns=0)
    title.body = {**copy.deepcopy(dialogue.body)}
    title.history.append(title.wire.say("Give this conversation a title."))
    for one in (dialogue, title):
        one.headers = {"x-session-id": f"session of {case.id}"}
    with ThreadPoolExecutor() as pool:
        answers = list(pool.map(lambda one: one.post(), [dialogue, title, title, title]))
    assert {answer.status_code for answer in answers} == {200}
    dialogue.go_on(dialogue.hear(answers[0].content, is_streaming=False))
    asked(dialogue)
    assert set(verdicts(case)) == {"whole"}


@pytest.mark.parametrize("case", STRICT, ids=lambda case: case.id)
def test_e2_agents_of_one_session(gateways: Gateways, case: Case) -> None:
    """Sub-agents share the session's id: their turns stay separate."""
    agents = [begun(gateways, case, f"E2 {number}", turns=0) for number in range(4)]
    for number, agent in enumerate(agents):
        agent.headers = {"x-claude-code-session-id": "one", "x-claude-code-agent-id": str(number)}
        agent.headers = agent.headers if number else {"x-claude-code-session-id": "one"}

    def three_turns(agent: Forgetful) -> None:
        for _ in range(3):
            agent.go_on(agent.ask())

    with ThreadPoolExecutor() as pool:
        list(pool.map(three_turns, agents))
    for agent in agents:
        asked(agent)
        assert set(verdicts(case)) == {"whole"}


@pytest.mark.parametrize("is_first", [True, False], ids=["first", "second"])
@pytest.mark.parametrize("case", STRICT, ids=lambda case: case.id)
def test_e4_the_same_request_twice(gateways: Gateways, case: Case, is_first: bool) -> None:
    """Both answers are stored: the one that the client continues from is found."""
    dialogue = begun(gateways, case, f"E4 {is_first}", turns=1)
    answers = [asked(dialogue), asked(dialogue)]
    dialogue.go_on(dialogue.hear(answers[0 if is_first else 1].content, is_streaming=False))
    asked(dialogue)
    assert set(verdicts(case)) == {"whole"}


@pytest.mark.parametrize(
    "start", ["anthropic-classic", "gemini-gemini_generate-gemini-3-pro", "openai-openai_responses-gpt-5"]
)
def test_e7_another_account(start: str) -> None:
    """The gateway's own key for the provider changes between two turns: no seal goes to the other account."""
    case = next(case for case in STRICT if case.id.startswith(start))
    simulator, name = served(case.simulator, case.profile), provider_of(case)
    row = replace(moved(name, simulator.url), api_keys=("first-account",))
    with running({}, Settings(providers={name: row})) as gateway:
        dialogue = Forgetful(f"{gateway.url}/{name}", case, TEN_TURNS.format(mark=f"E7 {case.id}"))
        dialogue.go_on(dialogue.ask())
        settings = gateway.state.settings
        rows: dict[str, Any] = {**settings.providers, name: replace(row, api_keys=("second-account",))}
        gateway.app.state = with_settings(gateway.state, replace(settings, providers=rows))
        assert restored(asked(dialogue)) == 0
        sent = simulator.app.simulation.log[-1]
        assert sent["status"] == 200
