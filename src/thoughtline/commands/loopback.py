"""Servers in this process, on loopback: simulators, and a gateway in front of them. For demos and measurements."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator, Mapping
from typing import Any

import uvicorn
from msgspec.structs import replace

from thoughtline.destinations.catalogue import listed
from thoughtline.gateway.app import Gateway, MakeState
from thoughtline.gateway.client_keys import NoKeys
from thoughtline.gateway.journal import Journal
from thoughtline.gateway.serving import server_config
from thoughtline.gateway.state import State, make_state
from thoughtline.settings import Settings
from thoughtline.stores import open_store
from thoughtline_sim.app import sim_server


@contextlib.asynccontextmanager
async def listening(app: Any, port: int = 0) -> AsyncIterator[str]:
    """Serves an application, on a port that the system chooses unless one is given; gives its URL."""
    listener = socket.create_server(("127.0.0.1", port))
    server = uvicorn.Server(server_config(app)) if isinstance(app, Gateway) else sim_server(app)
    serving = asyncio.ensure_future(server._serve([listener]))
    while not server.started:
        await asyncio.sleep(0.01)
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        server.should_exit = True
        await serving


def gateway_before(addresses: Mapping[str, str], default: str | None = None) -> Gateway:
    """A gateway whose providers, by name, are at these URLs, with a memory store that ends with it."""
    moved = {name: replace(listed()[name], base_url=url, bases={}) for name, url in addresses.items()}
    return gateway_for(Settings(providers=moved, default_provider=default))


def gateway_for(settings: Settings) -> Gateway:
    """A gateway with these settings, and a memory store that ends with it."""
    return Gateway(state_for(settings))


def state_for(settings: Settings) -> MakeState:
    """Returns how to make the state of such a gateway."""

    async def opened() -> State:
        return make_state(settings, await open_store("memory://"), NoKeys(), Journal())

    return opened
