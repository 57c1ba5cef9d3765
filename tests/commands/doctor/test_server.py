"""The gateway's own place under the doctor's eye."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest
from msgspec.structs import replace

from tests.commands.doctor.scripted_servers import answering, closed_port
from thoughtline.commands.doctor.server import look_at_exposure, look_at_port, look_at_routes, look_at_token
from thoughtline.destinations.catalogue import PROVIDERS
from thoughtline.gateway.admin_token import FILE_NAME, admin_token
from thoughtline.settings import RouteSettings, ServerSettings, Settings


async def test_a_free_port() -> None:
    """It is left free."""
    server = ServerSettings(port=closed_port())
    assert (await look_at_port(server)).state == "ok"
    assert (await look_at_port(server)).state == "ok"


async def test_a_port_with_a_gateway() -> None:
    """That is no mistake: it runs already."""
    async with answering(200, body=b'{"status":"ready","store":"ok"}') as other:
        check = await look_at_port(ServerSettings(port=other.port))
    assert (check.state, "a gateway serves" in check.message) == ("ok", True)
    assert other.heads[0].startswith("GET /readyz ")


async def test_a_port_with_something_else() -> None:
    """Another server, or one that says nothing in HTTP at all."""
    async with answering(200, body=b"<html>") as other:
        check = await look_at_port(ServerSettings(port=other.port))
    assert (check.state, "--port" in check.remedy) == ("fail", True)


async def test_a_host_that_is_not_ours() -> None:
    """An address of another machine (TEST-NET-1, RFC 5737), and a name of none."""
    assert (await look_at_port(ServerSettings(host="192.0.2.1", port=8642))).state == "fail"
    assert (await look_at_port(ServerSettings(host="thoughtline.invalid"))).state == "fail"


async def test_all_addresses_of_a_machine() -> None:
    """A gateway on all of them is asked on this one."""
    with socket.create_server(("0.0.0.0", 0)) as listener:
        port = listener.getsockname()[1]
    assert (await look_at_port(ServerSettings(host="0.0.0.0", port=port))).state == "ok"


def exposed(host: str, key: str = "", insecure: bool = False) -> Settings:
    row = replace(PROVIDERS["kimi"], api_keys=(key,) if key else ())
    return Settings(server=ServerSettings(host=host, insecure=insecure), providers={"kimi": row})


def test_exposure() -> None:
    """The rule that keeps the gateway from starting, and the cases close to it."""
    assert look_at_exposure(exposed("127.0.0.1", "k"), False).state == "ok"
    assert look_at_exposure(exposed("0.0.0.0", "k"), False).state == "fail"
    assert look_at_exposure(exposed("0.0.0.0", "k"), True).state == "ok"
    assert look_at_exposure(exposed("0.0.0.0", "k", insecure=True), False).state == "warn"
    assert look_at_exposure(exposed("0.0.0.0"), False).state == "ok"


def test_a_gateway_closed_to_remote_callers_is_reported() -> None:
    """Servers of the gateway's own network that settings speak of, unless everybody may."""
    settings = replace(exposed("0.0.0.0"), configured=frozenset({"ollama"}))
    settings = replace(settings, providers={**PROVIDERS, **settings.providers})
    assert "closed to them without client keys: ollama" in look_at_exposure(settings, False).message
    assert "ollama" not in look_at_exposure(settings, True).message
    open_to_all = replace(settings, server=replace(settings.server, insecure=True))
    assert "ollama" not in look_at_exposure(open_to_all, False).message


ROUTES: list[tuple[tuple[str, ...], str, str]] = [
    (("deepseek/a",), "", "deepseek"),
    (("deepseek/a", "kimi/b"), "kimi", "deepseek, kimi"),
    (("deepseek/a", "deepseek/b"), "", "deepseek"),
    (("deepseek/a", "keyed/b"), "", "deepseek"),
    (("keyed/a", "kimi/b", "glm/c"), "kimi, glm", "kimi, glm"),
    (("keyed/a", "ollama/b"), "", ""),
    (("hidden/a", "keyed/b"), "", ""),
]


@pytest.mark.parametrize(("targets", "own", "client"), ROUTES)
def test_a_route_that_can_not_fail_over(targets: tuple[str, ...], own: str, client: str) -> None:
    """Whom it never asks, for callers with keys of their own and for those with the gateway's."""
    rows = {
        "keyed": replace(PROVIDERS["openai"], name="keyed", api_keys=("k",)),
        "hidden": replace(PROVIDERS["openai"], name="hidden", headers={"authorization": "Bearer k"}),
    }
    settings = Settings(providers={**PROVIDERS, **rows}, routes={"best": RouteSettings("best", targets)})
    for has_client_keys, names in ((False, own), (True, client)):
        checks = look_at_routes(settings, has_client_keys)
        found = [
            check.message.removesuffix(" is never asked: the gateway has no key of its own for it") for check in checks
        ]
        assert found == ([names] if names else [])
        assert all((check.name, check.state) == ("route best", "warn") for check in checks)
        assert all("api_key" in check.remedy for check in checks)


def test_the_admin_token(tmp_path: Path) -> None:
    """Set, made, to be made, or open to others; never shown."""
    assert "first start" in look_at_token(Settings(), tmp_path).message
    token = admin_token(Settings(), tmp_path)
    made = look_at_token(Settings(), tmp_path)
    assert (made.state, token in f"{made}") == ("ok", False)
    (tmp_path / FILE_NAME).chmod(0o644)
    assert look_at_token(Settings(), tmp_path).state == "warn"
    set_one = Settings(server=ServerSettings(admin_token="0123456789abcdef"))
    assert look_at_token(set_one, tmp_path).message == "set in the settings"
