"""Client keys, routes, providers and clients in the admin API."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from msgspec.structs import replace

from tests.gateway.managed_gateways import Managed, managed
from tests.gateway.upstreams import Got, Out, upstream
from thoughtline import clients
from thoughtline.destinations.catalogue import PROVIDERS
from thoughtline.settings import RouteSettings, Settings

KEYS, ROUTES, CONNECT = "/api/keys", "/api/routes", "/api/connect"
BODY = {"model": "deepseek-v4-pro", "messages": [{"role": "user", "content": "hi"}]}


def ask_with(gateway: Managed, key: str) -> int:
    headers = {"authorization": f"Bearer {key}"}
    return gateway.anyone.post("/deepseek/v1/chat/completions", json=BODY, headers=headers).status_code


def with_key() -> Settings:
    return Settings(providers={"deepseek": replace(PROVIDERS["deepseek"], api_keys=("a-providers-key",))})


def test_a_key_is_made_used_and_revoked(tmp_path: Path) -> None:
    """Its secret is shown once; the list shows its last use; once revoked, it is never accepted again."""
    with managed(store_url=f"sqlite:///{tmp_path}/kept.db", takes_keys=True) as gateway:
        before = gateway.get(KEYS)
        assert (before["keys"], before["areRequired"], before["canChange"]) == ([], False, True)
        assert "closes the gateway" in before["note"]
        asked = {"name": "ann", "requestsPerMinute": 60, "expires": "30d", "plainContent": True}
        made = gateway.admin.post(KEYS, json=asked).json()
        key = made["key"]
        assert (key["name"], key["state"], key["requestsPerMinute"], key["plainContent"]) == ("ann", "good", 60, True)
        assert key["expiresAt"] > key["createdAt"]
        assert gateway.get(KEYS)["keys"][0]["lastUsed"] is None
        assert (ask_with(gateway, made["secret"]), ask_with(gateway, "nobody's")) == (403, 401)
        listed = gateway.get(KEYS)
        assert (listed["areRequired"], listed["keys"][0]["lastUsed"] is not None) == (True, True)
        assert made["secret"] not in json.dumps(listed) + json.dumps(gateway.gateway.log)
        gone = gateway.admin.delete(KEYS, params={"id": key["id"]}).json()
        assert ([one["state"] for one in gone["revoked"]], "stays closed" in gone["note"]) == (["revoked"], True)
        assert ask_with(gateway, made["secret"]) == 401
        again = gateway.admin.delete(KEYS, params={"id": key["id"]})
        assert (again.status_code, again.json()["error"]["code"]) == (404, "unknown_key")


@pytest.mark.parametrize("body", [{}, {"name": " "}, {"name": "a\nb"}, {"name": "a", "expires": "soon"}, {"nam": "a"}])
def test_what_is_no_key(tmp_path: Path, body: dict[str, str]) -> None:
    with managed(store_url=f"sqlite:///{tmp_path}/kept.db", takes_keys=True) as gateway:
        refused = gateway.admin.post(KEYS, json=body)
        assert (refused.status_code, refused.json()["error"]["code"]) == (400, "bad_body")
        assert gateway.get(KEYS)["keys"] == []


def test_memory_keeps_no_keys() -> None:
    """Like the command: a key that would be gone at the next start is not made."""
    with managed(takes_keys=True) as gateway:
        assert gateway.get(KEYS)["canChange"] is False
        assert gateway.admin.post(KEYS, json={"name": "ann"}).status_code == 409
        assert gateway.admin.delete(KEYS, params={"id": "ann"}).status_code == 409


def test_routes_and_their_breakers() -> None:
    """A target that failed three times is not used for a while; a missing key is shown."""

    async def fail(got: Got, out: Out) -> None:
        await out.whole(500, b"{}")

    with upstream(fail) as up:
        keyed = replace(PROVIDERS["deepseek"], base_url=up.url, bases={}, api_keys=("k",))
        route = RouteSettings("best", ("deepseek/m", "kimi/n"), (2, 1))
        settings = Settings(providers={"deepseek": keyed}, routes={"best": route})
        with managed(settings, simulators={}) as gateway:
            closed = gateway.get(ROUTES)["routes"][0]["targets"]
            for _ in range(3):
                body = {**BODY, "model": "deepseek/m"}
                assert gateway.anyone.post("/v1/chat/completions", json=body).status_code == 500
            opened = gateway.get(ROUTES)["routes"][0]["targets"]
    assert [(one["name"], one["breaker"], one["weight"], one["hasKey"]) for one in closed] == [
        ("deepseek/m", "closed", 2, True),
        ("kimi/n", "closed", 1, False),
    ]
    assert [(one["breaker"], one["failures"], one["opensAt"] is not None) for one in opened] == [
        ("open", 3, True),
        ("closed", 0, False),
    ]


def test_providers() -> None:
    """Every available one: its names, its formats, whether there is a key, and its demands."""
    with managed(with_key()) as gateway:
        text = gateway.admin.get("/api/providers").text
        rows = {row["name"]: row for row in json.loads(text)["providers"]}
    assert set(rows) == set(PROVIDERS)
    assert "a-providers-key" not in text
    assert ("moonshot" in rows["kimi"]["aliases"], rows["kimi"]["hasKey"]) == (True, False)
    assert rows["deepseek"]["exampleModel"].startswith("deepseek")
    assert all(row["contract"] and row["contractSource"] for row in rows.values())


def test_connecting_a_client() -> None:
    """The same text that the command prints, and whether the client has sent a request."""
    with managed() as gateway:
        asked = {"client": "Claude Code", "provider": "deepseek", "model": "deepseek-v4-pro"}
        before = gateway.get(CONNECT, **asked)
        headers = {"user-agent": "claude-cli/2.0.14 (external, cli)"}
        gateway.anyone.post("/deepseek/v1/chat/completions", json=BODY, headers=headers)
        after = {row["name"]: row["lastSeen"] for row in gateway.get(CONNECT)["clients"]}
        rows = gateway.get("/api/requests")["requests"]
        unknown = gateway.admin.get(CONNECT, params={"client": "claud-code"})
        wrong = gateway.admin.get(CONNECT, params={"client": "codex", "model": 'a"b'})
        url = gateway.url
    client = clients.find("claude-code")
    assert client is not None
    address = clients.address_of(client, url, "deepseek", model="deepseek-v4-pro")
    assert before["setup"]["text"] == clients.instructions(client, address)
    assert before["setup"]["steps"][0]["lines"] in before["setup"]["text"].replace("\n    ", "\n")
    assert {row["lastSeen"] for row in before["clients"]} == {None}
    assert [name for name, seen in after.items() if seen] == ["claude-code"]
    assert rows[0]["client"] == "claude-code"
    assert (unknown.status_code, unknown.json()["error"]["remedy"]) == (404, "Did you mean claude-code?")
    assert wrong.status_code == 400


def test_user_agents_name_clients() -> None:
    """Each client's own, and no other client's."""
    for client in clients.CLIENTS:
        assert all(clients.client_of(f"{agent}1.2.3") == client.name for agent in client.agents)
    assert clients.client_of("python-httpx/0.28") == ""
