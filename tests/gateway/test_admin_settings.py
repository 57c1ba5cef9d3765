"""The settings in effect, and those that can change at runtime."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator

import pytest
from msgspec.structs import replace

from tests.gateway.managed_gateways import TOKEN, Json, Managed, managed
from thoughtline.destinations.catalogue import PROVIDERS
from thoughtline.gateway.shared_settings import ContinuityPatch, SettingsPatch, keep
from thoughtline.gateway.state import with_settings
from thoughtline.settings import ContinuitySettings, RouteSettings, ServerSettings, Settings
from thoughtline.stores import StoreSettings

SECRETS = ("provider-key-1", "provider-key-2", "header-secret", "encryption-secret", TOKEN, "hunter2")


@pytest.fixture
def gateway() -> Iterator[Managed]:
    with managed(Settings(continuity=ContinuitySettings(count=7, models={"kimi/k*": "off"}))) as one:
        yield one


def refresh(gateway: Managed) -> None:
    """The gateway's periodic refresh."""
    running = gateway.gateway
    asyncio.run_coroutine_threadsafe(running.app.refresh(), running.loop).result(10)


def test_secrets_are_masked() -> None:
    """Keys, tokens, passwords in addresses and values of headers: only their presence is shown."""
    row = replace(
        PROVIDERS["openai"],
        base_url="https://user:hunter2@proxy.example/v1?key=hunter2",
        api_keys=("provider-key-1", "provider-key-2"),
        headers={"x-secret": "header-secret"},
    )
    settings = Settings(
        providers={"openai": row},
        configured=frozenset({"openai"}),
        routes={"best": RouteSettings("best", ("openai/gpt", "deepseek/x"))},
        store=StoreSettings(encryption_key="encryption-secret"),
    )
    with managed(settings) as gateway:
        response = gateway.admin.get("/api/settings")
    found = response.json()
    assert not [secret for secret in SECRETS if secret in response.text]
    assert found["server"]["adminToken"] == found["store"]["encryptionKey"] == "***"
    openai = found["providers"]["openai"]
    assert (openai["apiKeys"], openai["headers"], openai["isConfigured"]) == (2, ["x-secret"], True)
    assert openai["baseUrl"] == "https://***@proxy.example/v1?key=***"
    assert found["routes"] == {"best": ["openai/gpt", "deepseek/x"]}


def test_what_a_start_would_refuse_is_refused_here() -> None:
    """Settings are checked as a whole, whichever change: those in effect stay, and the answer says what is wrong."""
    row = replace(PROVIDERS["openai"], api_keys=("k",))
    with managed(Settings(server=ServerSettings(host="0.0.0.0"), providers={"openai": row})) as gateway:
        response = gateway.admin.patch("/api/settings", json={"continuity": {"enabled": True}})
        assert (response.status_code, response.json()["error"]["code"]) == (400, "bad_setting")
        assert "server.host" in response.json()["error"]["message"]
        running = gateway.gateway
        running.wait_for(keep(running.state.store, SettingsPatch(ContinuityPatch(enabled=True)), time.time()))
        refresh(gateway)
        refresh(gateway)
        assert not running.state.settings.continuity.enabled
        assert [line["event"] for line in running.lines if "event" in line] == ["settings not taken over"]


def test_continuity_answers_and_says_that_it_is_there(gateway: Managed) -> None:
    """The members are those of the settings; `available` is correct."""
    found = gateway.get("/api/settings")
    expected = {
        "enabled": False,
        "count": 7,
        "mode": "handoff",
        "maxChars": 64000,
        "afterCompaction": True,
        "afterCompactionBy": "agent",
        "models": {"kimi/k*": "off"},
        "available": True,
    }
    assert found["continuity"] == expected
    assert found["tags"] == {"mode": "off", "available": True}
    assert found["content"] == {"mode": "native"}
    assert found["shared"] == []


def test_a_change_is_answered_and_taken(gateway: Managed) -> None:
    """A change shows at once, is in effect after a refresh, and leaves the rest unchanged."""
    patch = {"continuity": {"enabled": True, "mode": "always"}, "tags": {"mode": "lift"}}
    answer = gateway.admin.patch("/api/settings", json=patch).json()
    assert (answer["continuity"]["enabled"], answer["continuity"]["mode"], answer["continuity"]["count"]) == (
        True,
        "always",
        7,
    )
    assert answer["shared"] == ["continuity.enabled", "continuity.mode", "tags.mode"]
    assert gateway.get("/api/settings") == answer
    refresh(gateway)
    in_force = gateway.gateway.state.settings
    assert in_force.continuity == ContinuitySettings(True, 7, "always", models={"kimi/k*": "off"})
    assert in_force.tags == "lift"


def test_null_gives_the_files_value_back(gateway: Managed) -> None:
    """A merge patch: null removes a shared setting."""
    gateway.admin.patch("/api/settings", json={"continuity": {"count": 50}})
    refresh(gateway)
    assert gateway.gateway.state.settings.continuity.count == 50
    answer = gateway.admin.patch("/api/settings", json={"continuity": {"count": None}}).json()
    assert (answer["continuity"]["count"], answer["shared"]) == (7, [])
    refresh(gateway)
    assert gateway.gateway.state.settings.continuity.count == 7


def test_every_replica_takes_it(shared_url: str) -> None:
    """Two gateways on one store: a change at one is in effect at the other, also after a restart."""
    with managed(store_url=shared_url) as one, managed(store_url=shared_url) as other:
        one.admin.patch("/api/settings", json={"continuity": {"count": 11}})
        assert other.get("/api/settings")["continuity"]["count"] == 11
        refresh(other)
        assert other.gateway.state.settings.continuity.count == 11
    with managed(store_url=shared_url) as again:
        assert again.gateway.state.settings.continuity.count == 11


def test_a_reload_keeps_what_was_set_for_all(gateway: Managed) -> None:
    """Shared settings override a reloaded file, whose value returns when they are removed."""
    gateway.admin.patch("/api/settings", json={"continuity": {"count": 50}})
    refresh(gateway)
    app = gateway.gateway.app
    app.state = with_settings(app.state, Settings(continuity=ContinuitySettings(count=20, mode="always")))
    assert app.state.settings.continuity == ContinuitySettings(False, 50, "always")
    gateway.admin.patch("/api/settings", json={"continuity": {"count": None}})
    refresh(gateway)
    assert app.state.settings.continuity.count == 20


@pytest.mark.parametrize(
    ("patch", "code", "words"),
    [
        ({"continuity": {"cuont": 3}}, "unknown_setting", "Did you mean continuity.count?"),
        ({"continuty": {"count": 3}}, "unknown_setting", "Did you mean continuity.count?"),
        ({"server": {"port": 1}}, "unknown_setting", "Known:"),
        ({"tags": "lift"}, "bad_setting", "SettingsPatch"),
        ({"continuity": {"count": 0}}, "bad_setting", "SettingsPatch"),
        ({"continuity": {"count": 101}}, "bad_setting", "SettingsPatch"),
        ({"continuity": {"count": 2.5}}, "bad_setting", "SettingsPatch"),
        ({"continuity": {"mode": "sometimes"}}, "bad_setting", "SettingsPatch"),
        ({"continuity": {"enabled": "yes"}}, "bad_setting", "SettingsPatch"),
        ([], "bad_setting", "SettingsPatch"),
    ],
)
def test_what_can_not_be_set_is_named(gateway: Managed, patch: Json, code: str, words: str) -> None:
    """400 with the nearest name; no part of the patch is applied."""
    if isinstance(patch, dict):
        patch = {**patch, "tags": patch.get("tags", {"mode": "lift"})}
    response = gateway.admin.patch("/api/settings", json=patch)
    error = response.json()["error"]
    assert (response.status_code, error["code"]) == (400, code)
    assert words in error["remedy"]
    assert gateway.get("/api/settings")["shared"] == []


def test_a_whole_number_may_have_a_point(gateway: Managed) -> None:
    """`5.0` is five, as JSON Schema has it."""
    answer = gateway.admin.patch("/api/settings", json={"continuity": {"count": 5.0}}).json()
    assert answer["continuity"]["count"] == 5


@pytest.mark.parametrize("patch", [{}, {"continuity": {}}])
def test_a_patch_that_sets_nothing(gateway: Managed, patch: Json) -> None:
    """The answer has the settings in effect."""
    assert gateway.admin.patch("/api/settings", json=patch).json() == gateway.get("/api/settings")
