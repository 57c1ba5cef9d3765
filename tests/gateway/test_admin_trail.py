"""The audit trail of the admin side: who, what, from where."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.gateway.managed_gateways import CACHE, TOKEN, Managed, managed
from thoughtline.gateway.client_keys import ClientKeys


@pytest.fixture
def gateway() -> Iterator[Managed]:
    with managed(simulators={}, takes_keys=True) as one:
        yield one


def test_what_the_admin_does(gateway: Managed) -> None:
    """Reads and changes, with the parameters and the change."""
    gateway.admin.get(f"{CACHE}?provider=deepseek", headers={"x-forwarded-for": "203.0.113.7"})
    gateway.admin.delete(f"{CACHE}?session=s")
    gateway.admin.patch("/api/settings", json={"continuity": {"enabled": True}})
    gateway.admin.delete("/api/contracts")
    told = [(line["who"], line["method"], line["path"], line["from"], line["status"]) for line in gateway.gateway.trail]
    assert told == [
        ("token", "GET", CACHE, "127.0.0.1", 200),
        ("token", "DELETE", CACHE, "127.0.0.1", 200),
        ("token", "PATCH", "/api/settings", "127.0.0.1", 200),
        ("token", "DELETE", "/api/contracts", "127.0.0.1", 200),
    ]
    read, deleted, changed, unlearned = gateway.gateway.trail
    assert (read["query"], read["forwarded"]) == ("provider=deepseek", "203.0.113.7")
    assert (deleted["query"], deleted["done"]) == ("session=s", "0 turns deleted")
    assert changed["done"] == '{"continuity":{"enabled":true}}'
    assert unlearned["done"] == "0 corrections deleted"


def test_one_is_counted_as_one(tmp_path: Path) -> None:
    """A turn, and a client key."""
    with managed(store_url=f"sqlite:///{tmp_path}/turns.db", takes_keys=True) as gateway:
        gateway.ask("list the files", session="s")
        gateway.admin.delete(f"{CACHE}?session=s")
        gateway.admin.post("/api/keys", json={"name": "ann"})
        gateway.admin.delete("/api/keys?id=ann")
        done = [line["done"] for line in gateway.gateway.trail if line["method"] == "DELETE"]
    assert done == ["1 turn deleted", "1 client key revoked"]


def test_who_is_refused(gateway: Managed) -> None:
    """With what was wrong, never with the credential."""
    keys = gateway.gateway.state.keys
    assert isinstance(keys, ClientKeys)
    secret = gateway.gateway.wait_for(keys.add("ann")).secret
    gateway.anyone.get(CACHE)
    gateway.anyone.get(f"{CACHE}?token={TOKEN}", headers={"authorization": "Bearer a-wrong-token"})
    gateway.anyone.get(CACHE, headers={"authorization": f"Bearer {secret}"})
    gateway.anyone.get(CACHE, headers={"cookie": "thoughtline_admin=1.forged"})
    gateway.anyone.get("/api/nothing/", headers={"x-api-key": "a-wrong-token"})
    gateway.anyone.get("/api/settings/nothing", headers={"x-api-key": "a-wrong-token"})
    gateway.anyone.get("/metrics", headers={"via": "1.1 front"})
    gateway.anyone.get(CACHE, headers={"host": "evil.example"})
    assert [(line["who"], line["status"], line["code"]) for line in gateway.gateway.trail] == [
        ("no token", 401, "unauthorized"),
        ("wrong token", 401, "unauthorized"),
        ("client key ann", 403, "not_admin"),
        ("wrong cookie", 401, "unauthorized"),
        ("wrong token", 401, "unauthorized"),
        ("no token", 401, "unauthorized"),
        ("no token", 421, "unknown_host"),
    ]
    for hidden in (TOKEN, secret, "a-wrong-token", "forged"):
        assert hidden not in str(gateway.gateway.log)


def test_who_logs_in(gateway: Managed) -> None:
    """By link or by form; afterwards each browser is distinguished."""
    link = gateway.link()
    gateway.anyone.get(link)
    gateway.anyone.get(link)
    gateway.anyone.get(CACHE)
    gateway.anyone.post("/login", data={"token": TOKEN})
    gateway.anyone.post("/login", data={"token": "wrong"})
    who = [line["who"] for line in gateway.gateway.trail]
    assert [one.partition(" ")[0] for one in who] == ["link", "wrong", "cookie", "form", "wrong"]
    assert len(who[2]) == len("cookie ") + 8
    assert link.partition("=")[2] not in str(gateway.gateway.log)
    assert TOKEN not in str(gateway.gateway.log)


@pytest.mark.parametrize("path", ["/", "/healthz", "/readyz", "/api/hello", "/metrics"])
def test_probes_are_not_in_it(gateway: Managed, path: str) -> None:
    """They come every few seconds, and anyone may send them."""
    gateway.anyone.get(path)
    assert gateway.gateway.trail == []
