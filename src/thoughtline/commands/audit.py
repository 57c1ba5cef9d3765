"""`thoughtline audit`: a request from a file, findings for people or for machines."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TextIO

import msgspec
from rich.console import Console
from rich.text import Text

from thoughtline.auditing import audit
from thoughtline.formats import FORMATS
from thoughtline.formats.json_text import span_at
from thoughtline.replay.findings import Finding
from thoughtline.values.errors import DecodeError

CLEAN, FOUND, UNREADABLE = 0, 1, 2


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE", help="a request body in JSON; - for standard input")
    parser.add_argument("--provider", default="", help="who would get it; without it the model's name decides")
    parser.add_argument("--model", default="", help="the model, where the body does not name it")
    parser.add_argument("--format", choices=list(FORMATS), help="the wire format, where the body does not tell")
    parser.add_argument("--json", action="store_true", help="findings as JSON, one object")


def run(options: argparse.Namespace) -> int:
    """Exit status: 0 nothing found, 1 findings, 2 the file can't be read."""
    try:
        body = sys.stdin.buffer.read() if options.file == "-" else Path(options.file).read_bytes()
        findings = audit(body, options.provider, options.model, options.format)
    except (OSError, DecodeError) as error:
        sys.stderr.write(f"thoughtline audit: {options.file}: {error}\n")
        return UNREADABLE
    if options.json:
        sys.stdout.write(as_json(findings))
    else:
        print_findings(options.file, body, findings, sys.stdout)
    return FOUND if findings else CLEAN


def as_json(findings: list[Finding]) -> str:
    return msgspec.json.format(msgspec.json.encode({"findings": findings}), indent=2).decode() + "\n"


def print_findings(name: str, body: bytes, findings: list[Finding], out: TextIO) -> None:
    """One paragraph a finding: where, which rule, what the provider would say, what to do."""
    console = Console(file=out, highlight=False, soft_wrap=True)
    for finding in findings:
        line, column = line_of(body, finding.place)
        console.print(
            Text.assemble((f"{name}:{line}:{column}", "bold"), "  ", (finding.rule, "red"), f"  {finding.place}")
        )
        console.print(Text(f"  {finding.message}"))
        if finding.answer:
            console.print(Text.assemble((f"  {finding.status} ", "yellow"), (finding.answer, "italic")))
        console.print(Text.assemble(("  → ", "green"), finding.remedy))
    count = len(findings)
    summary = "no findings" if not count else f"{count} finding{'s' if count > 1 else ''}"
    console.print(Text(summary, "bold green" if not count else "bold red"))


def line_of(body: bytes, place: str) -> tuple[int, int]:
    """Line and column, from 1, of the value at a pointer, or of the nearest thing around it that is there."""
    steps: list[str | int] = [int(step) if step.isdigit() else step for step in place.split("/")[1:]]
    while steps:
        found = span_at(body, steps)
        if found is not None:
            start = found[0]
            return body.count(b"\n", 0, start) + 1, start - body.rfind(b"\n", 0, start)
        steps.pop()
    return 1, 1
