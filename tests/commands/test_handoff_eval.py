"""`thoughtline eval handoff`: conversations that change hands, with checkpoints off and on, against real sockets."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from thoughtline.cli import main
from thoughtline.commands.handoff_eval import (
    MODES,
    Check,
    EvalPlace,
    Unreadable,
    decode_conversations,
    evaluate,
    is_passed,
    shipped,
    simulated,
)
from thoughtline.commands.loopback import listening
from thoughtline_sim.app import Receive, Scope, Send

Json = dict[str, Any]
LINE: Json = {"id": "n", "turns": ["Pick.", "Which?"], "handoff_after": 1, "check": {"recalls": r"\d{3}"}}


class Gateway:
    """Answers as a gateway would: with what the first model thought, where checkpoints are on."""

    def __init__(self, status: int = 200) -> None:
        self.status = status
        self.requests: list[tuple[dict[str, str], Json]] = []

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        body = b""
        while True:
            message = await receive()
            body += message.get("body", b"")
            if not message.get("more_body"):
                break
        headers = {name.decode(): value.decode() for name, value in scope["headers"]}
        self.requests.append((headers, json.loads(body)))
        is_first = json.loads(body)["model"] == "a/first"
        mode = headers["x-thoughtline-continuity"]
        status = 200 if is_first else self.status
        knows = is_first or mode != "off"
        message = {"content": "ok" if is_first else "It is 417." if knows else "No idea.", "reasoning_content": ""}
        message |= {"reasoning_content": "I pick 417."} if is_first else {}
        answer: Json = {"choices": [{"message": message}], "usage": {"prompt_tokens": 7, "completion_tokens": 2}}
        answer = answer if status == 200 else {"error": {"message": "too busy"}}
        quoted = b"restored=0, checkpoints=%d" % (not is_first and mode != "off")
        await send({"type": "http.response.start", "status": status, "headers": [(b"x-thoughtline-replay", quoted)]})
        await send({"type": "http.response.body", "body": json.dumps(answer).encode()})


async def _evaluated(app: Gateway, line: Json = LINE) -> Any:
    conversations = decode_conversations(json.dumps(line).encode())
    async with listening(app) as url:
        return await evaluate(EvalPlace(url, "secret"), "a/first", "b/second", conversations, "run")


async def test_each_mode_is_counted_by_itself() -> None:
    """Pass rates, what was quoted, tokens and times of the second target."""
    report = await _evaluated(Gateway())
    assert [(one.mode, one.passed, one.checkpoints) for one in report.summaries] == [
        ("off", 0, 0),
        ("handoff", 1, 1),
        ("always", 1, 1),
    ]
    assert all((one.input_tokens, one.output_tokens, one.failed_requests) == (7, 2, 0) for one in report.summaries)
    assert all(one.median_ms > 0 for one in report.summaries)


async def test_requests_are_those_of_a_client_that_drops_reasoning() -> None:
    """The first target, then the second; one session for each mode; no reasoning and no script is sent."""
    app = Gateway()
    await _evaluated(app, LINE | {"system": "Be brief.", "script": "say: x"})
    assert [body["model"] for _, body in app.requests] == ["a/first", "b/second"] * 3
    assert len({headers["x-thoughtline-session"] for headers, _ in app.requests}) == 3
    headers, body = app.requests[1]
    assert headers["authorization"] == "Bearer secret"
    assert "x-sim-script" not in headers
    assert body["messages"] == [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "Pick."},
        {"role": "assistant", "content": "ok"},
        {"role": "user", "content": "Which?"},
    ]


async def test_only_who_begins_is_asked_to_think() -> None:
    """The second target's answer is measured."""
    app = Gateway()
    async with listening(app) as url:
        conversations = decode_conversations(json.dumps(LINE).encode())
        await evaluate(EvalPlace(url, effort="high"), "a/first", "b/second", conversations, "run")
    assert [body.get("reasoning_effort") for _, body in app.requests] == ["high", None] * 3


async def test_a_failed_request_is_counted_and_reported() -> None:
    """It passes no check, and the others go on."""
    report = await _evaluated(Gateway(503))
    assert [(one.passed, one.failed_requests) for one in report.summaries] == [(0, 1)] * 3
    assert report.outcomes[0].problem == "too busy"
    assert report.outcomes[0].statuses == (200, 503)


async def test_the_shipped_conversations_are_played_by_simulators() -> None:
    """In this process, through a gateway: every request is answered, and a model without quotes knows nothing."""
    conversations = decode_conversations(shipped())
    async with simulated("deepseek/deepseek-v4-pro", "openai/gpt-4.1") as place:
        report = await evaluate(place, "deepseek/deepseek-v4-pro", "openai/gpt-4.1", conversations, "run")
    assert [one.mode for one in report.summaries] == list(MODES)
    assert all(one.conversations == len(conversations) >= 5 for one in report.summaries)
    assert all(one.failed_requests == 0 for one in report.summaries)
    assert report.summaries[0].passed == 0


CHECKS = [
    (Check(contains="Heron"), "the heron.", (), True),
    (Check(contains="heron"), "an otter", (), False),
    (Check(matches="^4\\d$"), "42", (), True),
    (Check(matches="^4\\d$"), "It is 42", (), False),
    (Check(recalls=r"\d{3}"), "It is 417!", ("none", "I pick 417, not 500"), True),
    (Check(recalls=r"\d{3}"), "It is 500", ("I pick 417, not 500",), False),
    (Check(recalls=r"\d{3}"), "It is 4170", ("I pick 417",), False),
    (Check(recalls=r"\d{3}"), "It is 417", (), False),
]


@pytest.mark.parametrize(("check", "answer", "thoughts", "passed"), CHECKS)
def test_checks(check: Check, answer: str, thoughts: tuple[str, ...], passed: bool) -> None:
    """What an answer must be like."""
    assert is_passed(check, answer, thoughts) is passed


BROKEN = {
    "empty": b"\n\n",
    "no JSON": b"{oops}",
    "a member too many": json.dumps(LINE | {"x": 1}).encode(),
    "two checks": json.dumps(LINE | {"check": {"contains": "a", "matches": "b"}}).encode(),
    "no check": json.dumps(LINE | {"check": {}}).encode(),
    "no pattern": json.dumps(LINE | {"check": {"matches": "("}}).encode(),
    "nobody takes over": json.dumps(LINE | {"handoff_after": 2}).encode(),
    "nobody begins": json.dumps(LINE | {"handoff_after": 0}).encode(),
}


@pytest.mark.parametrize("data", BROKEN.values(), ids=list(BROKEN))
def test_an_invalid_file_is_reported(data: bytes) -> None:
    """With the line."""
    with pytest.raises(Unreadable):
        decode_conversations(data)


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A table for people, a file for machines; exit status 2 for what can't be done."""
    out = tmp_path / "report.json"
    targets = ["--from", "deepseek/deepseek-v4-pro", "--to", "openai/gpt-4.1"]
    assert main(["eval", "handoff", *targets, "--json", str(out)]) == 0
    report = json.loads(out.read_bytes())
    assert report["source"] == "deepseek/deepseek-v4-pro"
    assert [one["mode"] for one in report["summaries"]] == list(MODES)
    assert "handoff" in capsys.readouterr().out
    assert main(["eval", "handoff", *targets, "--conversations", str(tmp_path / "none")]) == 2
    assert main(["eval", "handoff", "--from", "nobody/x", "--to", "openai/gpt-4.1"]) == 2
    assert "no simulator of nobody" in capsys.readouterr().err


def test_a_gateway_that_is_not_there(capsys: pytest.CaptureFixture[str]) -> None:
    """Every request fails and is reported; the exit status is 1."""
    report = asyncio.run(
        evaluate(EvalPlace("http://127.0.0.1:9"), "a/x", "b/y", decode_conversations(json.dumps(LINE).encode()), "run")
    )
    assert all(one.failed_requests == 1 for one in report.summaries)
