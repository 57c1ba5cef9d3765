"""What preparing a request costs as its conversation grows, with the conversation remembered and without.

    python -m bench.remembered [MESSAGES …]        400 by default

An agent sends its conversation again and again, each time with two messages more; the last requests count.

    chat       at DeepSeek, all reasoning stripped and put back
    messages   at Anthropic, nothing lost, with cache marks that move to the last two messages

and chat again with what clients do to their history:

    cleared    a notice stands for all results but the last ten
    clock      the first message has the time of the request
    window     the first message and the last ones, so many that one is dropped for each new one
    edited     the words of one turn were rewritten
    bare       the words beside calls are left out

In process, over SQLite, eleven seconds between two requests: milliseconds of CPU that `prepare` takes in its thread.
"remembered" and "whole" are medians of the last ten requests as they grow, in turns; "again" is the least for the last
one, sent again and again. What is sent is compared.
"""

from __future__ import annotations

import asyncio
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeAlias

from thoughtline.core import Destination, Identity
from thoughtline.engine import ContractBook, Lessons, Replayer, Watch, open_store
from thoughtline.engine.request import Prepared
from thoughtline.stores import StoreSettings
from thoughtline.values.outcome import Outcome

Json = dict[str, Any]

WHO = Identity("tenant", "session")
RESULT = "def load(path):\n    return open(path).read()\n" * 60
LAST = 10
PAUSE_SECONDS = 11.0


Shows: TypeAlias = Callable[[list[Json]], list[Json]]
"""What a client shows of its history."""


def _all(messages: list[Json]) -> list[Json]:
    return messages


class Kind(NamedTuple):
    """A conversation: where it goes, and how its client writes it."""

    target: Destination
    opening: Json
    body: Callable[[list[Json]], Json]
    answer: Callable[[int], Json]
    kept: Callable[[Json], list[Json]]
    shows: Shows = _all


def _chat_body(messages: list[Json]) -> Json:
    tool = {"type": "function", "function": {"name": "read", "parameters": {"type": "object"}}}
    return {"model": "deepseek-v4-pro", "messages": messages, "tools": [tool]}


def _chat_answer(number: int) -> Json:
    call = {"name": "read", "arguments": json.dumps({"path": f"src/{number}.py"})}
    message = {
        "role": "assistant",
        "content": "Reading it.",
        "reasoning_content": f"I should read number {number}. " * 10,
        "tool_calls": [{"id": f"call_00_{number:08x}Qz7Kd", "type": "function", "function": call}],
    }
    return {"id": "1", "model": "deepseek-v4-pro", "choices": [{"finish_reason": "tool_calls", "message": message}]}


def _chat_kept(answer: Json) -> list[Json]:
    message = {name: value for name, value in answer["choices"][0]["message"].items() if name != "reasoning_content"}
    return [message, {"role": "tool", "tool_call_id": message["tool_calls"][0]["id"], "content": RESULT}]


def _messages_body(messages: list[Json]) -> Json:
    marked = {at: _marked(messages[at]) for at in range(len(messages))[-3::2]}
    listed = [marked.get(at, message) for at, message in enumerate(messages)]
    thinking = {"type": "enabled", "budget_tokens": 4000}
    tool = {"name": "read", "input_schema": {"type": "object"}}
    return {"model": "claude-sonnet-4-5", "max_tokens": 8000, "messages": listed, "thinking": thinking, "tools": [tool]}


def _marked(message: Json) -> Json:
    *blocks, last = message["content"]
    return {**message, "content": [*blocks, {**last, "cache_control": {"type": "ephemeral"}}]}


def _messages_answer(number: int) -> Json:
    thought = {
        "type": "thinking",
        "thinking": f"I should read number {number}. " * 10,
        "signature": f"c2ln{number:08}" * 40,
    }
    call = {"type": "tool_use", "id": f"toolu_{number:020x}", "name": "read", "input": {"path": f"src/{number}.py"}}
    content = [thought, {"type": "text", "text": "Reading it."}, call]
    return {"id": "1", "type": "message", "role": "assistant", "content": content, "stop_reason": "tool_use"}


def _messages_kept(answer: Json) -> list[Json]:
    result = {"type": "tool_result", "tool_use_id": answer["content"][-1]["id"], "content": RESULT}
    return [{"role": "assistant", "content": answer["content"]}, {"role": "user", "content": [result]}]


def _cleared(messages: list[Json]) -> list[Json]:
    results = [at for at, message in enumerate(messages) if message["role"] == "tool"]
    old = set(results[:-LAST])
    notice = "[Old tool result content cleared]"
    return [{**message, "content": notice} if at in old else message for at, message in enumerate(messages)]


def _with_clock(messages: list[Json]) -> list[Json]:
    first, *rest = messages
    return [{**first, "content": f"{first['content']} It is {len(messages)} minutes past noon."}, *rest]


def _window(messages: list[Json]) -> list[Json]:
    return [messages[0], *messages[1:][-3 * LAST * LAST :]]


def _edited(messages: list[Json]) -> list[Json]:
    edited = {**messages[3], "content": "I read it."} if len(messages) > 4 else {}
    return [*messages[:3], edited, *messages[4:]] if edited else messages


def _bare(messages: list[Json]) -> list[Json]:
    return [{**message, "content": None} if message["role"] == "assistant" else message for message in messages]


_CHAT = Kind(
    Destination("deepseek", "https://api.deepseek.com", "deepseek-v4-pro", "openai_chat", "account"),
    {"role": "user", "content": "Read all of it."},
    _chat_body,
    _chat_answer,
    _chat_kept,
)
KINDS = {
    "chat": _CHAT,
    "cleared": _CHAT._replace(shows=_cleared),
    "clock": _CHAT._replace(shows=_with_clock),
    "window": _CHAT._replace(shows=_window),
    "edited": _CHAT._replace(shows=_edited),
    "bare": _CHAT._replace(shows=_bare),
    "messages": Kind(
        Destination("anthropic", "https://api.anthropic.com", "claude-sonnet-4-5", "anthropic_messages", "account"),
        {"role": "user", "content": [{"type": "text", "text": "Read all of it."}]},
        _messages_body,
        _messages_answer,
        _messages_kept,
    ),
}


async def run(name: str, size: int) -> None:
    kind, now = KINDS[name], [time.time()]
    with tempfile.TemporaryDirectory() as folder:
        store = await open_store(f"sqlite:///{folder}/store.db", StoreSettings(), lambda: now[0])
        lessons = Lessons(store, lambda: now[0])
        book = ContractBook(lessons)
        both = [Replayer(store, lessons, book, lambda: now[0], remembered_bytes=most) for most in (64 * 2**20, 0)]
        messages, body = [kind.opening], b""
        costs: tuple[list[float], list[float]] = ([], [])
        while len(messages) <= size:
            body = json.dumps(kind.body(kind.shows(messages))).encode()
            order = [0, 1] if len(messages) % 4 == 1 else [1, 0]
            made = {at: await _timed(both[at], body, kind.target, costs[at]) for at in order}
            prepared, other = made[0], made[1]
            assert (prepared.body, prepared.outcome) == (other.body, other.outcome)
            answer = kind.answer(len(messages))
            await _save(both[0], prepared, answer, now[0])
            messages += kind.kept(answer)
            now[0] += PAUSE_SECONDS
        again = await _again(both[0], body, kind.target)
        await store.close()
        _print(name, size, body, [*costs, again], both[0])


async def _again(replayer: Replayer, body: bytes, target: Destination) -> list[float]:
    costs: list[float] = []
    for _ in range(3 * LAST):
        await _timed(replayer, body, target, costs)
    return [min(costs)]


async def _timed(replayer: Replayer, body: bytes, target: Destination, costs: list[float]) -> Prepared:
    began = time.thread_time()
    prepared = await replayer.prepare(body, target, WHO)
    costs.append((time.thread_time() - began) * 1000)
    return prepared


async def _save(replayer: Replayer, prepared: Prepared, answer: Json, now: float) -> None:
    watch = Watch(prepared)
    watch.read_whole(json.dumps(answer).encode())
    await replayer.save(watch.take(now, Outcome()))


def _print(name: str, size: int, body: bytes, costs: Sequence[list[float]], replayer: Replayer) -> None:
    remembered, whole, again = (statistics.median(some[-LAST:]) for some in costs)
    figures = f"{whole:>8.2f} {remembered:>11.2f} {again:>8.2f} {replayer.remembered_size / 1e6:>8.2f}"
    print(f"{name:<10} {size:>8} {len(body) / 1e3:>8.0f} {figures}", flush=True)


if __name__ == "__main__":
    print("ms of CPU a request")
    print(f"{'':<10} {'messages':>8} {'kB':>8} {'whole':>8} {'remembered':>11} {'again':>8} {'MB kept':>8}")
    for each in [int(one) for one in sys.argv[1:]] or [400]:
        for one in KINDS:
            asyncio.run(run(one, each))
