"""The PostgreSQL layout and its migrations. Everything is in one schema, `thoughtline`; a store of another name has a
schema of its own, and its connections put that name into each statement.

A save takes a shared lock; a deletion takes it exclusively for the moment in which it writes its mark. So a save either
ends before the mark, and the deletion sees its records, or begins after it and sees the mark.
"""

from __future__ import annotations

from typing import Any

import asyncpg

from thoughtline.stores.durable import Migration, missing

LOCK = 0x7468_6F75_6768_7401
"""Advisory lock of saves and deletions. The next number is the lock of migrations."""

LINEAGES = 0x7468_6F75
"""First half of the advisory locks of lineages: of two saves in one lineage, the later sees the earlier."""

MIGRATION_SECONDS = 600.0
"""Time limit for one statement of a migration, or for waiting for another process that migrates: large tables take
long."""

MIGRATIONS = (
    Migration(
        1,
        "records by key",
        (
            """CREATE TABLE thoughtline.scopes (
                id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, tenant text NOT NULL, session text NOT NULL,
                provider text NOT NULL, model text NOT NULL, UNIQUE (tenant, session, provider, model))""",
            """CREATE TABLE thoughtline.records (
                seq bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, identity bytea NOT NULL UNIQUE,
                scope bigint NOT NULL, created_at float8 NOT NULL, expires_at float8 NOT NULL,
                chars integer NOT NULL, size integer NOT NULL, digests bytea NOT NULL, data bytea NOT NULL)""",
            "ALTER TABLE thoughtline.records ALTER COLUMN data SET STORAGE EXTERNAL",
            "CREATE INDEX records_by_scope ON thoughtline.records (scope, seq) INCLUDE (chars, size, created_at)",
            "CREATE INDEX records_by_expiry ON thoughtline.records (expires_at)",
            """CREATE TABLE thoughtline.lookups (
                digest bytea NOT NULL, record bigint NOT NULL, PRIMARY KEY (digest, record))""",
            """CREATE TABLE thoughtline.deletions (
                seq bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, at float8 NOT NULL, tenant text, provider text,
                model text, session text, call_digest bytea)""",
            "CREATE INDEX deletions_by_time ON thoughtline.deletions (at)",
        ),
    ),
    Migration(
        2,
        "notes, and the check of the encryption key",
        (
            """CREATE TABLE thoughtline.notes (
                namespace text, key text, value bytea NOT NULL, expires_at float8 NOT NULL,
                PRIMARY KEY (namespace, key))""",
            "CREATE TABLE thoughtline.facts (name text PRIMARY KEY, value bytea NOT NULL)",
        ),
    ),
    Migration(
        3,
        "saving in one call",
        (
            f"""CREATE FUNCTION thoughtline.save(
                identities bytea[], tenants text[], sessions text[], providers text[], models text[],
                created float8[], chars_of integer[], sizes integer[], digests_of bytea[], bodies bytea[],
                now_at float8, expires float8) RETURNS void LANGUAGE plpgsql AS $$
            BEGIN
                PERFORM pg_advisory_xact_lock_shared({LOCK});
                INSERT INTO thoughtline.scopes (tenant, session, provider, model)
                    SELECT DISTINCT t, s, p, m FROM unnest(tenants, sessions, providers, models) AS i (t, s, p, m)
                    WHERE NOT EXISTS (SELECT 1 FROM thoughtline.scopes WHERE (tenant, session, provider, model)
                        = (t, s, p, m))
                    ORDER BY 1, 2, 3, 4 ON CONFLICT DO NOTHING;
                WITH incoming AS (
                    SELECT i.*, s.id AS scope
                    FROM unnest(identities, tenants, sessions, providers, models, created, chars_of, sizes,
                        digests_of, bodies) AS i (identity, tenant, session, provider, model, created_at, chars,
                        size, digests, data)
                    JOIN thoughtline.scopes s USING (tenant, session, provider, model)
                    WHERE NOT EXISTS (SELECT 1 FROM thoughtline.deletions d
                        WHERE d.at > i.created_at AND d.at <= now_at
                        AND (d.tenant IS NULL OR d.tenant = i.tenant)
                        AND (d.provider IS NULL OR d.provider = i.provider)
                        AND (d.model IS NULL OR d.model = i.model)
                        AND (d.session IS NULL OR d.session = i.session)
                        AND (d.call_digest IS NULL OR position(d.call_digest IN i.digests) > 0))
                ), written AS (
                    INSERT INTO thoughtline.records
                        (identity, scope, created_at, expires_at, chars, size, digests, data)
                    SELECT identity, scope, created_at, expires, chars, size, digests, data FROM incoming
                        ORDER BY created_at, identity
                    ON CONFLICT (identity) DO UPDATE
                        SET expires_at = greatest(records.expires_at, excluded.expires_at)
                    RETURNING seq, digests
                )
                INSERT INTO thoughtline.lookups (digest, record)
                    SELECT substring(digests FROM part * 16 + 1 FOR 16), seq
                    FROM written, generate_series(0, length(digests) / 16 - 1) AS part
                    ON CONFLICT DO NOTHING;
            END $$""",
        ),
    ),
    # The count is changed by the last statement of a transaction, so the transaction that locks its row waits for no
    # other.
    Migration(
        4,
        "changes counted",
        (
            "CREATE TABLE thoughtline.changes (number bigint NOT NULL)",
            "INSERT INTO thoughtline.changes VALUES (0)",
            """CREATE FUNCTION thoughtline.count_gone() RETURNS trigger LANGUAGE plpgsql AS $$
            BEGIN
                IF EXISTS (SELECT 1 FROM gone) THEN UPDATE thoughtline.changes SET number = number + 1; END IF;
                RETURN NULL;
            END $$""",
            """CREATE TRIGGER records_gone AFTER DELETE ON thoughtline.records REFERENCING OLD TABLE AS gone
                FOR EACH STATEMENT EXECUTE FUNCTION thoughtline.count_gone()""",
            f"""CREATE OR REPLACE FUNCTION thoughtline.save(
                identities bytea[], tenants text[], sessions text[], providers text[], models text[],
                created float8[], chars_of integer[], sizes integer[], digests_of bytea[], bodies bytea[],
                now_at float8, expires float8) RETURNS void LANGUAGE plpgsql AS $$
            DECLARE shared_lineages integer;
            BEGIN
                PERFORM pg_advisory_xact_lock_shared({LOCK});
                PERFORM pg_advisory_xact_lock({LINEAGES}, lineage) FROM
                    (SELECT DISTINCT hashtext(encode(substring(d FROM 1 FOR 16), 'hex')) AS lineage
                    FROM unnest(digests_of) AS d ORDER BY 1) AS ordered;
                INSERT INTO thoughtline.scopes (tenant, session, provider, model)
                    SELECT DISTINCT t, s, p, m FROM unnest(tenants, sessions, providers, models) AS i (t, s, p, m)
                    WHERE NOT EXISTS (SELECT 1 FROM thoughtline.scopes WHERE (tenant, session, provider, model)
                        = (t, s, p, m))
                    ORDER BY 1, 2, 3, 4 ON CONFLICT DO NOTHING;
                WITH incoming AS (
                    SELECT i.*, s.id AS scope
                    FROM unnest(identities, tenants, sessions, providers, models, created, chars_of, sizes,
                        digests_of, bodies) AS i (identity, tenant, session, provider, model, created_at, chars,
                        size, digests, data)
                    JOIN thoughtline.scopes s USING (tenant, session, provider, model)
                    WHERE NOT EXISTS (SELECT 1 FROM thoughtline.deletions d
                        WHERE d.at > i.created_at AND d.at <= now_at
                        AND (d.tenant IS NULL OR d.tenant = i.tenant)
                        AND (d.provider IS NULL OR d.provider = i.provider)
                        AND (d.model IS NULL OR d.model = i.model)
                        AND (d.session IS NULL OR d.session = i.session)
                        AND (d.call_digest IS NULL OR position(d.call_digest IN i.digests) > 0))
                ), written AS (
                    INSERT INTO thoughtline.records
                        (identity, scope, created_at, expires_at, chars, size, digests, data)
                    SELECT identity, scope, created_at, expires, chars, size, digests, data FROM incoming
                        ORDER BY created_at, identity
                    ON CONFLICT (identity) DO UPDATE
                        SET expires_at = greatest(records.expires_at, excluded.expires_at)
                    RETURNING seq, digests, records.xmax = 0 AS is_new
                ), pointed AS (
                    INSERT INTO thoughtline.lookups (digest, record)
                    SELECT substring(digests FROM part * 16 + 1 FOR 16), seq
                    FROM written, generate_series(0, length(digests) / 16 - 1) AS part
                    ON CONFLICT DO NOTHING
                )
                SELECT count(*) INTO shared_lineages FROM written
                    WHERE is_new AND EXISTS (SELECT 1 FROM thoughtline.lookups
                        WHERE digest = substring(written.digests FROM 1 FOR 16));
                IF shared_lineages > 0 THEN UPDATE thoughtline.changes SET number = number + 1; END IF;
            END $$""",
        ),
    ),
)


async def migrate(connection: asyncpg.Connection, migrations: tuple[Migration, ...] = MIGRATIONS) -> None:
    """Migrate a database in one transaction. If two processes start together, one waits for the other."""

    async def execute(statement: str, *values: object) -> None:
        await connection.execute(statement, *values, timeout=MIGRATION_SECONDS)

    async with connection.transaction():
        await execute(f"SELECT pg_advisory_xact_lock({LOCK + 1})")
        version = await _version(connection)
        steps = missing(migrations, version)
        if version == 0 and steps:
            await execute("CREATE SCHEMA IF NOT EXISTS thoughtline")
            await execute("CREATE TABLE thoughtline.migrations (number integer PRIMARY KEY, name text)")
        for step in steps:
            for statement in step.statements:
                await execute(statement)
            await execute("INSERT INTO thoughtline.migrations VALUES ($1, $2)", step.number, step.name)


def connection_of(schema: str) -> type[asyncpg.Connection]:
    """Connections whose statements mean another schema than `thoughtline`."""

    def named(statement: str) -> str:
        return statement.replace("thoughtline.", f"{schema}.").replace("EXISTS thoughtline", f"EXISTS {schema}")

    class InSchema(asyncpg.Connection):  # type: ignore[misc]  # the driver has no types
        async def execute(self, query: str, *values: Any, **more: Any) -> Any:
            return await super().execute(named(query), *values, **more)

        async def executemany(self, command: str, *values: Any, **more: Any) -> Any:
            return await super().executemany(named(command), *values, **more)

        async def fetch(self, query: str, *values: Any, **more: Any) -> Any:
            return await super().fetch(named(query), *values, **more)

        async def fetchval(self, query: str, *values: Any, **more: Any) -> Any:
            return await super().fetchval(named(query), *values, **more)

    return InSchema


async def _version(connection: asyncpg.Connection) -> int:
    if await connection.fetchval("SELECT to_regclass('thoughtline.migrations')") is None:
        return 0
    return int(await connection.fetchval("SELECT coalesce(max(number), 0) FROM thoughtline.migrations"))
