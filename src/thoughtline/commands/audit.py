"""`thoughtline audit`: requests from a file or a running gateway, findings for people or for machines."""

from __future__ import annotations

import argparse
import asyncio
import sys
from pathlib import Path
from typing import NamedTuple, TextIO

import msgspec
from rich.console import Console
from rich.text import Text

from thoughtline.auditing import audit
from thoughtline.catalogue import PROVIDERS
from thoughtline.commands.admin_client import AdminClient, add_gateway_options
from thoughtline.commands.audit_inputs import AuditInput, is_request_id, read_inputs, request_input
from thoughtline.commands.options import read_settings
from thoughtline.commands.telling import json_text
from thoughtline.formats import FORMATS
from thoughtline.providers import canonical_name
from thoughtline.replay.findings import Finding
from thoughtline.settings import Flags
from thoughtline.values.errors import Declined, DecodeError, ThoughtlineError
from thoughtline.values.nearest import did_you_mean

CLEAN, FOUND, UNREADABLE = 0, 1, 2


class Located(NamedTuple):
    """A finding, and where it stands in the file."""

    finding: Finding
    line: int
    column: int


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "file",
        metavar="FILE|ID",
        help="a JSON request, requests in JSON lines, a session file of Claude Code or Codex, - for standard input; or "
        "the id of a request whose body a running gateway has kept",
    )
    parser.add_argument(
        "--provider", default="", help="the provider that would get it (default: decided by the model's name)"
    )
    parser.add_argument("--model", default="", help="the model, if the body does not name it")
    parser.add_argument("--format", choices=list(FORMATS), help="the wire format, if the body does not show it")
    parser.add_argument("--json", action="store_true", help="print the findings as one JSON object")
    add_gateway_options(parser)


def run(options: argparse.Namespace) -> int:
    """Exit status: 0 nothing found, 1 findings, 2 it can't be read."""
    check_provider(options)
    try:
        located = audited(_inputs(options), options)
    except (OSError, ThoughtlineError) as error:
        remedy = getattr(error, "remedy", "")
        sys.stderr.write(f"thoughtline audit: {options.file}: {error} {remedy}".rstrip() + "\n")
        return UNREADABLE
    if options.json:
        sys.stdout.write(as_json(located))
    else:
        print_findings(options.file, located, sys.stdout)
    return FOUND if located else CLEAN


def check_provider(options: argparse.Namespace) -> None:
    """Raises for a provider that is neither built in nor in the settings."""
    if not options.provider or canonical_name(options.provider) in PROVIDERS:
        return
    known = read_settings(options, Flags()).providers
    if canonical_name(options.provider) not in known:
        problem = f"no provider {options.provider};"
        raise Declined(404, "unknown_provider", problem, did_you_mean(options.provider, known))


def _inputs(options: argparse.Namespace) -> list[AuditInput]:
    if options.file == "-":
        return read_inputs(sys.stdin.buffer.read())
    if not is_request_id(options.file):
        return read_inputs(Path(options.file).read_bytes())
    gateway = AdminClient.of(read_settings(options, Flags()), options)
    return [asyncio.run(request_input(gateway, options.file))]


def audited(inputs: list[AuditInput], options: argparse.Namespace) -> list[Located]:
    """What is wrong with them, once for each place of the file. Raises `DecodeError` if one can't be read."""
    found: dict[Located, None] = {}
    for one in inputs:
        chosen = options.provider or one.provider, options.model or one.model, options.format or one.format
        try:
            findings = audit(one.body, *chosen)
        except DecodeError as error:
            if len(inputs) == 1:
                raise
            raise DecodeError(f"line {one.locate('')[0]}: {error}") from None
        for finding in findings:
            found[Located(finding, *one.locate(finding.place))] = None
    return list(found)


def as_json(located: list[Located]) -> str:
    findings = [{**msgspec.to_builtins(one.finding), "line": one.line, "column": one.column} for one in located]
    return json_text({"findings": findings})


def print_findings(name: str, located: list[Located], out: TextIO) -> None:
    """One paragraph a finding: where, which rule, what the provider would say, what to do."""
    console = Console(file=out, highlight=False, soft_wrap=True)
    for finding, line, column in located:
        console.print(
            Text.assemble((f"{name}:{line}:{column}", "bold"), "  ", (finding.rule, "red"), f"  {finding.place}")
        )
        console.print(Text(f"  {finding.message}"))
        if finding.answer:
            console.print(Text.assemble((f"  {finding.status} ", "yellow"), (finding.answer, "italic")))
        console.print(Text.assemble(("  → ", "green"), finding.remedy))
    count = len(located)
    summary = "no findings" if not count else f"{count} finding{'s' if count > 1 else ''}"
    console.print(Text(summary, "bold green" if not count else "bold red"))
