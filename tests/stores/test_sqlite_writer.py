"""SQLite's errors as our own: with the file, and the remedy if known."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from thoughtline.stores.sqlite_writer import unavailable
from thoughtline.values.errors import StoreDamaged, StoreUnavailable


def full(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA max_page_count = 2")
        connection.execute("CREATE TABLE one (text)")
        connection.execute("INSERT INTO one VALUES (zeroblob(100000))")


def read_only(path: Path) -> None:
    sqlite3.connect(path).close()
    with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as connection:
        connection.execute("CREATE TABLE one (text)")


def folder(path: Path) -> None:
    path.mkdir()
    sqlite3.connect(path).close()


def no_database(path: Path) -> None:
    path.write_text("this is not a database" * 100)
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("SELECT * FROM one")


@pytest.mark.parametrize(
    ("make", "kind", "remedy"),
    [
        (full, StoreUnavailable, "full; free space on its disk"),
        (read_only, StoreUnavailable, "make it writable, or name another with --store"),
        (folder, StoreUnavailable, "make its folder writable, or name another with --store"),
        (no_database, StoreDamaged, "file is not a database"),
    ],
)
def test_the_file_and_the_remedy_are_named(
    make: object, kind: type[StoreUnavailable], remedy: str, tmp_path: Path
) -> None:
    path = tmp_path / "store.db"
    assert callable(make)
    with pytest.raises(sqlite3.Error) as caught:
        make(path)
    error = unavailable(caught.value, path)
    assert type(error) is kind
    assert str(error).startswith(f"sqlite: {path}: ")
    assert remedy in str(error)
