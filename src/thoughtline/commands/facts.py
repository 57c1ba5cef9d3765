"""`thoughtline facts`: the facts about models and hosts, with their dates and sources; overlays on them."""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
import time
from datetime import UTC, date, datetime
from pathlib import Path
from typing import TypeAlias
from urllib.parse import urlsplit

from rich.table import Table

from thoughtline.commands.http_client import NO_ANSWER, answer_to
from thoughtline.commands.options import add_config_option, read_settings
from thoughtline.commands.output import is_confirmed, json_text, print_table
from thoughtline.engine.learned import Lessons
from thoughtline.facts.files import installed, overlays_folder
from thoughtline.facts.learned import overlay_of
from thoughtline.facts.listing import Difference, Fact, beliefs, formats_of, listed
from thoughtline.facts.overlays import MAX_BYTES
from thoughtline.facts.sheets import KINDS, written
from thoughtline.facts.updating import check, install, undo
from thoughtline.facts.writing import document
from thoughtline.providers import ProviderRow, canonical_name, facts, host_named, maker_of
from thoughtline.replay.detection import resolve
from thoughtline.settings import Flags, data_directory, home_folder
from thoughtline.stores import durable_store
from thoughtline.terminal import counted, printable, program
from thoughtline.toml.writing import value, write_table
from thoughtline.values.destination import Destination
from thoughtline.values.errors import Declined
from thoughtline.values.nearest import did_you_mean

DONE, NOT_FOUND = 0, 1
_TABLE_WIDTH = 140
_SHOWN_CHARS = 60


def add_arguments(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    listing = _action(actions, "list", "list facts with their source and age")
    listing.add_argument("--kind", choices=tuple(KINDS), help="only this kind")
    listing.add_argument("--provider", metavar="NAME", help="only facts of this provider")
    listing.add_argument("--old", action="store_true", help="only facts older than 90 days, or unverified")
    listing.add_argument("--json", action="store_true", help="print JSON")
    show = _action(actions, "show", "show what is believed of a model and why, or one fact as TOML")
    show.add_argument("name", metavar="MODEL", help="a model (PROVIDER/MODEL where another serves it), or KIND.NAME")
    show.add_argument("--provider", metavar="NAME", help="the provider that serves it (default: its maker)")
    show.add_argument("--format", metavar="FORMAT", help="only in this format")
    show.add_argument("--json", action="store_true", help="print JSON")
    _action(actions, "export", "print the whole table as TOML")
    update = _action(actions, "update", "check an overlay, show what it changes, and install it")
    update.add_argument("source", metavar="FILE|URL", help="a file, or an https address")
    update.add_argument("--sha256", metavar="DIGEST", default="", help="take it only if it has this digest")
    update.add_argument("--yes", action="store_true", help="install it without asking")
    _action(actions, "undo", "remove the overlay that was installed last")
    _action(actions, "learned", "print what the gateway learned from refusals, as an overlay")


Actions: TypeAlias = "argparse._SubParsersAction[argparse.ArgumentParser]"


def _action(actions: Actions, name: str, what: str) -> argparse.ArgumentParser:
    added = actions.add_parser(name, help=what, description=what)
    add_config_option(added)
    return added


def run(options: argparse.Namespace) -> int:
    """Exit status: 0 success, 1 nothing found, 2 failure."""
    return int(_ACTIONS[options.action](options))


def _folder() -> Path:
    return overlays_folder(data_directory(os.environ, home_folder()))


def _today() -> date:
    return datetime.now(UTC).date()


def _list(options: argparse.Namespace) -> int:
    read_settings(options, Flags())
    sheets = written(facts())
    wanted = canonical_name(options.provider) if options.provider else None
    rows = [
        fact
        for fact in listed(sheets, _today())
        if options.kind in (None, fact.kind)
        and (not wanted or wanted in (fact.name, sheets[fact.kind][fact.name].get("provider"), *_of(wanted, fact)))
        and (not options.old or fact.is_old or fact.age_days is None)
    ]
    if options.json:
        sys.stdout.write(json_text([{**fact._asdict(), "is_old": fact.is_old} for fact in rows]))
        return DONE if rows else NOT_FOUND
    table = Table(box=None)
    for name in ("fact", "about", "source", "read", "age"):
        table.add_column(name, no_wrap=name in ("fact", "read", "age"), overflow="fold")
    for fact in rows:
        table.add_row(f"{fact.kind}.{fact.name}", _cut(fact.about), _cut(fact.source), fact.read, _age(fact))
    print_table(table, _TABLE_WIDTH)
    old = sum(fact.is_old for fact in rows)
    unverified = sum(fact.age_days is None for fact in rows)
    sys.stdout.write(f"\n{counted(len(rows), 'fact')}; {old:,} older than 90 days, {unverified:,} unverified\n")
    return DONE if rows else NOT_FOUND


def _of(provider: str, fact: Fact) -> tuple[str, ...]:
    """The provider, if a contract is of it."""
    row = host_named(provider)
    own = {one.name for one in row.contracts} if row is not None else set()
    return (provider,) if fact.kind == "contracts" and (fact.name in own or fact.name.rpartition("-")[0] in own) else ()


def _age(fact: Fact) -> str:
    if fact.age_days is None:
        return "unverified"
    return f"{counted(fact.age_days, 'day')}{' (old)' if fact.is_old else ''}"


def _cut(text: str) -> str:
    text = printable(text)
    return text if len(text) <= _SHOWN_CHARS else f"{text[: _SHOWN_CHARS - 1]}…"


def _show(options: argparse.Namespace) -> int:
    read_settings(options, Flags())
    sheets = written(facts())
    kind, _, name = options.name.partition(".")
    if kind in sheets and name in sheets[kind]:
        sys.stdout.write(write_table((kind, name), sheets[kind][name]))
        return DONE
    row, model = _row_and_model(options)
    shown = []
    for api in formats_of(row, options.format):
        contract = resolve(Destination(row.name, "", model, api))
        shown.append((api, list(beliefs(row, facts(), model, contract))))
    if options.json:
        found = [
            {"format": api, "what": one.what, "value": one.value, "source": str(one.source)}
            for api, some in shown
            for one in some
        ]
        sys.stdout.write(json_text({"provider": row.name, "model": model, "beliefs": found}))
        return DONE
    for api, some in shown:
        sys.stdout.write(f"{model} at {row.name}, {api}\n")
        for one in some:
            sys.stdout.write(f"  {one.what:28} {one.value}\n")
        for source in dict.fromkeys(str(one.source) for one in some):
            sys.stdout.write(f"  because: {source or 'unverified'}\n")
        sys.stdout.write("\n")
    sys.stdout.write(f"Is it so? {program()} verify {row.name} --model {model}\n")
    return DONE


def _row_and_model(options: argparse.Namespace) -> tuple[ProviderRow, str]:
    """The provider of a model: the named one, the one before the slash, or the model's maker."""
    before, slash, rest = options.name.partition("/")
    named = options.provider or (before if slash and host_named(before) else None)
    if named is None:
        row = maker_of(options.name)
        if row is None:
            remedy = "Name the provider that serves it: --provider NAME."
            raise Declined(404, "unknown_model", f"No row says who makes {printable(options.name)}.", remedy)
        return row, options.name
    row = host_named(named)
    if row is None:
        names = [one.name for one in facts().rows]
        raise Declined(404, "unknown_provider", f"There is no provider {printable(named)}.", did_you_mean(named, names))
    return row, rest if slash and not options.provider else options.name


def _export(options: argparse.Namespace) -> int:
    read_settings(options, Flags())
    head = ["The table of facts. An overlay has only what it changes: docs/facts.md."]
    sys.stdout.write(document(written(facts()), head))
    return DONE


def _update(options: argparse.Namespace) -> int:
    read_settings(options, Flags())
    raw = _fetched(options.source) if "://" in options.source else _file(Path(options.source))
    checked = check(raw, options.source, _folder(), digest=options.sha256)
    for change in checked.changes:
        sys.stdout.write(_changed(change))
    if not checked.changes:
        sys.stdout.write("It changes nothing.\n")
        return DONE
    if not options.yes and not is_confirmed(f"Install {counted(len(checked.changes), 'change')}?"):
        return NOT_FOUND
    place = install(checked, _folder())
    sys.stdout.write(
        f"Installed as {place}. A running gateway takes it when it reloads (kill -HUP), another at its start.\n"
        f"To take it back: {program()} facts undo\n"
    )
    return DONE


def _changed(change: Difference) -> str:
    place = f"{change.kind}.{change.name}.{change.member}"
    before = "" if change.before is None else f"{value(change.before)} "
    return f"{place}: {before}→ {'(default)' if change.after is None else value(change.after)}\n"


def _file(path: Path) -> bytes:
    try:
        with path.open("rb") as opened:
            return opened.read(MAX_BYTES + 1)
    except OSError as error:
        raise Declined(400, "no_file", f"{path} can't be read: {error.strerror}.", "") from None


def _fetched(url: str) -> bytes:
    """The bytes at a URL. Redirects are not followed: only the named URL is trusted."""
    if urlsplit(url).scheme != "https":
        raise Declined(400, "not_https", "An overlay is fetched over https only.", "Download it, and name the file.")
    return asyncio.run(_get(url))


async def _get(url: str) -> bytes:
    try:
        async with asyncio.timeout(60), answer_to("GET", url) as response:
            if response.status != 200:
                where = response.header("location")
                remedy = f"It leads to {printable(where)[:200]}: name that address, if you trust it." if where else ""
                raise Declined(502, "not_fetched", f"{url} answers {response.status}.", remedy)
            raw = b""
            while (piece := await response.read()) is not None:
                raw += piece
                if len(raw) > MAX_BYTES:
                    remedy = "An overlay has only what it changes."
                    raise Declined(502, "too_large", f"{url} has more than {MAX_BYTES // 2**20} MiB.", remedy)
            return raw
    except NO_ANSWER as error:
        remedy = "Download it, and name the file."
        raise Declined(502, "not_fetched", f"{url} can't be fetched: {error}.", remedy) from None


def _undo(options: argparse.Namespace) -> int:
    gone = undo(_folder())
    if gone is None:
        sys.stderr.write("thoughtline facts: no overlay is installed\n")
        return NOT_FOUND
    left = counted(len(installed(_folder())), "overlay")
    sys.stdout.write(f"{gone} is no longer read; {left} left. A running gateway goes back when it reloads.\n")
    return DONE


def _learned(options: argparse.Namespace) -> int:
    settings = read_settings(options, Flags())

    async def corrections() -> Lessons:
        store = durable_store(settings.store_url, settings.store, time.time)
        await store.open()
        try:
            lessons = Lessons(store, time.time)
            await lessons.refresh()
        finally:
            await store.close()
        return lessons

    sheets, left = overlay_of(asyncio.run(corrections()).corrections, time.time())
    for line in left:
        sys.stderr.write(f"thoughtline facts: left out: {line}\n")
    if not any(sheets.values()):
        sys.stderr.write("thoughtline facts: nothing was learned that an overlay can say\n")
        return NOT_FOUND
    head = [f"What this gateway learned from refusals, {_today()}. Review it, then: thoughtline facts update FILE"]
    sys.stdout.write(document(sheets, head))
    return DONE


_ACTIONS = {
    "list": _list,
    "show": _show,
    "export": _export,
    "update": _update,
    "undo": _undo,
    "learned": _learned,
}
