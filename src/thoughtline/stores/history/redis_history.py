"""Sorted sets by time in Redis or Valkey, all under one hash tag: of all entries, of each group, of each session.

Entries expire by themselves; the sets follow when they are cleaned. Memory is dear there, so no page needs more than
the ids it shows.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeAlias

import msgspec
from redis.asyncio import Redis
from redis.asyncio.cluster import RedisCluster

from thoughtline.stores.base import Clock
from thoughtline.stores.durable import wrap_failures
from thoughtline.stores.history.entries import (
    CLEANED_AT_ONCE,
    DAY,
    ENTRY_BYTES,
    HOUR,
    MINUTE,
    SUMMED,
    By,
    Group,
    History,
    HistoryEntry,
    HistorySettings,
    Kept,
    SessionTotals,
    Size,
    Step,
    Sums,
    Where,
    merged,
    summed_sessions,
)
from thoughtline.stores.redis import FAILURES, client_at
from thoughtline.stores.settings import StoreSettings

Command: TypeAlias = tuple[Any, ...]

PREFIX = "thoughtline:{history}:"
ALL, GROUPS, NAMES, FORGOTTEN, BYTES = (f"{PREFIX}{name}" for name in ("all", "groups", "names", "forgotten", "bytes"))
STEPS_KNOWN = f"{PREFIX}steps"

MAX_SESSIONS = 200
"""Sessions whose names begin alike that one page is made of."""

AT_ONCE = 500

_group = msgspec.json.Decoder(Group)
_entry = msgspec.msgpack.Decoder(tuple[int, int, str, bytes])


class RedisHistory(History):
    """In a Redis or Valkey server, or a cluster of them."""

    def __init__(self, url: str, store: StoreSettings, settings: HistorySettings, clock: Clock) -> None:
        super().__init__(settings, clock)
        kind = RedisCluster if url.startswith("redis-cluster://") else Redis
        self._client = client_at(kind, url, store, tries_again=1)

    async def open(self) -> None:
        await self._run([("EXISTS", ALL)])

    async def close(self) -> None:
        with wrap_failures("redis", FAILURES):
            await self._client.aclose()

    async def _run(self, commands: Sequence[Command]) -> list[Any]:
        """All in one exchange, done together."""
        if not commands:
            return []
        with wrap_failures("redis", FAILURES):
            pipeline = self._client.pipeline(transaction=isinstance(self._client, Redis))
            for command in commands:
                pipeline.execute_command(*command)
            found: list[Any] = await pipeline.execute()
        return found

    async def _write(
        self, entries: Sequence[HistoryEntry], groups: Mapping[int, Group], steps: Mapping[Step, Sums]
    ) -> None:
        ttl = max(1, int(self._settings.ttl_seconds))
        commands: list[Command] = [("HSET", GROUPS, key, msgspec.json.encode(one)) for key, one in groups.items()]
        size = 0
        for one in entries:
            group, name = one.group.id, one.id
            value = msgspec.msgpack.encode((one.at, group, one.session, one.data))
            size += len(value) + ENTRY_BYTES
            commands.append(("SET", _key("r", name), value, "EX", ttl + DAY))
            commands += [("ZADD", key, one.at, name) for key in _sets(group, one.session)]
            if one.session:
                commands += [("ZADD", NAMES, 0, one.session), ("EXPIRE", _key("n", one.session), ttl + DAY)]
        commands.append(("INCRBY", BYTES, size))
        for (length, at, group), sums in steps.items():
            key = _key("s", f"{length}:{at}")
            for number, value in enumerate(msgspec.structs.astuple(sums)):
                if value:
                    commands.append(("HINCRBYFLOAT", key, f"{group}:{number}", value))
            commands += [("EXPIRE", key, ttl + length), ("ZADD", STEPS_KNOWN, at, f"{length}:{at}")]
        await self._run(commands)

    async def groups(self) -> dict[int, Group]:
        (found,) = await self._run([("HGETALL", GROUPS)])
        return {int(group): _group.decode(names) for group, names in _pairs(found)}

    async def find(self, id: str) -> Kept | None:
        if len(id) == 16:
            found = await self._get([id])
            return found[0] if found else None
        # A beginning alone: among the newest.
        (names,) = await self._run([("ZREVRANGE", ALL, 0, 100_000)])
        fitting = next((name.decode() for name in names if name.decode().startswith(id)), None)
        found = await self._get([fitting]) if fitting is not None else []
        return found[0] if found else None

    async def _get(self, names: Sequence[str]) -> list[Kept]:
        values = await self._run([("GET", _key("r", name)) for name in names])
        found = []
        for name, value in zip(names, values, strict=True):
            if value is not None:
                at, group, session, data = _entry.decode(value)
                found.append(Kept(at, name, group, session, data))
        return found

    async def _newest(self, where: Where, limit: int) -> list[Kept]:
        if where.session is not None:
            keys = [_key("n", name) for name in await self._named(where)]
        else:
            keys = [ALL] if where.groups is None else [_key("g", str(group)) for group in where.groups]
        return merged([await self._newest_of(key, where, limit) for key in keys], limit)

    async def _newest_of(self, key: str, where: Where, limit: int) -> list[Kept]:
        found: list[Kept] = []
        start, last = 0, where.end[0]
        while len(found) < limit:
            (names,) = await self._run(
                [("ZREVRANGEBYSCORE", key, last, where.since, "LIMIT", start, max(limit + 1, AT_ONCE // 4))]
            )
            if not names:
                break
            start += len(names)
            found += [one for one in await self._get([name.decode() for name in names]) if where.fits(one)]
        return found[:limit]

    async def _named(self, where: Where) -> list[str]:
        assert where.session is not None
        if not where.is_prefix:
            return [where.session]
        start = f"[{where.session}".encode()
        (names,) = await self._run([("ZRANGEBYLEX", NAMES, start, start + b"\xff", "LIMIT", 0, MAX_SESSIONS)])
        return [name.decode() for name in names]

    async def sums(self, step: int, since: int, until: int, groups: frozenset[int] | None, by: By) -> dict[int, Sums]:
        times = range(-(-since // step) * step, until, step)
        values = await self._run([("HGETALL", _key("s", f"{step}:{at}")) for at in times])
        found: dict[int, list[float]] = {}
        for at, value in zip(times, values, strict=True):
            for name, number in _pairs(value):
                group, _, place = name.decode().partition(":")
                if groups is None or int(group) in groups:
                    known = found.setdefault(at if by == "time" else int(group), [0.0] * len(SUMMED))
                    known[int(place)] += float(number)
        make: Any = Sums
        kinds = [float if name.endswith("_ms") else round for name in SUMMED]
        return {
            key: make(*(kind(number) for kind, number in zip(kinds, numbers, strict=True)))
            for key, numbers in found.items()
        }

    async def sessions(self, since: int, limit: int) -> list[SessionTotals]:
        parts: list[tuple[str, int, int, int, int]] = []
        names: set[str] = set()
        start = 0
        while len(names) < limit:
            (some,) = await self._run([("ZREVRANGEBYSCORE", ALL, "+inf", since, "LIMIT", start, AT_ONCE)])
            if not some:
                break
            start += len(some)
            names |= {one.session for one in await self._get([name.decode() for name in some]) if one.session}
        for name in names:
            (ids,) = await self._run([("ZREVRANGEBYSCORE", _key("n", name), "+inf", since)])
            parts += [(name, one.group, one.at, one.at, 1) for one in await self._get([each.decode() for each in ids])]
        return summed_sessions(parts, limit)

    async def size(self) -> Size:
        count, size, oldest = await self._run([("ZCARD", ALL), ("GET", BYTES), ("ZRANGE", ALL, 0, 0, "WITHSCORES")])
        score = oldest[0][1] if oldest and isinstance(oldest[0], (list, tuple)) else oldest[1] if oldest else None
        return Size(count, int(size or 0), None if score is None else int(float(score)))

    async def _mark(self, digest: str, at: int) -> None:
        await self._run([("HSET", FORGOTTEN, digest, at)])

    async def _marks(self) -> Mapping[str, int]:
        (found,) = await self._run([("HGETALL", FORGOTTEN)])
        return {digest.decode(): int(at) for digest, at in _pairs(found)}

    async def _erase(self, tenant: str) -> int:
        ids = [key for key, group in (await self.groups()).items() if group.tenant == tenant]
        gone = 0
        for group in ids:
            (names,) = await self._run([("ZRANGE", _key("g", str(group)), 0, -1)])
            for start in range(0, len(names), AT_ONCE):
                gone += await self._drop([name.decode() for name in names[start : start + AT_ONCE]])
        (steps,) = await self._run([("ZRANGE", STEPS_KNOWN, 0, -1)])
        for step in steps:
            key = _key("s", step.decode())
            (fields,) = await self._run([("HKEYS", key)])
            theirs = [field for field in fields if int(field.decode().partition(":")[0]) in ids]
            if theirs:
                await self._run([("HDEL", key, *theirs)])
        if ids:
            await self._run([("HDEL", GROUPS, *ids), *(("DEL", _key("g", str(group))) for group in ids)])
        return gone

    async def _drop(self, names: Sequence[str]) -> int:
        """Take entries out of all sets."""
        found, size = await self._get(names), 0
        commands: list[Command] = []
        for one in found:
            size += len(one.data) + ENTRY_BYTES
            commands += [("ZREM", key, one.id) for key in _sets(one.group, one.session)]
        commands += [("ZREM", ALL, *names), *(("DEL", _key("r", name)) for name in names)]
        await self._run([*commands, ("DECRBY", BYTES, size)])
        sessions = sorted({one.session for one in found if one.session})
        left = await self._run([("EXISTS", _key("n", session)) for session in sessions])
        await self._run([("ZREM", NAMES, name) for name, is_there in zip(sessions, left, strict=True) if not is_there])
        return len(names)

    async def _clean(self, before: int, max_bytes: int) -> int:
        gone = 0
        while True:
            (names,) = await self._run([("ZRANGEBYSCORE", ALL, "-inf", f"({before}", "LIMIT", 0, AT_ONCE)])
            if not names:
                break
            gone += await self._drop([name.decode() for name in names])
        while gone < 50 * CLEANED_AT_ONCE:
            size, names = await self._run([("GET", BYTES), ("ZRANGE", ALL, 0, AT_ONCE // 10 - 1)])
            if int(size or 0) <= max_bytes or not names:
                break
            gone += await self._drop([name.decode() for name in names])
        await self._forget_expired(before)
        return gone

    async def _forget_expired(self, before: int) -> None:
        """Sets of entries that the server itself has let expire; their groups, if nothing is left of them."""
        groups = list((await self.groups()).keys())
        await self._run([("ZREMRANGEBYSCORE", _key("g", str(group)), "-inf", f"({before}") for group in groups])
        left = await self._run([("EXISTS", _key("g", str(group))) for group in groups])
        (steps,) = await self._run([("ZRANGE", STEPS_KNOWN, 0, -1)])
        gone = {group for group, is_there in zip(groups, left, strict=True) if not is_there}
        for step in steps if gone else ():
            (fields,) = await self._run([("HKEYS", _key("s", step.decode()))])
            gone -= {int(field.decode().partition(":")[0]) for field in fields}
        if gone:
            await self._run([("HDEL", GROUPS, *gone)])

    async def _clean_sums(self, step: int, before: int) -> None:
        assert step in (MINUTE, HOUR, DAY)
        (known,) = await self._run([("ZRANGEBYSCORE", STEPS_KNOWN, "-inf", f"({before}")])
        old = [name for name in known if name.startswith(f"{step}:".encode())]
        if old:
            await self._run([("ZREM", STEPS_KNOWN, *old), *(("DEL", _key("s", name.decode())) for name in old)])


def _key(kind: str, name: str) -> str:
    return f"{PREFIX}{kind}:{name}"


def _sets(group: int, session: str) -> list[str]:
    """The sets that an entry stands in."""
    return [ALL, _key("g", str(group)), *([_key("n", session)] if session else [])]


def _pairs(found: Any) -> Iterable[tuple[bytes, bytes]]:
    """Of a hash, as either version of the protocol gives it."""
    if isinstance(found, Mapping):
        return found.items()
    return zip(found[::2], found[1::2], strict=True)
