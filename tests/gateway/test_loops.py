"""Claude, another model, Claude again inside one tool loop: Claude counts everything since the last user message as one
turn."""

from __future__ import annotations

from typing import Any

import pytest

from tests.gateway.forgetful_clients import TWO_TURNS, Forgetful, forget_everything
from tests.gateway.gateways import Running, running
from tests.gateway.test_healing import told
from tests.sim.faces import CASES, Body, Case
from tests.sim.served_simulators import served
from thoughtline.values.turns import FormatName

CLAUDE = [case for case in CASES if case.id.startswith(("anthropic-classic", "bedrock-bedrock_converse-us.anthropic"))]
OFF: dict[str, Body] = {"anthropic_messages": {"thinking": {"type": "disabled"}}, "bedrock_converse": {}}


def keep_everything(body: Body, format: FormatName) -> None:
    """A client that keeps everything."""


def of_another_model(format: FormatName) -> list[Body]:
    """A tool turn of another model, without reasoning, and its result."""
    call_id, name, arguments = "toolu_01Another0Model", "weather", {"city": "Rome"}
    if format == "bedrock_converse":
        call: Body = {"toolUse": {"toolUseId": call_id, "name": name, "input": arguments}}
        result: Body = {"toolResult": {"toolUseId": call_id, "content": [{"text": "warm"}]}}
    else:
        call = {"type": "tool_use", "id": call_id, "name": name, "input": arguments}
        result = {"type": "tool_result", "tool_use_id": call_id, "content": "warm"}
    return [{"role": "assistant", "content": [call]}, {"role": "user", "content": [result]}]


def loop(gateway: Running, case: Case, mark: str, change: Any) -> Forgetful:
    """A dialogue after Claude's first tool turn, with the results of its calls."""
    base = f"{gateway.url}/{case.simulator}"
    dialogue = Forgetful(base, case, TWO_TURNS.format(mark=f"{mark} {case.id}"), change=change)
    dialogue.go_on(dialogue.ask())
    return dialogue


@pytest.mark.parametrize("change", [keep_everything, forget_everything], ids=["kept", "forgotten"])
@pytest.mark.parametrize("case", CLAUDE, ids=lambda case: case.id)
def test_a_loop_that_claude_began_goes_on_thinking(case: Case, change: Any) -> None:
    """The head of the loop has its thinking; the other model's turn inside it needs none."""
    with running({case.simulator: served(case.simulator, case.profile).url}) as gateway:
        dialogue = loop(gateway, case, f"began {change.__name__}", change)
        dialogue.history.extend(of_another_model(case.format))
        response = dialogue.post()
        assert response.status_code == 200, response.text
        assert (told(response, "missing"), told(response, "stripped"), told(response, "healed")) == (0, 0, 0)
        assert told(response, "restored") == (1 if change is forget_everything else 0)


@pytest.mark.parametrize("change", [keep_everything, forget_everything], ids=["kept", "forgotten"])
@pytest.mark.parametrize("case", CLAUDE, ids=lambda case: case.id)
def test_a_loop_that_another_model_began_is_finished_without_thinking(case: Case, change: Any) -> None:
    """There is no thinking for its head: thinking is switched off, and none of the loop's is sent. It takes no extra
    attempt."""
    with running({case.simulator: served(case.simulator, case.profile).url}) as gateway:
        dialogue = loop(gateway, case, f"other {change.__name__}", change)
        dialogue.history[1:1] = of_another_model(case.format)
        response = dialogue.post()
        assert response.status_code == 200, response.text
        assert (told(response, "missing"), told(response, "healed")) == (1, 0)


@pytest.mark.parametrize("case", CLAUDE, ids=lambda case: case.id)
def test_thinking_that_a_client_switches_off_in_a_loop(case: Case) -> None:
    """The refusal is healed by removing the loop's thinking; the seals are valid, and are sent again afterwards."""
    with running({case.simulator: served(case.simulator, case.profile).url}) as gateway:
        dialogue = loop(gateway, case, "switched", keep_everything)
        dialogue.history.extend(of_another_model(case.format))
        switches = dialogue.body.keys() & {"thinking", "additionalModelRequestFields"}
        thinks = {name: dialogue.body.pop(name) for name in switches}
        dialogue.body.update(OFF[case.format])
        response = dialogue.post()
        assert response.status_code == 200, response.text
        assert told(response, "healed") == 1
        assert gateway.state.lessons.refused == frozenset()
        dialogue.body.pop("thinking", None)
        dialogue.body.update(thinks)
        again = dialogue.post()
        assert (again.status_code, told(again, "stripped"), told(again, "healed")) == (200, 0, 0)


@pytest.mark.parametrize("profile", ["classic", "adaptive"])
def test_a_forced_tool_in_a_loop_with_thinking(profile: str) -> None:
    """Anthropic refuses thinking with a forced tool: it is switched off, and the loop's thinking is removed."""
    case = next(case for case in CASES if (case.simulator, case.profile) == ("anthropic", profile))
    with running({"anthropic": served("anthropic", profile).url}) as gateway:
        dialogue = loop(gateway, case, "forced", keep_everything)
        dialogue.body["tool_choice"] = {"type": "any"}
        response = dialogue.post()
        assert response.status_code == 200, response.text
        assert told(response, "healed") == 1
        assert gateway.state.lessons.refused == frozenset()


def test_the_same_behind_an_aggregator() -> None:
    """OpenRouter passes on Claude's rule: a loop that another model began is finished without thinking there, too."""
    case = next(case for case in CASES if case.id.startswith("openrouter-openai_chat-anthropic"))
    with running({"openrouter": served("openrouter").url}) as gateway:
        dialogue = loop(gateway, case, "behind", keep_everything)
        call = {"id": "toolu_01Another0Model", "type": "function", "function": {"name": "weather", "arguments": "{}"}}
        turn: list[Body] = [
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": call["id"], "content": "warm"},
        ]
        dialogue.history[1:1] = turn
        response = dialogue.post()
        assert response.status_code == 200, response.text
        assert told(response, "healed") == 1
