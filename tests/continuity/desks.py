"""A desk where conversations are handed from model to model: several targets, one store, one memory of quotations.

    desk.ask(target, request)            what goes out for a request, and what is quoted in it
    desk.answer(sent, response)          the target answers: its turn is captured, the quotation remembered

It does with the pieces of continuity what a gateway does with them, over a real store.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import AsyncIterator
from typing import Any, NamedTuple

from thoughtline.continuity.handover import Handover, Quotation
from thoughtline.continuity.memory import Memory
from thoughtline.continuity.terms import Terms
from thoughtline.engine.capture import capture
from thoughtline.formats import FORMATS, BodyCodec
from thoughtline.replay.detection import resolve
from thoughtline.replay.known import needs_of_all
from thoughtline.replay.planner import Needs, plan
from thoughtline.stores import Store, open_store
from thoughtline.values.destination import Destination
from thoughtline.values.identity import Identity
from thoughtline.values.records import Record
from thoughtline.values.turns import FormatName, Provenance, Transcript

Json = dict[str, Any]


class Model(NamedTuple):
    """Where a request goes."""

    provider: str
    name: str
    format: FormatName = "openai_chat"
    account: str = "account-1"
    endpoint: str = "https://host.example"

    @property
    def issuer(self) -> Destination:
        return Destination(self.provider, self.endpoint, self.name, self.format, self.account)


DEEPSEEK = Model("deepseek", "deepseek-v4-pro")
KIMI = Model("kimi", "kimi-k2.6")
GPT_CHAT = Model("openai", "gpt-4.1")
CLAUDE = Model("anthropic", "claude-opus-4-5", "anthropic_messages")
BOUND = Model("anthropic", "claude-opus-5-5", "anthropic_messages")
GEMINI = Model("gemini", "gemini-3-pro", "gemini_generate")
OPENAI = Model("openai", "gpt-5.5", "openai_responses")
OLLAMA = Model("ollama", "llama3", "ollama_chat")
NOVA = Model("bedrock", "amazon.nova-pro-v1:0", "bedrock_converse")


class Sent(NamedTuple):
    """A request that went out."""

    model: Model
    body: bytes
    quotation: Quotation
    handover: Handover
    transcript: Transcript
    needed: Needs
    identity: Identity

    @property
    def json(self) -> Json:
        found: Json = json.loads(self.body)
        return found

    @property
    def texts(self) -> list[str]:
        return [one.text for one in self.quotation.quotes]

    @property
    def rules(self) -> list[str]:
        return [one.rule for one in self.quotation.findings]


class Ticking:
    """A clock that advances with each answer."""

    def __init__(self) -> None:
        self.now = 1_000_000.0

    def __call__(self) -> float:
        return self.now


@contextlib.asynccontextmanager
async def at_desk(terms: Terms | None = None, url: str = "memory://") -> AsyncIterator[Desk]:
    """A desk over a store of its own."""
    clock = Ticking()
    store = await open_store(url, clock=clock)
    try:
        yield Desk(store, clock, terms)
    finally:
        await store.close()


class Desk:
    """Models, a store, and what was quoted."""

    def __init__(self, store: Store, clock: Ticking, terms: Terms | None = None) -> None:
        self.store = store
        self.clock = clock
        self.terms = terms or Terms()
        self.memory = Memory(store, clock)

    async def ask(
        self,
        model: Model,
        request: Json,
        session: str | None = None,
        tenant: str = "t",
        agent: str | None = None,
    ) -> Sent:
        contract = resolve(Destination(model.provider, model.endpoint, model.name, model.format))
        bodies = _bodies(model.format)
        transcript = bodies.decode_request(encoded(request), contract.dialect)
        identity = Identity(tenant, session, agent)
        needed = needs_of_all(transcript, contract, identity)
        found = await self.store.find(tenant, needed.keys)
        planned = plan(transcript, contract, needed, found, model.issuer).apply(transcript)
        handover = await self.memory.recall(needed, found, transcript, target=model.issuer, terms=self.terms)
        continued = handover.carry_on(planned, contract)
        body = bodies.encode_request(continued.transcript, contract.dialect)
        return Sent(model, body, continued.quotation, handover, transcript, needed, identity)

    async def answer(self, sent: Sent, response: Json) -> tuple[Record, ...]:
        model = sent.model
        contract = resolve(Destination(model.provider, model.endpoint, model.name, model.format))
        reply = _bodies(model.format).decode_response(encoded(response), contract.dialect)
        made = Provenance(
            *(sent.identity.tenant, model.provider, model.endpoint, model.account, model.name, model.name),
            *(model.format, contract.dialect.name, sent.identity.session or sent.handover.session, sent.identity.agent),
        )
        self.clock.now += 1
        records = capture(sent.transcript, reply, made, self.clock(), sent.needed.end)
        await self.store.save(records)
        await self.memory.remember(sent.handover, sent.quotation)
        return records


def _bodies(format: FormatName) -> BodyCodec:
    return FORMATS[format].bodies


def encoded(value: Json) -> bytes:
    """JSON with Python's spacing, which no encoder of ours writes: touched bytes show."""
    return json.dumps(value, ensure_ascii=False).encode()


# --- one conversation, in the words of each format --------------------------------------------------------------------


class ChatTurn(NamedTuple):
    """A turn: what a user said, or what a model said and thought."""

    role: str
    text: str
    thought: str = ""


def request(format: FormatName, turns: list[ChatTurn], system: str | None = "Be brief.") -> Json:
    """A request of a client that drops reasoning."""
    pairs = [(turn.role, turn.text) for turn in turns]
    match format:
        case "openai_chat" | "ollama_chat":
            head = [("system", system)] if system is not None else []
            return {"model": "m", "messages": [{"role": role, "content": text} for role, text in [*head, *pairs]]}
        case "anthropic_messages":
            body: Json = {"model": "m", "max_tokens": 99, "thinking": {"type": "adaptive"}}
            body |= {"system": system} if system is not None else {}
            return body | {"messages": [{"role": role, "content": text} for role, text in pairs]}
        case "bedrock_converse":
            head_json: Json = {"system": [{"text": system}]} if system is not None else {}
            return head_json | {"messages": [{"role": role, "content": [{"text": text}]} for role, text in pairs]}
        case "gemini_generate":
            head_json = {"systemInstruction": {"parts": [{"text": system}]}} if system is not None else {}
            names = {"assistant": "model", "user": "user"}
            return head_json | {"contents": [{"role": names[role], "parts": [{"text": text}]} for role, text in pairs]}
        case _:
            head_json = {"instructions": system} if system is not None else {}
            kinds = {"assistant": "output_text", "user": "input_text"}
            elements = [
                {"type": "message", "role": role, "content": [{"type": kinds[role], "text": text}]}
                for role, text in pairs
            ]
            return {"model": "m", "store": False} | head_json | {"input": elements}


def response(model: Model, turn: ChatTurn) -> Json:
    """A whole response with reasoning, in the words of the model's format."""
    seal = "c2lnbmF0dXJlIG9mIHNvbWUgbGVuZ3Ro" + turn.text.encode().hex()
    match model.format:
        case "anthropic_messages":
            blocks: list[Json] = [{"type": "thinking", "thinking": turn.thought, "signature": seal}]
            return {
                "id": "msg_1",
                "type": "message",
                "role": "assistant",
                "content": [*(blocks if turn.thought else []), {"type": "text", "text": turn.text}],
                "stop_reason": "end_turn",
            }
        case "gemini_generate":
            parts = [{"text": turn.thought, "thought": True}, {"text": turn.text}]
            return {"candidates": [{"content": {"role": "model", "parts": parts}, "finishReason": "STOP"}]}
        case "openai_responses":
            summary = [{"type": "summary_text", "text": turn.thought}]
            thought = {"type": "reasoning", "id": "rs_1", "summary": summary, "encrypted_content": seal}
            part = {"type": "output_text", "text": turn.text, "annotations": []}
            message = {"type": "message", "id": "msg_1", "role": "assistant", "content": [part]}
            return {"id": "resp_1", "status": "completed", "output": [thought, message]}
        case "ollama_chat":
            message = {"role": "assistant", "content": turn.text, "thinking": turn.thought}
            return {"model": model.name, "message": message, "done": True, "done_reason": "stop"}
        case "bedrock_converse":
            blocks = [{"reasoningContent": {"reasoningText": {"text": turn.thought}}}, {"text": turn.text}]
            return {"output": {"message": {"role": "assistant", "content": blocks}}, "stopReason": "end_turn"}
        case _:
            message = {"role": "assistant", "content": turn.text, "reasoning_content": turn.thought}
            return {"id": "c", "choices": [{"index": 0, "message": message, "finish_reason": "stop"}]}


def system_of(format: FormatName, body: Json) -> str:
    """The system prompt of a request, as one text."""
    match format:
        case "openai_chat" | "ollama_chat":
            contents = [one["content"] for one in body["messages"] if one["role"] in ("system", "developer")]
        case "anthropic_messages" | "bedrock_converse":
            contents = [body.get("system", "")]
        case "gemini_generate" | "gemini_code_assist":
            contents = [body.get("request", body).get("systemInstruction", {}).get("parts", [])]
        case _:
            contents = [body.get("instructions", "")]
    return "\n\n".join(_joined(content) for content in contents)


def _joined(content: Any) -> str:
    return content if isinstance(content, str) else "\n\n".join(part["text"] for part in content if "text" in part)


async def talk(
    desk: Desk,
    history: list[ChatTurn],
    *plays: tuple[Model, ChatTurn],
    session: str | None = None,
    agent: str | None = None,
) -> list[Sent]:
    """A conversation goes on: each model in turn is asked the next question and gives its answer."""
    all_sent = []
    for number, (model, answer) in enumerate(plays):
        history.append(ChatTurn("user", f"Question {len(history) + number}?"))
        sent = await desk.ask(model, request(model.format, history), session, agent=agent)
        await desk.answer(sent, response(model, answer))
        history.append(answer)
        all_sent.append(sent)
    return all_sent


def thinks(number: int) -> ChatTurn:
    return ChatTurn("assistant", f"Answer {number}.", f"thought {number}")
