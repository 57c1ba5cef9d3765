"""The server: many streams at once, nothing that takes it down, what it tells of what it saw, its command."""

from __future__ import annotations

import asyncio
import copy
import functools
import json
import random
import re
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.sim.faces import CASES, HTTP, Case, Dialogue, streamed
from tests.sim.served_simulators import served
from tests.sim.violations import called, case_of
from thoughtline_sim.simulators import SIMULATORS
from thoughtline_sim.values import HttpRequest

DEEPSEEK = case_of("deepseek")


# many


def test_two_hundred_streams_at_once() -> None:
    """All are open at the same time, and each gets its own answer to the end."""
    url = served("deepseek").url + "/chat/completions"

    async def one(client: httpx.AsyncClient, number: int, gate: asyncio.Barrier) -> str:
        script = f"stream {number}\nscript:\nlong 2000\nsay: answer {number}\nchunk 50"
        body = {"model": "deepseek-v4-pro", "stream": True, "messages": [{"role": "user", "content": script}]}
        async with client.stream("POST", url, json=body) as response:
            assert response.status_code == 200
            await gate.wait()
            return "".join([piece async for piece in response.aiter_text()])

    async def all_of_them() -> list[str]:
        limits = httpx.Limits(max_connections=200)
        gate = asyncio.Barrier(200)
        async with httpx.AsyncClient(limits=limits, timeout=120) as client:
            return list(await asyncio.gather(*(one(client, number, gate) for number in range(200))))

    for number, text in enumerate(asyncio.run(all_of_them())):
        reply = streamed(DEEPSEEK, text.encode())
        assert reply.candidates[0].turn.items[-1].text == f"answer {number}"  # type: ignore[union-attr]  # a text, by the script
        assert text.endswith("data: [DONE]\n\n")


# anything

json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-3, 3)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=8,
)
WORDS = [
    *("role", "content", "type", "text", "thinking", "signature", "data", "tool_calls", "function", "id", "input"),
    *("reasoning_details", "reasoning_content", "parts", "functionCall", "thoughtSignature", "encrypted_content"),
    *("reasoningContent", "reasoningText", "toolUse", "toolResult", "extra_content", "google", "summary", "status"),
]
VALUES = [
    "assistant",
    "user",
    "model",
    "tool",
    "thinking",
    "redacted_thinking",
    "reasoning",
    "tool_use",
    "function_call",
]
near = st.recursive(
    json_values | st.sampled_from(VALUES),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(WORDS), inner, max_size=5),
    max_leaves=14,
)
TOP = [*("messages", "contents", "input", "system", "tools", "tool_choice", "thinking", "reasoning", "stream", "store")]
TOP += [*("toolConfig", "generationConfig", "include", "model", "previous_response_id", "additionalModelRequestFields")]
hostile = st.dictionaries(st.sampled_from(TOP), near, max_size=6)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
@settings(max_examples=30, deadline=None, suppress_health_check=list(HealthCheck))
@given(body=hostile)
def test_no_request_breaks_it(case: Case, body: Any) -> None:
    """Whatever JSON comes, it is answered or refused, never failed at."""
    path = case.path.replace("{model}", case.model)
    response = HTTP.post(served(case.simulator, case.profile).url + path, json={"model": case.model, **body})
    assert response.status_code in (200, 400, 404, 422), response.text


def places_of(value: Any, place: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Where something stands in a JSON value."""
    keys: Any = value if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ()
    for key in keys:
        yield (*place, key)
        yield from places_of(value[key], (*place, key))


def anything(dice: random.Random, depth: int = 0) -> Any:
    if depth > 3 or dice.random() < 0.4:
        return dice.choice([None, True, 0, -1, 2.5, "", "x", [], {}, *VALUES])
    if dice.random() < 0.5:
        return [anything(dice, depth + 1) for _ in range(dice.randint(0, 3))]
    return {dice.choice([*WORDS, *TOP]): anything(dice, depth + 1) for _ in range(dice.randint(0, 4))}


SPOILED = "hi\nscript:\nthink: a\nredacted\ncall: weather {}\ncall: weather {}\n---\nthink:\nsay: b\n---\nsay: c"


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_no_spoiled_conversation_breaks_it(case: Case) -> None:
    """A good conversation, changed in two places, two hundred times. No socket: what fails here fails loudly."""
    dialogue = Dialogue(case, SPOILED)
    for _ in range(2):
        dialogue.go_on(dialogue.ask())
    simulation = served(case.simulator, case.profile).app.simulation
    dice = random.Random(case.id)
    for turn in range(200):
        body = copy.deepcopy(dialogue.outgoing())
        for _ in range(2):
            *parents, last = dice.choice(list(places_of(body)))
            holder: Any = functools.reduce(lambda value, key: value[key], parents, body)
            if dice.random() < 0.25:
                holder.pop(last)
            else:
                holder[last] = anything(dice)
        path = (case.stream_path if turn % 2 and case.stream_path else case.path).replace("{model}", case.model)
        request = HttpRequest(
            "POST", path.partition("?")[0], {}, {"authorization": "Bearer key-1"}, json.dumps(body).encode()
        )
        assert simulation.respond(request).status in (200, 400, 404, 422)


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b"null", b'"text"', b"\xff", b"[" * 5000, b'{"a":"\\ud800"}'])
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_no_json(case: Case, body: bytes) -> None:
    """A body that is none gets the provider's kind of error."""
    path = case.path.replace("{model}", case.model)
    response = HTTP.post(served(case.simulator, case.profile).url + path, content=body)
    assert response.status_code == 400


@pytest.mark.parametrize("name", SIMULATORS)
def test_unknown_paths(name: str) -> None:
    """Say what there is, in paths and not in patterns."""
    response = HTTP.post(served(name).url + "/nothing/here", json={})
    assert response.status_code == 404
    assert f"{name} answers POST on /" in response.json()["error"]["message"]
    assert not re.search(r"[$?()|\[\]+*^]|\\\\", response.json()["error"]["message"])


# how a stream is cut


def test_chunks_as_asked() -> None:
    """By header, by query or by script: the same answer in other pieces."""
    case = DEEPSEEK
    opening = "pieces\nscript:\nthink: äöü and more\nsay: “quoted” words"
    plain = Dialogue(case, opening).post(is_streaming=True).content
    dialogue = Dialogue(case, opening)
    dialogue.headers = {"x-sim-chunk": "1"}
    small = dialogue.post(is_streaming=True).content
    query = Dialogue(case._replace(path=case.path + "?sim_chunk=1"), opening).post(is_streaming=True).content
    script = Dialogue(case, opening + "\nchunk 1").post(is_streaming=True).content
    assert small.count(b"data:") == query.count(b"data:") == script.count(b"data:") > plain.count(b"data:")
    texts = [streamed(case, stream).candidates[0].turn for stream in (plain, small, query, script)]
    assert len({str(turn.items) for turn in texts}) == 1


def test_bytes_as_asked() -> None:
    """Pieces of the network that end in the middle of an event, or of a letter."""
    dialogue = Dialogue(DEEPSEEK, "bytes\nscript:\nthink: äöü\nsay: ok")
    dialogue.headers = {"x-sim-bytes": "7"}
    url = served("deepseek").url + DEEPSEEK.path
    body = {**dialogue.body, "stream": True}
    with HTTP.stream("POST", url, json=body, headers=dialogue.headers) as response:
        pieces = list(response.iter_raw())
    assert max(map(len, pieces)) <= 7 * 64
    assert len(pieces) > 1
    assert streamed(DEEPSEEK, b"".join(pieces)).candidates[0].finish is not None


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_a_stream_that_breaks_off(case: Case) -> None:
    """The connection ends before the stream does; what came can be read, and has no finish."""
    dialogue = Dialogue(case, "breaks\nscript:\nthink: a long thought, and more of it\nsay: never said\ncut 3\nchunk 4")
    path = (case.stream_path or case.path).replace("{model}", case.model)
    body = dialogue.outgoing() if case.stream_path else {**dialogue.outgoing(), "stream": True}
    received: list[bytes] = []
    url = served(case.simulator, case.profile).url + path
    with HTTP.stream("POST", url, json=body) as response, pytest.raises(httpx.RemoteProtocolError):
        received.extend(response.iter_raw())
    reply = streamed(case, b"".join(received))
    assert all(candidate.finish is None for candidate in reply.candidates)


# what it tells


def test_log_and_stats() -> None:
    """Per conversation: which reasoning came back whole, altered, missing."""
    dialogue = called(case_of("glm"), "told of")
    dialogue.history[1]["reasoning_content"] = "something else"
    dialogue.post()
    base = served("glm").url
    entry = HTTP.get(base + "/_log").json()[-1]
    assert entry["status"] == 200
    assert entry["verdicts"] == ["altered"]
    assert [message["verdict"] for message in entry["messages"]] == [None, "altered", None]
    assert entry["messages"][1]["thoughts"] == ["something else"]
    conversations = HTTP.get(base + "/_stats").json()["conversations"]
    stats = next(row for row in conversations if row["conversation"] == entry["conversation"])
    assert stats["latest"] == ["altered"]
    assert stats["requests"] == 2


def test_refusals_are_logged_with_their_sentence() -> None:
    """And the key is never shown."""
    dialogue = called(case_of("kimi"), "logged refusal")
    dialogue.key = "secret-key-of-mine"
    del dialogue.history[1]["reasoning_content"]
    dialogue.post()
    log = HTTP.get(served("kimi").url + "/_log")
    assert log.json()[-1]["refusal"].startswith("thinking is enabled but reasoning_content is missing")
    assert "secret-key-of-mine" not in log.text


def test_the_page() -> None:
    """One file, nothing from elsewhere."""
    response = HTTP.get(served("kimi").url + "/")
    assert response.headers["content-type"] == "text/html; charset=utf-8"
    assert "_stats" in response.text
    assert "http" not in response.text.replace("<!doctype html>", "")


def test_models_are_listed() -> None:
    """For clients that ask first."""
    listed = HTTP.get(served("kimi").url + "/v1/models").json()
    assert "kimi-k2.6" in [model["id"] for model in listed["data"]]


def test_script_in_a_header() -> None:
    """For a client whose first message is not its tester's to write."""
    dialogue = Dialogue(DEEPSEEK, "no script here")
    dialogue.headers = {"x-sim-script": "think: as told|say: from the header"}
    whole = dialogue.ask()
    assert whole["choices"][0]["message"]["content"] == "from the header"


def test_too_large() -> None:
    """A body beyond the bound is refused by name."""
    response = HTTP.post(served("kimi").url + "/v1/chat/completions", content=b" " * (32 * 1024 * 1024 + 1))
    assert response.status_code == 413


# the command


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "thoughtline.cli", "sim", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_list() -> None:
    """Every simulator, with its profiles."""
    listed = run("--list").stdout.splitlines()
    assert [line.split()[0] for line in listed] == list(SIMULATORS)
    assert any("[bound, older, oauth, classic, adaptive]" in line for line in listed)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [(("grok",), "no simulator grok"), (("kimi", "--profile", "x"), "no profile x"), ((), "which provider")],
)
def test_unknown_names_are_refused(arguments: tuple[str, ...], message: str) -> None:
    """With those that are known."""
    result = run(*arguments)
    assert result.returncode == 2
    assert message in result.stderr


def test_serves() -> None:
    """The command listens where it says, and answers."""
    command = [sys.executable, "-u", "-m", "thoughtline.cli", "sim", "kimi", "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            url = process.stdout.readline().split()[2]
            body = {"model": "kimi-k3", "messages": [{"role": "user", "content": "hi"}]}
            answer = HTTP.post(url + "/v1/chat/completions", json=body).json()
            assert json.dumps(answer["choices"][0]["message"]["content"])
        finally:
            process.terminate()
