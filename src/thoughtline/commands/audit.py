"""`thoughtline audit`: audits requests from a file or a running gateway, and reports findings to people or programs.

The input may be a request, many of them, a client's session, or the id of a request. Each becomes requests to audit,
with the line of the file for each position in them.
"""

from __future__ import annotations

import argparse
import asyncio
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple, TextIO

import msgspec
from msgspec import Raw, Struct
from rich.console import Console
from rich.text import Text

from thoughtline.clients.session_files import SessionRequest, session_requests, why_untold
from thoughtline.commands.admin_client import AdminClient, add_gateway_options
from thoughtline.commands.options import read_settings
from thoughtline.commands.output import json_text
from thoughtline.destinations.catalogue import listed
from thoughtline.engine.audit import audit
from thoughtline.formats import FORMATS
from thoughtline.formats.json_text import span_at
from thoughtline.providers import canonical_name
from thoughtline.replay.findings import Finding
from thoughtline.settings import Flags
from thoughtline.values.errors import Declined, DecodeError, ThoughtlineError
from thoughtline.values.nearest import did_you_mean
from thoughtline.values.turns import FormatName

CLEAN, FOUND, UNREADABLE = 0, 1, 2
_ID = re.compile(r"[0-9a-f]{16}")
_KEEP = "Set `[debug] keep_bodies = true`, reload (SIGHUP), and send the request again."


class AuditInput(NamedTuple):
    """A request to audit. `locate` gives line and column, from 1, of a position in it; the other members are its known
    facts.
    """

    body: bytes
    locate: Callable[[str], tuple[int, int]]
    provider: str = ""
    model: str = ""
    format: FormatName | None = None


class Located(NamedTuple):
    """A finding, and its position in the file."""

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
    """Exit status: 0 no findings, 1 findings, 2 unreadable input."""
    check_provider(options)
    try:
        located = audited(_inputs(options), options)
    except (OSError, ThoughtlineError) as error:
        why = error.strerror if isinstance(error, OSError) else f"{error} {getattr(error, 'remedy', '')}".rstrip()
        sys.stderr.write(f"thoughtline audit: {options.file}: {why}\n")
        return UNREADABLE
    if options.json:
        sys.stdout.write(as_json(located))
    else:
        print_findings(options.file, located, sys.stdout)
    return FOUND if located else CLEAN


def check_provider(options: argparse.Namespace) -> None:
    """Raises for a provider that is neither built in nor in the settings."""
    if not options.provider or canonical_name(options.provider) in listed():
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
    """Their findings, once for each position in the file. Raises `DecodeError` if one can't be decoded."""
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
    """One paragraph per finding: position, rule, what the provider would say, remedy."""
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


# --- inputs -----------------------------------------------------------------------------------------------------------


def is_request_id(name: str) -> bool:
    """Whether the argument is the id of a gateway's request, not a file."""
    return _ID.fullmatch(name) is not None and not Path(name).exists()


def read_inputs(text: bytes) -> list[AuditInput]:
    """The requests in a file. Raises `DecodeError` if there are none."""
    if _is_object(text):
        return [AuditInput(text, lambda place: position_of(text, place))]
    lines = [(number, line) for number, line in enumerate(text.split(b"\n"), 1) if line.strip()]
    if not lines:
        raise DecodeError("the file is empty")
    for number, line in lines:
        if not _is_object(line):
            raise DecodeError(f"line {number} is not a JSON object" if len(lines) > 1 else "it is not a JSON object")
    if (why := why_untold(text)) is not None:
        raise DecodeError(f"{why}: audit one of its requests instead, by its id")
    sessions = session_requests(lines)
    if sessions is None:
        return [_of_line(number, line) for number, line in lines]
    if not sessions:
        raise DecodeError("this session has no requests")
    return [_of_session(one) for one in sessions]


def _of_line(number: int, line: bytes) -> AuditInput:
    return AuditInput(line, lambda place: (number, position_of(line, place)[1]))


def _of_session(request: SessionRequest) -> AuditInput:
    return AuditInput(request.body, lambda place: (request.line_of(place), 1), format=request.format)


def _is_object(text: bytes) -> bool:
    try:
        msgspec.json.decode(text, type=dict[str, Raw])
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return False
    return True


def position_of(body: bytes, place: str) -> tuple[int, int]:
    """Line and column, from 1, of the value at a pointer, or of the nearest existing value around it."""
    steps: list[str | int] = [int(step) if step.isdigit() else step for step in place.split("/")[1:]]
    while steps:
        found = span_at(body, steps)
        if found is not None:
            start = found[0]
            return body.count(b"\n", 0, start) + 1, start - body.rfind(b"\n", 0, start)
        steps.pop()
    return 1, 1


class _Bodies(Struct, rename="camel"):
    client: str | None = None
    upstream: str | None = None
    is_cut: bool = False


class _Tried(Struct, rename="camel"):
    format: FormatName
    is_translated: bool = False


class _Request(Struct, rename="camel"):
    """The parts used of the answer to `GET /api/requests/{id}`."""

    provider: str
    model: str
    tried: list[_Tried] = []
    bodies: _Bodies | None = None


async def request_input(client: AdminClient, id: str) -> AuditInput:
    """A request as the client sent it; a translated one as it was sent upstream. Raises `Declined` if its body was not
    kept.
    """
    try:
        answer = await client.ask("GET", f"/api/requests/{id}")
    except Declined as error:
        if error.status != 404:
            raise
        raise Declined(
            404, "unknown_request", f"No request {id} is remembered.", "Only the latest requests are kept."
        ) from None
    request = msgspec.json.decode(answer, type=_Request)
    last = request.tried[-1] if request.tried else None
    bodies = request.bodies
    kept = (bodies.upstream if last is not None and last.is_translated else bodies.client) if bodies else None
    if kept is None:
        raise Declined(404, "no_body", "The gateway keeps no bodies, or no longer has this one.", _KEEP)
    if bodies is not None and bodies.is_cut:
        raise Declined(413, "body_cut", "The kept body is cut short.", "Audit it from a file.")
    body = kept.encode()
    return AuditInput(
        body, lambda place: position_of(body, place), request.provider, request.model, last.format if last else None
    )
