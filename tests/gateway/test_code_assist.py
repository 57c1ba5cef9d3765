"""Gemini in Code Assist's envelope: read and restored like Gemini, answered in the envelope, the rest unchanged."""

from __future__ import annotations

import json
from typing import Any

import httpx
import pytest

from tests.gateway.forgetful_clients import TEN_TURNS, Forgetful
from tests.gateway.gateways import moved, running
from tests.gateway.upstreams import Got, Out, upstream
from tests.sim.faces import CASES, HTTP
from tests.sim.served_simulators import served
from thoughtline.settings import Settings

GEMINI = next(case for case in CASES if case.id == "code-assist-gemini_code_assist-gemini-3-pro-preview")
CLAUDE = next(case for case in CASES if case.id == "code-assist-gemini_code_assist-claude-sonnet-4-5")
WHOLE = "/code-assist/v1internal:generateContent"
STREAM = "/code-assist/v1internal:streamGenerateContent?alt=sse"
SIGNATURE = "EgpzaWduYXR1cmU="
CALL: dict[str, Any] = {"functionCall": {"id": "c1", "name": "look", "args": {}}}
SIGNED = {"role": "model", "parts": [{**CALL, "thoughtSignature": SIGNATURE}]}
ANSWER = {"candidates": [{"content": SIGNED, "finishReason": "STOP"}]}
ANSWERED = json.dumps({"traceId": "t-1", "response": ANSWER, "remainingCredits": []}, indent=1).encode()


def user(words: str) -> dict[str, Any]:
    return {"role": "user", "parts": [{"text": words}]}


def result() -> dict[str, Any]:
    return {"role": "user", "parts": [{"functionResponse": {"id": "c1", "name": "look", "response": {"output": "1"}}}]}


def body(*contents: Any, **inner: Any) -> bytes:
    """In an unusual JSON form, with unknown members before and after."""
    written = json.dumps({"contents": list(contents), **inner}, indent=2)
    head = '{ "project" :"p-1",\n"user_prompt_id":"s-1########0", "request" : '
    return f'{head}{written} ,"model": "gemini-3-pro-preview","enabled_credit_types":[1.50] }}\n'.encode()


async def answer(got: Got, out: Out) -> None:
    await out.whole(200, ANSWERED)


def test_only_the_signature_changes_in_the_envelope() -> None:
    """Lost reasoning is restored; every other byte, around the request and in it, is sent unchanged."""
    with upstream(answer) as up, running({"code-assist": up.url}) as gateway:
        first = HTTP.post(gateway.url + WHOLE, content=body(user("Look.")))
        lost = body(user("Look."), {"role": "model", "parts": [CALL]}, result())
        second = HTTP.post(gateway.url + WHOLE, content=lost)
    assert (first.content, second.content) == (ANSWERED, ANSWERED)
    assert up.got[0].body == body(user("Look."))
    assert up.got[0].target == "/v1internal:generateContent"
    sent = up.got[1].body
    assert sent.startswith(lost[: lost.index(b'"model"')])
    assert sent.endswith(lost[lost.index(b'"functionResponse"') :])
    parts = json.loads(sent)["request"]["contents"][1]["parts"]
    assert parts == [{**CALL, "thoughtSignature": SIGNATURE}]
    assert second.headers["x-thoughtline-replay"].startswith("restored=1")


def test_the_session_is_the_envelope_s() -> None:
    """Gemini CLI's, Antigravity's, and without either the one of the prompt."""
    with upstream(answer) as up, running({"code-assist": up.url}) as gateway, gateway.listening() as next_line:
        told = []
        for inner in ({"session_id": "cli-1"}, {"sessionId": "-375"}, {}):
            HTTP.post(gateway.url + WHOLE, content=body(user("Look."), **inner))
            told.append(next_line().session)
    assert told == ["cli-1", "-375", "s-1"]


def test_a_thought_sent_back_as_words_is_known_again() -> None:
    """Gemini CLI's `[Thought: true]`: the turn is found, its signature restored, and the text is unchanged."""
    thought = {"text": "I look.", "thought": True}
    parts = [thought, {**CALL, "thoughtSignature": SIGNATURE}]
    whole = {"candidates": [{"content": {"role": "model", "parts": parts}, "finishReason": "STOP"}]}

    async def think(got: Got, out: Out) -> None:
        await out.whole(200, json.dumps({"response": whole}).encode())

    words = {"text": "I look.\n[Thought: true]"}
    with upstream(think) as up, running({"code-assist": up.url}) as gateway:
        HTTP.post(gateway.url + WHOLE, content=body(user("Look.")))
        HTTP.post(gateway.url + WHOLE, content=body(user("Look."), {"role": "model", "parts": [words, CALL]}, result()))
    parts = json.loads(up.got[1].body)["request"]["contents"][1]["parts"]
    assert parts == [words, {**CALL, "thoughtSignature": SIGNATURE}]


@pytest.mark.parametrize("path", ["loadCodeAssist", "onboardUser", "retrieveUserQuota", "recordCodeAssistMetrics"])
def test_other_calls_pass_through(path: str) -> None:
    """Other requests go to the same host unchanged."""
    with upstream(answer) as up, running({"code-assist": up.url}) as gateway:
        asked = b'{"metadata":{"ideType":"IDE_UNSPECIFIED"}}'
        response = HTTP.post(f"{gateway.url}/code-assist/v1internal:{path}", content=asked)
    assert response.content == ANSWERED
    assert (up.got[0].target, up.got[0].body) == (f"/v1internal:{path}", asked)


def test_tokens_are_counted_without_an_envelope_on_the_answer() -> None:
    """The request has one, with the model inside."""
    simulator = served("code-assist")
    asked = {"request": {"model": "models/gemini-3-pro-preview", "contents": [user("Look.")]}}
    with running({"code-assist": simulator.url}) as gateway:
        response = HTTP.post(f"{gateway.url}/code-assist/v1internal:countTokens", json=asked)
    assert list(response.json()) == ["totalTokens"]


@pytest.mark.parametrize("is_streaming", [False, True])
def test_another_provider_answers_in_the_envelope(is_streaming: bool) -> None:
    """A Code Assist client at DeepSeek gets envelopes, and its reasoning is restored."""
    simulator = served("deepseek")
    opening = "script:\nthink: Look.\ncall: look {}\n---\nthink: Done.\nsay: Seen.\n"
    tools = [{"functionDeclarations": [{"name": "look", "parameters": {"type": "object"}}]}]
    row = moved("deepseek", simulator.url)
    settings = Settings(providers={"deepseek": row}, default_provider="deepseek")
    with running({}, settings) as gateway:
        url = gateway.url + (STREAM if is_streaming else WHOLE).removeprefix("/code-assist")
        contents = [user(opening)]
        for _ in range(2):
            asked = {"model": "deepseek-v4-pro", "request": {"contents": contents, "tools": tools}}
            response = HTTP.post(url, json=asked, headers={"authorization": "Bearer key-1"})
            assert response.status_code == 200, response.text
            parts = [part for one in answers(response, is_streaming) for part in parts_of(one)]
            contents = [*contents, {"role": "model", "parts": [part for part in parts if "thought" not in part]}]
            calls = [part["functionCall"] for part in parts if "functionCall" in part]
            contents += [{"role": "user", "parts": [result_of(call)]} for call in calls]
    assert "".join(part.get("text", "") for part in parts if not part.get("thought")) == "Seen."
    assert simulator.app.simulation.log[-1]["verdicts"] == ["whole"]


def answers(response: httpx.Response, is_streaming: bool) -> list[dict[str, Any]]:
    """All answers without their envelopes."""
    if not is_streaming:
        return [response.json()["response"]]
    return [json.loads(line.removeprefix("data: "))["response"] for line in response.text.splitlines() if line]


def parts_of(answer: dict[str, Any]) -> list[dict[str, Any]]:
    parts: list[dict[str, Any]] = answer["candidates"][0]["content"]["parts"]
    return parts


def result_of(call: dict[str, Any]) -> dict[str, Any]:
    return {
        "functionResponse": {**{key: call[key] for key in ("id", "name") if key in call}, "response": {"output": "1"}}
    }


def test_what_fails_here_is_told_as_google_tells_it() -> None:
    """Without an envelope: Code Assist's errors have none."""
    with running({}) as gateway:
        response = HTTP.post(f"{gateway.url}/v1internal:generateContent", content=body(user("Look.")))
    assert response.status_code == 404
    assert response.json()["error"]["status"] == "NOT_FOUND"


def test_claude_at_antigravity_gets_no_sentinel() -> None:
    """The thinking of its loop is lost: thinking is switched off for this request, and unsigned thoughts are
    removed."""
    simulator = served("code-assist")
    loop = {"role": "model", "parts": [{"text": "Unsigned.", "thought": True}, CALL]}
    config = {"thinkingConfig": {"thinkingBudget": 2048, "includeThoughts": True}}
    inner = {"contents": [user("Look."), loop, result()], "generationConfig": config}
    asked = {"model": "claude-sonnet-4-5", "request": inner}
    with running({"code-assist": simulator.url}) as gateway:
        direct = HTTP.post(simulator.url + "/v1internal:generateContent", json=asked)
        through = HTTP.post(gateway.url + WHOLE, json=asked)
    assert (direct.status_code, through.status_code) == (400, 200), through.text
    assert "Invalid `signature`" in json.loads(direct.json()["error"]["message"])["error"]["message"]
    assert "missing=1" in through.headers["x-thoughtline-replay"]


def test_a_stream_is_remembered_by_its_beginning() -> None:
    """Ten turns of a client that forgets: later requests resume from cached earlier ones."""
    simulator = served("code-assist")
    with running({"antigravity": simulator.url}) as gateway:
        dialogue = Forgetful(f"{gateway.url}/antigravity", GEMINI, TEN_TURNS.format(mark="remembered"))
        for _ in range(12):
            dialogue.go_on(dialogue.ask(is_streaming=True))
        assert gateway.state.replayer.remembered_size > 0
    assert set(simulator.app.simulation.log[-1]["verdicts"]) == {"whole", "none"}
