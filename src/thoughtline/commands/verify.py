"""`thoughtline verify`: check the facts about a provider's model with your own key."""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
from datetime import UTC, datetime
from pathlib import Path

from rich.table import Table

from thoughtline.clients import example_models
from thoughtline.commands.doctor.live import LiveKey
from thoughtline.commands.options import add_config_option, read_settings
from thoughtline.commands.output import json_text, print_table
from thoughtline.destinations.catalogue import Provider
from thoughtline.facts.writing import document
from thoughtline.formats import FORMATS
from thoughtline.providers import canonical_name, host_named
from thoughtline.replay.detection import resolve
from thoughtline.settings import Flags, Settings
from thoughtline.terminal import counted, printable, program
from thoughtline.values.destination import Destination
from thoughtline.values.errors import Declined
from thoughtline.values.nearest import did_you_mean
from thoughtline.values.turns import FormatName
from thoughtline.verify.asking import Asker
from thoughtline.verify.checks import Subject, Verification
from thoughtline.verify.reporting import Verified, lines, overlay_of, plain, report, words_of

AGREED, DIFFERS = 0, 1
BUDGET = 20_000
MAX_REQUESTS = 25
"""For one format; most models need fewer."""

_TABLE_WIDTH = 110


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("provider", metavar="PROVIDER", help="whom to ask")
    parser.add_argument("--model", help="which model (default: a usual one of that provider)")
    parser.add_argument("--format", metavar="FORMAT", help="only in this format (default: all it speaks)")
    parser.add_argument("--key-env", metavar="NAME", help="the variable with the key (default: the usual one)")
    parser.add_argument(
        "--budget",
        type=int,
        default=BUDGET,
        metavar="TOKENS",
        help=f"stop after this many tokens (default: {BUDGET:,})",
    )
    parser.add_argument("--overlay", type=Path, metavar="FILE", help="write what was seen, for `facts update`")
    parser.add_argument("--json", action="store_true", help="print JSON")
    add_config_option(parser)


def run(options: argparse.Namespace) -> int:
    """Exit status: 0 all observations agree with the facts, 1 something differs, 2 failure."""
    settings = read_settings(options, Flags())
    provider = _provider(settings, options.provider)
    model = options.model or example_models().get(provider.name, "")
    if not model:
        raise Declined(400, "no_model", f"No model of {provider.name} is known here.", "Name one: --model MODEL.")
    formats = _formats(provider, options.format)
    key = _key(provider, options.key_env)
    cost = f"up to {counted(MAX_REQUESTS * len(formats), 'short request')}, at most {options.budget:,} tokens"
    sys.stderr.write(f"thoughtline verify: asks {provider.name} about {model}: {cost}, with your key\n")
    return asyncio.run(_verified(provider, model, formats, key=key, options=options))


def _provider(settings: Settings, name: str) -> Provider:
    provider = settings.providers.get(canonical_name(name))
    if provider is None:
        remedy = did_you_mean(name, settings.providers)
        raise Declined(404, "unknown_provider", f"There is no provider {printable(name)}.", remedy)
    if provider.auth == "aws" or provider.is_located or not provider.base_url:
        problem = f"{provider.name} can't be verified: its requests are signed, or its address is yours to set."
        raise Declined(400, "not_verified", problem, "Set base_url and api_key in [providers], or ask its maker.")
    return provider


def _formats(provider: Provider, wanted: str | None) -> tuple[FormatName, ...]:
    """The formats to test: those that a neutral conversation can be written in."""
    found = tuple(
        one
        for one in provider.formats
        if wanted in (None, one) and not {"untranslated", "signed_requests"} & FORMATS[one].quirks
    )
    if not found:
        problem = f"{provider.name} can't be verified in {wanted}."
        raise Declined(400, "no_format", problem, did_you_mean(wanted or "", provider.formats))
    return found


def _key(provider: Provider, variable: str | None) -> str:
    if variable is not None:
        key = os.environ.get(variable, "").strip()
        if not key:
            raise Declined(400, "no_key", f"{variable} is empty or not set.", "Export it, or name another variable.")
        return key
    found = LiveKey(provider, os.environ)
    if not found.is_there:
        raise Declined(400, "no_key", f"There is no key for {provider.name}.", f"Set {found.names}, or name --key-env.")
    return found.value or (provider.api_keys[0] if provider.api_keys else "")


async def _verified(
    provider: Provider, model: str, formats: tuple[FormatName, ...], *, key: str, options: argparse.Namespace
) -> int:
    row = host_named(provider.name)
    if row is None:
        problem = f"{provider.name} is a provider of your own: no row says what is believed of it."
        raise Declined(400, "no_row", problem, "An overlay can add one: docs/facts.md.")
    asker = Asker(provider, key, options.budget)
    every: list[Verified] = []
    try:
        for api in formats:
            target = Destination(provider.name, provider.bases.get(api, provider.base_url), model, api)
            contract = resolve(target)
            example = example_models().get(provider.name, "")
            other = example if example != model else ""
            results = await Verification(Subject(row, target, contract, other), asker).run()
            every.append(Verified(target, contract.name, tuple(results)))
            if not options.json:
                _show(every[-1])
    finally:
        asker.close()
    return _finish(every, asker, options)


def _finish(every: list[Verified], asker: Asker, options: argparse.Namespace) -> int:
    differs = any(one.differences for one in every)
    overlay = overlay_of(every, datetime.now(UTC).date().isoformat())
    if options.json:
        found = {"requests": asker.requests, "tokens": asker.tokens, "verified": plain(every)}
        sys.stdout.write(json_text(found))
    else:
        sys.stdout.write(f"{report(every, asker.requests, asker.tokens)}\n")
    if options.overlay is not None and any(overlay.values()):
        options.overlay.write_text(document(overlay, ["Seen by thoughtline verify."]))
        sys.stderr.write(f"thoughtline verify: {options.overlay} says what was seen: ")
        sys.stderr.write(f"{program()} facts update {options.overlay}\n")
    return DIFFERS if differs else AGREED


def _show(verified: Verified) -> None:
    target = verified.target
    sys.stdout.write(f"\n{target.model} at {target.provider}, {target.format}, contract {verified.contract}\n")
    table = Table(box=None)
    for name in ("fact", "believed", "seen", "verdict"):
        table.add_column(name)
    for row in lines(verified):
        table.add_row(*row)
    print_table(table, _TABLE_WIDTH)
    for one in verified.results:
        if one.refused is not None and (one.verdict == "differs" or not one.refused.is_known):
            known = "" if one.refused.is_known else " (a refusal that is not known yet)"
            sys.stdout.write(f"  {one.fact}: {one.refused.status}: {words_of(one.refused)}{known}\n")
    sys.stdout.write("\n")
