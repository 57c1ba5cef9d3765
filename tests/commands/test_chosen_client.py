"""Which client goes where, with which key: the options of `connect` and `run`."""

from __future__ import annotations

import argparse
import os
from pathlib import Path

import pytest

from thoughtline import clients
from thoughtline.commands.chosen_client import ChosenClient, add_client_options, chosen_client, key_for
from thoughtline.values.errors import Declined


@pytest.fixture(autouse=True)
def _home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A home of its own, and nothing of the machine's environment."""
    for name in list(os.environ):
        if name.startswith(("THOUGHTLINE_", "XDG_")):
            monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))


def chosen(client: str, *words: str) -> ChosenClient:
    parser = argparse.ArgumentParser()
    add_client_options(parser)
    options = parser.parse_args([*words])
    options.client, options.command = client, "connect"
    return chosen_client(options)


@pytest.mark.parametrize(
    ("client", "words", "message", "remedy"),
    [
        ("claud-code", [], "no client claud-code;", "did you mean claude-code?"),
        ("zzzzzz", [], "no client zzzzzz;", "`thoughtline connect` lists them all"),
        ("codex", ["--provider", "depseek"], "no provider depseek;", "did you mean deepseek?"),
        ("codex", ["--model", "depseek/v4"], "no provider depseek;", "did you mean deepseek?"),
    ],
)
def test_unknown_names(client: str, words: list[str], message: str, remedy: str) -> None:
    """Each with what may have been meant."""
    with pytest.raises(Declined) as error:
        chosen(client, *words)
    assert (str(error.value), error.value.remedy) == (message, remedy)


def test_another_gateway_may_know_other_providers(capsys: pytest.CaptureFixture[str]) -> None:
    """A name that looks like a mistake is reported, and accepted."""
    found = chosen("codex", "--url", "http://there:1/v1/", "--provider", "depseek")
    assert found.gateway == "http://there:1"
    assert "depseek is not built in; did you mean deepseek?" in capsys.readouterr().err
    chosen("codex", "--url", "http://there:1", "--provider", "zzzzzz")
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("text", ["0", "999", "-5000", "1e5", "262k", "٣٠٠٠", "100000001", "9" * 5000])
def test_what_is_no_context_size(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    """A number of tokens, in plain digits, that a model can have."""
    with pytest.raises(SystemExit):
        chosen("codex", f"--context={text}")
    assert "is not a number of tokens; for example 262144" in capsys.readouterr().err


def test_the_key_of_the_environment() -> None:
    """The gateway's before the provider's, without the space around it; else a blank to fill."""
    address = chosen("codex", "--provider", "deepseek", "--context", "262144").address
    first, *_, last = clients.key_variables(address)
    assert key_for(address, {last: " sk-two ", first: "sk-one"}) == ("sk-one", first)
    assert key_for(address, {last: " sk-two ", first: "two words"}) == ("sk-two", last)
    assert key_for(address, {}) == (clients.KEY, "")
