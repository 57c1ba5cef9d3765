"""The SQLite layout and its migrations.

A scope is a combination of tenant, session, provider and model, with counts of its records: statistics and filters read
scopes, not records. Lookups point from a digest to a record, which is stored once; those of deleted records are removed
together, in the order of digests. New records are in arrivals files next to the database, one for each process that
saves (`sqlite_arrivals.py`).
"""

from __future__ import annotations

import sqlite3

from thoughtline.stores.durable import Migration, missing

MIGRATIONS = (
    Migration(
        1,
        "records by key",
        (
            """CREATE TABLE scopes (
                id INTEGER PRIMARY KEY, tenant TEXT NOT NULL, session TEXT NOT NULL,
                provider TEXT NOT NULL, model TEXT NOT NULL,
                entries INTEGER NOT NULL DEFAULT 0, chars INTEGER NOT NULL DEFAULT 0,
                bytes INTEGER NOT NULL DEFAULT 0, newest_at REAL NOT NULL DEFAULT 0,
                UNIQUE (tenant, session, provider, model))""",
            """CREATE TABLE records (
                seq INTEGER PRIMARY KEY, identity BLOB NOT NULL UNIQUE, scope INTEGER NOT NULL,
                created_at REAL NOT NULL, expires_at REAL NOT NULL, chars INTEGER NOT NULL, size INTEGER NOT NULL,
                digests BLOB NOT NULL, data BLOB NOT NULL)""",
            "CREATE INDEX records_by_scope ON records (scope)",
            "CREATE INDEX records_by_expiry ON records (expires_at)",
            "CREATE TABLE lookups (digest BLOB, record INTEGER, PRIMARY KEY (digest, record)) WITHOUT ROWID",
            """CREATE TABLE deletions (
                seq INTEGER PRIMARY KEY, at REAL NOT NULL, tenant TEXT, provider TEXT, model TEXT, session TEXT,
                call_id TEXT)""",
            "CREATE INDEX deletions_by_time ON deletions (at)",
            """CREATE TRIGGER count_in AFTER INSERT ON records BEGIN
                UPDATE scopes SET entries = entries + 1, chars = chars + NEW.chars, bytes = bytes + NEW.size,
                    newest_at = max(newest_at, NEW.created_at) WHERE id = NEW.scope; END""",
            """CREATE TRIGGER count_out AFTER DELETE ON records BEGIN
                UPDATE scopes SET entries = entries - 1, chars = chars - OLD.chars, bytes = bytes - OLD.size
                WHERE id = OLD.scope; END""",
        ),
    ),
    Migration(
        2,
        "notes, and the check of the encryption key",
        (
            """CREATE TABLE notes (
                namespace TEXT, key TEXT, value BLOB NOT NULL, expires_at REAL NOT NULL,
                PRIMARY KEY (namespace, key)) WITHOUT ROWID""",
            "CREATE TABLE facts (name TEXT PRIMARY KEY, value BLOB NOT NULL) WITHOUT ROWID",
        ),
    ),
    Migration(
        3,
        "changes counted",
        (
            "INSERT INTO facts VALUES ('changes', 0)",
            """CREATE TRIGGER record_gone AFTER DELETE ON records BEGIN
                UPDATE facts SET value = value + 1 WHERE name = 'changes'; END""",
        ),
    ),
    Migration(
        4,
        "arrivals",
        (
            "CREATE TABLE arrivals (seq INTEGER PRIMARY KEY, at REAL NOT NULL, rows BLOB NOT NULL)",
            "INSERT INTO facts VALUES ('folded', 0)",
        ),
    ),
    Migration(
        5,
        "a file of arrivals for each process",
        (
            """CREATE TABLE writers (
                name TEXT PRIMARY KEY, folded INTEGER NOT NULL, process TEXT NOT NULL, seen_at REAL NOT NULL)
                WITHOUT ROWID""",
        ),
    ),
    Migration(
        6,
        "pointers taken out later; sessions in the order of time",
        (
            "CREATE TABLE gone (seq INTEGER PRIMARY KEY, sweep INTEGER NOT NULL DEFAULT 0)",
            "CREATE INDEX scopes_by_time ON scopes (newest_at)",
        ),
    ),
)


def migrate(connection: sqlite3.Connection, migrations: tuple[Migration, ...] = MIGRATIONS) -> None:
    """Migrate a database in one transaction. If two processes start together, one waits for the other."""
    if not missing(migrations, _version(connection)):
        return
    with connection:
        connection.execute("BEGIN IMMEDIATE")
        connection.execute("CREATE TABLE IF NOT EXISTS migrations (number INTEGER PRIMARY KEY, name TEXT NOT NULL)")
        for step in missing(migrations, _version(connection)):
            for statement in step.statements:
                connection.execute(statement)
            connection.execute("INSERT INTO migrations VALUES (?, ?)", (step.number, step.name))


def _version(connection: sqlite3.Connection) -> int:
    tables = connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'migrations'").fetchone()
    if tables is None:
        return 0
    (number,) = connection.execute("SELECT coalesce(max(number), 0) FROM migrations").fetchone()
    return int(number)
