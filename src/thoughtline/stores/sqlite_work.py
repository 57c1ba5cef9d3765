"""Operations on a SQLite database. Each function does one piece of work inside its caller's transaction."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence
from functools import cache

from thoughtline.stores.base import (
    DELETION_KEPT_SECONDS,
    MAX_PER_KEY,
    Deletion,
    Filter,
    SessionPlace,
    SessionSummary,
    Stats,
    sum_sessions,
)
from thoughtline.stores.durable import Batch, OpeningRow, PageRow
from thoughtline.stores.packing import Packer
from thoughtline.stores.rows import DIGEST, Hit, Part, Row, call_digest, is_barred, sum_parts

STEP = 500
"""Records per transaction of a long deletion, or folded per process: some milliseconds."""

SWEPT = 20_000
"""Pointers that one transaction of a sweep reads: some milliseconds."""

SWEEP_AT = 4
"""A sweep runs when there is one deleted record for this many others. So its cost is shared by a number of deletions
proportional to the number of records."""

VACUUM_PAGES = 2000
"""Free pages that one cleaning returns to the file system: 8 MB."""

SWITCHES = 20
"""Attempts to switch a new file to a write-ahead log while other processes do the same."""

ROWS = 64
"""Rows per statement: far below SQLite's 32,766 values, and few enough texts for the driver's cache of 128."""

_SCOPE = "(?, ?, ?, ?)"
_RECORD_ROW = """(?, ?, (SELECT id FROM scopes WHERE tenant = ? AND session = ? AND provider = ? AND model = ?),
    ?, ?, ?, ?, ?, ?)"""

# A new record's first digest is its lineage, and no lookup points from it to the record yet.
_COUNT_SHARED_LINEAGES = f"""UPDATE facts SET value = value + 1 WHERE name = 'changes' AND (?2 OR EXISTS (
    SELECT 1 FROM records r JOIN lookups l ON l.digest = substr(r.digests, 1, {DIGEST}) WHERE r.seq > ?1))"""

# A record that existed before has its lookups, so only new ones (seq above ?1) are read.
_LOOKUPS = f"""INSERT OR IGNORE INTO lookups
    WITH RECURSIVE parts (digests, at, seq) AS (
        SELECT digests, 1, seq FROM records WHERE seq > ?1 UNION ALL
        SELECT digests, at + {DIGEST}, seq FROM parts WHERE at + {DIGEST} < length(digests))
    SELECT substr(digests, at, {DIGEST}), seq FROM parts WHERE length(digests) > 0"""

_POINTERS = f"""SELECT record FROM lookups WHERE digest = ? AND NOT EXISTS (SELECT 1 FROM gone WHERE seq = record)
    ORDER BY record DESC LIMIT {MAX_PER_KEY}"""
_RECORD = "SELECT identity, expires_at, data FROM records WHERE seq = ? AND expires_at > ?"

_LATEST = "SELECT tenant, session, newest_at FROM scopes WHERE session != '' AND entries > 0 ORDER BY newest_at DESC"
_LATEST_OF_ONE = """SELECT tenant, session, newest_at FROM scopes
    WHERE tenant = ? AND session != '' AND entries > 0 ORDER BY +newest_at DESC"""
"""The plus prevents SQLite from walking all tenants in time order."""

_SESSION = """SELECT tenant, session, entries, chars, newest_at, provider || '/' || model FROM scopes
    WHERE tenant = ? AND session = ? AND entries > 0"""

_OPENING = """SELECT identity, data FROM records WHERE seq = (SELECT min(first) FROM
    (SELECT (SELECT min(seq) FROM records WHERE scope = id) AS first FROM scopes WHERE tenant = ? AND session = ?))"""

SEEN = "UPDATE writers SET seen_at = ? WHERE name = ?"
PUT_NOTE = "REPLACE INTO notes VALUES (?, ?, ?, ?)"
NOTES = "SELECT namespace, key, value, expires_at FROM notes WHERE namespace = ? AND expires_at > ? ORDER BY key"
DELETE_NOTES = "DELETE FROM notes WHERE namespace = ?1 AND (?2 IS NULL OR key = ?2)"


def prepare(connection: sqlite3.Connection) -> None:
    """Set pragmas before the first table: a new file can return free pages. The write-ahead log is a property of the
    file.

    SQLite does not wait for locks when it switches to the log. If two processes start together, one may get an error
    that the file is locked: it waits with a statement for which SQLite does wait, and tries again.
    """
    connection.execute("PRAGMA auto_vacuum = INCREMENTAL")
    for _ in range(SWITCHES):
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode != sqlite3.SQLITE_BUSY:
                raise
            connection.execute("BEGIN IMMEDIATE")
            connection.execute("ROLLBACK")
    connection.execute("PRAGMA journal_mode = WAL")


def check_key(connection: sqlite3.Connection, packer: Packer) -> None:
    """Raise `WrongKey` if none of our keys fits the database; otherwise note the current one."""
    with connection:
        connection.execute("BEGIN IMMEDIATE")
        kept = connection.execute("SELECT value FROM facts WHERE name = 'key check'").fetchone()
        if kept is None or not packer.check(kept[0]):
            connection.execute("REPLACE INTO facts VALUES ('key check', ?)", (packer.key_check(),))


def save(connection: sqlite3.Connection, rows: Sequence[Row], now: float, expires_at: float) -> None:
    """Write the records that no deletion matches."""
    oldest = min((row.created_at for row in rows), default=now)
    marks = deletions(connection, oldest, now)
    kept = [row for row in rows if not is_barred(row, marks, now)]
    before = newest(connection)
    for at in range(0, len(kept), ROWS):
        _insert(connection, before + at, kept[at : at + ROWS], expires_at)
    connection.execute(_COUNT_SHARED_LINEAGES, (before, _share_lineages(kept)))
    connection.execute(_LOOKUPS, (before,))


def _share_lineages(rows: Sequence[Row]) -> bool:
    """Whether two of them have the same lineage."""
    lineages = {row.identity: row.digests[:DIGEST] for row in rows}.values()
    return len(set(lineages)) < len(lineages)


def changes(connection: sqlite3.Connection) -> int:
    (count,) = connection.execute("SELECT value FROM facts WHERE name = 'changes'").fetchone()
    return int(count)


def _insert(connection: sqlite3.Connection, before: int, rows: Sequence[Row], expires_at: float) -> None:
    scopes = dict.fromkeys(row.scope for row in rows)
    connection.execute(_scopes_text(len(scopes)), [value for scope in scopes for value in scope])
    values: list[object] = []
    for seq, row in enumerate(rows, before + 1):
        values += (
            seq,
            row.identity,
            *row.scope,
            row.created_at,
            expires_at,
            row.chars,
            row.size,
            row.digests,
            row.data,
        )
    connection.execute(_records_text(len(rows)), values)


@cache
def _scopes_text(count: int) -> str:
    return f"INSERT OR IGNORE INTO scopes (tenant, session, provider, model) VALUES {', '.join([_SCOPE] * count)}"


@cache
def _records_text(count: int) -> str:
    return f"""INSERT INTO records (seq, identity, scope, created_at, expires_at, chars, size, digests, data)
        VALUES {", ".join([_RECORD_ROW] * count)}
        ON CONFLICT (identity) DO UPDATE SET expires_at = max(expires_at, excluded.expires_at)"""


def find(connection: sqlite3.Connection, digests: Iterable[bytes], now: float) -> list[Hit]:
    """Find pointers first, then each record once, even if several of its keys were requested."""
    execute = connection.execute
    pointing: dict[int, list[bytes]] = {}
    for digest in digests:
        for (seq,) in execute(_POINTERS, (digest,)):
            pointing.setdefault(seq, []).append(digest)
    found = []
    for seq, by in pointing.items():
        for identity, expires_at, data in execute(_RECORD, (seq, now)):
            found.append(Hit(identity, data, by, seq, expires_at))
    return found


def deletions(connection: sqlite3.Connection, after: float, now: float) -> list[Deletion]:
    rows = connection.execute(
        "SELECT tenant, provider, model, session, call_id, at FROM deletions WHERE at > ? AND at <= ?", (after, now)
    )
    return [Deletion(Filter(*row[:5]), row[5]) for row in rows]


def mark_deleted(connection: sqlite3.Connection, where: Filter, now: float) -> None:
    """Note a deletion."""
    connection.execute(
        "INSERT INTO deletions (at, tenant, provider, model, session, call_id) VALUES (?, ?, ?, ?, ?, ?)",
        (now, where.tenant, where.provider, where.model, where.session, where.call_id),
    )
    connection.execute("UPDATE facts SET value = value + 1 WHERE name = 'changes'")


def newest(connection: sqlite3.Connection) -> int:
    """Return the number of the latest record. It never reuses the number of a deleted record that may still have
    pointers."""
    (number,) = connection.execute(
        "SELECT max(coalesce((SELECT max(seq) FROM records), 0), coalesce((SELECT max(seq) FROM gone), 0))"
    ).fetchone()
    return int(number)


def delete_some(connection: sqlite3.Connection, where: Filter, newest: int) -> int:
    clause, values = _clause(where)
    return _delete(connection, f"WHERE seq <= ? AND {clause} LIMIT {STEP}", (newest, *values))


def delete_expired(connection: sqlite3.Connection, now: float) -> int:
    return _delete(connection, f"WHERE expires_at <= ? LIMIT {STEP}", (now,))


def delete_beyond(connection: sqlite3.Connection, max_bytes: int) -> int:
    """Remove some of the least recently used records if the store is too large."""
    (held,) = connection.execute("SELECT coalesce(sum(bytes), 0) FROM scopes").fetchone()
    excess, seqs = held - max_bytes, []
    for seq, size in connection.execute(f"SELECT seq, size FROM records ORDER BY expires_at, seq LIMIT {STEP}"):
        if excess <= 0:
            break
        excess -= size
        seqs.append(seq)
    marks = ", ".join("?" * len(seqs))
    return _delete(connection, f"WHERE seq IN ({marks})", tuple(seqs)) if seqs else 0


def _delete(connection: sqlite3.Connection, clause: str, values: tuple[object, ...]) -> int:
    """Delete records. Their pointers, which are scattered over the file, are left to a sweep."""
    seqs = connection.execute(f"SELECT seq FROM records {clause}", values).fetchall()
    connection.executemany("INSERT INTO gone (seq) VALUES (?)", seqs)
    connection.executemany("DELETE FROM records WHERE seq = ?", seqs)
    return len(seqs)


def begin_sweep(connection: sqlite3.Connection, sweep: int) -> bool:
    """Begin a sweep if it is due, and return whether it is. It removes the pointers of all records deleted by now."""
    (gone,) = connection.execute("SELECT count(*) FROM gone").fetchone()
    (held,) = connection.execute("SELECT coalesce(sum(entries), 0) FROM scopes").fetchone()
    if not gone or SWEEP_AT * gone < held:
        return False
    connection.execute("UPDATE gone SET sweep = ?", (sweep,))
    return True


def sweep_some(connection: sqlite3.Connection, sweep: int, after: bytes) -> bytes | None:
    """Sweep the part after a digest. Returns the digest it ends with, or None at the end."""
    row = connection.execute(
        "SELECT digest FROM lookups WHERE digest > ? ORDER BY digest LIMIT 1 OFFSET ?", (after, SWEPT)
    ).fetchone()
    until, values = ("digest <= ?2", (after, row[0])) if row else ("1", (after,))
    connection.execute(
        f"DELETE FROM lookups WHERE digest > ?1 AND {until} AND record IN (SELECT seq FROM gone)", values
    )
    if row is None:
        connection.execute("DELETE FROM gone WHERE sweep = ?", (sweep,))
        return None
    return bytes(row[0])


def tidy(connection: sqlite3.Connection, now: float) -> None:
    """Remove unreferenced rows, and return some free pages."""
    connection.execute("DELETE FROM scopes WHERE entries = 0")
    connection.execute("DELETE FROM deletions WHERE at <= ?", (now - DELETION_KEPT_SECONDS,))
    connection.execute("DELETE FROM notes WHERE expires_at <= ?", (now,))
    connection.execute(f"PRAGMA incremental_vacuum({VACUUM_PAGES})").fetchall()


def write_uses(connection: sqlite3.Connection, uses: Batch, expires_at: float) -> None:
    connection.executemany(
        "UPDATE records SET expires_at = max(expires_at, ?) WHERE seq = ?",
        [(expires_at, seq) for seq in uses.renewals],
    )
    connection.executemany("UPDATE records SET data = ?2 WHERE seq = ?1", uses.repacked)


def page(connection: sqlite3.Connection, where: Filter, now: float, before: int, limit: int) -> list[PageRow]:
    clause, values = _clause(where)
    rows = connection.execute(
        f"""SELECT seq, identity, expires_at, data FROM records
        WHERE seq < ? AND expires_at > ? AND {clause} ORDER BY seq DESC LIMIT ?""",
        (before, now, *values, limit),
    )
    return [(str(seq), *rest) for seq, *rest in rows]


def sessions(connection: sqlite3.Connection, tenant: str | None, limit: int) -> tuple[SessionSummary, ...]:
    """Return the latest sessions, found in time order: no more are summed up than requested."""
    latest: dict[tuple[str, str], None] = {}
    oldest = 0.0
    values = () if tenant is None else (tenant,)
    for name, session, newest_at in connection.execute(_LATEST_OF_ONE if values else _LATEST, values):
        if len(latest) >= limit and newest_at < oldest:
            break
        if len(latest) < limit:
            oldest = newest_at
        latest[name, session] = None
    parts = []
    for place in latest:
        for tenant_of, session, entries, chars, newest_at, model in connection.execute(_SESSION, place):
            parts.append(SessionSummary(tenant_of, session, entries, chars, newest_at, models=(model,)))
    return sum_sessions(parts, limit)


def openings(connection: sqlite3.Connection, places: list[SessionPlace]) -> list[OpeningRow]:
    """Of each scope of a session the first record is found at once, and the first of those is meant."""
    return [(place, *row) for place in places for row in connection.execute(_OPENING, place)]


def stats(connection: sqlite3.Connection) -> Stats:
    rows = connection.execute(
        "SELECT provider, model, sum(entries), sum(chars), sum(bytes) FROM scopes WHERE entries > 0 GROUP BY 1, 2"
    ).fetchall()
    ends = [
        connection.execute(f"SELECT created_at FROM records ORDER BY seq {order} LIMIT 1").fetchone() or (None,)
        for order in ("ASC", "DESC")
    ]
    return sum_parts([Part(*row) for row in rows], ends[0][0], ends[1][0])


def _clause(where: Filter) -> tuple[str, tuple[object, ...]]:
    """Return the condition on `records` for a filter."""
    names = [name for name in ("tenant", "provider", "model", "session") if getattr(where, name) is not None]
    clauses: list[str] = []
    values: list[object] = [getattr(where, name) for name in names]
    if names:
        clauses.append(f"scope IN (SELECT id FROM scopes WHERE {' AND '.join(f'{name} = ?' for name in names)})")
    if where.call_id is not None:
        clauses.append("seq IN (SELECT record FROM lookups WHERE digest = ?)")
        values.append(call_digest(where.call_id))
    return " AND ".join(clauses) or "1", tuple(values)
