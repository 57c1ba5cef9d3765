"""Parses an address: which format, which provider, which model, or an unknown one to pass on. Pure.

Paths are compared segment by segment, in time linear in their length.
"""

from __future__ import annotations

from collections.abc import Container
from typing import Literal, NamedTuple
from urllib.parse import unquote

from thoughtline.formats import FORMATS
from thoughtline.formats.paths import ClientPath, is_version, without_last_slash
from thoughtline.providers import canonical_name
from thoughtline.values.turns import FormatName

MAX_PATH_BYTES = 2 * 2**10
"""The longest known paths contain an AWS ARN, and have a tenth of this length."""

Action = Literal["generate", "count_tokens", "compact", "models", "passthrough"]


class Route(NamedTuple):
    """`path` is the part after the provider's name. `model`, `is_streaming` and `place`, a location on Vertex, are set
    if the address contains them."""

    action: Action
    format: FormatName | None
    provider: str | None
    path: str
    model: str = ""
    is_streaming: bool = False
    place: str = ""


def route_of(method: str, path: str, providers: Container[str]) -> Route:
    """Return the route of a request. An unknown address is passed on, if there is a provider for it."""
    first, _, rest = path.lstrip("/").partition("/")
    name = canonical_name(first)
    if name in providers:
        return _route(method, "/" + rest, name)
    return _route(method, path, None)


def _route(method: str, path: str, provider: str | None) -> Route:
    segments = path.split("/")[1:]
    if method == "POST":
        for wire in FORMATS.values():
            found = wire.client_path(segments)
            if found is not None and (provider is not None or _is_plain(found)):
                return Route(
                    found.action,
                    wire.name,
                    provider,
                    path=path,
                    model=unquote(found.model),
                    is_streaming=found.is_streaming,
                    place=found.place,
                )
    if method == "GET" and _lists_models(segments):
        return Route("models", None, provider, path)
    return Route("passthrough", None, provider, path)


def is_client_path(path: str) -> bool:
    """Whether clients use this path at the root or after a provider's name."""
    return any(_route(method, f"/{path}", None).action != "passthrough" for method in ("POST", "GET"))


def _lists_models(segments: list[str]) -> bool:
    given = without_last_slash(segments)
    return given[-1:] == ["models"] and all(map(is_version, given[:-1]))


def _is_plain(found: ClientPath) -> bool:
    """Without a provider's name, only versions may come before the path of a format."""
    return not found.needs_provider and all(map(is_version, found.lead))
