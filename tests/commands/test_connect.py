"""`thoughtline connect --write` and `--undo`: a client's own files, changed and put back."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from thoughtline.cli import main
from thoughtline.clients import CLIENTS, DEFAULT_URL, Client, address_of
from thoughtline.commands.client_files import Change, ClientRecord, changes_for, file_of
from thoughtline.gateway.admin_token import admin_token
from thoughtline.gateway.client_keys import KeyMark
from thoughtline.settings import Settings, make_private
from thoughtline.stores import open_store

WRITTEN = [client for client in CLIENTS if any(step.file for step in client.steps)]
every_written = pytest.mark.parametrize("client", WRITTEN, ids=[client.name for client in WRITTEN])
KEY = "sk-of-a-test"


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home of its own, and nothing of the machine's environment."""
    for name in list(os.environ):
        if name.endswith("_API_KEY") or name.startswith(("THOUGHTLINE_", "XDG_")):
            monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))
    return tmp_path


def test_the_list_of_clients_is_a_table(capsys: pytest.CaptureFixture[str]) -> None:
    """Each title begins in the same column, after the longest name."""
    assert main(["connect"]) == 0
    lines = capsys.readouterr().out.splitlines()
    columns = {line.index(f"  {client.title}:") for line, client in zip(lines, CLIENTS, strict=True)}
    assert columns == {max(len(client.name) for client in CLIENTS)}


@pytest.mark.parametrize("provider", ["anthropic", "bedrock", "vertex", "azure"])
def test_no_link_of_markdown_is_shown(provider: str, capsys: pytest.CaptureFixture[str]) -> None:
    """A terminal shows the page and not how it is linked."""
    for client in CLIENTS:
        main(["connect", client.name, "--provider", provider])
    told = "".join(capsys.readouterr())
    assert "docs/" in told
    assert "](" not in told


def files_of(client: Client, home: Path) -> dict[Path, bytes | None]:
    paths = [file_of(step, home) for step in client.steps if step.file]
    return {path: path.read_bytes() if path.exists() else None for path in paths}


@every_written
def test_write_then_undo_is_nothing(client: Client, home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Files that were not there are gone again; written twice is written once."""
    before = files_of(client, home)
    assert main(["connect", client.name, "--write"]) == 0
    once = files_of(client, home)
    assert None not in once.values()
    assert all(stat.S_IMODE(path.stat().st_mode) == 0o600 for path in once)
    assert main(["connect", client.name, "--write"]) == 0
    assert "is set already" in capsys.readouterr().out
    assert files_of(client, home) == once
    assert main(["connect", client.name, "--undo"]) == 0
    assert files_of(client, home) == before


@given(
    st.dictionaries(st.text(max_size=5), st.integers() | st.text(max_size=5), max_size=4),
    st.sampled_from([None, 1, 2, "\t"]),
    st.sampled_from(["", "\n", "\r\n", " // mine\n"]),
    st.lists(st.sampled_from(["deepseek", "kimi", "anthropic"]), min_size=1, max_size=3),
)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=50, deadline=None)
def test_any_file_comes_back(
    tmp_path: Path, held: dict[str, object], indent: object, end: str, providers: list[str]
) -> None:
    """Byte for byte and with its mode, however often and for whomever it was written between."""
    (client,) = (client for client in CLIENTS if client.name == "opencode")
    file = tmp_path / "opencode.json"
    text = (json.dumps(held, indent=indent) + end).encode()  # type: ignore[arg-type]  # a number or a text
    file.write_bytes(text)
    file.chmod(0o640)
    record = ClientRecord(tmp_path / "data", client)
    for provider in providers:
        record.write(changes_for(client, address_of(client, DEFAULT_URL, provider), KEY, file=file, home=tmp_path))
    assert file.read_bytes() != text
    record.undo()
    assert (file.read_bytes(), stat.S_IMODE(file.stat().st_mode)) == (text, 0o640)


def test_a_file_that_was_changed_since_stays(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """None of the user's settings are lost; a second write gives the same content."""
    main(["connect", "codex", "--write"])
    file = home / ".codex" / "config.toml"
    mine = file.read_text() + "\n[mine]\n"
    file.write_text(mine)
    assert main(["connect", "codex", "--undo"]) == 2
    assert file.read_text() == mine
    assert f"{file} has been changed since." in capsys.readouterr().err
    main(["connect", "codex", "--provider", "kimi", "--write"])
    assert "kimi" in file.read_text()
    assert main(["connect", "codex", "--undo"]) == 0
    assert file.read_text() == mine


def test_nothing_was_written(capsys: pytest.CaptureFixture[str]) -> None:
    """So nothing can be undone."""
    assert main(["connect", "codex", "--undo"]) == 2
    assert "thoughtline connect: There is nothing to undo for Codex CLI." in capsys.readouterr().err


def test_the_key_is_written_and_not_shown(
    home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The provider's own variable has it; only the owner reads the file."""
    monkeypatch.setenv("DEEPSEEK_API_KEY", KEY)
    file = home / ".claude" / "settings.json"
    file.parent.mkdir()
    file.write_text('{"theme": "dark"}')
    file.chmod(0o644)
    assert main(["connect", "claude", "--provider", "deepseek", "--write"]) == 0
    output = capsys.readouterr().out
    assert KEY not in output
    assert '"ANTHROPIC_AUTH_TOKEN": "…"' in output
    written = json.loads(file.read_text())
    assert written["theme"] == "dark"
    assert written["env"]["ANTHROPIC_AUTH_TOKEN"] == KEY
    assert written["env"]["ANTHROPIC_BASE_URL"].endswith("/deepseek")
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_a_link_stays_a_link(home: Path) -> None:
    """People keep such files elsewhere; what it leads to is changed."""
    kept = home / "dotfiles" / "codex.toml"
    kept.parent.mkdir()
    kept.write_text("# mine\n")
    (home / ".codex").mkdir()
    (home / ".codex" / "config.toml").symlink_to(kept)
    main(["connect", "codex", "--write"])
    assert (home / ".codex" / "config.toml").is_symlink()
    assert "# mine" in kept.read_text()
    assert "thoughtline" in kept.read_text()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            ["connect", "cursor", "--write"],
            "Cursor has no settings file that we know. What to set in it: thoughtline connect cursor",
        ),
        (["connect", "codex", "--write", "--undo"], "not allowed with argument"),
        (["connect", "opencode", "--write"], "opencode.json was not changed: it is not valid JSON"),
    ],
)
def test_what_can_t_be_written(words: list[str], message: str, home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A sentence says why, and what else there is; the file is as it was."""
    file = home / ".config" / "opencode" / "opencode.json"
    file.parent.mkdir(parents=True)
    file.write_text("{")
    try:
        assert main(words) == 2
    except SystemExit as error:
        assert error.code == 2
    assert message in capsys.readouterr().err
    assert file.read_text() == "{"


def test_what_no_file_takes_is_still_to_do(capsys: pytest.CaptureFixture[str]) -> None:
    """A variable for a shell, a flag, and the key where none is known."""
    main(["connect", "codex", "--write"])
    assert "Then, in the shell that starts it: export THOUGHTLINE_KEY=YOUR_KEY" in capsys.readouterr().out
    main(["connect", "qwen", "--write"])
    output = capsys.readouterr().out
    assert "Then, in the shell that starts it: qwen --auth-type openai" in output
    assert "YOUR_KEY is a placeholder: replace it by your key, or set THOUGHTLINE_KEY or DASHSCOPE_API_KEY" in output


@pytest.mark.parametrize("maker", ["connect", "run", "admin token", "key mark", "store"])
async def test_the_data_folder_is_its_owners_whichever_command_makes_it(tmp_path: Path, maker: str) -> None:
    """Whatever the umask is: it has keys in it."""
    data, before = tmp_path / "share" / "thoughtline", os.umask(0o022)
    try:
        match maker:
            case "connect":
                ClientRecord(data, CLIENTS[0]).write([Change(tmp_path / "file", None, b"x")])
            case "run":
                make_private(data / "run" / "home")
            case "admin token":
                admin_token(Settings(), data)
            case "key mark":
                KeyMark(data).set()
            case _:
                await (await open_store(f"sqlite:///{data}/thoughtline.db")).close()
    finally:
        os.umask(before)
    assert stat.S_IMODE(data.stat().st_mode) == 0o700


def test_a_new_file_is_written_for_people(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A member on each line: it is a file that its owner edits."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("XDG_DATA_HOME", raising=False)
    assert main(["connect", "claude", "--write"]) == 0
    lines = (tmp_path / ".claude" / "settings.json").read_text().splitlines()
    assert lines[:2] == ["{", '  "env": {']
    assert len(lines) > 4
