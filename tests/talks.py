"""Conversations in every format, prepared twice: by one who remembers them, and by one who does not.

world.send(talk, model, habit)       the client's request, prepared both ways: the law is that nobody sees which
world.answer(talk, model, prepared, saying)      the model speaks, and is heard
world.follow(talk, format, text)     results of its calls, or words

With a `client`, that is the format of the client: what is sent is translated to that of the model, what is said back.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Coroutine, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

from msgspec import Raw
from msgspec.structs import replace

from thoughtline.engine.capture import Follows, captured_at, provenance_of
from thoughtline.engine.contracts import ContractBook
from thoughtline.engine.learned import Lessons
from thoughtline.engine.replayer import Replayer
from thoughtline.engine.request import Carried, Prepared
from thoughtline.formats import FORMATS
from thoughtline.gateway.translating import ClientFormat, way_back
from thoughtline.providers import Contract
from thoughtline.stores import Clock, Filter, Store, open_store
from thoughtline.stores.memory import MemoryStore
from thoughtline.stores.settings import StoreSettings
from thoughtline.translation import Sealer, TranslatedRequest, translate_reply, translate_request
from thoughtline.translation.passages import Direction, Made
from thoughtline.values.destination import Destination
from thoughtline.values.identity import Identity
from thoughtline.values.items import Item, ReasoningEncrypted, ReasoningText, Seal, Text, ToolCall, ToolResult
from thoughtline.values.records import Record
from thoughtline.values.turns import Candidate, Finish, FormatName, Reply, Transcript, Turn

Json = dict[str, Any]

run = asyncio.Runner().run
"""All stores of all worlds are on one loop."""

REPLICAS = 2
TTL_SECONDS = 1000.0
LONG_IDS = "I see: {x}"
"""A model that thinks so gives its calls ids that other formats know by digests only."""


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
    Model("openai", "https://api.openai.com", "gpt-5", "openai_responses"),
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
    list_at: Literal["first", "middle", "last"] = "middle"
    thinks: bool = True
    has_tools: bool = True
    system: str = ""
    noise: int = 0
    user: str = ""


Ids = Literal["random", "counted", "hashed"]


class Saying(NamedTuple):
    """A turn of the model. `ids` of calls: `hashed` ones look random, and are the same for the same call."""

    words: str
    thought: str
    calls: int
    ids: Ids = "random"
    file: int = -1


@dataclass
class Talk:
    """One conversation as its client has it."""

    session: str | None
    turns: list[Turn] = field(default_factory=list)


class Replica(NamedTuple):
    """A store as one process has it, and two replayers on it: one remembers conversations, the other does not."""

    store: Store
    lessons: Lessons
    book: ContractBook
    remembering: Replayer
    forgetting: Replayer


def replica_of(store: Store, clock: Clock) -> Replica:
    lessons = Lessons(store, clock)
    book = ContractBook(lessons)
    remembering = Replayer(store, lessons, book, clock)
    return Replica(store, lessons, book, remembering, Replayer(store, lessons, book, clock, remembered_bytes=0))


@dataclass
class World:
    """One replica with a store in memory, or several on one SQLite file at `shared`; `use` says which one is asked."""

    now: float = 1_000_000.0
    client: FormatName | None = None
    shared: str = ""
    made: int = 0
    resumed: int = 0
    restored: int = 0
    replicas: list[Replica] = field(init=False)
    talks: list[Talk] = field(default_factory=lambda: [Talk("one")])
    joined: int = 0
    _made: list[Made] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.replicas = [self._opened() for _ in range(REPLICAS if self.shared else 1)]
        self.use(0)

    def _opened(self) -> Replica:
        settings, clock = StoreSettings(ttl_seconds=TTL_SECONDS), lambda: self.now
        store: Store = MemoryStore(settings, clock)
        if self.shared:
            store = run(open_store(self.shared, settings, clock))
        return replica_of(store, clock)

    def use(self, number: int) -> None:
        """Requests go to this replica from now on."""
        self.used = number % len(self.replicas)
        self.store, self.lessons, self.book, self.remembering, self.forgetting = self.replicas[self.used]

    def restart(self) -> None:
        """The replica in use forgets all that is not in its store."""
        if self.shared:
            run(self.store.close())
            self.replicas[self.used] = self._opened()
            self.use(self.used)

    def close(self) -> None:
        for replica in self.replicas:
            run(replica.store.close())

    def spoken(self, model: Model) -> FormatName:
        """What the client speaks to a model."""
        return self.client or model.format

    def send(self, talk: Talk, model: Model, habit: Habit, tenant: str = "t") -> Prepared:
        """Prepare the request both ways. The law."""
        contract = self.book.contract_for(model.destination)
        who = Identity(tenant, talk.session)
        if self.spoken(model) == model.format:
            self._made = []
            body = written(talk.turns, model, habit, contract)
            both = [one.prepare(body, model.destination, who) for one in (self.remembering, self.forgetting)]
        else:
            both = self._translated(talk, model, habit, who)
        other, one = map(run, reversed(both))
        assert other.whole is None
        if self._made:
            made, whole = self._made
            assert made.call_ids == whole.call_ids
            assert made.written.read() == whole.written.read()
            self._made = self._made[:1]
        if one.whole is not None or not self.shared:  # what others have just saved may be found by the second look only
            assert one.body == other.body
            assert told(one) == told(other)
        self.resumed += one.whole is not None
        self.restored = one.counts.restored
        return one

    def _translated(self, talk: Talk, model: Model, habit: Habit, who: Identity) -> list[Coroutine[Any, Any, Prepared]]:
        own, contract = FORMATS[self.spoken(model)], self.book.contract_for(model.destination)
        body = written(talk.turns, model._replace(format=own.name), habit, replace(contract, dialect=own.dialect))
        direction = Direction(who.tenant, own.name, model.format, contract, model.name)

        def translate(transcript: Transcript) -> TranslatedRequest:
            sealer = Sealer(b"a key", who.tenant)
            return translate_request(transcript, model.format, contract, model.name, identity=who, sealer=sealer)

        async def prepare(one: Replayer) -> Prepared:
            made = await one.translated(body, direction, translate)
            self.joined += made.written.is_joined
            self._made.append(made)
            carried = Carried((), made.findings, made.call_ids, opened=made.records)
            return await one.prepare_translated(
                made.written, model.destination, who, contract=contract, carried=carried
            )

        self._made = []
        return [prepare(one) for one in (self.remembering, self.forgetting)]

    def answer(
        self, talk: Talk, model: Model, prepared: Prepared, saying: Saying, is_kept: bool = True
    ) -> Sequence[Record]:
        """The model speaks; without `is_kept` nobody hears it but the client. The records, saved or not."""
        self.made += 1
        contract = self.book.contract_for(model.destination)
        items = items_of(saying, self.made, model, contract)
        reply = Reply(model.format, (Candidate(Turn("assistant", items), 0, Finish("stop", "stop")),))
        assert prepared.needed is not None
        records: Sequence[Record] = ()
        if prepared.needed.end is not None:
            plan = prepared.plan
            follows = Follows(plan.parent, plan.enters_session) if plan is not None else None
            made = provenance_of(prepared)
            records = captured_at(prepared.needed.end, reply, made, self.now, follows=follows)
        if is_kept and records:
            run(self.remembering.save(records))
        if self.spoken(model) == model.format:
            talk.turns.append(Turn("assistant", items))
        else:
            talk.turns += self._heard(model, prepared, reply)
        return records

    def _heard(self, model: Model, prepared: Prepared, reply: Reply) -> list[Turn]:
        """What the client gets to hear, its envelopes included."""
        made = provenance_of(prepared)
        client = ClientFormat(self.spoken(model), False, call_ids=self._made[0].call_ids)
        way = way_back(prepared, client, Sealer(b"a key", made.tenant), made, self.now)
        own = FORMATS[client.format]
        heard = own.bodies.decode_response(translate_reply(reply, way).body, own.dialect)
        return [candidate.turn for candidate in heard.candidates]

    def lose(self, thought: str) -> None:
        """The store loses the records of this thought."""
        for entry in run(self.store.list_entries(Filter())).entries:
            if any(isinstance(item, ReasoningText) and item.text == thought for item in entry.record.items):
                assert isinstance(self.store, MemoryStore)
                self.store.index.drop((entry.record.provenance.tenant, entry.record.id))

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
    notes = sorted(plan.notes or (), key=lambda note: note.at)
    done = (prepared.outcome, plan.findings, plan.filler, notes, prepared.missed)
    return done, end, provenance_of(prepared), prepared.contract


def items_of(saying: Saying, number: int, model: Model, contract: Contract) -> tuple[Item, ...]:
    """A turn of the model as its format has it."""
    made_by, seal = contract.dialect.reasoning_format, f"c2VhbCBvZiB0dXJuIG51bWJlciA{number}"
    items: list[Item] = []
    match model.format if saying.thought else "":
        case "openai_responses":
            items.append(ReasoningEncrypted(seal, made_by, f"rs_{number}abc4d"))
        case "anthropic_messages" | "bedrock_converse":
            items.append(ReasoningText(f"{saying.thought} {number}", seal, made_by))
        case "openai_chat" | "ollama_chat":
            items.append(ReasoningText(f"{saying.thought} {number}", None, made_by))
    is_named = model.format == "openai_responses"
    if saying.words or not saying.calls:
        items.append(Text(saying.words or "Well.", id=f"msg_{number}abc4d" if is_named else None))
    for at in range(saying.calls):
        sealed = Seal(seal, made_by) if model.format == "gemini_generate" and saying.thought and not at else None
        file = number % 3 if saying.file < 0 else saying.file
        arguments = json.dumps({"path": f"{file}.py", "at": at})
        name = f"fc_{number}{at}abc4d" if is_named else None
        long = "." * 70 if saying.thought == LONG_IDS else ""
        ids = {
            "random": f"call_{number}x{at}Ab3dE{long}",
            "counted": f"functions.read:{at}",
            "hashed": f"call_{file}x{at}Ab3dE9qK4m",
        }
        call_id = None if model.provider == "ollama" else ids[saying.ids]
        items.append(ToolCall("read", arguments, call_id, name, seal=sealed))
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
    if habit.user:
        beside |= {"metadata": {"user_id": habit.user}} if wire.name == "anthropic_messages" else {"user": habit.user}
    listed = {wire.list_member: messages}
    behind = {"service_tier": f"noise {habit.noise}"} if habit.list_at == "middle" else {}
    body = {**listed, **beside} if habit.list_at == "first" else {**beside, **listed, **behind}
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
