"""Tables of a schema of their own, `thoughtline_history`, in the database of the turns: replicas share them.

What processes write at the same moment is added by the database: an entry once, sums on top of each other.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, TypeVar

import asyncpg
import msgspec

from thoughtline.stores.base import Clock
from thoughtline.stores.durable import Migration, missing, wrap_failures
from thoughtline.stores.history.entries import (
    CLEANED_AT_ONCE,
    MAX_SCANNED_GROUPS,
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
    summed_sessions,
)
from thoughtline.stores.postgres import FAILURES
from thoughtline.stores.settings import StoreSettings

Result = TypeVar("Result")

POOL = 3
"""Connections of one process: one writes, and people look at a page or two."""

LOCK = 0x7468_6F75_6768_7410
"""Advisory lock of migrations."""

STATEMENT_SECONDS = 30.0
ENTRY_BYTES = 450
"""What an entry takes in its table and four indexes, without its data."""

_SCANNED = 2000
_SUMS = ", ".join(f"{name} {'float8' if name.endswith('_ms') else 'bigint'} NOT NULL" for name in SUMMED)
_TOTALS = ", ".join(f"sum({name})::{'float8' if name.endswith('_ms') else 'bigint'} AS {name}" for name in SUMMED)
_COLUMNS = "at, id, grp, session, data"

MIGRATIONS = (
    Migration(
        1,
        "entries, groups, sums",
        (
            """CREATE TABLE thoughtline_history.groups
                (id bigint PRIMARY KEY, tenant text NOT NULL, names bytea NOT NULL)""",
            """CREATE TABLE thoughtline_history.entries (at bigint NOT NULL, id text COLLATE "C" NOT NULL,
                grp bigint NOT NULL, session text COLLATE "C" NOT NULL, data bytea NOT NULL, PRIMARY KEY (at, id))""",
            "ALTER TABLE thoughtline_history.entries ALTER COLUMN data SET STORAGE EXTERNAL",
            "CREATE INDEX entries_by_group ON thoughtline_history.entries (grp, at, id)",
            "CREATE INDEX entries_by_id ON thoughtline_history.entries (id)",
            """CREATE INDEX entries_by_session ON thoughtline_history.entries (session, at, grp)
                WHERE session <> ''""",
            f"""CREATE TABLE thoughtline_history.sums (step integer NOT NULL, at bigint NOT NULL, grp bigint NOT NULL,
                {_SUMS}, PRIMARY KEY (step, at, grp))""",
            "CREATE TABLE thoughtline_history.forgotten (digest text PRIMARY KEY, at bigint NOT NULL)",
        ),
    ),
)

_ADD_GROUPS = """INSERT INTO thoughtline_history.groups SELECT * FROM unnest($1::bigint[], $2::text[], $3::bytea[])
    ORDER BY 1 ON CONFLICT DO NOTHING"""
_ADD = """INSERT INTO thoughtline_history.entries
    SELECT * FROM unnest($1::bigint[], $2::text[], $3::bigint[], $4::text[], $5::bytea[]) ON CONFLICT DO NOTHING"""
_ADD_SUMS = (
    f"INSERT INTO thoughtline_history.sums VALUES ({', '.join(f'${n + 1}' for n in range(3 + len(SUMMED)))}) "
    "ON CONFLICT (step, at, grp) DO UPDATE SET "
    + ", ".join(f"{name} = sums.{name} + excluded.{name}" for name in SUMMED)
)
_RANGE = "at >= $1 AND (at, id) < ($2, $3)"
_ORDER = "ORDER BY at DESC, id DESC"
_ALL = f"SELECT {_COLUMNS} FROM thoughtline_history.entries WHERE {_RANGE} {_ORDER}"
_OF_GROUPS = f"""SELECT e.* FROM unnest($4::bigint[]) AS g (id) CROSS JOIN LATERAL
    (SELECT {_COLUMNS} FROM thoughtline_history.entries WHERE grp = g.id AND {_RANGE} {_ORDER} LIMIT $5) AS e
    {_ORDER} LIMIT $5"""
_OF_SESSION = f"""SELECT {_COLUMNS} FROM thoughtline_history.entries
    WHERE session <> '' AND session >= $4 AND session < $5 AND {_RANGE} {_ORDER}"""
_SESSIONS = """WITH recent AS (SELECT session, max(at) AS last FROM thoughtline_history.entries
        WHERE session <> '' AND at >= $1 GROUP BY session ORDER BY last DESC LIMIT $2)
    SELECT session, grp, min(at), max(at), count(*) FROM thoughtline_history.entries JOIN recent USING (session)
    WHERE session <> '' AND at >= $1 GROUP BY session, grp"""
_OLDEST = """DELETE FROM thoughtline_history.entries WHERE (at, id) IN
    (SELECT at, id FROM thoughtline_history.entries WHERE at < $1 ORDER BY at, id LIMIT $2 FOR UPDATE SKIP LOCKED)"""
_EMPTY_GROUPS = """DELETE FROM thoughtline_history.groups g
    WHERE NOT EXISTS (SELECT 1 FROM thoughtline_history.entries WHERE grp = g.id)
    AND NOT EXISTS (SELECT 1 FROM thoughtline_history.sums WHERE grp = g.id)"""
_OF_TENANT = "grp IN (SELECT id FROM thoughtline_history.groups WHERE tenant = $1)"

_group = msgspec.json.Decoder(Group)


class PostgresHistory(History):
    """In a PostgreSQL database."""

    def __init__(self, url: str, store: StoreSettings, settings: HistorySettings, clock: Clock) -> None:
        super().__init__(settings, clock)
        self._url, self._timeout = url, store.timeout_seconds
        self._pool: asyncpg.Pool | None = None
        self._opening = asyncio.Lock()

    async def open(self) -> None:
        async with self._opening:
            if self._pool is not None:
                return
            with wrap_failures("postgres", FAILURES):
                pool = await asyncpg.create_pool(
                    self._url, min_size=0, max_size=POOL, timeout=self._timeout, command_timeout=STATEMENT_SECONDS
                )
                try:
                    async with pool.acquire() as connection:
                        await _migrate(connection)
                except BaseException:
                    pool.terminate()
                    raise
            self._pool = pool

    async def close(self) -> None:
        pool, self._pool = self._pool, None
        if pool is not None:
            try:
                async with asyncio.timeout(self._timeout):
                    await pool.close()
            except TimeoutError:
                pool.terminate()

    async def _run(self, job: Callable[[Any], Awaitable[Result]]) -> Result:
        if self._pool is None:
            await self.open()
        assert self._pool is not None
        with wrap_failures("postgres", FAILURES):
            async with self._pool.acquire() as connection:
                return await job(connection)

    async def _fetch(self, statement: str, *values: object) -> list[Any]:
        rows: list[Any] = await self._run(lambda connection: connection.fetch(statement, *values))
        return rows

    async def _execute(self, statement: str, *values: object) -> int:
        done: str = await self._run(lambda connection: connection.execute(statement, *values))
        return int(number) if (number := done.rpartition(" ")[2]).isdecimal() else 0

    async def _write(
        self, entries: Sequence[HistoryEntry], groups: Mapping[int, Group], steps: Mapping[Step, Sums]
    ) -> None:
        names = [(group, one.tenant, msgspec.json.encode(one)) for group, one in groups.items()]
        rows = [(one.at, one.id, one.group.id, one.session, one.data) for one in entries]
        # In one order: two processes that add to the same steps wait for each other, and never both.
        sums = [(*step, *msgspec.structs.astuple(steps[step])) for step in sorted(steps)]

        async def write(connection: Any) -> None:
            async with connection.transaction():
                await connection.execute(_ADD_GROUPS, *map(list, zip(*names, strict=True)))
                await connection.execute(_ADD, *map(list, zip(*rows, strict=True)))
                await connection.executemany(_ADD_SUMS, sums)

        await self._run(write)

    async def groups(self) -> dict[int, Group]:
        rows = await self._fetch("SELECT id, names FROM thoughtline_history.groups")
        return {group: _group.decode(names) for group, names in rows}

    async def find(self, id: str) -> Kept | None:
        statement = f"""SELECT {_COLUMNS} FROM thoughtline_history.entries WHERE id >= $1 AND id < $2
            ORDER BY at DESC LIMIT 1"""
        rows = await self._fetch(statement, id, id + "\U0010ffff")
        return Kept(*rows[0]) if rows else None

    async def _newest(self, where: Where, limit: int) -> list[Kept]:
        bounds = (where.since, *where.end)
        if where.session is None:
            if where.groups is None:
                return [Kept(*row) for row in await self._fetch(f"{_ALL} LIMIT $4", *bounds, limit)]
            if len(where.groups) <= MAX_SCANNED_GROUPS:
                return [Kept(*row) for row in await self._fetch(_OF_GROUPS, *bounds, sorted(where.groups), limit)]
            return await self._scanned(where, limit, _ALL, bounds)
        last = where.session + ("\U0010ffff" if where.is_prefix else "\x01")
        return await self._scanned(where, limit, _OF_SESSION, (*bounds, where.session, last))

    async def _scanned(self, where: Where, limit: int, statement: str, values: tuple[object, ...]) -> list[Kept]:
        """What fits of a long list, which is read in parts."""

        async def scan(connection: Any) -> list[Kept]:
            found: list[Kept] = []
            async with connection.transaction(readonly=True):
                async for row in connection.cursor(statement, *values, prefetch=_SCANNED):
                    one = Kept(*row)
                    if where.fits(one):
                        found.append(one)
                        if len(found) == limit:
                            break
            return found

        return await self._run(scan)

    async def sums(self, step: int, since: int, until: int, groups: frozenset[int] | None, by: By) -> dict[int, Sums]:
        key = "at" if by == "time" else "grp"
        statement = f"""SELECT {key}, {_TOTALS} FROM thoughtline_history.sums WHERE step = $1 AND at >= $2 AND at < $3
            AND ($4::bigint[] IS NULL OR grp = ANY ($4)) GROUP BY {key}"""
        rows = await self._fetch(statement, step, since, until, None if groups is None else sorted(groups))
        return {row[0]: Sums(*list(row)[1:]) for row in rows}

    async def sessions(self, since: int, limit: int) -> list[SessionTotals]:
        rows = await self._fetch(_SESSIONS, since, limit)
        return summed_sessions([tuple(row) for row in rows], limit)

    async def size(self) -> Size:
        count, oldest, size = (await self._fetch(
            """SELECT (SELECT count(*) FROM thoughtline_history.entries),
            (SELECT min(at) FROM thoughtline_history.entries),
            (SELECT sum(pg_total_relation_size(c.oid))::bigint FROM pg_class c JOIN pg_namespace n
                ON n.oid = c.relnamespace WHERE n.nspname = 'thoughtline_history' AND c.relkind = 'r')"""
        ))[0]  # fmt: skip  # one query, one line of values
        return Size(count, size, oldest)

    async def _mark(self, digest: str, at: int) -> None:
        await self._execute(
            """INSERT INTO thoughtline_history.forgotten VALUES ($1, $2) ON CONFLICT (digest)
            DO UPDATE SET at = greatest(forgotten.at, excluded.at)""",
            digest,
            at,
        )

    async def _marks(self) -> Mapping[str, int]:
        return {row[0]: row[1] for row in await self._fetch("SELECT digest, at FROM thoughtline_history.forgotten")}

    async def _erase(self, tenant: str) -> int:
        gone = await self._execute(f"DELETE FROM thoughtline_history.entries WHERE {_OF_TENANT}", tenant)
        await self._execute(f"DELETE FROM thoughtline_history.sums WHERE {_OF_TENANT}", tenant)
        await self._execute("DELETE FROM thoughtline_history.groups WHERE tenant = $1", tenant)
        for table in ("entries", "sums", "groups"):
            await self._execute(f"VACUUM thoughtline_history.{table}")
        return gone

    async def _clean(self, before: int, max_bytes: int) -> int:
        gone = 0
        while some := await self._execute(_OLDEST, before, CLEANED_AT_ONCE):
            gone += some
        # A table does not shrink when rows go: what counts is what its rows take.
        statement = f"""SELECT count(*), coalesce(sum(length(data) + 2 * length(session) + {ENTRY_BYTES}), 0)::bigint
            FROM thoughtline_history.entries"""
        count, size = (await self._fetch(statement))[0]
        left = count * (size - max_bytes) // size + 1 if size > max_bytes else 0
        while left > 0 and (some := await self._execute(_OLDEST, 2**62, min(left, CLEANED_AT_ONCE))):
            gone, left = gone + some, left - some
        if gone:
            await self._execute(_EMPTY_GROUPS)
        return gone

    async def _clean_sums(self, step: int, before: int) -> None:
        await self._execute("DELETE FROM thoughtline_history.sums WHERE step = $1 AND at < $2", step, before)


async def _migrate(connection: Any) -> None:
    """Bring the layout up to date. Of two processes that start at once, one waits for the other."""
    async with connection.transaction():
        await connection.execute("SELECT pg_advisory_xact_lock($1)", LOCK)
        await connection.execute("CREATE SCHEMA IF NOT EXISTS thoughtline_history")
        await connection.execute(
            "CREATE TABLE IF NOT EXISTS thoughtline_history.migrations (number integer PRIMARY KEY, name text NOT NULL)"
        )
        version = await connection.fetchval("SELECT coalesce(max(number), 0) FROM thoughtline_history.migrations")
        for step in missing(MIGRATIONS, version):
            for statement in step.statements:
                await connection.execute(statement)
            await connection.execute(
                "INSERT INTO thoughtline_history.migrations VALUES ($1, $2)", step.number, step.name
            )
