"""`redis://` and `redis-cluster://`: Redis or Valkey, shared by replicas.

What belongs together is done by one script in the server, on keys that carry the tenant's hash tag. The names of all
tenants stand in one set. Our clock decides what has expired; the server's clock frees packed records by itself.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from typing import Any, TypeAlias

import msgspec
from redis.asyncio import Redis
from redis.asyncio.cluster import RedisCluster
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import NoScriptError, RedisError

from thoughtline.stores import redis_scripts as scripts
from thoughtline.stores.base import (
    DELETION_KEPT_SECONDS,
    MAX_PER_KEY,
    RENEW_AFTER,
    Clock,
    Deletion,
    Filter,
    Note,
    Saved,
    SessionSummary,
    Stats,
)
from thoughtline.stores.durable import DurableStore, PageRow
from thoughtline.stores.migrations import Migration, missing
from thoughtline.stores.packing import Packer
from thoughtline.stores.paging import decode_pair_cursor, encode_pair_cursor
from thoughtline.stores.redis_scripts import Script
from thoughtline.stores.rows import (
    Hit,
    Part,
    Row,
    call_digest,
    column,
    columns,
    is_barred,
    sum_parts,
)
from thoughtline.stores.settings import StoreSettings
from thoughtline.values.digests import named_digest
from thoughtline.values.errors import StoreUnavailable
from thoughtline.values.records import Key

Command: TypeAlias = tuple[Any, ...]
Client: TypeAlias = "Redis | RedisCluster"

MIGRATIONS = (Migration(1, "records by key", ()), Migration(2, "changes counted", ()))
"""Redis has no tables to make: a step is a layout that scripts of its number understand."""

STEP = 200
"""Records that one script looks at or drops: about a millisecond in which the server does nothing else."""

CONNECTIONS = 32
"""Requests of one process that are with the server at once; others wait here. The driver would refuse them."""

FAILURES = (RedisError, OSError, TimeoutError)

TENANTS = "thoughtline:tenants"
DELETIONS = "thoughtline:deletions"
LAYOUT = "thoughtline:layout"
KEY_CHECK = "thoughtline:key-check"
CLEANING = "thoughtline:cleaning"
NOTES = "thoughtline:notes:"


class RedisStore(DurableStore):
    """A Redis or Valkey server, or a cluster of them."""

    def __init__(self, client: Client, settings: StoreSettings, clock: Clock, packer: Packer) -> None:
        super().__init__(settings, clock, packer)
        self._client = client
        self._is_cluster = isinstance(client, RedisCluster)
        self._is_open = False
        self._free = asyncio.Semaphore(CONNECTIONS)
        self._repacking: set[asyncio.Task[object]] = set()

    @classmethod
    def at(cls, url: str, settings: StoreSettings, clock: Clock, packer: Packer) -> RedisStore:
        """A store at an address. Nothing is sent before `open`."""
        timeout = settings.timeout_seconds
        options: dict[str, Any] = {"socket_timeout": timeout, "socket_connect_timeout": timeout}
        options["retry"] = Retry(NoBackoff(), 1)  # once: a connection that was cut while nobody used it
        if url.startswith("redis-cluster://"):
            return cls(
                RedisCluster.from_url("redis" + url.removeprefix("redis-cluster"), **options), settings, clock, packer
            )
        return cls(Redis.from_url(url, **options), settings, clock, packer)

    async def open(self) -> None:
        if self._is_open:
            return
        await self._migrate()
        await self._check_key()
        self._is_open = True
        self._cleaner.start()

    async def close(self) -> None:
        await self._cleaner.stop()
        await asyncio.gather(*self._repacking, return_exceptions=True)
        self._is_open = False
        try:
            await self._client.aclose()
        except FAILURES as error:
            raise unavailable(error) from error

    async def _save(self, rows: list[Row], now: float) -> Saved:
        groups: dict[str, list[Row]] = {}
        for row in rows:
            groups.setdefault(row.tenant, []).append(row)
        oldest = min(row.created_at for row in rows)
        # In this order: a deletion either finds the tenant in the set, or its mark is found here and obeyed.
        commands: list[Command] = [("SADD", TENANTS, *groups)]
        commands += [self._save_command(tenant, group, now) for tenant, group in groups.items()]
        commands += [("ZRANGEBYSCORE", DELETIONS, f"({oldest!r}", repr(now))]
        *_, marks = await self._run(commands)
        if marks:
            await self._undo(rows, marks, now)
        return Saved.DURABLE

    async def expired(self, tenant: str, keys: Sequence[Key]) -> frozenset[Key]:
        """The server forgets what has expired by itself."""
        return frozenset()

    async def _find(self, tenant: str, digests: Iterable[bytes], now: float) -> list[Hit]:
        ttl = self._settings.ttl_seconds
        head = (repr(now), repr(ttl), self._ttl_ms, repr(ttl * (1 - RENEW_AFTER)), MAX_PER_KEY)
        (rows,) = await self._run([_call(scripts.FIND, tenant, *head, b"".join(digests))])
        hits = [Hit(row[0], row[1], row[2:]) for row in rows]
        self._repack(tenant, hits)
        return hits

    async def _changes(self, tenant: str) -> int:
        (count,) = await self._run([("GET", f"{_prefix(tenant)}g")])
        return int(count or 0)

    async def _page(self, where: Filter, cursor: str | None, limit: int) -> list[PageRow]:
        start = decode_pair_cursor(cursor)
        rows: list[tuple[float, bytes, float, bytes]] = []
        for tenant in await self._tenants(where):
            rows += await self._list_tenant(tenant, where, limit, start)
        rows.sort(key=lambda row: row[:2], reverse=True)
        return [(encode_pair_cursor(*row[:2]), *row[1:]) for row in rows[:limit]]

    async def _sessions(self, tenant: str | None, limit: int) -> tuple[SessionSummary, ...]:
        summaries: list[SessionSummary] = []
        for name in await self._tenants(Filter(tenant=tenant)):
            summaries += _summaries(name, await self._scopes(name))
        return tuple(sorted(summaries, key=lambda one: (-one.newest_at, one.tenant, one.session))[:limit])

    async def _delete(self, where: Filter, now: float) -> int:
        if where.tenant is None:
            await self._run([("ZADD", DELETIONS, repr(now), msgspec.json.encode(Deletion(where, now)))])
        else:  # cleaning comes to the tenants of the set, and has to forget the mark
            await self._run([("SADD", TENANTS, where.tenant)])
        gone = 0
        for tenant in await self._tenants(where):
            gone += await self._delete_tenant(tenant, where, now)
        return gone

    async def _stats(self) -> Stats:
        parts: list[Part] = []
        made: list[float] = []
        for tenant in await self._tenants(Filter()):
            for (_, provider, model), scope in (await self._scopes(tenant)).items():
                parts.append(Part(provider, model, int(scope["e"]), int(scope["c"]), int(scope["b"])))
            order = f"{_prefix(tenant)}o"
            ends = await self._run([("ZRANGE", order, at, at, "WITHSCORES") for at in (0, -1)])
            made += [_score(end) for end in ends if end]
        return sum_parts(parts, min(made, default=None), max(made, default=None))

    async def _clean(self, now: float) -> int:
        gone = 0
        tenants = await self._tenants(Filter())
        for tenant in tenants:
            step = _call(scripts.CLEAN, tenant, repr(now), repr(now - DELETION_KEPT_SECONDS), STEP)
            while dropped := int((await self._run([step]))[0]):
                gone += dropped
        await self._run([("ZREMRANGEBYSCORE", DELETIONS, "-inf", repr(now - DELETION_KEPT_SECONDS))])
        return gone + await self._evict(tenants)

    async def _take_turn(self, now: float, seconds: float, *, if_free: bool) -> bool:
        condition = ("NX",) if if_free else ()
        (taken,) = await self._run([("SET", CLEANING, 1, "PX", _milliseconds(seconds), *condition)])
        return taken is not None

    async def put_note(self, note: Note) -> None:
        await self._run([("HSET", NOTES + note.namespace, note.key, msgspec.json.encode(note))])

    async def notes(self, namespace: str) -> tuple[Note, ...]:
        now = self._clock()
        notes = await self._all_notes(namespace)
        expired = [note.key for note in notes if note.expires_at <= now]
        if expired:
            await self._run([("HDEL", NOTES + namespace, *expired)])
        return tuple(sorted((note for note in notes if note.expires_at > now), key=lambda note: note.key))

    async def delete_notes(self, namespace: str, key: str | None = None) -> int:
        keys = [note.key for note in await self._all_notes(namespace) if key in (None, note.key)]
        return int((await self._run([("HDEL", NOTES + namespace, *keys)]))[0]) if keys else 0

    @property
    def _ttl_ms(self) -> int:
        return _milliseconds(self._settings.ttl_seconds)

    async def _all_notes(self, namespace: str) -> list[Note]:
        (values,) = await self._run([("HVALS", NOTES + namespace)])
        return [msgspec.json.decode(value, type=Note) for value in values]

    def _save_command(self, tenant: str, rows: list[Row], now: float) -> Command:
        """One argument for all rows: the driver takes some microseconds for each."""
        times = (repr(now), repr(now + self._settings.ttl_seconds), self._ttl_ms)
        return _call(scripts.SAVE, tenant, *times, b"".join(map(_framed, rows)))

    async def _undo(self, rows: list[Row], marks: list[bytes], now: float) -> None:
        """Take out again what a deletion across tenants bars."""
        kept = [msgspec.json.decode(mark, type=Deletion) for mark in marks]
        deletions = [Deletion(columns(deletion.where), deletion.at) for deletion in kept]
        for row in rows:
            if is_barred(row, deletions, now):
                await self._run([_call(scripts.DROP, row.tenant, row.identity)])

    async def _delete_tenant(self, tenant: str, where: Filter, now: float) -> int:
        want = _want(where)
        (last,) = await self._run([_call(scripts.MARK, tenant, repr(now), *want)])
        gone, skip = 0, 0
        while skip >= 0:
            values = (last, *want, skip, STEP)
            ((dropped, skip),) = await self._run([_call(scripts.DELETE, tenant, *values)])
            gone += dropped
        return gone

    async def _evict(self, tenants: list[str]) -> int:
        """Drop what was used longest ago, of whichever tenant, while there is too much."""
        held = [sum(int(scope["b"]) for scope in (await self._scopes(tenant)).values()) for tenant in tenants]
        excess, gone = sum(held) - self._settings.max_bytes, 0
        while excess > 0:
            firsts = await self._run([("ZRANGE", f"{_prefix(name)}x", 0, 0, "WITHSCORES") for name in tenants])
            oldest = sorted((_score(first), name) for first, name in zip(firsts, tenants, strict=True) if first)
            if not oldest:
                break
            bound = repr(oldest[1][0]) if len(oldest) > 1 else "+inf"
            evict = _call(scripts.EVICT, oldest[0][1], excess, bound, STEP)
            ((dropped, freed),) = await self._run([evict])
            gone, excess = gone + dropped, excess - freed
        return gone

    async def _list_tenant(
        self, tenant: str, where: Filter, limit: int, start: tuple[float, bytes] | None
    ) -> list[tuple[float, bytes, float, bytes]]:
        rows: list[tuple[float, bytes, float, bytes]] = []
        top, beyond = (repr(start[0]), start[1]) if start else ("+inf", b"")
        while len(rows) < limit:
            values = (repr(self._clock()), *_want(where), limit - len(rows), top, beyond, STEP)
            ((part, last),) = await self._run([_call(scripts.LIST, tenant, *values)])
            rows += [(float(row[1]), row[0], float(row[2]), row[3]) for row in part]
            if not last:
                break
            top, beyond = last[0], last[1]
        return rows

    async def _tenants(self, where: Filter) -> list[str]:
        (names,) = await self._run([("SMEMBERS", TENANTS)])
        known = sorted(name.decode() for name in names)
        return known if where.tenant is None else [where.tenant]

    async def _scopes(self, tenant: str) -> dict[tuple[str, str, str], dict[str, float]]:
        """Session, provider and model, and what there is of it: entries, chars, bytes, the newest's time."""
        (pairs,) = await self._run([("HGETALL", f"{_prefix(tenant)}n")])
        scopes: dict[tuple[str, str, str], dict[str, float]] = {}
        for field, value in _pairs(pairs):
            scope = msgspec.json.decode(field[1:], type=tuple[str, str, str])
            scopes.setdefault(scope, {})[chr(field[0])] = float(value)
        return scopes

    def _repack(self, tenant: str, hits: list[Hit]) -> None:
        """A record under the previous key is packed anew by its first use."""
        packed = [(hit.identity, self._packer.repack(hit.data, hit.identity)) for hit in hits]
        commands = [_call(scripts.REPACK, tenant, identity, data) for identity, data in packed if data is not None]
        if commands:
            task: asyncio.Task[object] = asyncio.create_task(self._run(commands))
            self._repacking.add(task)
            task.add_done_callback(self._repacking.discard)

    async def _migrate(self) -> None:
        newest = MIGRATIONS[-1].number
        await self._run([("SET", LAYOUT, newest, "NX")])
        (version,) = await self._run([("GET", LAYOUT)])
        if missing(MIGRATIONS, int(version)):
            await self._run([("SET", LAYOUT, newest)])

    async def _check_key(self) -> None:
        await self._run([("SET", KEY_CHECK, self._packer.key_check(), "NX")])
        (kept,) = await self._run([("GET", KEY_CHECK)])
        self._packer.check(kept)
        if not self._packer.is_current(kept):
            await self._run([("SET", KEY_CHECK, self._packer.key_check())])

    async def _run(self, commands: list[Command]) -> list[Any]:
        """The answers, in order. A server that has lost its scripts gets them again."""
        try:
            return await self._send(commands)
        except NoScriptError:
            await self._load()
        except FAILURES as error:
            raise unavailable(error) from error
        try:
            return await self._send(commands)
        except FAILURES as error:
            raise unavailable(error) from error

    async def _send(self, commands: list[Command]) -> list[Any]:
        async with self._free:
            if self._is_cluster or len(commands) == 1:
                return [await self._client.execute_command(*command) for command in commands]
            return await self._send_together(commands)

    async def _send_together(self, commands: list[Command]) -> list[Any]:
        pipeline = self._client.pipeline(transaction=False)
        for command in commands:
            pipeline.execute_command(*command)
        return list(await pipeline.execute())

    async def _load(self) -> None:
        try:
            for script in scripts.ALL:
                await self._client.script_load(script.source)
        except FAILURES as error:
            raise unavailable(error) from error


def unavailable(error: Exception) -> StoreUnavailable:
    return StoreUnavailable(f"redis: {type(error).__name__}: {error}")


def _milliseconds(seconds: float) -> int:
    return max(1, int(seconds * 1000))


def _prefix(tenant: str) -> str:
    tag = named_digest(column(tenant), b"tl tenant").hex()
    return f"thoughtline:{{{tag}}}:"


def _call(script: Script, tenant: str, *values: Any) -> Command:
    prefix = _prefix(tenant)
    return "EVALSHA", script.sha, 1, f"{prefix}m", prefix, *values


def _framed(row: Row) -> bytes:
    """A row's members, each with its length before it, in the order in which the script reads them."""
    scope = msgspec.json.encode(row.scope[1:])
    numbers = [repr(number).encode() for number in (row.created_at, row.chars, row.size)]
    members = (row.identity, scope, *numbers, row.digests, row.data)
    return b"".join([part for member in members for part in (len(member).to_bytes(4, "little"), member)])


def _want(where: Filter) -> tuple[str | bytes, ...]:
    """A filter as the scripts read it: session, provider, model with `=` before it, the digest of a call id."""
    members = (where.session, where.provider, where.model)
    call = b"" if where.call_id is None else call_digest(where.call_id)
    return *("" if member is None else f"={member}" for member in members), call


def _pairs(answer: Any) -> list[tuple[bytes, bytes]]:
    """A hash, which one protocol version gives as a map and the other as a list."""
    return list(answer.items()) if isinstance(answer, dict) else list(zip(answer[::2], answer[1::2], strict=True))


def _score(answer: Any) -> float:
    """The score of the one member of a range: `[member, score]`, or `[[member, score]]` in the newer protocol."""
    return float(answer[0][1] if isinstance(answer[0], (list, tuple)) else answer[1])


def _summaries(tenant: str, scopes: dict[tuple[str, str, str], dict[str, float]]) -> list[SessionSummary]:
    groups: dict[str, list[dict[str, float]]] = {}
    for (session, _, _), scope in scopes.items():
        if session:
            groups.setdefault(session, []).append(scope)
    return [
        SessionSummary(
            tenant,
            session,
            sum(int(scope["e"]) for scope in group),
            sum(int(scope["c"]) for scope in group),
            max(scope["t"] for scope in group),
        )
        for session, group in groups.items()
    ]
