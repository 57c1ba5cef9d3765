"""`thoughtline doctor --live`: the loop, proved against a strict simulator."""

from __future__ import annotations

from pathlib import Path

from tests.commands.doctor.scripted_servers import closed_port
from tests.commands.doctor.test_report import doctor
from tests.sim.served_simulators import served


def test_live_proves_the_loop_and_says_the_cost_first(tmp_path: Path) -> None:
    """The model thinks, the client leaves that out, the provider gets it back; the key is never shown."""
    simulator = served("deepseek")
    (tmp_path / "mine.toml").write_text(f'[providers.deepseek]\nbase_url = "{simulator.url}"\napi_key = "${{KEY}}"\n')
    result = doctor(tmp_path, "deepseek", "--live", "--config", "mine.toml")
    assert result.returncode == 0, result.stdout + result.stderr
    assert "ok    live deepseek" in result.stdout
    assert "restored=1" in result.stdout
    assert "--live sends 2 short requests to deepseek for deepseek-v4-pro, about 1,000 tokens" in result.stderr
    assert "sk-never-shown" not in result.stdout + result.stderr


def test_live_without_a_key_sends_no_request(tmp_path: Path) -> None:
    """It says which variable is missing, and no request is sent."""
    result = doctor(tmp_path, "deepseek", "--live", "--upstream", served("deepseek").url, "--provider", "deepseek")
    assert "skip  live deepseek" in result.stdout
    assert "set DEEPSEEK_API_KEY" in result.stdout
    assert "--live sends" not in result.stderr


def test_live_tells_why_a_provider_refuses(tmp_path: Path) -> None:
    """With the same verdict that a client gets."""
    (tmp_path / "mine.toml").write_text(
        f'[providers.kimi]\nbase_url = "http://127.0.0.1:{closed_port()}"\napi_key = "k"\n'
    )
    result = doctor(tmp_path, "kimi", "--live", "--config", "mine.toml")
    assert result.returncode == 1
    assert "FAIL  live kimi      request 1 of 2 failed: network: kimi (127.0.0.1:" in result.stdout
