"""All that can be set, as one frozen value: `thoughtline.toml`, the environment over it, flags over that.

    file, environment, flags ── load_settings ──▶ Settings

Read once at the start (and again on SIGHUP) and passed in; nothing else reads the environment.
"""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from thoughtline.catalogue import Provider
from thoughtline.replay.contracts import Contract, Rung
from thoughtline.stores.settings import StoreSettings

ContinuityMode = Literal["handoff", "always"]
TagMode = Literal["off", "markers", "lift"]


class ServerSettings(Struct, frozen=True):
    """`[server]`. `admin_token` is None until one is made at the first start.

    `bus_directory` is where the workers of one start tell each other what happens; whoever starts several makes one.
    """

    host: str = "127.0.0.1"
    port: int = 8642
    workers: int = 1
    max_body_bytes: int = 32 * 2**20
    max_header_bytes: int = 64 * 2**10
    admin_token: str | None = None
    insecure: bool = False
    bus_directory: str | None = None


class ReplaySettings(Struct, frozen=True):
    """`[replay]`. `on_miss` gives a contract, by its name, another ladder."""

    on_miss: dict[str, tuple[Rung, ...]] = {}
    learn: bool = True
    heal: bool = True
    hold_ms: int = 250


class ContinuitySettings(Struct, frozen=True):
    """`[continuity]`."""

    enabled: bool = False
    count: int = 3
    mode: ContinuityMode = "handoff"
    max_chars: int = 64_000


class RouteSettings(Struct, frozen=True):
    """`[routes.NAME]`: a model name that tries its targets in order."""

    name: str
    targets: tuple[str, ...]
    weights: tuple[int, ...] = ()


class Settings(Struct, frozen=True):
    """Everything. `providers` holds every built-in row, changed and added to by the file, by name."""

    server: ServerSettings = ServerSettings()
    store_url: str = "memory://"
    store: StoreSettings = StoreSettings()
    providers: dict[str, Provider] = {}
    configured: frozenset[str] = frozenset()
    default_provider: str | None = None
    routes: dict[str, RouteSettings] = {}
    replay: ReplaySettings = ReplaySettings()
    continuity: ContinuitySettings = ContinuitySettings()
    tags: TagMode = "off"
    contracts: dict[str, Contract] = {}
