"""The settings for a client, as `thoughtline connect` prints them, and when each client was last seen."""

from __future__ import annotations

from msgspec import Struct

from thoughtline import clients
from thoughtline.clients import Client
from thoughtline.gateway.admin import recent
from thoughtline.gateway.admin.answers import moment
from thoughtline.gateway.admin.requests import AdminRequest, Whole, decode_query, nearest
from thoughtline.gateway.admin.status_answers import ClientAbout, ConnectView, Setup, SetupText
from thoughtline.providers import canonical_name
from thoughtline.settings import Settings
from thoughtline.terminal import unlinked
from thoughtline.values.errors import Declined


class ConnectQuery(Struct, frozen=True):
    """A client, provider and model. `url` is the gateway's address for that client; by default the one of this
    request."""

    client: str | None = None
    provider: str | None = None
    model: str | None = None
    url: str | None = None


async def connect_view(request: AdminRequest) -> Whole:
    """Raises for an unknown client, and for values that can't be written into a settings file."""
    seen: dict[str, float] = {}
    for agent, at in (await recent.seen(request.state)).agents.items():
        name = clients.client_of(agent)
        seen[name] = max(at, seen.get(name, 0.0))
    setup = _setup(request, decode_query(request.query, ConnectQuery))
    return Whole(ConnectView([_about(client, seen) for client in clients.CLIENTS], setup))


def _about(client: Client, seen: dict[str, float]) -> ClientAbout:
    return ClientAbout(
        client.name,
        client.title,
        list(client.formats),
        provider=client.provider,
        habit=client.habit,
        tried=client.tried,
        last_seen=moment(seen[client.name]) if client.name in seen else None,
    )


def _check_provider(query: ConnectQuery, settings: Settings) -> None:
    named = query.provider
    if named is not None and canonical_name(named) not in settings.providers:
        remedy = nearest(named, settings.providers)
        raise Declined(404, "unknown_provider", f"No provider {named[:60]!r} is known.", remedy)


def _setup(request: AdminRequest, query: ConnectQuery) -> Setup | None:
    if query.client is None:
        return None
    client = clients.find(query.client)
    if client is None:
        near = clients.nearest(query.client)
        remedy = f"Did you mean {near}?" if near else "GET /api/connect lists all."
        raise Declined(404, "unknown_client", f"No client {query.client[:60]!r} is known.", remedy)
    for name in ("provider", "model", "url"):
        value = getattr(query, name)
        if value is not None and not clients.SETTABLE.fullmatch(value):
            raise Declined(400, "bad_parameter", f"{name}: {value[:60]!r} can't be written into a settings file.", "")
    _check_provider(query, request.state.settings)
    url = query.url or f"{request.scheme}://{request.header(b'host')}"
    address = clients.address_of(client, url, query.provider, model=query.model)
    steps = [SetupText(step.where, step.language, clients.lines_of(client, step, address)) for step in client.steps]
    notes = [unlinked(note) for note in clients.notes_of(client, address)]
    text = clients.instructions(client, address)
    return Setup(client.name, address.base, address.model, steps=steps, notes=notes, text=text)
