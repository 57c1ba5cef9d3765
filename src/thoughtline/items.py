"""What a conversation is made of: items (text, calls, reasoning), turns of them, and the records they are kept in."""

from __future__ import annotations

from thoughtline.values.events import fold
from thoughtline.values.items import (
    Item,
    Reasoning,
    ReasoningEncrypted,
    ReasoningFormat,
    ReasoningServerToolCall,
    ReasoningSummary,
    ReasoningText,
    Seal,
    Text,
    ToolCall,
    ToolResult,
    Unknown,
)
from thoughtline.values.records import Key, Record
from thoughtline.values.turns import Candidate, Finish, Provenance, Reply, Transcript, Turn, Usage

ReasoningItem = Reasoning

__all__ = [
    "Candidate",
    "Finish",
    "Item",
    "Key",
    "Provenance",
    "Reasoning",
    "ReasoningEncrypted",
    "ReasoningFormat",
    "ReasoningItem",
    "ReasoningServerToolCall",
    "ReasoningSummary",
    "ReasoningText",
    "Record",
    "Reply",
    "Seal",
    "Text",
    "ToolCall",
    "ToolResult",
    "Transcript",
    "Turn",
    "Unknown",
    "Usage",
    "fold",
]
