"""How fast bodies and streams are read, beside orjson on the same bytes in the same run.

    python -m bench.codecs

A history is decoded to typed turns and encoded again: unedited, and with reasoning put back into every tool turn. The
yardstick is `orjson.loads` and `dumps` of the whole body, which is what a proxy without spans has to do. Streams are
read event by event; the yardstick is `orjson.loads` of each payload alone, without framing, nothing kept.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial

import orjson

from bench.measure import best_seconds
from thoughtline.formats import FORMATS
from thoughtline.values.events import Event
from thoughtline.values.items import ReasoningText, ToolCall
from thoughtline.values.turns import FormatName, Transcript

THOUGHT = (
    "The test fails because the fixture is built before the clock is patched. I should look at conftest first. " * 3
)
LINES = (
    'def load(path: str) -> bytes:\n    """Read a file."""\n'
    '    with open(path, "rb") as handle:\n        return handle.read()\n'
)
SOURCE = LINES * 28  # about 100 lines, what a coding agent's tool call typically brings back


def history(rounds: int, source: str = SOURCE) -> bytes:
    """An agent's chat history: a question, a tool call with its reasoning, a file as result, and so on."""
    messages: list[dict[str, object]] = [{"role": "system", "content": "You are a careful engineer. " * 60}]
    for number in range(rounds):
        arguments = json.dumps({"path": f"src/module_{number}.py", "limit": 200})
        call = {
            "id": f"call_00_{number}",
            "type": "function",
            "function": {"name": "read_file", "arguments": arguments},
        }
        messages += [
            {"role": "user", "content": f"Now have a look at module {number}, the loader there is slow."},
            {"role": "assistant", "content": "Reading it.", "reasoning_content": THOUGHT, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": f"call_00_{number}", "content": source},
        ]
    tools = [{"type": "function", "function": {"name": "read_file", "parameters": {"type": "object"}}}]
    return json.dumps({"model": "deepseek-v4-pro", "stream": True, "messages": messages, "tools": tools}).encode()


def messages_history(rounds: int) -> bytes:
    """The same as Anthropic Messages."""
    messages: list[dict[str, object]] = []
    for number in range(rounds):
        name = f"toolu_{number}"
        messages += [
            {"role": "user", "content": [{"type": "text", "text": f"Now have a look at module {number}."}]},
            {
                "role": "assistant",
                "content": [
                    {"type": "thinking", "thinking": THOUGHT, "signature": "EqQBCgIYAhIM" * 20},
                    {"type": "text", "text": "Reading it."},
                    {"type": "tool_use", "id": name, "name": "read_file", "input": {"path": f"src/{number}.py"}},
                ],
            },
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": name, "content": SOURCE}]},
        ]
    return json.dumps({"model": "claude-opus-5-5", "max_tokens": 4096, "messages": messages}).encode()


def restore_everywhere(transcript: Transcript) -> Transcript:
    """Reasoning put back into every turn with calls, as for a client that strips it."""
    for position, turn in enumerate(transcript.turns):
        if turn.role == "assistant" and any(isinstance(item, ToolCall) for item in turn.items):
            transcript = transcript.with_items(position, (ReasoningText(THOUGHT + "!"), *turn.items))
    return transcript


def bench_histories() -> None:
    print(f"{'history':34} {'MB/s':>8} {'µs':>9} {'orjson µs':>10} {'ratio':>6}")
    cases: list[tuple[str, FormatName, bytes]] = [
        ("chat 200 kB", "openai_chat", history(46)),
        ("chat 2 MB", "openai_chat", history(480)),
        ("chat 200 kB, short results", "openai_chat", history(120, LINES * 8)),
        ("messages 200 kB", "anthropic_messages", messages_history(44)),
        ("messages 2 MB", "anthropic_messages", messages_history(460)),
    ]
    for name, format_name, body in cases:
        _bench_history(name, format_name, body)


def _bench_history(name: str, format: FormatName, body: bytes) -> None:
    row = FORMATS[format]
    bodies = row.bodies
    contenders = {
        "orjson": lambda: orjson.dumps(orjson.loads(body)),
        "unedited": lambda: bodies.encode_request(bodies.decode_request(body, row.dialect), row.dialect),
    }
    if format == "openai_chat":
        stripped = json.loads(body)
        for message in stripped["messages"]:
            message.pop("reasoning_content", None)
        lost = json.dumps(stripped).encode()
        restored = restore_everywhere(bodies.decode_request(lost, row.dialect))
        contenders["restore all"] = lambda: bodies.encode_request(restored, row.dialect)
    seconds = best_seconds(contenders)
    for contender in [key for key in contenders if key != "orjson"]:
        rate, ratio = len(body) / seconds[contender] / 1e6, seconds[contender] / seconds["orjson"]
        took, theirs = seconds[contender] * 1e6, seconds["orjson"] * 1e6
        print(f"{f'{name}, {contender}':34} {rate:8.0f} {took:9.1f} {theirs:10.1f} {ratio:6.2f}")


def chat_events(count: int) -> list[bytes]:
    """Half reasoning, half text, as DeepSeek sends them."""
    head = {"id": "5b3f0a52-1f0c-4e5e-9d3e-3f2b8c1f7a10", "object": "chat.completion.chunk", "created": 1789000000}
    head |= {"model": "deepseek-v4-pro", "system_fingerprint": "fp_eaab8d114b_prod0820"}
    payloads = []
    for number in range(count):
        thinks = number < count // 2
        delta = {"content": None if thinks else " word", "reasoning_content": " think" if thinks else None}
        finish = "stop" if number == count - 1 else None
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
        payloads.append(orjson.dumps({**head, "choices": [choice]}))
    return payloads


def messages_events(count: int) -> list[bytes]:
    """One thinking block and one text block."""
    start = b'{"type":"message_start","message":{"id":"msg_1","model":"claude-opus-5-5","content":[],"usage":{}}}'
    payloads = [start, b'{"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":""}}']
    thought = {"type": "content_block_delta", "index": 0, "delta": {"type": "thinking_delta", "thinking": " think"}}
    payloads += [orjson.dumps(thought)] * (count // 2)
    payloads.append(b'{"type":"content_block_stop","index":0}')
    payloads.append(b'{"type":"content_block_start","index":1,"content_block":{"type":"text","text":""}}')
    text = {"type": "content_block_delta", "index": 1, "delta": {"type": "text_delta", "text": " word"}}
    payloads += [orjson.dumps(text)] * (count // 2)
    return [*payloads, b'{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":9}}']


def responses_events(count: int) -> list[bytes]:
    """One message that grows."""
    item = {"id": "msg_1", "type": "message", "role": "assistant", "content": []}
    payloads = [orjson.dumps({"type": "response.output_item.added", "output_index": 0, "item": item})]
    delta = {"type": "response.output_text.delta", "item_id": "msg_1", "output_index": 0, "content_index": 0}
    payloads += [orjson.dumps({**delta, "delta": " word", "logprobs": [], "sequence_number": 17})] * count
    return payloads


def gemini_events(count: int) -> list[bytes]:
    """Text that grows."""
    content = {"parts": [{"text": " word"}], "role": "model"}
    usage = {"promptTokenCount": 12, "totalTokenCount": 40}
    chunk = {"candidates": [{"content": content, "index": 0}], "usageMetadata": usage, "modelVersion": "gemini-3-pro"}
    return [orjson.dumps(chunk)] * count


def bench_streams(count: int = 10_000) -> None:
    print(f"\n{'stream, bytes per read':34} {'µs/event':>9} {'orjson µs':>10} {'ratio':>6}")
    cases: list[tuple[str, FormatName, list[bytes]]] = [
        ("chat", "openai_chat", chat_events(count)),
        ("messages", "anthropic_messages", messages_events(count)),
        ("responses", "openai_responses", responses_events(count)),
        ("gemini", "gemini_generate", gemini_events(count)),
    ]
    for name, format_name, payloads in cases:
        _bench_stream(name, format_name, payloads)


def _bench_stream(name: str, format: FormatName, payloads: list[bytes]) -> None:
    row = FORMATS[format]
    events = [b"data: " + payload + b"\n\n" for payload in payloads]
    whole = b"".join(events)
    reads = {
        "one event": events,
        "4 KiB": [whole[at : at + 4096] for at in range(0, len(whole), 4096)],
        "64 KiB": [whole[at : at + 65536] for at in range(0, len(whole), 65536)],
    }

    def read(pieces: list[bytes]) -> list[Event]:
        decoder = row.stream_decoder(row.dialect)
        feed = decoder.feed
        for piece in pieces:
            feed(piece)
        return decoder.finish()

    def yardstick() -> None:
        loads = orjson.loads
        for payload in payloads:
            loads(payload)

    contenders: dict[str, Callable[[], object]] = {"orjson": yardstick}
    contenders |= {size: partial(read, pieces) for size, pieces in reads.items()}
    seconds = best_seconds(contenders)
    for size in reads:
        took, theirs = seconds[size] / len(payloads) * 1e6, seconds["orjson"] / len(payloads) * 1e6
        print(f"{f'{name}, {size}':34} {took:9.2f} {theirs:10.2f} {took / theirs:6.2f}")


if __name__ == "__main__":
    bench_histories()
    bench_streams()
