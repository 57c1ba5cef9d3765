"""How fast turns are kept and found, beside the raw driver sending the same statements in the same run.

    python -m bench.stores [--entries 1000 100000 1000000] [--stores memory sqlite redis postgres]

A turn is about 3 kB of JSON and has five keys. "single" is one turn or key a call, 32 calls at once; "batched" is 100
turns or 50 keys a call, 4 at once. "raw" gets rows that are packed already and does not unpack what it finds; "packing
too" packs and unpacks, as any store of compressed records must. Servers are started from the wheels that the tests use.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import os
import random
import sqlite3
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

from msgspec.structs import replace

from tests.stores.servers import Postgres, Valkey
from thoughtline.items import ReasoningText, Text, ToolCall
from thoughtline.records import Key, Record, RecordId, encode_record
from thoughtline.stores import MemoryStore, Store, StoreSettings, durable_store, postgres, redis, redis_scripts, sqlite
from thoughtline.stores import sqlite_work as work
from thoughtline.stores.base import MAX_PER_KEY, RENEW_AFTER
from thoughtline.stores.packing import Packer
from thoughtline.stores.rows import Row, key_digest, rows_of, split
from thoughtline.turns import Provenance

SETTINGS = StoreSettings(
    memory_entries=10**9, memory_bytes=2**50, max_bytes=2**50, clean_seconds=1e9, timeout_seconds=60
)
TENANT = "b" * 64
SAVES, FINDS = 100, 50
FILL = 1000
ROUNDS = 5
WORDS = Path(__file__).with_name("codecs.py").read_text().split()
Call: TypeAlias = Callable[[], Awaitable[object]]
PACKER = Packer()
numbers = itertools.count()


def make_turns(count: int) -> list[Record]:
    """Turns of an agent, each with a thought of its own."""
    chance = random.Random(next(numbers))
    where = Provenance(TENANT, "deepseek", "host", "account", "deepseek-v4", "deepseek-v4", "openai_chat", "deepseek")
    turns = []
    for _ in range(count):
        number = next(numbers)
        thought = " ".join(chance.choices(WORDS, k=280))
        items = (ReasoningText(thought), Text("Reading it."), ToolCall("read", '{"path":"a"}', f"call_{number}"))
        keys = tuple(Key(f"{kind}-v1:{number:064x}") for kind in ("lineage", "call", "before", "visible", "session"))
        turns.append(Record(RecordId(f"{number:064x}"), where, items, keys, time.time()))
    return turns


class Contender:
    """A store, and the raw driver beside it."""

    def __init__(self, store: Store) -> None:
        self.store = store

    async def open(self) -> None:
        await self.store.open()

    async def close(self) -> None:
        await self.store.close()

    async def disk_bytes(self) -> int:
        return 0

    async def raw_save(self, rows: list[Row]) -> object:
        raise NotImplementedError

    async def fill(self, rows: Iterator[Row]) -> None:
        while some := list(itertools.islice(rows, FILL)):
            await self.raw_save(some)

    async def raw_find(self, digests: list[bytes]) -> list[tuple[bytes, bytes]]:
        """Identities and packed bytes."""
        raise NotImplementedError

    async def packing_save(self, turns: list[Record]) -> object:
        return await self.raw_save(rows_of(turns, PACKER))

    async def packing_find(self, keys: list[Key]) -> object:
        found = await self.raw_find([key_digest(TENANT, key) for key in keys])
        return [PACKER.unpack(data, identity) for identity, data in found]


class Memory(Contender):
    def __init__(self) -> None:
        super().__init__(MemoryStore(SETTINGS, time.time))


class Sqlite(Contender):
    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory()
        self._path = Path(self._folder.name) / "thoughts.db"
        super().__init__(durable_store(f"sqlite:///{self._path}", SETTINGS, time.time))

    async def open(self) -> None:
        await super().open()
        self._connection = sqlite3.connect(self._path, isolation_level=None)
        self._connection.execute("PRAGMA synchronous = normal")
        self._connection.execute(f"PRAGMA cache_size = -{sqlite.CACHE_KIB}")
        self._connection.execute(f"PRAGMA wal_autocheckpoint = {sqlite.CHECKPOINT_PAGES}")

    async def close(self) -> None:
        await super().close()
        self._connection.close()
        self._folder.cleanup()

    async def disk_bytes(self) -> int:
        self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        return self._path.stat().st_size

    async def raw_save(self, rows: list[Row]) -> object:
        self._connection.execute("BEGIN IMMEDIATE")
        now = time.time()
        work.save(self._connection, rows, now, now + SETTINGS.ttl_seconds)
        return self._connection.execute("COMMIT")

    async def fill(self, rows: Iterator[Row]) -> None:
        """In one transaction, pointers last and sorted: row by row each of them dirties a page of its own."""
        self._connection.execute("BEGIN IMMEDIATE")
        now, pointers = time.time(), []
        for row in rows:
            values = (row.identity, 1, now, now + SETTINGS.ttl_seconds, row.chars, row.size, row.digests, row.data)
            (seq,) = self._connection.execute(work._INSERT, values).fetchone()
            pointers += [(digest, seq) for digest in split(row.digests)]
        pointers.sort()
        self._connection.executemany("INSERT INTO lookups VALUES (?, ?)", pointers)
        self._connection.execute("COMMIT")

    async def raw_find(self, digests: list[bytes]) -> list[tuple[bytes, bytes]]:
        now, execute = time.time(), self._connection.execute
        return [(row[1], row[3]) for digest in digests for row in execute(sqlite._FIND, (digest, now)).fetchall()]


class Redis(Contender):
    def __init__(self) -> None:
        self._server = Valkey()
        super().__init__(durable_store(self._server.url, SETTINGS, time.time))

    async def open(self) -> None:
        await super().open()
        assert isinstance(self.store, redis.RedisStore)
        self._client = self.store._client
        await self.store._load()

    async def close(self) -> None:
        await super().close()
        self._server.remove()

    async def disk_bytes(self) -> int:
        return int((await self._client.info("memory"))["used_memory"])

    async def raw_save(self, rows: list[Row]) -> object:
        assert isinstance(self.store, redis.RedisStore)
        pipeline: Any = self._client.pipeline(transaction=False)
        now = time.time()
        pipeline.execute_command("SADD", redis.TENANTS, TENANT)
        pipeline.execute_command(*self.store._save_command(TENANT, rows, now))
        pipeline.execute_command("ZRANGEBYSCORE", redis.DELETIONS, f"({now!r}", repr(now))
        return await pipeline.execute()

    async def raw_find(self, digests: list[bytes]) -> list[tuple[bytes, bytes]]:
        ttl = SETTINGS.ttl_seconds
        head = (repr(time.time()), repr(ttl), int(ttl * 1000), repr(ttl * (1 - RENEW_AFTER)), MAX_PER_KEY)
        command = redis._call(redis_scripts.FIND, TENANT, *head, *digests)
        return [(row[0], row[1]) for row in await self._client.execute_command(*command)]


class PostgreSQL(Contender):
    def __init__(self) -> None:
        self._server = Postgres()
        super().__init__(durable_store(self._server.url, SETTINGS, time.time))

    async def open(self) -> None:
        await super().open()
        assert isinstance(self.store, postgres.PostgresStore)
        self._pool: Any = self.store._pool

    async def close(self) -> None:
        await super().close()
        self._server.remove()

    async def disk_bytes(self) -> int:
        names = ("records", "lookups", "scopes")
        sizes = [await self._pool.fetchval(f"SELECT pg_total_relation_size('thoughtline.{name}')") for name in names]
        return int(sum(sizes))

    async def raw_save(self, rows: list[Row]) -> object:
        names = ("identity", "tenant", "session", "provider", "model", "created_at", "chars", "size", "digests", "data")
        columns = [[getattr(row, name) for row in rows] for name in names]
        now = time.time()
        return await self._pool.fetchval(postgres._SAVE, *columns, now, now + SETTINGS.ttl_seconds)

    async def raw_find(self, digests: list[bytes]) -> list[tuple[bytes, bytes]]:
        return [(row[2], row[4]) for row in await self._pool.fetch(postgres._FIND, digests, time.time())]


CONTENDERS: dict[str, Callable[[], Contender]] = {
    "memory": Memory,
    "sqlite": Sqlite,
    "redis": Redis,
    "postgres": PostgreSQL,
}


async def calls_per_second(calls: list[Call], at_once: int) -> float:
    """All calls, so many at once."""
    waiting = iter(calls)

    async def work_off() -> None:
        for call in waiting:
            await call()

    start = time.perf_counter()
    await asyncio.gather(*(work_off() for _ in range(at_once)))
    return len(calls) / (time.perf_counter() - start)


async def side_by_side(contenders: list[Callable[[], list[Call]]], at_once: int) -> list[float]:
    """The best round of each, taken in turns."""
    best = [0.0] * len(contenders)
    for _ in range(ROUNDS):
        for position, make in enumerate(contenders):
            best[position] = max(best[position], await calls_per_second(make(), at_once))
    return best


def save_calls(contender: Contender, calls: int, size: int) -> list[Callable[[], list[Call]]]:
    """Ours, the raw driver's, and the raw driver's with packing."""

    def ours() -> list[Call]:
        return [partial(contender.store.save, make_turns(size)) for _ in range(calls)]

    def raw() -> list[Call]:
        return [partial(contender.raw_save, rows_of(make_turns(size), PACKER)) for _ in range(calls)]

    def packing() -> list[Call]:
        return [partial(contender.packing_save, make_turns(size)) for _ in range(calls)]

    return [ours, raw, packing]


def find_calls(contender: Contender, keys: list[Key], calls: int, size: int) -> list[Callable[[], list[Call]]]:
    """Ours, the raw driver's, and the raw driver's with unpacking."""

    def groups() -> list[list[Key]]:
        return [random.sample(keys, size) for _ in range(calls)]

    def ours() -> list[Call]:
        return [partial(contender.store.find, TENANT, group) for group in groups()]

    def raw() -> list[Call]:
        return [partial(contender.raw_find, [key_digest(TENANT, key) for key in group]) for group in groups()]

    def packing() -> list[Call]:
        return [partial(contender.packing_find, group) for group in groups()]

    return [ours, raw, packing]


async def fill(contender: Contender, count: int, sample: list[Key]) -> None:
    """Up to so many entries. One in fifty is a turn that can be asked for, and a key of it is kept; the others are rows
    of the same size that are written without being packed, to get to a million in minutes."""
    bodies = rows_of(make_turns(200), PACKER)
    real = count if count <= FILL or isinstance(contender, Memory) else count // 50
    for _ in range(0, real, FILL):
        turns = make_turns(FILL)
        await contender.store.save(turns)
        sample += [random.choice(turn.keys) for turn in turns]
    await contender.fill(filler(random.choice(bodies)) for _ in range(count - real))


def filler(row: Row) -> Row:
    """A row like another, under keys of its own."""
    return replace(row, identity=os.urandom(16), digests=os.urandom(len(row.digests)))


async def measure(name: str, entries: list[int]) -> None:
    contender = CONTENDERS[name]()
    await contender.open()
    keys: list[Key] = []
    held = 0
    empty = await contender.disk_bytes()
    for target in entries:
        await fill(contender, target - held, keys)
        held = target
        size = (await contender.disk_bytes() - empty) / held
        cases = {
            "save, single": (save_calls(contender, 400, 1), 32, 1),
            "save, batched": (save_calls(contender, 12, SAVES), 4, SAVES),
            "find, single": (find_calls(contender, keys, 1000, 1), 32, 1),
            "find, batched": (find_calls(contender, keys, 60, FINDS), 4, FINDS),
        }
        for case, (calls, at_once, each) in cases.items():
            rates = await side_by_side(calls[:1] if name == "memory" else calls, at_once)
            figures = " ".join(f"{rate * each:>10,.0f}" for rate in rates)
            ratios = " ".join(f"{rates[0] / rate:6.2f}" for rate in rates[1:])
            print(f"{name:9} {target:>9,} {case:14} {figures} {ratios} {size:8,.0f}", flush=True)
    await contender.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--entries", type=int, nargs="+", default=[1000, 100_000])
    parser.add_argument("--stores", nargs="+", choices=CONTENDERS, default=list(CONTENDERS))
    options = parser.parse_args()
    (turn,) = make_turns(1)
    (row,) = rows_of([turn], Packer())
    print(f"a turn is {len(encode_record(turn)):,} bytes of JSON, {row.size:,} packed")
    heads = f"{'per s':>10} {'raw':>10} {'packing':>10} {'/raw':>6} {'/pack':>6} {'bytes':>8}"
    print(f"{'store':9} {'entries':>9} {'':14} {heads}")
    for name in options.stores:
        asyncio.run(measure(name, options.entries))


if __name__ == "__main__":
    main()
