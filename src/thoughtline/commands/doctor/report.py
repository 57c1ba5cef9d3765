"""`thoughtline doctor`: all looks together, and how they are told."""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import TextIO

from rich.console import Console
from rich.text import Text

from thoughtline.commands.doctor import Check, is_well
from thoughtline.commands.doctor.server import look_at_exposure, look_at_port, look_at_routes, look_at_token
from thoughtline.commands.doctor.store import StoreReport, look_at_store
from thoughtline.commands.doctor.upstreams import look_at_clock, look_at_upstreams
from thoughtline.commands.options import add_server_options, flags_of
from thoughtline.commands.telling import json_text
from thoughtline.gateway.client_keys import KeyMark
from thoughtline.settings import Flags, Settings, data_directory, home_folder, load_settings, settings_file
from thoughtline.stores import Clock
from thoughtline.values.errors import SettingsError

_SIGNS = {"ok": ("ok  ", "green"), "warn": ("warn", "yellow"), "fail": ("FAIL", "bold red")}
WELL, ILL = 0, 1


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_server_options(parser)
    parser.add_argument("--json", action="store_true", help="print the report as one JSON object")


def run(options: argparse.Namespace) -> int:
    """Exit status: 0 nothing fails, 1 something does."""
    checks = asyncio.run(examine(options.config, os.environ, flags_of(options), home_folder()))
    if options.json:
        sys.stdout.write(as_json(checks))
    else:
        print_report(checks, sys.stdout)
    return WELL if is_well(checks) else ILL


async def examine(file: Path | None, environment: Mapping[str, str], flags: Flags, home: Path) -> list[Check]:
    """Look at everything. With settings that can't be read there is nothing else to look at."""
    try:
        settings = load_settings(file, environment, flags, home)
    except SettingsError as error:
        return [Check("settings", "fail", problem.summary, problem.remedy) for problem in error.problems]
    chosen = file or settings_file(environment, home)
    message = f"read from {chosen}" if chosen else "no config file: using defaults"
    return [Check("settings", "ok", message), *await _look(settings, data_directory(environment, home), time.time)]


async def _look(settings: Settings, data_dir: Path, clock: Clock) -> list[Check]:
    store = await look_at_store(settings, clock)
    seen = await look_at_upstreams(settings, clock)
    requires_keys = _requires_keys(settings, store, data_dir)
    return [
        *store.checks,
        *(check for each in seen for check in each.checks),
        await look_at_port(settings.server),
        look_at_exposure(settings, requires_keys),
        *look_at_routes(settings, requires_keys),
        look_at_token(settings, data_dir),
        look_at_clock(seen),
    ]


def _requires_keys(settings: Settings, store: StoreReport, data_dir: Path) -> bool:
    """Whether nobody gets in without a client key."""
    configured = settings.server.require_client_keys
    return configured if configured is not None else store.has_client_keys or KeyMark(data_dir).is_set


def as_json(checks: list[Check]) -> str:
    return json_text({"ok": is_well(checks), "checks": checks})


def print_report(checks: list[Check], out: TextIO) -> None:
    """One line a check, and one for what to do."""
    console = Console(file=out, highlight=False, soft_wrap=True)
    width = max(len(check.name) for check in checks)
    for check in checks:
        sign, style = _SIGNS[check.state]
        console.print(Text.assemble((sign, style), "  ", (f"{check.name:{width}}", "bold"), f"  {check.message}"))
        if check.remedy:
            console.print(Text.assemble(" " * (width + 8), ("→ ", "green"), check.remedy))
