"""How fast turns are kept and found, beside the raw driver sending the same statements in the same run.

    python -m bench.stores [--entries 1000 100000 1000000] [--stores memory sqlite redis postgres]

A turn is about 3 kB of JSON and has five keys. "single" is one turn or key a call, 32 calls at once; "batched" is 100
turns or 50 keys a call, 4 at once. "raw" gets rows that are packed already and does not unpack what it finds; "packing"
packs and unpacks, as any store of compressed records must. The raw driver of memory is a plain dictionary.

Of each store there is one for each number of entries, with servers of their own, started from the wheels that the tests
use. All of them, ours, raw and packing, take turns: whatever else the machine does hits all of them. Rates are those of
the best round, ratios the middle one of the rounds' ratios. Finds come before saves, which make the stores larger.
"slower" is the rate with the first number of entries to that with this number.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import os
import random
import sqlite3
import statistics
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

from msgspec.structs import replace

from tests.stores.servers import Postgres, Valkey
from thoughtline.stores import (
    LayeredStore,
    MemoryStore,
    Store,
    StoreSettings,
    durable_store,
    postgres,
    redis,
    redis_scripts,
    sqlite,
)
from thoughtline.stores import sqlite_work as work
from thoughtline.stores.base import MAX_PER_KEY, RENEW_AFTER
from thoughtline.stores.packing import Packer
from thoughtline.stores.rows import DIGEST, Row, key_digest, rows_of, split
from thoughtline.values.items import ReasoningText, Text, ToolCall
from thoughtline.values.records import Key, Record, RecordId, encode_record
from thoughtline.values.turns import Provenance

SETTINGS = StoreSettings(memory_bytes=2**50, max_bytes=2**50, clean_seconds=1e9, timeout_seconds=60)
TENANT = "b" * 64
SAVES, FINDS = 100, 50
FILL = 1000
ROUNDS = 7
WORDS = Path(__file__).with_name("codecs.py").read_text().split()
Call: TypeAlias = Callable[[], Awaitable[object]]
Make: TypeAlias = Callable[[], list[Call]]
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


_FILL = """INSERT INTO records (identity, scope, created_at, expires_at, chars, size, digests, data)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?) RETURNING seq"""


class Contender:
    """A store, and the raw driver beside it."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.keys: list[Key] = []
        self.bytes_each = 0.0

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
        self._plain: dict[Key, Record] = {}

    async def fill(self, rows: Iterator[Row]) -> None:
        """Whole turns: in memory all of a record counts."""
        for number, _ in enumerate(rows):
            if number % FILL == 0:
                turns = make_turns(FILL)
                await self.packing_save(turns)
                await self.store.save(turns)
                self.keys += [random.choice(turn.keys) for turn in turns]

    async def packing_save(self, turns: list[Record]) -> object:
        return self._plain.update((key, turn) for turn in turns for key in turn.keys)

    async def packing_find(self, keys: list[Key]) -> object:
        return {key: self._plain.get(key) for key in keys}


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
        now, pointers = time.time(), list[tuple[bytes, int]]()
        for row in rows:
            values = (row.identity, 1, now, now + SETTINGS.ttl_seconds, row.chars, row.size, row.digests, row.data)
            (seq,) = self._connection.execute(_FILL, values).fetchone()
            pointers += [(digest, seq) for digest in split(row.digests)]
        pointers.sort()
        self._connection.executemany("INSERT INTO lookups VALUES (?, ?)", pointers)
        self._connection.execute("COMMIT")

    async def raw_find(self, digests: list[bytes]) -> list[tuple[bytes, bytes]]:
        now, execute = time.time(), self._connection.execute
        seqs = {seq for digest in digests for (seq,) in execute(work._POINTERS, (digest,))}
        rows = [execute(work._RECORD, (seq, now)).fetchone() for seq in seqs]
        return [(row[0], row[2]) for row in rows]


class Redis(Contender):
    def __init__(self) -> None:
        self._server = Valkey()
        super().__init__(durable_store(self._server.url, SETTINGS, time.time))

    async def open(self) -> None:
        await super().open()
        assert isinstance(self.store, redis.RedisStore)
        self._client = self.store._client
        await self.store._load()
        await self._client.config_set("auto-aof-rewrite-percentage", 0)

    async def close(self) -> None:
        await super().close()
        self._server.remove()

    async def fill(self, rows: Iterator[Row]) -> None:
        """Without waiting for the disk, which is what takes the time."""
        await self._client.config_set("appendfsync", "no")
        await super().fill(rows)
        await self._client.config_set("appendfsync", "always")

    async def disk_bytes(self) -> int:
        return int((await self._client.info("memory"))["used_memory"])

    async def raw_save(self, rows: list[Row]) -> object:
        assert isinstance(self.store, redis.RedisStore)
        pipeline: Any = self._client.pipeline(transaction=False)
        now = time.time()
        pipeline.execute_command("SADD", redis.NAMES.tenants, TENANT)
        pipeline.execute_command(*self.store._save_command(TENANT, rows, now))
        pipeline.execute_command("ZRANGEBYSCORE", redis.NAMES.deletions, f"({now!r}", repr(now))
        return await pipeline.execute()

    async def raw_find(self, digests: list[bytes]) -> list[tuple[bytes, bytes]]:
        ttl = SETTINGS.ttl_seconds
        head = (repr(time.time()), repr(ttl), int(ttl * 1000), repr(ttl * (1 - RENEW_AFTER)), MAX_PER_KEY)
        command = redis.NAMES.call(redis_scripts.FIND, TENANT, *head, b"".join(digests))
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


async def side_by_side(contenders: list[Make], at_once: int) -> list[list[float]]:
    """The rates of each, round by round, taken in turns."""
    rates: list[list[float]] = [[] for _ in contenders]
    for _ in range(ROUNDS):
        for own, make in zip(rates, contenders, strict=True):
            own.append(await calls_per_second(make(), at_once))
    return rates


def ratio(one: list[float], other: list[float]) -> float:
    """Of two that took turns: the middle one of the rounds' ratios."""
    return statistics.median(a / b for a, b in zip(one, other, strict=True))


def many(contender: Contender, calls: int) -> int:
    """Of what takes a microsecond a round needs more."""
    return 20 * calls if isinstance(contender, Memory) else calls


def save_calls(contender: Contender, calls: int, size: int) -> list[Make]:
    """Ours, the raw driver's, and the raw driver's with packing."""

    def ours() -> list[Call]:
        return [partial(contender.store.save, make_turns(size)) for _ in range(calls)]

    def raw() -> list[Call]:
        return [partial(contender.raw_save, rows_of(make_turns(size), PACKER)) for _ in range(calls)]

    def packing() -> list[Call]:
        return [partial(contender.packing_save, make_turns(size)) for _ in range(calls)]

    return [ours, packing] if isinstance(contender, Memory) else [ours, raw, packing]


def find_calls(contender: Contender, calls: int, size: int) -> list[Make]:
    """Ours, the raw driver's, and the raw driver's with unpacking."""

    def groups() -> list[list[Key]]:
        """Keys as a request has them: equal to those that are kept, but made anew."""
        return [[Key(key[:1] + key[1:]) for key in random.sample(contender.keys, size)] for _ in range(calls)]

    def ours() -> list[Call]:
        return [partial(contender.store.find, TENANT, group) for group in groups()]

    def raw() -> list[Call]:
        return [partial(contender.raw_find, [key_digest(TENANT, key) for key in group]) for group in groups()]

    def packing() -> list[Call]:
        return [partial(contender.packing_find, group) for group in groups()]

    return [ours, packing] if isinstance(contender, Memory) else [ours, raw, packing]


async def filled(name: str, count: int) -> Contender:
    """With so many entries, all of which are asked for. Above a thousand one in fifty is a turn, the others are rows of
    the same size that are written without being packed, to get to a million in minutes; in memory all are turns."""
    contender = CONTENDERS[name]()
    await contender.open()
    empty = await contender.disk_bytes()
    real = count if count <= FILL else max(FILL, count // 50)
    for _ in range(0, real, FILL):
        turns = make_turns(FILL)
        await contender.packing_save(turns)
        if name == "memory":
            await contender.store.save(turns)
        contender.keys += [random.choice(turn.keys) for turn in turns]
    bodies = rows_of(make_turns(200), PACKER)
    await contender.fill(
        shown(f"{name} {count:,}", (filler(random.choice(bodies), contender) for _ in range(count - real)))
    )
    contender.bytes_each = (await contender.disk_bytes() - empty) / count
    return contender


def filler(row: Row, contender: Contender) -> Row:
    """A row like another, under keys of its own, by one of which it will be asked for."""
    number = next(numbers)
    keys = [Key(f"filler{part}-v1:{number:064x}") for part in range(len(row.digests) // DIGEST)]
    if not isinstance(contender, Memory):
        contender.keys.append(random.choice(keys))
    return replace(row, identity=os.urandom(16), digests=b"".join(key_digest(TENANT, key) for key in keys))


def shown(what: str, rows: Iterator[Row]) -> Iterator[Row]:
    """The same rows, with a line for every 50,000 on the error output."""
    began = time.perf_counter()
    for number, row in enumerate(rows, 1):
        yield row
        if number % 50_000 == 0:
            print(f"filling {what}: {number:,} in {time.perf_counter() - began:.0f} s", file=sys.stderr, flush=True)


CASES: dict[str, tuple[Callable[[Contender], list[Make]], int, int]] = {
    "find, single": (lambda contender: find_calls(contender, many(contender, 1000), 1), 32, 1),
    "find, batched": (lambda contender: find_calls(contender, many(contender, 60), FINDS), 4, FINDS),
    "save, single": (lambda contender: save_calls(contender, 200, 1), 32, 1),
    "save, batched": (lambda contender: save_calls(contender, 8, SAVES), 4, SAVES),
}
"""How the calls are made, how many go on at once, and how much is in each."""


async def measure(name: str, entries: list[int]) -> None:
    contenders = [await filled(name, count) for count in entries]
    for case, (make, at_once, each) in CASES.items():
        calls = [make(contender) for contender in contenders]
        rates = iter(await side_by_side([one for group in calls for one in group], at_once))
        first = None
        for count, contender, group in zip(entries, contenders, calls, strict=True):
            own = [[rate * each for rate in rounds] for rounds in itertools.islice(rates, len(group))]
            first = first or own[0]
            print(line(name, count, case, own, ratio(first, own[0]), contender.bytes_each), flush=True)
    for contender in contenders:
        await contender.close()


def line(name: str, count: int, case: str, rates: list[list[float]], slower: float, bytes_each: float) -> str:
    """One row of the table. Memory packs nothing: its raw driver stands under "packing"."""
    ours, *others = rates
    gap = [""] * (2 - len(others))
    best = [f"{max(rounds):,.0f}" for rounds in rates]
    figures = " ".join(f"{figure:>10}" for figure in [best[0], *gap, *best[1:]])
    ratios = " ".join(f"{figure:>6}" for figure in [*gap, *(f"{ratio(ours, other):.2f}" for other in others)])
    return f"{name:9} {count:>9,} {case:14} {figures} {ratios} {slower:7.2f} {bytes_each:7,.0f}"


async def measure_front() -> None:
    """What the memory in front costs a request: all keys of a conversation's turns known, and one turn kept."""
    with tempfile.TemporaryDirectory() as folder:
        settings = StoreSettings(trust_seconds=1e9, clean_seconds=1e9)
        store = LayeredStore(durable_store(f"sqlite:///{folder}/thoughts.db", settings, time.time), settings, time.time)
        await store.open()
        await store.save(make_turns(2000))
        turns = [replace(turn, keys=(*turn.keys, Key(f"answer-v1:{turn.id}"))) for turn in make_turns(20)]
        await store.save(turns)
        keys = [key for turn in turns for key in turn.keys]
        await store.find(TENANT, keys)
        front = MemoryStore(settings, time.time)
        finds, saves = 0.0, 0.0
        for _ in range(50):
            finds = max(finds, await calls_per_second([partial(store.find, TENANT, keys)] * 50, 1))
            saves = max(saves, await calls_per_second([partial(front.save, [turn]) for turn in make_turns(50)], 1))
        print(f"in front: find of {len(keys)} known keys of 20 turns {1e6 / finds:.0f} µs", end=", ")
        print(f"save of one turn {1e6 / saves:.0f} µs before the durable store")
        await store.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--entries", type=int, nargs="+", default=[1000, 100_000, 1_000_000])
    parser.add_argument("--stores", nargs="+", choices=CONTENDERS, default=list(CONTENDERS))
    options = parser.parse_args()
    (turn,) = make_turns(1)
    (row,) = rows_of([turn], Packer())
    print(f"a turn is {len(encode_record(turn)):,} bytes of JSON, {row.size:,} packed")
    print(f"load of the machine: {' '.join(f'{load:.1f}' for load in os.getloadavg())} on {os.cpu_count()} cores")
    heads = f"{'per s':>10} {'raw':>10} {'packing':>10} {'/raw':>6} {'/pack':>6} {'slower':>7} {'bytes':>7}"
    print(f"{'store':9} {'entries':>9} {'':14} {heads}", flush=True)
    for name in options.stores:
        asyncio.run(measure(name, options.entries))
    asyncio.run(measure_front())
    print(f"load of the machine: {' '.join(f'{load:.1f}' for load in os.getloadavg())}")


if __name__ == "__main__":
    main()
