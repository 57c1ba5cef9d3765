"""What a history is: entries in, pages and sums out. An engine adds how it connects and the few operations at the end.

Each request has a `Group`: who asked whom, and what became of it. There are few groups and many requests, so a filter
is first a choice of groups, then the newest entries of each. Sums are kept for each group and minute, hour and day.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from copy import copy
from hashlib import blake2b
from typing import Annotated, Literal, NamedTuple, TypeAlias

import msgspec
from msgspec import Struct

from thoughtline.stores.base import Clock
from thoughtline.values.setting import setting

MINUTE, HOUR, DAY = 60, 3600, 86400
STEPS = (MINUTE, HOUR, DAY)
MINUTES_KEPT_SECONDS = 3 * DAY
"""Ranges of up to a day are drawn by the minute, and compared with the one before."""

MAX_SCANNED_GROUPS = 400
"""More groups than this are looked for among all entries, newest first; fewer are asked for one by one."""

ENTRY_BYTES = 200
"""What an entry takes in keys and indexes, without its data, about."""

CLEANED_AT_ONCE = 2000


class HistorySettings(Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """`[history]`. How long it is kept, and how large it may grow."""

    ttl_seconds: Annotated[float, setting("how long requests and their figures are kept", "duration", key="ttl")] = (
        30.0 * DAY
    )
    max_bytes: Annotated[
        int,
        setting(
            "how large the history may grow before its oldest requests are removed; `0` keeps none",
            "size_or_zero",
            key="max_size",
        ),
    ] = 256 * 2**20


class Group(Struct, frozen=True, array_like=True):
    """What requests have in common. `caller` is the name of a client key, `client` the name of a program."""

    tenant: str = ""
    caller: str = ""
    client: str = ""
    provider: str = ""
    model: str = ""
    route: str = ""
    action: str = ""
    mode: str = ""
    outcome: str = ""
    status: int = 0
    code: str = ""

    @property
    def id(self) -> int:
        """The same in every process: a digest of what it is."""
        digest = blake2b(msgspec.json.encode(self), digest_size=8, person=b"tl group").digest()
        return int.from_bytes(digest, "big", signed=True) or 1


class Sums(Struct):
    """What can be added up of some requests. Milliseconds and tokens are totals."""

    requests: int = 0
    avoided: int = 0
    restored: int = 0
    inherited: int = 0
    blank: int = 0
    stripped: int = 0
    missing: int = 0
    healed: int = 0
    checkpoints: int = 0
    dropped: int = 0
    withheld: int = 0
    refused: int = 0
    errors: int = 0
    slow: int = 0
    degraded: int = 0
    own_ms: float = 0.0
    upstream_ms: float = 0.0
    input_tokens: int = 0
    cached_tokens: int = 0
    output_tokens: int = 0
    reasoning_tokens: int = 0

    def add(self, other: Sums) -> None:
        for name in SUMMED:
            setattr(self, name, getattr(self, name) + getattr(other, name))


SUMMED: tuple[str, ...] = Sums.__struct_fields__
Step: TypeAlias = tuple[int, int, int]
"""How long it is, when it begins, and the id of a group."""


class HistoryEntry(Struct, frozen=True):
    """A request that is over. `at` is when it began, in microseconds; `data` is what explains it, packed."""

    at: int
    id: str
    group: Group
    session: str
    sums: Sums
    data: bytes


class Kept(NamedTuple):
    """An entry as it is found again."""

    at: int
    id: str
    group: int
    session: str
    data: bytes


class Where(Struct, frozen=True):
    """Which entries: of these groups (all if None), of this session, that began from `since` on and before `until`, in
    microseconds. `before` is the last one of the page before. A session is meant by its beginning if `is_prefix`."""

    since: int = 0
    until: int = 2**62
    before: tuple[int, str] | None = None
    groups: frozenset[int] | None = None
    session: str | None = None
    is_prefix: bool = False

    @property
    def end(self) -> tuple[int, str]:
        """Entries are before this one."""
        limit = (self.until, "")
        return limit if self.before is None else min(limit, self.before)

    def fits(self, one: Kept) -> bool:
        if self.session is not None:
            names = one.session.startswith(self.session) if self.is_prefix else one.session == self.session
            if not names:
                return False
        return (self.groups is None or one.group in self.groups) and self.since <= one.at and one[:2] < self.end


class SessionTotals(NamedTuple):
    """A session as its requests tell: when the first and the last began, in microseconds, and how many there were of
    each group."""

    session: str
    first_at: int
    last_at: int
    groups: dict[int, int]


class Size(NamedTuple):
    entries: int
    bytes: int
    oldest_at: int | None


By = Literal["time", "group"]


class History(ABC):
    """Entries, groups and sums. Every method may raise `StoreError`."""

    is_kept = True

    def __init__(self, settings: HistorySettings, clock: Clock) -> None:
        self._settings = settings
        self._clock = clock

    async def write(self, entries: Sequence[HistoryEntry]) -> None:
        """Keep entries, except those of people who were forgotten since."""
        marks = await self._marks()
        entries = [one for one in entries if not is_forgotten(one, marks)]
        if not entries:
            return
        await self._write(entries, {one.group.id: one.group for one in entries}, steps_of(entries))
        if (later := await self._marks()) != marks:  # forgotten meanwhile: this came too late to be found
            for tenant in {one.group.tenant for one in entries if is_forgotten(one, later)}:
                await self._erase(tenant)

    async def page(self, where: Where, limit: int) -> list[Kept]:
        """The newest entries that fit, newest first."""
        if where.groups is not None and not where.groups:
            return []
        return await self._newest(where, limit)

    async def forget(self, tenant: str) -> int:
        """Erase all of a tenant, and refuse what began until now and comes later. How many entries went."""
        await self._mark(tenant_digest(tenant), int(self._clock() * 1_000_000))
        return await self._erase(tenant)

    async def forgotten(self) -> Mapping[str, int]:
        """Digests of the tenants that were forgotten, and until when, in microseconds."""
        return await self._marks()

    async def clean(self) -> int:
        """Take out what is too old, and the oldest of what is too much. How many entries went."""
        now = self._clock()
        minutes = max(now - self._settings.ttl_seconds, now - MINUTES_KEPT_SECONDS)
        await self._clean_sums(MINUTE, int(minutes))
        for step in (HOUR, DAY):
            await self._clean_sums(step, int(now - self._settings.ttl_seconds) - step)
        return await self._clean(int((now - self._settings.ttl_seconds) * 1_000_000), self._settings.max_bytes)

    @abstractmethod
    async def open(self) -> None: ...

    @abstractmethod
    async def close(self) -> None: ...

    @abstractmethod
    async def groups(self) -> dict[int, Group]:
        """All that there are."""

    @abstractmethod
    async def find(self, id: str) -> Kept | None:
        """The newest entry whose id begins so."""

    @abstractmethod
    async def sums(self, step: int, since: int, until: int, groups: frozenset[int] | None, by: By) -> dict[int, Sums]:
        """Of the steps of this length that begin in a range of seconds, by when they begin or by their group."""

    @abstractmethod
    async def sessions(self, since: int, limit: int) -> list[SessionTotals]:
        """Those with the newest entries that began from then on, in microseconds."""

    @abstractmethod
    async def size(self) -> Size:
        """How much is kept."""

    @abstractmethod
    async def _write(
        self, entries: Sequence[HistoryEntry], groups: Mapping[int, Group], steps: Mapping[Step, Sums]
    ) -> None: ...

    @abstractmethod
    async def _newest(self, where: Where, limit: int) -> list[Kept]: ...

    @abstractmethod
    async def _mark(self, digest: str, at: int) -> None: ...

    @abstractmethod
    async def _marks(self) -> Mapping[str, int]: ...

    @abstractmethod
    async def _erase(self, tenant: str) -> int: ...

    @abstractmethod
    async def _clean(self, before: int, max_bytes: int) -> int: ...

    @abstractmethod
    async def _clean_sums(self, step: int, before: int) -> None: ...


class NoHistory(History):
    """Where the store keeps nothing beyond its process."""

    is_kept = False

    def __init__(self) -> None:
        super().__init__(HistorySettings(), lambda: 0.0)

    async def open(self) -> None:
        """Nothing to open."""

    async def close(self) -> None:
        """Nothing to close."""

    async def groups(self) -> dict[int, Group]:
        return {}

    async def find(self, id: str) -> Kept | None:
        return None

    async def sums(self, step: int, since: int, until: int, groups: frozenset[int] | None, by: By) -> dict[int, Sums]:
        return {}

    async def sessions(self, since: int, limit: int) -> list[SessionTotals]:
        return []

    async def size(self) -> Size:
        return Size(0, 0, None)

    async def _write(
        self, entries: Sequence[HistoryEntry], groups: Mapping[int, Group], steps: Mapping[Step, Sums]
    ) -> None:
        """Nowhere."""

    async def _newest(self, where: Where, limit: int) -> list[Kept]:
        return []

    async def _mark(self, digest: str, at: int) -> None:
        """Nothing comes later."""

    async def _marks(self) -> Mapping[str, int]:
        return {}

    async def _erase(self, tenant: str) -> int:
        return 0

    async def _clean(self, before: int, max_bytes: int) -> int:
        return 0

    async def _clean_sums(self, step: int, before: int) -> None:
        """There are none."""


def tenant_digest(tenant: str) -> str:
    """What a forgotten tenant is known by: its name is forgotten too."""
    return blake2b(tenant.encode("utf-8", "surrogatepass"), digest_size=16, person=b"tl forgotten").hexdigest()


def is_forgotten(one: HistoryEntry, marks: Mapping[str, int]) -> bool:
    return bool(marks) and one.at <= marks.get(tenant_digest(one.group.tenant), -1)


def steps_of(entries: Iterable[HistoryEntry]) -> dict[Step, Sums]:
    """What entries add to each step: hours and days are made of the minutes."""
    minutes: dict[tuple[int, Group], Sums] = {}
    for one in entries:
        place = one.at // 60_000_000, one.group
        known = minutes.get(place)
        if known is None:
            minutes[place] = copy(one.sums)
        else:
            known.add(one.sums)
    steps: dict[Step, Sums] = {}
    for (minute, group), sums in minutes.items():
        for length in STEPS:
            key = (length, minute * 60 // length * length, group.id)
            if key in steps:
                steps[key].add(sums)
            else:
                steps[key] = copy(sums)
    return steps


def merged(several: Iterable[Sequence[Kept]], limit: int) -> list[Kept]:
    """The newest of several lists."""
    every = [one for some in several for one in some]
    every.sort(key=lambda one: one[:2], reverse=True)
    return every[:limit]


def summed_sessions(rows: Sequence[tuple[str, int, int, int, int]], limit: int) -> list[SessionTotals]:
    """Sessions from their parts: session, group, first, last, number. Newest first."""
    found: dict[str, SessionTotals] = {}
    for session, group, first, last, count in rows:
        known = found.get(session, SessionTotals(session, first, last, {}))
        groups = known.groups | {group: known.groups.get(group, 0) + count}
        found[session] = SessionTotals(session, min(known.first_at, first), max(known.last_at, last), groups)
    return sorted(found.values(), key=lambda one: (-one.last_at, one.session))[:limit]
