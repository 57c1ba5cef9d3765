"""`thoughtline run`: what it gives a client, and what it says where it can't. Real clients: tests/clients."""

from __future__ import annotations

import contextlib
import json
import os
import shlex
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.gateway.gateways import running
from thoughtline.clients import CLIENTS, Address, find
from thoughtline.clients.launching import launch_of
from thoughtline.commands.run import start_gateway
from thoughtline.settings import Settings
from thoughtline.values.errors import Declined

KEY = "sk-of-a-test"
ADDRESS = Address("http://127.0.0.1:8642/deepseek", "some-model", 1000)
SHOWS = """#!{python}
import json, os, sys
print(json.dumps({{"words": sys.argv[1:], "env": dict(os.environ), "pid": os.getpid()}}), flush=True)
{rest}
"""


@pytest.fixture(scope="module")
def gateway() -> Iterator[str]:
    with running({}, Settings()) as started:
        yield started.url


def installed(folder: Path, command: str, rest: str = "") -> None:
    """A program that says how it was started."""
    (folder / "bin").mkdir(exist_ok=True)
    file = folder / "bin" / command
    file.write_text(SHOWS.format(python=sys.executable, rest=rest))
    file.chmod(0o755)


def started(home: Path, *words: str, **variables: str) -> subprocess.Popen[str]:
    kept = {name: os.environ[name] for name in ("LANG", "PYTHONPATH", "VIRTUAL_ENV") if name in os.environ}
    environment = kept | {"HOME": str(home), "PATH": str(home / "bin")} | variables
    command = [sys.executable, "-m", "thoughtline.cli", "run", *words]
    return subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, stdin=subprocess.DEVNULL
    )


def test_the_client_s_status_is_ours(tmp_path: Path, gateway: str) -> None:
    """It has our process, our environment with what `connect` prints over it, and its own arguments."""
    installed(tmp_path, "claude", "sys.exit(7)")
    words = ("claude", "--provider", "deepseek", "--url", gateway, "--", "-p", "hi there", "--", "--provider")
    variables = {"DEEPSEEK_API_KEY": KEY, "MINE": "1", "ANTHROPIC_API_KEY": "old", "HTTPS_PROXY": "http://proxy:1"}
    process = started(tmp_path, *words, **variables)
    output, remarks = process.communicate(timeout=60)
    assert (process.returncode, remarks) == (7, "")
    shown = json.loads(output)
    assert shown["pid"] == process.pid
    assert shown["words"] == ["-p", "hi there", "--", "--provider"]
    assert shown["env"]["ANTHROPIC_BASE_URL"] == f"{gateway}/deepseek"
    assert shown["env"]["ANTHROPIC_AUTH_TOKEN"] == KEY
    assert shown["env"]["ANTHROPIC_DEFAULT_HAIKU_MODEL"] == "deepseek-v4-pro"
    assert "ANTHROPIC_API_KEY" not in shown["env"]
    assert (shown["env"]["MINE"], shown["env"]["NO_PROXY"]) == ("1", "127.0.0.1")


def test_a_signal_reaches_the_client(tmp_path: Path, gateway: str) -> None:
    """Since it has our process."""
    installed(tmp_path, "claude", "sys.stdin.close(); import signal; signal.pause()")
    process = started(tmp_path, "claude", "--url", gateway, THOUGHTLINE_KEY=KEY)
    assert process.stdout is not None
    process.stdout.readline()
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=60)
    assert process.returncode == -signal.SIGTERM


def test_a_gateway_of_its_own(tmp_path: Path) -> None:
    """With --serve it comes before the client and ends with it."""
    asks = "import urllib.request as r; url = os.environ['ANTHROPIC_BASE_URL'].rpartition('/')[0]"
    installed(tmp_path, "claude", f"{asks}; print(r.urlopen(url + '/healthz').status)")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    process = started(tmp_path, "claude", "--serve", THOUGHTLINE_PORT=str(port), THOUGHTLINE_KEY=KEY)
    output, remarks = process.communicate(timeout=120)
    assert (process.returncode, output.splitlines()[-1:]) == (0, ["200"]), remarks
    log = tmp_path / ".local" / "share" / "thoughtline" / "gateway.log"
    assert f"started a gateway for the client; its log: {log}" in remarks
    with contextlib.suppress(ConnectionRefusedError), socket.create_connection(("127.0.0.1", port), 60) as waiting:
        assert waiting.recv(1) == b""  # it hangs up when it ends


OWN = f"{shlex.quote(sys.executable)} -m thoughtline.cli"
"""How the program is started again where no PATH leads to it."""


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            ["claude", "--url", "http://127.0.0.1:9"],
            "No gateway answers at http://127.0.0.1:9. Start one in another shell",
        ),
        (["codex"], "no program codex in PATH; install it: npm install --global @openai/codex"),
        (
            ["zed"],
            f"Zed can't be configured by flags or variables. Change its own settings: {OWN} connect zed --write",
        ),
        (["cursor"], f"Cursor can't be configured by flags or variables. What to set in it: {OWN} connect cursor"),
        (["cluade"], "no client cluade; did you mean claude-code?"),
        (["claude", "--provider", "depseek"], "no provider depseek; did you mean deepseek?"),
        (["claude", "--model", "depseek/x"], "no provider depseek; did you mean deepseek?"),
    ],
)
def test_what_is_said_where_it_can_t_start(words: list[str], message: str, tmp_path: Path) -> None:
    """One line, with a way out."""
    installed(tmp_path, "claude")
    process = started(tmp_path, *words)
    output, remarks = process.communicate(timeout=60)
    assert (process.returncode, output) == (2, "")
    assert remarks.startswith(f"thoughtline run: {message}")


def test_a_missing_key_is_reported(tmp_path: Path, gateway: str) -> None:
    """It may be right all the same: a simulator takes any."""
    installed(tmp_path, "claude")
    _, remarks = started(tmp_path, "claude", "--provider", "kimi", "--url", gateway).communicate(timeout=60)
    assert "no key in THOUGHTLINE_KEY or MOONSHOT_API_KEY or KIMI_API_KEY: the client sends a placeholder" in remarks


@pytest.mark.parametrize("client", [client for client in CLIENTS if client.program], ids=lambda client: client.name)
def test_everything_that_connect_prints_is_set(client: object) -> None:
    """The address, the model and the key reach every program, by a variable, a flag or a file of its own."""
    assert isinstance(client, type(CLIENTS[0]))
    launch = launch_of(client, ADDRESS, KEY)
    assert launch is not None
    given = " ".join([*launch.arguments, *launch.variables.values(), *(file.text for file in launch.files)])
    for value in (ADDRESS.base, ADDRESS.model, KEY):
        assert value in given


@pytest.mark.parametrize(
    ("given", "passed"),
    [
        ([], ["--model", "thoughtline-deepseek/some-model"]),
        (["--continue"], ["--model", "thoughtline-deepseek/some-model", "--continue"]),
        (["run", "-c", "hi"], ["run", "--model", "thoughtline-deepseek/some-model", "-c", "hi"]),
        (["run", "-m", "other/x", "hi"], ["run", "-m", "other/x", "hi"]),
        (["run", "--model=other/x", "hi"], ["run", "--model=other/x", "hi"]),
        (["serve", "--port", "1"], ["serve", "--port", "1"]),
    ],
)
@pytest.mark.parametrize("name", ["opencode", "kilo"])
def test_a_session_goes_on_with_the_model_that_is_named(name: str, given: list[str], passed: list[str]) -> None:
    """Not with the one that it was begun with; a model that the user names counts more."""
    client = find(name)
    assert client is not None
    launch = launch_of(client, ADDRESS, KEY)
    assert launch is not None
    assert launch.words(given) == passed


def test_the_choices_are_shown(tmp_path: Path, gateway: str) -> None:
    """The provider's own format, thinking, plain content: on stderr, before the client starts."""
    installed(tmp_path, "opencode")
    words = ("opencode", "--url", gateway, "--provider")
    told = {
        "anthropic": "It is set to speak anthropic_messages",
        "mistral": "It gets plain text",
    }
    for provider, sentence in told.items():
        process = started(tmp_path, *words, provider, THOUGHTLINE_KEY=KEY)
        output, remarks = process.communicate(timeout=60)
        assert process.returncode == 0
        assert remarks.startswith(f"thoughtline run: {sentence}")
        config = json.loads(json.loads(output)["env"]["OPENCODE_CONFIG_CONTENT"])
        assert list(config["provider"]) == [f"thoughtline-{provider}"]


@pytest.mark.parametrize(("provider", "headers"), [("deepseek", None), ("mistral", {"x-thoughtline-content": "plain"})])
def test_a_variable_of_several_lines(provider: str, headers: dict[str, str] | None) -> None:
    """Mistral Vibe's providers, of which one line is for Mistral alone: the value ends where its quote does."""
    vibe = find("mistral-vibe")
    assert vibe is not None
    launch = launch_of(vibe, ADDRESS._replace(base=f"http://127.0.0.1:8642/{provider}"), KEY)
    assert launch is not None
    (row,) = json.loads(launch.variables["VIBE_PROVIDERS"])
    assert (row["api_base"], row.get("extra_headers")) == (f"http://127.0.0.1:8642/{provider}/v1", headers)
    assert launch.variables["VIBE_ACTIVE_MODEL"] == "thoughtline"


def test_flags_of_codex() -> None:
    """Each value of its file as one, in TOML."""
    codex = find("codex")
    assert codex is not None
    launch = launch_of(codex, ADDRESS, KEY)
    assert launch is not None
    assert launch.arguments[:4] == ["-c", 'model="some-model"', "-c", 'model_provider="thoughtline"']
    assert 'model_providers.thoughtline.base_url="http://127.0.0.1:8642/deepseek/v1"' in launch.arguments
    assert launch.variables == {"THOUGHTLINE_KEY": KEY}


def test_a_home_in_place_of_the_user_s(tmp_path: Path, gateway: str) -> None:
    """Gemini CLI takes a settings file from elsewhere only if it is root's. In the folder that it gets, its settings
    are the user's with ours in them, everything else is the user's own, and what it makes there is there again."""
    installed(tmp_path, "gemini", "(open(os.environ['GEMINI_CLI_HOME'] + '/.gemini/made', 'a')).write('x')")
    own = tmp_path / ".gemini"
    (own / "tmp").mkdir(parents=True)
    (own / "settings.json").write_text('{"theme": "mine", "security": {"auth": {"selectedType": "oauth-personal"}}}')
    (own / "GEMINI.md").write_text("mine")
    for number in range(2):
        process = started(tmp_path, "gemini-cli", "--url", gateway, THOUGHTLINE_KEY=KEY)
        output, remarks = process.communicate(timeout=60)
        assert (process.returncode, remarks) == (0, "")
        given = Path(json.loads(output)["env"]["GEMINI_CLI_HOME"]) / ".gemini"
        settings = json.loads((given / "settings.json").read_text())
        assert settings == {"theme": "mine", "security": {"auth": {"selectedType": "gemini-api-key"}}}
        assert (given / "settings.json").stat().st_mode & 0o777 == 0o600
        assert (given / "tmp").resolve() == own / "tmp"
        assert (given / "made").read_text() == "x" * (number + 1)
        assert (given / "GEMINI.md").exists() == (number == 0)
        (own / "GEMINI.md").unlink(missing_ok=True)
    assert "oauth-personal" in (own / "settings.json").read_text()
    assert not (own / "made").exists()


def test_a_second_settings_file_of_the_user_s_is_not_written(tmp_path: Path, gateway: str) -> None:
    """One with comments is taken in place of one without; that one stays as it is, and is no link to be written by."""
    installed(tmp_path, "gemini")
    own = tmp_path / ".gemini"
    own.mkdir()
    for name in ("settings.json", "settings.jsonc"):
        (own / name).write_text('{"theme": "mine"}')
    for _ in range(2):
        process = started(tmp_path, "gemini-cli", "--url", gateway, THOUGHTLINE_KEY=KEY)
        process.communicate(timeout=60)
        assert process.returncode == 0
    assert {(own / name).read_text() for name in ("settings.json", "settings.jsonc")} == {'{"theme": "mine"}'}


def test_why_it_did_not_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The last line of its log, which is its own run's and only its owner's to read."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    config = tmp_path / "wrong.toml"
    config.write_text("[server]\nprot = 1\n")
    log = tmp_path / "thoughtline" / "gateway.log"
    log.parent.mkdir()
    log.write_text("of an earlier run\n" * 100)
    log.chmod(0o600)
    with pytest.raises(Declined) as error:
        start_gateway(config, lambda: False)
    lines = log.read_text().splitlines()
    assert "of an earlier run" not in lines
    assert str(error.value) == f"The gateway did not start. {lines[-1]}"
    assert "prot" in log.read_text()
    assert str(log) in error.value.remedy
    assert log.stat().st_mode & 0o777 == 0o600
