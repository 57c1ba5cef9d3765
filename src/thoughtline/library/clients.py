"""Finds the HTTP clients inside an SDK's object: openai, anthropic, google-genai, and frameworks built on them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from thoughtline.library.transports import library_of

_INSIDE = (
    *("_client", "client", "_async_client", "async_client", "_aclient"),
    *("root_client", "root_async_client", "http_client", "_http_client", "http_async_client"),
    *("_api_client", "_httpx_client", "_async_httpx_client", "provider", "_provider", "model"),
)
"""The attributes in which SDKs and frameworks keep their client: read from their code, 2026-11."""

_DEPTH = 4


def http_clients(thing: object) -> list[Any]:
    """Return the httpx and httpx2 clients that an object uses. Raises if there are none."""
    found = {id(client): client for client in _search(thing, _DEPTH)}
    if not found:
        raise TypeError(
            f"this {type(thing).__name__} has no httpx or httpx2 client; "
            "thoughtline.install() has every such client of the process remember, whoever makes it"
        )
    return list(found.values())


def _search(thing: object, depth: int) -> Iterator[Any]:
    if is_http_client(thing):
        yield thing
        return
    if depth == 0 or thing is None or isinstance(thing, (str, bytes, int, float, dict, list, tuple)):
        return
    for name in _INSIDE:
        inner = getattr(thing, name, None)
        if inner is not None and inner is not thing:
            yield from _search(inner, depth - 1)
    _keep_off_aiohttp(thing)


def is_http_client(thing: object) -> bool:
    library = library_of(thing)
    return library is not None and isinstance(thing, (library.Client, library.AsyncClient))


def _keep_off_aiohttp(thing: object) -> None:
    """Make google-genai use httpx: it uses aiohttp if that is installed, unless it was given an httpx client."""
    options, client = getattr(thing, "_http_options", None), getattr(thing, "_async_httpx_client", None)
    if options is not None and client is not None and hasattr(options, "httpx_async_client"):
        options.httpx_async_client = client
