"""The two ways to be wrong, counted over made-up conversations.

Many conversations of few words: ids collide, texts are equal, branches share their openings, several tenants say the
same. Every turn has reasoning of its own. *Wrong* is reasoning of another turn; *lost* is a turn whose own was not
restored. Two turns with the same visible history are the same turn for everybody but their session, so either's
reasoning may come back there; that holds for what a client shows after it dropped words, too.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field

import pytest
from msgspec import Raw
from msgspec.structs import replace

from thoughtline.items import Item, ReasoningText, Text, ToolCall, ToolResult
from thoughtline.records import Key, Record
from thoughtline.replay.capture import capture
from thoughtline.replay.contracts import BY_NAME
from thoughtline.replay.keys import Identity
from thoughtline.replay.planner import Issuer, Needs, needs, plan
from thoughtline.turns import Candidate, Finish, Provenance, Reply, Transcript, Turn

WORDS = ("go on", "list the files", "fix the test", "why?", "thanks", "again please")
ANSWERS = ("", "Done.", "Let me look.", "It is fixed now.", "Hello!")
NAMES = ("bash", "read_file")
ARGUMENTS = ('{"path": "a.py"}', '{"path": "b.py"}', "{}")
ISSUER = Issuer("kimi", "host", "account", "kimi-k2.6")
CONTRACT = BY_NAME["kimi"]


@dataclass
class Conversation:
    """One conversation as its client knows it, with whose reasoning each assistant turn is."""

    tenant: str
    session: str | None
    turns: list[Turn] = field(default_factory=list)
    thoughts: dict[int, str] = field(default_factory=dict)
    counter: int = 0

    def history(self, position: int) -> tuple[str, str, str]:
        """All that is visible up to a turn: what makes two turns the same to everybody but their session."""
        visible = [str([_shown(item) for item in turn.items]) for turn in self.turns[: position + 1]]
        return self.tenant, self.session or "", "".join(visible)


def _shown(item: Item) -> object:
    match item:
        case ToolCall():
            return item.name, item.arguments
        case ToolResult():
            return bytes(item.content)
        case Text():
            return item.text.strip()
        case _:
            return None


class Universe:
    """Every record there is, and what a store would find."""

    def __init__(self, seed: int, with_sessions: bool) -> None:
        self.random = random.Random(seed)
        self.with_sessions = with_sessions
        self.index: dict[tuple[str, Key], list[Record]] = {}
        self.conversations: list[Conversation] = []
        self.clock = 0.0

    def converse(self, number: int) -> None:
        session = f"session-{number}" if self.with_sessions else None
        talk = Conversation(f"tenant-{number % 3}", session)
        if self.conversations and self.random.random() < 0.2:
            talk = self._branch(talk)
        for _ in range(self.random.randint(1, 5)):
            talk.turns.append(Turn("user", (Text(self.random.choice(WORDS)),), 0))
            while self._step(talk):
                pass
        self.conversations.append(talk)

    def _branch(self, talk: Conversation) -> Conversation:
        """A fork of an earlier conversation of the same tenant: one prefix, two continuations."""
        same = [other for other in self.conversations if other.tenant == talk.tenant]
        if not same:
            return talk
        parent = self.random.choice(same)
        users = [at for at, turn in enumerate(parent.turns) if turn.role == "user"]
        cut = self.random.choice(users)
        thoughts = {at: thought for at, thought in parent.thoughts.items() if at < cut}
        return Conversation(talk.tenant, parent.session, list(parent.turns[:cut]), thoughts, parent.counter)

    def _step(self, talk: Conversation) -> bool:
        """One answer of the model; says whether it called tools, whose results then follow."""
        items: list[Item] = []
        text = self.random.choice(ANSWERS)
        count = self.random.choice((0, 0, 1, 1, 2)) if text else 1
        if text:
            items.append(Text(text))
        for _ in range(count):
            name = self.random.choice(NAMES)
            call_id = f"functions.{name}:{talk.counter}"
            talk.counter += 1
            items.append(ToolCall(name, self.random.choice(ARGUMENTS), call_id))
        thought = f"thought {len(self.conversations)}.{len(talk.turns)}.{self.clock}"
        self._capture(talk, (ReasoningText(thought), *items))
        talk.thoughts[len(talk.turns)] = thought
        talk.turns.append(Turn("assistant", tuple(items), 0))
        for item in items:
            if isinstance(item, ToolCall):
                result = Raw(f'"result {self.random.randint(0, 2)}"'.encode())
                talk.turns.append(Turn("tool", (ToolResult(result, item.id),), 0))
        return count > 0

    def _capture(self, talk: Conversation, items: tuple[Item, ...]) -> None:
        self.clock += 1.0
        request = Transcript("openai_chat", tuple(talk.turns))
        reply = Reply("openai_chat", (Candidate(Turn("assistant", items), 0, Finish("stop", "stop")),))
        where = Provenance(
            *(talk.tenant, "kimi", "host", "account", "kimi-k2.6", "kimi-k2.6", "openai_chat", "kimi"),
            session=talk.session,
        )
        for record in capture(request, reply, where, self.clock):
            for key in record.keys:
                self.index.setdefault((talk.tenant, key), []).append(record)

    def found(self, tenant: str, needed: Needs) -> dict[Key, list[Record]]:
        return self._find(tenant, needed.keys)

    def found_in_two(self, tenant: str, needed: Needs) -> dict[Key, list[Record]]:
        first = self._find(tenant, needed.first)
        return first | self._find(tenant, needed.rest(first))

    def _find(self, tenant: str, keys: tuple[Key, ...]) -> dict[Key, list[Record]]:
        return {key: self.index.get((tenant, key), []) for key in keys}


MUTATIONS = ("nothing", "ids renamed", "text trimmed", "first message rewritten", "no text beside calls")


def mutated(talk: Conversation, mutation: str) -> tuple[Turn, ...]:
    match mutation:
        case "ids renamed":
            return tuple(turn.with_items(tuple(_renamed(item) for item in turn.items)) for turn in talk.turns)
        case "text trimmed":
            return tuple(turn.with_items(tuple(_padded(item) for item in turn.items)) for turn in talk.turns)
        case "first message rewritten":
            return (Turn("user", (Text("<reminder>be brief</reminder>"),), 0), *talk.turns[1:])
        case "no text beside calls":
            return tuple(_without_text(turn) for turn in talk.turns)
        case _:
            return tuple(talk.turns)


def _renamed(item: Item) -> Item:
    match item:
        case ToolCall():
            return replace(item, id=f"{hash(item.id) % 997:09d}")
        case ToolResult():
            return replace(item, call_id=f"{hash(item.call_id) % 997:09d}")
        case _:
            return item


def _padded(item: Item) -> Item:
    return replace(item, text=f"  {item.text}\n") if isinstance(item, Text) else item


def _without_text(turn: Turn) -> Turn:
    if turn.role != "assistant" or not any(isinstance(item, ToolCall) for item in turn.items):
        return turn
    return turn.with_items(tuple(item for item in turn.items if not isinstance(item, Text)))


@pytest.mark.parametrize("with_sessions", [True, False], ids=["sessions", "no sessions"])
@pytest.mark.parametrize("mutation", MUTATIONS)
def test_wrong_and_lost(mutation: str, with_sessions: bool, record_property: Callable[[str, object], None]) -> None:
    """Never another turn's reasoning; and all that can be told apart is restored while history is as it was."""
    wrong = lost = restored = 0
    for seed in range(4):
        universe = Universe(seed, with_sessions)
        for number in range(60):
            universe.converse(number)
        twins: dict[tuple[str, str, str], set[str]] = {}
        for talk in universe.conversations:
            for position, thought in talk.thoughts.items():
                twins.setdefault(talk.history(position), set()).add(thought)
        for talk in universe.conversations:
            request = Transcript("openai_chat", mutated(talk, mutation), tools=(Raw(b"{}"),))
            shown = Conversation(talk.tenant, talk.session, list(request.turns))
            needed = needs(request, CONTRACT, Identity(talk.tenant, talk.session))
            decided = plan(request, CONTRACT, needed, universe.found(talk.tenant, needed), ISSUER)
            assert plan(request, CONTRACT, needed, universe.found_in_two(talk.tenant, needed), ISSUER) == decided
            planned = decided.apply(request)
            for position in talk.thoughts:
                thoughts = [item.text for item in planned.turns[position].items if isinstance(item, ReasoningText)]
                real = [thought for thought in thoughts if thought.strip()]
                allowed = twins[talk.history(position)] | twins.get(shown.history(position), set())
                wrong += any(thought not in allowed for thought in real)
                restored += bool(real)
                lost += not real
    record_property("counts", f"wrong {wrong}, lost {lost}, restored {restored}")
    assert wrong == 0
    if mutation in ("nothing", "ids renamed", "text trimmed"):
        assert lost == 0
    assert restored > 0
