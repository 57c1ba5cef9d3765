"""Recorded requests with their tokens minted anew, so that a simulator takes them for its own.

A token is minted over what its own recorded answer said, not over what the request makes of it: a text that the client
changed on the way stays changed. Where no recorded answer has the token, the request is taken at its word.
"""

from __future__ import annotations

import base64
import copy
import json
from typing import Any

from tests.recordings import Exchange
from thoughtline.values.events import fold
from thoughtline.values.items import ReasoningEncrypted, ReasoningText, Text, ToolCall, Unknown, seal_of
from thoughtline.values.turns import Reply
from thoughtline_sim.exchange import SimExchange
from thoughtline_sim.ledger import StoredResponse
from thoughtline_sim.reading import call_arguments
from thoughtline_sim.rules.claude_models import model_named
from thoughtline_sim.rules.claude_prefix import prefixes_of
from thoughtline_sim.simulation import Simulation
from thoughtline_sim.tokens import ANTHROPIC, OPENAI, XAI
from thoughtline_sim.values import HttpRequest
from thoughtline_sim.wires.generate import call_of, signature_of, spelling_for
from thoughtline_sim.writing import digest

Body = dict[str, Any]


def reply_of(exchange: Exchange) -> Reply | None:
    """What a recorded exchange answered, read by the product."""
    bodies = exchange.format.bodies
    if exchange.recorded["status"] >= 400:
        return None
    if exchange.response is not None:
        return bodies.decode_response(exchange.response, exchange.dialect)
    if exchange.stream is None:
        return None
    decoder = exchange.format.stream_decoder(exchange.dialect)
    return fold([*decoder.feed(exchange.stream), *decoder.finish()], exchange.format.name)


class Reminter:
    """Mints for one conversation with one simulator."""

    def __init__(self, simulation: Simulation, account: str) -> None:
        self.simulation = simulation
        self.account = account
        self.signed: dict[str, tuple[str, int, str, str]] = {}
        self.chained: dict[str, Body] = {}
        self.calls: dict[str, list[tuple[str, str]]] = {}

    # what was answered

    def learn(self, exchange: Exchange) -> None:
        """Know the tokens of an answer, and what they stood for."""
        reply = reply_of(exchange)
        if reply is None:
            return
        for candidate in reply.candidates:
            self._learn_items(candidate.turn.items, reply.id or "message")
            self._learn_chain(exchange.recorded, [seal_of(item) for item in candidate.turn.items])
        if exchange.family == "openai-responses":
            self._learn_response(exchange, reply)

    def _learn_items(self, items: Any, message_id: str) -> None:
        letters: dict[Any, str] = {ReasoningText: "t", ReasoningEncrypted: "r", Text: "x", ToolCall: "u"}
        skeleton = "".join(letters.get(type(item), "o") for item in items)
        number = 0
        for item in items:
            seal = seal_of(item)
            if isinstance(item, (ReasoningText, ReasoningEncrypted)):
                if seal is not None:
                    text = item.text if isinstance(item, ReasoningText) else ""
                    self.signed[_plain(seal.data)] = (message_id, number, skeleton, digest(text) if text else "")
                number += 1
            if seal is not None and isinstance(item, ToolCall):
                self.calls.setdefault(_plain(seal.data), []).append((item.name, call_arguments(item.arguments)))

    def _learn_chain(self, recorded: Body, seals: list[Any]) -> None:
        """Of a bound model's blocks: what stood before them in the request that made them."""
        request = recorded.get("request") or {}
        model = str(request.get("model"))
        if "claude" not in model or not model_named(model).is_bound:
            return
        exchange = SimExchange(
            body=request,
            history=(),
            model=model,
            account=self.account,
            profile=self.simulation.profile,
            request=HttpRequest("POST", recorded["path"], {}, {}, b""),
            is_streaming=False,
            mint=self.simulation.mint,
            ledger=self.simulation.ledger,
            notes={},
            unread={},
        )
        prefixes = prefixes_of(exchange)
        self.simulation.ledger.prefixes[prefixes.end] = prefixes.parts
        sent = [
            block
            for message in request["messages"]
            if isinstance(message["content"], list)
            for block in message["content"]
        ]
        known = [self.signed.get(_plain(str(block.get("signature") or block.get("data")))) for block in sent]
        after = next((f"{name[0]}/{name[1]}" for name in reversed(known) if name), "")
        for seal in seals:
            if seal is not None:
                self.chained[_plain(seal.data)] = {"prefix": prefixes.end, "after": after}
                name = self.signed.get(_plain(seal.data))
                after = f"{name[0]}/{name[1]}" if name else after

    def _learn_response(self, exchange: Exchange, reply: Reply) -> None:
        items = tuple(
            {"id": name, "type": kind}
            for name, kind in (_named(item) for item in reply.candidates[0].turn.items)
            if name
        )
        distinct = tuple({item["id"]: item for item in items}.values())
        is_stored = (exchange.recorded.get("request") or {}).get("store") is not False
        stored = StoredResponse(distinct, (), is_stored)
        self.simulation.ledger.remember_response(self.account, reply.id or "", stored)

    # what is sent

    def reminted(self, request: Body, family: str, model: str) -> Body:
        body = copy.deepcopy(request)
        for index, message in enumerate(body.get("messages") or []):
            if family in ("anthropic", "bedrock"):
                self._blocks(message, index, model)
            if family == "openrouter":
                self._details(message, index, model)
        for content in body.get("contents") or []:
            self._parts(content, model)
        if isinstance(body.get("input"), list):
            for item in body["input"]:
                self._item(item)
        return body

    def _token(self, old: str, index: int, number: int, skeleton: str, text: str, model: str) -> str:
        known = (f"m{index}", number, skeleton, digest(text) if text else "")
        message, place, made, shown = self.signed.get(_plain(old), known)
        claims = {"model": model, "message": message, "number": place, "skeleton": made, "shown": shown, "prefix": ""}
        claims |= self.chained.get(_plain(old), {})
        return self.simulation.mint.seal(claims, ("anthropic", self.account), ANTHROPIC)

    def _blocks(self, message: Body, index: int, model: str) -> None:
        """Anthropic's thinking blocks, and Bedrock's."""
        content = message.get("content")
        blocks = [block for block in content if isinstance(block, dict)] if isinstance(content, list) else []
        letters = {"thinking": "t", "redacted_thinking": "r", "tool_use": "u", "text": "x"}
        bedrock = {"reasoningContent": "t", "toolUse": "u", "text": "x"}
        skeleton = "".join(
            letters.get(b.get("type", ""), next((v for k, v in bedrock.items() if k in b), "o")) for b in blocks
        )
        number = 0
        for block in blocks:
            holder, key, text = _signature_place(block)
            if key:
                old = holder.get(key)
                if isinstance(old, str):
                    plain = base64.b64decode(old).decode() if key == "redactedContent" else old
                    token = self._token(plain, index, number, skeleton, text, model)
                    holder[key] = base64.b64encode(token.encode()).decode() if key == "redactedContent" else token
                number += 1

    def _details(self, message: Body, index: int, model: str) -> None:
        details = [entry for entry in message.get("reasoning_details") or [] if isinstance(entry, dict)]
        calls = message.get("tool_calls") or []
        skeleton = "t" * len(details) + ("x" if message.get("content") else "") + "u" * len(calls)
        for number, entry in enumerate(details):
            if "signature" in entry:
                claims = {"model": model, "message": f"m{index}", "number": number, "skeleton": skeleton}
                claims |= {"shown": digest(entry.get("text", "")), "prefix": ""}
                entry["signature"] = self.simulation.mint.seal(claims, ("anthropic", self.account), ANTHROPIC)
            elif model.startswith("openai/") and "data" in entry:
                bound = ("responses", self.account)
                entry["data"] = self.simulation.mint.seal({"item": entry.get("id")}, bound, OPENAI)
            elif "data" in entry:
                call = next((call for call in calls if call.get("id") == entry.get("id")), None)
                if call is not None:
                    function = call["function"]
                    entry["data"] = self._google(function["name"], call_arguments(function["arguments"]), model)

    def _google(self, name: str, arguments: str, model: str) -> str:
        bound = ("gemini", model, self.account, name, arguments)
        return self.simulation.mint.seal({"call": name}, bound, spelling_for(model))

    def _parts(self, content: Body, model: str) -> None:
        for part in content.get("parts") or []:
            old = signature_of(part)
            if old and "skip_thought" not in old and not old.startswith("c2tpcF90"):
                call = call_of(part)
                as_sent = (call.get("name", ""), call_arguments(call.get("args")) if call else "")
                made = self.calls.get(_plain(old), [as_sent])  # a step without thought has one signature everywhere
                name, arguments = as_sent if as_sent in made else made[-1]
                key = "thoughtSignature" if "thoughtSignature" in part else "thought_signature"
                part[key] = self._google(name, arguments, model)

    def _item(self, item: Body) -> None:
        """Ciphertext minted for its item. Items of answers that were not recorded are kept, each alone."""
        name = item.get("id")
        ledger = self.simulation.ledger
        if isinstance(name, str) and ledger.response_of_item(self.account, name) is None:
            ledger.remember_response(self.account, f"resp {name}", StoredResponse(({"id": name},), (), True))
        if item.get("encrypted_content"):
            if self.simulation.simulator.name == "xai":
                item["encrypted_content"] = self.simulation.mint.seal({}, ("xai",), XAI)
            else:
                bound = ("responses", self.account)
                item["encrypted_content"] = self.simulation.mint.seal({"item": name}, bound, OPENAI)


def _plain(token: str) -> str:
    return token.translate(str.maketrans("-_", "+/")).rstrip("=")


def _named(item: Any) -> tuple[str | None, str]:
    if isinstance(item, ToolCall):
        return item.item_id, "function_call"
    if isinstance(item, Unknown):
        return json.loads(bytes(item.raw)).get("id"), item.kind
    kind = "message" if isinstance(item, Text) else "reasoning"
    return getattr(item, "id", None), kind


def _signature_place(block: Body) -> tuple[Body, str, str]:
    """The object that holds a block's token, its key there, and the text next to it."""
    if block.get("type") == "thinking":
        return block, "signature", block.get("thinking") or ""
    if block.get("type") == "redacted_thinking":
        return block, "data", ""
    reasoning = block.get("reasoningContent") or {}
    if "redactedContent" in reasoning:
        return reasoning, "redactedContent", ""
    if "reasoningText" in reasoning:
        return reasoning["reasoningText"], "signature", reasoning["reasoningText"].get("text") or ""
    return {}, "", ""
