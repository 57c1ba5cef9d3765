"""Options of the commands that read settings."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from typing import get_args

from thoughtline.engine.contracts import go_by
from thoughtline.settings import FILE_NAME, FILE_VARIABLE, Flags, Settings, home_folder, load_settings
from thoughtline.terminal import LogFormat, LogOptions, is_coloured


def add_config_option(parser: argparse.ArgumentParser) -> None:
    """Which settings file is read."""
    parser.add_argument(
        "--config",
        type=Path,
        metavar="FILE",
        help=f"settings file (default: ${FILE_VARIABLE}, otherwise ~/.config/thoughtline/{FILE_NAME} if it exists)",
    )


def add_settings_options(parser: argparse.ArgumentParser) -> None:
    """The settings file and the store."""
    add_config_option(parser)
    parser.add_argument("--store", metavar="URL", help="the store: sqlite:///…, redis://…, postgresql://…, memory://")


def add_server_options(parser: argparse.ArgumentParser) -> None:
    """Options of the gateway's server."""
    add_settings_options(parser)
    parser.add_argument("--host", help="address to listen on (default: 127.0.0.1)")
    parser.add_argument("--port", type=int, help="port to listen on; 0 lets the system choose (default: 8642)")
    parser.add_argument("--upstream", metavar="URL", help="make the provider at this address the default")
    parser.add_argument("--provider", metavar="NAME", help="which provider --upstream is (default: recognized by host)")
    parser.add_argument("--workers", type=int, metavar="N", help="worker processes (default: 1)")


def add_log_options(parser: argparse.ArgumentParser) -> None:
    """Options for log output."""
    parser.add_argument(
        "--log",
        choices=get_args(LogFormat),
        help="readable text or JSON lines (default: text on a terminal, otherwise json)",
    )
    level = parser.add_mutually_exclusive_group()
    level.add_argument("--quiet", action="store_true", help="log only what goes wrong")
    level.add_argument("--verbose", action="store_true", help="log more: sizes, sessions, findings")


def log_options(chosen: argparse.Namespace) -> LogOptions:
    """From the command line; by default text for a terminal."""
    is_terminal = sys.stderr.isatty()
    return LogOptions(
        format=chosen.log or ("text" if is_terminal else "json"),
        level="quiet" if chosen.quiet else "verbose" if chosen.verbose else "normal",
        is_coloured=is_coloured(sys.stderr, os.environ),
    )


def flags_of(options: argparse.Namespace) -> Flags:
    """The values from the command line; an option that the command lacks counts as not given."""
    values = vars(options)
    return Flags(**{name: values.get(name) for name in Flags.__struct_fields__})


def read_settings(options: argparse.Namespace, flags: Flags | None = None) -> Settings:
    """The settings for this command line. A command whose options of the same names mean something else passes its
    flags.
    """
    settings = load_settings(options.config, os.environ, flags_of(options) if flags is None else flags, home_folder())
    go_by(settings)
    return settings
