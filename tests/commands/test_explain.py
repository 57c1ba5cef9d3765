"""`thoughtline explain`: what happened to a request, in a terminal."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator

import pytest
from msgspec.structs import replace

from tests.commands.doctor.scripted_servers import closed_port
from tests.gateway.managed_gateways import TOKEN, Managed, followed, managed
from tests.gateway.test_admin_requests import NOVEL, acme, unseen
from thoughtline.cli import main
from thoughtline.commands.explain import DONE, NOT_FOUND, demand_of
from thoughtline.commands.output import FAILED
from thoughtline.destinations.catalogue import PROVIDERS
from thoughtline.gateway.admin.request_answers import ContractUsed
from thoughtline.providers import CONTRACTS
from thoughtline.settings import Settings


@pytest.fixture
def gateway() -> Iterator[Managed]:
    with managed(acme(heal=False)) as one:
        yield one


def explain(gateway: Managed, *words: str) -> int:
    return main(["explain", *words, "--url", gateway.url, "--token", TOKEN])


def test_a_refusal_is_understood(gateway: Managed, capsys: pytest.CaptureFixture[str]) -> None:
    """The last one that failed, though others came after it: the provider's words, the rule, the turn, what to do."""
    response = gateway.send(unseen(), provider="acme", model=NOVEL)
    gateway.ask("list the files")
    assert explain(gateway, "last-failed") == DONE
    output = capsys.readouterr().out
    assert response.headers["x-thoughtline-request"] in output
    assert response.json()["error"]["message"] in output
    assert "400 refused acme/novel-9" in output
    assert "rule missing" in output
    assert "keep_bodies" in output
    assert "\x1b[" not in output


def test_the_last_one_and_one_by_its_id(gateway: Managed, capsys: pytest.CaptureFixture[str]) -> None:
    """Turns are shown one by one, many equal ones on one line."""
    answers = gateway.ask("list the files", turns=6)
    assert explain(gateway) == DONE
    output = capsys.readouterr().out
    assert "(5 turns)  restored: same conversation so far, same system prompt" in output
    assert "tokens" in output
    first = gateway.gateway.lines[1]["request"]
    assert explain(gateway, first[:7]) == DONE
    output = capsys.readouterr().out
    assert f"{first}" in output
    assert "/messages/1  restored: same conversation so far, same system prompt" in output
    assert explain(gateway, first, "--json") == DONE
    assert json.loads(capsys.readouterr().out)["id"] == first
    assert not [one for one in answers if one["reasoning_content"] in output]


def test_what_to_do_about_a_missing_turn(gateway: Managed, capsys: pytest.CaptureFixture[str]) -> None:
    user = {"role": "user", "content": "hi"}
    gateway.send([user, *followed({"role": "assistant", "content": "never said"})])
    assert explain(gateway) == DONE
    assert "→ Some turns have no record: send the whole conversation through" in capsys.readouterr().out


def test_nothing_to_explain(gateway: Managed, capsys: pytest.CaptureFixture[str]) -> None:
    """No request, none that failed, an unknown one, a wrong token, no gateway: each message says which."""
    assert explain(gateway) == NOT_FOUND
    gateway.ask("list the files")
    assert explain(gateway, "last-failed") == NOT_FOUND
    capsys.readouterr()
    assert explain(gateway, "ffffffff") == NOT_FOUND
    said = capsys.readouterr().err
    assert "no request with the id 'ffffffff' is remembered; `" in said
    assert main(["explain", "--url", gateway.url, "--token", "wrong"]) == FAILED
    assert "Give its admin token" in capsys.readouterr().err
    assert main(["explain", "--url", "http://127.0.0.1:9", "--token", TOKEN]) == FAILED
    assert "No gateway answers at http://127.0.0.1:9. Start it, or name it with --url.\n" in capsys.readouterr().err


def test_following(gateway: Managed, monkeypatch: pytest.MonkeyPatch) -> None:
    """A line as each request begins and ends, until the gateway goes."""
    lines: list[str] = []
    has_three = threading.Event()

    def note(row: object) -> str:
        lines.append(str(row.phase))  # type: ignore[attr-defined] # a RequestRow
        if len(lines) == 3:
            has_three.set()
        return ""

    monkeypatch.setattr("thoughtline.commands.explain.line_of", note)
    following = threading.Thread(target=explain, args=(gateway, "--follow"), daemon=True)
    following.start()
    while not gateway.gateway.state.journal.listeners:
        pass
    gateway.ask("list the files")
    assert has_three.wait(20)
    assert lines == ["begun", "streaming", "done"]
    gateway.gateway.loop.call_soon_threadsafe(gateway.gateway.app.leave)
    following.join(20)
    assert not following.is_alive()


def test_every_contract_has_words() -> None:
    """What a provider demands is a sentence, whatever the kind and the scope."""
    for contract in CONTRACTS.values():
        used = ContractUsed(
            contract.name,
            contract.kind,
            contract.scope,
            takes=contract.takes,
            carrier="",
            source="",
            is_overridden=False,
            learned=[],
        )
        assert "_" not in demand_of(used)
        assert demand_of(used).split()[0] in ("requires", "accepts")


def test_an_attempt_without_a_response_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    """In words; the code is next to them."""
    deepseek = replace(PROVIDERS["deepseek"], base_url=f"http://127.0.0.1:{closed_port()}", bases={})
    with managed(Settings(providers={**PROVIDERS, "deepseek": deepseek}), simulators={}) as gateway:
        body = {"model": "deepseek-v4-pro", "messages": [{"role": "user", "content": "Hi"}]}
        gateway.anyone.post("/deepseek/v1/chat/completions", json=body)
        assert explain(gateway, "last-failed") == DONE
    assert "in openai_chat: no response (upstream_unreachable) after" in capsys.readouterr().out


def test_nothing_failed_yet(capsys: pytest.CaptureFixture[str]) -> None:
    """The gateway remembers what happened since it started, and says so."""
    with managed() as gateway:
        assert explain(gateway, "last-failed") == NOT_FOUND
        assert "no request has failed since the gateway started" in capsys.readouterr().err
