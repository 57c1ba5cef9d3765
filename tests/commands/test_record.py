"""`thoughtline record`, and `thoughtline replay` of what it wrote: real clients, simulators and sockets."""

from __future__ import annotations

import json
import os
import signal
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.gateway.gateways import running
from tests.recording.forgetful_client import case_named
from tests.recording.planted_secrets import KEYS, PLANTED, WORD, random_tokens
from tests.recordings import recording_at
from tests.sim.served_simulators import served
from thoughtline.recording.secrets import PLACEHOLDER, secrets_in
from thoughtline.replay.ids import is_distinctive

ROOT = Path(__file__).parents[2]
THOUGHTLINE = (sys.executable, "-m", "thoughtline.cli")
CASES = (
    "deepseek-openai_chat-deepseek-v4-pro",
    "anthropic-classic-anthropic_messages-claude-sonnet-4-5",
    "openai-openai_responses-gpt-5",
    "gemini-gemini_generate-gemini-3-pro-preview",
)


def thoughtline(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "HOME": str(folder), "PYTHONPATH": str(ROOT), "XDG_DATA_HOME": str(folder / "data")}
    return subprocess.run(
        [*THOUGHTLINE, *words], cwd=folder, env=environment, capture_output=True, text=True, check=False, timeout=120
    )


def replayed(folder: Path, file: Path, *words: str) -> list[dict[str, Any]]:
    done = thoughtline(folder, "replay", str(file), "--json", *words)
    assert done.returncode == 0, done.stderr
    exchanges: list[dict[str, Any]] = json.loads(done.stdout)["exchanges"]
    return exchanges


def client(case: str, how: str, folder: Path) -> list[str]:
    return [sys.executable, "-m", "tests.recording.forgetful_client", case, how, str(folder / "passed.json")]


def counts_in(header: str) -> dict[str, int]:
    pairs = (part.partition("=") for part in header.split(", "))
    return {name: int(number) for name, _, number in pairs if number.isdigit() and int(number)}


@pytest.mark.parametrize("texts", ["kept", "replaced"])
@pytest.mark.parametrize("how", ["whole", "stream"])
@pytest.mark.parametrize("name", CASES)
def test_a_recording_says_what_the_gateway_did(name: str, how: str, texts: str, tmp_path: Path) -> None:
    """A client that drops reasoning, recorded in front of a gateway: nothing planted is left in the file, and a replay
    without a network restores in each request what the gateway restored."""
    case, file = case_named(name), tmp_path / "recording.json"
    options = ["--replace-texts"] if texts == "replaced" else []
    with running({case.simulator: served(case.simulator, case.profile).url}) as gateway:
        words = ["record", "--provider", case.simulator, "--through", gateway.url, "--to", str(file), *options]
        done = thoughtline(tmp_path, *words, "--", *client(name, how, tmp_path))
    assert done.returncode == 0, done.stderr
    live = [json.loads(line) for line in done.stdout.splitlines()]
    assert [status for status, _ in live] == [200] * 4
    assert any("restored" in counts_in(header) for _, header in live)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600

    shown, passed = file.read_text(), (tmp_path / "passed.json").read_text()
    assert [one for one in PLANTED if one in shown] == []
    assert [one for one in random_tokens(passed) if one in shown] == []
    assert "c00kie" not in shown
    kinds = [text for text in strings(json.loads(shown)["exchanges"]) if not is_safe(text)]
    assert kinds == []
    assert (WORD in shown) == (texts == "kept")

    exchanges = replayed(tmp_path, file)
    assert [one["counts"] for one in exchanges] == [counts_in(header) for _, header in live]
    assert all(one["captured"] == 1 for one in exchanges)
    recording = recording_at(file)
    assert [exchange.format.name for exchange in recording.exchanges] == [case.format] * 4
    assert all((one.stream is not None) == (how == "stream") for one in recording.exchanges)


def strings(value: Any) -> list[str]:
    if isinstance(value, dict):
        return [*value, *(text for one in value.values() for text in strings(one))]
    if isinstance(value, list):
        return [text for one in value for text in strings(one)]
    return [value] if isinstance(value, str) else []


def is_safe(text: str) -> bool:
    """Whether every key, address and home in a text is a stand-in."""
    found = [text[one.start : one.end] for one in secrets_in(text) if one.kind in ("key", "mail", "home", "file")]
    return all(PLACEHOLDER.match(one) or one.startswith("user") for one in found)


def test_recorded_refusals_and_their_remedy(tmp_path: Path) -> None:
    """Without a gateway between, the provider refuses what the client dropped: the replay says what would be sent."""
    config, file = tmp_path / "own.toml", tmp_path / "r.json"
    config.write_text(f'[providers.deepseek]\nbase_url = "{served("deepseek").url}"\n')
    words = ["record", "--provider", "deepseek", "--config", str(config), "--to", str(file)]
    done = thoughtline(tmp_path, *words, "--", *client(CASES[0], "whole", tmp_path))
    assert [json.loads(line)[0] for line in done.stdout.splitlines()] == [200, 400]
    first, second = replayed(tmp_path, file)
    assert (first["result"], second["result"], second["counts"]) == ("untouched", "changed", {"restored": 1})
    assert second["turns"][0]["words"] == "restored: same conversation so far, same system prompt"
    assert second["refusal"].startswith("a turn lacks the reasoning that it must carry")
    assert "reasoning_content" in second["sent"]["messages"][1]
    shown = thoughtline(tmp_path, "replay", str(file)).stdout
    assert "would be sent changed: 1 restored" in shown
    [call] = json.loads(file.read_text())["exchanges"][0]["response"]["choices"][0]["message"]["tool_calls"]
    assert is_distinctive(call["id"])
    assert not random_tokens(call["id"]) & random_tokens((tmp_path / "passed.json").read_text())


def test_the_exit_status_is_the_client_s(tmp_path: Path) -> None:
    """Also where nothing was asked: then no file is written."""
    words = ["record", "--to", str(tmp_path / "r.json"), "--", sys.executable, "-c", "raise SystemExit(7)"]
    done = thoughtline(tmp_path, *words)
    assert (done.returncode, done.stderr) == (7, "thoughtline record: nothing was recorded: no model was asked\n")
    assert not (tmp_path / "r.json").exists()


def test_ctrl_c_ends_it_and_writes_the_file(tmp_path: Path) -> None:
    """Without a client it says where it listens."""
    file = tmp_path / "r.json"
    with running({"deepseek": served("deepseek").url}) as gateway:
        words = [*THOUGHTLINE, "record", "--provider", "deepseek", "--through", gateway.url, "--to", str(file)]
        process = subprocess.Popen(words, stderr=subprocess.PIPE, text=True, env={**os.environ, "HOME": str(tmp_path)})
        assert process.stderr is not None
        base = process.stderr.readline().split(";")[0].rpartition(" ")[2]
        body = {"model": "deepseek-v4-pro", "messages": [{"role": "user", "content": f"Is {KEYS[1]} a key?"}]}
        response = httpx.post(f"{base}/v1/chat/completions", json=body, headers={"authorization": f"Bearer {KEYS[0]}"})
        assert response.status_code == 200
        assert httpx.get(f"{base}/v1/models", headers={"authorization": f"Bearer {KEYS[0]}"}).status_code == 200
        process.send_signal(signal.SIGINT)
        rest = process.communicate(timeout=60)[1]
    assert process.returncode == 0
    assert f"wrote 1 exchange to {file}" in rest
    [exchange] = json.loads(file.read_text())["exchanges"]
    assert exchange["request"]["messages"][0]["content"] == "Is KEY_REDACTED_2 a key?"
    assert exchange["credential"] == "KEY_REDACTED_1"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--provider", "depseek"], "no provider depseek; did you mean deepseek?"),
        (["--through", "127.0.0.1:8642"], "127.0.0.1:8642 is no address."),
        (["--to", "there.json"], "there.json exists. Name another with --to."),
        (["--to", "no/folder/r.json"], "There is no folder no/folder."),
        (["--", "no-such-program"], "no program no-such-program in PATH, and no client of this name;"),
    ],
)
def test_what_can_t_be_recorded(words: list[str], message: str, tmp_path: Path) -> None:
    """It is refused before a client starts."""
    (tmp_path / "there.json").write_text("{}")
    done = thoughtline(tmp_path, "record", *words)
    assert done.returncode == 2
    assert message in done.stderr
    assert (tmp_path / "there.json").read_text() == "{}"
