"""Chooses the provider and model for a request, and suggests what an unknown name probably meant."""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from msgspec import Struct
from msgspec.structs import replace

from thoughtline.continuity.handoffs import failed_results
from thoughtline.continuity.tags import TagMode
from thoughtline.continuity.terms import Terms, setting_for, terms_for
from thoughtline.destinations.catalogue import Provider, ReplayMode, auth_for
from thoughtline.engine.sessions import unnamed_session
from thoughtline.failover.health import TargetHealth
from thoughtline.formats import FORMATS
from thoughtline.formats.paths import is_version
from thoughtline.formats.weighing import decode_bounded
from thoughtline.gateway.headers import header_value
from thoughtline.gateway.plain_content import is_plain
from thoughtline.gateway.routing import Route, is_client_path
from thoughtline.providers import canonical_name, facts, host_at, host_named, maker_of
from thoughtline.settings import RouteSettings, Settings
from thoughtline.values.errors import Declined, DecodeError
from thoughtline.values.nearest import nearest
from thoughtline.values.turns import FormatName, Provenance

if TYPE_CHECKING:
    from thoughtline.gateway.incoming import Incoming


MAX_MODEL_CHARS = 512
"""Names are stored in memory, in the journal and in a header. The longest known one, an AWS ARN, is below 200."""


class Target(Struct, frozen=True):
    """Where a request goes: the provider, the model by the provider's own name, and the format.

    `name` is both, for display; `header` is the same as a header value. `health_name` is the key for its health;
    `route` is empty if no route led to it. `is_callers`: the caller's own credential may be sent there. `terms`,
    `tags`, `is_plain` and `replay` are the settings for quoted reasoning, thinking tags, plain content and replay.
    """

    provider: Provider
    model: str
    format: FormatName
    name: str = ""
    header: bytes = b""
    health_name: str = ""
    route: str = ""
    is_callers: bool = True
    terms: Terms | None = None
    tags: TagMode | None = None
    is_plain: bool = False
    replay: ReplayMode = "on"

    @property
    def streams_only(self) -> bool:
        """Whether it only answers with streams. Whole answers are then assembled from them."""
        return self.provider.streams_only or "streams_only" in FORMATS[self.format].quirks


def terms_of(target: Target, settings: Settings, header: bytes = b"") -> Terms | None:
    """Return the terms for quoting other models' reasoning to it, from settings and the request's own header."""
    of_all = settings.continuity
    terms = Terms(of_all.mode, of_all.count, of_all.max_chars, of_all.after_compaction, of_all.after_compaction_by)
    route = settings.routes.get(target.route)
    of_model = setting_for(target.name, of_all.models)
    narrower = (route.continuity if route else None, of_model, target.provider.continuity)
    return terms_for(terms, of_all.enabled, header, *narrower)


class Conversation(Struct, frozen=True, gc=False):
    """A conversation's name, for keeping it with a target or key, and who made its latest turn; empty if there is no
    choice.

    The records hold this for every worker and replica, and after a restart. `tool_errors` is how many of the request's
    results are errors. `skipped` are targets that it can't use.
    """

    name: str = ""
    made: Provenance | None = None
    tool_errors: int = 0
    skipped: tuple[str, ...] = ()

    @property
    def made_by(self) -> str:
        """The target that made the latest turn."""
        return f"{self.made.provider}/{self.made.model_asked}" if self.made else ""


class ChoiceKey(Struct, frozen=True, gc=False):
    """What a choice depends on apart from settings: the address, the model, and the caller's credentials."""

    provider: str | None
    format: FormatName
    model: str
    tenant: str
    has_client_key: bool
    has_credential: bool


class Choices(Struct, frozen=True):
    """The possible targets of a request: one, or those of a route in its order.

    `skipped` are the route's targets that can't be used because the caller's key is not for them. `are_several`:
    another target or key may do better.
    """

    targets: tuple[Target, ...]
    weights: tuple[int, ...] = ()
    skipped: tuple[str, ...] = ()
    are_several: bool = False

    def ordered(self, conversation: Conversation, health: TargetHealth, now: float) -> Sequence[Target]:
        """Return the targets, the first one to ask in front."""
        by_name = {target.health_name: target for target in self.targets}
        made_by = next((name for name, one in by_name.items() if one.name == conversation.made_by), None)
        names = health.targets(
            self.targets[0].route, list(by_name), self.weights, conversation=conversation.name, now=now, made_by=made_by
        )
        return [by_name[name] for name in names]


def choices_of(key: ChoiceKey, settings: Settings) -> Choices:
    """Return the choices by the model's name and the address."""
    if len(key.model) > MAX_MODEL_CHARS:
        raise Declined(400, "model_too_long", f"A model's name has at most {MAX_MODEL_CHARS} characters.")
    if key.provider is None and key.model in settings.routes:
        return _of_route(settings, settings.routes[key.model], key)
    target = _choose(settings, key)
    target = replace(target, health_name=_health_name(target.name, target, key), terms=terms_of(target, settings))
    return Choices((target,), are_several=len(target.provider.api_keys) > 1)


def _of_route(settings: Settings, row: RouteSettings, key: ChoiceKey) -> Choices:
    """Return the targets of a route. A caller's own key is for the first of them, and must not reach other providers.

    So targets of other providers are asked with the gateway's keys, and skipped if there are none. A target that needs
    no key is asked without the caller's.
    """
    targets: list[Target] = []
    weights: list[int] = []
    skipped: list[str] = []
    all_targets = [_by_prefix(settings, name, key.format) for name in row.targets]
    first = all_targets[0].provider
    can_ask = [_can_ask(target.provider, first, key) for target in all_targets]
    for at, (name, target) in enumerate(zip(row.targets, all_targets, strict=True)):
        if any(can_ask) and not can_ask[at]:
            skipped.append(name)
            continue
        known_as = _health_name(name, target, key)
        is_callers = target.provider.name == first.name
        target = replace(target, health_name=known_as, route=row.name, is_callers=is_callers)
        targets.append(replace(target, terms=terms_of(target, settings)))
        weights += row.weights[at : at + 1]
    return Choices(tuple(targets), tuple(weights), tuple(skipped), are_several=True)


def _can_ask(provider: Provider, first: Provider, key: ChoiceKey) -> bool:
    """Whether there is a key for a provider, or it needs none. A caller without a key has none to leak."""
    if not provider.needs_callers_key:
        return True
    return not key.has_client_key and (provider.name == first.name or not key.has_credential)


def _health_name(name: str, target: Target, key: ChoiceKey) -> str:
    """A target asked with the caller's own key has a health of its own: only that caller's quota is affected."""
    return name if target.provider.api_keys else f"{name} for {key.tenant}"


async def conversation_of(choices: Choices, incoming: Incoming) -> Conversation:
    """Return the conversation that a request continues, if there is a choice of targets."""
    assert incoming.route.format is not None
    wire, replayer = FORMATS[incoming.route.format], incoming.state.replayer
    try:
        work = replayer.work_for(incoming.body)
        transcript = await work(partial(decode_bounded, incoming.body, wire.name, wire.dialect))
    except DecodeError:
        return Conversation(f"{incoming.caller.tenant}/{incoming.identity.session or ''}", skipped=choices.skipped)
    latest = await replayer.latest(transcript, incoming.identity)
    name = f"{incoming.caller.tenant}/{incoming.identity.session or unnamed_session(transcript)}"
    return Conversation(name, latest.provenance if latest else None, failed_results(transcript), choices.skipped)


def _choose(settings: Settings, key: ChoiceKey) -> Target:
    """Choose by the provider in the address, or by the model's name: `provider/model`, or a model of the default
    provider."""
    model = key.model
    if key.provider is not None:
        return _target(settings, settings.providers[key.provider], model=model, format=key.format)
    if settings.default_provider is not None and not _names_provider(settings, model):
        return _target(settings, settings.providers[settings.default_provider], model=model, format=key.format)
    return _by_prefix(settings, model, key.format)


def _by_prefix(settings: Settings, model: str, format: FormatName) -> Target:
    prefix, _, rest = model.partition("/")
    provider = settings.providers.get(canonical_name(prefix)) if rest else None
    if provider is None:
        raise _unknown(settings, model)
    return _target(settings, provider, model=rest, format=format)


def named_provider(settings: Settings, route: Route) -> Provider:
    """Return the provider that an address names, or the default."""
    name = route.provider or settings.default_provider
    if name is None or (route.provider is None and _is_misspelled(settings.providers[name], route, settings)):
        near = meant_path(route.path, settings.providers)
        rest = route.path[:100] if route.path.startswith(("/v1", "/api")) else "/v1/chat/completions"
        how = f"Start the path with a provider: /deepseek{rest}."
        if near:
            names_provider = canonical_name(near.split("/")[1]) in settings.providers
            how = f"Did you mean {near}?" + ("" if names_provider else f" {how}")
        raise Declined(404, "unknown_path", f"Unknown path {route.path[:200]}.", how)
    return settings.providers[name]


def _is_misspelled(default: Provider, route: Route, settings: Settings) -> bool:
    """Whether a path begins with a misspelled provider's name: a similar name, or one followed by a client path; or
    has a provider's name further on before such a path. Then the caller's key is not for the default. The default's
    own paths are allowed. An escaped slash counts as a slash."""
    names = unquote(route.path).lstrip("/").split("/")
    own = {name for base in (default.base_url, *default.bases.values()) for name in urlsplit(base).path.split("/")}
    if any(is_client_path("/".join(names[at + 1 :])) for at in _providers_named(names[:_MOST_LEADS], settings, own)):
        return True
    first, _, rest = "/".join(names).partition("/")
    if not first or is_version(first) or first in ("api", *own):
        return False
    return (bool(rest) and is_client_path(rest)) or _looks_like_provider(_WORD.findall(first)[0], settings)


def _providers_named(names: Sequence[str], settings: Settings, own: Container[str]) -> Iterator[int]:
    for at, name in enumerate(names):
        if name not in own and canonical_name(name) in settings.providers:
            yield at


def _looks_like_provider(name: str, settings: Settings) -> bool:
    return nearest(name[:_LONGEST], _provider_names(settings.providers), cutoff=_MISSPELLED) is not None


def _names_provider(settings: Settings, model: str) -> bool:
    """Whether a model's name begins with a provider's name, or a misspelled one.

    Servers of other makers' models use such names themselves (`openai/gpt-oss-120b`): if one of them is the default,
    only providers in the settings file count.
    """
    prefix, _, rest = model.partition("/")
    name, default = canonical_name(prefix), settings.default_provider
    assert default is not None
    if not rest:
        return False
    if name in settings.configured and name != default:
        return True
    row = host_named(default)
    if row is None or not row.makes_models:
        return False
    if name == default:  # it has no such model itself, but a server with its API may
        return host_at(settings.providers[default].base_url) is row
    return name in settings.providers or _looks_like_provider(prefix, settings)


def _target(settings: Settings, provider: Provider, *, model: str, format: FormatName) -> Target:
    """Return a target in the client's own format if the provider has it, or in the provider's first format."""
    name = f"{provider.name}/{model}"
    target_format = provider.door or _format_for(provider, model, format)
    provider = asked_in(provider, target_format)
    tags = provider.tags if provider.tags is not None else settings.tags
    plain = is_plain(b"", provider.content, settings.content)
    return Target(
        provider,
        model,
        target_format,
        name=name,
        header=header_value(name),
        tags=tags,
        is_plain=plain,
        replay=provider.replay or settings.replay.mode,
    )


def asked_in(provider: Provider, format: FormatName) -> Provider:
    """Return a provider with the way it expects its key in a format."""
    auth = auth_for(provider, format)
    return provider if auth == provider.auth else replace(provider, auth=auth)


def _format_for(provider: Provider, model: str, format: FormatName) -> FormatName:
    """Return the format for a model: a guest's model uses its maker's format, which is used for no other model; a
    format of the provider's own serves any model."""
    row = host_named(provider.name)
    if row is not None and row.guests and not (format in row.owns and format in provider.formats):
        maker = maker_of(model)
        found = row.guests.get(maker.name, "") if maker is not None else ""
        if found in provider.formats:
            return found
        if format in row.guests.values():
            return provider.formats[0]
    return format if format in provider.formats else provider.formats[0]


def _unknown(settings: Settings, model: str) -> Declined:
    if not model:
        return Declined(400, "model_missing", "The request names no model.", 'Set "model" to "provider/model".')
    routes = f" Routes: {', '.join(sorted(settings.routes))}." if settings.routes else ""
    near = meant_model(model, settings)
    how = f"Did you mean {near}?" if near else f"Write provider/{model.rpartition('/')[2][:60]}."
    remedy = f"{how} Or put the provider into the address: /deepseek/v1.{routes}"
    return Declined(404, "unknown_model", f"Which provider has {model[:120]!r}?", remedy)


# --- suggestions for unknown addresses and models ---------------------------------------------------------------------


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
    "/logout",
    "/api/continuity/preview",
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
    "/api/numbers",
    "/api/people",
    "/api/audit",
    "/api/keys",
    "/api/cache/reasoning",
    "/api/openapi.json",
)
"""A test compares them with the table of addresses."""

_LONGEST = 200
"""The search for similar words takes time proportional to their length."""

_WORD = re.compile(r"[\w-]+|$")
"""The part of a segment that may be a provider's name: `kimi` of `kimi:443` or `kimi.ai`."""

_MOST_LEADS = 8
"""How many segments of a path are searched for a provider's name."""

_MISSPELLED = 0.75
"""How similar a word must be to be rejected as a misspelling: one wrong letter of four. No known API path is that
close."""


def meant_path(path: str, providers: Iterable[str]) -> str | None:
    """Suggest a path: with a misspelled provider corrected, or a similar address."""
    if len(path) > _LONGEST:
        return None
    first, slash, rest = path.lstrip("/").partition("/")
    name = meant_provider(first, providers) if f"/{first}" not in ("/v1", "/v1beta", "/api") else None
    if name is not None:
        return f"/{name}{slash}{rest}"
    return nearest(path, (*CLIENT_PATHS, *MANAGEMENT_PATHS))


def meant_provider(name: str, providers: Iterable[str]) -> str | None:
    """Suggest a provider by its name or one of its aliases."""
    near = nearest(name, _provider_names(providers)) if name and len(name) <= _LONGEST else None
    return canonical_name(near) if near else None


def _provider_names(providers: Iterable[str]) -> list[str]:
    return [*providers, *(alias for row in facts().rows for alias in row.aliases)]


def meant_model(model: str, settings: Settings) -> str | None:
    """Suggest a model: with a misspelled route or provider corrected, or a missing provider added."""
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
