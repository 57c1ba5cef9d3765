"""`GET /v1/models`: the routes, and the models of every provider with a gateway key, in the client's own shape."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping
from typing import NamedTuple

from thoughtline.destinations.addresses import models_address, with_query_key
from thoughtline.destinations.catalogue import Provider
from thoughtline.formats import FORMATS, USUAL, Wire
from thoughtline.formats.json_text import plain_value
from thoughtline.gateway.headers import OWN_AGENT, request_headers
from thoughtline.gateway.http_client import UpstreamResponse
from thoughtline.gateway.upstream import Upstreams
from thoughtline.settings import Settings
from thoughtline.stores import Clock
from thoughtline.values.errors import ThoughtlineError

TIMEOUT_SECONDS = 5.0
FRESH_SECONDS = 60.0
MAX_LIST_BYTES = 4 * 2**20
MAX_NAMES = 5000


class Listed(NamedTuple):
    """Available names, and the providers whose lists are missing."""

    names: tuple[str, ...]
    silent: tuple[str, ...]


class _Kept(NamedTuple):
    """A provider's list, with its row at that time."""

    row: Provider
    names: tuple[str, ...]
    until: float


class ModelLists:
    """Caches the lists of providers for a minute. A provider that does not answer is asked each time."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._kept: dict[str, _Kept] = {}

    async def listed(self, settings: Settings, upstreams: Upstreams, without: str | None = None) -> Listed:
        """Return routes first, then the models of each provider that needs no caller key, prefixed with its name."""
        known = [row for row in settings.providers.values() if row.name != without and _is_listed(row, settings)]
        rows = sorted(known, key=lambda row: row.name)
        answers = await asyncio.gather(*(self._names(row, upstreams) for row in rows))
        names = [f"{row.name}/{name}" for row, found in zip(rows, answers, strict=True) for name in found or ()]
        silent = [row.name for row, found in zip(rows, answers, strict=True) if found is None]
        return Listed((*settings.routes, *names), tuple(silent))

    async def _names(self, row: Provider, upstreams: Upstreams) -> tuple[str, ...] | None:
        kept = self._kept.get(row.name)
        if kept is not None and kept.row == row and kept.until > self._clock():
            return kept.names
        names = await fetch_names(row, upstreams)
        if names is not None:
            self._kept[row.name] = _Kept(row, names, self._clock() + FRESH_SECONDS)
        return names


def _is_listed(row: Provider, settings: Settings) -> bool:
    return bool(row.api_keys) or (row.auth == "none" and row.name in settings.configured)


async def fetch_names(provider: Provider, upstreams: Upstreams) -> tuple[str, ...] | None:
    """Fetch a provider's list; None if it fails."""
    try:
        async with asyncio.timeout(TIMEOUT_SECONDS):
            return names_in(await _fetch(provider, upstreams))
    except (ThoughtlineError, TimeoutError):
        return None


async def _fetch(provider: Provider, upstreams: Upstreams) -> bytes:
    url, key = paged(provider, models_address(provider)), next(iter(provider.api_keys), "")
    if key and provider.auth == "query":
        url = with_query_key(url, key)
    headers = request_headers([OWN_AGENT, *FORMATS[provider.formats[0]].headers], provider, key)
    response = await upstreams.send(provider, "GET", url, headers, b"")
    try:
        return await read_list(response) if response.status == 200 else b""
    finally:
        await response.close()


def paged(provider: Provider, url: str) -> str:
    query = FORMATS[provider.formats[0]].models.query
    return f"{url}?{query}" if query else url


async def read_list(response: UpstreamResponse) -> bytes:
    """Return a whole list, or the error in its place; nothing if it is too long."""
    body, is_whole = await response.read_all(MAX_LIST_BYTES)
    return body if is_whole else b""


def names_in(body: bytes) -> tuple[str, ...] | None:
    """Return the names in a list of models: OpenAI's and Anthropic's `data`, Google's and Cohere's `models`, a bare
    list."""
    read = plain_value(body)
    rows = read.get("data", read.get("models")) if isinstance(read, dict) else read
    if not isinstance(rows, list):
        return None
    names = [row.get("id") or row.get("name") for row in rows if isinstance(row, dict)]
    return tuple(name.removeprefix("models/") for name in names[:MAX_NAMES] if isinstance(name, str) and name)


def format_for(path: str, headers: Mapping[bytes, bytes]) -> Wire:
    """Return the format of the list that a client reads: by its path, or by a header that only its clients send."""
    wires = [wire for wire in FORMATS.values() if wire.models.path and re.match(wire.models.path, path)]
    wires += [wire for wire in FORMATS.values() if wire.models.header in headers]
    return wires[0] if wires else USUAL
