"""A request on its way to a provider, recognised by its address: which format and model it asks for, and of whom.

What the gateway calls a provider and an endpoint is called the same here, so that both find each other's turns.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import NamedTuple
from urllib.parse import unquote, urlsplit

from thoughtline.catalogue import Provider, listed
from thoughtline.formats import FORMATS
from thoughtline.formats.paths import Action, is_version
from thoughtline.providers import host_at
from thoughtline.values.turns import FormatName

UNLISTED = "upstream"
"""What a provider is called of whom only the address is known, as the gateway calls it."""


class AskedAddress(NamedTuple):
    """What an address asks for. `base` is what an SDK was given, `model` empty where only the body names it."""

    format: FormatName
    base: str
    model: str = ""
    is_streaming: bool = False
    action: Action = "generate"


class Server(NamedTuple):
    """Who is asked: a provider's name, and its endpoint as records have it."""

    provider: str
    endpoint: str


def read_address(method: str, url: str) -> AskedAddress | None:
    """The format and the model that an address asks for; None if it is no format's."""
    return _read_path(url.partition("?")[0]) if method == "POST" else None


@lru_cache(256)
def _read_path(url: str) -> AskedAddress | None:
    """An application asks the same few addresses again and again. Queries are left out: some hold a key."""
    parts = urlsplit(url)
    segments = parts.path.split("/")[1:]
    for wire in FORMATS.values():
        found = wire.client_path(segments)
        if found is None:
            continue
        lead = list(found.lead)
        if "any_path_is_a_version" not in wire.quirks and lead and is_version(lead[-1]):
            lead.pop()  # such an SDK writes the version itself
        base = "/".join((f"{parts.scheme}://{parts.netloc}", *lead))
        return AskedAddress(wire.name, base, unquote(found.model), found.is_streaming, found.action)
    return None


def provider_of(url: str) -> str:
    """The name of the provider that is at an address."""
    found = host_at(url)
    return found.name if found is not None else UNLISTED


def server_of(address: AskedAddress, providers: Iterable[Provider] | None = None) -> Server:
    """The provider that has this base for this format; else whoever is at the host, with the base as its endpoint."""
    base = _compared(address.base)
    for provider in listed().values() if providers is None else providers:
        endpoint = provider.bases.get(address.format, provider.base_url)
        if endpoint and address.format in provider.formats and _compared(endpoint) == base:
            return Server(provider.name, endpoint)
    name = provider_of(address.base)
    known = listed().get(name)
    # All places of a located provider are one endpoint, as the gateway has it.
    return Server(name, known.base_url if known is not None and known.is_located else address.base)


def _compared(base: str) -> tuple[str, str]:
    """A base without what SDKs write and leave out: the version, and a slash at its end."""
    parts = urlsplit(base)
    segments = parts.path.rstrip("/").split("/")
    while is_version(segments[-1]):
        segments.pop()
    return parts.netloc.lower(), "/".join(segments)
