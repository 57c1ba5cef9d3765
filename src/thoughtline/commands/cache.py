"""`thoughtline cache`: the stored turns, through a running gateway's admin API or directly from a store."""

from __future__ import annotations

import argparse
import asyncio
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import datetime
from typing import TypeAlias

import msgspec
from rich.table import Table

from thoughtline.commands.admin_client import AdminClient, add_gateway_options
from thoughtline.commands.options import read_settings
from thoughtline.commands.output import is_confirmed, json_text, print_table
from thoughtline.gateway.admin.answers import CachePage, CacheStats
from thoughtline.gateway.admin.cache import as_kept, entry_answer, stats_answer
from thoughtline.gateway.bus import StoreCounts
from thoughtline.gateway.words import forget_in
from thoughtline.settings import Settings
from thoughtline.stores import Filter, Store, durable_store
from thoughtline.stores.base import MAX_PAGE
from thoughtline.terminal import counted
from thoughtline.values.errors import Declined

DONE, NOT_FOUND = 0, 1
_PATH = "/api/cache/reasoning"
_FILTERS = ("provider", "model", "session", "tenant", "call")
_TABLE_WIDTH = 132
_LONGEST_NAME = 24
"""Models, sessions and calls have names of any length; this limit leaves room for the other columns."""


class StoreCache:
    """A store, opened directly, whether a gateway runs or not."""

    def __init__(self, store: Store, settings: Settings) -> None:
        self._store = store
        self._settings = settings

    async def page(self, where: Filter, limit: int, cursor: str | None) -> CachePage:
        page = await self._store.list_entries(await as_kept(self._store, where), limit, cursor)
        stats = stats_answer(await self._store.stats(), StoreCounts())
        return CachePage(stats, [entry_answer(entry) for entry in page.entries], page.cursor)

    async def clear(self, where: Filter) -> int:
        kept = await as_kept(self._store, where)
        gone = await self._store.delete(kept)
        await forget_in(self._settings, self._store, kept, time.time)
        return gone


class GatewayCache:
    """A running gateway's admin API."""

    def __init__(self, gateway: AdminClient) -> None:
        self._gateway = gateway

    async def page(self, where: Filter, limit: int, cursor: str | None) -> CachePage:
        query = {**_query(where), "limit": str(limit), **({"cursor": cursor} if cursor else {})}
        return msgspec.json.decode(await self._gateway.ask("GET", _PATH, query), type=CachePage)

    async def clear(self, where: Filter) -> int:
        answer = msgspec.json.decode(await self._gateway.ask("DELETE", _PATH, _query(where)), type=dict[str, int])
        return next(iter(answer.values()))


Cache: TypeAlias = StoreCache | GatewayCache
"""Where stored turns can be looked up."""


def _query(where: Filter) -> dict[str, str]:
    named = {
        "provider": where.provider,
        "model": where.model,
        "session": where.session,
        "tenant": where.tenant,
        "toolCallId": where.call_id,
    }
    return {name: value for name, value in named.items() if value is not None}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("action", choices=list(_ACTIONS), help="what to do")
    parser.add_argument(
        "id", nargs="?", metavar="ID", help="for show: the id of a tool call, or the first characters of an entry's id"
    )
    add_gateway_options(parser)
    parser.add_argument("--store", metavar="URL", help="read this store instead of asking a gateway")
    for name in _FILTERS:
        parser.add_argument(
            f"--{name}", metavar=name.upper(), help=f"only this {'tool call' if name == 'call' else name}"
        )
    parser.add_argument("--limit", type=int, default=20, metavar="N", help="how many entries to list (default: 20)")
    parser.add_argument("--json", action="store_true", help="print the JSON of the admin API")
    parser.add_argument("--yes", action="store_true", help="clear without asking")


def run(options: argparse.Namespace) -> int:
    """Exit status: 0 success, 1 nothing found, 2 failure."""
    return asyncio.run(_run(options))


async def _run(options: argparse.Namespace) -> int:
    async with _opened(read_settings(options), options) as cache:
        return await _ACTIONS[options.action](cache, options)


@asynccontextmanager
async def _opened(settings: Settings, options: argparse.Namespace) -> AsyncIterator[Cache]:
    if options.store is None:
        yield GatewayCache(AdminClient.of(settings, options))
        return
    store = durable_store(settings.store_url, settings.store, time.time)
    await store.open()
    try:
        yield StoreCache(store, settings)
    finally:
        await store.close()


def _where(options: argparse.Namespace) -> Filter:
    return Filter(options.tenant, options.provider, options.model, options.session, options.call)


async def _stats(cache: Cache, options: argparse.Namespace) -> int:
    page = await cache.page(_where(options), 1, None)
    if options.json:
        return _print_json(page.stats)
    _show_stats(page.stats)
    return DONE


async def _list(cache: Cache, options: argparse.Namespace) -> int:
    page = await cache.page(_where(options), min(max(options.limit, 1), MAX_PAGE), None)
    if options.json:
        return _print_json(page)
    table = Table(box=None)
    for name in ("id", "made", "provider", "model", "session", "call", "characters"):
        table.add_column(name, no_wrap=True)
    for entry in page.entries:
        names = (_cut(name) for name in (entry.model, entry.session or "—", entry.tool_call_id or "—"))
        table.add_row(entry.id[:12], _minute(entry.created_at), entry.provider, *names, str(entry.char_count))
    print_table(table, _TABLE_WIDTH)
    return DONE


async def _show(cache: Cache, options: argparse.Namespace) -> int:
    """One turn: by the id of one of its calls, else by the beginning of its own id, searched page by page."""
    if not options.id:
        raise Declined(400, "id_missing", "Which one?", "Name a tool call's id, or an entry's from `cache list`.")
    page = await cache.page(Filter(call_id=options.id), 1, None)
    entries, cursor = page.entries, None
    while not entries:
        page = await cache.page(_where(options), MAX_PAGE, cursor)
        entries = [entry for entry in page.entries if entry.id.startswith(options.id)]
        cursor = page.cursor
        if cursor is None:
            break
    if not entries:
        sys.stderr.write("thoughtline cache: nothing is remembered under that id\n")
        return NOT_FOUND
    return _print_json(entries[0])


async def _clear(cache: Cache, options: argparse.Namespace) -> int:
    where = _where(options)
    what = "everything" if where == Filter() else "all that match"
    if not options.yes and not is_confirmed(f"Forget {what}?"):
        sys.stderr.write("Nothing was forgotten. Use --yes to skip the question.\n")
        return NOT_FOUND
    sys.stdout.write(f"{counted(await cache.clear(where), 'turn')} forgotten\n")
    return DONE


_ACTIONS = {"stats": _stats, "list": _list, "show": _show, "clear": _clear}


def _print_json(value: object) -> int:
    sys.stdout.write(json_text(value))
    return DONE


def _cut(name: str) -> str:
    return name if len(name) <= _LONGEST_NAME else name[: _LONGEST_NAME - 1] + "…"


def _minute(moment: datetime | None) -> str:
    return "—" if moment is None else moment.strftime("%Y-%m-%d %H:%M")


def _show_stats(stats: CacheStats) -> None:
    rows = {
        "turns": f"{stats.total_entries} ({stats.memory_entries} in memory, {stats.db_entries} on disk)",
        "characters": str(stats.total_chars),
        "put back": f"{stats.hits} of {stats.hits + stats.misses} turns that needed it ({stats.replay_rate})",
        "oldest": _minute(stats.oldest_entry),
        "newest": _minute(stats.newest_entry),
    }
    for name, share in (*stats.by_provider.items(), *stats.by_model.items()):
        rows[f"  {name}"] = f"{counted(share.entries, 'turn')}, {counted(share.chars, 'character')}"
    for name, text in rows.items():
        sys.stdout.write(f"{name:24} {text}\n")
