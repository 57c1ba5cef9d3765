"""Long conversations of an agent, of any client with any provider, through a whole gateway in process.

`Cell` is a client's format, a provider and a kind of history; `cells` are all there are, `with_cell` asks as one.
Every turn of the model calls a tool. What was captured is saved as records, as if all turns had been played.
"""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Awaitable, Callable, Iterator
from types import FrameType
from typing import Any, Literal, NamedTuple, TypeVar, get_args

from msgspec.structs import replace

from tests.gateway.call_counts import Client, MadeUp, with_gateway
from tests.sim.faces import TOOLS, WIRES
from tests.translation.lanes import THINKS
from thoughtline.formats import FORMATS
from thoughtline.gateway.state import State
from thoughtline.replay.bounds import bound_of
from thoughtline.replay.detection import as_asked
from thoughtline.replay.keys import walk
from thoughtline.settings import ReplaySettings
from thoughtline.stores import Filter
from thoughtline.translation import CallIds, Sealer, translate_request
from thoughtline.translation.calls import rule_of
from thoughtline.translation.envelopes import Opened
from thoughtline.values.destination import Destination
from thoughtline.values.identity import Identity
from thoughtline.values.items import Item, ReasoningEncrypted, ReasoningText, Seal, Text, ToolCall
from thoughtline.values.options import ResultContent
from thoughtline.values.records import Key, Record, RecordId
from thoughtline.values.turns import (
    NOWHERE,
    Candidate,
    Finish,
    FormatName,
    Provenance,
    Reply,
    Transcript,
    Turn,
    Usage,
)

Result = TypeVar("Result")
ModelTurn = Callable[[int], tuple[Item, ...]]

Kind = Literal["lost", "kept", "unseen", "mixed", "repeated", "rewritten", "cleared", "joined"]
"""The fate of the reasoning: captured, and lost by the client; captured, and kept by it; never seen here; a third of
each. Lost, with every call of the model under one id; with another opening of the conversation; with all results but
the last cleared; with five steps of the model written as one turn."""

MODELS = {
    "deepseek": "deepseek-v4-pro",
    "kimi": "kimi-k2.6",
    "mistral": "magistral-medium-latest",
    "openrouter": "anthropic/claude-sonnet-4.5",
    "openai": "gpt-5",
    "anthropic": "claude-opus-5-5",
    "gemini": "gemini-3-pro-preview",
    "ollama": "qwen3:14b",
    "bedrock": "us.anthropic.claude-sonnet-4-5",
}
CLIENTS: dict[FormatName, str] = {
    "openai_chat": "/v1/chat/completions",
    "openai_responses": "/v1/responses",
    "anthropic_messages": "/v1/messages",
    "gemini_generate": "/v1beta/models/{model}:generateContent",
    "ollama_chat": "/api/chat",
    "bedrock_converse": "/model/{model}/converse",
}
_NOTHING_REMEMBERED = ReplaySettings(remembered_bytes=0)
"""Process every request as if its conversation were new."""
_RESULT = "def load(path):\n    return open(path).read()\n" * 12
_LONG_ID = "call_" + "0123456789abcdef" * 3


class Cell(NamedTuple):
    """What grows."""

    client: FormatName
    provider: str
    kind: Kind

    @property
    def path(self) -> str:
        return f"/{self.provider}{CLIENTS[self.client]}".replace("{model}", MODELS[self.provider])

    @property
    def id(self) -> str:
        return f"{self.client} to {self.provider}, {self.kind}"


def cells() -> Iterator[Cell]:
    """All cells. Converse is signed by its clients for its own host, so it is for no other provider."""
    for client in CLIENTS:
        for provider in MODELS:
            if client != "bedrock_converse" or provider == "bedrock":
                yield from (Cell(client, provider, kind) for kind in get_args(Kind))


class AnyProvider(MadeUp):
    """Answers in the format of the requested address."""

    def __init__(self) -> None:
        super().__init__([])

    def answered(self) -> bytes:
        segments = self.target.partition("?")[0].split("/")[1:]
        wire = next(wire for wire in FORMATS.values() if wire.client_path(segments) is not None)
        turn = Turn("assistant", (Text("That was all."),), NOWHERE)
        reply = Reply(
            wire.name, (Candidate(turn, 0, Finish("stop", "stop")),), id="answer-1", model="made-up", usage=Usage(9, 9)
        )
        self.pieces = [wire.bodies.encode_response(reply, wire.dialect)]
        return super().answered()


class Asker(NamedTuple):
    """A client whose conversation has grown: repeats the same request."""

    client: Client
    body: bytes

    async def ask(self) -> str:
        """Send it, and return what was done about its reasoning."""
        await self.client.ask(self.body)
        return self.client.headers.get(b"x-thoughtline-replay", b"").decode()


def with_cell(cell: Cell, messages: int, use: Callable[[Asker], Awaitable[Result]]) -> Result:
    """Run a function with a conversation of this many messages."""

    async def run(client: Client) -> Result:
        history = await _History.of(cell, client, messages)
        await history.remember()
        asker = Asker(client, history.body())
        return await use(asker)

    return with_gateway(AnyProvider(), run, cell.path, replay=_NOTHING_REMEMBERED)


def calls_of(cell: Cell, messages: int) -> int:
    """Count the function calls of one request, in all threads, including C functions."""
    count = 0

    def note(_frame: FrameType, event: str, _: object) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    async def use(asker: Asker) -> int:
        nonlocal count
        await asker.ask()
        count = 0
        sys.setprofile(note)
        try:
            await asker.ask()
        finally:
            sys.setprofile(None)
        return count

    threading.setprofile(note)
    try:
        return with_cell(cell, messages, use)
    finally:
        threading.setprofile(None)


class _History:
    """A conversation, in the client's format and in the provider's."""

    def __init__(self, cell: Cell, state: State, made: Provenance, messages: int) -> None:
        self._cell = cell
        self._state = state
        self._made = made
        self._steps = messages // 2
        target = Destination(made.provider, made.endpoint, made.model_asked, made.format, made.account)
        self._contract = as_asked(state.replayer.contract_for(target), b"{}")
        self._ids = CallIds(rule_of(cell.client, FORMATS[cell.client].dialect))

    @classmethod
    async def of(cls, cell: Cell, client: Client, messages: int) -> _History:
        """Capture one answer first, which shows the caller and the destination."""
        await client.ask(_body(cell, [WIRES[cell.client].say("hello")]))
        assert client.sent[0]["status"] == 200, client.sent
        page = await client.state.store.list_entries(Filter(), 1)
        return cls(cell, client.state, page.entries[0].record.provenance, messages)

    # --- the client's -------------------------------------------------------------------------------------------------

    def body(self) -> bytes:
        """The client's request, without what it lost."""
        wire = FORMATS[self._cell.client]
        opening = "Look again." if self._cell.kind == "rewritten" else "Look at all of it."
        turns = self._turns(self._cell.client, opening, self._client_step)
        if self._cell.kind == "joined":
            turns = _joined(list(turns))
        asked = Transcript(self._cell.client, tuple(turns), _body(self._cell, []), is_reshaped=True)
        is_same = self._cell.client == self._made.format
        return wire.bodies.encode_request(asked, self._contract.dialect if is_same else wire.dialect)

    def _client_step(self, number: int) -> tuple[Item, ...]:
        name = self._own_id(number)
        used = frozenset((name,)) if self._cell.kind == "repeated" and number else frozenset[str]()
        ids = self._ids._replace(turn=number, used=used)
        call = self._call(number, ids.for_client(name, "0.0", "weather"))
        is_kept = self._cell.kind == "kept" or (self._cell.kind == "mixed" and number % 3 == 0)
        if not is_kept or self._contract.takes == "nothing":
            return (Text(f"Reading {number}."), call)
        if self._cell.client == self._made.format:
            return self._thought(number, call, _token(number))
        thoughts = self._thought(number, replace(call, id=name), _token(number))
        return self._enveloped(number, thoughts, call)

    def _enveloped(self, number: int, items: tuple[Item, ...], call: ToolCall) -> tuple[Item, ...]:
        """The envelope that the gateway sealed, in the client's slot, if it has one."""
        sealer = Sealer(self._state.services.envelope_key, self._made.tenant)
        shown, places = (0, 0), []
        for item in items:
            places.append(shown)
            if isinstance(item, Text):
                shown = (shown[0] + len("".join(item.text.split())), 0)
        kept = [one for one in zip(items, places, strict=True) if not isinstance(one[0], Text)]
        held = Opened(self._made, tuple(item for item, _ in kept), tuple(place for _, place in kept), Key(""), 1.0)
        token = sealer.seal(held)
        made_by = FORMATS[self._cell.client].dialect.reasoning_format
        words = Text(f"Reading {number}.")
        match self._cell.client:
            case "anthropic_messages" | "bedrock_converse":
                return (ReasoningText("Hm.", token, made_by), words, call)
            case "openai_responses":
                return (ReasoningEncrypted(token or "", made_by, f"rs_{number}"), words, call)
            case "gemini_generate":
                return (words, replace(call, seal=Seal(token or "", made_by)))
            case _:
                return (words, call)

    # --- the provider's -----------------------------------------------------------------------------------------------

    async def remember(self) -> None:
        """Save the records of all turns that were captured."""
        if self._cell.kind == "unseen":
            return
        who = Identity(self._made.tenant, self._made.named_session, self._made.agent)
        turns = self._turns(self._made.format, "Look at all of it.", self._made_step)
        spoken = Transcript(self._made.format, tuple(turns), is_reshaped=True)
        bodies, dialect = FORMATS[self._made.format].bodies, self._contract.dialect
        spoken = bodies.decode_request(bodies.encode_request(spoken, dialect), dialect)
        frame = bound_of(self._seen_by_provider(who)) if self._contract.binds_prefix else b""
        records = []
        for number, step in enumerate(walk(spoken, who, frame).steps):
            if self._cell.kind != "mixed" or number % 3 < 2:
                items = self._thought(number, self._call(number, self._own_id(number)), _token(number))
                keys = (*step.keys, step.prefix) if frame else step.keys
                records.append(Record(RecordId(f"record-{number}"), self._made, items, keys, float(number)))
        await self._state.store.save(records)

    def _seen_by_provider(self, who: Identity) -> Transcript:
        """The request that the provider gets, with its tools and system prompt."""
        own, to = FORMATS[self._cell.client], FORMATS[self._made.format]
        if own.name == to.name:
            return to.bodies.decode_request(self.body(), self._contract.dialect)
        asked = own.bodies.decode_request(self.body(), own.dialect)
        return translate_request(asked, to.name, self._contract, self._made.model_asked, who).transcript

    def _made_step(self, number: int) -> tuple[Item, ...]:
        return (Text(f"Reading {number}."), self._call(number, self._own_id(number)))

    def _thought(self, number: int, call: ToolCall, token: str) -> tuple[Item, ...]:
        """A turn in its maker's form."""
        made_by, words = self._contract.dialect.reasoning_format, Text(f"Reading {number}.")
        thought = f"The file comes next, for reason {number}. " * 6
        match self._made.format:
            case "anthropic_messages" | "bedrock_converse":
                return (ReasoningText(thought, token, made_by), words, call)
            case "openai_responses":
                return (ReasoningEncrypted(token, made_by, f"rs_{number}"), words, call)
            case "gemini_generate":
                return (words, replace(call, seal=Seal(token, made_by)))
            case _:
                return (ReasoningText(thought, None, made_by), words, call)

    # --- both ---------------------------------------------------------------------------------------------------------

    def _own_id(self, number: int) -> str:
        if self._cell.kind == "repeated":
            return _LONG_ID
        is_counted = self._contract.dialect.call_ids == "counted"
        return f"{number:09x}" if is_counted else f"toolu_{number:024x}"

    def _call(self, number: int, name: str | None) -> ToolCall:
        return ToolCall("weather", json.dumps({"city": f"P{number}"}), name)

    def _result(self, number: int, model_turn: ModelTurn) -> str:
        is_cleared = self._cell.kind == "cleared" and model_turn == self._client_step and number < self._steps - 1
        return "[Old tool result content cleared]" if is_cleared else f"{number}\n{_RESULT}"

    def _turns(self, format: FormatName, opening: str, model_turn: ModelTurn) -> Iterator[Turn]:
        wire = FORMATS[format]
        yield Turn("user", (Text(opening),), NOWHERE)
        for number in range(self._steps):
            items = model_turn(number)
            call = next(item for item in items if isinstance(item, ToolCall))
            content = ResultContent((self._result(number, model_turn),))
            result = wire.options.encode_result(content, call.id, call.name).item
            yield Turn("assistant", items, NOWHERE)
            yield Turn("user" if wire.has_turns_of_blocks else "tool", (result,), NOWHERE)


def _joined(turns: list[Turn]) -> Iterator[Turn]:
    """Five steps as one turn of the model, followed by their results."""
    yield turns[0]
    for start in range(1, len(turns), 10):
        some = turns[start : start + 10]
        yield Turn("assistant", tuple(item for turn in some[::2] for item in turn.items), NOWHERE)
        yield from some[1::2]


def _token(number: int) -> str:
    return f"{number:032x}" * 8


def _body(cell: Cell, history: list[dict[str, Any]]) -> bytes:
    wire = WIRES[cell.client]
    known = {wire.member: history, wire.tools_member: wire.tools(TOOLS), **THINKS.get(cell.client, {})}
    if "{model}" not in CLIENTS[cell.client]:
        known = {"model": MODELS[cell.provider], "stream": False, **known}
    return json.dumps(known).encode()
