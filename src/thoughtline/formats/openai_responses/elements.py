"""One element of a Responses list (`input` or `output`) and its items, in both directions.

One element is one item, with two exceptions: a `reasoning` element holds up to three kinds (summaries, text,
ciphertext), each an item with the element's id and index; and a message of any role but the model's is one item per
part.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
from msgspec import Raw, Struct
from msgspec.structs import replace

from thoughtline.formats.json_text import (
    NULL,
    array,
    decode,
    decode_content,
    decode_kind,
    elements,
    encode,
    is_array,
    is_given,
    members,
    object_of,
    set_members,
)
from thoughtline.providers import Dialect
from thoughtline.values.errors import DecodeError, EncodeError, ForeignSeal
from thoughtline.values.items import (
    REASONING_KINDS,
    Item,
    Reasoning,
    ReasoningEncrypted,
    ReasoningSummary,
    ReasoningText,
    Role,
    Seal,
    Text,
    ToolCall,
    ToolResult,
    Unknown,
)

_ROLES: dict[str, Role] = {"user": "user", "assistant": "assistant", "system": "system", "developer": "system"}
_KNOWN = (
    "",
    "message",
    "reasoning",
    "function_call",
    "custom_tool_call",
    "function_call_output",
    "custom_tool_call_output",
)
COMPACTIONS = ("compaction", "compaction_summary", "context_compaction")
"""A summarized conversation, sealed; the others are Codex's older and newer names of it (openai/codex
`protocol/src/models.rs`, 2026-08-22).
"""

AGENT_MESSAGE = "agent_message"

_FROM_CLIENT = ("_output", "_response")
_TEXT_PARTS = ("input_text", "output_text", "text", "refusal")


class _Piece(Struct, gc=False):
    text: str | None = None


class Element(Struct, gc=False):
    """The members of an element that we decode."""

    type: str | None = None
    role: str | None = None
    id: str | None = None
    content: Raw = NULL
    summary: list[_Piece] | None = None
    encrypted_content: str | None = None
    name: str | None = None
    namespace: str | None = None
    arguments: Raw = NULL
    input: Raw = NULL
    call_id: str | None = None
    output: Raw = NULL
    execution: str | None = None


class _Part(Struct, gc=False):
    type: str = ""
    text: str | None = None
    refusal: str | None = None


element_decoder = msgspec.json.Decoder(Element)
_part_decoder = msgspec.json.Decoder(_Part)
_string_decoder = msgspec.json.Decoder(str)
_pieces_decoder = msgspec.json.Decoder(list[_Piece])


# --- wire to items ---------------------------------------------------------------------------------------------------


def input_elements(given: Raw) -> list[Raw]:
    """The elements of a request's `input`: a plain text is a message of the user."""
    if is_array(given):
        return elements(given)
    return [Raw(object_of([("role", b'"user"'), ("content", given)]))] if is_given(given) else []


def role_of(element: Element) -> Role:
    """The element's role. Elements of unknown kinds are the model's, unless they are results."""
    if element.role is not None:
        return _ROLES.get(element.role, "other")
    if element.type is None or not element.type.endswith(_FROM_CLIENT):
        return "assistant"
    # An output of a tool that ran at the provider is part of the step that called it, and between its thoughts.
    # `tool_search_output` says so; `shell_call_output` has an id where a container ran it (OpenAI's API reference, read
    # 2026-11-15).
    is_the_providers = element.execution == "server" or (element.type == "shell_call_output" and element.id is not None)
    return "assistant" if is_the_providers else "tool"


def decode_element(raw: Raw, dialect: Dialect, index: int) -> tuple[Role, tuple[Item, ...]]:
    """One element: its role and its items. `index` is its position in its turn."""
    element = decode_kind(element_decoder, raw, _KNOWN)
    if isinstance(element, str):
        return role_of(Element(element)), (Unknown(element, raw),)
    role = role_of(element)
    match element.type:
        case "message" | None if element.role == "assistant":
            return role, (Text(_message_text(element.content), None, element.id, raw),)
        case "message" | None if element.role is not None:
            return role, _decode_parts(element.content)
        case "reasoning":
            return role, _decode_reasoning(element, raw, dialect, index)
        case "function_call" | "custom_tool_call":
            return role, (_decode_call(element, raw),)
        case "function_call_output" | "custom_tool_call_output":
            return role, (ToolResult(element.output, element.call_id, element.name, raw),)
        case other:
            data = element.encrypted_content
            seal = Seal(data, dialect.reasoning_format) if data else None
            return role, (Unknown(other or "", raw, seal),)


def decode_answer_element(raw: Raw, dialect: Dialect, index: int) -> tuple[Item, ...]:
    """One element of an answer. A compaction also returns messages of the user, which are not the model's text."""
    role, items = decode_element(raw, dialect, index)
    return items if role in ("assistant", "tool") else (Unknown("message", raw),)


def _decode_call(element: Element, raw: Raw) -> ToolCall:
    is_custom = element.type == "custom_tool_call"
    given, place = (element.input, "/input") if is_custom else (element.arguments, "/arguments")
    # Other kinds of elements have objects in these members.
    text = decode(_string_decoder, given, place) if is_given(given) else ""
    call = ToolCall(element.name or "", text, element.call_id, element.id, is_custom, raw=raw)
    return replace(call, namespace=element.namespace) if element.namespace is not None else call


def _message_text(content: Raw) -> str:
    """The visible text of a message of the model: its parts joined, as a client shows them."""
    parts = decode_content(content)
    if parts is None or isinstance(parts, str):
        return parts or ""
    texts = []
    for position, raw in enumerate(parts):
        part = decode(_part_decoder, raw, f"/content/{position}")
        if part.type in _TEXT_PARTS:
            texts.append(part.text or part.refusal or "")
    return "".join(texts)


def _decode_parts(content: Raw) -> tuple[Item, ...]:
    parts = decode_content(content)
    if parts is None or isinstance(parts, str):
        return (Text(parts),) if parts else ()
    items: list[Item] = []
    for position, raw in enumerate(parts):
        part = decode(_part_decoder, raw, f"/content/{position}")
        items.append(Text(part.text, raw=raw) if part.text is not None else Unknown(part.type, raw))
    return tuple(items)


def _decode_reasoning(element: Element, raw: Raw, dialect: Dialect, index: int) -> tuple[Reasoning, ...]:
    made_by, name = dialect.reasoning_format, element.id
    items: list[Reasoning] = []
    for piece in element.summary or ():
        items.append(ReasoningSummary(piece.text or "", made_by, name, index, raw))
    if is_given(element.content):
        for piece in decode(_pieces_decoder, element.content, "/content"):
            items.append(ReasoningText(piece.text or "", None, made_by, id=name, index=index, raw=raw))
    if element.encrypted_content:
        items.append(ReasoningEncrypted(element.encrypted_content, made_by, name, index, raw))
    # An element with only an id is reasoning too: the provider stores the rest.
    return tuple(items) or (ReasoningSummary("", made_by, name, index, raw),)


class _AgentMessage(Struct, gc=False):
    author: str = ""
    recipient: str = ""
    content: list[_Part] = []


_agent_message_decoder = msgspec.json.Decoder(_AgentMessage)


def agent_words(raw: Raw) -> tuple[str, bool]:
    """A message between Codex's agents as text of a user, and whether that is all of it: some is sealed."""
    try:
        message = _agent_message_decoder.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return "", False
    texts = [part.text for part in message.content if part.text is not None]
    words = f"(Message from {message.author} to {message.recipient}:)\n{''.join(texts)}" if texts else ""
    return words, len(texts) == len(message.content)


# --- items to wire ---------------------------------------------------------------------------------------------------


def encode_elements(items: Sequence[Item], dialect: Dialect) -> list[bytes]:
    """The items of a model step as elements; reasoning items of one element are joined again."""
    encoded = []
    group: list[Reasoning] = []
    for item in items:
        if group and not (isinstance(item, REASONING_KINDS) and _belongs(item, group[-1])):
            encoded.append(encode_reasoning(group, dialect))
            group = []
        if isinstance(item, REASONING_KINDS):
            group.append(item)
        else:
            encoded.append(_encode_item(item, dialect))
    if group:
        encoded.append(encode_reasoning(group, dialect))
    return encoded


_RANK = {ReasoningSummary: 0, ReasoningText: 1, ReasoningEncrypted: 2}


def _belongs(item: Reasoning, last: Reasoning) -> bool:
    """Whether two neighbours are of one element: same id and index, summaries before text before ciphertext."""
    in_order = _RANK.get(type(last), 9) <= _RANK.get(type(item), -1) and not isinstance(last, ReasoningEncrypted)
    return in_order and (item.id, item.index) == (last.id, last.index)


def encode_reasoning(group: Sequence[Reasoning], dialect: Dialect) -> bytes:
    """One `reasoning` element: unchanged, or with the current items."""
    raw = group[0].raw
    before = _reasoning_before(raw, group[0].index, dialect) if raw else None
    if before == tuple(group):
        return bytes(raw)
    summaries, texts = [], []
    data: str | None = None
    for item in group:
        match item:
            case ReasoningSummary():
                summaries += [{"type": "summary_text", "text": item.summary}] if item.summary else []
            case ReasoningText(signature=None):
                texts.append({"type": "reasoning_text", "text": item.text})
            case ReasoningEncrypted():
                data = item.data if data is None else data
            case ReasoningText():
                raise ForeignSeal("a Responses element can't hold a signature")
            case _:
                raise EncodeError(f"a Responses element can't hold a {type(item).__name__}")
        is_sealed = isinstance(item, ReasoningEncrypted) or item.id is not None
        if is_sealed and item.format != dialect.reasoning_format:
            raise ForeignSeal(f"{item.format} reasoning can't go to a server that reads {dialect.reasoning_format}")
    base = bytes(raw) if before is not None else b'{"type":"reasoning"}'
    return set_members(
        base,
        [
            ("id", encode(group[0].id) if group[0].id is not None else None),
            ("summary", encode(summaries)),  # xAI and OpenAI require the key
            ("content", encode(texts) if texts else None),
            ("encrypted_content", encode(data) if data is not None else None),
        ],
    )


def _reasoning_before(raw: Raw, index: int | None, dialect: Dialect) -> tuple[Reasoning, ...] | None:
    """The items of an element, decoded from its JSON; None if it is no such element."""
    try:
        element = decode(element_decoder, raw)
        return _decode_reasoning(element, raw, dialect, index or 0) if element.type == "reasoning" else None
    except DecodeError:
        return None


def _encode_item(item: Item, dialect: Dialect) -> bytes:
    if isinstance(item, Unknown):
        return bytes(item.raw)
    if isinstance(item, (Text, ToolCall)) and item.seal is not None:
        raise ForeignSeal(f"a Responses element can't hold the seal of {item.seal.format}")
    before = _item_before(item, dialect) if item.raw else None
    if before is not None and before == item:
        return bytes(item.raw)
    match item:
        case Text():
            name = item.id
            part = {"type": "output_text", "text": item.text, "annotations": []}
            new = [("type", b'"message"'), ("role", b'"assistant"'), ("content", encode([part]))]
        case ToolCall():
            name = item.item_id
            kind, text = ("custom_tool_call", "input") if item.is_custom else ("function_call", "arguments")
            new = [("type", encode(kind)), ("call_id", encode(item.id or "")), ("name", encode(item.name))]
            new += [("namespace", encode(item.namespace))] if item.namespace is not None else []
            new.append((text, encode(item.arguments)))
        case ToolResult():
            new = [("type", b'"function_call_output"'), ("call_id", encode(item.call_id or ""))]
            return object_of([*new, ("output", item.content)])
        case _:
            raise EncodeError(f"a Responses list can't hold a {type(item).__name__}")
    base = bytes(item.raw) if before is not None else object_of(new)
    return set_members(base, [("id", encode(name) if name is not None else None)])


def _item_before(item: Item, dialect: Dialect) -> Item | None:
    """The item decoded from its JSON, if that is an element that differs at most in its ids."""
    try:
        _, items = decode_element(item.raw, dialect, 0)
    except DecodeError:
        return None
    before = items[0] if len(items) == 1 else None
    match before, item:
        case Text(), Text():
            return before if before.text == item.text else None
        case ToolCall(), ToolCall():
            same = (before.name, before.namespace, before.arguments, before.id)
            return before if same == (item.name, item.namespace, item.arguments, item.id) else None
        case _:
            return before if before == item else None


UNSAID: tuple[tuple[str, bytes], ...] = (
    ("parallel_tool_calls", b"true"),
    ("tool_choice", b'"auto"'),
    ("tools", b"[]"),
)
"""Members that every response has but a typed reply lacks: OpenAI's defaults."""

_NAMES = {"message": "msg", "reasoning": "rs", "function_call": "fc", "custom_tool_call": "ctc"}


def complete_element(element: bytes, reply_id: str | None, number: int) -> bytes:
    """An element of an answer with the id and the status that its own server would have set."""
    known = members(element)
    kind = msgspec.json.decode(known.get("type", NULL), type=str | None) or ""
    changes: list[tuple[str, bytes]] = []
    if kind in _NAMES and not is_given(known.get("id", NULL)):
        changes.append(("id", encode(f"{_NAMES[kind]}_{reply_id or 'thoughtline'}_{number}")))
    if kind in _NAMES and kind != "reasoning" and "status" not in known:
        changes.append(("status", b'"completed"'))
    return set_members(element, changes) if changes else element


def encode_message(role: str, items: Sequence[Item], before: bytes | None) -> bytes:
    """A message of any role but the model's. A single text that was not in a list stays text."""
    if len(items) == 1 and isinstance(items[0], Text) and not items[0].raw and before is not None:
        return set_members(before, [("content", encode(items[0].text))])
    parts = []
    for item in items:
        match item:
            case Text() if not item.raw:
                parts.append(encode({"type": "input_text", "text": item.text}))
            case Text() | Unknown():
                parts.append(bytes(item.raw))
            case _:
                raise EncodeError(f"a message of role {role} can't hold a {type(item).__name__}")
    if before is not None:
        return set_members(before, [("content", array(parts))])
    return object_of([("type", b'"message"'), ("role", encode(role)), ("content", array(parts))])
