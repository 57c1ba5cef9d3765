"""Continuity that is switched at runtime, and reports on handoffs: header, log, session, metrics, report."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.gateway.failing_simulators import BY_FORMAT, Stage, stage
from tests.gateway.managed_gateways import TOKEN
from thoughtline.cli import main
from thoughtline.continuity.handoffs import report
from thoughtline.settings import ContinuitySettings
from thoughtline.values.items import ToolCall
from thoughtline.values.outcome import Outcome
from thoughtline.values.records import Key, Record, RecordId
from thoughtline.values.turns import Provenance

Json = dict[str, Any]

PAIR = (BY_FORMAT["openai_chat"], BY_FORMAT["anthropic_messages"])
QUIET = ContinuitySettings()


@contextlib.contextmanager
def managed(one: Stage) -> Iterator[httpx.Client]:
    """The admin of a stage."""
    state = one.gateway.state
    one.gateway.app.state = state._replace(admin=state.admin._replace(token=TOKEN))
    with httpx.Client(base_url=one.gateway.url, headers={"authorization": f"Bearer {TOKEN}"}) as admin:
        yield admin


def handed(one: Stage) -> int:
    """The number of checkpoints that a new conversation brings to the second target."""
    talk = one.begin("openai_chat", 2)
    talk.step()
    return talk.step("deepseek").checkpoints


def test_switched_without_a_restart_on_all_that_share_a_store(shared_url: str) -> None:
    """`PATCH /api/settings` at one gateway: both quote from then on, and stop when it is switched off."""
    with stage(*PAIR, continuity=QUIET, store_url=shared_url) as one:
        apps = list(one.targets.values())
        with stage(apps=apps, continuity=QUIET, store_url=shared_url) as other, managed(one) as admin:
            assert (handed(one), handed(other)) == (0, 0)
            for change, quoted in (({"enabled": True}, 1), ({"mode": "always"}, 1), ({"enabled": False}, 0)):
                response = admin.patch("/api/settings", json={"continuity": change})
                assert response.status_code == 200
                for gateway in (one, other):
                    gateway.gateway.wait_for(gateway.gateway.app.refresh())
                assert (handed(one), handed(other)) == (quoted, quoted)


@pytest.mark.parametrize(("continuity", "quoted"), [(QUIET, 0), (ContinuitySettings(True), 2)], ids=["without", "with"])
def test_a_handoff_is_reported_everywhere(continuity: ContinuitySettings, quoted: int) -> None:
    """Which target answered, which route led there, who was asked before, and what was added."""
    with stage(*PAIR, continuity=continuity) as one, managed(one) as admin:
        talk = one.begin("openai_chat", 5, headers={"x-thoughtline-session": "s-1"})
        for failing in ("", "", "deepseek", "", ""):
            talk.step(failing)
        line = one.gateway.lines[2]
        first, second = (f"{target.provider}/{target.model}" for target in PAIR)
        assert talk.steps[2].target == "anthropic"
        assert (line["provider"], line["via"], line["handoff"], line["attempts"]) == ("anthropic", "team", first, 2)
        assert (line["checkpoints"], line["added_chars"] > 0) == (quoted, quoted > 0)
        assert [one["handoff"] for one in one.gateway.lines] == ["", "", first, "", ""]
        turns = admin.get("/api/sessions/s-1").json()["turns"]
        assert [f"{turn['provider']}/{turn['model']}" for turn in turns] == [first, first, second, second, second]
        done = turns[2]["outcome"]
        assert (done["route"], done["attempts"], done["handoff"], done["checkpoints"]) == ("team", 2, first, quoted)
        [row] = admin.get("/api/handoffs").json()["handoffs"]
        assert (row["route"], row["hasCheckpoints"], row["count"], row["followed"]) == ("team", quoted > 0, 1, 2)
        assert (row["addedChars"] > 0, sum(row["finishes"].values())) == (quoted > 0, 1)
        told = "with" if quoted else "without"
        page = admin.get("/metrics").text
        assert f'thoughtline_handoffs_total{{checkpoints="{told}",route="team"}} 1.0' in page
        assert ("thoughtline_checkpoint_chars_total{" in page) is (quoted > 0)


def test_who_picks_another_model_is_no_handoff_of_a_route() -> None:
    """The report is about routes; the other model still gets the quotations."""
    with stage(*PAIR) as one, managed(one) as admin:
        talk = one.begin("openai_chat", 2)
        talk.step()
        talk.lane.ask_for(f"{PAIR[1].provider}/{PAIR[1].model}")
        assert talk.step().checkpoints == 1
        assert admin.get("/api/handoffs").json() == {"handoffs": [], "turns": 2, "isWhole": True}


def test_results_that_were_errors_are_counted() -> None:
    """Tool errors that a client reports after a handoff are in the report."""
    with stage(*PAIR) as one, managed(one) as admin:
        talk = one.begin("anthropic_messages", 4)
        talk.step()
        assert talk.step("deepseek").target == "anthropic"
        talk.client.go_on()
        talk.client.history[-1]["content"][0]["is_error"] = True
        talk.step_as_it_is()
        [row] = admin.get("/api/handoffs").json()["handoffs"]
        assert (row["toolErrors"], row["badCalls"], row["retries"]) == (1, 0, 0)


def _turn(at: float, place: str, told: Outcome, arguments: str = "{}") -> Record:
    where = Provenance("t", "p", "https://host.example", "a", "m", "m", "openai_chat", "d", "s", None)
    call = ToolCall("weather", arguments, "call_1")
    return Record(RecordId(f"{at}"), where, (call,), (Key(f"place-v2:{place}"),), at, outcome=told)


def test_what_is_looked_at() -> None:
    """The three turns after a handoff, up to the next one: errors, unreadable calls, repeated turns."""
    plain = Outcome(tool_errors=1)
    records = [
        _turn(1, "a", Outcome(finish="tool_calls")),
        _turn(2, "b", Outcome(route="r", handoff="p/m", finish="stop", tool_errors=5)),
        _turn(3, "b", plain),
        _turn(4, "c", plain, "not json"),
        _turn(5, "d", plain, "[]"),
        _turn(6, "e", plain),
        _turn(7, "f", Outcome(route="r", handoff="p/m", checkpoints=2, added_chars=400)),
        _turn(8, "g", Outcome(route="r", handoff="p/m", checkpoints=1, added_chars=100, finish="stop")),
    ]
    without, with_some = report(reversed(records))
    assert (without.route, without.has_checkpoints, without.count, without.finishes) == ("r", False, 1, {"stop": 1})
    assert (without.followed, without.tool_errors, without.bad_calls, without.retries) == (3, 3, 2, 1)
    assert (with_some.has_checkpoints, with_some.count, with_some.finishes) == (True, 2, {"cut": 1, "stop": 1})
    assert (with_some.added_chars, with_some.added_tokens, with_some.followed) == (500, 125, 0)


def test_the_evaluation_at_a_gateway_that_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`thoughtline eval handoff --gateway` switches by header: without quotations, then with, then again."""
    monkeypatch.setenv("EVAL_KEY", "a-key")
    first, second = (f"{target.provider}/{target.model}" for target in PAIR)
    out = tmp_path / "report.json"
    with stage(*PAIR, continuity=QUIET) as one:
        where = ["--gateway", one.gateway.url, "--key-env", "EVAL_KEY", "--json", str(out)]
        assert main(["eval", "handoff", "--from", first, "--to", second, *where]) == 0
        one.check_answers()
        one.check_seals()
    off, handoff, always = json.loads(out.read_bytes())["summaries"]
    assert [summary["failed_requests"] for summary in (off, handoff, always)] == [0, 0, 0]
    assert off["checkpoints"] == 0 < handoff["checkpoints"] <= always["checkpoints"]
