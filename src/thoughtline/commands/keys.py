"""`thoughtline keys`: creates, lists and revokes client keys in the store that the gateway uses.

The first key closes the gateway to clients without one, `clear` opens it again; both print this first.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime

from rich.table import Table

from thoughtline.commands.options import add_settings_options, read_settings
from thoughtline.commands.output import is_confirmed, json_text, print_table
from thoughtline.gateway.client_keys import ClientKey, ClientKeys, KeyMark
from thoughtline.gateway.modes import MODES
from thoughtline.settings import Settings, check_exposure, data_directory, home_folder
from thoughtline.stores import durable_store
from thoughtline.stores.settings import decode_duration
from thoughtline.terminal import counted
from thoughtline.values.errors import StoreError, StoreRefused

DONE, NOT_FOUND, FAILED = 0, 1, 2
MAX_NAME_LENGTH = 100
_TABLE_WIDTH = 110
_FIRST = "This is the first client key: from now on every caller needs one.\n`thoughtline keys clear` undoes that."
_NOT_REQUIRED = "The settings have require_client_keys = false: callers without a key still get in."
_LAST = (
    "No valid key is left. The gateway stays closed: `thoughtline keys add NAME` makes another key,\n"
    "`thoughtline keys clear` lets every caller in."
)
_LOST = "The store has no client keys, but there were some once: callers still need one until this is done."


def add_arguments(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    add = actions.add_parser("add", help="make a key; it is shown once", description="make a key; it is shown once")
    add.add_argument(
        "name",
        metavar="NAME",
        type=_name,
        help="the caller's name; a second key of the same name is for the same caller",
    )
    add.add_argument("--requests-per-minute", type=_count, metavar="N", help="requests per minute, over all workers")
    add.add_argument("--streams", type=_count, metavar="N", help="concurrent responses, over all workers")
    add.add_argument("--expires", type=_duration, metavar="30d", help="how long the key is valid")
    add.add_argument(
        "--plain-content",
        action="store_true",
        help="answer chat with text in `content` and thoughts in `reasoning_content`, even from Mistral",
    )
    add.add_argument(
        "--replay", choices=MODES, help="put reasoning back, only observe, or off (default: as the settings say)"
    )
    listing = actions.add_parser(
        "list", help="list all keys, without their secrets", description="list all keys, without their secrets"
    )
    listing.add_argument("--json", action="store_true", help="print one JSON object")
    revoke = actions.add_parser("revoke", help="revoke a key at once", description="revoke a key at once")
    revoke.add_argument("name", metavar="NAME|ID", help="a name (all its keys), or the id of one key")
    about = "delete all keys, so that no caller needs one"
    opening = actions.add_parser(
        "clear", aliases=["open"], help=about, description=f"{about}; explains the effect and asks first"
    )
    opening.add_argument("--yes", action="store_true", help="don't ask")
    for action in (add, listing, revoke, opening):
        add_settings_options(action)


def _name(text: str) -> str:
    if not text.strip() or not text.isprintable() or len(text) > MAX_NAME_LENGTH:
        raise argparse.ArgumentTypeError(f"a name has 1 to {MAX_NAME_LENGTH} printable characters")
    return text.strip()


def _count(text: str) -> int:
    if not text.isdecimal() or not 1 <= int(text) <= 1_000_000:
        raise argparse.ArgumentTypeError("expected a whole number of 1 or more")
    return int(text)


def _duration(text: str) -> float:
    try:
        return decode_duration(text)
    except StoreError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def run(options: argparse.Namespace) -> int:
    """Exit status: 0 success, 1 no such key, 2 failure."""
    return asyncio.run(_ACTIONS[options.action](read_settings(options), options))


@asynccontextmanager
async def kept_keys(settings: Settings) -> AsyncIterator[ClientKeys]:
    """The keys in the store itself, without memory in front: a change is stored, or it fails."""
    if settings.store_url.startswith("memory:"):
        raise StoreRefused(
            "an in-memory store can't keep keys: name the gateway's store with --store or in the settings"
        )
    store = durable_store(settings.store_url, settings.store, time.time)
    await store.open()
    try:
        yield await ClientKeys.load(store, mark=KeyMark(data_directory(os.environ, home_folder())))
    finally:
        await store.close()


async def _add(settings: Settings, options: argparse.Namespace) -> int:
    async with kept_keys(settings) as keys:
        if keys.is_empty:
            _print(_FIRST if settings.server.require_client_keys is not False else _NOT_REQUIRED)
        secret, key = await keys.add(
            options.name,
            requests_per_minute=options.requests_per_minute,
            concurrent_streams=options.streams,
            content="plain" if options.plain_content else None,
            replay=options.replay,
            expires_at=None if options.expires is None else time.time() + options.expires,
        )
    sys.stdout.write(f"{secret}\n")
    sys.stderr.write(f"the key of {key.name} (id {key.id}): only its digest is stored, so it is never shown again\n")
    return DONE


async def _list(settings: Settings, options: argparse.Namespace) -> int:
    async with kept_keys(settings) as keys:
        found = keys.listed()
    if options.json:
        sys.stdout.write(json_text({"keys": found}))
    elif found:
        print_table(_table(found, time.time()), _TABLE_WIDTH)
    else:
        sys.stdout.write("no keys: make one with `thoughtline keys add NAME`\n")
    return DONE


async def _revoke(settings: Settings, options: argparse.Namespace) -> int:
    async with kept_keys(settings) as keys:
        gone = await keys.revoke(options.name)
        is_last = bool(gone) and not any(key.is_good(time.time()) for key in keys.listed())
    for key in gone:
        sys.stdout.write(f"revoked {key.name} (id {key.id}); running gateways know within seconds\n")
    if is_last:
        _print(_LAST)
    if not gone:
        sys.stderr.write("thoughtline keys: there is no such key; `thoughtline keys list` lists them\n")
    return DONE if gone else NOT_FOUND


async def _open(settings: Settings, options: argparse.Namespace) -> int:
    async with kept_keys(settings) as keys:
        is_open = keys.is_empty and not KeyMark(data_directory(os.environ, home_folder())).is_set
        for line in (*_effect(keys, is_open=is_open), *_refusals(settings)):
            _print(line)
        if is_open:
            return DONE
        if not options.yes and not (sys.stdin.isatty() and is_confirmed("Open it?")):
            _print("Nothing was done. Use --yes to skip the question.")
            return FAILED
        gone = await keys.open_door()
    sys.stdout.write(f"{counted(gone, 'key')} deleted; running gateways know within seconds\n")
    return DONE


def _effect(keys: ClientKeys, *, is_open: bool) -> list[str]:
    """The effect of deleting the keys."""
    if is_open:
        return ["There are no client keys to delete."]
    deleted = _LOST if keys.is_empty else f"This deletes {counted(len(keys.listed()), 'client key')} for good."
    return [deleted, "Anyone who reaches the gateway can then use it without one."]


def _refusals(settings: Settings) -> list[str]:
    """Reasons why the gateway stays closed even after the keys are deleted."""
    warnings = []
    if settings.server.require_client_keys:
        warnings.append(
            "But the settings have require_client_keys = true: the gateway stays closed until you change that."
        )
    exposure = check_exposure(settings, has_client_keys=False)
    if exposure is not None:
        warnings.append(f"A gateway with these settings would then serve no caller: {exposure.problems[0].message}.")
    return warnings


def _print(text: str) -> None:
    sys.stderr.write(f"{text}\n")


_ACTIONS = {"add": _add, "list": _list, "revoke": _revoke, "open": _open, "clear": _open}


def _table(keys: Sequence[ClientKey], now: float) -> Table:
    table = Table(box=None)
    for name in ("id", "name", "made", "expires", "requests/min", "streams", "content", "replay", "state"):
        table.add_column(name, no_wrap=name != "name")
    for key in keys:
        limits = [str(limit or "—") for limit in (key.requests_per_minute, key.concurrent_streams)]
        state = "revoked" if key.revoked else "good" if key.is_good(now) else "expired"
        days = [_day(moment) for moment in (key.created_at, key.expires_at)]
        cells = (key.id, key.name, *days, *limits, key.content or "—", key.replay or "—", state)
        table.add_row(*cells)
    return table


def _day(moment: float | None) -> str:
    return "—" if moment is None else datetime.fromtimestamp(moment, UTC).strftime("%Y-%m-%d %H:%M")
