"""Which provider gets a request, under which model name."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from thoughtline.catalogue import Provider, canonical_name
from thoughtline.errors import Declined, DecodeError
from thoughtline.fallover.health import Health
from thoughtline.formats import FORMATS
from thoughtline.gateway.routing import Route
from thoughtline.replayer import guess_model
from thoughtline.sessions import untold_session
from thoughtline.settings import Settings
from thoughtline.turns import FormatName

if TYPE_CHECKING:
    from thoughtline.gateway.attempt import Incoming


class Choice(NamedTuple):
    """Where a request goes: the provider, the model as the provider names it, the format it is asked in."""

    provider: Provider
    model: str
    format: FormatName


class Target(NamedTuple):
    """A choice under the name by which its health is known; `route` is empty where no route led to it."""

    name: str
    choice: Choice
    route: str = ""


def targets_of(settings: Settings, incoming: Incoming, conversation: str, health: Health, now: float) -> list[Target]:
    """Whom to ask, in this order: one, or the targets of a route."""
    route, spoken = incoming.route, incoming.route.format
    assert spoken is not None
    model = route.model or guess_model(incoming.body)
    if route.provider is None and model in settings.routes:
        row = settings.routes[model]
        names = health.targets(row.name, row.targets, row.weights, conversation, now)
        return [Target(name, _by_prefix(settings, name, spoken), row.name) for name in names]
    choice = _choose(settings, route, spoken, model)
    return [Target(f"{choice.provider.name}/{choice.model}", choice)]


def conversation_of(settings: Settings, incoming: Incoming) -> str:
    """A name for the conversation, for those who stay with a target or a key; empty where nobody has a choice."""
    if not settings.routes and not any(len(row.api_keys) > 1 for row in settings.providers.values()):
        return ""
    return f"{incoming.caller.tenant}/{incoming.session.id or _untold(incoming)}"


def _untold(incoming: Incoming) -> str:
    wire = FORMATS[incoming.route.format] if incoming.route.format else None
    if wire is None or wire.bodies is None:
        return ""
    try:
        return untold_session(wire.bodies.decode_request(incoming.body, wire.dialect))
    except DecodeError:
        return ""


def _choose(settings: Settings, route: Route, format: FormatName, model: str) -> Choice:
    """By the provider in the address, else by the model's name: `provider/model`, or the default's own."""
    if route.provider is not None:
        return _spoken(settings.providers[route.provider], model, format)
    if settings.default_provider is not None and not _is_configured(settings, model):
        return _spoken(settings.providers[settings.default_provider], model, format)
    return _by_prefix(settings, model, format)


def _by_prefix(settings: Settings, model: str, format: FormatName) -> Choice:
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
