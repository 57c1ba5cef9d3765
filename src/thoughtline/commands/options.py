"""Options of the commands that read settings."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from typing import get_args

from thoughtline.settings import FILE_NAME, FILE_VARIABLE, Flags
from thoughtline.stores.settings import decode_duration
from thoughtline.terminal import LogFormat, LogOptions, is_coloured
from thoughtline.values.errors import StoreError

MAX_NAME_LENGTH = 100


def add_config_option(parser: argparse.ArgumentParser) -> None:
    """Which file of settings is read."""
    parser.add_argument(
        "--config",
        type=Path,
        metavar="FILE",
        help=f"settings file (default: ${FILE_VARIABLE}, otherwise ~/.config/thoughtline/{FILE_NAME} if it exists)",
    )


def add_settings_options(parser: argparse.ArgumentParser) -> None:
    """Where settings are read, and the store."""
    add_config_option(parser)
    parser.add_argument("--store", metavar="URL", help="the store: sqlite:///…, redis://…, postgresql://…, memory://")


def add_server_options(parser: argparse.ArgumentParser) -> None:
    """What is said of the gateway itself."""
    add_settings_options(parser)
    parser.add_argument("--host", help="address to listen on (default: 127.0.0.1)")
    parser.add_argument("--port", type=int, help="port to listen on; 0 lets the system choose (default: 8642)")
    parser.add_argument("--upstream", metavar="URL", help="make the provider at this address the default")
    parser.add_argument("--provider", metavar="NAME", help="which provider --upstream is (default: recognized by host)")
    parser.add_argument("--workers", type=int, metavar="N", help="worker processes (default: 1)")


def add_log_options(parser: argparse.ArgumentParser) -> None:
    """How it says what it does."""
    parser.add_argument(
        "--log",
        choices=get_args(LogFormat),
        help="readable text or JSON lines (default: text on a terminal, otherwise json)",
    )
    level = parser.add_mutually_exclusive_group()
    level.add_argument("--quiet", action="store_true", help="log only what goes wrong")
    level.add_argument("--verbose", action="store_true", help="log more: sizes, sessions, findings")


def log_options(chosen: argparse.Namespace) -> LogOptions:
    """As the command line says; else words where a person reads."""
    is_terminal = sys.stderr.isatty()
    return LogOptions(
        format=chosen.log or ("text" if is_terminal else "json"),
        level="quiet" if chosen.quiet else "verbose" if chosen.verbose else "normal",
        is_coloured=is_coloured(sys.stderr, os.environ),
    )


def flags_of(options: argparse.Namespace) -> Flags:
    """What was said on the command line; an option that the command does not have was not."""
    said = vars(options)
    return Flags(**{name: said.get(name) for name in Flags.__struct_fields__})


def add_key_actions(parser: argparse.ArgumentParser) -> None:
    """What can be done with client keys."""
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
    listing = actions.add_parser(
        "list", help="list all keys, without their secrets", description="list all keys, without their secrets"
    )
    listing.add_argument("--json", action="store_true", help="print one JSON object")
    revoke = actions.add_parser("revoke", help="revoke a key at once", description="revoke a key at once")
    revoke.add_argument("name", metavar="NAME|ID", help="a name (all its keys), or the id of one key")
    about = "delete all keys, so that no caller needs one"
    opening = actions.add_parser("open", help=about, description=f"{about}; explains the effect and asks first")
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
