"""Answers `GET …/models`: at the root, everything available here; under a provider's name, that provider's models.

A provider's own list is passed on if the client reads its shape and sends its key in the provider's way. Otherwise it
is fetched and converted to the client's shape: OpenAI's SDK at Anthropic, Claude Code at DeepSeek.
"""

from __future__ import annotations

from typing import NamedTuple

from thoughtline.clients import example_models
from thoughtline.destinations.addresses import models_address
from thoughtline.destinations.catalogue import Provider
from thoughtline.destinations.credentials import CREDENTIALS
from thoughtline.formats import FORMATS
from thoughtline.gateway.attempt import Attempt
from thoughtline.gateway.choosing import Target
from thoughtline.gateway.headers import Headers, translated_headers
from thoughtline.gateway.incoming import Incoming, keys_for
from thoughtline.gateway.model_lists import format_for, names_in, paged, read_list
from thoughtline.gateway.state import State
from thoughtline.translation import translate_error


class ModelsAnswer(NamedTuple):
    """A list, or the error of the provider asked; and the providers whose lists are missing."""

    status: int
    body: bytes
    unlisted: tuple[str, ...] = ()


async def models_answer(state: State, incoming: Incoming, attempts: list[Attempt]) -> ModelsAnswer | None:
    """Return the answer; None if the provider's own answer has the client's format."""
    settings, route = state.settings, incoming.route
    client = format_for(route.path, incoming.headers)
    name = route.provider or settings.default_provider
    if name is not None and route.provider is not None:
        return await _list_of(settings.providers[name], state, incoming, attempts)
    listed = await state.caches.models.listed(settings, state.upstreams, without=name)
    if name is None:
        names = listed.names or _suggested(state, incoming)
        return ModelsAnswer(200, client.models.encode(names), listed.silent)
    own = await _list_of(settings.providers[name], state, incoming, attempts, is_fetched=bool(listed.names))
    if own is None or own.status != 200:
        return own
    names = (*listed.names, *(names_in(own.body) or ()))
    return ModelsAnswer(200, client.models.encode(names), listed.silent)


def _suggested(state: State, incoming: Incoming) -> tuple[str, ...]:
    """Suggest example models if nothing is configured: callers use their own keys, for unknown providers."""
    if incoming.caller.key is not None:
        return ()
    return tuple(f"{name}/{model}" for name, model in example_models().items() if name in state.settings.providers)


async def _list_of(
    provider: Provider, state: State, incoming: Incoming, attempts: list[Attempt], *, is_fetched: bool = False
) -> ModelsAnswer | None:
    client, own = format_for(incoming.route.path, incoming.headers), FORMATS[provider.formats[0]]
    if not is_fetched and client.models == own.models and _reads_key(provider, incoming):
        return None
    key = keys_for(incoming.caller, provider, "", state.health, state.clock())[0]
    attempt = Attempt(incoming, Target(provider, "", provider.formats[0]), key)
    attempts.append(attempt)
    received: Headers = translated_headers(incoming.scope["headers"], provider.formats[0])
    received = [pair for pair in received if pair[0] != b"accept-encoding"]
    url = paged(provider, models_address(provider))
    key = key or incoming.caller.credential
    response = await attempt.send_up(provider, "GET", url, key=key, received=received, body=b"")
    try:
        body = await read_list(response)
    finally:
        await response.close()
    names = names_in(body) if response.status == 200 else None
    if names is None:
        status = response.status if response.status != 200 else 502
        return ModelsAnswer(*translate_error(status, body, own.name, client.name))
    return ModelsAnswer(200, client.models.encode(names))


def _reads_key(provider: Provider, incoming: Incoming) -> bool:
    """Whether a provider reads the header in which the client sends its key, or needs none."""
    if provider.api_keys or provider.auth in ("none", "query") or not incoming.caller.credential:
        return True
    shown = [name for name in CREDENTIALS if name in incoming.headers]
    return not shown or b"authorization" in shown or provider.auth.encode() in shown
