"""`postgresql://`: a database shared by replicas, through a connection pool.

A save is one call of a database function, a lookup of many keys one query. Messages between processes use `LISTEN` and
`NOTIFY`, which don't store them.
"""

from __future__ import annotations

import asyncio
import math
from base64 import b64decode, b64encode
from collections.abc import Awaitable, Callable, Iterable
from functools import partial
from typing import Any, TypeVar

import asyncpg
from msgspec.structs import astuple, replace

from thoughtline.stores.base import (
    DELETION_KEPT_SECONDS,
    MAIN,
    MAX_PER_KEY,
    Clock,
    Filter,
    Note,
    Saved,
    SessionPlace,
    SessionSummary,
    Stats,
    decode_cursor,
)
from thoughtline.stores.durable import DurableStore, OpeningRow, PageRow, Uses, wrap_failures
from thoughtline.stores.packing import Packer
from thoughtline.stores.postgres_schema import LOCK, connection_of, migrate
from thoughtline.stores.rows import Hit, Part, Row, call_digest, sum_parts
from thoughtline.stores.settings import StoreSettings
from thoughtline.values.errors import StoreUnavailable

Result = TypeVar("Result")

POOL = 8
"""Connections per process. A lookup uses one for about 0.1 ms: eight handle more lookups than one event loop can
start."""

STEP = 1000
"""Records removed per transaction of a long deletion."""

MAX_WAITING = 4096
"""Messages received and not yet read."""

_TOPIC = "thoughtline_"

_SAVE = "SELECT thoughtline.save($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)"

_FIND = f"""SELECT h.digests, r.seq, r.identity, r.expires_at, r.data
    FROM (SELECT l.record, array_agg(k.digest) AS digests FROM unnest($1::bytea[]) AS k (digest)
        CROSS JOIN LATERAL (SELECT record FROM thoughtline.lookups WHERE digest = k.digest
            ORDER BY record DESC LIMIT {MAX_PER_KEY}) AS l GROUP BY l.record) AS h
    JOIN thoughtline.records r ON r.seq = h.record WHERE r.expires_at > $2"""

_FITS = """(scope IN (SELECT id FROM thoughtline.scopes WHERE ($1::text IS NULL OR tenant = $1)
        AND ($2::text IS NULL OR provider = $2) AND ($3::text IS NULL OR model = $3)
        AND ($4::text IS NULL OR session = $4)))
    AND ($5::bytea IS NULL OR seq IN (SELECT record FROM thoughtline.lookups WHERE digest = $5))"""

_PAGE = f"""SELECT seq, identity, expires_at, data FROM thoughtline.records
    WHERE {_FITS} AND seq < $6 AND expires_at > $7 ORDER BY seq DESC LIMIT $8"""

_SESSIONS = """SELECT tenant, session, count(*), sum(chars), max(created_at) AS newest,
    array_agg(DISTINCT provider || '/' || model) AS models
    FROM thoughtline.records r JOIN thoughtline.scopes s ON s.id = r.scope
    WHERE session <> '' AND ($1::text IS NULL OR tenant = $1) GROUP BY 1, 2 ORDER BY newest DESC, 1, 2 LIMIT $2"""

_OPENINGS = """SELECT DISTINCT ON (s.tenant, s.session) s.tenant, s.session, r.identity, r.data
    FROM unnest($1::text[], $2::text[]) AS p (tenant, session) JOIN thoughtline.scopes s USING (tenant, session)
    CROSS JOIN LATERAL (SELECT seq, identity, data FROM thoughtline.records WHERE scope = s.id ORDER BY seq LIMIT 1) r
    ORDER BY s.tenant, s.session, r.seq"""

_STATS = """SELECT provider, model, count(*), sum(chars), sum(size), min(created_at), max(created_at)
    FROM thoughtline.records r JOIN thoughtline.scopes s ON s.id = r.scope GROUP BY 1, 2"""

_DELETE = f"""WITH gone AS (DELETE FROM thoughtline.records WHERE seq IN
        (SELECT seq FROM thoughtline.records WHERE {{chosen}} ORDER BY seq LIMIT {STEP} FOR UPDATE {{locked}})
        RETURNING seq, digests),
    pointers AS (DELETE FROM thoughtline.lookups l USING gone, generate_series(0, length(gone.digests) / 16 - 1) AS part
        WHERE l.record = gone.seq AND l.digest = substring(gone.digests FROM part * 16 + 1 FOR 16))
    SELECT count(*) FROM gone"""

_CLEAN = _DELETE.format(chosen="{chosen}", locked="SKIP LOCKED")

_RENEW = """UPDATE thoughtline.records SET expires_at = greatest(expires_at, $1) WHERE seq IN
    (SELECT seq FROM thoughtline.records WHERE seq = ANY ($2) ORDER BY seq FOR UPDATE)"""

_PUT_NOTE = """INSERT INTO thoughtline.notes VALUES ($1, $2, $3, $4) ON CONFLICT (namespace, key)
    DO UPDATE SET value = excluded.value, expires_at = excluded.expires_at"""

_NOTES = """SELECT namespace, key, value, expires_at FROM thoughtline.notes
    WHERE namespace = $1 AND expires_at > $2 ORDER BY key COLLATE "C" """

_DELETE_NOTES = """WITH gone AS (DELETE FROM thoughtline.notes WHERE namespace = $1 AND ($2::text IS NULL OR key = $2)
    RETURNING 1) SELECT count(*) FROM gone"""

_TAKE_TURN = """INSERT INTO thoughtline.facts AS f VALUES ('cleaned until', $1)
    ON CONFLICT (name) DO UPDATE SET value = excluded.value
    WHERE convert_from(f.value, 'UTF8')::float8 <= $2 RETURNING true"""

FAILURES = (
    asyncpg.PostgresError,
    asyncpg.InterfaceError,
    asyncpg.InternalClientError,
    OSError,
    TimeoutError,
    RuntimeError,
)
"""When the server dies in the middle of a query, asyncpg reports that another operation is in progress, and uvloop that
its transport is closed: neither is an error of the database or of the interface."""

_wrap_failures = partial(wrap_failures, "postgres", FAILURES)


class PostgresStore(DurableStore):
    """A store in a PostgreSQL database."""

    def __init__(self, url: str, settings: StoreSettings, clock: Clock, packer: Packer, name: str = MAIN) -> None:
        super().__init__(settings, clock, packer)
        self._url = url
        self._connection_class = asyncpg.Connection if name == MAIN else connection_of(f"{MAIN}_{name}")
        self._pool: asyncpg.Pool | None = None
        self._uses = Uses(packer, settings.ttl_seconds)

    async def open(self) -> None:
        if self._pool is not None:
            return
        timeout = self._settings.timeout_seconds
        times = {"timeout": timeout, "command_timeout": timeout}
        with _wrap_failures():
            pool = await asyncpg.create_pool(
                self._url,
                min_size=0,
                max_size=POOL,
                reset=_keep,
                connection_class=self._connection_class,
                **times,
            )
        try:
            await self._run_in(migrate, pool)
            await self._run_in(self._check_key, pool)
        except BaseException:
            pool.terminate()
            raise
        self._pool = pool
        self._cleaner.start()

    async def close(self) -> None:
        await self._cleaner.stop()
        pool, self._pool = self._pool, None
        if pool is not None:
            try:
                await self._run_in(self._flush, pool)
                async with asyncio.timeout(self._settings.timeout_seconds):
                    await pool.close()
            except (StoreUnavailable, TimeoutError):
                pool.terminate()

    async def _save(self, rows: list[Row], now: float) -> Saved:
        columns: list[list[Any]] = [
            [getattr(row, name) for row in rows]
            for name in (
                "identity", "tenant", "session", "provider", "model", "created_at", "chars", "size", "digests", "data",
            )
        ]  # fmt: skip  # column names, not lines
        await self._run("fetchval", _SAVE, *columns, now, now + self._settings.ttl_seconds)
        return Saved.DURABLE

    async def _find(self, tenant: str, digests: Iterable[bytes], now: float) -> list[Hit]:
        rows = await self._run("fetch", _FIND, list(digests), now)
        hits = [Hit(identity, data, by, seq, expires_at) for by, seq, identity, expires_at, data in rows]
        self._uses.note(hits, now)
        return hits

    async def _changes(self, tenant: str) -> int:
        """The changes of all tenants."""
        return int(await self._run("fetchval", "SELECT number FROM thoughtline.changes"))

    async def _page(self, where: Filter, cursor: str | None, limit: int) -> list[PageRow]:
        bounds = (decode_cursor(cursor), self._clock(), limit)
        rows = await self._run("fetch", _PAGE, *_values(where), *bounds)
        return [(str(seq), *rest) for seq, *rest in rows]

    async def _sessions(self, tenant: str | None, limit: int) -> tuple[SessionSummary, ...]:
        rows = await self._run("fetch", _SESSIONS, tenant, limit)
        return tuple(replace(SessionSummary(*row), models=tuple(sorted(row["models"]))) for row in rows)

    async def _openings(self, places: list[SessionPlace]) -> list[OpeningRow]:
        rows = await self._run("fetch", _OPENINGS, *map(list, zip(*places, strict=True)))
        return [((tenant, session), identity, data) for tenant, session, identity, data in rows]

    async def _delete(self, where: Filter, now: float) -> int:
        newest = await self._run_in(lambda connection: _mark(connection, where, now))
        chosen, values = f"seq <= $6 AND {_FITS}", (*_values(where), newest)
        gone = 0
        while await self._run("fetchval", f"SELECT EXISTS (SELECT 1 FROM thoughtline.records WHERE {chosen})", *values):
            gone += await self._run("fetchval", _DELETE.format(chosen=chosen, locked=""), *values)
        return gone

    async def _stats(self) -> Stats:
        rows = await self._run("fetch", _STATS)
        oldest, newest = min((row[5] for row in rows), default=None), max((row[6] for row in rows), default=None)
        return sum_parts([Part(*row[:5]) for row in rows], oldest, newest)

    async def _clean(self, now: float) -> int:
        await self._run_in(self._flush)
        gone = 0
        while some := await self._run("fetchval", _CLEAN.format(chosen="expires_at <= $1"), now):
            gone += some
        await self._run("execute", "DELETE FROM thoughtline.deletions WHERE at <= $1", now - DELETION_KEPT_SECONDS)
        await self._run("execute", "DELETE FROM thoughtline.notes WHERE expires_at <= $1", now)
        gone += await self._evict()
        if gone:
            await self._run_in(_forget_empty_scopes)
        return gone

    async def clean_in_turn(self) -> int:
        """Write this process's own uses, even when another process cleans."""
        await self._run_in(self._flush)
        return await super().clean_in_turn()

    async def _take_turn(self, now: float, seconds: float, *, if_free: bool) -> bool:
        until, free_at = repr(now + seconds).encode(), now if if_free else math.inf
        return await self._run("fetchval", _TAKE_TURN, until, free_at) is not None

    async def put_note(self, note: Note) -> None:
        await self._run("execute", _PUT_NOTE, *astuple(note))

    async def notes(self, namespace: str) -> tuple[Note, ...]:
        return tuple(Note(*row) for row in await self._run("fetch", _NOTES, namespace, self._clock()))

    async def delete_notes(self, namespace: str, key: str | None = None) -> int:
        return int(await self._run("fetchval", _DELETE_NOTES, namespace, key))

    async def _flush(self, connection: asyncpg.Connection | asyncpg.Pool) -> None:
        batch = self._uses.batch()
        if batch.renewals:
            await connection.execute(_RENEW, self._clock() + self._settings.ttl_seconds, batch.renewals)
        if batch.repacked:
            await connection.executemany("UPDATE thoughtline.records SET data = $2 WHERE seq = $1", batch.repacked)
        self._uses.settle(batch)

    async def _evict(self) -> int:
        """Remove the least recently used records until the store is within its size."""
        chosen = f"""seq IN (SELECT seq FROM (SELECT seq, sum(size) OVER (ORDER BY expires_at, seq) - size AS before
            FROM (SELECT seq, size, expires_at FROM thoughtline.records ORDER BY expires_at, seq LIMIT {STEP}) AS oldest
            ) AS summed WHERE before < $1)"""
        held, gone = "SELECT coalesce(sum(size), 0) FROM thoughtline.records", 0
        while (excess := await self._run("fetchval", held) - self._settings.max_bytes) > 0:
            dropped = await self._run("fetchval", _CLEAN.format(chosen=chosen), excess)
            if not dropped:
                break
            gone += dropped
        return gone

    async def _run(self, method: str, statement: str, *values: object) -> Any:
        return await self._run_in(lambda connection: getattr(connection, method)(statement, *values))

    async def _run_in(self, job: Callable[[Any], Awaitable[Result]], pool: asyncpg.Pool | None = None) -> Result:
        """Run a job on a connection of the store's pool, or of a pool that is being opened or closed."""
        pool = pool or self._pool
        if pool is None:
            raise StoreUnavailable("postgres: not open")
        with _wrap_failures():
            connection = await pool.acquire()
            try:
                return await job(connection)
            except (asyncio.CancelledError, TimeoutError, asyncpg.InternalClientError):
                # Returned in this state, asyncpg would wait as long again for the server to confirm that it has
                # stopped, or hand out an unusable connection.
                connection.terminate()
                raise
            finally:
                await pool.release(connection)

    async def _check_key(self, connection: asyncpg.Connection) -> None:
        await connection.execute(
            "INSERT INTO thoughtline.facts VALUES ('key check', $1) ON CONFLICT DO NOTHING", self._packer.key_check()
        )
        kept = await connection.fetchval("SELECT value FROM thoughtline.facts WHERE name = 'key check'")
        if not self._packer.check(kept):
            await connection.execute(
                "UPDATE thoughtline.facts SET value = $1 WHERE name = 'key check'", self._packer.key_check()
            )


class PostgresChannel:
    """One connection outside the pool. It does not work through a pooler that assigns connections per transaction.

    Messages are text of less than 8,000 bytes: base64 of three quarters of that.
    """

    max_bytes = 5800

    def __init__(self, url: str, settings: StoreSettings) -> None:
        self._url, self._timeout = url, settings.timeout_seconds
        self._connection: asyncpg.Connection | None = None
        self._messages: asyncio.Queue[tuple[str, bytes] | None] = asyncio.Queue()
        self._turn = asyncio.Lock()

    async def open(self) -> None:
        await self.close()
        self._messages = asyncio.Queue(MAX_WAITING)
        with _wrap_failures():
            self._connection = await asyncpg.connect(self._url, timeout=self._timeout, command_timeout=self._timeout)
        self._connection.add_termination_listener(self._cut)

    async def follow(self, topic: str) -> None:
        await self._send("add_listener", _TOPIC + topic, self._receive)

    async def leave(self, topic: str) -> None:
        await self._send("remove_listener", _TOPIC + topic, self._receive)

    async def publish(self, topic: str, message: bytes) -> None:
        await self._send("execute", "SELECT pg_notify($1, $2)", _TOPIC + topic, b64encode(message).decode())

    async def next(self) -> tuple[str, bytes]:
        message = await self._messages.get()
        if message is None:
            raise StoreUnavailable("postgres: the connection was cut")
        return message

    async def close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.remove_termination_listener(self._cut)
            connection.terminate()

    async def _send(self, method: str, *values: object) -> None:
        """Run one command at a time: a connection can't do more."""
        if self._connection is None:
            raise StoreUnavailable("postgres: not open")
        with _wrap_failures():
            async with self._turn:
                await getattr(self._connection, method)(*values)

    def _receive(self, connection: Any, process: int, channel: str, payload: str) -> None:
        if self._messages.full():
            self._cut(connection)  # on reconnecting, the reader asks for what it has missed
            return
        try:
            self._messages.put_nowait((channel.removeprefix(_TOPIC), b64decode(payload)))
        except ValueError:
            return  # not one of our messages

    def _cut(self, connection: Any) -> None:
        while self._messages.full():
            self._messages.get_nowait()
        self._messages.put_nowait(None)


async def _keep(connection: asyncpg.Connection) -> None:
    """Return the connection as it is: we change no settings on it, and asyncpg's reset costs a round trip."""


async def _mark(connection: asyncpg.Connection, where: Filter, now: float) -> int:
    """Note a deletion. Returns the number of the newest record that it can match."""
    async with connection.transaction():
        await connection.execute(f"SELECT pg_advisory_xact_lock({LOCK})")
        await connection.execute(
            """INSERT INTO thoughtline.deletions (at, tenant, provider, model, session, call_digest)
            VALUES ($1, $2, $3, $4, $5, $6)""",
            now,
            *_values(where),
        )
        newest = int(await connection.fetchval("SELECT coalesce(max(seq), 0) FROM thoughtline.records"))
        await connection.execute("UPDATE thoughtline.changes SET number = number + 1")
        return newest


async def _forget_empty_scopes(connection: asyncpg.Connection) -> None:
    """Remove empty scopes while no save, which could be about to use one, is running."""
    async with connection.transaction():
        await connection.execute(f"SELECT pg_advisory_xact_lock({LOCK})")
        await connection.execute(
            """DELETE FROM thoughtline.scopes s WHERE NOT EXISTS
            (SELECT 1 FROM thoughtline.records r WHERE r.scope = s.id)"""
        )


def _values(where: Filter) -> tuple[str | bytes | None, ...]:
    call = None if where.call_id is None else call_digest(where.call_id)
    return where.tenant, where.provider, where.model, where.session, call
