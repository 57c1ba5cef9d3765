"""thoughtline remembers what a model thought, and puts it back where the provider wants it.

Today it is the foundation: bytes of any provider in, typed turns out, and the same bytes back.

    from thoughtline import FORMATS
    chat = FORMATS["openai_chat"]
    transcript = chat.bodies.decode_request(body, chat.dialect)
"""

from thoughtline.errors import DecodeError, EncodeError, Fault, ForeignSeal, LimitExceeded, ThoughtlineError
from thoughtline.formats import FORMATS, Format
from thoughtline.items import (
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
from thoughtline.providers import Dialect
from thoughtline.replay.capture import fold
from thoughtline.turns import Candidate, Finish, Provenance, Reply, Transcript, Turn, Usage

__all__ = [
    "FORMATS",
    "Candidate",
    "DecodeError",
    "Dialect",
    "EncodeError",
    "Fault",
    "Finish",
    "ForeignSeal",
    "Format",
    "Item",
    "LimitExceeded",
    "Provenance",
    "Reasoning",
    "ReasoningEncrypted",
    "ReasoningFormat",
    "ReasoningServerToolCall",
    "ReasoningSummary",
    "ReasoningText",
    "Reply",
    "Seal",
    "Text",
    "ThoughtlineError",
    "ToolCall",
    "ToolResult",
    "Transcript",
    "Turn",
    "Unknown",
    "Usage",
    "fold",
]
