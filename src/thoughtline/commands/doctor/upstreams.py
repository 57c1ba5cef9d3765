"""Checks each upstream: is it reachable, does it speak HTTP, does it accept its keys, what is its time?"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Collection
from email.utils import parsedate_to_datetime
from typing import NamedTuple
from urllib.parse import urlsplit

from msgspec.structs import replace

from thoughtline.commands.doctor import Check, State
from thoughtline.destinations.addresses import models_address, with_query_key
from thoughtline.destinations.catalogue import Provider, Timeouts
from thoughtline.formats import FORMATS
from thoughtline.gateway.headers import OWN_AGENT, request_headers
from thoughtline.gateway.upstream import Upstreams
from thoughtline.gateway.verdicts import ProviderError, of_response
from thoughtline.settings import Settings, is_loopback
from thoughtline.stores import Clock
from thoughtline.values.errors import AddressError, Declined

PATIENCE = Timeouts(connect=5.0, first_byte=10.0, read=10.0, total=15.0)
SKEW_SECONDS = 60.0


class Seen(NamedTuple):
    """The result for one upstream, and the offset of its clock from ours."""

    checks: list[Check]
    skew_seconds: float | None = None


def named_in(settings: Settings) -> frozenset[str]:
    """The providers that the settings mention."""
    return frozenset(filter(None, (*settings.configured, settings.default_provider)))


async def look_at_upstreams(
    settings: Settings, clock: Clock = time.time, names: Collection[str] | None = None
) -> list[Seen]:
    """Check these providers, or all that the settings mention, concurrently."""
    upstreams = Upstreams()
    names = named_in(settings) if names is None else names
    chosen = [replace(row, timeouts=PATIENCE) for name, row in settings.providers.items() if name in names]
    try:
        return await asyncio.gather(*(_look_at(provider, upstreams, clock) for provider in chosen))
    finally:
        await upstreams.close()


def look_at_clock(seen: list[Seen]) -> Check:
    """Compare our clock with the upstreams': the smallest offset counts, since theirs may be wrong too."""
    skews = [each.skew_seconds for each in seen if each.skew_seconds is not None]
    if not skews:
        return Check("clock", "skipped", "no provider sent its time")
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
    headers = request_headers([OWN_AGENT, *needed], provider, key)
    began = time.perf_counter()
    try:
        response = await upstreams.send(provider, "GET", address, headers, b"")
    except Declined as declined:
        return Check(name, "fail", str(declined), declined.remedy), None
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
    """The result, from the status of the list of models."""
    table = f"[providers.{provider.name}]"
    timing = f"{urlsplit(provider.base_url).netloc.rpartition('@')[2]} answers in {took:.0f} ms"
    is_listing = "models_elsewhere" not in FORMATS[provider.formats[0]].quirks
    if status in (401, 403) and has_key and is_listing:
        return _failed(name, "fail", provider, status)
    if status in (401, 403):
        return Check(name, "ok", f"{timing}, needs a key: the caller's own will be sent; --live tries one")
    if status < 300:
        return Check(name, "ok", timing + (", accepts the key" if has_key else ""))
    if status < 400:
        return Check(name, "warn", f"it redirects ({status}), which is not followed", f"correct base_url in {table}")
    if status == 429 or status >= 500:
        return _failed(name, "warn", provider, status)
    return Check(name, "ok", f"{timing}; it has no list of models ({status}), so no key was tried")


def _failed(name: str, state: State, provider: Provider, status: int) -> Check:
    verdict = of_response(ProviderError(provider.name, status, is_own_key=bool(provider.api_keys)))
    return Check(name, state, verdict.cause, verdict.remedy)
