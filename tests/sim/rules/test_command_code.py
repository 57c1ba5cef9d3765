"""What Command Code's own address refuses, sentence by sentence."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from tests.sim.faces import HTTP, command_code_body
from tests.sim.served_simulators import served

Json = dict[str, Any]
Edit = Callable[[Json], None]
VERSION = {"x-command-code-version": "1.69.0"}
CALL = {"type": "tool-call", "toolCallId": "c1", "toolName": "look", "input": {}}
RESULT = {"type": "tool-result", "toolCallId": "c1", "toolName": "look", "output": {"type": "text", "value": "a cat"}}


def body() -> Json:
    """A request that is taken: a step with a thought, and its result."""
    thought = {"type": "reasoning", "text": "Look."}
    messages = [
        {"role": "user", "content": "Hi.\nscript:\ncall: look {}\n---\nthink: Done.\nsay: Seen."},
        {"role": "assistant", "content": [thought, CALL]},
        {"role": "tool", "content": [RESULT]},
    ]
    return command_code_body({"model": "deepseek/deepseek-v4-pro", "messages": messages, "stream": True})


def post(sent: Json, headers: dict[str, str] | None = None) -> tuple[int, str, bytes]:
    headers = VERSION if headers is None else headers
    answer = HTTP.post(f"{served('command-code').url}/alpha/generate", json=sent, headers=headers)
    return answer.status_code, answer.json()["error"]["message"] if answer.is_error else "", answer.content


def setting(*path: str | int, value: Any) -> Edit:
    """Sets what stands there."""

    def edit(sent: Json) -> None:
        place: Any = sent
        for step in path[:-1]:
            place = place[step]
        place[path[-1]] = value

    return edit


def without(*path: str | int) -> Edit:
    def edit(sent: Json) -> None:
        place: Any = sent
        for step in path[:-1]:
            place = place[step]
        del place[path[-1]]

    return edit


PART = ("params", "messages", 1, "content", 1)
REFUSED: dict[str, tuple[Edit, str]] = {
    "no config": (without("config"), 'Invalid input: expected object, received undefined at "config"'),
    "no working directory": (
        without("config", "workingDir"),
        'Invalid input: expected string, received undefined at "config.workingDir"',
    ),
    "memory that is null": (
        setting("memory", value=None),
        'Invalid input: expected string, received undefined at "memory"',
    ),
    "a thread that is no UUID": (setting("threadId", value="t1"), 'Invalid UUID at "threadId"'),
    "no messages": (
        without("params", "messages"),
        'Invalid input: expected array, received undefined at "params.messages"',
    ),
    "no stream": (setting("params", "stream", value=False), "Proxy use detected. This endpoint only serves CLI."),
    "too many tokens": (
        setting("params", "max_tokens", value=200_001),
        "Too big: expected number to be <=200000 at params.max_tokens",
    ),
    "an effort that nobody knows": (
        setting("params", "reasoning_effort", value="off"),
        'Invalid option: expected one of "low"|"medium"|"high"|"xhigh"|"max" at "params.reasoning_effort"',
    ),
    "a system message": (
        setting("params", "messages", 0, "role", value="system"),
        'Invalid option: expected one of "user"|"assistant"|"tool" at "params.messages[0].role"',
    ),
    "a call without a name": (
        without(*PART, "toolName"),
        'Invalid input: expected string, received undefined at "params.messages[1].content[1].toolName"',
    ),
    "arguments as text": (
        setting(*PART, "input", value="{}"),
        'Invalid input: expected object, received string at "params.messages[1].content[1].input"',
    ),
    "a result without its call": (
        setting("params", "messages", 2, "content", 0, "toolCallId", value="c2"),
        "No tool call found for tool result c2.",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_refused(case: str) -> None:
    """400, in the validator's words."""
    edit, sentence = REFUSED[case]
    sent: Json = json.loads(json.dumps(body()))
    edit(sent)
    assert post(sent)[:2] == (400, sentence)


def test_a_part_of_an_unknown_kind() -> None:
    """The validator names all kinds that it knows."""
    sent: Json = json.loads(json.dumps(body()))
    setting(*PART, "type", value="toolCall")(sent)
    status, sentence, _ = post(sent)
    assert status == 400
    assert 'expected "reasoning" at "params.messages[1].content[1].type"' in sentence
    assert sentence.count(" or ") == 13


@pytest.mark.parametrize("headers", [{}, {"x-command-code-version": "0.0.1"}], ids=["none", "old"])
def test_a_version_is_required(headers: dict[str, str]) -> None:
    """403."""
    assert post(body(), headers)[0] == 403


@pytest.mark.parametrize("model", ["deepseek/deepseek-v4-pro", "claude-sonnet-5"])
def test_an_answer_is_a_stream_of_parts(model: str) -> None:
    """Each part between its start and its end; Claude's signature stands in a delta without words."""
    sent = body()
    sent["params"] |= {"model": model, "messages": sent["params"]["messages"][:1]}
    events = [json.loads(line) for line in post(sent)[2].splitlines()]
    kinds = [event["type"] for event in events]
    assert kinds[:3] == ["start", "start-step", "reasoning-start"]
    assert kinds[-4:] == ["tool-call", "finish-step", "finish", "provider-metadata"]
    signed = [event for event in events if event["type"] == "reasoning-delta" and "providerMetadata" in event]
    assert [event["text"] for event in signed] == ([""] if model.startswith("claude") else [])


def test_lost_reasoning_is_reported_and_not_rejected() -> None:
    """The ledger says what became of it."""
    opening = {**body()["params"]["messages"][0]}
    opening["content"] = "Lost.\n" + opening["content"].partition("\n")[2]
    first = command_code_body({"model": "m", "messages": [opening]})
    [call] = [one for one in map(json.loads, post(first)[2].splitlines()) if one["type"] == "tool-call"]
    result = {"role": "tool", "content": [RESULT | {"toolCallId": call["toolCallId"]}]}
    status, _, _ = post(
        command_code_body({"model": "m", "messages": [opening, {"role": "assistant", "content": [call]}, result]})
    )
    assert status == 200
    assert served("command-code").app.simulation.log[-1]["verdicts"] == ["missing"]
