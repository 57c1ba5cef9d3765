"""Requests for the stages, made without a gateway, a socket or an upstream."""

from __future__ import annotations

import json
from typing import Any

from msgspec.structs import replace

from thoughtline.continuity.memory import Memory
from thoughtline.destinations.catalogue import PROVIDERS, Provider
from thoughtline.engine.capture import Watch
from thoughtline.engine.contracts import contract_book
from thoughtline.engine.learned import Lessons
from thoughtline.engine.replayer import Replayer
from thoughtline.formats import FORMATS
from thoughtline.gateway.choosing import Target
from thoughtline.gateway.estimating import TokenRatios
from thoughtline.gateway.outgoing import AskedTarget, ClientRequest, Outgoing
from thoughtline.gateway.request_stages import Services
from thoughtline.gateway.routing import Route
from thoughtline.gateway.server_templates import Templates
from thoughtline.gateway.translating import ClientFormat
from thoughtline.gateway.upstream import Upstreams
from thoughtline.settings import Settings
from thoughtline.stores import StoreSettings
from thoughtline.stores.memory import MemoryStore
from thoughtline.values.destination import Destination
from thoughtline.values.identity import Identity
from thoughtline.values.turns import FormatName

Json = dict[str, Any]
NOW = 1_000_000.0
TENANT = "ann"


def services(settings: Settings | None = None) -> Services:
    """What the stages work with, over an empty store."""
    settings = settings or Settings()
    store = MemoryStore(StoreSettings(), lambda: NOW)
    lessons = Lessons(store, lambda: NOW)
    replayer = Replayer(store, lessons, contract_book(settings, lessons), lambda: NOW)
    templates = Templates(lessons, Upstreams(), lambda: NOW)
    memory = Memory(store, lambda: NOW)
    return Services(settings, store, replayer, memory, templates, ratios=TokenRatios(), envelope_key=b"a key")


def request(
    body: Json | bytes,
    provider: str | Provider = "deepseek",
    model: str = "deepseek-v4-pro",
    client: FormatName = "openai_chat",
    upstream: FormatName | None = None,
    *,
    ask: Json | None = None,
    target: Json | None = None,
    route: Json | None = None,
    headers: dict[bytes, bytes] | None = None,
) -> Outgoing:
    """A request of a client of one format for a model in another, or in the same. `ask`, `target` and `route` have
    other members of theirs."""
    row = PROVIDERS[provider] if isinstance(provider, str) else provider
    upstream, raw = upstream or client, body if isinstance(body, bytes) else json.dumps(body).encode()
    asked = Target(row, model, upstream, name=f"{row.name}/{model}", health_name=f"{row.name}/{model}")
    asked = replace(asked, **(target or {}))
    way = Route("generate", client, row.name, "/")._replace(**(route or {}))
    whom = AskedTarget(
        asked,
        Destination(row.name, row.base_url, model, upstream, "account"),
        "",
        "a-key",
        may_use_callers_key=True,
        is_translated=upstream != client,
        is_signed=False,
        is_plain=False,
        replay="on",
    )
    came = ClientRequest(raw, raw, (), Identity(TENANT), model=model, headers=headers or {}, route=way, query="")
    return Outgoing(
        came,
        replace(whom, **(ask or {})),
        ClientFormat(client, way.is_streaming),
        raw,
        cuts=(),
        is_generating=way.action == "generate",
        is_streaming=way.is_streaming,
    )


async def answered(use: Services, sent: Outgoing, answer: Json) -> None:
    """The provider answers, and what it says is stored."""
    assert sent.prepared is not None
    watch = Watch(sent.prepared)
    watch.read_whole(json.dumps(answer).encode())
    await use.replayer.save(watch.ended(NOW, sent.prepared.outcome)())


def sent_body(sent: Outgoing) -> Json:
    assert sent.prepared is not None
    body: Json = json.loads(sent.prepared.body)
    assert FORMATS[sent.ask.target.format].list_member in body
    return body
