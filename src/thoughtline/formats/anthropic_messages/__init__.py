"""The Messages API: Anthropic itself, Vertex, and the compatible APIs of DeepSeek, Kimi, MiMo and MiniMax.

Reasoning is `thinking` and `redacted_thinking` blocks, in order among the others. Other proxies write blocks of
type `reasoning`, which are decoded too.
"""

import re

from thoughtline.formats.anthropic_messages import bodies, notes, options
from thoughtline.formats.anthropic_messages.stream import TEXTS, StreamDecoder
from thoughtline.formats.anthropic_messages.stream_encoder import StreamEncoder
from thoughtline.formats.anthropic_messages.thinking import MODES
from thoughtline.formats.cache_marks import CacheMarks, member_mark
from thoughtline.formats.counting import only
from thoughtline.formats.errors import read_error, word_for
from thoughtline.formats.json_text import encode
from thoughtline.formats.paths import ClientPath, PublishedMethods, by_tail, versioned
from thoughtline.formats.thinking import SettingPlace, without
from thoughtline.formats.wire import (
    ErrorCodec,
    HeldConversation,
    IdRule,
    MessagePlace,
    ModelList,
    NotePlace,
    Wire,
    body_codec,
)
from thoughtline.providers import ANTHROPIC
from thoughtline.values.errors import ErrorReply, FailureKind
from thoughtline.values.items import Text

_CALL_IDS = IdRule(re.compile(r"[a-zA-Z0-9_-]{1,64}"), is_unique=True)

_OWN_PATH = by_tail(("generate", "messages"), ("count_tokens", "messages/count_tokens"))
_PUBLISHED = PublishedMethods(
    "anthropic",
    generate="rawPredict",
    stream="streamRawPredict",
    counting="rawPredict",
    counted="count-tokens",
    version=("anthropic_version", "vertex-2023-10-16"),
)


def _client_path(segments: list[str]) -> ClientPath | None:
    return _OWN_PATH(segments) or _PUBLISHED.find(segments)


# Anthropic docs, Errors.
_TYPES = {
    400: "invalid_request_error",
    401: "authentication_error",
    402: "billing_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    500: "api_error",
    504: "timeout_error",
    529: "overloaded_error",
}
_FAILURES: dict[str, FailureKind] = {
    "overloaded_error": "overloaded",
    "rate_limit_error": "busy",
    "timeout_error": "late",
    "api_error": "broken",
}


def _error(error: ErrorReply) -> dict[str, object]:
    kind = word_for(_TYPES, error.status, client="invalid_request_error", server="api_error")
    written: dict[str, object] = {"type": kind, "message": error.message}
    if error.is_ours:
        written["code"] = error.code
        if str(error.code).startswith("thread_"):  # where Anthropic's SDK looks for it
            written["details"] = {"error_code": error.code}
    return written


def _write_error(error: ErrorReply) -> bytes:
    return encode({"type": "error", "error": _error(error), "request_id": error.request_id})


def _models(names: tuple[str, ...]) -> bytes:
    models = [
        {"type": "model", "id": name, "display_name": name, "created_at": "1970-01-01T00:00:00Z"} for name in names
    ]
    ends = {"first_id": names[0] if names else None, "last_id": names[-1] if names else None}
    return encode({"data": models, "has_more": False, **ends})


WIRE = Wire(
    name="anthropic_messages",
    family="anthropic",
    dialect=ANTHROPIC,
    bodies=body_codec(bodies),
    stream_decoder=StreamDecoder,
    stream_encoder=StreamEncoder,
    stream_type=b"text/event-stream; charset=utf-8",
    stream_query="",
    inside="",
    list_member="messages",
    item_member="content",
    message=MessagePlace((), "assistant", "content"),
    system="blocks",
    system_members=("system",),
    telling_members=("anthropic_version", "max_tokens_to_sample"),
    telling_words=(b'"tool_use"', b'"tool_result"', b'"redacted_thinking"', b'"tool_use_id"'),
    telling_element=None,
    client_path=_client_path,
    upstream_path=lambda base, model, is_streaming: versioned(base, "v1", "/messages"),
    published=_PUBLISHED,
    count_path=lambda base, model: versioned(base, "v1", "/messages/count_tokens"),
    count_body=only(("model", "messages", "system", "tools", "tool_choice", "thinking")),
    count_member="input_tokens",
    count_beside={},
    count_inside="",
    version="v1",
    headers=((b"anthropic-version", b"2023-06-01"),),
    # 20 per page by default.
    models=ModelList(encode=_models, query="limit=1000", path="", header=b"anthropic-version"),
    errors=ErrorCodec(read_error, _error, _write_error, failures=_FAILURES),
    in_lists=None,
    options=options,
    has_openai_tools=False,
    built_in_tools=frozenset({"web_search"}),
    tool_shapes="typed",
    unasked=without("thinking"),
    switches=("thinking",),
    thinking=SettingPlace(replaced=("thinking",)),
    thinking_modes=MODES,
    inclusion=None,
    call_ids=_CALL_IDS,
    upstream_call_ids=_CALL_IDS,
    has_turns_of_blocks=True,
    has_object_arguments=True,
    encode_words=Text,
    texts=TEXTS,
    notes=NotePlace(
        has_citations=True,
        has_quotes=True,
        places="none",
        decode=notes.decode_notes,
        mark=re.compile(rb'"citations"'),
        encode=notes.encode_noted,
        wants=notes.wants_citations,
    ),
    cache_marks=CacheMarks(b'"cache_control"', member_mark, bodies.mark_block, is_usual=True, is_needed=True),
    response_prefix="msg_",
    envelope_slot="block",
    held=HeldConversation(
        member="thread",
        kept_as="threads",
        is_usual=False,
        title="message threads",
        code="thread_unsupported_request",
        remedy="Send the full conversation without `thread`.",
        goes_on=lambda thread: b'"continue"' in bytes(thread),
    ),
    quirks=frozenset(
        {"attribution", "claude_finishes", "max_tokens_needed", "not_last", "unsigned_refused", "usual_tier"}
    ),
)
