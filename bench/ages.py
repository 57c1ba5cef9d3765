"""What a SQLite store of some size costs to look after: `python -m bench.ages [--entries 10000 100000 1000000]`.

A store of so many turns of 200 tenants and 40 turns a session, a tenth of them expired, is made with statements that
put them in order. Then, through the store: a page, the latest sessions, the statistics, a deletion of one tenant, and a
cleaning. CPU is that of all threads; "lag" is how late the loop came to a timer meanwhile. A turn here is 600 bytes, so
that a million fit on a small disk; pointers and indexes are as large as they are.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import sqlite3
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator
from typing import NamedTuple

from msgspec.structs import replace

from bench.stores import SETTINGS
from thoughtline.stores import Filter, Store, durable_store
from thoughtline.stores.rows import DIGEST

TENANTS, SESSION_TURNS, KEYS, BYTES = 200, 40, 8, 600
LAG_SECONDS = 0.002
DAY = 86400.0


class Cost(NamedTuple):
    """Of one call."""

    wall_ms: float
    cpu_ms: float
    lag_ms: float
    result: object


def fill(path: str, entries: int, now: float) -> None:
    """Turns in a database whose layout is there."""
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA synchronous = off")
    connection.execute("PRAGMA cache_size = -200000")
    connection.execute("CREATE TEMP TABLE pointers (digest BLOB, record INTEGER)")
    connection.execute("BEGIN")
    sessions = (entries + SESSION_TURNS - 1) // SESSION_TURNS
    scopes = ((one + 1, f"tenant {one % TENANTS}", f"session {one}", "deepseek", "v4") for one in range(sessions))
    connection.executemany("INSERT INTO scopes (id, tenant, session, provider, model) VALUES (?, ?, ?, ?, ?)", scopes)

    def records() -> Iterator[tuple[object, ...]]:
        for seq in range(1, entries + 1):
            digests = os.urandom(DIGEST * KEYS)
            pointers = [(digests[at : at + DIGEST], seq) for at in range(0, len(digests), DIGEST)]
            connection.executemany("INSERT INTO pointers VALUES (?, ?)", pointers)
            expires_at = now - DAY if seq <= entries // 10 else now + 6 * DAY
            made_at, data = now - DAY + seq / entries, os.urandom(BYTES)
            scope = 1 + (seq - 1) % sessions
            yield seq, os.urandom(DIGEST), scope, made_at, expires_at, BYTES, BYTES, digests, data

    statement = """INSERT INTO records (seq, identity, scope, created_at, expires_at, chars, size, digests, data)
        VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"""
    connection.executemany(statement, records())
    connection.execute("INSERT INTO lookups SELECT digest, record FROM pointers ORDER BY digest, record")
    connection.execute("COMMIT")
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.close()


async def cost(call: Callable[[], Awaitable[object]]) -> Cost:
    lags = [0.0]

    async def watch() -> None:
        while True:
            before = time.perf_counter()
            await asyncio.sleep(LAG_SECONDS)
            lags.append(time.perf_counter() - before - LAG_SECONDS)

    watching = asyncio.create_task(watch())
    await asyncio.sleep(0)
    began, cpu = time.perf_counter(), time.process_time()
    result = await call()
    wall, cpu = time.perf_counter() - began, time.process_time() - cpu
    watching.cancel()
    return Cost(1e3 * wall, 1e3 * cpu, 1e3 * max(lags), result)


async def calls(store: Store) -> list[tuple[str, Cost]]:
    """Each, with what it is called."""
    return [
        ("a page", await cost(lambda: store.list_entries(Filter()))),
        ("sessions", await cost(store.sessions)),
        ("of a tenant", await cost(lambda: store.sessions("tenant 7"))),
        ("statistics", await cost(store.stats)),
        ("delete a tenant", await cost(lambda: store.delete(Filter(tenant="tenant 7")))),
        ("clean a tenth", await cost(store.clean)),
        ("clean again", await cost(store.clean)),
    ]


async def measure(entries: int) -> None:
    now = time.time()
    with tempfile.TemporaryDirectory() as folder:
        url = f"sqlite:///{folder}/thoughts.db"
        store = durable_store(url, replace(SETTINGS, timeout_seconds=600), time.time)
        await store.open()
        await store.close()
        fill(f"{folder}/thoughts.db", entries, now)
        await store.open()
        for name, seen in await calls(store):
            count = seen.result if isinstance(seen.result, int) else 0
            each = f"{1e3 * seen.cpu_ms / count:>10.1f}" if count else f"{'':>10}"
            print(
                f"{entries:>9,} {name:<16}{seen.wall_ms:>9.1f}{seen.cpu_ms:>9.1f}{seen.lag_ms:>9.1f}{each}", flush=True
            )
        await store.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--entries", type=int, nargs="*", default=[10_000, 100_000, 1_000_000])
    asked = parser.parse_args()
    print(f"{'turns':>9} {'':<16}{'wall ms':>9}{'CPU ms':>9}{'lag ms':>9}{'µs each':>10}")
    for entries in asked.entries:
        asyncio.run(measure(entries))


if __name__ == "__main__":
    main()
