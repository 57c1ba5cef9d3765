"""Every name that `import thoughtline` offers."""

from thoughtline.auditing import audit
from thoughtline.codecs import OpenRouterReasoningCodec, ReasoningCodec, codec_for
from thoughtline.contract_book import ContractBook
from thoughtline.credentials import account_of, tenant_of
from thoughtline.formats import FORMATS, Wire
from thoughtline.lessons import Lessons
from thoughtline.line import AsyncExchange, Line, LineReport, SyncExchange, remember
from thoughtline.outgoing import AskedAddress, provider_of, read_address
from thoughtline.prepared import Prepared
from thoughtline.preserver import (
    ReasoningDetails,
    attach_to_tool_calls,
    build_assistant_message_with_reasoning,
    build_google_model_message_with_thinking,
    extract_from_response,
    extract_from_stream_chunk,
    extract_from_tool_calls,
    extract_thought_signature_from_part,
    merge_stream_details,
    preserve_reasoning_content,
    reasoning_request_params,
    requires_reasoning_preservation,
)
from thoughtline.providers import Contract, Dialect
from thoughtline.replay.detection import resolve
from thoughtline.replay.findings import Finding
from thoughtline.replay.planner import Needs, Plan, Policy, needs, plan
from thoughtline.replay.refusals import Correction, Refusal, classify, learn
from thoughtline.replay.turn_audit import (
    ReplayAudit,
    ReplayContract,
    ReplayViolation,
    audit_replay,
    replay_contract_of,
)
from thoughtline.replayer import Replayer
from thoughtline.sessions import session_of
from thoughtline.stores import StoreSettings, open_store
from thoughtline.values.destination import Destination
from thoughtline.values.errors import DecodeError, EncodeError, Fault, ForeignSeal, LimitExceeded, ThoughtlineError
from thoughtline.values.events import fold
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
from thoughtline.watching import StreamWatch, Watch, capture

ReasoningItem = Reasoning
Issuer = Target = Destination  # its former names

__all__ = [
    "FORMATS",
    "AskedAddress",
    "AsyncExchange",
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
    "Line",
    "LineReport",
    "Needs",
    "OpenRouterReasoningCodec",
    "Plan",
    "Policy",
    "Prepared",
    "Provenance",
    "Reasoning",
    "ReasoningCodec",
    "ReasoningDetails",
    "ReasoningEncrypted",
    "ReasoningFormat",
    "ReasoningItem",
    "ReasoningServerToolCall",
    "ReasoningSummary",
    "ReasoningText",
    "Record",
    "Refusal",
    "ReplayAudit",
    "ReplayContract",
    "ReplayViolation",
    "Replayer",
    "Reply",
    "Seal",
    "StoreSettings",
    "StreamWatch",
    "SyncExchange",
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
    "account_of",
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
    "merge_stream_details",
    "needs",
    "open_store",
    "plan",
    "preserve_reasoning_content",
    "provider_of",
    "read_address",
    "reasoning_request_params",
    "remember",
    "replay_contract_of",
    "requires_reasoning_preservation",
    "resolve",
    "session_of",
    "tenant_of",
]
