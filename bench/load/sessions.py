"""A coding agent's session: every request has all before it and two messages more.

A chat client keeps no reasoning, and may edit its history. A Messages client keeps everything, and marks the end of
what it sends for the cache, as Claude Code does: with each request the mark moves. The upstream knows a session by its
name, in the system prompt, and the turn by the number at the head of the last result.
"""

from __future__ import annotations

import hashlib
from typing import Literal, NamedTuple, TypeAlias

import msgspec

from bench.load.bodies import MODEL, Json, answer_body, tools
from bench.load.messages import message

MESSAGES = 400
KEPT = 10
"""Results that a client keeps which clears the others."""

Edit: TypeAlias = Literal["", "cleared", "clock", "window", "edited"]
_CLAUDE = "claude-opus-4-8"
_LINE = "def load(path):\n    return path.read_bytes()\n"


class Session(NamedTuple):
    """`name` tells sessions apart; `is_chat`, or else Messages. `edit` is what a chat client does to its history."""

    name: str
    is_chat: bool
    edit: Edit = ""

    def thought(self, number: int) -> str:
        return f"{self.name}, turn {number}: the loader is next. " + "It may be slow, so I look at it first. " * 6

    def request(self, turns: int) -> bytes:
        """What the client sends when the model has had so many turns."""
        return self._chat(turns) if self.is_chat else self._messages(turns)

    def answer(self, number: int) -> bytes:
        """The turn that follows."""
        if self.is_chat:
            return answer_body({**self._chat_turn(number), "reasoning_content": self.thought(number)})
        return msgspec.json.encode(message(self._blocks(number), "tool_use"))

    def _chat(self, turns: int) -> bytes:
        said: list[Json] = [{"role": "system", "content": self.name}, {"role": "user", "content": self._opening}]
        for number in range(turns):
            said += [
                self._chat_turn(number),
                {"role": "tool", "tool_call_id": self._id(number), "content": _result(number)},
            ]
        offered = [{"type": "function", "function": tool} for tool in tools()]
        return msgspec.json.encode({"model": MODEL, "messages": self._shown(said), "tools": offered, "stream": False})

    def _shown(self, said: list[Json]) -> list[Json]:
        match self.edit:
            case "cleared":
                old = [one for one in said if one["role"] == "tool"][:-KEPT]
                for one in old:
                    one["content"] = "[Old tool result content cleared]"
            case "clock":
                said[1]["content"] += f" It is {len(said)} minutes past noon."
            case "window":
                said[2:] = said[2:][-MESSAGES + 100 :]
            case "edited" if len(said) > 4:
                said[4]["content"] = "I read it."
            case _:
                pass
        return said

    def _chat_turn(self, number: int) -> Json:
        function = {"name": "read", "arguments": msgspec.json.encode({"n": number}).decode()}
        calls = [{"id": self._id(number), "type": "function", "function": function}]
        return {"role": "assistant", "content": f"Reading {number}.", "tool_calls": calls}

    def _messages(self, turns: int) -> bytes:
        said: list[Json] = [{"role": "user", "content": [{"type": "text", "text": self._opening}]}]
        for number in range(turns):
            result = {"type": "tool_result", "tool_use_id": self._id(number), "content": _result(number)}
            said += [{"role": "assistant", "content": self._blocks(number)}, {"role": "user", "content": [result]}]
        said[-1]["content"][-1]["cache_control"] = {"type": "ephemeral"}
        offered = [{"name": tool["name"], "input_schema": tool["parameters"]} for tool in tools()]
        thinking = {"type": "adaptive"}
        body = {"model": _CLAUDE, "max_tokens": 4096, "system": self.name, "messages": said, "tools": offered}
        return msgspec.json.encode({**body, "thinking": thinking, "stream": False})

    @property
    def _opening(self) -> str:
        """Sessions of one opening would have turns in common: a system prompt tells nobody apart."""
        return f"Look at all of it, for {self.name}."

    def _id(self, number: int) -> str:
        return "toolu_" + hashlib.sha256(f"{self.name}, {number}".encode()).hexdigest()[:24]

    def _blocks(self, number: int) -> list[Json]:
        return [
            {"type": "thinking", "thinking": self.thought(number), "signature": f"{number:08}" * 24},
            {"type": "text", "text": f"Reading {number}."},
            {"type": "tool_use", "id": self._id(number), "name": "read", "input": {"n": number}},
        ]


def session_asked_for(body: bytes) -> tuple[Session, int]:
    """Whose request this is, and which turn it asks for."""
    request = msgspec.json.decode(body)
    said = request["messages"]
    is_chat = "system" not in request
    name = said[0]["content"] if is_chat else request["system"]
    last = said[-1]["content"] if is_chat else said[-1]["content"][-1].get("content", "")
    number = last.partition("\n")[0]
    return Session(name, is_chat), int(number) + 1 if number.isdecimal() else 0


class Kept:
    """A session whose client speaks Messages to a provider of chat: it has what the gateway answered, with its thinking
    or without."""

    def __init__(self, name: str, *, keeps_thinking: bool) -> None:
        self._name = name
        self._keeps_thinking = keeps_thinking
        self._said: list[Json] = [{"role": "user", "content": [{"type": "text", "text": f"Look at it, for {name}."}]}]
        self.turns = 0

    def request(self) -> bytes:
        offered = [{"name": tool["name"], "input_schema": tool["parameters"]} for tool in tools()]
        body = {"model": MODEL, "max_tokens": 4096, "system": self._name, "messages": self._said, "tools": offered}
        return msgspec.json.encode({**body, "thinking": {"type": "enabled", "budget_tokens": 2048}, "stream": False})

    def hear(self, answer: bytes) -> None:
        blocks = msgspec.json.decode(answer)["content"]
        kept = [block for block in blocks if self._keeps_thinking or block["type"] != "thinking"]
        result = {"type": "tool_result", "tool_use_id": blocks[-1]["id"], "content": _result(self.turns)}
        self._said += [{"role": "assistant", "content": kept}, {"role": "user", "content": [result]}]
        self.turns += 1


def thoughts_in(body: bytes) -> list[str | None]:
    """What each turn of the model carries in a request."""
    turns = [one for one in msgspec.json.decode(body)["messages"] if one["role"] == "assistant"]
    return [
        one.get("reasoning_content") or next((part["thinking"] for part in one["content"] if "thinking" in part), None)
        for one in turns
    ]


def _result(number: int) -> str:
    return f"{number}\n" + _LINE * (20 + number * 37 % 60)
