"""Session files that clients keep: the requests in them, and the line of each part.

Claude Code 2.1.325 (`~/.claude/projects/*/*.jsonl`) and Codex 0.166.0 (`~/.codex/sessions/**/rollout-*.jsonl`) keep the
model's answers unchanged, seen 2026-11-16. Neither keeps whole requests: system prompt, tools and reminders are
missing, so only problems of reasoning can be found. Other clients' files have too little, see `UNTOLD`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Literal, NamedTuple, TypeVar

import msgspec
from msgspec import Raw, Struct

from thoughtline.values.errors import DecodeError
from thoughtline.values.turns import FormatName

Read = TypeVar("Read")
Lines = Sequence[tuple[int, bytes]]
_NULL = Raw(b"null")

UNTOLD = {
    "projectHash": "Gemini CLI keeps no signatures in its session files, so they don't say what it sends",
    "attribution_snapshot": "Qwen Code keeps its sessions in another format than it sends",
}
"""Content of clients' files that can't be audited, and why."""


class SessionRequest(NamedTuple):
    """A request of a session. `lines` are those of each element of its conversation, block by block."""

    body: bytes
    format: FormatName
    lines: tuple[tuple[int, ...], ...]

    def line_of(self, place: str) -> int:
        """The line of the file with the value at a JSON pointer, or with the value around it."""
        numbers = [int(step) for step in place.split("/") if step.isdigit()]
        if not numbers or numbers[0] >= len(self.lines):
            return 1
        blocks = self.lines[numbers[0]]
        return blocks[min(numbers[1] if len(numbers) > 1 else 0, len(blocks) - 1)]


class _Entry(NamedTuple):
    """An element of a conversation: its role, whether a user's prompt begins with it, and its line."""

    maker: Literal["model", "client"]
    is_prompt: bool
    blocks: tuple[bytes, ...]
    lines: tuple[int, ...]


def why_untold(text: bytes) -> str | None:
    """Why a file of a known client can't be audited; None if it is none of these."""
    head = text[:20_000]
    return next((why for mark, why in UNTOLD.items() if f'"{mark}"'.encode() in head), None)


def session_requests(lines: Lines) -> list[SessionRequest] | None:
    """The last request of each prompt in a session; None if it is no session of a known client."""
    if any(b'"type":"session_meta"' in line for _, line in lines[:5]):
        return list(_codex(lines))
    if any(b'"sessionId"' in line and b'"message"' in line for _, line in lines[:200]):
        return list(_claude_code(lines))
    return None


def _decoded(number: int, text: bytes, kind: type[Read]) -> Read:
    try:
        return msgspec.json.decode(text, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as problem:
        raise DecodeError(f"line {number} is not as this client's sessions are known: {problem}") from None


def _ends(entries: Sequence[_Entry]) -> Iterator[int]:
    """How many entries the last request of each prompt has: those before the model's last answer to it."""
    end = 0
    for position, entry in enumerate(entries):
        if entry.is_prompt and end:
            yield end
            end = 0
        is_asked = position + 1 == len(entries) or entries[position + 1].maker == "model"
        if entry.maker == "client" and is_asked:
            end = position + 1
    if end:
        yield end


# Codex


class _CodexPayload(Struct):
    type: str = ""
    role: str = ""
    model: str = ""
    name: str = ""
    replacement_history: list[Raw] | None = None


class _CodexLine(Struct):
    type: str = ""
    payload: Raw = Raw(b"{}")


_OF_MODEL = (
    "reasoning",
    "function_call",
    "custom_tool_call",
    "local_shell_call",
    "web_search_call",
    "tool_search_call",
)


def _codex(lines: Lines) -> Iterator[SessionRequest]:
    """Elements as they were sent and received; a compaction replaces all elements before it."""
    entries: list[_Entry] = []
    model, tools = "", dict[str, None]()
    for number, text in lines:
        line = _decoded(number, text, _CodexLine)
        if line.type not in ("response_item", "turn_context", "compacted"):
            continue
        payload = _decoded(number, line.payload, _CodexPayload)
        if line.type == "turn_context":
            model = payload.model or model
        elif line.type == "compacted":
            entries = [_codex_entry(bytes(item), number) for item in payload.replacement_history or ()]
        else:
            entries.append(_codex_entry(bytes(line.payload), number))
            if payload.type == "function_call":
                tools[payload.name] = None
    offered = [{"type": "function", "name": name, "parameters": {"type": "object"}} for name in tools]
    rest = {"model": model, "store": False, "include": ["reasoning.encrypted_content"], "tools": offered}
    for end in _ends(entries):
        elements = [entry.blocks[0] for entry in entries[:end]]
        yield SessionRequest(_body("input", elements, rest), "openai_responses", tuple(e.lines for e in entries[:end]))


def _codex_entry(item: bytes, number: int) -> _Entry:
    payload = _decoded(number, item, _CodexPayload)
    is_models = payload.type in _OF_MODEL or payload.role == "assistant"
    return _Entry("model" if is_models else "client", payload.role == "user", (item,), (number,))


# Claude Code


class _ClaudeMessage(Struct):
    role: Literal["user", "assistant"]
    content: str | list[Raw]
    id: str = ""
    model: str = ""


class _ClaudeParams(Struct):
    model: str = ""
    thinking: Raw = _NULL


class _ClaudeLine(Struct, rename="camel"):
    type: str = ""
    uuid: str | None = None
    parent_uuid: str | None = None
    source_tool: str | None = msgspec.field(default=None, name="sourceToolAssistantUUID")
    is_sidechain: bool = False
    is_api_error_message: bool = False
    message: Raw = _NULL
    params: _ClaudeParams | None = None


class _ClaudeBlock(Struct):
    type: str = ""
    name: str = ""


def _claude_code(lines: Lines) -> Iterator[SessionRequest]:
    """Blocks of a turn are on lines of their own, with the same id; results of parallel calls too."""
    read = [(number, _decoded(number, text, _ClaudeLine)) for number, text in lines]
    message_lines = [
        (number, line) for number, line in read if line.type in ("user", "assistant") and not line.is_api_error_message
    ]
    # A sub-agent's own file has only sidechains.
    message_lines = [pair for pair in message_lines if not pair[1].is_sidechain] or message_lines
    every = [line for _, line in read]
    on_branch = _on_branch(message_lines, every)
    branch = [(number, _decoded(number, line.message, _ClaudeMessage)) for number, line in on_branch]
    models = [message.model for _, message in branch if message.role == "assistant" and message.model]
    turns = groupby(branch, key=lambda pair: (pair[1].role, pair[1].id))
    entries = [_joined([_claude_entry(message, number) for number, message in turn]) for _, turn in turns]
    rest = _claude_rest(every, entries, models[-1] if models else "")
    for end in _ends(entries):
        messages = [_claude_text(entry) for entry in entries[:end]]
        body = _body("messages", messages, rest)
        yield SessionRequest(body, "anthropic_messages", tuple(entry.lines for entry in entries[:end]))


def _on_branch(message_lines: list[tuple[int, _ClaudeLine]], every: list[_ClaudeLine]) -> list[tuple[int, _ClaudeLine]]:
    """The lines that lead to the last one: when a user goes back and asks again, the other branch stays in the file.

    A compaction begins with a line that has no parent. Results of parallel calls have their own calls as parents. If a
    line of the chain is missing, all lines are taken.
    """
    parents = {line.uuid: line.parent_uuid for line in every if line.uuid}
    branch: set[str] = set()
    at = message_lines[-1][1].uuid if message_lines else None
    while at is not None and at not in branch:
        if at not in parents:
            return message_lines
        branch.add(at)
        at = parents[at]
    return [pair for pair in message_lines if pair[1].uuid in branch or pair[1].source_tool in branch]


def _claude_entry(message: _ClaudeMessage, number: int) -> _Entry:
    content = message.content
    blocks = (msgspec.json.encode({"type": "text", "text": content}),) if isinstance(content, str) else content
    maker: Literal["model", "client"] = "model" if message.role == "assistant" else "client"
    kinds = [_decoded(number, block, _ClaudeBlock).type for block in blocks]
    is_prompt = maker == "client" and "tool_result" not in kinds
    return _Entry(maker, is_prompt, tuple(map(bytes, blocks)), (number,) * len(blocks))


def _joined(parts: list[_Entry]) -> _Entry:
    blocks = tuple(block for part in parts for block in part.blocks)
    lines = tuple(line for part in parts for line in part.lines)
    return _Entry(parts[0].maker, any(part.is_prompt for part in parts), blocks, lines)


def _claude_text(entry: _Entry) -> bytes:
    role = b"assistant" if entry.maker == "model" else b"user"
    return b'{"role":"%b","content":[%b]}' % (role, b",".join(entry.blocks))


def _claude_rest(every: list[_ClaudeLine], entries: list[_Entry], model: str) -> dict[str, object]:
    """The settings: as its latest versions record them, else with thinking if there are thoughts."""
    blocks = [msgspec.json.decode(block, type=_ClaudeBlock) for entry in entries for block in entry.blocks]
    names = dict.fromkeys(block.name for block in blocks if block.type == "tool_use")
    rest: dict[str, object] = {
        "model": model,
        "max_tokens": 32_000,
        "tools": [{"name": name, "input_schema": {"type": "object"}} for name in names],
    }
    params = next((line.params for line in reversed(every) if line.params is not None), None)
    if params is not None and params.thinking != _NULL:
        rest["thinking"] = params.thinking
    elif any(block.type in ("thinking", "redacted_thinking") for block in blocks):
        rest["thinking"] = {"type": "enabled", "budget_tokens": 16_000}
    return rest


def _body(member: str, elements: list[bytes], rest: dict[str, object]) -> bytes:
    """A request of these elements, without empty members."""
    others = msgspec.json.encode({name: value for name, value in rest.items() if value != []})
    return b'%b,"%b":[%b]}' % (others[:-1], member.encode(), b",".join(elements))
