"""`thoughtline eval handoff`: does a model that takes over do better with the previous model's reasoning?

Each conversation begins with one target and ends with another, with a client that drops reasoning; a checker examines
the last answer. It is played with checkpoints off, with `handoff` and with `always`, and the report has how many
passed, the tokens used, and the latency of the second target. Without a gateway's URL everything runs in this process,
with simulators for both.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import os
import re
import statistics
import sys
import time
from collections.abc import AsyncIterator, Sequence
from importlib import resources
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias, get_args

import msgspec
from msgspec import Struct
from rich.console import Console
from rich.table import Table

from thoughtline.commands.http_client import NO_ANSWER, answer_to, read_whole
from thoughtline.commands.loopback import gateway_before, listening
from thoughtline.commands.output import json_text
from thoughtline.destinations.catalogue import ContinuityWord
from thoughtline.values.nearest import did_you_mean
from thoughtline_sim.app import simulator_app
from thoughtline_sim.simulators import SIMULATORS

Json: TypeAlias = dict[str, Any]
MODES: tuple[ContinuityWord, ...] = get_args(ContinuityWord)
SHIPPED = "handoff_conversations.jsonl"
_CHECKPOINTS = re.compile(r"checkpoints=(\d+)")


class Unreadable(Exception):
    """A file that does not contain conversations: the line and the problem."""


class Check(Struct, frozen=True, forbid_unknown_fields=True):
    """The requirement for the last answer: exactly one of these.

    `recalls` is a pattern; its first match in the first target's reasoning must occur in the answer.
    """

    contains: str = ""
    matches: str = ""
    recalls: str = ""


class EvalConversation(Struct, frozen=True, forbid_unknown_fields=True):
    """One line of the file. The first `handoff_after` turns go to the first target, the others to the second.

    `script` has the simulators' answers; real providers never see it.
    """

    id: str
    turns: tuple[str, ...]
    handoff_after: int
    check: Check
    system: str = ""
    script: str = ""


class HandoffResult(Struct, frozen=True):
    """The result of one conversation in one mode. Tokens and times are those of the second target."""

    conversation: str
    mode: ContinuityWord
    passed: bool
    statuses: tuple[int, ...]
    checkpoints: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    milliseconds: tuple[float, ...] = ()
    problem: str = ""


class Summary(Struct, frozen=True):
    """All conversations in one mode."""

    mode: ContinuityWord
    conversations: int
    passed: int
    failed_requests: int
    checkpoints: int
    input_tokens: int
    output_tokens: int
    median_ms: float


class Report(Struct, frozen=True):
    source: str
    target: str
    summaries: tuple[Summary, ...]
    outcomes: tuple[HandoffResult, ...]


class EvalPlace(NamedTuple):
    """Where requests go, what is shown there, and the effort requested of the first target (empty: none)."""

    url: str
    key: str = ""
    sends_scripts: bool = False
    effort: str = ""


# --- conversations ----------------------------------------------------------------------------------------------------


def shipped() -> bytes:
    return resources.files("thoughtline").joinpath(SHIPPED).read_bytes()


def decode_conversations(data: bytes) -> list[EvalConversation]:
    found = []
    for number, line in enumerate(data.splitlines(), 1):
        if not line.strip():
            continue
        try:
            found.append(_checked(msgspec.json.decode(line, type=EvalConversation)))
        except (msgspec.DecodeError, UnicodeDecodeError, ValueError, re.error) as error:
            raise Unreadable(f"line {number}: {error}") from None
    if not found:
        raise Unreadable("no conversations")
    return found


def _checked(one: EvalConversation) -> EvalConversation:
    check = one.check
    if sum(map(bool, (check.contains, check.matches, check.recalls))) != 1:
        raise ValueError("check has exactly one of contains, matches and recalls")
    if not 0 < one.handoff_after < len(one.turns):
        raise ValueError("handoff_after is at least 1 and less than the number of turns")
    re.compile(check.matches or check.recalls)
    return one


def is_passed(check: Check, answer: str, thoughts: Sequence[str]) -> bool:
    """Whether an answer meets the check."""
    if check.contains:
        return check.contains.lower() in answer.lower()
    if check.matches:
        return re.search(check.matches, answer, re.DOTALL) is not None
    known = next((found[0] for text in thoughts if (found := re.search(check.recalls, text))), None)
    return known is not None and re.search(rf"(?<!\w){re.escape(known)}(?!\w)", answer, re.IGNORECASE) is not None


# --- playing ----------------------------------------------------------------------------------------------------------


async def evaluate(
    place: EvalPlace, source: str, target: str, conversations: Sequence[EvalConversation], run: str
) -> Report:
    """Every conversation in every mode, one after the other: latencies are those of an idle gateway."""
    plays = [_Play(place, mode, run) for mode in MODES]
    outcomes = [await play.outcome(one, source, target) for play in plays for one in conversations]
    summaries = tuple(summarize(mode, [one for one in outcomes if one.mode == mode]) for mode in MODES)
    return Report(source, target, summaries, tuple(outcomes))


class _Answer(Struct, frozen=True):
    """One answer."""

    status: int
    text: str = ""
    thought: str = ""
    usage: Json = {}
    checkpoints: int = 0
    milliseconds: float = 0.0
    problem: str = ""


class _Play(NamedTuple):
    """One conversation in one mode, with a client that drops reasoning."""

    place: EvalPlace
    mode: ContinuityWord
    run: str

    async def outcome(self, one: EvalConversation, source: str, target: str) -> HandoffResult:
        history: list[Json] = [{"role": "system", "content": one.system}] if one.system else []
        answers: list[_Answer] = []
        for number, turn in enumerate(one.turns):
            history.append({"role": "user", "content": turn})
            model = source if number < one.handoff_after else target
            effort = self.place.effort if number < one.handoff_after else ""
            answer = await self._ask(one, {"model": model, "messages": history}, effort)
            answers.append(answer)
            if answer.status != 200:
                break
            history.append({"role": "assistant", "content": answer.text})
        return self._judged(one, answers)

    def _judged(self, one: EvalConversation, answers: Sequence[_Answer]) -> HandoffResult:
        after = answers[one.handoff_after :]
        is_whole = len(answers) == len(one.turns) and answers[-1].status == 200
        thoughts = [answer.thought for answer in answers[: one.handoff_after]]
        return HandoffResult(
            one.id,
            self.mode,
            is_whole and is_passed(one.check, answers[-1].text, thoughts),
            statuses=tuple(answer.status for answer in answers),
            checkpoints=max((answer.checkpoints for answer in after), default=0),
            input_tokens=sum(_count(answer.usage, "prompt_tokens") for answer in after),
            output_tokens=sum(_count(answer.usage, "completion_tokens") for answer in after),
            milliseconds=tuple(round(answer.milliseconds, 1) for answer in after),
            problem=next((answer.problem for answer in answers if answer.problem), ""),
        )

    async def _ask(self, one: EvalConversation, body: Json, effort: str) -> _Answer:
        body = body | {"reasoning_effort": effort} if effort else body
        url = f"{self.place.url.rstrip('/')}/v1/chat/completions"
        headers = [
            ("content-type", "application/json"),
            ("x-thoughtline-continuity", self.mode),
            ("x-thoughtline-session", f"{self.run}-{self.mode}-{one.id}"),
        ]
        if self.place.key:
            headers.append(("authorization", f"Bearer {self.place.key}"))
        if self.place.sends_scripts and one.script:
            headers.append(("x-sim-script", one.script))
        began = time.perf_counter()
        try:
            async with answer_to("POST", url, headers, msgspec.json.encode(body)) as response:
                answer = await read_whole(response)
        except NO_ANSWER as error:
            return _Answer(0, problem=type(error).__name__)
        took = (time.perf_counter() - began) * 1000
        return _answer_of(response.status, answer, response.header("x-thoughtline-replay"), took)


def _answer_of(status: int, body: bytes, header: str, took: float) -> _Answer:
    try:
        answer = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError):
        answer = None
    found = _CHECKPOINTS.search(header)
    count = int(found[1]) if found else 0
    if status != 200 or not isinstance(answer, dict) or not answer.get("choices"):
        error = answer.get("error") if isinstance(answer, dict) else None
        reason = error.get("message") if isinstance(error, dict) else ""
        problem = str(reason or "no answer")[:300]
        return _Answer(status if status != 200 else 502, checkpoints=count, milliseconds=took, problem=problem)
    message = answer["choices"][0].get("message") or {}
    thought = message.get("reasoning_content") or message.get("reasoning") or message.get("reasoning_text") or ""
    return _Answer(
        200,
        str(message.get("content") or ""),
        str(thought),
        usage=answer.get("usage") or {},
        checkpoints=count,
        milliseconds=took,
    )


def _count(usage: Json, name: str) -> int:
    value = usage.get(name)
    return value if isinstance(value, int) else 0


def summarize(mode: ContinuityWord, outcomes: Sequence[HandoffResult]) -> Summary:
    times = [one for outcome in outcomes for one in outcome.milliseconds]
    return Summary(
        mode,
        len(outcomes),
        sum(outcome.passed for outcome in outcomes),
        failed_requests=sum(status != 200 for outcome in outcomes for status in outcome.statuses),
        checkpoints=sum(outcome.checkpoints for outcome in outcomes),
        input_tokens=sum(outcome.input_tokens for outcome in outcomes),
        output_tokens=sum(outcome.output_tokens for outcome in outcomes),
        median_ms=round(statistics.median(times), 1) if times else 0.0,
    )


# --- the command ------------------------------------------------------------------------------------------------------


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("what", choices=("handoff",), help="what to measure")
    parser.add_argument("--from", dest="source", required=True, metavar="PROVIDER/MODEL", help="the model that begins")
    parser.add_argument(
        "--to", dest="target", required=True, metavar="PROVIDER/MODEL", help="the model that takes over"
    )
    parser.add_argument(
        "--conversations", metavar="FILE", help="conversations, one JSON object per line (default: built in)"
    )
    parser.add_argument("--gateway", metavar="URL", help="a running gateway (default: simulators in this process)")
    parser.add_argument("--key-env", metavar="NAME", help="the environment variable with the key for the gateway")
    parser.add_argument(
        "--effort", choices=("low", "medium", "high"), help="how hard the first model is asked to think"
    )
    parser.add_argument("--json", metavar="FILE", help="write the report as JSON to this file; - for standard output")


def run(options: argparse.Namespace) -> int:
    """Exit status: 0 all requests succeeded, 1 some failed, 2 it can't run."""
    try:
        data = Path(options.conversations).read_bytes() if options.conversations else shipped()
        conversations = decode_conversations(data)
        report = asyncio.run(_run(options, conversations))
    except (OSError, Unreadable) as error:
        sys.stderr.write(f"thoughtline eval: {options.conversations or options.gateway or SHIPPED}: {error}\n")
        return 2
    if options.json == "-":
        sys.stdout.write(json_text(report))
    else:
        show(Console(), report)
        if options.json:
            Path(options.json).write_bytes(json_text(report).encode())
    return 1 if any(one.failed_requests for one in report.summaries) else 0


async def _run(options: argparse.Namespace, conversations: Sequence[EvalConversation]) -> Report:
    name = f"eval-{os.getpid()}-{time.time_ns()}"
    key = os.environ.get(options.key_env, "") if options.key_env else ""
    gateway = contextlib.nullcontext(EvalPlace(options.gateway, key))
    async with gateway if options.gateway else simulated(options.source, options.target) as place:
        place = place._replace(effort=options.effort or "")
        return await evaluate(place, options.source, options.target, conversations, name)


@contextlib.asynccontextmanager
async def simulated(*targets: str) -> AsyncIterator[EvalPlace]:
    """A gateway in front of a simulator for the provider of each target."""
    names = list(dict.fromkeys(target.partition("/")[0] for target in targets))
    unknown = [name for name in names if name not in SIMULATORS]
    if unknown:
        near = did_you_mean(unknown[0], SIMULATORS)
        raise Unreadable(f"no simulator of {', '.join(unknown)}; {near} (--gateway asks a real provider)")
    async with contextlib.AsyncExitStack() as stack:
        addresses = {}
        for name in names:
            addresses[name] = await stack.enter_async_context(listening(simulator_app(name, seed=1)))
        yield EvalPlace(await stack.enter_async_context(listening(gateway_before(addresses))), "eval", True)


def show(console: Console, report: Report) -> None:
    table = Table(title=f"handoff from {report.source} to {report.target}")
    heads = ("mode", "passed", "rate", "quoted", "tokens in", "tokens out", "median ms", "failed requests")
    for number, head in enumerate(heads):
        table.add_column(head, justify="left" if number == 0 else "right")
    for one in report.summaries:
        rate = f"{100 * one.passed / one.conversations:.0f} %"
        counts = (one.checkpoints, one.input_tokens, one.output_tokens, one.median_ms, one.failed_requests)
        table.add_row(one.mode, f"{one.passed}/{one.conversations}", rate, *map(str, counts))
    console.print(table, highlight=False)
    for outcome in report.outcomes:
        if outcome.problem:
            console.print(f"{outcome.mode}, {outcome.conversation}: {outcome.problem}", highlight=False, markup=False)
