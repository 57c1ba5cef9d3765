"""`redis://` and `redis-cluster://`: Redis or Valkey, shared by replicas.

Changes that belong together are one script in the server, on keys with the tenant's hash tag. One set holds the names
of all tenants. Our clock decides what has expired; the server's own clock frees packed records. Messages between
processes use the server's publish and subscribe, which does not store them.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterable, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, TypeAlias

import msgspec
from redis.asyncio import Redis
from redis.asyncio.client import PubSub
from redis.asyncio.cluster import RedisCluster
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import NoScriptError, RedisError

from thoughtline.stores import redis_scripts as scripts
from thoughtline.stores.base import (
    DELETION_KEPT_SECONDS,
    MAIN,
    MAX_PER_KEY,
    RENEW_AFTER,
    Clock,
    Deletion,
    Filter,
    Note,
    Saved,
    SessionPlace,
    SessionSummary,
    Stats,
    sum_sessions,
)
from thoughtline.stores.durable import DurableStore, Migration, OpeningRow, PageRow, missing, wrap_failures
from thoughtline.stores.packing import Packer
from thoughtline.stores.rows import Hit, Part, Row, call_digest, column, columns, is_barred, sum_parts
from thoughtline.stores.settings import StoreSettings
from thoughtline.values.digests import named_digest
from thoughtline.values.errors import StoreRefused
from thoughtline.values.records import Key

Command: TypeAlias = tuple[Any, ...]

MIGRATIONS = (Migration(1, "records by key", ()), Migration(2, "changes counted", ()))
"""Redis has no tables: a migration is a layout that the scripts of its number understand."""

STEP = 200
"""Records that one script reads or drops: about a millisecond, in which the server does nothing else."""

CONNECTIONS = 32
"""Concurrent requests of one process. The driver would refuse more, so others wait here."""

WAIT_SECONDS = 60.0
"""How long one read for messages waits; the next begins at once."""

FAILURES = (RedisError, OSError, TimeoutError, RuntimeError)
"""uvloop's transports raise RuntimeError when they are closed."""

_wrap_failures = partial(wrap_failures, "redis", FAILURES)


class Names:
    """What the keys of a store are called; all of them begin with its name."""

    def __init__(self, store: str = MAIN) -> None:
        self.store = store
        self.tenants, self.deletions = f"{store}:tenants", f"{store}:deletions"
        self.layout, self.key_check = f"{store}:layout", f"{store}:key-check"
        self.cleaning, self.notes = f"{store}:cleaning", f"{store}:notes:"

    def prefix(self, tenant: str) -> str:
        """How those of a tenant begin, with its hash tag."""
        tag = named_digest(column(tenant), b"tl tenant").hex()
        return f"{self.store}:{{{tag}}}:"

    def call(self, script: str, tenant: str, *values: Any) -> Command:
        prefix = self.prefix(tenant)
        return "EVALSHA", scripts.sha(script), 1, f"{prefix}m", prefix, *values


NAMES = Names()
"""Of the store of turns."""

_CURSOR = re.compile(r"(\d{1,15}(?:\.\d{1,20})?):((?:[0-9a-f]{2}){1,64})", re.ASCII)


class RedisStore(DurableStore):
    """A store in a Redis or Valkey server, or a cluster of them."""

    def __init__(self, url: str, settings: StoreSettings, clock: Clock, packer: Packer, name: str = MAIN) -> None:
        super().__init__(settings, clock, packer)
        self._names = Names(MAIN if name == MAIN else f"{MAIN}_{name}")
        self._is_cluster = url.startswith("redis-cluster://")
        # One retry, for a connection that was cut while it was idle.
        self._client = _client(RedisCluster if self._is_cluster else Redis, url, settings, tries_again=1)
        self._ttl_ms = _milliseconds(settings.ttl_seconds)
        self._is_open = False
        self._free = asyncio.Semaphore(CONNECTIONS)
        self._repacking: set[asyncio.Task[object]] = set()

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
        with _wrap_failures():
            await self._client.aclose()

    async def _save(self, rows: list[Row], now: float) -> Saved:
        groups: dict[str, list[Row]] = {}
        for row in rows:
            groups.setdefault(row.tenant, []).append(row)
        oldest = min(row.created_at for row in rows)
        # In this order: a deletion either finds the tenant in the set, or its mark is found here and applied.
        commands: list[Command] = [("SADD", self._names.tenants, *groups)]
        commands += [self._save_command(tenant, group, now) for tenant, group in groups.items()]
        commands += [("ZRANGEBYSCORE", self._names.deletions, f"({oldest!r}", repr(now))]
        *_, marks = await self._run(commands)
        if marks:
            await self._undo(rows, marks, now)
        return Saved.DURABLE

    async def expired(self, tenant: str, keys: Sequence[Key]) -> frozenset[Key]:
        """The server itself forgets expired records."""
        return frozenset()

    async def _find(self, tenant: str, digests: Iterable[bytes], now: float) -> list[Hit]:
        ttl = self._settings.ttl_seconds
        head = (repr(now), repr(ttl), self._ttl_ms, repr(ttl * (1 - RENEW_AFTER)), MAX_PER_KEY)
        (rows,) = await self._run([self._names.call(scripts.FIND, tenant, *head, b"".join(digests))])
        hits = [Hit(row[0], row[1], row[2:]) for row in rows]
        self._repack(tenant, hits)
        return hits

    async def _changes(self, tenant: str) -> int:
        (count,) = await self._run([("GET", f"{self._names.prefix(tenant)}g")])
        return int(count or 0)

    async def _page(self, where: Filter, cursor: str | None, limit: int) -> list[PageRow]:
        start = decode_cursor(cursor)
        rows: list[tuple[float, bytes, float, bytes]] = []
        for tenant in await self._tenants(where.tenant):
            rows += await self._list_tenant(tenant, where, limit, start)
        rows.sort(key=lambda row: row[:2], reverse=True)
        return [(encode_cursor(*row[:2]), *row[1:]) for row in rows[:limit]]

    async def _sessions(self, tenant: str | None, limit: int) -> tuple[SessionSummary, ...]:
        parts = [
            SessionSummary(name, session, int(scope["e"]), int(scope["c"]), scope["t"], models=(f"{provider}/{model}",))
            for name in await self._tenants(tenant)
            for (session, provider, model), scope in (await self._scopes(name)).items()
        ]
        return sum_sessions(parts, limit)

    async def _openings(self, places: list[SessionPlace]) -> list[OpeningRow]:
        rows: list[OpeningRow] = []
        for tenant in dict.fromkeys(tenant for tenant, _ in places):
            sessions, skip = {session for name, session in places if name == tenant}, 0
            while skip >= 0 and sessions:
                wanted = msgspec.json.encode(sorted(sessions))
                ((found, skip),) = await self._run([self._names.call(scripts.OPENINGS, tenant, wanted, skip, STEP)])
                for session, identity, data in found:
                    sessions.discard(session.decode())
                    rows.append(((tenant, session.decode()), identity, data))
        return rows

    async def _delete(self, where: Filter, now: float) -> int:
        if where.tenant is None:
            await self._run([("ZADD", self._names.deletions, repr(now), msgspec.json.encode(Deletion(where, now)))])
        else:  # cleaning visits the tenants of the set, and has to remove the mark
            await self._run([("SADD", self._names.tenants, where.tenant)])
        gone = 0
        for tenant in await self._tenants(where.tenant):
            gone += await self._delete_tenant(tenant, where, now)
        return gone

    async def _stats(self) -> Stats:
        parts: list[Part] = []
        made: list[float] = []
        for tenant in await self._tenants():
            for (_, provider, model), scope in (await self._scopes(tenant)).items():
                parts.append(Part(provider, model, int(scope["e"]), int(scope["c"]), int(scope["b"])))
            order = f"{self._names.prefix(tenant)}o"
            ends = await self._run([("ZRANGE", order, at, at, "WITHSCORES") for at in (0, -1)])
            made += [_score(end) for end in ends if end]
        return sum_parts(parts, min(made, default=None), max(made, default=None))

    async def _clean(self, now: float) -> int:
        gone = 0
        tenants = await self._tenants()
        for tenant in tenants:
            step = self._names.call(scripts.CLEAN, tenant, repr(now), repr(now - DELETION_KEPT_SECONDS), STEP)
            while dropped := int((await self._run([step]))[0]):
                gone += dropped
        await self._run([("ZREMRANGEBYSCORE", self._names.deletions, "-inf", repr(now - DELETION_KEPT_SECONDS))])
        return gone + await self._evict(tenants)

    async def _take_turn(self, now: float, seconds: float, *, if_free: bool) -> bool:
        condition = ("NX",) if if_free else ()
        (taken,) = await self._run([("SET", self._names.cleaning, 1, "PX", _milliseconds(seconds), *condition)])
        return taken is not None

    async def put_note(self, note: Note) -> None:
        await self._run([("HSET", self._names.notes + note.namespace, note.key, msgspec.json.encode(note))])

    async def notes(self, namespace: str) -> tuple[Note, ...]:
        now = self._clock()
        notes = await self._all_notes(namespace)
        expired = [note.key for note in notes if note.expires_at <= now]
        if expired:
            await self._run([("HDEL", self._names.notes + namespace, *expired)])
        return tuple(sorted((note for note in notes if note.expires_at > now), key=lambda note: note.key))

    async def delete_notes(self, namespace: str, key: str | None = None) -> int:
        keys = [note.key for note in await self._all_notes(namespace) if key in (None, note.key)]
        return int((await self._run([("HDEL", self._names.notes + namespace, *keys)]))[0]) if keys else 0

    async def _all_notes(self, namespace: str) -> list[Note]:
        (values,) = await self._run([("HVALS", self._names.notes + namespace)])
        return [msgspec.json.decode(value, type=Note) for value in values]

    def _save_command(self, tenant: str, rows: list[Row], now: float) -> Command:
        """Build the command for one tenant. All rows are one argument: the driver takes some microseconds per
        argument."""
        times = (repr(now), repr(now + self._settings.ttl_seconds), self._ttl_ms)
        return self._names.call(scripts.SAVE, tenant, *times, b"".join(map(_framed, rows)))

    async def _undo(self, rows: list[Row], marks: list[bytes], now: float) -> None:
        """Remove rows again that a deletion across tenants matches."""
        kept = [msgspec.json.decode(mark, type=Deletion) for mark in marks]
        deletions = [Deletion(columns(deletion.where), deletion.at) for deletion in kept]
        barred = [row for row in rows if is_barred(row, deletions, now)]
        await self._run([self._names.call(scripts.DROP, row.tenant, row.identity) for row in barred])

    async def _delete_tenant(self, tenant: str, where: Filter, now: float) -> int:
        want = _want(where)
        (last,) = await self._run([self._names.call(scripts.MARK, tenant, repr(now), *want)])
        gone, skip = 0, 0
        while skip >= 0:
            values = (last, *want, skip, STEP)
            ((dropped, skip),) = await self._run([self._names.call(scripts.DELETE, tenant, *values)])
            gone += dropped
        return gone

    async def _evict(self, tenants: list[str]) -> int:
        """Remove the least recently used records of all tenants until the store is within its size."""
        held = [sum(int(scope["b"]) for scope in (await self._scopes(tenant)).values()) for tenant in tenants]
        excess, gone = sum(held) - self._settings.max_bytes, 0
        while excess > 0:
            firsts = await self._run(
                [("ZRANGE", f"{self._names.prefix(name)}x", 0, 0, "WITHSCORES") for name in tenants]
            )
            oldest = sorted((_score(first), name) for first, name in zip(firsts, tenants, strict=True) if first)
            if not oldest:
                break
            bound = repr(oldest[1][0]) if len(oldest) > 1 else "+inf"
            evict = self._names.call(scripts.EVICT, oldest[0][1], excess, bound, STEP)
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
            ((part, last),) = await self._run([self._names.call(scripts.LIST, tenant, *values)])
            rows += [(float(row[1]), row[0], float(row[2]), row[3]) for row in part]
            if not last:
                break
            top, beyond = last[0], last[1]
        return rows

    async def _tenants(self, tenant: str | None = None) -> list[str]:
        """Return the given tenant, or all."""
        if tenant is not None:
            return [tenant]
        (names,) = await self._run([("SMEMBERS", self._names.tenants)])
        return sorted(name.decode() for name in names)

    async def _scopes(self, tenant: str) -> dict[tuple[str, str, str], dict[str, float]]:
        """Return counts by session, provider and model: entries, chars, bytes, time of the newest."""
        (counts,) = await self._run([("HGETALL", f"{self._names.prefix(tenant)}n")])
        scopes: dict[tuple[str, str, str], dict[str, float]] = {}
        for field, value in counts.items():
            scope = msgspec.json.decode(field[1:], type=tuple[str, str, str])
            scopes.setdefault(scope, {})[chr(field[0])] = float(value)
        return scopes

    def _repack(self, tenant: str, hits: list[Hit]) -> None:
        """Repack records with the previous key in the background."""
        packed = [(hit.identity, self._packer.repack(hit.data, hit.identity)) for hit in hits]
        commands = [
            self._names.call(scripts.REPACK, tenant, identity, data) for identity, data in packed if data is not None
        ]
        if commands:
            task: asyncio.Task[object] = asyncio.create_task(self._run(commands))
            self._repacking.add(task)
            task.add_done_callback(self._repacking.discard)

    async def _migrate(self) -> None:
        newest = MIGRATIONS[-1].number
        await self._run([("SET", self._names.layout, newest, "NX")])
        (version,) = await self._run([("GET", self._names.layout)])
        if missing(MIGRATIONS, int(version)):
            await self._run([("SET", self._names.layout, newest)])

    async def _check_key(self) -> None:
        await self._run([("SET", self._names.key_check, self._packer.key_check(), "NX")])
        (kept,) = await self._run([("GET", self._names.key_check)])
        if not self._packer.check(kept):
            await self._run([("SET", self._names.key_check, self._packer.key_check())])

    async def _run(self, commands: list[Command]) -> list[Any]:
        """Run commands and return their answers in order. If the server has lost its scripts, load them again."""
        with _wrap_failures():
            try:
                return await self._send(commands)
            except NoScriptError:
                await self._load()
                return await self._send(commands)

    async def _send(self, commands: list[Command]) -> list[Any]:
        async with self._free:
            if self._is_cluster or len(commands) == 1:
                return [await self._client.execute_command(*command) for command in commands]
            pipeline = self._client.pipeline(transaction=False)
            for command in commands:
                pipeline.execute_command(*command)
            return list(await pipeline.execute())

    async def _load(self) -> None:
        for script in scripts.ALL:
            await self._client.script_load(scripts.source(script))


class RedisChannel:
    """Topics include the database number, because messages are published to all databases. In a cluster a message
    reaches every node, so one connection to the node of the address is enough."""

    max_bytes = 48 * 2**10

    def __init__(self, url: str, settings: StoreSettings) -> None:
        # No retries: messages that were missed in the meantime must be asked for.
        self._client = _client(Redis, url, settings, tries_again=0)
        self._prefix = f"thoughtline:{self._client.connection_pool.connection_kwargs.get('db') or 0}:"
        self._pubsub: PubSub | None = None

    async def open(self) -> None:
        await self.close()
        pubsub = self._client.pubsub(ignore_subscribe_messages=True)
        with _wrap_failures():
            await pubsub.connect()
        self._pubsub = pubsub

    async def follow(self, topic: str) -> None:
        assert self._pubsub is not None
        with _wrap_failures():
            await self._pubsub.subscribe(self._prefix + topic)

    async def leave(self, topic: str) -> None:
        assert self._pubsub is not None
        with _wrap_failures():
            await self._pubsub.unsubscribe(self._prefix + topic)

    async def publish(self, topic: str, message: bytes) -> None:
        with _wrap_failures():
            await self._client.publish(self._prefix + topic, message)

    async def next(self) -> tuple[str, bytes]:
        assert self._pubsub is not None
        message = None
        with _wrap_failures():
            while message is None:
                message = await self._pubsub.get_message(timeout=WAIT_SECONDS)
        return message["channel"].decode().removeprefix(self._prefix), message["data"]

    async def close(self) -> None:
        pubsub, self._pubsub = self._pubsub, None
        with suppress(*FAILURES):
            if pubsub is not None:
                await pubsub.aclose()  # type: ignore[no-untyped-call]  # the driver has no types there
            await self._client.aclose()


def _client(kind: type[Redis] | type[RedisCluster], url: str, settings: StoreSettings, *, tries_again: int) -> Any:
    """Make a client for an address. Sends nothing yet. Raises `StoreRefused` for options that the driver does not
    know."""
    timeout, retry = settings.timeout_seconds, Retry(NoBackoff(), tries_again)
    address = url.replace("redis-cluster:", "redis:", 1)
    try:
        client = kind.from_url(address, socket_timeout=timeout, socket_connect_timeout=timeout, retry=retry)
        if isinstance(client, Redis):
            pool: Any = client.connection_pool
            pool.make_connection()  # reads the options without opening a connection
    except TypeError as error:
        option = str(error).rpartition(" ")[2]
        raise StoreRefused(f"the address of the Redis store has an unknown option {option}") from None
    return client


def _milliseconds(seconds: float) -> int:
    return max(1, int(seconds * 1000))


def _framed(row: Row) -> bytes:
    """Encode a row's members in the order of the script, each after its length."""
    scope = msgspec.json.encode(row.scope[1:])
    numbers = [repr(number).encode() for number in (row.created_at, row.chars, row.size)]
    members = (row.identity, scope, *numbers, row.digests, row.data)
    return b"".join([part for member in members for part in (len(member).to_bytes(4, "little"), member)])


def _want(where: Filter) -> tuple[str | bytes, ...]:
    """Encode a filter for the scripts: session, provider and model after a `=`, and the digest of a call id."""
    members = (where.session, where.provider, where.model)
    call = b"" if where.call_id is None else call_digest(where.call_id)
    return *("" if member is None else f"={member}" for member in members), call


def _score(answer: Any) -> float:
    """Return the score of the only member of a range: `[member, score]`, or `[[member, score]]` in the newer
    protocol."""
    return float(answer[0][1] if isinstance(answer[0], (list, tuple)) else answer[1])


def encode_cursor(created_at: float, identity: bytes) -> str:
    return f"{created_at!r}:{identity.hex()}"


def decode_cursor(text: str | None) -> tuple[float, bytes] | None:
    """Decode a cursor. Raises for text that is not from a page."""
    if text is None:
        return None
    found = _CURSOR.fullmatch(text)
    if found is None:
        raise StoreRefused("this cursor belongs to no page")
    return float(found[1]), bytes.fromhex(found[2])
