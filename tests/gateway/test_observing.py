"""Replay off or only observing: by a request, a client key, a provider, settings and a flag."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import httpx
import pytest
from msgspec.structs import replace

from tests.gateway.managed_gateways import CACHE, TOOLS, Managed, followed, managed
from tests.gateway.upstreams import Got, Out, upstream
from tests.sim.served_simulators import served
from thoughtline.destinations.catalogue import PROVIDERS, ReplayMode
from thoughtline.gateway.modes import mode_of
from thoughtline.settings import ReplaySettings, Settings
from thoughtline.values.errors import Declined

Json = dict[str, Any]
MODEL = "deepseek-v4-pro"
BODY = b'{ "model":"deepseek-v4-pro",  "messages":[{"role":"user","content":"hi"}], "unknown" : 1.50 }'


def ask(
    gateway: Managed, history: list[Json], mode: str = "", path: str = "/deepseek", **more: object
) -> httpx.Response:
    headers = {"authorization": "Bearer someone", **({"x-thoughtline-replay": mode} if mode else {})}
    body = {"model": MODEL, "messages": history, "tools": TOOLS}
    return gateway.anyone.post("/deepseek/v1/chat/completions", json=body, headers=headers)


def stripped(gateway: Managed, mode: str = "") -> list[Json]:
    """A history whose only model turn has lost its reasoning."""
    history: list[Json] = [{"role": "user", "content": "list the files"}]
    message = ask(gateway, history, mode).json()["choices"][0]["message"]
    return [*history, *followed({**message, "reasoning_content": None})]


def test_on_is_what_it_does_by_default() -> None:
    with managed() as gateway:
        history = stripped(gateway)
        for mode in ("", "on", "ON"):
            answer = ask(gateway, history, mode)
            assert answer.status_code == 200
            assert answer.headers["x-thoughtline-replay"].startswith("restored=1,")
            assert "mode=" not in answer.headers["x-thoughtline-replay"]


def test_off_changes_nothing_and_captures_nothing() -> None:
    """The provider's own refusal comes back, and no turn is recorded."""
    with managed() as gateway:
        history = stripped(gateway, "off")
        assert gateway.get(CACHE)["entries"] == []
        answer = ask(gateway, history, "off")
        assert answer.status_code == 400
        assert answer.headers["x-thoughtline-replay"].endswith(", mode=off")
        row = gateway.get("/api/requests", limit=1)["requests"][0]
        assert (row["mode"], row["restored"], row["captured"]) == ("off", 0, 0)


def test_observe_captures_and_tells_what_would_have_been_done() -> None:
    """The request is sent unchanged and is refused; with replay on, the same one is answered."""
    with managed() as gateway:
        history = stripped(gateway, "observe")
        assert len(gateway.get(CACHE)["entries"]) == 1
        answer = ask(gateway, history, "observe")
        assert answer.status_code == 400
        told = answer.headers["x-thoughtline-replay"]
        assert told.startswith("restored=0,")
        assert told.endswith(", mode=observe, would_restored=1")
        line = gateway.gateway.lines[-1]
        assert (line["mode"], line["would"], line["preventable"]) == ("observe", "restored=1", True)
        view = gateway.get(f"/api/requests/{line['request']}")
        assert [turn["words"].partition(":")[0] for turn in view["turns"]] == ["not restored"]
        assert ask(gateway, history).status_code == 200


@pytest.mark.parametrize("mode", ["off", "observe"])
def test_the_bytes_are_the_clients_own(mode: str) -> None:
    """Including spacing, unknown members and number spellings."""

    async def answer(got: Got, out: Out) -> None:
        await out.whole(200, b'{"choices":[{"message":{"role":"assistant","content":"hi"}}]}')

    with upstream(answer) as up, managed(simulators={"deepseek": up.url}) as gateway:
        headers = {"x-thoughtline-replay": mode, "content-type": "application/json"}
        assert gateway.anyone.post("/deepseek/v1/chat/completions", content=BODY, headers=headers).status_code == 200
        assert up.got[-1].body == BODY
        assert up.got[-1].header("x-thoughtline-replay") is None
        named = BODY.replace(b'"deepseek-v4-pro"', b'"deepseek/deepseek-v4-pro"')
        assert gateway.anyone.post("/v1/chat/completions", content=named, headers=headers).status_code == 200
        assert up.got[-1].body == BODY


@pytest.mark.parametrize("mode", ["off", "observe"])
@pytest.mark.parametrize("is_stream", [False, True])
def test_a_translated_request_is_translated_and_nothing_else(mode: str, is_stream: bool) -> None:
    """A client of another format gets its answer; nothing is restored for it."""
    chat = replace(PROVIDERS["deepseek"], base_url=served("deepseek").url, bases={}, formats=("openai_chat",), paths={})
    with managed(Settings(providers={**PROVIDERS, "deepseek": chat}), simulators={}) as gateway:
        body = {"model": MODEL, "max_tokens": 99, "stream": is_stream, "messages": [{"role": "user", "content": "hi"}]}
        headers = {"x-api-key": "k", "x-thoughtline-replay": mode}
        answer = gateway.anyone.post("/deepseek/v1/messages", json=body, headers=headers)
        assert answer.status_code == 200
        assert "message_stop" in answer.text if is_stream else answer.json()["type"] == "message"
        assert f"mode={mode}" in answer.headers["x-thoughtline-replay"]
        assert len(gateway.get(CACHE)["entries"]) == (1 if mode == "observe" else 0)


def test_the_order_of_who_says_it(tmp_path: Path) -> None:
    """A request overrides its client key, the key its provider, the provider the settings."""
    simulator = served("deepseek").url
    row = replace(PROVIDERS["deepseek"], base_url=simulator, bases={}, replay="observe", api_keys=("k",))
    settings = Settings(providers={**PROVIDERS, "deepseek": row}, replay=ReplaySettings(mode="off"))
    store = f"sqlite:///{tmp_path}/turns.db"
    with managed(settings, store, takes_keys=True, simulators={}) as gateway:
        made = gateway.admin.post("/api/keys", json={"name": "alice", "replay": "on"}).json()
        assert made["key"]["replay"] == "on"
        plain = gateway.admin.post("/api/keys", json={"name": "bob"}).json()["secret"]

        def mode(key: str, **headers: str) -> str:
            sent = {"authorization": f"Bearer {key}", **headers}
            body = {"model": MODEL, "messages": [{"role": "user", "content": "hi"}]}
            answer = gateway.anyone.post("/deepseek/v1/chat/completions", json=body, headers=sent)
            assert answer.status_code == 200, answer.text
            return answer.headers["x-thoughtline-replay"].partition("mode=")[2] or "on"

        assert mode(made["secret"]) == "on"
        assert mode(plain) == "observe"
        assert mode(made["secret"], **{"x-thoughtline-replay": "off"}) == "off"


def test_a_wrong_mode_is_reported() -> None:
    """The error lists the allowed values, and nothing is sent."""
    with managed() as gateway:
        answer = ask(gateway, [{"role": "user", "content": "hi"}], "maybe")
        assert answer.status_code == 400
        assert answer.json()["error"]["message"] == (
            'The header x-thoughtline-replay is wrong: "maybe" is not a mode. Send one of on, observe, off.'
        )


@pytest.mark.parametrize(
    ("header", "settings", "expected"),
    [(b"", (None, "off"), "off"), (b"", (None, None), "on"), (b" Observe ", ("off",), "observe"), (b"", (), "on")],
)
def test_which_word_counts(header: bytes, settings: tuple[ReplayMode | None, ...], expected: str) -> None:
    assert mode_of(header, *settings) == expected


def test_a_word_that_may_be_a_secret_is_not_repeated() -> None:
    with pytest.raises(Declined) as caught:
        mode_of(b"sk-" + b"s" * 40)
    assert "sss" not in str(caught.value)


def test_serve_observe(tmp_path: Path) -> None:
    """The flag is `[replay] mode`; the last line counts what would have changed, and what failed because of it."""
    words = [sys.executable, "-m", "thoughtline.cli", "serve", "--observe", "--sim", "deepseek", "--port", "0"]
    with subprocess.Popen(words, env={"HOME": str(tmp_path), "PATH": ""}, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        said: list[str] = []
        while sum(line.startswith("curl ") for line in said) < 2:
            said.append(process.stderr.readline())
        assert "only observed" in "".join(said)
        first, second = (line for line in said if line.startswith("curl "))
        for line in (first, second):
            url, body = line.split()[2], line.partition("-d '")[2].rpartition("'")[0]
            answer = httpx.post(
                url, content=body, headers={"content-type": "application/json", "authorization": "Bearer k"}
            )
        assert answer.status_code == 400
        assert json.loads(body)["model"] == MODEL
        process.terminate()
        rest = process.stderr.read()
    assert "would have changed 1 observed request, of which 1 failed for that" in rest
