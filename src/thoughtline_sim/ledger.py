"""A simulator's memory: the turns it sent, the responses it stored, and which of them came back. All bounded."""

from __future__ import annotations

from collections import Counter, OrderedDict
from itertools import groupby, takewhile
from typing import NamedTuple, TypeVar

from msgspec import Struct, field

from thoughtline_sim.reading import JsonObject
from thoughtline_sim.values import InputMessage, Verdict
from thoughtline_sim.writing import digest

MAX_CONVERSATIONS = 1_000
MAX_RESPONSES = 10_000
MAX_PREFIXES = 2_000
MAX_SAME_TURNS = 8
"""How many answers to one turn of one conversation are distinguished: a turn may be requested again, or by many at
once.
"""

K = TypeVar("K")
V = TypeVar("V")


class Bounded(OrderedDict[K, V]):
    """A dictionary that drops the oldest entries."""

    def __init__(self, limit: int) -> None:
        super().__init__()
        self._limit = limit

    def __setitem__(self, key: K, value: V) -> None:
        super().__setitem__(key, value)
        self.move_to_end(key)
        while len(self) > self._limit:
            self.popitem(last=False)


class SentTurn(Struct, frozen=True):
    """A turn as it was sent: its visible part, and its reasoning."""

    visible: str
    thoughts: tuple[str, ...]


class StoredResponse(Struct, frozen=True):
    """A Responses answer: its items, everything before it, and whether its ids can be looked up later."""

    items: tuple[JsonObject, ...]
    before: tuple[JsonObject, ...]
    is_stored: bool


class PrefixParts(NamedTuple):
    """The digests that make up Claude's prefix, to name the part that changed: of the system prompt, of the tools, and
    of the blocks of each message.
    """

    system: str
    tools: str
    messages: tuple[tuple[str, ...], ...]


class Conversation(Struct):
    """The state of one conversation of one account."""

    id: str
    opening: str
    sent: dict[int, list[SentTurn]] = field(default_factory=dict)
    prompt: list[str] = field(default_factory=list)
    """The parts of the latest request as the model saw them."""
    requests: int = 0
    refusals: int = 0
    verdicts: Counter[Verdict] = field(default_factory=Counter)
    latest: list[Verdict] = field(default_factory=list)

    def count(self, verdicts: list[Verdict], *, is_refused: bool) -> None:
        self.requests += 1
        self.refusals += is_refused
        self.verdicts.update(verdicts)
        self.latest = verdicts


class Ledger:
    """The memory of one simulator."""

    def __init__(self) -> None:
        self.conversations: Bounded[str, Conversation] = Bounded(MAX_CONVERSATIONS)
        self.responses: Bounded[tuple[str, str], StoredResponse] = Bounded(MAX_RESPONSES)
        self.items: Bounded[tuple[str, str], str] = Bounded(MAX_RESPONSES * 4)
        self.prefixes: Bounded[str, PrefixParts] = Bounded(MAX_PREFIXES)

    def conversation(self, account: str, history: tuple[InputMessage, ...]) -> Conversation:
        """The conversation that begins with these messages."""
        opening = next((message.text for message in history if message.role == "user"), "")
        name = digest(account, opening)
        known = self.conversations.get(name)
        if known is None:
            known = Conversation(name, opening[:200])
            self.conversations[name] = known
        return known

    def remember_response(self, account: str, response_id: str, stored: StoredResponse) -> None:
        self.responses[account, response_id] = stored
        for item in stored.items:
            if isinstance(item.get("id"), str):
                self.items[account, item["id"]] = response_id

    def response_of_item(self, account: str, item_id: str) -> StoredResponse | None:
        response_id = self.items.get((account, item_id))
        return None if response_id is None else self.responses.get((account, response_id))


def remember_turn(conversation: Conversation, turn: int, answer: tuple[InputMessage, ...]) -> None:
    """Keep the content of this turn, to recognize it when it comes back."""
    sent = conversation.sent.setdefault(turn, [])
    sent.append(SentTurn(visible_of(answer), thoughts_of(answer)))
    del sent[:-MAX_SAME_TURNS]


def cached_chars(conversation: Conversation, prompt: list[str]) -> int:
    """How much of a prompt equals the beginning of the latest one; the next is compared with this one."""
    same = takewhile(lambda pair: pair[0] == pair[1], zip(prompt, conversation.prompt, strict=False))
    conversation.prompt = prompt
    return sum(len(part) for part, _ in same)


def judge(conversation: Conversation, history: tuple[InputMessage, ...]) -> list[Verdict]:
    """The verdict on the reasoning of each turn of the model in this request."""
    return [_verdict(conversation.sent.get(turn, []), run) for turn, run in enumerate(runs_of(history))]


def _verdict(sent: list[SentTurn], run: tuple[InputMessage, ...]) -> Verdict:
    candidates = [turn for turn in sent if turn.visible == visible_of(run)] or sent
    if not candidates:
        return "unknown"
    back = thoughts_of(run)
    if any(turn.thoughts == back for turn in candidates):
        return "whole" if back else "none"
    if not back:
        return "missing"
    return "altered" if any(turn.thoughts for turn in candidates) else "invented"


def runs_of(history: tuple[InputMessage, ...]) -> list[tuple[InputMessage, ...]]:
    """The model's turns: consecutive assistant messages are one."""
    return [tuple(run) for role, run in groupby(history, lambda message: message.role) if role == "assistant"]


def visible_of(messages: tuple[InputMessage, ...]) -> str:
    """The visible content of a turn, in one string."""
    calls = [call for message in messages for call in message.calls]
    return digest("".join(message.text for message in messages).strip(), *(f"{c.name} {c.arguments}" for c in calls))


def thoughts_of(messages: tuple[InputMessage, ...]) -> tuple[str, ...]:
    return tuple(thought for message in messages for thought in message.thoughts)
