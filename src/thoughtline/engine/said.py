"""What was said to a model between two of its turns: the user's words and the results of tools, as they are kept where
`[dashboard] keep_text` asks for it. Nothing of this is used to restore anything.
"""

from __future__ import annotations

import msgspec
from msgspec import Raw, Struct

from thoughtline.values.items import Item, Text, ToolCall, ToolResult, Unknown
from thoughtline.values.records import Key, Record, RecordId, digest
from thoughtline.values.turns import Transcript

MAX_CHARS = 32 * 2**10
"""Of one message or result. A file that an agent has read is mostly longer than anybody reads here."""

MAX_ITEMS = 256

_TEXTS = ("text", "input_text", "output_text")


class _Block(Struct):
    """A part of a result."""

    type: str = "text"
    text: str = ""


def said_in(transcript: Transcript | None) -> tuple[Item, ...]:
    """What stands behind the model's last turn, without system prompts."""
    if transcript is None:
        return ()
    found: list[Item] = []
    for turn in reversed(transcript.turns):
        if turn.role == "assistant":
            break
        if turn.role in ("user", "tool"):
            found[:0] = [kept for item in turn.items if (kept := _kept(item)) is not None]
    return tuple(found[-MAX_ITEMS:])


def said_record(record: Record, words: tuple[Item, ...]) -> Record:
    """The words before a turn, as a record of another store: whatever finds the turn to delete it finds them too."""
    calls = [ToolCall("", "", id=call_id) for call_id in record.call_ids]
    return Record(
        RecordId(digest(b"said " + record.id.encode()).hex()),
        record.provenance,
        (*words, *calls),
        keys=(Key(f"said-1:{record.id}"),),
        created_at=record.created_at,
        since=record.id,
    )


def shown(record: Record) -> tuple[Item, ...]:
    """The words of such a record."""
    return tuple(item for item in record.items if not isinstance(item, ToolCall))


def first_words(items: tuple[Item, ...], limit: int = 80) -> str:
    """The first line that a user wrote, as a title. What a client puts around it in tags is left out."""
    for item in items:
        if isinstance(item, Text) and (words := _without_tags(item.text)):
            line = " ".join(words.split("\n", 1)[0].split())
            return line if len(line) <= limit else line[: limit - 1].rstrip() + "…"
    return ""


def _without_tags(text: str) -> str:
    """`<system-reminder>…</system-reminder>` and the like, as long as the text begins with them."""
    text = text.strip()
    while text.startswith("<"):
        name = text[1:].partition(">")[0].split(" ")[0]
        _, end, rest = text.partition(f"</{name}>")
        if not end:
            return ""
        text = rest.strip()
    return text


def _kept(item: Item) -> Item | None:
    match item:
        case Text():
            return Text(_cut(item.text)) if item.text.strip() else None
        case ToolResult():
            return ToolResult(Raw(msgspec.json.encode(_cut(text_of(item.content)))), item.call_id, item.name)
        case Unknown():
            return Unknown(item.kind, Raw(b"null"))
        case _:
            return None


def text_of(content: Raw) -> str:
    """A result as text: the string itself, the texts of its parts, or its JSON."""
    raw = bytes(content)
    try:
        if raw[:1] == b'"':
            return msgspec.json.decode(raw, type=str)
        if raw[:1] == b"[":
            blocks = msgspec.json.decode(raw, type=list[_Block])
            return "\n".join(block.text if block.type in _TEXTS else f"[{block.type}]" for block in blocks)
    except (msgspec.DecodeError, UnicodeDecodeError):
        pass
    return raw.decode("utf-8", "replace")


def _cut(text: str) -> str:
    left = len(text) - MAX_CHARS
    return text if left <= 0 else f"{text[:MAX_CHARS]}\n… ({left:,} more characters)"
