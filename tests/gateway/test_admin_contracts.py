"""Contracts, learned corrections, and audits in the admin API."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from tests.gateway.managed_gateways import Managed, managed
from thoughtline import providers
from thoughtline.engine.audit import audit
from thoughtline.engine.learned import key_of
from thoughtline.replay.refusals import Correction, Evidence
from thoughtline.settings import Settings
from thoughtline.values.records import Key

CONTRACTS = "/api/contracts"
STRIPPED = {
    "model": "deepseek-v4-pro",
    "messages": [
        {"role": "user", "content": "hi"},
        {
            "role": "assistant",
            "content": "",
            "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "bash", "arguments": "{}"}}],
        },
        {"role": "tool", "tool_call_id": "c1", "content": "a"},
    ],
    "tools": [{"type": "function", "function": {"name": "bash", "parameters": {"type": "object", "properties": {}}}}],
}


@pytest.fixture(scope="module")
def gateway() -> Iterator[Managed]:
    changed = replace(providers.CONTRACTS["kimi"], filler="…")
    with managed(Settings(contracts={"kimi": changed})) as one:
        yield one


def correction(now: float, model: str) -> Correction:
    evidence = Evidence(400, "invalid_request_error", "f" * 16)
    return Correction(
        "unlisted", "https://me:secret@host/v1", model, "requires", "reasoning_content", evidence, now, now + 60
    )


def teach(gateway: Managed, *corrections: Correction, refused: frozenset[Key] = frozenset()) -> None:
    running = gateway.gateway
    asyncio.run_coroutine_threadsafe(running.state.lessons.keep(corrections, refused), running.loop).result(10)


def test_every_contract_is_shown(gateway: Managed) -> None:
    """Each built-in row, and which of them settings change."""
    rows = gateway.get(CONTRACTS)["contracts"]
    assert {row["name"] for row in rows} == set(providers.CONTRACTS)
    assert [row["name"] for row in rows if row["isOverridden"]] == ["kimi"]
    deepseek = next(row for row in rows if row["name"] == "deepseek")
    assert (deepseek["kind"], deepseek["carrier"]) == ("presence", "reasoning_content")
    assert deepseek["ladder"] == list(providers.CONTRACTS["deepseek"].ladder)


def test_what_was_learned_is_shown_and_reset(gateway: Managed) -> None:
    """With evidence, expiry and a key; one can be reset by its key, and all without one."""
    now = gateway.gateway.state.clock()
    first, second, ended = (correction(at, name) for at, name in ((now, "a"), (now, "b"), (now - 100, "c")))
    teach(gateway, first, second, ended, refused=frozenset({Key("seal:1")}))
    found = gateway.get(CONTRACTS)
    learned = {one["model"]: one for one in found["learned"]}
    assert (set(learned), found["refusedSeals"]) == ({"a", "b"}, 1)
    assert learned["a"]["key"] == key_of(first)
    assert learned["a"]["endpoint"] == "https://***@host/v1"
    expected = {"status": 400, "code": "invalid_request_error", "fingerprint": "f" * 16, "isWrapped": False}
    assert learned["a"]["evidence"] == expected
    assert gateway.admin.delete(CONTRACTS, params={"key": key_of(first)}).json() == {"deleted": 1}
    assert [one["model"] for one in gateway.get(CONTRACTS)["learned"]] == ["b"]
    assert gateway.admin.delete(CONTRACTS, params={"key": "nobody"}).json() == {"deleted": 0}
    assert gateway.admin.delete(CONTRACTS).json()["deleted"] >= 2
    after = gateway.get(CONTRACTS)
    assert (after["learned"], after["refusedSeals"]) == ([], 0)
    assert gateway.gateway.state.lessons.corrections == ()


def bodies() -> dict[str, tuple[dict[str, str], Any]]:
    """One request, in every form of input."""
    text = msgspec.json.encode(STRIPPED).decode()
    return {
        "wrapped": ({}, {"request": STRIPPED, "provider": "deepseek"}),
        "alone": ({}, STRIPPED),
        "text": ({}, {"request": text, "provider": "deepseek", "format": "openai_chat"}),
        "raw": ({"provider": "deepseek"}, STRIPPED),
        "other-model": ({}, {"request": {**STRIPPED, "model": "best"}, "model": "deepseek-v4-pro"}),
    }


@pytest.mark.parametrize("way", bodies())
def test_an_audit_finds_what_the_command_finds(gateway: Managed, way: str) -> None:
    """The same findings as `thoughtline audit --json`, for every form of input."""
    params, body = bodies()[way]
    response = gateway.admin.post("/api/audit", params=params, json=body)
    expected = msgspec.to_builtins({"findings": audit(msgspec.json.encode(STRIPPED), "deepseek")})
    assert response.json() == expected
    assert expected["findings"][0]["rule"] == "missing"


def test_an_alias_is_its_provider(gateway: Managed) -> None:
    """`moonshot` is audited as `kimi`."""
    wrapped = {"request": {**STRIPPED, "model": "x"}}
    answers = [
        gateway.admin.post("/api/audit", json={**wrapped, "provider": name}).json() for name in ("moonshot", "kimi")
    ]
    assert answers[0] == answers[1] != {"findings": []}


@pytest.mark.parametrize(
    ("params", "body", "code"),
    [
        ({}, b"", "unreadable_request"),
        ({}, b"{", "unreadable_request"),
        ({}, b"[1]", "unreadable_request"),
        ({}, b'{"request": "{"}', "unreadable_request"),
        ({}, b'{"request": {}, "format": "chat"}', "bad_body"),
        ({}, b'{"request": {}, "provider": 5}', "bad_body"),
        ({"format": "openai_chatt"}, b"{}", "bad_parameter"),
        ({}, b"[" * 100_000, "unreadable_request"),
    ],
)
def test_what_can_not_be_audited(gateway: Managed, params: dict[str, str], body: bytes, code: str) -> None:
    """400 with a code, and no content of the request."""
    response = gateway.admin.post("/api/audit", params=params, content=body)
    assert (response.status_code, response.json()["error"]["code"]) == (400, code)


def test_a_format_that_is_misspelt_is_named(gateway: Managed) -> None:
    """The nearest name."""
    response = gateway.admin.post("/api/audit", params={"format": "openai_chatt"}, content=b"{}")
    assert response.json()["error"]["remedy"] == "Did you mean openai_chat?"
