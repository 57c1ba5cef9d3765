"""A save in SQLite is an append on the event loop: it never waits there, and is complete at once."""

from __future__ import annotations

import asyncio
import sqlite3
import subprocess
import sys
import threading
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from tests.stores.places import SETTINGS, START, Clock, arrivals, found, lineage, sqlite_url, turn, visible
from thoughtline.stores import Filter, Saved, durable_store, sqlite, sqlite_arrivals, sqlite_work
from thoughtline.stores.packing import Packer
from thoughtline.stores.rows import rows_of
from thoughtline.stores.sqlite import SqliteStore
from thoughtline.stores.sqlite_arrivals import APPEND, LOST_SECONDS, Arrivals, ArrivalsFile
from thoughtline.values.records import RecordId


@pytest.fixture(autouse=True)
def never_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fold arrivals only when a test does it."""
    monkeypatch.setattr(sqlite, "FOLD_SECONDS", 3600.0)


class File:
    """A database, the stores that are open on it, and its writers."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.url = sqlite_url(folder)
        self.clock = Clock()
        self.written: list[str] = []
        self._opened: list[SqliteStore] = []
        for place, name in ((Arrivals, "append"), (sqlite_work, "save")):
            monkeypatch.setattr(place, name, self._noted(getattr(place, name)))

    async def open(self, **settings: Any) -> SqliteStore:
        store = durable_store(self.url + settings.pop("query", ""), replace(SETTINGS, **settings), self.clock)
        assert isinstance(store, SqliteStore)
        await store.open()
        self._opened.append(store)
        return store

    async def open_idle(self) -> SqliteStore:
        """Open a store whose thread is idle: it has checked for leftovers, and has a file to append to."""
        store = await self.open()
        await store._folder.stop()
        store._saves = True
        await store._fold_in_background()
        return store

    async def close(self) -> None:
        for store in self._opened:
            await store.close()

    def rows(self, table: str) -> int:
        if table == "arrivals":
            return arrivals(self.url)
        connection = sqlite3.connect(self.url.removeprefix("sqlite:///"))
        (count,) = connection.execute(f"SELECT count(*) FROM {table}").fetchone()
        connection.close()
        return int(count)

    def lock(self, path: Path | None = None) -> sqlite3.Connection:
        """Hold a lock on the database or a file, like another process that is writing."""
        connection = sqlite3.connect(path or self.url.removeprefix("sqlite:///"), isolation_level=None)
        connection.execute("BEGIN IMMEDIATE")
        return connection

    def _noted(self, write: Any) -> Any:
        def noted(*values: Any) -> Any:
            result, is_main = write(*values), threading.current_thread() is threading.main_thread()
            if result is not None or not is_main:
                self.written.append("loop" if is_main else "thread")
            return result

        return noted


def own_file(store: SqliteStore) -> ArrivalsFile:
    own = store._arrivals.own
    assert own is not None
    return own


@pytest.fixture
async def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[File]:
    made = File(tmp_path, monkeypatch)
    yield made
    await made.close()


async def test_a_save_is_one_statement_on_the_loop(file: File) -> None:
    """It uses no thread and does not wait: concurrent saves are written in order of arrival."""
    store = await file.open_idle()
    statements: list[str] = []
    connection = own_file(store)._connection
    for one in (connection, store._here):
        assert one is not None
        one.set_trace_callback(statements.append)
    await asyncio.gather(*(store.save([turn(number)]) for number in range(20)))
    assert [statement.split()[0] for statement in statements] == ["INSERT"] * 20
    assert (file.written, file.rows("arrivals"), file.rows("records")) == (["loop"] * 20, 20, 0)
    assert [len(await found(store, number)) for number in range(20)] == [1] * 20
    page = await store.list_entries(Filter(), 20)
    assert [entry.record.id for entry in page.entries] == [f"record-{number}" for number in reversed(range(20))]


async def test_a_save_reads_what_others_have_appended_first(file: File) -> None:
    """Only after reading all of it is it known whether a turn is the first of its lineage."""
    one, two = await file.open_idle(), await file.open_idle()
    assert await one.save([turn(1)]) is Saved.FIRST
    again = replace(turn(1, thought="another thought"), id=RecordId("another"))
    assert await two.save([again]) is Saved.DURABLE
    assert await two.save([turn(2)]) is Saved.FIRST
    await two.stats()
    assert await one.save([turn(3)]) is Saved.FIRST
    assert await one.save([again]) is Saved.DURABLE
    assert file.written == ["loop"] * 5
    assert len(await found(one, 1)) == len(await found(two, 1)) == 2


async def test_what_was_folded_is_no_longer_held(file: File) -> None:
    """Whichever process folds it: memory does not grow with saves."""
    one, two = await file.open_idle(), await file.open_idle()
    for number in range(3):
        await one.save([turn(number)])
    await two.stats()
    await one.stats()
    assert (len(one._arrivals), one._arrivals._by_digest) == (0, {})


async def test_what_was_appended_is_found_by_every_process(file: File) -> None:
    """Before, during and after folding by any process; once, together with all that share its key."""
    one, two = await file.open_idle(), await file.open_idle()
    for number in range(4):
        await (one, two)[number % 2].save([turn(number, at=START + number, shared=("ok",))])
        if number == 1:
            await one.stats()
        for store in (one, two):
            answer = await store.find("tenant", [visible("ok"), lineage(number)])
            assert [len(records) for records in answer.values()] == [number + 1, 1]
    await two.stats()
    assert file.rows("records") == 4
    assert [[len(await found(store, number)) for number in range(4)] for store in (one, two)] == [[1] * 4] * 2


async def test_what_another_process_has_appended_is_folded_by_the_next(file: File) -> None:
    """A process that opens the database folds it, as if the other had been killed."""
    one = await file.open_idle()
    await one.save([turn(1), turn(2)])
    two = await file.open()
    while not file.rows("records"):
        await asyncio.sleep(0)
    assert file.rows("records") == 2
    assert [len(await found(two, number)) for number in (1, 2)] == [1, 1]


async def test_a_locked_file_does_not_hold_the_loop(file: File) -> None:
    """The thread waits for the lock; the event loop continues, and the save is done when the lock is released."""
    store = await file.open_idle()
    lock = file.lock(own_file(store)._path)
    saving = asyncio.create_task(store.save([turn(1)]))
    turns_of_the_loop = 0
    database = file.lock()
    while len(file.written) < 1 and turns_of_the_loop < 1000:
        await asyncio.sleep(0)
        turns_of_the_loop += 1
    assert (turns_of_the_loop, saving.done()) == (1000, False)
    database.execute("ROLLBACK")
    database.close()
    lock.execute("ROLLBACK")
    lock.close()
    await saving
    assert file.written == ["thread"]
    assert await found(store, 1) == (turn(1),)


async def test_the_loop_waits_neither_for_locks_nor_for_checkpoints(file: File) -> None:
    """Its connection gives up at once, and leaves checkpoints to the thread."""
    store = await file.open_idle()
    for connection in (store._here, own_file(store)._connection):
        assert connection is not None
        for pragma in ("busy_timeout", "wal_autocheckpoint"):
            assert connection.execute(f"PRAGMA {pragma}").fetchone() == (0,)


async def test_a_slow_file_is_written_aside(file: File, monkeypatch: pytest.MonkeyPatch) -> None:
    """After a slow save, the next one runs in the thread; when one was fast, the event loop appends again."""
    store = await file.open_idle()
    monkeypatch.setattr(sqlite, "SLOW_SECONDS", -1.0)
    await store.save([turn(1)])
    monkeypatch.setattr(sqlite, "SLOW_SECONDS", 3600.0)
    await store.save([turn(2)])
    await store.save([turn(3)])
    assert file.written == ["loop", "thread", "loop"]


async def test_a_slow_file_is_listed_whole_and_in_order(file: File, monkeypatch: pytest.MonkeyPatch) -> None:
    """Appends before a save in the thread come before it; appends after it are there, too."""
    store = await file.open_idle()
    for number, slow_seconds in enumerate((-1.0, 3600.0, -1.0)):
        monkeypatch.setattr(sqlite, "SLOW_SECONDS", slow_seconds)
        await store.save([turn(number)])
    assert file.written == ["loop", "thread", "loop"]
    page = await store.list_entries(Filter(), 10)
    assert [entry.record.id for entry in page.entries] == ["record-2", "record-1", "record-0"]


async def test_a_save_that_was_given_up_hides_nothing_for_long(file: File) -> None:
    """Once the file can be written again, other processes' appends are listed."""
    one, two = await file.open(), await file.open_idle()
    await one.save([turn(1)])
    locks = file.lock(), file.lock(own_file(one)._path)
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(one.save([turn(2)]), 0.01)
    for lock in locks:
        lock.execute("ROLLBACK")
        lock.close()
    await one.clean()
    await two.save([turn(3)])
    page = await one.list_entries(Filter(), 10)
    assert "record-3" in [entry.record.id for entry in page.entries]


@pytest.mark.parametrize("why", ["full", "large"])
async def test_what_may_wait_for_a_disk_is_written_aside(file: File, why: str) -> None:
    """If every commit waits for the disk, and if there is a lot to write."""
    store = await file.open(query="?synchronous=full" if why == "full" else "")
    thought = "".join(str(number * number) for number in range(200_000)) if why == "large" else "short"
    await store.save([turn(1, thought=thought)])
    assert file.written == ["thread"]
    assert len(await found(store, 1)) == 1


async def test_a_deletion_means_what_has_arrived(file: File) -> None:
    """It also deletes records created before it and saved after it, by any process."""
    one, two = await file.open_idle(), await file.open_idle()
    await one.save([turn(1)])
    assert len(await found(two, 1)) == 1
    file.clock.advance(1)
    await two.delete(Filter(session="session"))
    await one.save([turn(2)])
    for store in (one, two):
        assert [await found(store, number) for number in (1, 2)] == [(), ()]
    assert len(one._arrivals) == len(two._arrivals) == 0
    assert file.written == ["loop", "thread"]


async def test_arrivals_that_were_damaged_hold_up_nothing(file: File, caplog: pytest.LogCaptureFixture) -> None:
    """They are lost, and reported; those before and after are not."""
    store = await file.open_idle()
    for number in range(3):
        await store.save([turn(number)])
    connection = sqlite3.connect(own_file(store)._path)
    connection.execute("UPDATE arrivals SET rows = x'c1' WHERE seq = 2")
    connection.commit()
    connection.close()
    other = await file.open()
    assert [len(await found(other, number)) for number in range(3)] == [1, 0, 1]
    assert (await store.stats()).disk_entries == 2
    assert "can't be read" in caplog.text


async def test_a_file_is_locked_before_the_database_is_read(file: File) -> None:
    """A deletion that is noted and then locks each file sees all appends that did not know of it."""
    connection = own_file(await file.open_idle())._connection
    program = connection.execute(f"EXPLAIN {APPEND}", (1, 0.0, b"", 0.0, b"")).fetchall()
    (main,) = connection.execute("SELECT seq FROM pragma_database_list WHERE name = 'main'").fetchone()
    begun = [(database, writes) for _, step, database, writes, *_ in program if step == "Transaction"]
    assert begun[0] == (main, 1)
    assert [writes for _, writes in begun] == [1, 0]


async def test_a_process_that_ends_leaves_only_the_database(file: File) -> None:
    """It contains everything that the process saved."""
    store = await file.open_idle()
    await store.save([turn(1)])
    await store.close()
    folder = Path(file.url.removeprefix("sqlite:///")).parent
    assert [path.name for path in folder.iterdir()] == ["thoughts.db"]
    assert file.rows("records") == 1


async def test_what_was_folded_is_taken_out_of_its_file(file: File) -> None:
    """The process that wrote it removes it, however much it was: the file does not grow with saves."""
    store = await file.open_idle()
    for number in range(250):
        await store.save([turn(number)])
    await store.stats()
    assert (file.rows("arrivals"), file.rows("records")) == (0, 250)
    await store.save([turn(250)])
    assert (file.rows("arrivals"), len(await found(store, 250))) == (1, 1)


@pytest.mark.parametrize("why", ["its process has ended", "nothing was heard of it for long"])
async def test_the_file_of_a_process_that_is_gone_is_folded_and_removed(
    file: File, why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process that was only silent saves to another file from then on; nothing is lost."""
    one, two = await file.open_idle(), await file.open_idle()
    former = own_file(one)
    await one.save([turn(1)])
    if why == "its process has ended":
        monkeypatch.setattr(sqlite_arrivals, "_lives", lambda process: False)
    else:
        file.clock.advance(LOST_SECONDS + 1)
    await two._fold_in_background()
    monkeypatch.undo()
    assert not former._path.exists()
    assert await one.save([turn(2)]) is Saved.DURABLE
    await one._fold_in_background()
    assert own_file(one).name != former.name
    await one.save([turn(3)])
    for store in (one, two):
        assert [len(await found(store, number)) for number in (1, 2, 3)] == [1, 1, 1]


async def test_what_was_saved_is_folded_soon(file: File, monkeypatch: pytest.MonkeyPatch) -> None:
    """Folding happens without further calls."""
    monkeypatch.setattr(sqlite, "FOLD_SECONDS", 0.001)
    store = await file.open()
    await store.save([turn(1)])
    while not file.rows("records"):
        await asyncio.sleep(0)


async def test_the_first_of_several_processes_folds_for_all(file: File) -> None:
    """After another process has folded its saves, a process starts a new wait with its next save, but not with each
    later one."""
    one, two = await file.open_idle(), await file.open_idle()
    waiting = []
    for number in range(4):
        await one.save([turn(number)])
        waiting.append(one._folding)
        if number == 1:
            await two._fold()
    first, second, third, fourth = waiting
    assert (first is second, second is third, third is fourth) == (True, False, True)
    assert second is not None
    assert second.cancelled()


async def test_the_log_of_a_file_is_shortened(file: File, monkeypatch: pytest.MonkeyPatch) -> None:
    """The thread shortens a long log; its content is still found."""
    monkeypatch.setattr(sqlite_arrivals, "MAX_LOG_BYTES", 100_000)
    one, two = await file.open_idle(), await file.open_idle()
    path = own_file(one)._path
    log = path.with_name(path.name + "-wal")
    for number in range(30):
        await one.save([turn(number)])
    before = log.stat().st_size
    assert before > 100_000
    own_file(one).shorten()
    assert log.stat().st_size < 10_000
    assert [len(await found(store, number)) for store in (one, two) for number in range(30)] == [1] * 60
    assert await one.save([turn(30)]) is not None
    own_file(one).shorten()
    assert file.written[-1] == "loop"


def test_a_process_is_known_to_have_ended_only_where_it_ran() -> None:
    """Elsewhere its number may be another process's, or free."""
    with subprocess.Popen([sys.executable, "-c", ""]) as ended:
        pass
    here = sqlite_arrivals._this_process().partition("@")[2]
    assert sqlite_arrivals._lives(sqlite_arrivals._this_process())
    assert not sqlite_arrivals._lives(f"{ended.pid}@{here}")
    assert sqlite_arrivals._lives(f"{ended.pid}@elsewhere")


async def test_a_file_that_is_not_folded_is_not_removed(file: File) -> None:
    """Even if its process seems to be gone."""
    one, two = await file.open_idle(), await file.open_idle()
    await one.save([turn(1)])
    await two._remove_files([own_file(one).name])
    assert own_file(one)._path.exists()
    assert await one.save([turn(2)]) is Saved.FIRST
    assert [len(await found(two, number)) for number in (1, 2)] == [1, 1]


@pytest.mark.parametrize("how", ["damaged", "taken away"])
async def test_a_file_that_can_not_be_read_holds_up_nothing(file: File, how: str) -> None:
    """A file of another process: lookups, saves and deletions continue."""
    one, two = await file.open_idle(), await file.open_idle()
    await one.save([turn(1)])
    await one.stats()
    path = own_file(one)._path
    if how == "damaged":
        path.write_bytes(b"no database at all " * 4096)
        path.with_name(path.name + "-wal").write_bytes(b"")
    else:
        path.unlink()
    await two.save([turn(2)])
    assert [len(await found(two, number)) for number in (1, 2)] == [1, 1]
    assert (await two.stats()).disk_entries == 2
    assert await two.delete(Filter()) == 2
    assert [len(await found(two, number)) for number in (1, 2)] == [0, 0]


async def test_what_an_older_version_appended_to_the_database_is_folded(file: File) -> None:
    """When the database is opened."""
    await (await file.open_idle()).close()
    database = sqlite3.connect(file.url.removeprefix("sqlite:///"), isolation_level=None)
    rows = rows_of([turn(1)], Packer())
    database.execute("INSERT INTO arrivals VALUES (7, ?, ?)", (START, msgspec.msgpack.encode(rows)))
    store = await file.open()
    assert (file.rows("records"), len(await found(store, 1))) == (1, 1)
    assert database.execute("SELECT count(*) FROM main.arrivals").fetchone() == (0,)
    assert database.execute("SELECT value FROM facts WHERE name = 'folded'").fetchone() == (7,)
    database.close()
