"""One conversation as each wire format writes it: requests without reasoning, answers with it, whole and streamed.

SPEAKERS["gemini_generate"].request(talk, frame)         a body that shows no reasoning
SPEAKERS["gemini_generate"].answer(said, thought, 7)     a body whose reasoning, or seal, holds the thought
marks_in(body)                                           the thoughts that a request carries, in order
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple, TypeAlias

from thoughtline.formats.aws_event_stream import CONTENT_TYPE, encode_message
from thoughtline.values.turns import FormatName

Json = dict[str, Any]
NOTHING: Json = {}
_MARK = re.compile(rb"ThoughtOf([A-Z][a-z]+[0-9]{2})")


class Call(NamedTuple):
    """A call of the model. Without an id, the wire shows none where it may leave it out."""

    id: str = ""
    at: str = "home"
    name: str = "look"


class Asked(NamedTuple):
    """What the user said; `name` is who of them, in formats that have a member for it."""

    text: str
    name: str = ""


class Instructed(NamedTuple):
    """A system message inside the conversation, in formats that have one."""

    text: str


class Said(NamedTuple):
    """What is visible of an answer. `more` are members of the message itself, for formats that have one."""

    text: str = ""
    calls: tuple[Call, ...] = ()
    more: Json = NOTHING


class Results(NamedTuple):
    """What calls gave back, in this order."""

    of: tuple[tuple[Call, str], ...]


Turn: TypeAlias = Asked | Instructed | Said | Results


class Frame(NamedTuple):
    """What stands around a conversation. `members` are further members of the body, such as the end user.

    `is_other_spelling`: the system prompt stands at the other place that the format has for it.
    """

    system: str = "You are a helpful assistant."
    members: Json = NOTHING
    tools: tuple[str, ...] = ("look",)
    model: str = ""
    is_other_spelling: bool = False


def thought(owner: str, number: int) -> str:
    """Words, or a token, that no other turn has."""
    return f"ThoughtOf{owner}{number:02d}"


def marks_in(body: bytes) -> list[str]:
    """Whose thoughts a request carries. A thought and its signature are one."""
    marks = [found.decode() for found in _MARK.findall(body)]
    return [mark for at, mark in enumerate(marks) if at == 0 or marks[at - 1] != mark]


class Speaker(NamedTuple):
    """A format with a provider and two models that speak it."""

    format: FormatName
    provider: str
    models: tuple[str, str]
    path: str
    request: Callable[[Sequence[Turn], Frame], Json]
    answer: Callable[[Said, str, int], Json]
    frames: Callable[[Json], Iterator[bytes]]
    end_users: tuple[Callable[[str], Json], ...]
    """The members that name an end user."""
    stream_type: str = "text/event-stream"
    stream_path: str = ""
    references: tuple[Callable[[str], Json], ...] = ()
    """The members that name what the model reads and the request does not show."""
    spellings: int = 1
    """How often a thought stands in a turn: a signature may spell it once more."""

    def path_for(self, frame: Frame, *, is_streaming: bool) -> str:
        path = self.stream_path if is_streaming and self.stream_path else self.path
        return path.replace("{model}", frame.model or self.models[0])

    def body(self, talk: Sequence[Turn], frame: Frame, *, is_streaming: bool) -> Json:
        body = self.request(talk, frame) | frame.members
        if "{model}" not in self.path:
            body = {"model": frame.model or self.models[0], **body, "stream": is_streaming}
        return body


def _sse(event: Json, name: str = "") -> bytes:
    head = b"event: %b\n" % name.encode() if name else b""
    return head + b"data: " + json.dumps(event).encode() + b"\n\n"


def _token(mark: str) -> str:
    """A thought as a seal: letters and digits of a length that base64 allows."""
    return mark + "A" * (-len(mark) % 4)


# --- Chat Completions, and Ollama's own ------------------------------------------------------------------------------


def _chat_request(talk: Sequence[Turn], frame: Frame) -> Json:
    role = "developer" if frame.is_other_spelling else "system"
    messages = [{"role": role, "content": frame.system}] if frame.system else []
    for turn in talk:
        messages += _chat_messages(turn)
    tools = [{"type": "function", "function": {"name": name, "parameters": {"type": "object"}}} for name in frame.tools]
    return {"messages": messages, "tools": tools}


def _chat_messages(turn: Turn) -> list[Json]:
    match turn:
        case Asked():
            return [{"role": "user", "content": turn.text} | ({"name": turn.name} if turn.name else {})]
        case Instructed():
            return [{"role": "system", "content": turn.text}]
        case Results():
            return [{"role": "tool", "tool_call_id": call.id, "content": text} for call, text in turn.of]
        case Said():
            return [_chat_message(turn)]


def _chat_message(said: Said) -> Json:
    calls = [
        {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": json.dumps({"at": call.at})}}
        for call in said.calls
    ]
    return {"role": "assistant", "content": said.text} | ({"tool_calls": calls} if calls else {}) | said.more


def _chat_answer(said: Said, thought: str, number: int) -> Json:
    message = _chat_message(said) | {"reasoning_content": thought}
    choice = {"index": 0, "message": message, "finish_reason": "tool_calls" if said.calls else "stop"}
    return {"id": f"answer-{number}", "object": "chat.completion", "created": 1, "choices": [choice]}


def _chat_frames(whole: Json) -> Iterator[bytes]:
    (choice,) = whole["choices"]
    message = choice["message"]
    deltas: list[Json] = [{"role": "assistant", "content": ""}]
    deltas += [{"reasoning_content": message["reasoning_content"]}, {"content": message["content"]}]
    deltas += [{"tool_calls": [{"index": at, **call}]} for at, call in enumerate(message.get("tool_calls", []))]
    for delta, finish in [*((delta, None) for delta in deltas), ({}, choice["finish_reason"])]:
        yield _sse({"id": whole["id"], "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]})
    yield b"data: [DONE]\n\n"


def _ollama_request(talk: Sequence[Turn], frame: Frame) -> Json:
    body = _chat_request(talk, frame._replace(is_other_spelling=False))
    for message in body["messages"]:
        message.pop("tool_call_id", None)
        if "tool_calls" in message:
            message["tool_calls"] = [_ollama_call(call) for call in message["tool_calls"]]
    return body


def _ollama_call(call: Json) -> Json:
    function = {"name": call["function"]["name"], "arguments": json.loads(call["function"]["arguments"])}
    return ({"id": call["id"]} if call["id"] else {}) | {"function": function}


def _ollama_answer(said: Said, thought: str, number: int) -> Json:
    message = _chat_message(said) | {"thinking": thought}
    if said.calls:
        message["tool_calls"] = [_ollama_call(call) for call in message["tool_calls"]]
    return {"created_at": "2026-11-18T00:00:00Z", "message": message, "done": True, "done_reason": "stop"}


def _ollama_frames(whole: Json) -> Iterator[bytes]:
    message = whole["message"]
    for name in ("thinking", "content", "tool_calls"):
        if message.get(name):
            part = {"role": "assistant", "content": "", name: message[name]}
            yield json.dumps({**whole, "message": part, "done": False, "done_reason": None}).encode() + b"\n"
    yield json.dumps({**whole, "message": {"role": "assistant", "content": ""}}).encode() + b"\n"


# --- Messages --------------------------------------------------------------------------------------------------------


def _messages_request(talk: Sequence[Turn], frame: Frame) -> Json:
    tools = [{"name": name, "input_schema": {"type": "object"}} for name in frame.tools]
    thinking = {"type": "enabled", "budget_tokens": 2048}
    system: Any = [{"type": "text", "text": frame.system}] if frame.is_other_spelling else frame.system
    body = {"messages": [_messages_message(turn) for turn in talk], "tools": tools}
    return {"max_tokens": 8000, "thinking": thinking, **({"system": system} if frame.system else {}), **body}


def _messages_message(turn: Turn) -> Json:
    match turn:
        case Asked():
            return {"role": "user", "content": turn.text}
        case Instructed():
            return {"role": "system", "content": turn.text}
        case Results():
            blocks = [{"type": "tool_result", "tool_use_id": call.id, "content": text} for call, text in turn.of]
            return {"role": "user", "content": blocks}
        case Said():
            return {"role": "assistant", "content": _messages_blocks(turn)}


def _messages_blocks(said: Said) -> list[Json]:
    blocks: list[Json] = [{"type": "text", "text": said.text}] if said.text else []
    return blocks + [
        {"type": "tool_use", "id": call.id, "name": call.name, "input": {"at": call.at}} for call in said.calls
    ]


def _messages_answer(said: Said, thought: str, number: int) -> Json:
    thinking = {"type": "thinking", "thinking": thought, "signature": _token(thought)}
    stop = "tool_use" if said.calls else "end_turn"
    return messages_reply([thinking, *_messages_blocks(said)], number, stop)


def messages_reply(blocks: list[Json], number: int, stop: str) -> Json:
    head = {"id": f"msg_{number}", "type": "message", "role": "assistant", "model": "claude"}
    usage = {"input_tokens": 1, "output_tokens": 1}
    return {**head, "content": blocks, "stop_reason": stop, "stop_sequence": None, "usage": usage}


def _messages_frames(whole: Json) -> Iterator[bytes]:
    yield _typed({"type": "message_start", "message": {**whole, "content": [], "stop_reason": None}})
    for index, block in enumerate(whole["content"]):
        opened, deltas = _messages_deltas(block)
        yield _typed({"type": "content_block_start", "index": index, "content_block": opened})
        for delta in deltas:
            yield _typed({"type": "content_block_delta", "index": index, "delta": delta})
        yield _typed({"type": "content_block_stop", "index": index})
    ending = {"stop_reason": whole["stop_reason"], "stop_sequence": None}
    yield _typed({"type": "message_delta", "delta": ending, "usage": {"output_tokens": 1}})
    yield _typed({"type": "message_stop"})


def _messages_deltas(block: Json) -> tuple[Json, list[Json]]:
    match block["type"]:
        case "thinking":
            text = {"type": "thinking_delta", "thinking": block["thinking"]}
            sealed = {"type": "signature_delta", "signature": block["signature"]}
            return {"type": "thinking", "thinking": "", "signature": ""}, [text, sealed]
        case "text":
            return {"type": "text", "text": ""}, [{"type": "text_delta", "text": block["text"]}]
        case "tool_use" | "server_tool_use":
            delta = {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}
            return {**block, "input": {}}, [delta]
        case _:
            return block, []


def _typed(event: Json) -> bytes:
    return _sse(event, event["type"])


# --- Responses -------------------------------------------------------------------------------------------------------


def _responses_request(talk: Sequence[Turn], frame: Frame) -> Json:
    items: list[Json] = []
    if frame.is_other_spelling and frame.system:
        items.append({"role": "developer", "content": frame.system})
    for turn in talk:
        items += _responses_items(turn)
    tools = [{"type": "function", "name": name, "parameters": {"type": "object"}} for name in frame.tools]
    prompt = {} if frame.is_other_spelling else {"instructions": frame.system}
    return {**prompt, "input": items, "tools": tools, "store": False, "include": ["reasoning.encrypted_content"]}


def _responses_items(turn: Turn) -> list[Json]:
    match turn:
        case Asked():
            return [{"role": "user", "content": turn.text}]
        case Instructed():
            return [{"role": "developer", "content": turn.text}]
        case Results():
            return [{"type": "function_call_output", "call_id": call.id, "output": text} for call, text in turn.of]
        case Said():
            return _responses_said(turn)


def _responses_said(said: Said) -> list[Json]:
    text = {"type": "output_text", "text": said.text, "annotations": []}
    items: list[Json] = [{"type": "message", "role": "assistant", "content": [text]}] if said.text else []
    for call in said.calls:
        arguments = json.dumps({"at": call.at})
        items.append({"type": "function_call", "call_id": call.id, "name": call.name, "arguments": arguments})
    return items


def _responses_answer(said: Said, thought: str, number: int) -> Json:
    reasoning = {"type": "reasoning", "summary": [], "encrypted_content": "gAAAAA" + _token(thought)}
    items = [reasoning, *_responses_said(said)]
    output = [{"id": f"item_{number}_{at}", **item, "status": "completed"} for at, item in enumerate(items)]
    return {"id": f"resp_{number}", "object": "response", "created_at": 1, "status": "completed", "output": output}


def _responses_frames(whole: Json) -> Iterator[bytes]:
    yield _typed({"type": "response.created", "response": {**whole, "status": "in_progress", "output": []}})
    for index, item in enumerate(whole["output"]):
        opened = {**item, "status": "in_progress"}
        yield _typed({"type": "response.output_item.added", "output_index": index, "item": opened})
        yield _typed({"type": "response.output_item.done", "output_index": index, "item": item})
    yield _typed({"type": "response.completed", "response": whole})


# --- Gemini ----------------------------------------------------------------------------------------------------------


def _gemini_request(talk: Sequence[Turn], frame: Frame) -> Json:
    prompt = {"parts": [{"text": frame.system}]}
    spelled = "system_instruction" if frame.is_other_spelling else "systemInstruction"
    tools = [{"functionDeclarations": [{"name": name} for name in frame.tools]}]
    body = {"contents": [_gemini_content(turn) for turn in talk], "tools": tools}
    return ({spelled: prompt} if frame.system else {}) | body


def _gemini_content(turn: Turn) -> Json:
    match turn:
        case Asked():
            return {"role": "user", "parts": [{"text": turn.text}]}
        case Instructed():
            return {"role": "system", "parts": [{"text": turn.text}]}
        case Results():
            parts = [
                {"functionResponse": _named(call) | {"name": call.name, "response": {"result": text}}}
                for call, text in turn.of
            ]
            return {"role": "user", "parts": parts}
        case Said():
            return {"role": "model", "parts": _gemini_parts(turn)}


def _named(call: Call) -> Json:
    return {"id": call.id} if call.id else {}


def _gemini_parts(said: Said) -> list[Json]:
    parts: list[Json] = [{"text": said.text}] if said.text else []
    return parts + [
        {"functionCall": _named(call) | {"name": call.name, "args": {"at": call.at}}} for call in said.calls
    ]


def _gemini_answer(said: Said, thought: str, number: int) -> Json:
    """The signature stands on the first call, or on the text of an answer without calls."""
    parts = _gemini_parts(said)
    parts[1 if said.calls and said.text else 0]["thoughtSignature"] = _token(thought)
    content = {"role": "model", "parts": parts}
    return {
        "candidates": [{"content": content, "finishReason": "STOP", "index": 0}],
        "responseId": f"answer-{number}",
    }


def _gemini_frames(whole: Json) -> Iterator[bytes]:
    (candidate,) = whole["candidates"]
    parts = candidate["content"]["parts"]
    for at, part in enumerate(parts):
        ending = {"finishReason": "STOP"} if at == len(parts) - 1 else {}
        yield _sse({"candidates": [{"content": {"role": "model", "parts": [part]}, "index": 0, **ending}]})


# --- Converse --------------------------------------------------------------------------------------------------------


_CONVERSE_FIELDS: Json = {"thinking": {"type": "enabled", "budget_tokens": 2048}}


def _converse_request(talk: Sequence[Turn], frame: Frame) -> Json:
    words = [frame.system]
    if frame.is_other_spelling and " " in frame.system:
        words = frame.system.split(" ", 1)
    tools = [{"toolSpec": {"name": name, "inputSchema": {"json": {"type": "object"}}}} for name in frame.tools]
    prompt = {"system": [{"text": text} for text in words]} if frame.system else {}
    body = {"messages": [_converse_message(turn) for turn in talk], "toolConfig": {"tools": tools}}
    return {**prompt, **body, "additionalModelRequestFields": _CONVERSE_FIELDS}


def _converse_message(turn: Turn) -> Json:
    match turn:
        case Asked():
            return {"role": "user", "content": [{"text": turn.text}]}
        case Instructed():
            raise NotImplementedError("Converse has no system messages")
        case Results():
            blocks = [{"toolResult": {"toolUseId": call.id, "content": [{"text": text}]}} for call, text in turn.of]
            return {"role": "user", "content": blocks}
        case Said():
            return {"role": "assistant", "content": _converse_blocks(turn)}


def _converse_blocks(said: Said) -> list[Json]:
    blocks: list[Json] = [{"text": said.text}] if said.text else []
    return blocks + [
        {"toolUse": {"toolUseId": call.id, "name": call.name, "input": {"at": call.at}}} for call in said.calls
    ]


def _converse_answer(said: Said, thought: str, number: int) -> Json:
    reasoning = {"reasoningContent": {"reasoningText": {"text": thought, "signature": _token(thought)}}}
    message = {"role": "assistant", "content": [reasoning, *_converse_blocks(said)]}
    usage = {"inputTokens": 1, "outputTokens": 1, "totalTokens": 2}
    stop = "tool_use" if said.calls else "end_turn"
    return {"output": {"message": message}, "stopReason": stop, "usage": usage, "metrics": {"latencyMs": 1}}


def _converse_frames(whole: Json) -> Iterator[bytes]:
    for name, event in _converse_events(whole):
        headers = {":event-type": name, ":content-type": "application/json", ":message-type": "event"}
        yield encode_message(headers, json.dumps(event).encode())


def _converse_events(whole: Json) -> Iterator[tuple[str, Json]]:
    yield "messageStart", {"role": "assistant"}
    for index, block in enumerate(whole["output"]["message"]["content"]):
        at = {"contentBlockIndex": index}
        if "toolUse" in block:
            call = block["toolUse"]
            start = {"toolUse": {"toolUseId": call["toolUseId"], "name": call["name"]}}
            yield "contentBlockStart", {**at, "start": start}
            yield "contentBlockDelta", {**at, "delta": {"toolUse": {"input": json.dumps(call["input"])}}}
        elif "text" in block:
            yield "contentBlockDelta", {**at, "delta": {"text": block["text"]}}
        else:
            for member, value in block["reasoningContent"]["reasoningText"].items():
                yield "contentBlockDelta", {**at, "delta": {"reasoningContent": {member: value}}}
        yield "contentBlockStop", at
    yield "messageStop", {"stopReason": whole["stopReason"]}
    yield "metadata", {"usage": whole["usage"], "metrics": whole["metrics"]}


_OPENAI_USERS: tuple[Callable[[str], Json], ...] = (
    lambda name: {"user": name},
    lambda name: {"safety_identifier": name},
    lambda name: {"metadata": {"user_id": name}},
)
CHAT = Speaker(
    "openai_chat",
    "deepseek",
    ("deepseek-v4-pro", "deepseek-v4-flash"),
    "/v1/chat/completions",
    request=_chat_request,
    answer=_chat_answer,
    frames=_chat_frames,
    end_users=_OPENAI_USERS,
    references=(
        lambda name: {"documents": [{"title": name, "text": f"All about {name}."}]},
        lambda name: {"extra_body": {"google": {"cached_content": f"cachedContents/{name}"}}},
    ),
)
MESSAGES = Speaker(
    "anthropic_messages",
    "anthropic",
    ("claude-sonnet-4-5", "claude-opus-4-5"),
    "/v1/messages",
    request=_messages_request,
    answer=_messages_answer,
    frames=_messages_frames,
    end_users=(lambda name: {"metadata": {"user_id": name}},),
    spellings=2,
)
SPEAKERS: dict[FormatName, Speaker] = {
    "openai_chat": CHAT,
    "anthropic_messages": MESSAGES,
    "openai_responses": Speaker(
        "openai_responses",
        "openai",
        ("gpt-5", "gpt-5.2"),
        "/v1/responses",
        request=_responses_request,
        answer=_responses_answer,
        frames=_responses_frames,
        end_users=_OPENAI_USERS,
        references=(
            lambda name: {"prompt": {"id": "pmpt_1", "variables": {"customer": name}}},
            lambda name: {"conversation": f"conv_{name}"},
            lambda name: {"previous_response_id": f"resp_{name}"},
            lambda name: {"instructions": [{"type": "message", "role": "developer", "content": f"You serve {name}."}]},
        ),
    ),
    "gemini_generate": Speaker(
        "gemini_generate",
        "gemini",
        ("gemini-3-pro-preview", "gemini-3.7-flash"),
        "/v1beta/models/{model}:generateContent",
        request=_gemini_request,
        answer=_gemini_answer,
        frames=_gemini_frames,
        stream_path="/v1beta/models/{model}:streamGenerateContent?alt=sse",
        end_users=(lambda name: {"labels": {"user_id": name}},),
        references=(
            lambda name: {"cachedContent": f"cachedContents/{name}"},
            lambda name: {"cached_content": f"cachedContents/{name}"},
        ),
    ),
    "ollama_chat": Speaker(
        "ollama_chat",
        "ollama",
        ("qwen3:14b", "qwen3:32b"),
        "/api/chat",
        request=_ollama_request,
        answer=_ollama_answer,
        frames=_ollama_frames,
        stream_type="application/x-ndjson",
        end_users=(lambda name: {"user": name},),
    ),
    "bedrock_converse": Speaker(
        "bedrock_converse",
        "bedrock",
        ("us.anthropic.claude-sonnet-4-5", "us.anthropic.claude-opus-4-5"),
        "/model/{model}/converse",
        request=_converse_request,
        answer=_converse_answer,
        frames=_converse_frames,
        stream_type=CONTENT_TYPE,
        stream_path="/model/{model}/converse-stream",
        end_users=(
            lambda name: {"requestMetadata": {"user_id": name}},
            lambda name: {"additionalModelRequestFields": {**_CONVERSE_FIELDS, "metadata": {"user_id": name}}},
        ),
        references=(lambda name: {"promptVariables": {"customer": {"text": name}}},),
        spellings=2,
    ),
}
