"""A look at each upstream: is it there, does it speak HTTP, does it take its keys, what time is it there?"""

from __future__ import annotations

import asyncio
import socket
import ssl
import time
from email.utils import parsedate_to_datetime
from typing import NamedTuple
from urllib.parse import urlsplit

from msgspec.structs import replace

from thoughtline.addresses import models_address, with_query_key
from thoughtline.catalogue import Provider, Timeouts
from thoughtline.commands.doctor import Check
from thoughtline.formats import FORMATS
from thoughtline.gateway.headers import request_headers
from thoughtline.gateway.upstream import Upstreams
from thoughtline.settings import Settings, is_loopback
from thoughtline.stores import Clock
from thoughtline.values.errors import AddressError, Declined

PATIENCE = Timeouts(connect=5.0, first_byte=10.0, read=10.0, total=15.0)
SKEW_SECONDS = 60.0


class Seen(NamedTuple):
    """What was found at one upstream, and how far its clock is from ours."""

    checks: list[Check]
    skew_seconds: float | None = None


async def look_at_upstreams(settings: Settings, clock: Clock = time.time) -> list[Seen]:
    """Each provider that settings speak of, all at once."""
    upstreams = Upstreams()
    names = {*settings.configured, settings.default_provider}
    chosen = [replace(row, timeouts=PATIENCE) for name, row in settings.providers.items() if name in names]
    try:
        return await asyncio.gather(*(_look_at(provider, upstreams, clock) for provider in chosen))
    finally:
        await upstreams.close()


def look_at_clock(seen: list[Seen]) -> Check:
    """Ours against those of the upstreams: the nearest of them counts, since theirs may be wrong too."""
    skews = [each.skew_seconds for each in seen if each.skew_seconds is not None]
    if not skews:
        return Check("clock", "ok", "no upstream sent its time")
    nearest = min(skews, key=abs)
    if abs(nearest) > SKEW_SECONDS:
        side = "ahead of" if nearest > 0 else "behind"
        message = f"this machine's clock is {abs(nearest):.0f} s {side} the upstreams'"
        return Check("clock", "warn", message, "synchronize it (NTP): stored turns expire by it")
    return Check("clock", "ok", "agrees with the upstreams'")


async def _look_at(provider: Provider, upstreams: Upstreams, clock: Clock) -> Seen:
    name = f"upstream {provider.name}"
    try:
        url = models_address(provider)
    except AddressError as error:
        return Seen([Check(name, "fail", str(error), f"[providers.{provider.name}] base_url")])
    checks = _look_at_exposure(name, provider)
    skew = None
    for index, key in enumerate(provider.api_keys or ("",)):
        which = f"{name}, key {index + 1}" if len(provider.api_keys) > 1 else name
        check, skew = await _ask(which, provider, url, key=key, upstreams=upstreams, clock=clock)
        checks.append(check)
    return Seen(checks, skew)


def _look_at_exposure(name: str, provider: Provider) -> list[Check]:
    parts = urlsplit(provider.base_url)
    if parts.scheme == "https" or is_loopback(parts.hostname or ""):
        return []
    return [Check(name, "warn", f"keys and conversations go to {parts.hostname} unencrypted", "use https:// if it can")]


async def _ask(
    name: str, provider: Provider, url: str, key: str, upstreams: Upstreams, clock: Clock
) -> tuple[Check, float | None]:
    address = with_query_key(url, key) if key and provider.auth == "query" else url
    needed = [header for name in provider.formats for header in FORMATS[name].headers]
    headers = request_headers(needed, provider, key)
    began = time.perf_counter()
    try:
        response = await upstreams.send(provider, "GET", address, headers, b"")
    except Declined as declined:
        return await _diagnosed(name, url, declined), None
    took = 1000 * (time.perf_counter() - began)
    skew = _skew(response.header("date"), clock())
    await response.close()
    return _judged(name, provider, response.status, bool(key), took), skew


def _skew(date: str, now: float) -> float | None:
    try:
        return now - parsedate_to_datetime(date).timestamp()
    except (TypeError, ValueError):
        return None


def _judged(name: str, provider: Provider, status: int, has_key: bool, took: float) -> Check:
    """What the status of a list of models says."""
    table, timing = f"[providers.{provider.name}]", f"answers in {took:.0f} ms"
    is_listing = "models_elsewhere" not in FORMATS[provider.formats[0]].quirks
    if status in (401, 403) and has_key and is_listing:
        return Check(name, "fail", f"the key was refused ({status})", f"correct api_key in {table}")
    if status in (401, 403):
        return Check(name, "ok", f"{timing}, needs a key: the caller's own will be sent")
    if status < 300:
        return Check(name, "ok", timing + (", accepts the key" if has_key else ""))
    if status < 400:
        return Check(name, "warn", f"it redirects ({status}), which is not followed", f"correct base_url in {table}")
    if status == 429:
        return Check(name, "warn", "it reports too many requests (429)", "wait, or check the limits of the account")
    if status >= 500:
        return Check(name, "warn", f"it has a problem of its own ({status})", "wait, and try again")
    return Check(name, "ok", f"{timing}; it has no list of models ({status}), so no key was tried")


async def _diagnosed(name: str, url: str, declined: Declined) -> Check:
    """Why nothing came back: the first step on the way there that fails."""
    parts = urlsplit(url)
    host, port = parts.hostname or "", parts.port or (443 if parts.scheme == "https" else 80)
    context = ssl.create_default_context() if parts.scheme == "https" else None
    remedy = "is base_url correct, and can this machine reach it? behind a proxy, set HTTPS_PROXY"
    try:
        async with asyncio.timeout(PATIENCE.connect):
            _, writer = await asyncio.open_connection(host, port, ssl=context)
    except socket.gaierror:
        return Check(name, "fail", f"the host name {host} is unknown (DNS)", remedy)
    except ssl.SSLCertVerificationError as error:
        return Check(name, "fail", f"its certificate is not trusted: {error.verify_message}", "see SSL_CERT_FILE")
    except ssl.SSLError:
        return Check(name, "fail", f"there is no TLS at {host}:{port}", "write http:// if it speaks plain HTTP")
    except ConnectionRefusedError:
        return Check(name, "fail", f"nothing listens at {host}:{port}", "start it, or correct base_url")
    except TimeoutError:
        return Check(name, "fail", f"{host}:{port} does not answer: no connection in {PATIENCE.connect:.0f} s", remedy)
    except OSError as error:
        return Check(name, "fail", f"{host}:{port} can't be reached: {error.strerror}", remedy)
    writer.close()
    return Check(
        name, "fail", f"{host}:{port} accepts a connection, but: {declined}", "should it be http:// or https://?"
    )
