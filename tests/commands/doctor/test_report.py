"""`thoughtline doctor` as a person and a program meet it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import httpx
from msgspec.structs import replace

from tests.commands.doctor.scripted_servers import closed_port
from tests.sim.served_simulators import served
from thoughtline.commands.doctor.report import Running, as_used
from thoughtline.destinations.catalogue import PROVIDERS
from thoughtline.gateway.admin.status_answers import ProviderAbout
from thoughtline.settings import Settings


def doctor(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("THOUGHTLINE_", "XDG_"))}
    return subprocess.run(
        [sys.executable, "-m", "thoughtline.cli", "doctor", "--port", str(closed_port()), *arguments],
        capture_output=True,
        text=True,
        check=False,
        cwd=folder,
        env=environment | {"HOME": str(folder), "KEY": "sk-never-shown"},
    )


def test_with_nothing_set(tmp_path: Path) -> None:
    """Built-in values pass."""
    result = doctor(tmp_path)
    assert result.returncode == 0, result.stdout
    assert "no config file" in result.stdout
    assert "FAIL" not in result.stdout


def test_a_whole_installation(tmp_path: Path) -> None:
    """Settings, a store, an upstream that is there and one that is not: each has its line, and one failure counts."""
    (tmp_path / "thoughtline.toml").write_text(f"""
        [providers.deepseek]
        base_url = "{served("deepseek").url}"
        api_key = "${{KEY}}"
        [providers.gone]
        base_url = "http://127.0.0.1:{closed_port()}"
        [store]
        url = "sqlite:///turns.db"
    """)
    result = doctor(tmp_path, "--json", "--config", "thoughtline.toml")
    report = json.loads(result.stdout)
    assert (result.returncode, report["ok"]) == (1, False)
    states = {check["name"]: check["state"] for check in report["checks"]}
    assert states == {
        "settings": "ok",
        "store": "ok",
        "store file": "ok",
        "disk": "ok",
        "upstream deepseek": "ok",
        "upstream gone": "fail",
        "port": "ok",
        "exposure": "ok",
        "admin token": "ok",
        "clock": states["clock"],
    }
    assert (tmp_path / "turns.db").exists()
    assert "sk-never-shown" not in result.stdout + result.stderr


def test_a_strange_folder_is_not_obeyed(tmp_path: Path) -> None:
    """A checkout with settings of its own gets no secret sent anywhere; what would use them is said."""
    (tmp_path / "thoughtline.toml").write_text(f"""
        [providers.deepseek]
        base_url = "http://127.0.0.1:{closed_port()}"
        api_key = "${{KEY}}"
    """)
    result = doctor(tmp_path)
    assert result.returncode == 0, result.stdout
    assert "upstream deepseek" not in result.stdout
    assert "thoughtline doctor --config ./thoughtline.toml" in result.stderr


def test_settings_with_mistakes(tmp_path: Path) -> None:
    """All of them, with their lines and remedies, and nothing else is looked at."""
    (tmp_path / "mine.toml").write_text('[server]\nprot = 1\n[store]\nttl = 7\n[providers.kimi]\napi_key = "${NOPE}"')
    result = doctor(tmp_path, "--config", "mine.toml")
    assert result.returncode == 1
    lines = result.stdout.splitlines()
    assert [line.split()[2].rstrip(":") for line in lines[::2]] == ["mine.toml:2", "mine.toml:4", "mine.toml:6"]
    assert all("→" in line for line in lines[1::2])
    assert "did you mean port?" in lines[1]


def test_flags_are_looked_at_too(tmp_path: Path) -> None:
    """`doctor` accepts the options of `serve`."""
    result = doctor(tmp_path, "--upstream", f"http://127.0.0.1:{closed_port()}", "--store", "memory://")
    assert result.returncode == 1
    assert "nothing listens" in result.stdout
    assert "warn  store" in result.stdout


def served_by(folder: Path, *arguments: str) -> tuple[subprocess.Popen[str], int]:
    """A gateway of this home, and its port."""
    port = closed_port()
    words = [sys.executable, "-m", "thoughtline.cli", "serve", "--port", str(port), *arguments]
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("THOUGHTLINE_", "XDG_"))}
    process = subprocess.Popen(
        words, cwd=folder, env=environment | {"HOME": str(folder)}, stderr=subprocess.PIPE, text=True
    )
    assert process.stderr is not None
    assert any("listening" in line for line in process.stderr)
    return process, port


def test_without_settings_the_providers_in_use_are_checked(tmp_path: Path) -> None:
    """The advertised use has no file: the running gateway knows which providers it was asked for."""
    process, port = served_by(tmp_path, "--upstream", f"http://127.0.0.1:{closed_port()}", "--provider", "kimi")
    try:
        answer = httpx.post(f"http://127.0.0.1:{port}/kimi/v1/chat/completions", json={"model": "m", "messages": []})
        assert answer.status_code == 502
        result = doctor(tmp_path, "--port", str(port), "--json")
    finally:
        process.kill()
        process.wait()
    names = [check["name"] for check in json.loads(result.stdout)["checks"]]
    assert "upstream kimi" in names


def test_what_was_not_checked_is_not_called_well(tmp_path: Path) -> None:
    """Without settings and without a gateway no provider is asked, and the report says so."""
    result = doctor(tmp_path)
    assert "skip  upstreams" in result.stdout
    assert "skip  clock" in result.stdout
    assert "name one: doctor PROVIDER" in result.stdout


def test_a_named_provider_is_checked(tmp_path: Path) -> None:
    """Even one that no settings mention; a misspelt one is reported."""
    result = doctor(tmp_path, "vllm", "--json")
    checks = {check["name"]: check for check in json.loads(result.stdout)["checks"]}
    assert checks["upstream vllm"]["state"] == "fail"
    assert "nothing listens there" in checks["upstream vllm"]["message"]
    result = doctor(tmp_path, "depseek")
    assert result.returncode == 1
    assert "did you mean deepseek?" in result.stdout


def test_the_running_gateways_own_address_is_checked(tmp_path: Path) -> None:
    """Also where the provider is named: what the gateway asks is what matters, such as a simulator."""
    simulator = served("deepseek")
    process, port = served_by(tmp_path, "--upstream", simulator.url, "--provider", "deepseek")
    try:
        result = doctor(tmp_path, "deepseek", "--port", str(port))
    finally:
        process.kill()
        process.wait()
    assert f"ok    upstream deepseek  {simulator.url.removeprefix('http://')} answers in" in result.stdout


def test_a_key_stays_with_the_address_of_its_settings() -> None:
    """A running gateway may use another URL: keys of the settings are not sent there, and values set here stay."""
    deepseek = replace(PROVIDERS["deepseek"], api_keys=("sk-1",), headers={"x-key": "sk-2"})
    settings = Settings(providers={**PROVIDERS, "deepseek": deepseek})
    rows = tuple(told(name, "http://127.0.0.1:1") for name in ("deepseek", "mine"))
    used = as_used(settings, Running(rows)).providers
    assert (used["deepseek"].base_url, used["deepseek"].has_secrets) == ("http://127.0.0.1:1", False)
    assert used["mine"].base_url == "http://127.0.0.1:1"
    own = as_used(replace(settings, configured=frozenset({"deepseek"})), Running(rows)).providers["deepseek"]
    assert own == deepseek


def told(name: str, url: str) -> ProviderAbout:
    """A provider as a running gateway describes it."""
    return ProviderAbout(
        name,
        [],
        url,
        formats=["openai_chat"],
        auth="bearer",
        has_key=False,
        is_configured=False,
        is_default=False,
        example_model="",
        contract="",
        contract_source="",
    )
