"""`thoughtline demo`: a strict provider, the gateway and a forgetful client, all in one process and offline.

The same client talks to the provider twice: directly, until it is rejected, and through the gateway, to the end.
"""

from __future__ import annotations

import argparse
import asyncio
from typing import Any, NamedTuple, TypeAlias

import msgspec
from rich.console import Console
from rich.table import Table

from thoughtline.commands.http_client import answer_to, read_whole
from thoughtline.commands.loopback import gateway_before, listening
from thoughtline.formats.errors import read_error
from thoughtline.terminal import counted, program
from thoughtline_sim.app import simulator_app

Json: TypeAlias = dict[str, Any]

TURNS = 5
MODEL = "deepseek-v4-pro"
_SHELL: Json = {
    "type": "function",
    "function": {
        "name": "shell",
        "description": "Run a command.",
        "parameters": {"type": "object", "properties": {"command": {"type": "string"}}, "required": ["command"]},
    },
}
_OPENING = "Why does the build fail? Find out with the shell, then say it in one sentence."


class DemoRequest(NamedTuple):
    """The outcome of one request."""

    status: int
    sent: str
    got: str
    restored: str
    verdict: str = ""


async def play(url: str, turns: int = TURNS, *, model: str = MODEL, key: str = "demo-key") -> list[DemoRequest]:
    """A client that forgets: it keeps the model's text and calls, and drops its reasoning."""
    history: list[Json] = [{"role": "user", "content": _OPENING}]
    steps = []
    headers = [("authorization", f"Bearer {key}"), ("content-type", "application/json")]
    for _ in range(turns):
        body = msgspec.json.encode({"model": model, "messages": history, "tools": [_SHELL]})
        async with answer_to("POST", f"{url}/v1/chat/completions", headers, body) as response:
            data = await read_whole(response)
        if response.status != 200:
            error, verdict = read_error(response.status, data), response.header("x-thoughtline-verdict")
            steps.append(DemoRequest(response.status, _sent(history), error.message, "", verdict))
            break
        message = msgspec.json.decode(data)["choices"][0]["message"]
        steps.append(_step(history, message, response.header("x-thoughtline-replay")))
        history += _continued(message)
    return steps


def _continued(message: Json) -> list[Json]:
    """Continue the history: the model's message without its reasoning, and the results of its calls."""
    kept = {name: value for name, value in message.items() if name != "reasoning_content"}
    results = [
        {"role": "tool", "tool_call_id": call["id"], "content": "error: missing header zlib.h"}
        for call in message.get("tool_calls") or []
    ]
    return [kept, *(results or [{"role": "user", "content": "Are you sure? Look once more."}])]


def _sent(history: list[Json]) -> str:
    turns = sum(1 for message in history if message["role"] == "assistant")
    return f"{counted(len(history), 'message')}, {turns} from the model" if turns else "first request"


def _step(history: list[Json], message: Json, header: str) -> DemoRequest:
    calls = ", ".join(call["function"]["name"] for call in message.get("tool_calls") or [])
    got = f"thinks, then calls {calls}" if calls else "thinks, then answers"
    return DemoRequest(200, _sent(history), got, header.partition(",")[0])


async def both() -> tuple[list[DemoRequest], list[DemoRequest]]:
    """The same conversation, directly and through the gateway."""
    async with (
        listening(simulator_app("deepseek", seed=1)) as provider,
        listening(gateway_before({"deepseek": provider}, "deepseek")) as gateway,
    ):
        return await play(provider), await play(gateway)


def show(console: Console, direct: list[DemoRequest], through: list[DemoRequest]) -> None:
    table = Table(title="a strict DeepSeek, and a client that drops reasoning", show_lines=True)
    table.add_column("request")
    table.add_column("directly", overflow="fold", ratio=1)
    table.add_column("through thoughtline", overflow="fold", ratio=1)
    for number, step in enumerate(through):
        other = direct[number] if number < len(direct) else None
        table.add_row(step.sent, _cell(other), _cell(step))
    console.print(table, highlight=False)
    if all(step.status == 200 for step in through) and any(step.status != 200 for step in direct):
        console.print("The same client, the same provider. Start your own gateway:")
        console.print(f"  {program()} serve", style="bold", markup=False, soft_wrap=True)


def _cell(step: DemoRequest | None) -> str:
    if step is None:
        return "[dim]stopped after the 400[/dim]"
    if step.status != 200:
        return f"[bold red]{step.status}[/bold red] {step.got}"
    restored = f" [cyan]{step.restored}[/cyan]" if step.restored else ""
    return f"[bold green]{step.status}[/bold green] {step.got}{restored}"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """This command has none."""


def run(options: argparse.Namespace) -> int:
    direct, through = asyncio.run(both())
    show(Console(), direct, through)
    return 0 if all(step.status == 200 for step in through) else 1
