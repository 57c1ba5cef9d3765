"""Checks the store: does it open, keep what is written, and have space?"""

from __future__ import annotations

import asyncio
import os
import secrets
import shutil
import sqlite3
import time
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

from thoughtline.commands.doctor import Check
from thoughtline.gateway.client_keys import ClientKeys
from thoughtline.gateway.masking import masked_url
from thoughtline.settings import Settings
from thoughtline.stores import Clock, Note, Store, durable_store
from thoughtline.values.errors import NewerStore, StoreError, StoreUnavailable, WrongKey

NAMESPACE = "doctor"
TIMEOUT_SECONDS = 10.0
LEAST_FREE_BYTES = 16 * 2**20


class StoreReport(NamedTuple):
    """The result, and whether there are client keys."""

    checks: list[Check]
    has_client_keys: bool = False


async def look_at_store(settings: Settings, clock: Clock = time.time) -> StoreReport:
    """Open the store as the gateway would, write a record, read it back."""
    if settings.store_url.startswith("memory:"):
        message = "turns are kept in memory and lost with the process"
        return StoreReport([Check("store", "warn", message, "set url in [store], or leave it out for the default")])
    try:
        store = durable_store(settings.store_url, settings.store, clock)
        async with asyncio.timeout(TIMEOUT_SECONDS):
            await store.open()
            try:
                report = await _used(store, clock)
            finally:
                await store.close()
    except (StoreError, TimeoutError) as error:
        return StoreReport([_failed(error, settings.store_url)])
    if settings.store_url.startswith("sqlite:"):
        report.checks.extend(_look_at_file(settings))
    return report


async def _used(store: Store, clock: Clock) -> StoreReport:
    key, began = secrets.token_hex(8), time.perf_counter()
    await store.put_note(Note(NAMESPACE, key, b"written by doctor", clock() + 60))
    is_back = key in [note.key for note in await store.notes(NAMESPACE)]
    await store.delete_notes(NAMESPACE, key)
    took = 1000 * (time.perf_counter() - began)
    if not is_back:
        lost = "what was just written can't be read back: do the clocks differ, or does the server evict?"
        return StoreReport([Check("store", "fail", lost, "check how the server stores and evicts (docs/stores.md)")])
    keys = await ClientKeys.load(store, clock)
    return StoreReport([Check("store", "ok", f"opened, written and read back in {took:.0f} ms")], not keys.is_empty)


def _place_to_check(url: str) -> str:
    if url.startswith("sqlite:"):
        place = Path(url.removeprefix("sqlite:///").partition("?")[0])
        return f"check free space and permissions of {place}"
    return f"check that the server at {masked_url(url)} is up and reachable"


def _failed(error: StoreError | TimeoutError, url: str) -> Check:
    match error:
        case TimeoutError():
            message, remedy = "it did not answer in time", _place_to_check(url)
        case StoreUnavailable():
            message, _, remedy = str(error).partition("; ") if url.startswith("sqlite:") else (str(error), "", "")
            remedy = remedy or _place_to_check(url)
        case NewerStore():
            message, remedy = str(error), "upgrade, or name another store"
        case WrongKey():
            message, remedy = str(error), "set encryption_key in [store], or previous_encryption_key after a change"
        case _:
            message, remedy = str(error), "correct url or encryption_key in [store]"
    return Check("store", "fail", message, remedy)


def _look_at_file(settings: Settings) -> list[Check]:
    place = Path(settings.store_url.removeprefix("sqlite:///").partition("?")[0])
    with closing(sqlite3.connect(place)) as connection:
        layout = connection.execute("SELECT max(number) FROM migrations").fetchone()[0]
    checks = [Check("store file", "ok", f"{place}, layout {layout}, {_size(place.stat().st_size)}")]
    if hasattr(os, "getuid") and place.stat().st_mode & 0o077:  # elsewhere modes say nothing about other users
        checks = [Check("store file", "warn", f"others on this machine can read {place}", f"chmod 600 {place}")]
    return [*checks, _look_at_disk(place, settings.store.max_bytes)]


def _look_at_disk(place: Path, max_bytes: int) -> Check:
    free = shutil.disk_usage(place.parent).free
    room = max_bytes - place.stat().st_size
    if free < LEAST_FREE_BYTES:
        return Check("disk", "fail", f"{_size(free)} free", "make room, or keep the store elsewhere")
    if free < room:
        message = f"{_size(free)} free, and the store may grow by {_size(room)}"
        return Check("disk", "warn", message, "make room, or set a smaller max_size in [store]")
    return Check("disk", "ok", f"{_size(free)} free")


def _size(count: int) -> str:
    for unit in ("B", "KiB", "MiB"):
        if count < 1024:
            return f"{count} {unit}"
        count //= 1024
    return f"{count} GiB"
