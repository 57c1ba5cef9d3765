"""`thoughtline explain`: what a running gateway did with a request, and why."""

from __future__ import annotations

import argparse
import asyncio
import sys
from itertools import groupby
from urllib.parse import quote

import msgspec
from rich.console import Console
from rich.markup import escape

from thoughtline.commands.admin_client import AdminClient, add_gateway_options
from thoughtline.commands.options import read_settings
from thoughtline.commands.output import report
from thoughtline.gateway.admin.request_answers import (
    AttemptView,
    ContractUsed,
    RefusalView,
    RequestPage,
    RequestRow,
    RequestView,
    TurnView,
)
from thoughtline.terminal import program
from thoughtline.values.errors import ThoughtlineError

DONE, NOT_FOUND = 0, 1
_FAILED = ("refused", "failed", "declined")
_COLOURS = {
    "pending": "cyan",
    "stripped": "magenta",
    **dict.fromkeys(("ok", "restored"), "green"),
    **dict.fromkeys(("healed", "inherited", "blank"), "yellow"),
    **dict.fromkeys(("missing", *_FAILED), "red"),
    **dict.fromkeys(("gone", "kept"), "dim"),
}
_MAX_ALIKE = 3
"""Consecutive turns that are shown one by one, if all had the same treatment for the same reason."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "which",
        nargs="?",
        default="last",
        metavar="ID",
        help="the x-thoughtline-request header of an answer, or its first characters; `last` (default), `last-failed`",
    )
    parser.add_argument("--follow", action="store_true", help="print a line for each request as it begins and ends")
    parser.add_argument("--json", action="store_true", help="print the JSON of the admin API")
    add_gateway_options(parser)


def run(options: argparse.Namespace) -> int:
    """Exit status: 0 explained, 1 no such request, 2 failure."""
    try:
        gateway = AdminClient.of(read_settings(options), options)
        return asyncio.run(_follow(gateway, options) if options.follow else _explain(gateway, options))
    except ThoughtlineError as error:
        if getattr(error, "code", "") != "unknown_request":
            return report("explain", error)
        known = f"`{program()} explain` shows the last one, the dashboard lists all"
        sys.stderr.write(f"thoughtline explain: no request with the id {options.which!r} is remembered; {known}\n")
        return NOT_FOUND


async def _explain(gateway: AdminClient, options: argparse.Namespace) -> int:
    name = await _latest(gateway, options.which) if options.which in ("last", "last-failed") else options.which
    if name is None:
        what = "no request has failed" if options.which == "last-failed" else "no request has ended"
        sys.stderr.write(f"thoughtline explain: {what} since the gateway started\n")
        return NOT_FOUND
    body = await gateway.ask("GET", f"/api/requests/{quote(name, safe='')}")
    if options.json:
        sys.stdout.write(msgspec.json.format(body, indent=2).decode() + "\n")
    else:
        show(Console(highlight=False, soft_wrap=True), msgspec.json.decode(body, type=RequestView))
    return DONE


async def _latest(gateway: AdminClient, which: str) -> str | None:
    """The id of the newest finished request, or of the newest failed one."""
    query, cursor = {"limit": "200"}, None
    while True:
        page = msgspec.json.decode(
            await gateway.ask("GET", "/api/requests", query | ({"cursor": cursor} if cursor else {})), type=RequestPage
        )
        for row in page.requests:
            if row.outcome in _FAILED or (which == "last" and row.phase == "done"):
                return row.id
        if (cursor := page.cursor) is None:
            return None


async def _follow(gateway: AdminClient, options: argparse.Namespace) -> int:
    console = Console(highlight=False, soft_wrap=True)
    async for name, data in gateway.events("/api/events"):
        if options.json:
            sys.stdout.write(f"{data.decode()}\n")
            sys.stdout.flush()
        elif name == "lost":
            console.print("[dim]… some were too many to tell[/dim]")
        else:
            console.print(line_of(msgspec.json.decode(data, type=RequestRow)))
    return DONE


def line_of(row: RequestRow) -> str:
    """A request on one line."""
    colour, status = _COLOURS[row.outcome], row.status or "…"
    done = f"{row.total_ms / 1000:.2f} s" if row.phase == "done" else row.phase
    message = f' It says: "{escape(row.message)}"' if row.message and row.message not in row.summary else ""
    target = escape(f"{row.provider}/{row.model}")
    return (
        f"{row.at.astimezone():%H:%M:%S} [{colour}]{status} {row.outcome}[/{colour}] {target} {done}  "
        f"{escape(row.summary)}{message}  [dim]{row.id}[/dim]"
    )


def show(console: Console, view: RequestView) -> None:
    """Everything known about a request."""
    console.print(line_of(view))
    for name, value in _facts(view):
        if value:
            console.print(f"  [dim]{name:<9}[/dim] {escape(value)}")
    for number, attempt in enumerate(view.tried, 1):
        _show_attempt(console, number, attempt)
    if view.turns:
        console.print("[bold]turns[/bold]")
        for line in turn_lines(view.turns):
            console.print(f"  {line}")
    for finding in view.findings:
        console.print(f"  [dim]found[/dim]     {finding.rule} at {escape(finding.place)}")
    for line in _advice(view):
        console.print(f"[bold]→[/bold] {escape(line)}")


_STORE_WORDS = {
    "degraded": "degraded: it fails, and turns are kept in memory only",
    "slow": "slow: the response ended before its turn was saved",
}


def _facts(view: RequestView) -> list[tuple[str, str]]:
    first = "" if view.first_byte_ms is None else f", first byte after {view.first_byte_ms:.0f} ms"
    times = f"{view.total_ms:.0f} ms: {view.own_ms:.1f} here, {view.upstream_ms:.0f} upstream{first}"
    tokens = view.tokens
    return [
        ("asked", f"{view.method} {view.path} ({view.action}, {view.format or 'any format'})"),
        ("client", view.client),
        ("session", view.session or ""),
        ("caller", view.caller),
        ("tenant", view.tenant),
        ("route", view.route),
        ("times", times),
        ("store", _STORE_WORDS.get(view.store, "")),
        (
            "tokens",
            ""
            if tokens is None
            else f"{tokens.input} in ({tokens.cached} cached), {tokens.output} out ({tokens.reasoning} reasoning)",
        ),
        ("code", view.code if view.verdict else ""),
    ]


def _show_attempt(console: Console, number: int, attempt: AttemptView) -> None:
    where = escape(f"{attempt.provider}/{attempt.model} at {attempt.endpoint} in {attempt.format}")
    became = f"no response ({attempt.error})" if attempt.error else str(attempt.status or "no response")
    translated = ", translated" if attempt.is_translated else ""
    sends = f", sent {attempt.sends} times" if attempt.sends != 1 else ""
    console.print(
        f"[bold]attempt {number}[/bold] {where}{translated}: {became} after {attempt.upstream_ms:.0f} ms{sends}"
    )
    contract = attempt.contract
    if contract is not None:
        changed = " (changed in settings)" if contract.is_overridden else ""
        console.print(f"  [dim]contract[/dim]  {contract.name}: {demand_of(contract)}{changed}")
        console.print(f"  [dim]source[/dim]    {escape(contract.source)}")
        for learned in contract.learned:
            console.print(f"  [dim]learned[/dim]   {escape(learned)}")
    for refusal in attempt.refusals:
        _show_refusal(console, refusal)


_KINDS = {
    "presence": "requires reasoning",
    "authenticity": "requires the reasoning that it gave, unchanged",
    "advisory": "accepts reasoning, and requires none",
    "forbidden": "accepts no reasoning",
}
_SCOPES = {
    "nowhere": "",
    "calls_after_user": "on turns with tool calls since the last user message",
    "calls": "on every turn with tool calls",
    "all_with_tools": "on every turn when tools are offered",
    "loop_head": "on the first turn of the tool loop that is continued",
    "first_call_of_step": "on the first call of each step since the last user message",
    "pairs": "on items that name each other by id",
}


def demand_of(contract: ContractUsed) -> str:
    """A contract's demand in words; the contract's own word if there are none."""
    kind, scope = _KINDS.get(contract.kind, contract.kind), _SCOPES.get(contract.scope, contract.scope)
    return f"{kind} {scope}".rstrip()


def _show_refusal(console: Console, refusal: RefusalView) -> None:
    colour = "yellow" if refusal.was_healed else "red"
    console.print(f'  [{colour}]{refusal.status}[/{colour}] after {refusal.at_ms:.0f} ms: "{escape(refusal.words)}"')
    if refusal.rule:
        healed = "; corrected, and sent again" if refusal.was_healed else ""
        place = f" at {refusal.place}" if refusal.place else ""
        console.print(f"      rule {refusal.rule}{escape(place)}: {escape(refusal.meaning)}{healed}")
    else:
        console.print("      not about reasoning, as far as is known")


def turn_lines(turns: list[TurnView]) -> list[str]:
    """One line per turn; of many equal ones in a row only the first and the last."""
    lines: list[str] = []
    for _, alike in groupby(turns, key=lambda turn: (turn.treatment, turn.why)):
        run = list(alike)
        if len(run) > _MAX_ALIKE:
            lines.append(_turn_line(f"{run[0].place} … {run[-1].place} ({len(run)} turns)", run[0]))
        else:
            lines += [_turn_line(turn.place, turn) for turn in run]
    return lines


def _turn_line(place: str, turn: TurnView) -> str:
    colour = _COLOURS[turn.treatment]
    return f"{escape(place)}  [{colour}]{escape(turn.words)}[/{colour}]"


_ADVICE = {
    "no_record": "Some turns have no record: send the whole conversation through the gateway, with the same key.",
    "ambiguous": "Keep the ids of tool calls in your client, or send x-thoughtline-session, to tell turns apart.",
    "unproven": "Keep the ids of tool calls in your client, or send x-thoughtline-session, to tell turns apart.",
    "other_frame": "Keep the ids of tool calls, or send x-thoughtline-session, where the system prompt changes.",
    "other_user": "Name the same end user in every request of a conversation.",
    "text_differs": "Your client changes earlier turns: it must send back what the model said.",
    "expired": "Raise [store] ttl to remember for longer.",
    "other_account": "Use the key that the conversation began with.",
}


def _advice(view: RequestView) -> list[str]:
    """What the user can do about it."""
    reasons = dict.fromkeys(turn.why for turn in view.turns if turn.treatment in ("missing", "blank", "inherited"))
    advice = [_ADVICE[why] for why in reasons if why in _ADVICE]
    if view.outcome == "refused" and view.bodies is None:
        advice.append("To see what was sent, set [debug] keep_bodies = true and ask again.")
    return advice
