"""`thoughtline keys`: the gateway's own client keys, made, listed and revoked in the store that the gateway uses."""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path

import msgspec
from rich.console import Console
from rich.table import Table

from thoughtline.errors import StoreRefused, ThoughtlineError
from thoughtline.gateway.client_keys import ClientKey, ClientKeys
from thoughtline.settings import Settings, load_settings
from thoughtline.settings_options import flags_of
from thoughtline.stores import durable_store

DONE, NOT_FOUND, FAILED = 0, 1, 2
_TABLE_WIDTH = 110


def run(options: argparse.Namespace) -> int:
    """Exit status: 0 done, 1 there is no such key, 2 it can't be done."""
    try:
        settings = load_settings(options.config, os.environ, flags_of(options), Path.home())
        return asyncio.run(_ACTIONS[options.action](settings, options))
    except ThoughtlineError as error:
        sys.stderr.write(f"thoughtline keys: {error}\n")
        return FAILED


@asynccontextmanager
async def kept_keys(settings: Settings) -> AsyncIterator[ClientKeys]:
    """The keys of the store itself, with no memory in front: what is said here is kept, or it fails."""
    if settings.store_url.startswith("memory:"):
        raise StoreRefused("memory keeps no keys: name the gateway's store with --store or in settings")
    store = durable_store(settings.store_url, settings.store, time.time)
    await store.open()
    try:
        yield await ClientKeys.load(store)
    finally:
        await store.close()


async def _add(settings: Settings, options: argparse.Namespace) -> int:
    async with kept_keys(settings) as keys:
        secret, key = await keys.add(
            options.name,
            requests_per_minute=options.requests_per_minute,
            concurrent_streams=options.streams,
            content="plain" if options.plain_content else None,
            expires_at=None if options.expires is None else time.time() + options.expires,
        )
    sys.stdout.write(f"{secret}\n")
    sys.stderr.write(f"the key of {key.name} (id {key.id}): it is kept as a digest, and never shown again\n")
    return DONE


async def _list(settings: Settings, options: argparse.Namespace) -> int:
    async with kept_keys(settings) as keys:
        found = keys.listed()
    if options.json:
        sys.stdout.write(msgspec.json.format(msgspec.json.encode({"keys": found}), indent=2).decode() + "\n")
    elif found:
        console = Console(file=sys.stdout, highlight=False)
        console.width = max(console.width, _TABLE_WIDTH)
        console.print(_table(found, time.time()))
    else:
        sys.stdout.write("no keys: `thoughtline keys add NAME` makes one\n")
    return DONE


async def _revoke(settings: Settings, options: argparse.Namespace) -> int:
    async with kept_keys(settings) as keys:
        gone = await keys.revoke(options.name)
    for key in gone:
        sys.stdout.write(f"revoked {key.name} (id {key.id}); running gateways know within seconds\n")
    if not gone:
        sys.stderr.write("thoughtline keys: there is no such key; `thoughtline keys list` names them\n")
    return DONE if gone else NOT_FOUND


_ACTIONS = {"add": _add, "list": _list, "revoke": _revoke}


def _table(keys: Sequence[ClientKey], now: float) -> Table:
    table = Table(box=None)
    for name in ("id", "name", "made", "expires", "requests/min", "streams", "content", "state"):
        table.add_column(name, no_wrap=name != "name")
    for key in keys:
        limits = [str(limit or "—") for limit in (key.requests_per_minute, key.concurrent_streams)]
        state = "revoked" if key.revoked else "good" if key.is_good(now) else "expired"
        table.add_row(key.id, key.name, _day(key.created_at), _day(key.expires_at), *limits, key.content or "—", state)
    return table


def _day(moment: float | None) -> str:
    return "—" if moment is None else datetime.fromtimestamp(moment, UTC).strftime("%Y-%m-%d %H:%M")
