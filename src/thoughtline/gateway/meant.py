"""What a client probably meant by an address or a model that nobody knows."""

from __future__ import annotations

from collections.abc import Iterable

from thoughtline.providers import PROVIDERS, canonical_name, maker_of
from thoughtline.settings import Settings
from thoughtline.values.nearest import nearest

CLIENT_PATHS = (
    "/v1/chat/completions",
    "/v1/responses",
    "/v1/messages",
    "/v1/messages/count_tokens",
    "/v1/models",
    "/v1beta/models",
    "/api/chat",
)
MANAGEMENT_PATHS = (
    "/healthz",
    "/readyz",
    "/metrics",
    "/login",
    "/api/settings",
    "/api/sessions",
    "/api/requests",
    "/api/providers",
    "/api/contracts",
    "/api/connect",
    "/api/events",
    "/api/handoffs",
    "/api/hello",
    "/api/routes",
    "/api/series",
    "/api/audit",
    "/api/keys",
    "/api/cache/reasoning",
    "/api/openapi.json",
)
"""A test holds them against the table of addresses."""

_LONGEST = 200
"""Looking for a word that is near takes time with its length."""


def meant_path(path: str, providers: Iterable[str]) -> str | None:
    """A provider whose name is misspelled, or an address that is."""
    if len(path) > _LONGEST:
        return None
    first, slash, rest = path.lstrip("/").partition("/")
    name = meant_provider(first, providers) if f"/{first}" not in ("/v1", "/v1beta", "/api") else None
    if name is not None:
        return f"/{name}{slash}{rest}"
    return nearest(path, (*CLIENT_PATHS, *MANAGEMENT_PATHS))


def meant_provider(name: str, providers: Iterable[str]) -> str | None:
    """By its name or one of its aliases."""
    known = [*providers, *(alias for row in PROVIDERS for alias in row.aliases)]
    near = nearest(name, known) if name and len(name) <= _LONGEST else None
    return canonical_name(near) if near else None


def meant_model(model: str, settings: Settings) -> str | None:
    """A route or a provider that is misspelled, or a model whose provider was left out."""
    if len(model) > _LONGEST:
        return None
    prefix, slash, rest = model.partition("/")
    if slash:
        near = meant_provider(prefix, settings.providers)
        return f"{near}/{rest}" if near else nearest(model, settings.routes)
    maker = maker_of(model)
    if maker is not None and maker.name in settings.providers:
        return f"{maker.name}/{model}"
    return nearest(model, settings.routes)
