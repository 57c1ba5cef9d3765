"""Requests and answers of the load: conversations with tool calls, and an answer to each of their turns.

A conversation is known at the upstream by its system prompt. Its measured request ends with a number, so that no two
requests are the same and every answer is a new turn to remember.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple, TypeAlias

import msgspec

Json: TypeAlias = dict[str, Any]

MODEL = "deepseek-v4-pro"
NUMBER = "########"
_LINE = "def load(path):\n    return path.read_bytes()\n"


def tools() -> list[Json]:
    return [{"name": "read", "parameters": {"type": "object"}}]


class Template(NamedTuple):
    """A body but for the number in its last message."""

    head: bytes
    tail: bytes

    def asking(self, model: str) -> Template:
        """The same of another name for the model."""
        own_name, name = (f'"{one}"'.encode() for one in (MODEL, model))
        return Template(self.head.replace(own_name, name), self.tail.replace(own_name, name))

    def numbered(self, number: int) -> bytes:
        return b"%b%08d%b" % (self.head, number, self.tail)


class Conversation(NamedTuple):
    """So many turns of a model that thinks and calls a tool, in about so many bytes."""

    name: str
    turns: int
    size: int

    def thought(self, number: int) -> str:
        return f"{self.name}, turn {number}: the loader is next. " + "It may be slow, so I look at it first. " * 4

    def answer(self, number: int) -> Json:
        """The turn as the model gives it."""
        return {**self._bare(number), "reasoning_content": self.thought(number)}

    def history(self, turns: int) -> list[Json]:
        """The conversation up to there, as a client that keeps no reasoning sends it."""
        return self._history(turns, _filler(self._missing()))

    def template(self, is_streaming: bool = False) -> Template:
        """The request that is measured."""
        last = {"role": "user", "content": f"Go on. {NUMBER}"}
        body = _encoded([*self.history(self.turns), last], is_streaming)
        head, tail = body.split(NUMBER.encode())
        return Template(head, tail)

    def _bare(self, number: int) -> Json:
        arguments = msgspec.json.encode({"n": number}).decode()
        function = {"name": "read", "arguments": arguments}
        call = {"id": f"call_{number:02}_a7f3c9", "type": "function", "function": function}
        return {"role": "assistant", "content": None, "tool_calls": [call]}

    def _history(self, turns: int, filler: str) -> list[Json]:
        said: list[Json] = [{"role": "system", "content": self.name}]
        said.append({"role": "user", "content": f"Look. ({self.name})" if self.turns else filler})
        for number in range(turns):
            bare = self._bare(number)
            result = {"role": "tool", "tool_call_id": bare["tool_calls"][0]["id"], "content": filler}
            said += [bare, result]
        return said

    def _missing(self) -> int:
        """How many bytes of text each result has, or the question where there are none."""
        least = len(_encoded(self._history(self.turns, ""), False)) + 40
        return max(1, (self.size - least) // max(1, self.turns))


CONVERSATIONS = (
    Conversation("4 kB, nothing to restore", 0, 4_000),
    Conversation("4 kB, 2 turns to restore", 2, 4_000),
    Conversation("4 kB, 20 turns to restore", 20, 4_000),
    Conversation("200 kB, 20 turns to restore", 20, 200_000),
)
BY_NAME = {one.name: one for one in CONVERSATIONS}


def _filler(size: int) -> str:
    """Text that takes so many bytes as JSON."""
    text = _LINE * (size // len(_LINE) + 1)
    return msgspec.json.decode(msgspec.json.encode(text)[: size + 1].rstrip(b"\\") + b'"', type=str)


def _encoded(messages: list[Json], is_streaming: bool) -> bytes:
    offered = [{"type": "function", "function": tool} for tool in tools()]
    return msgspec.json.encode({"model": MODEL, "messages": messages, "tools": offered, "stream": is_streaming})


def request(conversation: Conversation, turns: int) -> bytes:
    """The request for one turn of a conversation."""
    return _encoded(conversation.history(turns), False)


def turn_asked_for(body: bytes) -> tuple[Conversation, int]:
    """Which turn a request asks for."""
    messages = msgspec.json.decode(body)["messages"]
    turns = sum(1 for message in messages if message["role"] == "assistant")
    return BY_NAME[messages[0]["content"]], turns


def reasoning_in(body: bytes) -> list[str | None]:
    """What each assistant message of a request carries."""
    messages = msgspec.json.decode(body)["messages"]
    return [message.get("reasoning_content") for message in messages if message["role"] == "assistant"]


_HEAD: Json = {"id": "5b3f0a52-1f0c-4e5e-9d3e-3f2b8c1f7a10", "created": 1789000000, "model": MODEL}
_USAGE: Json = {"prompt_tokens": 1200, "completion_tokens": 150, "total_tokens": 1350}


def answer_body(message: Json) -> bytes:
    """A whole response."""
    finish = "tool_calls" if "tool_calls" in message else "stop"
    choices = [{"index": 0, "message": message, "logprobs": None, "finish_reason": finish}]
    return msgspec.json.encode({**_HEAD, "object": "chat.completion", "choices": choices, "usage": _USAGE})


LAST_ANSWER = answer_body({"role": "assistant", "content": "Done. " * 20, "reasoning_content": "All is well. " * 30})


def stream_events(count: int) -> list[bytes]:
    """The events of a stream, about 215 bytes each: half of them reasoning, the rest text."""
    events = list(_deltas(count - 1))
    events.append(_event({"content": ""}, "stop"))
    return [*events, b"data: [DONE]\n\n"]


def _deltas(count: int) -> Iterable[bytes]:
    for number in range(count):
        thinks = number < count // 2
        yield _event({"content": None, "reasoning_content": " think"} if thinks else {"content": " words"}, None)


def _event(delta: Json, finish: str | None) -> bytes:
    choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
    chunk = {**_HEAD, "object": "chat.completion.chunk", "choices": [choice]}
    return b"data: %b\n\n" % msgspec.json.encode(chunk)
