"""Which provider gets a request, under which model name."""

from __future__ import annotations

from typing import NamedTuple

from thoughtline.catalogue import Provider, canonical_name
from thoughtline.errors import Declined
from thoughtline.gateway.routing import Route
from thoughtline.replayer import guess_model
from thoughtline.settings import Settings
from thoughtline.turns import FormatName


class Choice(NamedTuple):
    """Where a request goes: the provider, the model as the provider names it, the format it is asked in."""

    provider: Provider
    model: str
    format: FormatName


def choose(settings: Settings, route: Route, format: FormatName, body: bytes) -> Choice:
    """By the provider in the address, else by the model's name: a route's, `provider/model`, or the default's own."""
    model = route.model or guess_model(body)
    if route.provider is not None:
        return _spoken(settings.providers[route.provider], model, format)
    if model in settings.routes:
        model = settings.routes[model].targets[0]
    elif settings.default_provider is not None and not _is_configured(settings, model):
        return _spoken(settings.providers[settings.default_provider], model, format)
    prefix, _, rest = model.partition("/")
    provider = settings.providers.get(canonical_name(prefix)) if rest else None
    if provider is None:
        raise _unknown(settings, model)
    return _spoken(provider, rest, format)


def named_provider(settings: Settings, route: Route) -> Provider:
    """The provider that an address names, or the default."""
    name = route.provider or settings.default_provider
    if name is None:
        raise Declined(
            404,
            "unknown_path",
            f"Nothing is at {route.path[:200]}.",
            "Put a provider's name first (/deepseek/…), or start with --upstream to make one the default.",
        )
    return settings.providers[name]


def _is_configured(settings: Settings, model: str) -> bool:
    """Whether a model's name begins with a provider of the settings file: only then is that no part of the name."""
    prefix, _, rest = model.partition("/")
    name = canonical_name(prefix)
    return bool(rest) and name in settings.configured and name != settings.default_provider


def _spoken(provider: Provider, model: str, format: FormatName) -> Choice:
    """In the client's own format where the provider has it, else in the provider's first."""
    return Choice(provider, model, format if format in provider.formats else provider.formats[0])


def _unknown(settings: Settings, model: str) -> Declined:
    if not model:
        return Declined(400, "model_missing", "The request names no model.", 'Set "model" to "provider/model".')
    routes = f" or a route ({', '.join(sorted(settings.routes))})" if settings.routes else ""
    return Declined(
        404,
        "unknown_model",
        f"No provider is known for the model {model[:120]!r}.",
        f"Write it as provider/model{routes}, or put the provider into the address: /deepseek/v1/…",
    )
