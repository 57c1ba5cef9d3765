"""How a turn of each wire is requested, answered, streamed, sent back, and found again in a request."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, NamedTuple

from tests.replay.dialogues import (
    ON,
    Json,
    World,
    asked,
    chat,
    chat_reply,
    claude,
    claude_reply,
    encoded,
    gemini,
    gemini_reply,
    model,
    output,
    ran,
    responses,
    responses_reply,
    says,
    user,
    words,
)
from thoughtline.formats.aws_event_stream import encode_message
from thoughtline.values.turns import FormatName

Elements = list[Json]


class Wire(NamedTuple):
    """How a turn of one format is requested, answered, streamed, sent back and found again in a request."""

    world: Callable[[], World]
    ask: Json
    request: Callable[..., Json]
    reply: Callable[..., Json]
    stream: Callable[[Elements], bytes]
    sends: Callable[[Elements], list[Json]]
    element: Callable[[Json], Elements]
    back: Callable[[Elements], list[Json]]


def events(*payloads: Json) -> bytes:
    return b"".join(b"event: e\ndata: " + encoded(payload) + b"\n\n" for payload in payloads)


def responses_stream(turn: Elements) -> bytes:
    told: list[Json] = [{"type": "response.created", "response": {"id": "resp_1", "output": []}}]
    for index, item in enumerate(turn):
        told.append({"type": "response.output_item.added", "output_index": index, "item": {**item, "status": "new"}})
        told.append({"type": "response.output_item.done", "output_index": index, "item": item})
    return events(*told, {"type": "response.completed", "response": responses_reply(*turn)})


def claude_stream(turn: Elements) -> bytes:
    told: list[Json] = [{"type": "message_start", "message": {"id": "msg_1"}}]
    for index, block in enumerate(turn):
        start, deltas = claude_deltas(block)
        told.append({"type": "content_block_start", "index": index, "content_block": start})
        told += [{"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas]
        told.append({"type": "content_block_stop", "index": index})
    return events(*told, {"type": "message_delta", "delta": {"stop_reason": "end_turn"}}, {"type": "message_stop"})


def claude_deltas(block: Json) -> tuple[Json, list[Json]]:
    match block["type"]:
        case "thinking":
            thought = {"type": "thinking_delta", "thinking": block["thinking"]}
            signed = {"type": "signature_delta", "signature": block["signature"]}
            return {"type": "thinking", "thinking": "", "signature": ""}, [thought, signed]
        case "text":
            return {"type": "text", "text": ""}, [{"type": "text_delta", "text": block["text"]}]
        case "tool_use" | "server_tool_use" | "mcp_tool_use":
            text = json.dumps(block["input"])
            deltas = [{"type": "input_json_delta", "partial_json": part} for part in (text[:5], text[5:])]
            return {**block, "input": {}}, deltas
        case _:
            return block, []


def gemini_stream(turn: Elements) -> bytes:
    chunks: list[Json] = [{"candidates": [{"content": model(part), "index": 0}]} for part in turn]
    return events(*chunks, {"candidates": [{"content": model({"text": ""}), "finishReason": "STOP", "index": 0}]})


def converse(*messages: Json, **members: Any) -> Json:
    fields = {"additionalModelRequestFields": {"thinking": {"type": "enabled", "budget_tokens": 1024}}}
    return {"messages": list(messages), **fields, **members}


def converse_reply(*blocks: Json) -> Json:
    return {"output": {"message": {"role": "assistant", "content": list(blocks)}}, "stopReason": "end_turn"}


def converse_stream(turn: Elements) -> bytes:
    told: list[tuple[str, Json]] = [("messageStart", {"role": "assistant"})]
    for index, block in enumerate(turn):
        told += [(name, {"contentBlockIndex": index, **held}) for name, held in converse_deltas(block)]
        told.append(("contentBlockStop", {"contentBlockIndex": index}))
    told.append(("messageStop", {"stopReason": "end_turn"}))
    return b"".join(
        encode_message({":message-type": "event", ":event-type": name}, encoded(held)) for name, held in told
    )


def converse_deltas(block: Json) -> list[tuple[str, Json]]:
    match block:
        case {"reasoningContent": {"reasoningText": {"text": text, "signature": signature}}}:
            pieces: list[Json] = [{"reasoningContent": {"text": text}}, {"reasoningContent": {"signature": signature}}]
            return [("contentBlockDelta", {"delta": piece}) for piece in pieces]
        case {"toolUse": use}:
            start = {"toolUse": {name: held for name, held in use.items() if name != "input"}}
            delta = {"toolUse": {"input": json.dumps(use["input"])}}
            return [("contentBlockStart", {"start": start}), ("contentBlockDelta", {"delta": delta})]
        case {"text": text}:
            return [("contentBlockDelta", {"delta": {"text": text}})]
        case {"toolResult": result}:
            return [("contentBlockStart", {"start": {"toolResult": {"toolUseId": result["toolUseId"]}}})]
        case _:
            return [("contentBlockStart", {"start": block})]


def mistral_stream(turn: Elements) -> bytes:
    told = [{"choices": [{"index": 0, "delta": {"role": "assistant", "content": [part]}}]} for part in turn]
    return events(*told, {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]})


def results_of_claude(turn: Elements) -> list[Json]:
    back = [
        {"type": "tool_result", "tool_use_id": one["id"], "content": "ok"} for one in turn if one["type"] == "tool_use"
    ]
    return [{"role": "user", "content": back or [words("And?")]}]


def results_of_responses(turn: Elements) -> list[Json]:
    calls = [output(one["call_id"]) for one in turn if one["type"] == "function_call"]
    screens = [
        {"type": f"{one['type']}_output", "call_id": one["call_id"], "output": {}} for one in turn if is_ours(one)
    ]
    return calls + screens or [user("And?")]


def is_ours(item: Json) -> bool:
    return item["type"] in ("computer_call", "apply_patch_call")


WIRES: dict[FormatName, Wire] = {
    "openai_responses": Wire(
        lambda: World("openai", "gpt-5.4", "openai_responses"),
        user("Look it up."),
        responses,
        responses_reply,
        responses_stream,
        lambda turn: turn,
        lambda body: [one for one in body["input"][1:] if is_the_models(one)],
        results_of_responses,
    ),
    "anthropic_messages": Wire(
        lambda: World("anthropic", "claude-opus-4-5", "anthropic_messages"),
        user("Look it up."),
        lambda *messages: claude(*messages, **ON),
        claude_reply,
        claude_stream,
        lambda turn: [says(*turn)],
        lambda body: body["messages"][1]["content"],
        results_of_claude,
    ),
    "gemini_generate": Wire(
        lambda: World("google", "gemini-3-pro", "gemini_generate"),
        asked({"text": "Look it up."}),
        gemini,
        gemini_reply,
        gemini_stream,
        lambda turn: [model(*turn)],
        lambda body: body["contents"][1]["parts"],
        lambda turn: [asked(ran() if any("functionCall" in part for part in turn) else {"text": "And?"})],
    ),
    "bedrock_converse": Wire(
        lambda: World("bedrock", "anthropic.claude-opus-4-5", "bedrock_converse"),
        {"role": "user", "content": [{"text": "Look it up."}]},
        converse,
        converse_reply,
        converse_stream,
        lambda turn: [{"role": "assistant", "content": turn}],
        lambda body: body["messages"][1]["content"],
        lambda turn: [{"role": "user", "content": [{"text": "And?"}]}],
    ),
    "openai_chat": Wire(
        lambda: World("mistral", "magistral-medium"),
        user("Look it up."),
        chat,
        lambda *parts: chat_reply({"role": "assistant", "content": list(parts)}),
        mistral_stream,
        lambda turn: [{"role": "assistant", "content": turn}],
        lambda body: body["messages"][1]["content"],
        lambda turn: [user("And?")],
    ),
}


def is_the_models(item: Json) -> bool:
    is_server_side = item.get("execution") == "server" or item.get("id", "").startswith("sho_")
    return item.get("role", "assistant") == "assistant" and (is_server_side or not item["type"].endswith("_output"))
