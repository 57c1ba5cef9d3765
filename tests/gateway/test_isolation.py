"""No caller gets another's reasoning: not with another key, not with the same ids, not for the same words."""

from __future__ import annotations

import asyncio
import json
import random
import sys
from collections import Counter
from typing import Any

import httpx
import pytest

from tests.gateway.gateway_processes import started
from tests.gateway.gateways import running
from tests.gateway.upstreams import Got, Out, upstream

KEYS, NUMBERS, INTRUDERS = 50, 200, 500
AT_ONCE, OPEN = 24, 40
"""Clients, and the number of conversations that each may have open."""
PATH = "/kimi/v1/chat/completions"
CALL: dict[str, Any] = {
    "id": "functions.bash:0",
    "type": "function",
    "function": {"name": "bash", "arguments": '{"cmd":"ls"}'},
}
SAID = {"role": "assistant", "content": "I shall look.", "tool_calls": [CALL]}
RESULT = {"role": "tool", "tool_call_id": CALL["id"], "content": "a.txt"}
TOOLS = [{"type": "function", "function": {"name": "bash", "parameters": {"type": "object", "properties": {}}}}]


def thought(key: str, opening: str) -> str:
    """The model's reasoning in one conversation of one key, and in no other."""
    return f"<{key}|{opening}>"


class Provider:
    """Writes the same in every conversation, thinks something else in each, and checks what comes back."""

    def __init__(self) -> None:
        self.seen: Counter[str] = Counter()

    async def __call__(self, got: Got, out: Out) -> None:
        body = json.loads(got.body)
        own = thought((got.header("authorization") or "").removeprefix("Bearer "), body["messages"][0]["content"])
        for message in body["messages"]:
            if message["role"] == "assistant":
                self.seen[_verdict(message.get("reasoning_content"), own)] += 1
        if body.get("stream"):
            await out.stream()
            deltas: list[dict[str, Any]] = [{"reasoning_content": own[:9]}, {"reasoning_content": own[9:]}]
            deltas += [{"content": SAID["content"]}, {"tool_calls": [{"index": 0, **CALL}]}]
            events: list[Any] = [{"choices": [{"index": 0, "delta": delta, "finish_reason": None}]} for delta in deltas]
            events.append({"choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]})
            await out.chunk(b"".join(b"data: " + json.dumps(one).encode() + b"\n\n" for one in events))
            await out.chunk(b"data: [DONE]\n\n")
            await out.end()
            return
        choice = {"index": 0, "message": {**SAID, "reasoning_content": own}, "finish_reason": "tool_calls"}
        await out.whole(200, json.dumps({"id": "1", "choices": [choice]}).encode())


def _verdict(back: str | None, own: str) -> str:
    if back == own:
        return "right"
    return "wrong" if back and back.strip() else "missing"


def asking(key: str, opening: str, *, has_history: bool, is_streaming: bool = False) -> tuple[str, bytes]:
    messages: list[Any] = [{"role": "user", "content": opening}]
    if has_history:
        messages += [SAID, RESULT]
    return key, json.dumps(
        {"model": "kimi-k2.6", "messages": messages, "tools": TOOLS, "stream": is_streaming}
    ).encode()


class Client:
    """One connection, one request after the other; answers are read and dropped."""

    def __init__(self, url: str) -> None:
        self._host, self._port = url.removeprefix("http://").split(":")

    async def open(self) -> None:
        self._reader, self._writer = await asyncio.open_connection(self._host, int(self._port))

    async def ask(self, key: str, body: bytes) -> None:
        lines = (f"POST {PATH} HTTP/1.1", "host: localhost", f"authorization: Bearer {key}")
        head = "\r\n".join((*lines, f"content-length: {len(body)}", "", ""))
        self._writer.write(head.encode() + body)
        answer = await self._reader.readuntil(b"\r\n\r\n")
        assert answer.startswith(b"HTTP/1.1 200"), answer
        lowered = answer.lower()
        if b"content-length:" in lowered:
            await self._reader.readexactly(int(lowered.split(b"content-length:")[1].split(b"\r\n")[0]))
        else:
            await self._reader.readuntil(b"\r\n0\r\n\r\n")


async def hold_conversations(url: str) -> None:
    """All conversations with every key, in any order, many at once; then intruders with their own keys."""
    chance = random.Random(8642)
    waiting = [(f"key-{key}", f"conversation {number}") for key in range(KEYS) for number in range(NUMBERS)]
    chance.shuffle(waiting)

    async def work() -> None:
        client = Client(url)
        await client.open()
        begun: list[tuple[str, str]] = []
        while waiting or begun:
            if waiting and (not begun or (len(begun) < OPEN and chance.random() < 0.6)):
                begun.append(waiting.pop())
                await client.ask(*asking(*begun[-1], has_history=False, is_streaming=chance.random() < 0.5))
            else:
                await client.ask(*asking(*begun.pop(chance.randrange(len(begun))), has_history=True))

    await asyncio.gather(*(work() for _ in range(AT_ONCE)))
    client = Client(url)
    await client.open()
    for intruder in range(INTRUDERS):
        await client.ask(*asking(f"intruder-{intruder}", f"conversation {intruder % NUMBERS}", has_history=True))


def test_ten_thousand_conversations_at_once(capsys: pytest.CaptureFixture[str]) -> None:
    """Fifty keys have two hundred conversations each, all with the same words, calls and ids: each gets its own."""
    provider = Provider()
    with upstream(provider) as up, started("memory://", {"kimi": up.url}) as gateway:
        asyncio.run(hold_conversations(gateway.url))
    seen = provider.seen
    with capsys.disabled():
        sys.stdout.write(f"\n  {KEYS * NUMBERS} conversations: right {seen['right']}, wrong {seen['wrong']}, ")
        sys.stdout.write(f"missing {seen['missing']} ({INTRUDERS} of them asked with another key)\n")
    assert seen == {"right": KEYS * NUMBERS, "missing": INTRUDERS}


@pytest.mark.parametrize("shown", ["authorization", "x-api-key", "x-goog-api-key", "api-key", "nobody"])
def test_the_same_conversation_with_another_key(shown: str) -> None:
    """In any header: a caller finds its own reasoning, and nothing else."""
    provider = Provider()

    def key(name: str) -> dict[str, str]:
        return {shown: f"Bearer {name}" if shown == "authorization" else name}

    with upstream(provider) as up, running({"kimi": up.url}) as gateway:
        url = gateway.url + PATH
        httpx.post(url, content=asking("", "hello", has_history=False)[1], headers=key("mine"))
        history = asking("", "hello", has_history=True)[1]
        other = httpx.post(url, content=history, headers=key("yours")).headers["x-thoughtline-replay"]
        own = httpx.post(url, content=history, headers=key("mine")).headers["x-thoughtline-replay"]
    assert own.startswith("restored=1,")
    if shown == "nobody":  # a header that shows no key: both are this machine
        assert other.startswith("restored=1,")
    else:
        assert other.startswith("restored=0,")


def test_the_same_key_behind_another_header() -> None:
    """A key identifies its owner in any header."""
    provider = Provider()
    with upstream(provider) as up, running({"kimi": up.url}) as gateway:
        url = gateway.url + PATH
        httpx.post(url, content=asking("", "hello", has_history=False)[1], headers={"authorization": "Bearer k"})
        again = httpx.post(url, content=asking("", "hello", has_history=True)[1], headers={"x-api-key": "k"})
    assert again.headers["x-thoughtline-replay"].startswith("restored=1,")
