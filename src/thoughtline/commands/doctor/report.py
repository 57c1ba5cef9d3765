"""`thoughtline doctor`: runs all checks and prints the report."""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple, TextIO

import msgspec
from msgspec.structs import replace
from rich.console import Console
from rich.text import Text

from thoughtline.commands.admin_client import AdminClient
from thoughtline.commands.doctor import Check, is_well
from thoughtline.commands.doctor.live import look_live
from thoughtline.commands.doctor.server import look_at_exposure, look_at_port, look_at_routes, look_at_token
from thoughtline.commands.doctor.store import StoreReport, look_at_store
from thoughtline.commands.doctor.upstreams import look_at_clock, look_at_upstreams, named_in
from thoughtline.commands.options import add_server_options, flags_of
from thoughtline.commands.output import json_text
from thoughtline.destinations.addresses import own_url
from thoughtline.destinations.catalogue import Provider
from thoughtline.gateway.admin.request_answers import RequestPage
from thoughtline.gateway.admin.status_answers import ProviderAbout, ProvidersView
from thoughtline.gateway.admin_token import FILE_NAME
from thoughtline.gateway.client_keys import KeyMark
from thoughtline.providers import canonical_name
from thoughtline.settings import Flags, Settings, data_directory, home_folder, load_settings, settings_file
from thoughtline.stores import Clock
from thoughtline.values.errors import Declined, SettingsError
from thoughtline.values.nearest import did_you_mean

_SIGNS = {
    "ok": ("ok  ", "green"),
    "warn": ("warn", "yellow"),
    "fail": ("FAIL", "bold red"),
    "skipped": ("skip", "dim"),
}
WELL, ILL = 0, 1


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "name",
        nargs="?",
        metavar="PROVIDER",
        help="the provider to check (default: those in the settings, and those that the running gateway was asked for)",
    )
    parser.add_argument(
        "--live", action="store_true", help="also ask the provider twice, with your key, and prove the loop"
    )
    parser.add_argument("--model", help="with --live: the model to ask")
    add_server_options(parser)
    parser.add_argument("--json", action="store_true", help="print the report as one JSON object")


def run(options: argparse.Namespace) -> int:
    """Exit status: 0 no failure, 1 a failure."""
    wanted = Wanted(options.name, is_live=options.live, model=options.model)
    checks = asyncio.run(examine(options.config, os.environ, flags_of(options), home_folder(), wanted))
    if options.json:
        sys.stdout.write(as_json(checks))
    else:
        print_report(checks, sys.stdout)
    return WELL if is_well(checks) else ILL


class Wanted(NamedTuple):
    """The checks that the user asked for."""

    provider: str | None = None
    is_live: bool = False
    model: str | None = None


async def examine(
    file: Path | None, environment: Mapping[str, str], flags: Flags, home: Path, wanted: Wanted
) -> list[Check]:
    """Run all checks. If the settings can't be read, there are no others."""
    try:
        settings = load_settings(file, environment, flags, home)
    except SettingsError as error:
        return [Check("settings", "fail", problem.summary, problem.remedy) for problem in error.problems]
    chosen = file or settings_file(environment, home)
    message = f"read from {chosen}" if chosen else "no config file: using defaults"
    if wanted.provider is not None and canonical_name(wanted.provider) not in settings.providers:
        remedy = did_you_mean(wanted.provider, settings.providers)
        return [Check("provider", "fail", f"no provider {wanted.provider}", remedy)]
    data = data_directory(environment, home)
    return [Check("settings", "ok", message), *await _look(settings, data, time.time, wanted)]


async def _look(settings: Settings, data_dir: Path, clock: Clock, wanted: Wanted) -> list[Check]:
    store = await look_at_store(settings, clock)
    running = await asked_of_running(settings, data_dir)
    names = named_in(settings) | {each.name for each in running.in_use}
    if wanted.provider is not None:
        names = frozenset({canonical_name(wanted.provider)})
    seen = await look_at_upstreams(as_used(settings, running), clock, names)
    requires_keys = _requires_keys(settings, store, data_dir)
    live = [await look_live(settings, name, wanted.model) for name in sorted(names)] if wanted.is_live else []
    none = Check("upstreams", "skipped", "no provider is set, and none was asked for", "name one: doctor PROVIDER")
    return [
        *store.checks,
        *([] if names else [none]),
        *(check for each in seen for check in each.checks),
        *live,
        await look_at_port(settings.server),
        look_at_exposure(settings, requires_keys),
        *look_at_routes(settings, requires_keys),
        look_at_token(settings, data_dir),
        look_at_clock(seen),
    ]


class Running(NamedTuple):
    """The providers of a running gateway, from its own report, and those of them to check."""

    providers: tuple[ProviderAbout, ...] = ()
    in_use: tuple[ProviderAbout, ...] = ()


async def asked_of_running(settings: Settings, data_dir: Path) -> Running:
    """Query the gateway at the URL in the settings, if one is running and its token is available."""
    token, file = settings.server.admin_token, data_dir / FILE_NAME
    if token is None and not os.access(file, os.R_OK):
        return Running()
    gateway = AdminClient(own_url(settings.server.host, settings.server.port), token or file.read_text().strip())
    try:
        page = msgspec.json.decode(await gateway.ask("GET", "/api/requests", {"limit": "200"}), type=RequestPage)
        view = msgspec.json.decode(await gateway.ask("GET", "/api/providers"), type=ProvidersView)
    except (Declined, msgspec.DecodeError):
        return Running()
    names = {row.provider for row in page.requests}
    return Running(tuple(view.providers), tuple(each for each in view.providers if each.name in names))


def as_used(settings: Settings, running: Running) -> Settings:
    """The settings with the running gateway's URLs of providers that the settings don't mention (`serve --sim`).

    These get no key: a key belongs to the URL in the settings.
    """
    own, rows = named_in(settings), dict(settings.providers)
    for each in running.providers:
        row = rows.get(each.name)
        if row is None:
            rows[each.name] = Provider(each.name, each.base_url, tuple(each.formats))
        elif each.name not in own and each.base_url != row.base_url:
            rows[each.name] = replace(row, base_url=each.base_url, bases={}, api_keys=(), headers={})
    return replace(settings, providers=rows)


def _requires_keys(settings: Settings, store: StoreReport, data_dir: Path) -> bool:
    """Whether only clients with a key are admitted."""
    configured = settings.server.require_client_keys
    return configured if configured is not None else store.has_client_keys or KeyMark(data_dir).is_set


def as_json(checks: list[Check]) -> str:
    return json_text({"ok": is_well(checks), "checks": checks})


def print_report(checks: list[Check], out: TextIO) -> None:
    """One line per check, and one for the remedy."""
    console = Console(file=out, highlight=False, soft_wrap=True)
    width = max(len(check.name) for check in checks)
    for check in checks:
        sign, style = _SIGNS[check.state]
        console.print(Text.assemble((sign, style), "  ", (f"{check.name:{width}}", "bold"), f"  {check.message}"))
        if check.remedy:
            console.print(Text.assemble(" " * (width + 8), ("→ ", "green"), check.remedy))
