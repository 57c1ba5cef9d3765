"""thoughtline remembers what a model thought, and puts it back where the provider wants it.

    Replayer   prepares a request over a store, heals a refused one, saves what a `Watch` heard of the response
    audit      says what a provider would refuse in a request
    FORMATS    bytes of any wire to typed turns and back

Without a store of ours: `needs` says which keys to look for, the caller fetches their records, `plan` decides what to
put back, take out or report.
"""

from thoughtline.audit import audit
from thoughtline.codecs import OpenRouterReasoningCodec, ReasoningCodec, codec_for
from thoughtline.contract_book import ContractBook
from thoughtline.formats import FORMATS, Wire
from thoughtline.lessons import Lessons
from thoughtline.prepared import Prepared
from thoughtline.preserver import (
    attach_to_tool_calls,
    build_assistant_message_with_reasoning,
    build_google_model_message_with_thinking,
    extract_from_response,
    extract_from_stream_chunk,
    extract_from_tool_calls,
    extract_thought_signature_from_part,
    preserve_reasoning_content,
    reasoning_request_params,
    requires_reasoning_preservation,
)
from thoughtline.providers import Contract, Dialect
from thoughtline.replay.capture import capture, fold
from thoughtline.replay.detection import resolve
from thoughtline.replay.findings import Finding
from thoughtline.replay.planner import Needs, Plan, Policy, needs, plan
from thoughtline.replay.refusals import Correction, Refusal, classify, learn
from thoughtline.replay.turn_audit import ReplayAudit, ReplayContract, audit_replay
from thoughtline.replayer import Replayer
from thoughtline.stores import StoreSettings, open_store
from thoughtline.values.destination import Destination
from thoughtline.values.errors import DecodeError, EncodeError, Fault, ForeignSeal, LimitExceeded, ThoughtlineError
from thoughtline.values.identity import Identity
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
from thoughtline.watching import StreamWatch, Watch

Issuer = Target = Destination  # names it had where it stood for a part of this

__all__ = [
    "FORMATS",
    "Candidate",
    "Contract",
    "ContractBook",
    "Correction",
    "DecodeError",
    "Destination",
    "Dialect",
    "EncodeError",
    "Fault",
    "Finding",
    "Finish",
    "ForeignSeal",
    "Identity",
    "Issuer",
    "Item",
    "Key",
    "Lessons",
    "LimitExceeded",
    "Needs",
    "OpenRouterReasoningCodec",
    "Plan",
    "Policy",
    "Prepared",
    "Provenance",
    "Reasoning",
    "ReasoningCodec",
    "ReasoningEncrypted",
    "ReasoningFormat",
    "ReasoningServerToolCall",
    "ReasoningSummary",
    "ReasoningText",
    "Record",
    "Refusal",
    "ReplayAudit",
    "ReplayContract",
    "Replayer",
    "Reply",
    "Seal",
    "StoreSettings",
    "StreamWatch",
    "Target",
    "Text",
    "ThoughtlineError",
    "ToolCall",
    "ToolResult",
    "Transcript",
    "Turn",
    "Unknown",
    "Usage",
    "Watch",
    "Wire",
    "attach_to_tool_calls",
    "audit",
    "audit_replay",
    "build_assistant_message_with_reasoning",
    "build_google_model_message_with_thinking",
    "capture",
    "classify",
    "codec_for",
    "extract_from_response",
    "extract_from_stream_chunk",
    "extract_from_tool_calls",
    "extract_thought_signature_from_part",
    "fold",
    "learn",
    "needs",
    "open_store",
    "plan",
    "preserve_reasoning_content",
    "reasoning_request_params",
    "requires_reasoning_preservation",
    "resolve",
]
