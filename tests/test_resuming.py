"""A remembered conversation: with and without it, the same goes up, the same is told, the same is captured."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import Raw
from msgspec.structs import replace

from thoughtline import resuming
from thoughtline.contract_book import ContractBook
from thoughtline.formats import FORMATS
from thoughtline.lessons import Lessons
from thoughtline.prepared import Prepared
from thoughtline.providers import Contract
from thoughtline.replay import remembering
from thoughtline.replay.capture import captured_at
from thoughtline.replayer import Replayer
from thoughtline.stores.base import Filter
from thoughtline.stores.memory import MemoryStore
from thoughtline.stores.settings import StoreSettings
from thoughtline.values.destination import Destination
from thoughtline.values.identity import Identity
from thoughtline.values.items import Item, ReasoningEncrypted, ReasoningText, Seal, Text, ToolCall, ToolResult
from thoughtline.values.records import Key
from thoughtline.values.turns import Candidate, Finish, FormatName, Reply, Transcript, Turn
from thoughtline.watching import provenance_of

Json = dict[str, Any]

TTL_SECONDS = 1000.0


class Model(NamedTuple):
    """Whom a conversation is held with."""

    provider: str
    endpoint: str
    name: str
    format: FormatName

    @property
    def destination(self) -> Destination:
        return Destination(self.provider, self.endpoint, self.name, self.format, "account")


MODELS = (
    Model("deepseek", "https://api.deepseek.com", "deepseek-v4-pro", "openai_chat"),
    Model("moonshot", "https://api.moonshot.ai", "kimi-k2.6", "openai_chat"),
    Model("openrouter", "https://openrouter.ai", "deepseek/deepseek-v4-pro", "openai_chat"),
    Model("mine", "http://localhost:9", "nobody-knows-it", "openai_chat"),
    Model("anthropic", "https://api.anthropic.com", "claude-sonnet-4-5", "anthropic_messages"),
    Model("anthropic", "https://api.anthropic.com", "claude-opus-5-5", "anthropic_messages"),
    Model("openai", "https://api.openai.com", "gpt-5.1", "openai_responses"),
    Model("gemini", "https://generativelanguage.googleapis.com", "gemini-3-pro", "gemini_generate"),
    Model("bedrock", "https://bedrock-runtime.us-east-1.amazonaws.com", "us.anthropic.claude-x", "bedrock_converse"),
    Model("ollama", "http://localhost:11434", "qwen3", "ollama_chat"),
)
WORDS = ("go on", "list the files", "why?", "It is done.", "Let me look.", 'a "quoted" {text}')
RESULTS = ("three files", "[Old tool result content cleared]", '{"ok": true}', "def f():\n    return [1, 2]")
THINKS: dict[FormatName, Json] = {
    "anthropic_messages": {"thinking": {"type": "enabled", "budget_tokens": 2000}, "max_tokens": 4000},
    "bedrock_converse": {"additionalModelRequestFields": {"thinking": {"type": "enabled", "budget_tokens": 2000}}},
    "openai_responses": {"store": False},
}
TOOLS: dict[FormatName, Json] = {
    "openai_chat": {"tools": [{"type": "function", "function": {"name": "read", "parameters": {}}}]},
    "ollama_chat": {"tools": [{"type": "function", "function": {"name": "read", "parameters": {}}}]},
    "anthropic_messages": {"tools": [{"name": "read", "input_schema": {"type": "object"}}]},
    "openai_responses": {"tools": [{"type": "function", "name": "read", "parameters": {}}]},
    "gemini_generate": {"tools": [{"functionDeclarations": [{"name": "read"}]}]},
    "bedrock_converse": {"toolConfig": {"tools": [{"toolSpec": {"name": "read", "inputSchema": {"json": {}}}}]}},
}


class Habit(NamedTuple):
    """How a client writes its requests."""

    strips: bool = True
    marks: bool = False
    indent: bool = False
    list_first: bool = False
    thinks: bool = True
    has_tools: bool = True
    system: str = ""
    noise: int = 0


class Saying(NamedTuple):
    """A turn of the model."""

    words: str
    thought: str
    calls: int


@dataclass
class Talk:
    """One conversation as its client has it."""

    session: str | None
    turns: list[Turn] = field(default_factory=list)


@dataclass
class World:
    """A store, and two who prepare requests with it: one remembers conversations, the other does not."""

    now: float = 1_000_000.0
    made: int = 0
    resumed: int = 0
    store: MemoryStore = field(init=False)
    talks: list[Talk] = field(default_factory=lambda: [Talk("one")])

    def __post_init__(self) -> None:
        self.store = MemoryStore(StoreSettings(ttl_seconds=TTL_SECONDS), lambda: self.now)
        lessons = Lessons(self.store, lambda: self.now)
        self.lessons, book = lessons, ContractBook(lessons)
        self.book = book
        self.remembering = Replayer(self.store, lessons, book, lambda: self.now)
        self.forgetting = Replayer(self.store, lessons, book, lambda: self.now, remembered_bytes=0)

    def send(self, talk: Talk, model: Model, habit: Habit, tenant: str = "t") -> Prepared:
        """Prepare the request both ways. The law."""
        contract = self.book.contract_for(model.destination)
        body = written(talk.turns, model, habit, contract)
        who = Identity(tenant, talk.session)
        one = asyncio.run(self.remembering.prepare(body, model.destination, who))
        other = asyncio.run(self.forgetting.prepare(body, model.destination, who))
        assert other.whole is None
        assert one.body == other.body
        assert told(one) == told(other)
        self.resumed += one.whole is not None
        return one

    def answer(self, talk: Talk, model: Model, prepared: Prepared, saying: Saying, is_kept: bool = True) -> None:
        """The model speaks; without `is_kept` nobody hears it but the client."""
        self.made += 1
        contract = self.book.contract_for(model.destination)
        items = items_of(saying, self.made, model, contract)
        assert prepared.needed is not None
        if is_kept and prepared.needed.end is not None:
            reply = Reply(model.format, (Candidate(Turn("assistant", items), 0, Finish("stop", "stop")),))
            records = captured_at(prepared.needed.end, reply, provenance_of(prepared), self.now)
            asyncio.run(self.store.save(records))
        talk.turns.append(Turn("assistant", items))

    def follow(self, talk: Talk, format: FormatName, text: str) -> None:
        """What comes after a turn of the model: the results of its calls, or words."""
        last = talk.turns[-1].items if talk.turns else ()
        results = tuple(
            ToolResult(_result(text, format), item.id, item.name) for item in last if isinstance(item, ToolCall)
        )
        if not results:
            talk.turns.append(Turn("user", (Text(text),)))
        elif format in ("openai_chat", "ollama_chat", "openai_responses"):
            talk.turns += [Turn("tool", (result,)) for result in results]
        else:
            talk.turns.append(Turn("user", results))


def _result(text: str, format: FormatName) -> Raw:
    match format:
        case "bedrock_converse":
            return Raw(json.dumps([{"text": text}]).encode())
        case "gemini_generate":
            return Raw(json.dumps({"output": text}).encode())
        case _:
            return Raw(json.dumps(text).encode())


def told(prepared: Prepared) -> object:
    """All that others learn of a prepared request."""
    end = prepared.needed.end if prepared.needed else None
    plan = prepared.plan
    assert plan is not None
    return prepared.outcome, plan.findings, plan.filler, end, provenance_of(prepared), prepared.contract


def items_of(saying: Saying, number: int, model: Model, contract: Contract) -> tuple[Item, ...]:
    """A turn of the model as its format has it."""
    made_by, seal = contract.dialect.reasoning_format, f"c2VhbCBvZiB0dXJuIG51bWJlciA{number}"
    items: list[Item] = []
    match model.format if saying.thought else "":
        case "openai_responses":
            items.append(ReasoningEncrypted(seal, made_by, f"rs_{number}abc4d"))
        case "anthropic_messages" | "bedrock_converse":
            items.append(ReasoningText(saying.thought, seal, made_by))
        case "openai_chat" | "ollama_chat":
            items.append(ReasoningText(saying.thought, None, made_by))
    is_named = model.format == "openai_responses"
    if saying.words or not saying.calls:
        items.append(Text(saying.words or "Well.", id=f"msg_{number}abc4d" if is_named else None))
    for at in range(saying.calls):
        sealed = Seal(seal, made_by) if model.format == "gemini_generate" and saying.thought and not at else None
        arguments = json.dumps({"path": f"{number % 3}.py", "at": at})
        name = f"fc_{number}{at}abc4d" if is_named else None
        items.append(ToolCall("read", arguments, f"call_{number}x{at}Ab3dE", name, seal=sealed))
    return tuple(items)


def written(turns: list[Turn], model: Model, habit: Habit, contract: Contract) -> bytes:
    """The request of a client with these habits."""
    wire = FORMATS[model.format]
    shown = [replace(turn, items=bare(turn.items)) if habit.strips else turn for turn in turns]
    made = Transcript(model.format, (), b"{}").with_turns(tuple(shown))
    value: Json = json.loads(wire.bodies.encode_request(made, contract.dialect))
    messages = value.pop(wire.list_member, [])
    if habit.marks and messages and model.format == "anthropic_messages":
        messages[-1] = marked(messages[-1])
    beside = {**value, **(THINKS.get(model.format, {}) if habit.thinks else {})}
    beside |= TOOLS[model.format] if habit.has_tools else {}
    beside |= {"max_tokens": 100 + habit.noise} if model.format == "openai_chat" else {}
    if habit.system:
        messages = with_system(messages, beside, model.format, habit.system)
    if wire.name not in ("gemini_generate", "bedrock_converse"):
        beside["model"] = model.name
    listed = {wire.list_member: messages}
    body = {**listed, **beside} if habit.list_first else {**beside, **listed, "user": f"noise {habit.noise}"}
    return json.dumps(body, indent=2 if habit.indent else None, ensure_ascii=False).encode()


def bare(items: tuple[Item, ...]) -> tuple[Item, ...]:
    kept = [item for item in items if not isinstance(item, (ReasoningText, ReasoningEncrypted))]
    return tuple(replace(item, seal=None) if isinstance(item, ToolCall) else item for item in kept)


def marked(message: Json) -> Json:
    """With the mark up to which a client wants its prompt cached."""
    content = message["content"]
    blocks = [{"type": "text", "text": content}] if isinstance(content, str) else list(content)
    if not blocks:
        return message
    return {**message, "content": [*blocks[:-1], {**blocks[-1], "cache_control": {"type": "ephemeral"}}]}


def with_system(messages: list[Json], beside: Json, format: FormatName, text: str) -> list[Json]:
    match FORMATS[format].system:
        case "messages":
            return [{"role": "system", "content": text}, *messages]
        case "blocks" if format == "gemini_generate":
            beside["systemInstruction"] = {"parts": [{"text": text}]}
        case "blocks" if format == "bedrock_converse":
            beside["system"] = [{"text": text}]
        case _:
            beside["instructions" if format == "openai_responses" else "system"] = text
    return messages


HABITS = st.builds(
    Habit,
    strips=st.booleans(),
    marks=st.booleans(),
    indent=st.sampled_from((False, False, False, True)),
    list_first=st.booleans(),
    thinks=st.sampled_from((True, True, True, False)),
    has_tools=st.sampled_from((True, True, True, False)),
    system=st.sampled_from(("", "Be brief.", "Be long.")),
    noise=st.integers(0, 3),
)
SAYINGS = st.builds(Saying, st.sampled_from(("", *WORDS)), st.sampled_from(("", "hm", "I see: {x}")), st.integers(0, 2))
SAME = st.just(None)


class Move(NamedTuple):
    """What happens next: an exchange, and what befell the conversation before it."""

    saying: Saying
    text: str
    befalls: str
    at: int
    habit: Habit | None
    model: int | None
    is_kept: bool


BEFALLS = (
    *("nothing",) * 12,
    *("edit a user's words", "edit the model's words", "truncate", "rename ids", "clear a result", "branch"),
    *("forget the session", "forget everything", "wait", "expire", "ask again", "another talk", "another tenant"),
    *("split a turn", "system message", "refuse a seal", "the same again"),
)
MOVES = st.lists(
    st.builds(
        Move,
        SAYINGS,
        st.sampled_from((*WORDS, *RESULTS)),
        st.sampled_from(BEFALLS),
        st.integers(0, 20),
        st.one_of(SAME, SAME, SAME, HABITS),
        st.one_of(SAME, SAME, SAME, SAME, st.integers(0, len(MODELS) - 1)),
        st.sampled_from((True, True, True, True, False)),
    ),
    min_size=4,
    max_size=14,
)


def change(talk: Talk, move: Move) -> None:
    """What clients do to a conversation."""
    turns, at = talk.turns, move.at % max(1, len(talk.turns))
    turn = turns[at] if turns else Turn("other", ())
    match move.befalls, turn.role:
        case ("edit a user's words", "user") | ("edit the model's words", "assistant"):
            turns[at] = replace(turn, items=tuple(map(_edited, turn.items)))
        case "clear a result", _:
            turns[at : at + 1] = [replace(turn, items=tuple(map(_cleared, turn.items)))] if turns else []
        case "truncate", _:
            talk.turns = turns[: at + 1]
        case "rename ids", _:
            talk.turns = [replace(turn, items=tuple(map(_renamed, turn.items))) for turn in turns]
        case "split a turn", "assistant" if len(turn.items) > 1:
            turns[at : at + 1] = [Turn("assistant", turn.items[:1]), Turn("assistant", turn.items[1:])]
        case "system message", "user":
            turns.insert(at, Turn("system", (Text("The date has changed."),)))


def befall(world: World, talk: Talk, move: Move) -> Talk:
    """What happens to what is known of a conversation, and which one is gone on with."""
    match move.befalls:
        case "branch":
            world.talks.append(Talk(talk.session, list(talk.turns)))
        case "forget the session":
            asyncio.run(world.store.delete(Filter(tenant="t", session=talk.session)))
        case "forget everything":
            asyncio.run(world.store.delete(Filter()))
        case "wait":
            world.now += TTL_SECONDS / 2
        case "expire":
            world.now += TTL_SECONDS + 1
        case "refuse a seal":
            world.lessons.refused |= {Key(f"seal-v2:{move.at:032x}")}
        case "another talk":
            world.talks.append(Talk((None, "one", "two")[move.at % 3]))
            return world.talks[-1]
    return world.talks[move.at % len(world.talks)]


def _cleared(item: Item) -> Item:
    return replace(item, content=Raw(b'"[cleared]"')) if isinstance(item, ToolResult) else item


def _edited(item: Item) -> Item:
    return replace(item, text=item.text + " indeed") if isinstance(item, Text) else item


def _renamed(item: Item) -> Item:
    if isinstance(item, ToolCall):
        return replace(item, id=f"other-{item.id}")
    return replace(item, call_id=f"other-{item.call_id}") if isinstance(item, ToolResult) else item


def play(moves: list[Move], habit: Habit, model: Model) -> World:
    """Hold a conversation: after each move the request is prepared both ways, answered, and gone on with."""
    world = World()
    for move in moves:
        talk = befall(world, world.talks[0], move)
        change(talk, move)
        habit = move.habit or habit
        if move.model is not None and MODELS[move.model].format == model.format:
            model = MODELS[move.model]
        if not talk.turns or talk.turns[-1].role == "assistant":
            world.follow(talk, model.format, move.text)
        if model.format in ("anthropic_messages", "bedrock_converse", "gemini_generate"):
            talk.turns = [turn for turn in talk.turns if turn.role != "system"]
        tenant = "other" if move.befalls == "another tenant" else "t"
        prepared = world.send(talk, model, habit, tenant)
        if move.befalls == "the same again":
            prepared = world.send(talk, model, habit, tenant)
        if move.befalls == "ask again":
            world.answer(Talk(talk.session), model, prepared, move.saying)
        world.answer(talk, model, prepared, move.saying, move.is_kept)
        world.follow(talk, model.format, move.text)
        world.now += 1
    return world


@pytest.fixture(autouse=True)
def short_conversations(monkeypatch: pytest.MonkeyPatch) -> None:
    """Conversations of a few steps are remembered, and their segments soon put together."""
    monkeypatch.setattr(resuming, "FEWEST_STEPS", 1)
    monkeypatch.setattr(remembering, "FINE", 2)


@settings(max_examples=300, deadline=None)
@given(moves=MOVES, habit=HABITS, model=st.sampled_from(MODELS))
def test_with_and_without_it_the_same_goes_up(moves: list[Move], habit: Habit, model: Model) -> None:
    """Every body and all that is told of it, whatever happens to the conversation and to what is known of it."""
    play(moves, habit, model)


QUIET = Move(Saying("Let me look.", "hm", 1), "three files", "nothing", 0, None, None, True)


@pytest.mark.parametrize("model", MODELS, ids=lambda model: f"{model.provider}-{model.name}")
@pytest.mark.parametrize("habit", [Habit(), Habit(strips=False), Habit(strips=False, marks=True)], ids=str)
def test_a_growing_conversation_is_gone_on_with(model: Model, habit: Habit) -> None:
    """In every format, whether its client keeps reasoning or not."""
    assert play([QUIET] * 10, habit, model).resumed >= 7
