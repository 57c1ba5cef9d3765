"""What a line adds to a call of openai's SDK: `python -m bench.library`.

The same calls with the bare SDK and with a client that remembers, taking turns in one run, against a server in another
process that always gives the same answer. The history has so many turns, whose reasoning is put back. What is told is
the median of each in microseconds of CPU, and what is added; the aim is 500 µs for a short call and 1,000 µs at 20
turns. The last columns are the functions that a call of each goes through, of Python and of C: they are the same on a
busy machine.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import cProfile
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from typing import Any

import openai

from thoughtline import Line

MODEL = "deepseek-v4-pro"
THOUGHT = "What the user wants is clear, and this is the next thing to do. " * 8
TURNS = (1, 20)
TOOL: Any = {"type": "function", "function": {"name": "weather", "parameters": {"type": "object"}}}
KINDS: tuple[tuple[str, dict[str, Any]], ...] = (("whole", {}), ("streamed", {"stream": True}))
AIM_MICROSECONDS, AIM_PER_TURN, AIM_IMPORT_MS = 474.0, 26.3, 250.0
"""For a call, for each turn of its history, and for the import: 500 µs with one turn, 1,000 µs with twenty."""

SERVER = """
import asyncio, sys
whole, streamed = (open(name, "rb").read() for name in sys.argv[1:3])

async def serve(reader, writer):
    try:
        while head := await reader.readuntil(b"\\r\\n\\r\\n"):
            lines = head.lower().split(b"\\r\\n")
            size = next(int(line.split(b":")[1]) for line in lines if line.startswith(b"content-length"))
            body = await reader.readexactly(size)
            is_stream = b'"stream":true' in body.replace(b" ", b"")
            kind, answer = (b"text/event-stream", streamed) if is_stream else (b"application/json", whole)
            head = b"content-type: %s\\r\\ncontent-length: %d\\r\\n\\r\\n" % (kind, len(answer))
            writer.write(b"HTTP/1.1 200 OK\\r\\n" + head)
            for at in range(0, len(answer), 2048):
                writer.write(answer[at : at + 2048])
            await writer.drain()
    except (asyncio.IncompleteReadError, ConnectionError):
        writer.close()

async def main():
    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()

asyncio.run(main())
"""


def message(number: int) -> dict[str, Any]:
    call = {
        "id": f"call_{number}",
        "type": "function",
        "function": {"name": "weather", "arguments": f'{{"n": {number}}}'},
    }
    return {"role": "assistant", "content": "", "tool_calls": [call]}


def whole(number: int) -> bytes:
    said = {**message(number), "reasoning_content": THOUGHT}
    choice = {"index": 0, "message": said, "finish_reason": "tool_calls"}
    return json.dumps(
        {"id": "r", "object": "chat.completion", "created": 1, "model": MODEL, "choices": [choice]}
    ).encode()


def streamed(number: int) -> bytes:
    deltas: list[tuple[dict[str, Any], str | None]] = [
        ({"reasoning_content": word + " "}, None) for word in THOUGHT.split()
    ]
    calls = [{"index": 0, **call} for call in message(number)["tool_calls"]]
    deltas += [({"tool_calls": calls}, None), ({}, "tool_calls")]
    head = {"id": "r", "object": "chat.completion.chunk", "created": 1, "model": MODEL}
    chunks = [{**head, "choices": [{"index": 0, "delta": delta, "finish_reason": end}]} for delta, end in deltas]
    return b"".join(b"data: " + json.dumps(chunk).encode() + b"\n\n" for chunk in chunks) + b"data: [DONE]\n\n"


def history(turns: int) -> list[Any]:
    """Those of an application that forgets."""
    found: list[Any] = [{"role": "user", "content": "How is the weather?"}]
    for number in range(turns):
        found += [message(number), {"role": "tool", "tool_call_id": f"call_{number}", "content": "sunny " * 40}]
    return found


@contextlib.contextmanager
def server(turns: int) -> Iterator[str]:
    with tempfile.TemporaryDirectory() as folder:
        names = [f"{folder}/{name}" for name in ("whole", "streamed")]
        for name, body in zip(names, (whole(turns), streamed(turns)), strict=True):
            with open(name, "wb") as file:
                file.write(body)
        process = subprocess.Popen([sys.executable, "-c", SERVER, *names], stdout=subprocess.PIPE, text=True)
        assert process.stdout is not None
        try:
            yield f"http://127.0.0.1:{process.stdout.readline().strip()}/v1"
        finally:
            process.terminate()
            process.wait()


def teach(line: Line, url: str, key: str, turns: int) -> None:
    """Have the line hear the turns."""
    messages = history(turns)
    for number in range(turns):
        body = json.dumps({"model": MODEL, "messages": messages[: 1 + 2 * number], "tools": [TOOL]}).encode()
        headers = {"authorization": f"Bearer {key}"}
        exchange = line.begin_sync("POST", f"{url}/chat/completions", headers, body)
        exchange.read(whole(number))
        exchange.end()


def seconds(calls: dict[str, Callable[[], object]], count: int) -> dict[str, float]:
    """The median of each; they take turns."""
    taken: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(count):
        for name, call in calls.items():
            began = time.process_time()
            call()
            taken[name].append(time.process_time() - began)
    return {name: statistics.median(some[len(some) // 10 :]) for name, some in taken.items()}


def functions(call: Callable[[], object]) -> int:
    """How many a call goes through, at least. What a line does it does in the thread that asks, with what is due in its
    loop now and then."""
    return min(_counted(call) for _ in range(15))


def _counted(call: Callable[[], object]) -> int:
    profile = cProfile.Profile()
    profile.runcall(call)
    return sum(entry.callcount for entry in profile.getstats())


def report(name: str, calls: dict[str, Callable[[], object]], *, turns: int, count: int) -> bool:
    took, through = seconds(calls, count), [functions(call) for call in calls.values()]
    bare, with_line = took.values()
    added, aim = (with_line - bare) * 1e6, AIM_MICROSECONDS + turns * AIM_PER_TURN
    times = f"{bare * 1e6:>10.0f}{with_line * 1e6:>12.0f}{added:>9.0f}{added / bare / 1e4:>8.1f} %{aim:>9.0f}"
    print(f"{name:<27}{times}{through[0]:>12}{through[1]:>10}")
    return added <= aim


def report_import() -> bool:
    """The CPU that the import and a line take in a new process, beside the import of the SDK: the best of five."""
    code = (
        "import time; a = time.process_time(); import openai; b = time.process_time(); import thoughtline; "
        "thoughtline.Line('memory://'); c = time.process_time(); print(b - a, c - b)"
    )
    runs = [subprocess.run([sys.executable, "-c", code], capture_output=True, check=True).stdout for _ in range(5)]
    sdk_took, took = (min(float(run.split()[at]) for run in runs) * 1e3 for at in (0, 1))
    print(f"import of thoughtline, and a line: {took:.0f} ms of CPU after that of openai ({sdk_took:.0f} ms)")
    return took <= AIM_IMPORT_MS


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--calls", type=int, default=400)
    parser.add_argument("--turns", type=int, nargs="+", default=TURNS)
    chosen = parser.parse_args()
    are_kept = [report_import()]
    print(f"{'':<27}{'bare µs':>10}{'with µs':>12}{'added':>9}{'':>10}{'aim µs':>9}{'functions':>12}{'with':>10}")
    for turns in chosen.turns:
        are_kept += report_turns(turns, chosen.calls)
    return 0 if all(are_kept) else 1


def report_turns(turns: int, count: int) -> Iterator[bool]:
    """With a history of so many: sync and async, whole and streamed."""
    key, asked = "key-of-a-bench", {"model": MODEL, "messages": history(turns), "tools": [TOOL]}
    with server(turns) as url, tempfile.TemporaryDirectory() as folder, Line(f"sqlite:///{folder}/t.db") as line:
        teach(line, url, key, turns)
        sync = [openai.OpenAI(base_url=url, api_key=key) for _ in range(2)]
        line.remember(sync[1])
        for kind, more in KINDS:
            called = [Call(client, {**asked, **more}) for client in sync]
            yield report(
                f"{turns} turns, sync, {kind}", {"bare": called[0], "with": called[1]}, turns=turns, count=count
            )
        with asyncio.Runner() as runner:
            loose = [openai.AsyncOpenAI(base_url=url, api_key=key) for _ in range(2)]
            line.remember(loose[1])
            for kind, more in KINDS:
                bare, kept = (_async_call(runner, client, {**asked, **more}) for client in loose)
                yield report(f"{turns} turns, async, {kind}", {"bare": bare, "with": kept}, turns=turns, count=count)
        if line.report.late:
            print(f"turns saved later than their end: {line.report.late}")


class Call:
    """One call of an SDK, read to its end."""

    def __init__(self, client: openai.OpenAI, asked: Any) -> None:
        self.client = client
        self._asked = asked

    def __call__(self) -> object:
        answer = self.client.chat.completions.create(**self._asked)
        return list(answer) if self._asked.get("stream") else answer


def _async_call(runner: asyncio.Runner, client: openai.AsyncOpenAI, asked: Any) -> Callable[[], object]:
    async def call() -> object:
        answer = await client.chat.completions.create(**asked)
        return [chunk async for chunk in answer] if asked.get("stream") else answer

    return lambda: runner.run(call())


if __name__ == "__main__":
    sys.exit(main())
