"""Recognizes a request on its way to a provider by its URL: its format, model and provider.

Providers and endpoints have the same names here as in the gateway, so that both find each other's turns.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import NamedTuple
from urllib.parse import unquote, urlsplit

from thoughtline.destinations.catalogue import Provider, listed
from thoughtline.formats import FORMATS
from thoughtline.formats.paths import Action, is_version
from thoughtline.providers import host_at
from thoughtline.values.turns import FormatName

UNLISTED = "upstream"
"""The name of a provider that is known only by its URL, same as in the gateway."""


class AskedAddress(NamedTuple):
    """The format and model in a URL. `base` is the one that an SDK was given, `model` empty if only the
    body names it.
    """

    format: FormatName
    base: str
    model: str = ""
    is_streaming: bool = False
    action: Action = "generate"


class Server(NamedTuple):
    """The provider's name, and its endpoint as records have it."""

    provider: str
    endpoint: str


def read_address(method: str, url: str) -> AskedAddress | None:
    """The format and the model in a URL; None if it is of no format."""
    return _read_path(url.partition("?")[0]) if method == "POST" else None


@lru_cache(256)
def _read_path(url: str) -> AskedAddress | None:
    """An application uses the same few URLs again and again. Queries are left out: some hold a key."""
    parts = urlsplit(url)
    segments = parts.path.split("/")[1:]
    for wire in FORMATS.values():
        found = wire.client_path(segments)
        if found is None:
            continue
        lead = list(found.lead)
        if "any_path_is_a_version" not in wire.quirks and lead and is_version(lead[-1]):
            lead.pop()  # such an SDK adds the version itself
        base = "/".join((f"{parts.scheme}://{parts.netloc}", *lead))
        return AskedAddress(wire.name, base, unquote(found.model), found.is_streaming, found.action)
    return None


def provider_of(url: str) -> str:
    """The name of the provider at a URL."""
    found = host_at(url)
    return found.name if found is not None else UNLISTED


def server_of(address: AskedAddress, providers: Iterable[Provider] | None = None) -> Server:
    """The provider with this base for this format; else the one at this host, with the base as its endpoint."""
    base = _compared(address.base)
    for provider in listed().values() if providers is None else providers:
        endpoint = provider.bases.get(address.format, provider.base_url)
        if endpoint and address.format in provider.formats and _compared(endpoint) == base:
            return Server(provider.name, endpoint)
    name = provider_of(address.base)
    known = listed().get(name)
    # All locations of a provider are one endpoint, same as in the gateway.
    return Server(name, known.base_url if known is not None and known.is_located else address.base)


def _compared(base: str) -> tuple[str, str]:
    """A base without the version and the trailing slash, which SDKs may add or omit."""
    parts = urlsplit(base)
    segments = parts.path.rstrip("/").split("/")
    while is_version(segments[-1]):
        segments.pop()
    return parts.netloc.lower(), "/".join(segments)
