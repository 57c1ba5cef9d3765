"""`thoughtline verify` as a person meets it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tests.sim.served_simulators import served


def verify(home: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "thoughtline.cli", "verify", *arguments],
        capture_output=True,
        text=True,
        check=False,
        cwd=home,
        env={**os.environ, "HOME": str(home), "XDG_DATA_HOME": str(home / "data"), **environment},
    )


@pytest.fixture
def config(tmp_path: Path) -> list[str]:
    """Settings in which Kimi is its simulator, and DeepSeek is GLM's, which demands nothing."""
    file = tmp_path / "thoughtline.toml"
    file.write_text(
        f'[providers.kimi]\nbase_url = "{served("kimi").url}"\n[providers.deepseek]\nbase_url = "{served("glm").url}"\n'
    )
    return ["--config", str(file)]


def test_a_model_that_is_as_it_is_believed_to_be(tmp_path: Path, config: list[str]) -> None:
    """The cost first, then a table; exit status 0."""
    done = verify(tmp_path, "kimi", "--format", "openai_chat", "--key-env", "A_KEY", *config, A_KEY="sk-secret-key")
    assert done.returncode == 0, done.stderr + done.stdout
    assert "at most 20,000 tokens" in done.stderr
    assert "without it in a tool loop" in done.stdout
    assert "0 differences" in done.stdout
    assert "sk-secret" not in done.stdout + done.stderr


def test_a_model_that_is_not(tmp_path: Path, config: list[str]) -> None:
    """Exit status 1, JSON for programs, and an overlay that can be installed."""
    overlay = tmp_path / "seen.toml"
    asked = ["deepseek", "--model", "glm-5", "--format", "openai_chat", "--json", "--overlay", str(overlay), *config]
    done = verify(tmp_path, *asked, DEEPSEEK_API_KEY="sk-secret-key")
    assert done.returncode == 1, done.stderr
    [found] = json.loads(done.stdout)["verified"]
    assert "differs" in {one["verdict"] for one in found["facts"]}
    assert tomllib.loads(overlay.read_text())["contracts"]


MISTAKES = {
    "nobody": "There is no provider nobody",
    "vertex --model gemini-3-pro-preview": "can't be verified",
    "kimi --key-env NO_SUCH_KEY": "NO_SUCH_KEY is empty or not set",
    "kimi --format nonsense": "can't be verified in nonsense",
    "kimi": "There is no key for kimi",
}


@pytest.mark.parametrize("line", MISTAKES)
def test_mistakes(tmp_path: Path, line: str) -> None:
    """Each is said before anything is asked."""
    keys = dict.fromkeys(("MOONSHOT_API_KEY", "KIMI_API_KEY"), "")
    done = verify(tmp_path, *line.split(), **keys)
    assert done.returncode == 2
    assert MISTAKES[line] in done.stderr


def test_the_budget(tmp_path: Path, config: list[str]) -> None:
    """What was not seen is said to be unknown."""
    done = verify(tmp_path, "kimi", "--format", "openai_chat", "--budget", "300", *config, KIMI_API_KEY="sk-secret-key")
    assert "the budget of 300 tokens is spent" in done.stdout
    assert "unknown" in done.stdout
