"""What the gateway works with: settings and all that was made from them, in one value that a reload replaces."""

from __future__ import annotations

import asyncio
import logging
import secrets
import time
from pathlib import Path
from typing import NamedTuple, TypeVar

from msgspec.structs import replace

from thoughtline.continuity.memory import Memory
from thoughtline.engine.contracts import contract_book
from thoughtline.engine.learned import Lessons
from thoughtline.engine.replayer import Replayer
from thoughtline.engine.threads import FairThreads
from thoughtline.failover.health import TargetHealth
from thoughtline.gateway.access import Head, Visitor
from thoughtline.gateway.bus import Bus
from thoughtline.gateway.choosing import ChoiceKey, Choices
from thoughtline.gateway.client_keys import KnowsKeys
from thoughtline.gateway.estimating import TokenRatios
from thoughtline.gateway.fleet import Fleet
from thoughtline.gateway.guard import Guard
from thoughtline.gateway.history_writer import HistoryWriter
from thoughtline.gateway.in_flight import InFlight
from thoughtline.gateway.journal import Journal
from thoughtline.gateway.limits import KeyLimits, SharedCounts
from thoughtline.gateway.metrics import Metrics
from thoughtline.gateway.model_lists import ModelLists
from thoughtline.gateway.recent import Recent
from thoughtline.gateway.request_stages import Services
from thoughtline.gateway.routing import Route
from thoughtline.gateway.saving import Abandoned, LateSaves
from thoughtline.gateway.server_templates import Templates
from thoughtline.gateway.shared_settings import SettingsPatch, merged
from thoughtline.gateway.tracing import Tracing
from thoughtline.gateway.upstream import Upstreams
from thoughtline.gateway.words import Words
from thoughtline.settings import Settings
from thoughtline.stores import Clock, LayeredStore, Note, Store, channel_at, is_shared
from thoughtline.stores.history import history_at
from thoughtline.stores.packing import Packer
from thoughtline.values.errors import StoreError

log = logging.getLogger(__name__)
Raw = TypeVar("Raw")
Value = TypeVar("Value")

MAX_ENTRIES = 1024
MAX_ENTRY_BYTES = 4 * 2**10
"""What is made of longer values is made each time."""


class BoundedCache(dict[Raw, Value]):
    """What was worked out before from the same raw values: a dict that is emptied when it is full."""

    def keep(self, raw: Raw, value: Value, size: int = 0) -> Value:
        """Keep what was made of raw values of this size, and give it back."""
        if size <= MAX_ENTRY_BYTES:
            if len(self) >= MAX_ENTRIES:
                self.clear()
            self[raw] = value
        return value


class Signals(NamedTuple):
    """`wake` asks for a refresh now; `stopping` is set when no new request will come."""

    wake: asyncio.Event
    stopping: asyncio.Event


class Caches:
    """Values that follow from the settings: other settings begin with empty ones."""

    def __init__(self, clock: Clock) -> None:
        self.models = ModelLists(clock)
        self.routes: BoundedCache[tuple[str, bytes], Route] = BoundedCache()
        self.visitors: BoundedCache[Head, Visitor] = BoundedCache()
        self.choices: BoundedCache[ChoiceKey, Choices] = BoundedCache()
        self.accounts: BoundedCache[str, str] = BoundedCache()
        self.addresses: BoundedCache[tuple[str, str, str, str, bool, str, str], str] = BoundedCache()
        self.ratios = TokenRatios()


class Admin(NamedTuple):
    """What the admin API and a reload need. `loaded` are the settings of file, environment and flags, `shared` those of
    the store. Without a `token` the management addresses are closed."""

    token: str | None
    loaded: Settings
    guard: Guard
    signals: Signals
    shared: SettingsPatch = SettingsPatch()


class Background(NamedTuple):
    """What goes on beyond the event loop or an answer: long work, late saves, the answers of clients that left."""

    work: FairThreads
    late: LateSaves
    abandoned: Abandoned


class State(NamedTuple):
    """All that a request needs.

    `settings` are those of file, environment and flags, changed by what the store shares. `durable` is the store if it
    keeps what it has. `services` is what the stages of a request work with.
    """

    settings: Settings
    store: Store
    lessons: Lessons
    replayer: Replayer
    services: Services
    upstreams: Upstreams
    keys: KnowsKeys
    journal: Journal
    limits: KeyLimits
    admin: Admin
    metrics: Metrics
    bus: Bus | Fleet
    health: TargetHealth
    background: Background
    recent: Recent
    caches: Caches
    durable: LayeredStore | None
    words: Words
    clock: Clock = time.time
    tracing: Tracing | None = None

    @property
    def in_flight(self) -> InFlight:
        return self.upstreams.in_flight

    def observe(self) -> None:
        """Take how things stand into the metrics."""
        abandoned, lost_lines = self.in_flight.abandoned, self.journal.lost
        self.metrics.observe(self.store, self.lessons, abandoned=abandoned, lost_lines=lost_lines)


def make_state(
    settings: Settings,
    store: Store,
    keys: KnowsKeys,
    journal: Journal,
    admin_token: str | None = None,
    clock: Clock = time.time,
    login_code: str = "",
) -> State:
    """All of it, from settings and an open store. Without a token the management addresses are closed."""
    lessons, work, caches = Lessons(store, clock), FairThreads(), Caches(clock)
    replayer = _replayer(settings, store, lessons, clock=clock, work=work)
    upstreams = Upstreams(InFlight(journal.say))
    journal.follow((metrics := Metrics()).count)
    bus, limits = _joined(settings, store, journal, health=(health := TargetHealth()), clock=clock)
    return State(
        settings,
        store,
        lessons,
        replayer,
        services=Services(
            settings,
            store,
            replayer,
            memory=Memory(store, clock),
            templates=Templates(lessons, upstreams, clock),
            ratios=caches.ratios,
        ),
        upstreams=upstreams,
        keys=keys,
        journal=journal,
        limits=limits,
        admin=Admin(
            admin_token or settings.server.admin_token,
            settings,
            Guard(login_code, _together(settings)),
            Signals(asyncio.Event(), asyncio.Event()),
        ),
        metrics=metrics,
        bus=bus,
        health=health,
        background=Background(work, LateSaves(), Abandoned()),
        recent=Recent(settings, bus.name, _history(settings, clock)),
        caches=caches,
        durable=store if isinstance(store, LayeredStore) else None,
        words=Words(settings, store, clock),
        clock=clock,
    )


def _replayer(settings: Settings, store: Store, lessons: Lessons, *, clock: Clock, work: FairThreads) -> Replayer:
    terms = settings.replay
    return Replayer(
        store,
        lessons,
        contract_book(settings, lessons),
        clock,
        work=work,
        remembered_bytes=terms.remembered_bytes,
        any_frame=terms.any_system_prompt,
    )


def _history(settings: Settings, clock: Clock) -> HistoryWriter:
    """Make the writer of the history, under the key of the store."""
    kept = settings.store
    history = history_at(settings.store_url, kept, settings.history, clock)
    keys = (kept.encryption_key, kept.previous_encryption_key) if history.is_kept else ()
    return HistoryWriter(history, Packer(*keys), settings.history)


def _together(settings: Settings) -> Path | None:
    """The directory that the workers of one start share."""
    return Path(settings.bus_directory) if settings.bus_directory else None


def _joined(
    settings: Settings, store: Store, journal: Journal, *, health: TargetHealth, clock: Clock
) -> tuple[Bus | Fleet, KeyLimits]:
    """How this process hears the others, and what it counts with them: by a shared store, else by a directory."""
    if not is_shared(settings.store_url):
        together = _together(settings)
        limits = KeyLimits(SharedCounts(together) if together else None)
        return Bus(settings.bus_directory, journal, store.counters), limits
    kept, channel = settings.store, channel_at(settings.store_url, settings.store)
    packer = Packer(kept.encryption_key, kept.previous_encryption_key)
    fleet = Fleet(channel, packer, journal, counters=store.counters, health=health, clock=clock)
    return fleet, KeyLimits(fleet.key_counts)


def with_settings(state: State, settings: Settings) -> State:
    """The same store, connections and lessons under other settings, as they were loaded."""
    state.keys.follow(settings)
    state.words.follow(settings)
    return with_shared(state._replace(admin=state.admin._replace(loaded=settings)), state.admin.shared)


def with_shared(state: State, shared: SettingsPatch) -> State:
    """The same with other settings for all."""
    settings = merged(state.admin.loaded, shared)
    replayer, caches = (
        _replayer(settings, state.store, state.lessons, clock=state.clock, work=state.background.work),
        Caches(state.clock),
    )
    return state._replace(
        settings=settings,
        replayer=replayer,
        services=replace(state.services, settings=settings, replayer=replayer, ratios=caches.ratios),
        admin=state.admin._replace(shared=shared),
        caches=caches,
    )


def with_envelope_key(state: State, key: bytes) -> State:
    """The same with the key that envelopes are sealed with."""
    return state._replace(services=replace(state.services, envelope_key=key))


# --- the key that envelopes are sealed with ---------------------------------------------------------------------------
# The one that encrypts the store, else one that is kept in the store. Replicas on one store, or with one
# `encryption_key`, open each other's envelopes.


NAMESPACE = "envelopes"
_NAME = "key"
_KEPT_UNTIL = 4_000_000_000.0


async def envelope_key(settings: Settings, store: Store, own: bytes = b"") -> bytes:
    """The key. While the store fails it is this process's own, or a new one.

    It is asked for again and again: of two replicas that began at the same moment the later one's note stands, and a
    store that failed at the start comes back.
    """
    if settings.store.encryption_key:
        return b"store " + settings.store.encryption_key.encode()
    own = own or secrets.token_bytes(32)
    try:
        found = await _kept(store)
        if found is None:
            await store.put_note(Note(NAMESPACE, _NAME, own, _KEPT_UNTIL))
            found = await _kept(store)
    except StoreError as error:
        log.warning("envelopes are sealed for this process alone: %s", error)
        found = None
    return found or own


async def _kept(store: Store) -> bytes | None:
    return next((note.value for note in await store.notes(NAMESPACE) if note.key == _NAME), None)
