"""`thoughtline replay`: a recording through the engine, off the network, and what would be sent."""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections import Counter
from pathlib import Path

from rich.console import Console
from rich.markup import escape

from thoughtline.commands.explain import turn_lines
from thoughtline.commands.options import add_config_option, read_settings
from thoughtline.commands.output import json_text
from thoughtline.recording.form import RecordingFile, read_recording
from thoughtline.recording.replaying import ReplayedExchange, ReplayTarget, replayed
from thoughtline.settings import Flags
from thoughtline.terminal import counted
from thoughtline.values.errors import ThoughtlineError
from thoughtline.values.outcome import finding_words
from thoughtline.values.outcome_words import COUNTED_AS

DONE, UNREADABLE = 0, 2
_COLOURS = {"changed": "green", "untouched": "cyan", "unread": "red", "skipped": "dim"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "file", metavar="FILE", help="a file that `thoughtline record` has written; - for standard input"
    )
    parser.add_argument("--provider", default="", help="replay it as if this provider were asked")
    parser.add_argument("--model", default="", help="replay it as if this model were asked")
    parser.add_argument("--json", action="store_true", help="print one JSON object, with the bodies that would be sent")
    add_config_option(parser)


def run(options: argparse.Namespace) -> int:
    """Exit status: 0 replayed, 2 it is no recording."""
    try:
        data = sys.stdin.buffer.read() if options.file == "-" else Path(options.file).read_bytes()
        file = read_recording(data)
    except (OSError, ThoughtlineError) as error:
        sys.stderr.write(f"thoughtline replay: {options.file}: {error}\n")
        return UNREADABLE
    settings = read_settings(options, Flags())
    made = asyncio.run(replayed(file, settings, ReplayTarget(options.provider, options.model)))
    if options.json:
        sys.stdout.write(json_text({"id": file.entry.get("id", ""), "exchanges": made}))
    else:
        show(Console(highlight=False, soft_wrap=True), file, made)
    return DONE


def show(console: Console, file: RecordingFile, made: list[ReplayedExchange]) -> None:
    """A paragraph for each exchange."""
    for one in made:
        console.print(line_of(one))
        for line in turn_lines(list(one.turns)):
            console.print(f"  {line}")
        if one.remark:
            console.print(f"  [dim]{escape(one.remark)}[/dim]")
        if one.findings:
            console.print(
                f"  [dim]findings[/dim]  {escape(finding_words(Counter(found.rule for found in one.findings)))}"
            )
        if one.status >= 400:
            healed = "; the request would be corrected and sent again" if one.healed else ""
            console.print(f"  [yellow]{one.status}[/yellow] as recorded: {escape(one.refusal)}{healed}")
    results = Counter(one.result for one in made)
    console.print(", ".join(f"{number} {result}" for result, number in results.items()) or "no exchanges", style="bold")


def line_of(one: ReplayedExchange) -> str:
    """An exchange on one line: who is asked, and what would be sent."""
    colour = _COLOURS[one.result]
    done = ", ".join(f"{number} {words}" for name, words in COUNTED_AS if (number := one.counts.get(name, 0)))
    about = {
        "changed": f"would be sent changed: {done or 'its settings'}",
        "untouched": f"would be sent untouched{f': {done}' if done else ''}",
        "unread": f"would be sent untouched, for it can't be read: {one.why}",
        "skipped": f"left out: {one.why}",
    }[one.result]
    kept = f"; {counted(one.captured, 'turn')} captured" if one.captured else ""
    target = "/".join(filter(None, (one.provider, one.model)))
    head = f"[bold]{one.number}[/bold] [dim]{one.format}[/dim] {escape(target)}"
    return f"{head}  [{colour}]{escape(about)}[/{colour}]{kept}"
