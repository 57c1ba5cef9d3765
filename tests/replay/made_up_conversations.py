"""Generated conversations: many with few words, sent again like clients do, and the reasoning that is restored.

    counts = tally(Case(...), seed, conversations=60)     wrong, lost, restored

Texts are equal, ids collide, branches share their openings, several tenants have the same content, the provider runs
its own tools, system messages come in between. Every turn has its own reasoning. *Wrong* is reasoning of another turn;
*lost* is a turn whose own was not restored. Two turns with the same visible history, including call ids and session,
can't be distinguished: neither may be restored. What a client shows after it dropped text may be exactly the history of
another.
"""

from __future__ import annotations

import random
import re
import string
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Literal, NamedTuple
from zlib import crc32

from msgspec import Raw
from msgspec.structs import replace

from thoughtline.engine.capture import Follows, capture
from thoughtline.providers import CONTRACTS, Contract
from thoughtline.replay.chains import wanting
from thoughtline.replay.planner import Needs, needs, plan
from thoughtline.values.destination import Destination
from thoughtline.values.identity import Identity
from thoughtline.values.items import (
    ANTHROPIC_CLAUDE_V1,
    KIMI_V1,
    Item,
    ReasoningFormat,
    ReasoningText,
    Text,
    ToolCall,
    ToolResult,
    Unknown,
)
from thoughtline.values.records import Key, Record
from thoughtline.values.turns import Candidate, Finish, Provenance, Reply, Transcript, Turn

WORDS = ("go on", "list the files", "fix the test", "why?", "thanks", "again please")
ANSWERS = ("", "Done.", "Let me look.", "It is fixed now.", "Hello!")
NAMES = ("bash", "read_file")
ARGUMENTS = ('{"path": "a.py"}', '{"path": "b.py"}', "{}")
REMINDERS = ("Be brief.", "The date has changed.")
NOTICE = Raw(b'"[Old tool result content cleared]"')
MOST = 16
"""Records that a store returns per key, newest first."""

Ids = Literal["counted", "random", "digitless"]
Mutation = Literal[
    "nothing",
    "ids renamed",
    "text trimmed",
    "first message rewritten",
    "no text beside calls",
    "results cleared",
    "calls merged",
    "system messages added",
]


class Maker(NamedTuple):
    """Who answers: the contract, and the form of its reasoning."""

    contract: Contract
    model: str
    reasoning_format: ReasoningFormat
    is_signed: bool

    @property
    def issuer(self) -> Destination:
        return Destination(self.contract.name, "host", self.model, self.contract.format, "account")

    def thinks(self, thought: str) -> ReasoningText:
        return ReasoningText(thought, f"signed {thought}" if self.is_signed else None, self.reasoning_format)

    def provenance(self, tenant: str, session: str | None) -> Provenance:
        made = self.contract
        return Provenance(
            *(tenant, made.name, "host", "account", self.model, self.model, made.format, made.dialect.name),
            session=session,
        )


MAKERS = {
    "kimi": Maker(CONTRACTS["kimi"], "kimi-k2.6", KIMI_V1, is_signed=False),
    "bound claude": Maker(CONTRACTS["anthropic-bound"], "claude-opus-5-5", ANTHROPIC_CLAUDE_V1, is_signed=True),
}


class Case(NamedTuple):
    """Who answers, how calls are named, whether clients name their session, and how they change a history."""

    maker: str = "kimi"
    ids: Ids = "counted"
    with_sessions: bool = False
    mutation: Mutation = "nothing"


class Counts(NamedTuple):
    wrong: int = 0
    lost: int = 0
    restored: int = 0

    def plus(self, other: Counts) -> Counts:
        return Counts(self.wrong + other.wrong, self.lost + other.lost, self.restored + other.restored)


class History(NamedTuple):
    tenant: str
    session: str
    visible: str


@dataclass
class Conversation:
    """One conversation as its client knows it, with the owner of each assistant turn's reasoning."""

    tenant: str
    session: str | None
    turns: list[Turn] = field(default_factory=list)
    thoughts: dict[int, str] = field(default_factory=dict)

    def history(self, position: int) -> History:
        """Everything visible up to a turn: two turns with the same history differ only by their session."""
        visible = [str([_shown(item) for item in turn.items]) for turn in self.turns[: position + 1]]
        return History(self.tenant, self.session or "", "".join(visible))

    def words(self, position: int) -> History:
        """The same by text, calls and results only: no ids, no system messages, no tools of the provider."""
        turns = [turn for turn in self.turns[: position + 1] if turn.role != "system"]
        visible = [str([_plain(item) for item in turn.items if not isinstance(item, Unknown)]) for turn in turns]
        return History(self.tenant, self.session or "", "".join(visible))

    def calls(self) -> int:
        return sum(isinstance(item, ToolCall) for turn in self.turns for item in turn.items)


def _shown(item: Item) -> object:
    match item:
        case ToolCall():
            return item.id, item.name, item.arguments
        case ToolResult():
            return bytes(item.content)
        case Text():
            return item.text.strip()
        case _:
            return None


def _plain(item: Item) -> object:
    return (item.name, item.arguments) if isinstance(item, ToolCall) else _shown(item)


class Universe:
    """All records, and what a store would find."""

    def __init__(self, case: Case, seed: int) -> None:
        self.random = random.Random(f"{seed} {case.maker} {case.ids} {case.with_sessions}")
        self.case = case
        self.maker = MAKERS[case.maker]
        self.index: dict[tuple[str, Key], list[Record]] = {}
        self.conversations: list[Conversation] = []
        self.clock = 0.0

    def converse(self, number: int) -> None:
        session = f"session-{number}" if self.case.with_sessions else None
        talk = Conversation(f"tenant-{number % 3}", session)
        if self.conversations and self.random.random() < 0.2:
            talk = self._branch(talk)
        for _ in range(self.random.randint(1, 5)):
            if talk.turns and self.random.random() < 0.15:
                talk.turns.append(Turn("system", (Text(self.random.choice(REMINDERS)),), 0))
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
        return Conversation(talk.tenant, parent.session, list(parent.turns[:cut]), thoughts)

    def _step(self, talk: Conversation) -> bool:
        """One answer of the model; returns whether it called tools, whose results then follow."""
        items: list[Item] = []
        text = self.random.choice(ANSWERS)
        count = self.random.choice((0, 0, 1, 1, 2)) if text else 1
        if self.random.random() < 0.1:  # a tool that the provider runs itself
            items.append(Unknown("server_tool_use", Raw(b'{"type": "server_tool_use", "id": "srv_1"}')))
        if text:
            items.append(Text(text))
        made = talk.calls()
        for number in range(count):
            name = self.random.choice(NAMES)
            items.append(ToolCall(name, self.random.choice(ARGUMENTS), self._call_id(name, made + number)))
        thought = f"<{len(self.conversations)}.{len(talk.turns)}.{self.clock}>"
        self._capture(talk, (self.maker.thinks(thought), *items))
        talk.thoughts[len(talk.turns)] = thought
        talk.turns.append(Turn("assistant", tuple(items), 0))
        for item in items:
            if isinstance(item, ToolCall):
                result = Raw(f'"result {self.random.randint(0, 2)}"'.encode())
                talk.turns.append(Turn("tool", (ToolResult(result, item.id),), 0))
        return count > 0

    def _call_id(self, name: str, number: int) -> str:
        match self.case.ids:
            case "counted":
                return f"functions.{name}:{number}"
            case "random":
                return "call_" + "".join(self.random.choices(string.ascii_letters + string.digits, k=24))
            case "digitless":
                return "call_" + "".join(self.random.choices(string.ascii_letters, k=24))

    def _capture(self, talk: Conversation, items: tuple[Item, ...]) -> None:
        self.clock += 1.0
        made = self.maker.contract.format
        request = Transcript(made, tuple(talk.turns), tools=(Raw(b"{}"),))
        needed = needs(request, self.maker.contract, Identity(talk.tenant, talk.session))
        found = self.found(talk.tenant, needed.keys)
        planned = plan(request, self.maker.contract, needed, found, self.maker.issuer)
        follows = Follows(planned.parent, planned.enters_session)
        reply = Reply(made, (Candidate(Turn("assistant", items), 0, Finish("stop", "stop")),))
        where = self.maker.provenance(talk.tenant, talk.session)
        for record in capture(request, reply, where, self.clock, follows=follows):
            for key in record.keys:
                self.index.setdefault((talk.tenant, key), []).insert(0, record)

    def found(self, tenant: str, keys: tuple[Key, ...]) -> dict[Key, list[Record]]:
        return {key: self.index.get((tenant, key), [])[:MOST] for key in keys}

    def found_in_two(self, tenant: str, needed: Needs) -> dict[Key, list[Record]]:
        found = self.found(tenant, needed.first)
        while more := wanting(needed, found)[1]:
            found |= self.found(tenant, more)
        return found


# --- what clients do -------------------------------------------------------------------------------------------------


class Sent(NamedTuple):
    """A turn as a client sends it, with the original places of its parts."""

    turn: Turn
    origins: tuple[int, ...]


def mutated(talk: Conversation, mutation: Mutation, chance: random.Random) -> list[Sent]:
    turns = [Sent(turn, (position,)) for position, turn in enumerate(talk.turns)]
    match mutation:
        case "ids renamed":
            return [_each(sent, _renamed) for sent in turns]
        case "text trimmed":
            return [_each(sent, _padded) for sent in turns]
        case "first message rewritten":
            return [Sent(Turn("user", (Text("<reminder>be brief</reminder>"),), 0), (0,)), *turns[1:]]
        case "no text beside calls":
            return [sent._replace(turn=_without_text(sent.turn)) for sent in turns]
        case "results cleared":
            last = chance.randrange(len(turns))
            return [_each(sent, _cleared) if sent.origins[0] <= last else sent for sent in turns]
        case "calls merged":
            return _merged(turns)
        case "system messages added":
            return list(_reminded(turns, chance))
        case "nothing":
            return turns


def _each(sent: Sent, change: Callable[[Item], Item]) -> Sent:
    return sent._replace(turn=sent.turn.with_items(tuple(map(change, sent.turn.items))))


def _renamed(item: Item) -> Item:
    match item:
        case ToolCall():
            return replace(item, id=_other_id(item.id))
        case ToolResult():
            return replace(item, call_id=_other_id(item.call_id))
        case _:
            return item


def _other_id(name: str | None) -> str:
    """Ids of few digits, so that some collide."""
    return f"{crc32((name or '').encode()) % 997:09d}"


def _padded(item: Item) -> Item:
    return replace(item, text=f"  {item.text}\n") if isinstance(item, Text) else item


def _cleared(item: Item) -> Item:
    return replace(item, content=NOTICE) if isinstance(item, ToolResult) else item


def _without_text(turn: Turn) -> Turn:
    if turn.role != "assistant" or not any(isinstance(item, ToolCall) for item in turn.items):
        return turn
    return turn.with_items(tuple(item for item in turn.items if not isinstance(item, Text)))


def _merged(turns: list[Sent]) -> list[Sent]:
    """Merge the steps of each loop into one turn, if all of them call tools, followed by their results."""
    shown: list[Sent] = []
    results: list[Sent] = []
    for sent in turns:
        calls = [item for item in sent.turn.items if isinstance(item, ToolCall)]
        if sent.turn.role == "tool":
            results.append(sent)
        elif calls and results and sent.turn.role == "assistant":
            last = shown[-1]
            turn = last.turn.with_items((*last.turn.items, *sent.turn.items))
            shown[-1] = Sent(turn, (*last.origins, *sent.origins))
        else:
            shown += [*results, sent]
            results = []
    return [*shown, *results]


def _reminded(turns: list[Sent], chance: random.Random) -> Iterator[Sent]:
    """Add a system message after the last answer, if no reasoning is bound to its prefix."""
    last = max(at for at, sent in enumerate(turns) if sent.turn.role == "assistant")
    for at, sent in enumerate(turns):
        yield sent
        if at == last:
            yield Sent(Turn("system", (Text(chance.choice(REMINDERS)),), 0), ())


# --- counting --------------------------------------------------------------------------------------------------------


def tally(case: Case, seed: int, conversations: int) -> Counts:
    """Play these conversations, send each of them again, and count whose reasoning is restored."""
    universe = Universe(case, seed)
    for number in range(conversations):
        universe.converse(number)
    twins: dict[History, set[str]] = {}
    for talk in universe.conversations:
        for position, thought in talk.thoughts.items():
            if case.mutation == "no text beside calls":
                twins.setdefault(talk.words(position), set()).add(thought)
    counts = Counts()
    for talk in universe.conversations:
        counts = counts.plus(_sent_again(universe, talk, twins))
    return counts


def _sent_again(universe: Universe, talk: Conversation, twins: dict[History, set[str]]) -> Counts:
    sent = mutated(talk, universe.case.mutation, universe.random)
    maker = universe.maker
    request = Transcript(maker.contract.format, tuple(one.turn for one in sent), tools=(Raw(b"{}"),))
    shown = Conversation(talk.tenant, talk.session, list(request.turns))
    needed = needs(request, maker.contract, Identity(talk.tenant, talk.session))
    decided = plan(request, maker.contract, needed, universe.found(talk.tenant, needed.keys), maker.issuer)
    in_two = universe.found_in_two(talk.tenant, needed)
    assert plan(request, maker.contract, needed, in_two, maker.issuer) == decided
    planned = decided.apply(request)
    wrong = lost = restored = 0
    for number, one in enumerate(sent):
        steps = [position for position in one.origins if position in talk.thoughts]
        if not steps:
            continue
        texts = [item.text for item in planned.turns[number].items if isinstance(item, ReasoningText)]
        real = re.findall(r"<[^>]*>", "".join(texts))
        allowed = {talk.thoughts[position] for position in steps}
        if universe.case.mutation == "no text beside calls":
            allowed |= twins.get(shown.words(number), set())
        wrong += any(thought not in allowed for thought in real)
        restored += len(real)
        lost += max(0, len(steps) - len(real))
    return Counts(wrong, lost, restored)
