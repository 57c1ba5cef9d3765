"""A world in which conversations take place: a provider, a store, and clients with their usual habits.

    world.answer(request, response)   the provider answers: its response is captured
    world.send(request)               the client continues: its request is planned; returns the body and the plan

Every `send` also checks the laws of every plan: planning the planned body changes nothing, turns that the plan does not
name keep their bytes, and without edits the client's own bytes are sent. The functions below the class write the
messages of the four wire formats, so that a test reads as a dialogue.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import msgspec
from msgspec import Raw
from msgspec import structs as values

from thoughtline.engine.capture import Follows, capture
from thoughtline.formats import FORMATS, BodyCodec
from thoughtline.providers import Contract
from thoughtline.replay.chains import wanting
from thoughtline.replay.detection import resolve
from thoughtline.replay.keys import evidence_of
from thoughtline.replay.planner import Plan, needs, plan
from thoughtline.values.destination import Destination
from thoughtline.values.events import fold
from thoughtline.values.identity import Identity
from thoughtline.values.records import Key, Record, decode_record, encode_record
from thoughtline.values.turns import FormatName, Provenance, Reply, Transcript

Json = dict[str, Any]
TENANT = "tenant"
LISTS: dict[str, str] = {
    "openai_chat": "messages",
    "anthropic_messages": "messages",
    "gemini_generate": "contents",
    "openai_responses": "input",
    "bedrock_converse": "messages",
}


class Sent(NamedTuple):
    """What was sent, and why."""

    body: Json
    plan: Plan

    @property
    def rules(self) -> set[str]:
        return {finding.rule for finding in self.plan.findings}

    @property
    def messages(self) -> list[Json]:
        name = next(name for name in ("messages", "contents", "input") if name in self.body)
        found: list[Json] = self.body[name]
        return found


@dataclass
class Store:
    """Records by key, newest last. It stores bytes, like a real store."""

    kept: dict[Key, dict[str, bytes]] = field(default_factory=dict)
    clock: float = 0.0

    def save(self, records: tuple[Record, ...]) -> None:
        for record in records:
            for key in record.keys:
                self.kept.setdefault(key, {})[record.id] = encode_record(record)

    def forget(self, record: Record) -> None:
        for records in self.kept.values():
            records.pop(record.id, None)

    def find(self, keys: tuple[Key, ...]) -> dict[Key, list[Record]]:
        """Return all keys like a store does: an unknown one has an empty list."""
        return {key: [decode_record(data) for data in self.kept.get(key, {}).values()] for key in keys}


@dataclass
class World:
    """One provider as one account sees it, and everything captured so far."""

    provider: str
    model: str
    format: FormatName = "openai_chat"
    endpoint: str = "https://host.example"
    account: str = "account-1"
    store: Store = field(default_factory=Store)

    def elsewhere(self, provider: str, model: str, format: FormatName | None = None) -> World:
        """Another provider, with the same store."""
        return replace(self, provider=provider, model=model, format=format or self.format)

    def contract(self) -> Contract:
        return resolve(Destination(self.provider, self.endpoint, self.model, self.format))

    def answer(
        self,
        request: Json,
        response: Json | bytes,
        session: str | None = None,
        agent: str | None = None,
        tenant: str = TENANT,
        complete: bool = True,
        is_seen: bool = True,
    ) -> tuple[Record, ...]:
        """The provider answers a request, with a body (JSON) or a stream (bytes), and the answer is captured.

        The request is planned first, as in a gateway: the record names its parent.
        """
        dialect = self.contract().dialect
        asked = self._bodies().decode_request(encoded(request), dialect)
        reply = self._reply(response)
        if not complete:
            cut = tuple(values.replace(candidate, finish=None) for candidate in reply.candidates)
            reply = values.replace(reply, candidates=cut)
        where = Provenance(
            *(tenant, self.provider, self.endpoint, self.account, self.model, reply.model or self.model),
            *(self.format, dialect.name, session, agent),
        )
        self.store.clock += 1
        who = Identity(tenant, session, agent, model=self.model)
        made = self._planned(asked, self.contract(), who)
        follows = Follows(made.parent, made.enters_session)
        records = capture(asked, reply, where, self.store.clock, follows=follows)
        end = needs(asked, self.contract(), who).end
        again = capture(asked, reply, where, self.store.clock, end, follows=follows)
        assert _known(again) == _known(records), "planned, kept otherwise"
        records = tuple(values.replace(record, is_seen=is_seen) for record in records)
        self.store.save(records)
        return records

    def send(
        self,
        request: Json,
        session: str | None = None,
        agent: str | None = None,
        tenant: str = TENANT,
        model: str | None = None,
        account: str | None = None,
        provider: str | None = None,
    ) -> Sent:
        """The client sends a request: return the body for the provider, and the plan."""
        target = replace(
            self,
            provider=provider or self.provider,
            model=model or self.model,
            account=account or self.account,
        )
        return target._plan(encoded(request), Identity(tenant, session, agent, model=target.model))

    def _plan(self, body: bytes, who: Identity) -> Sent:
        contract, bodies = self.contract(), self._bodies()
        before = bodies.decode_request(body, contract.dialect)
        planned = self._planned(before, contract, who)
        out = bodies.encode_request(planned.apply(before), contract.dialect)
        after = bodies.decode_request(out, contract.dialect)
        again = self._planned(after, contract, who)
        assert again.edits == (), "planning a planned body changes it again"
        assert again.member_edits == (), "planning a planned body changes its members again"
        assert planned.edits or planned.member_edits or out == body, "no edit, and yet other bytes"
        _assert_rest_untouched(before, after, planned)
        return Sent(json.loads(out), planned)

    def _planned(self, transcript: Transcript, contract: Contract, who: Identity) -> Plan:
        needed = needs(transcript, contract, who)
        issuer = Destination(self.provider, self.endpoint, self.model, self.format, self.account)
        planned = plan(transcript, contract, needed, self.store.find(needed.keys), issuer)
        found = self.store.find(needed.first)
        while more := wanting(needed, found)[1]:
            found |= self.store.find(more)
        assert plan(transcript, contract, needed, found, issuer) == planned, "asked step by step, planned otherwise"
        return planned

    def _reply(self, response: Json | bytes) -> Reply:
        dialect = self.contract().dialect
        if isinstance(response, bytes):
            decoder = FORMATS[self.format].stream_decoder(dialect)
            return fold([*decoder.feed(response), *decoder.finish()], self.format)
        return self._bodies().decode_response(encoded(response), dialect)

    def _bodies(self) -> BodyCodec:
        return FORMATS[self.format].bodies


def encoded(value: Json) -> bytes:
    """JSON with Python's spacing, which none of our encoders writes, so that changed bytes are visible."""
    return json.dumps(value, ensure_ascii=False).encode()


def _known(records: tuple[Record, ...]) -> list[tuple[object, ...]]:
    """Stored records, without the key that only some contracts use."""
    return [(record.items, [key for key in record.keys if evidence_of(key) != "prefix"]) for record in records]


def _assert_rest_untouched(before: Transcript, after: Transcript, planned: Plan) -> None:
    """Assert that turns which the plan does not name keep their bytes."""
    named = {position for position, _ in planned.edits}
    old, new = _elements(before), _elements(after)
    if len(before.turns) != len(after.turns):
        return  # a turn that was nothing but reasoning is gone
    for position, (was, now) in enumerate(zip(before.turns, after.turns, strict=True)):
        if position not in named and was.at >= 0:
            assert old[was.at : was.at + was.spans] == new[now.at : now.at + now.spans], f"turn {position} was touched"
    edited = {name for name, _ in planned.member_edits} | {LISTS[before.format]}
    rest = [{k: v for k, v in _members(one).items() if k not in edited} for one in (before, after)]
    assert rest[0] == rest[1], "a member that the plan does not name was touched"


def _members(transcript: Transcript) -> dict[str, bytes]:
    found = msgspec.json.decode(transcript.body, type=dict[str, Raw])
    return {name: bytes(value) for name, value in found.items()}


def _elements(transcript: Transcript) -> list[bytes]:
    listed = _members(transcript).get(LISTS[transcript.format], b"[]")
    return [bytes(raw) for raw in msgspec.json.decode(listed, type=list[Raw])] if listed[:1] == b"[" else [listed]


# --- chat ------------------------------------------------------------------------------------------------------------

TOOLS = [{"type": "function", "function": {"name": "bash", "parameters": {"type": "object"}}}]


def user(text: str) -> Json:
    return {"role": "user", "content": text}


def said(text: str | None = None, *calls: Json, reasoning: str | None = None, **fields: Any) -> Json:
    """An assistant message."""
    message: Json = {"role": "assistant", "content": text}
    if reasoning is not None:
        message["reasoning_content"] = reasoning
    if calls:
        message["tool_calls"] = list(calls)
    return message | fields


def call(id: str, command: str = "ls", signature: str | None = None, **arguments: Any) -> Json:
    """A call of the tool `bash`."""
    text = json.dumps({"command": command} | arguments)
    made: Json = {"id": id, "type": "function", "function": {"name": "bash", "arguments": text}}
    return made if signature is None else made | {"extra_content": {"google": {"thought_signature": signature}}}


def result(id: str, text: str = "a b c") -> Json:
    return {"role": "tool", "tool_call_id": id, "content": text}


def chat(*messages: Json, **members: Any) -> Json:
    return {"model": "m", "tools": TOOLS, "messages": list(messages)} | members


def chat_reply(*messages: Json) -> Json:
    """A whole response, one choice per message."""
    choices = [
        {"index": at, "message": message, "finish_reason": "tool_calls" if "tool_calls" in message else "stop"}
        for at, message in enumerate(messages)
    ]
    return {"id": "chat-1", "object": "chat.completion", "choices": choices}


def bare(message: Json) -> Json:
    """An assistant message from a client that keeps no reasoning."""
    lost = ("reasoning_content", "reasoning", "reasoning_details")
    return {name: value for name, value in message.items() if name not in lost}


def reasoning_of(message: Json) -> str | None:
    found: str | None = message.get("reasoning_content")
    return found


def told(world: World, *turns: Json) -> list[Json]:
    """A conversation in which the world answered turn by turn; user and tool messages come between the answers."""
    history: list[Json] = []
    for turn in turns:
        if turn["role"] == "assistant":
            world.answer(chat(*history), chat_reply(turn))
        history.append(turn)
    return history


def result_of(turn: Json, text: str = "a b c") -> Json:
    """The result of the first call of a turn."""
    return result(turn["tool_calls"][0]["id"], text)


def stripped(history: list[Json]) -> list[Json]:
    return [bare(message) for message in history]


# --- Anthropic -------------------------------------------------------------------------------------------------------


def thinking(text: str, signature: str | None) -> Json:
    block: Json = {"type": "thinking", "thinking": text}
    return block if signature is None else block | {"signature": signature}


def words(text: str) -> Json:
    return {"type": "text", "text": text}


def use(id: str, command: str = "ls") -> Json:
    return {"type": "tool_use", "id": id, "name": "bash", "input": {"command": command}}


def returned(id: str, text: str = "a b c") -> Json:
    return {"type": "tool_result", "tool_use_id": id, "content": text}


def asks(*blocks: Json) -> Json:
    return {"role": "user", "content": list(blocks)}


def says(*blocks: Json) -> Json:
    return {"role": "assistant", "content": list(blocks)}


def claude(*messages: Json, **members: Any) -> Json:
    tools = [{"name": "bash", "input_schema": {"type": "object"}}]
    fixed: Json = {"model": "m", "max_tokens": 99, "system": "Be brief.", "tools": tools}
    return fixed | {"thinking": {"type": "adaptive"}, "messages": list(messages)} | members


def claude_reply(*blocks: Json, **members: Any) -> Json:
    why = "tool_use" if any(block["type"] == "tool_use" for block in blocks) else "end_turn"
    fixed: Json = {"id": "msg_1", "type": "message", "role": "assistant", "content": list(blocks), "stop_reason": why}
    return fixed | members


def kinds(message: Json) -> list[str]:
    """The types of a message's blocks, in order."""
    return [block["type"] for block in message["content"]]


def without_thinking(message: Json) -> Json:
    hidden = ("thinking", "redacted_thinking")
    return message | {"content": [block for block in message["content"] if block["type"] not in hidden]}


# --- Gemini ----------------------------------------------------------------------------------------------------------


def asked(*parts: Json) -> Json:
    return {"role": "user", "parts": list(parts)}


def model(*parts: Json) -> Json:
    return {"role": "model", "parts": list(parts)}


def runs(command: str = "ls", signature: str | None = None, **members: Any) -> Json:
    """A part that calls the tool `bash`."""
    part: Json = {"functionCall": {"name": "bash", "args": {"command": command}} | members}
    return part if signature is None else part | {"thoughtSignature": signature}


def ran(output: str = "a b c", **members: Any) -> Json:
    return {"functionResponse": {"name": "bash", "response": {"output": output}} | members}


def gemini(*contents: Json) -> Json:
    return {"contents": list(contents), "tools": [{"functionDeclarations": [{"name": "bash"}]}]}


def gemini_reply(*parts: Json, **members: Any) -> Json:
    return {"candidates": [{"content": model(*parts), "finishReason": "STOP", "index": 0}]} | members


def signatures(content: Json) -> list[str | None]:
    """The signature of each part with a call or text, in order."""
    return [part.get("thoughtSignature") for part in content["parts"] if not part.get("thought")]


# --- Responses -------------------------------------------------------------------------------------------------------


def rs(id: str | None, cipher: str | None, summary: str = "") -> Json:
    told = [{"type": "summary_text", "text": summary}] if summary else []
    item: Json = {"type": "reasoning", "summary": told}
    return ({"id": id} if id else {}) | item | ({"encrypted_content": cipher} if cipher else {})


def msg(id: str | None, text: str) -> Json:
    parts = [{"type": "output_text", "text": text, "annotations": []}]
    return ({"id": id} if id else {}) | {"type": "message", "role": "assistant", "content": parts}


def fc(id: str | None, call_id: str, command: str = "ls") -> Json:
    item: Json = {"type": "function_call", "call_id": call_id, "name": "bash"}
    return ({"id": id} if id else {}) | item | {"arguments": json.dumps({"command": command})}


def output(call_id: str, text: str = "a b c") -> Json:
    return {"type": "function_call_output", "call_id": call_id, "output": text}


def responses(*items: Json, **members: Any) -> Json:
    fixed: Json = {"model": "m", "store": False, "include": ["reasoning.encrypted_content"], "input": list(items)}
    return fixed | members


def responses_reply(*items: Json) -> Json:
    return {"id": "resp_1", "object": "response", "status": "completed", "output": list(items)}


def ids(items: list[Json]) -> list[str | None]:
    """The ids of the model's elements."""
    named = ("reasoning", "message", "function_call")
    return [item.get("id") for item in items if item.get("type") in named]


ASK = user("How many files?")
BACK = asks(returned("toolu_01AbCdEfGh"))
CALL = use("toolu_01AbCdEfGh")
ON = {"thinking": {"type": "enabled", "budget_tokens": 1024}}
