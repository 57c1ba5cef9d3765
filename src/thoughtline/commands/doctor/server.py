"""Checks the gateway's own side: its port, who can reach it, its admin token."""

from __future__ import annotations

import errno
import socket
from pathlib import Path

import msgspec
from msgspec import Struct

from thoughtline.commands.doctor import Check
from thoughtline.commands.doctor.upstreams import PATIENCE
from thoughtline.destinations.addresses import hosts_of, is_private, own_url
from thoughtline.destinations.catalogue import Provider
from thoughtline.formats import USUAL
from thoughtline.gateway.admin_token import FILE_NAME
from thoughtline.gateway.http_client import UpstreamCut
from thoughtline.gateway.upstream import Upstreams
from thoughtline.settings import ServerSettings, Settings, check_exposure, is_loopback
from thoughtline.values.errors import Declined

_LONGEST_ANSWER = 4096


async def look_at_port(server: ServerSettings) -> Check:
    """Whether the port is free, or a gateway already listens on it."""
    place = f"{server.host}:{server.port}"
    try:
        family = socket.getaddrinfo(server.host, server.port, type=socket.SOCK_STREAM)[0][0]
        socket.create_server((server.host, server.port), family=family).close()
    except socket.gaierror:
        return Check("port", "fail", f"the host name {server.host} is unknown", "set host in [server]")
    except OSError as error:
        return await _taken(server) if error.errno == errno.EADDRINUSE else _unusable(place, error)
    return Check("port", "ok", f"{place} is free")


def _unusable(place: str, error: OSError) -> Check:
    if error.errno == errno.EACCES:
        return Check(
            "port", "fail", f"{place} needs more privileges", "use a port of 1024 or above: --port, or port in [server]"
        )
    if error.errno == errno.EADDRNOTAVAIL:
        return Check("port", "fail", f"{place} is not an address of this machine", "set host in [server]")
    return Check("port", "fail", f"{place} can't be used: {error.strerror}", "set host and port in [server]")


async def _taken(server: ServerSettings) -> Check:
    place = f"{server.host}:{server.port}"
    if await _is_gateway(server):
        return Check("port", "ok", f"a gateway serves {place}")
    return Check("port", "fail", f"something else listens on {place}", "use another: --port, or port in [server]")


class _Ready(Struct):
    status: str
    store: str


async def _is_gateway(server: ServerSettings) -> bool:
    base = own_url(server.host, server.port)
    upstreams = Upstreams()
    try:
        response = await upstreams.send(
            Provider("gateway", base, (USUAL.name,), timeouts=PATIENCE), "GET", f"{base}/readyz", [], b""
        )
        answer = await response.read() or b""
        await response.close()
        msgspec.json.decode(answer[:_LONGEST_ANSWER], type=_Ready)
    except (Declined, UpstreamCut, msgspec.DecodeError):
        return False
    finally:
        await upstreams.close()
    return True


def look_at_exposure(settings: Settings, has_client_keys: bool) -> Check:
    """Who could use the providers' keys."""
    error = check_exposure(settings, has_client_keys)
    host = settings.server.host
    if error is not None:
        [problem] = error.problems
        return Check("exposure", "fail", problem.message, problem.remedy)
    if is_loopback(host):
        return Check("exposure", "ok", "only this machine can reach it")
    if has_client_keys:
        return Check("exposure", "ok", f"{host} can be reached from elsewhere; client keys are required")
    if settings.server.insecure and any(row.has_secrets for row in settings.providers.values()):
        return Check(
            "exposure", "warn", f"anybody who reaches {host} can use the keys: insecure = true", "add client keys"
        )
    near = sorted(name for name in settings.configured if any(map(is_private, hosts_of(settings.providers[name]))))
    closed = f"; closed to them without client keys: {', '.join(near)}" if near and not settings.server.insecure else ""
    return Check("exposure", "ok", f"{host} can be reached from elsewhere; callers use their own credentials{closed}")


def look_at_routes(settings: Settings, has_client_keys: bool) -> list[Check]:
    """Routes that can't fail over: a caller's own key is for the first target's provider only."""
    checks = []
    for route in settings.routes.values():
        rows = [settings.providers[target.partition("/")[0]] for target in route.targets]
        keyless = [row for row in rows if row.needs_callers_key and (has_client_keys or row.name != rows[0].name)]
        if keyless:
            names = ", ".join(dict.fromkeys(row.name for row in keyless))
            message = f"{names} is never asked: the gateway has no key of its own for it"
            remedy = f'set [providers.{keyless[0].name}] api_key, or auth = "none" if it wants none'
            checks.append(Check(f"route {route.name}", "warn", message, remedy))
    return checks


def look_at_token(settings: Settings, data_dir: Path) -> Check:
    """The admin token: set, generated, or still to be generated."""
    place = data_dir / FILE_NAME
    if settings.server.admin_token is not None:
        return Check("admin token", "ok", "set in the settings")
    if not place.exists():
        return Check("admin token", "ok", "one will be made at the first start")
    if place.stat().st_mode & 0o077:
        return Check("admin token", "warn", f"others on this machine can read {place}", f"chmod 600 {place}")
    return Check("admin token", "ok", f"in {place}")
