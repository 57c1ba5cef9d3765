"""A client of each wire format: what it sends, what it keeps of an answer, and how it forgets.

They read streams by themselves, as clients do. A wire's `fold` gives the messages that a client would keep.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, ClassVar, NamedTuple, TypeAlias
from urllib.parse import quote

Json: TypeAlias = dict[str, Any]

SCHEMA: Json = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
TOOL, RESULT = "weather", "21 degrees"
FIELDS = ("reasoning_content", "reasoning", "reasoning_details", "reasoning_text", "reasoning_opaque", "thinking")
TAGS = re.compile(r"\s*<think>.*?</think>\s*", re.DOTALL)


class Call(NamedTuple):
    id: str
    name: str


class Chat:
    """OpenAI Chat Completions."""

    name = "openai_chat"
    member = "messages"
    tools: ClassVar[Any] = [{"type": "function", "function": {"name": TOOL, "parameters": SCHEMA}}]
    thinking: ClassVar[Json] = {"reasoning_effort": "high"}

    def path(self, model: str, *, is_streaming: bool) -> str:
        return "/v1/chat/completions"

    def body(self, model: str, history: list[Json], *, is_streaming: bool) -> Json:
        return {"model": model, "stream": is_streaming, self.member: history, "tools": self.tools, **self.thinking}

    def say(self, text: str) -> Json:
        return {"role": "user", "content": text}

    def whole(self, content: bytes) -> list[Json]:
        return [json.loads(content)["choices"][0]["message"]]

    def fold(self, content: bytes) -> list[Json]:
        message: Json = {"role": "assistant"}
        for event in events(content):
            for choice in event.get("choices") or []:
                message = merged(message, choice["delta"])
        return [_without_indexes(message)]

    def calls(self, kept: list[Json]) -> list[Call]:
        return [Call(call.get("id", ""), call["function"]["name"]) for call in kept[0].get("tool_calls") or []]

    def results(self, calls: list[Call]) -> list[Json]:
        return [{"role": "tool", "tool_call_id": call.id, "content": RESULT} for call in calls]

    def forget(self, messages: list[Json]) -> list[Json]:
        return [self._forgotten(one) if one.get("role") == "assistant" else one for one in messages]

    def _forgotten(self, message: Json) -> Json:
        kept = {name: value for name, value in message.items() if name not in FIELDS}
        content = kept.get("content")
        if isinstance(content, str):
            kept["content"] = TAGS.sub("", content)
        elif isinstance(content, list):
            kept["content"] = [part for part in content if part.get("type") != "thinking"]
        if isinstance(kept.get("tool_calls"), list):
            kept["tool_calls"] = [without(call, "extra_content") for call in kept["tool_calls"]]
        return kept


class Ollama(Chat):
    """Ollama's own chat: lines of JSON."""

    name = "ollama_chat"
    thinking: ClassVar[Json] = {"think": True}

    def path(self, model: str, *, is_streaming: bool) -> str:
        return "/api/chat"

    def whole(self, content: bytes) -> list[Json]:
        return [json.loads(content)["message"]]

    def fold(self, content: bytes) -> list[Json]:
        message: Json = {}
        for line in content.splitlines():
            message = merged(message, json.loads(line).get("message") or {})
        return [message]

    def results(self, calls: list[Call]) -> list[Json]:
        return [{"role": "tool", "tool_name": call.name, "tool_call_id": call.id, "content": RESULT} for call in calls]


class Responses(Chat):
    """OpenAI Responses. It keeps the conversation itself, or names the response before."""

    name = "openai_responses"
    member = "input"
    tools: ClassVar[Any] = [{"type": "function", "name": TOOL, "parameters": SCHEMA}]
    thinking: ClassVar[Json] = {
        "reasoning": {"effort": "high", "summary": "auto"},
        "store": False,
        "include": ["reasoning.encrypted_content"],
    }

    def path(self, model: str, *, is_streaming: bool) -> str:
        return "/v1/responses"

    def whole(self, content: bytes) -> list[Json]:
        return list(json.loads(content)["output"])

    def fold(self, content: bytes) -> list[Json]:
        ends = ("response.completed", "response.incomplete")
        return [item for event in events(content) if event.get("type") in ends for item in event["response"]["output"]]

    def id_of(self, content: bytes) -> str:
        """The id of a response, however it came."""
        found = re.search(rb'"id": ?"(resp_[^"]+|[0-9a-f-]{36})"', content)
        return found[1].decode() if found else ""

    def calls(self, kept: list[Json]) -> list[Call]:
        return [Call(item["call_id"], item["name"]) for item in kept if item["type"] == "function_call"]

    def results(self, calls: list[Call]) -> list[Json]:
        return [{"type": "function_call_output", "call_id": call.id, "output": RESULT} for call in calls]

    def forget(self, messages: list[Json]) -> list[Json]:
        shown = [one for one in messages if one.get("type") != "reasoning"]
        return [without(one, "id") if _is_said(one) else one for one in shown]


class Messages(Chat):
    """Anthropic Messages."""

    name = "anthropic_messages"
    tools: ClassVar[Any] = [{"name": TOOL, "input_schema": SCHEMA}]
    thinking: ClassVar[Json] = {"max_tokens": 8000, "thinking": {"type": "enabled", "budget_tokens": 4000}}

    def path(self, model: str, *, is_streaming: bool) -> str:
        return "/v1/messages"

    def whole(self, content: bytes) -> list[Json]:
        return [{"role": "assistant", "content": json.loads(content)["content"]}]

    def fold(self, content: bytes) -> list[Json]:
        blocks: list[Json] = []
        for event in events(content):
            if event.get("type") == "content_block_start":
                blocks.append(dict(event["content_block"]))
            elif event.get("type") == "content_block_delta":
                delta = without(event["delta"], "type")
                blocks[-1] |= {name: blocks[-1].get(name, "") + value for name, value in delta.items()}
        return [{"role": "assistant", "content": [_with_input(block) for block in blocks]}]

    def calls(self, kept: list[Json]) -> list[Call]:
        return [Call(block["id"], block["name"]) for block in kept[0]["content"] if block["type"] == "tool_use"]

    def results(self, calls: list[Call]) -> list[Json]:
        blocks = [{"type": "tool_result", "tool_use_id": call.id, "content": RESULT} for call in calls]
        return [{"role": "user", "content": blocks}]

    def _forgotten(self, message: Json) -> Json:
        if not isinstance(message["content"], list):
            return message
        kept = [block for block in message["content"] if block.get("type") not in ("thinking", "redacted_thinking")]
        return {**message, "content": kept}


class Gemini(Chat):
    """Google generateContent, its stream as server-sent events."""

    name = "gemini_generate"
    member = "contents"
    tools: ClassVar[Any] = [{"functionDeclarations": [{"name": TOOL, "parameters": SCHEMA}]}]
    thinking: ClassVar[Json] = {
        "generationConfig": {"thinkingConfig": {"thinkingBudget": 4000, "includeThoughts": True}}
    }

    def path(self, model: str, *, is_streaming: bool) -> str:
        method = "streamGenerateContent?alt=sse" if is_streaming else "generateContent"
        return f"/v1beta/models/{quote(model)}:{method}"

    def body(self, model: str, history: list[Json], *, is_streaming: bool) -> Json:
        return {self.member: history, "tools": self.tools, **self.thinking}

    def say(self, text: str) -> Json:
        return {"role": "user", "parts": [{"text": text}]}

    def whole(self, content: bytes) -> list[Json]:
        return [json.loads(content)["candidates"][0]["content"]]

    def fold(self, content: bytes) -> list[Json]:
        said = [one.get("content") or {} for event in events(content) for one in event.get("candidates") or []]
        return [{"role": "model", "parts": [part for one in said for part in one.get("parts") or []]}]

    def calls(self, kept: list[Json]) -> list[Call]:
        called = [part["functionCall"] for part in kept[0]["parts"] if "functionCall" in part]
        return [Call(call.get("id", ""), call["name"]) for call in called]

    def results(self, calls: list[Call]) -> list[Json]:
        named = [{"name": call.name} | ({"id": call.id} if call.id else {}) for call in calls]
        return [
            {"role": "user", "parts": [{"functionResponse": {**one, "response": {"result": RESULT}}} for one in named]}
        ]

    def forget(self, messages: list[Json]) -> list[Json]:
        return [self._forgotten(one) if one.get("role") == "model" else one for one in messages]

    def _forgotten(self, message: Json) -> Json:
        parts = [without(part, "thoughtSignature") for part in message.get("parts", []) if not part.get("thought")]
        return {**message, "parts": [part for part in parts if part != {"text": ""}]}


class Converse(Chat):
    """Bedrock Converse; its stream is Amazon's binary one."""

    name = "bedrock_converse"
    tools: ClassVar[Any] = {"tools": [{"toolSpec": {"name": TOOL, "inputSchema": {"json": SCHEMA}}}]}
    thinking: ClassVar[Json] = {
        "inferenceConfig": {"maxTokens": 8000},
        "additionalModelRequestFields": {"thinking": {"type": "enabled", "budget_tokens": 4000}},
    }

    def path(self, model: str, *, is_streaming: bool) -> str:
        return f"/model/{quote(model, safe='')}/converse{'-stream' if is_streaming else ''}"

    def body(self, model: str, history: list[Json], *, is_streaming: bool) -> Json:
        return {self.member: history, "toolConfig": self.tools, **self.thinking}

    def say(self, text: str) -> Json:
        return {"role": "user", "content": [{"text": text}]}

    def whole(self, content: bytes) -> list[Json]:
        return [json.loads(content)["output"]["message"]]

    def fold(self, content: bytes) -> list[Json]:
        blocks: dict[int, Json] = {}
        for event in amazon_events(content):
            if "contentBlockIndex" in event:
                known = blocks.setdefault(event["contentBlockIndex"], {})
                blocks[event["contentBlockIndex"]] = merged(known, event.get("start") or event.get("delta") or {})
        return [{"role": "assistant", "content": [_converse_block(block) for block in blocks.values()]}]

    def calls(self, kept: list[Json]) -> list[Call]:
        used = [block["toolUse"] for block in kept[0]["content"] if "toolUse" in block]
        return [Call(one["toolUseId"], one["name"]) for one in used]

    def results(self, calls: list[Call]) -> list[Json]:
        blocks = [{"toolResult": {"toolUseId": call.id, "content": [{"text": RESULT}]}} for call in calls]
        return [{"role": "user", "content": blocks}]

    def _forgotten(self, message: Json) -> Json:
        return {**message, "content": [block for block in message["content"] if "reasoningContent" not in block]}


WIRES = {wire.name: wire for wire in (Chat(), Responses(), Messages(), Gemini(), Ollama(), Converse())}


def events(content: bytes) -> Iterator[Json]:
    """The JSON of server-sent events."""
    for line in content.splitlines():
        if line.startswith(b"data:") and line[5:].strip() != b"[DONE]":
            yield json.loads(line[5:])


def amazon_events(content: bytes) -> Iterator[Json]:
    """The JSON of `vnd.amazon.eventstream`: two lengths and a checksum, headers, the payload, a checksum."""
    while content:
        size, head = int.from_bytes(content[:4], "big"), int.from_bytes(content[4:8], "big")
        yield json.loads(content[12 + head : size - 4])
        content = content[size:]


def merged(known: Any, more: Any) -> Any:
    """A delta put onto what came before: texts grow, names don't, list elements are found by their index."""
    match known, more:
        case dict(), dict():
            return known | {name: _grown(name, known.get(name), value) for name, value in more.items()}
        case list(), list():
            for element in more:
                known = _with_element(known, element)
            return known
        case str(), str():
            return known + more
        case _:
            return known if more is None else more


def _grown(name: str, known: Any, more: Any) -> Any:
    if name in ("id", "type", "role", "name", "index", "format", "toolUseId"):
        return known if more is None or more == "" else more
    return merged(known, more)


def _with_element(known: list[Any], element: Any) -> list[Any]:
    where = (element.get("index"), element.get("type")) if isinstance(element, dict) else (None, None)
    for at, one in enumerate(known):
        if where[0] is not None and (one.get("index"), one.get("type", where[1])) == (
            where[0],
            where[1] or one.get("type"),
        ):
            return [*known[:at], merged(one, element), *known[at + 1 :]]
    return [*known, element]


def without(value: Json, name: str) -> Json:
    return {key: member for key, member in value.items() if key != name}


def _without_indexes(message: Json) -> Json:
    calls = message.get("tool_calls")
    return {**message, "tool_calls": [without(call, "index") for call in calls]} if calls else message


def _is_said(item: Json) -> bool:
    return item.get("role") == "assistant" or item.get("type") == "function_call"


def _with_input(block: Json) -> Json:
    text = block.get("partial_json")
    return without(block, "partial_json") | {"input": json.loads(text)} if text else block


def _converse_block(block: Json) -> Json:
    used = block.get("toolUse")
    if used is not None:
        return {"toolUse": {**used, "input": json.loads(used.get("input") or "{}")}}
    told = block.get("reasoningContent")
    if told is not None and "redactedContent" not in told:
        return {"reasoningContent": {"reasoningText": {"text": ""} | told}}
    return block
