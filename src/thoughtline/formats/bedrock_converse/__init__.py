"""Bedrock's Converse and ConverseStream, for every model that Bedrock serves.

A content block is an object with one member that says what it is; reasoning is `reasoningContent`, text with a
signature or a redacted blob.
"""

import re
from urllib.parse import quote

from thoughtline.formats.aws_event_stream import CONTENT_TYPE
from thoughtline.formats.bedrock_converse import bodies, notes, options
from thoughtline.formats.bedrock_converse.stream import StreamDecoder
from thoughtline.formats.bedrock_converse.stream_encoder import StreamEncoder
from thoughtline.formats.bedrock_converse.texts import TEXTS
from thoughtline.formats.errors import read_error, word_for
from thoughtline.formats.json_text import encode
from thoughtline.formats.openai_shapes import OPENAI_MODELS
from thoughtline.formats.paths import ClientPath
from thoughtline.formats.wire import ErrorCodec, IdRule, MessagePlace, NotePlace, Wire, body_codec
from thoughtline.providers import BEDROCK_CLAUDE
from thoughtline.values.errors import ErrorReply
from thoughtline.values.items import Text

_CALL_IDS = IdRule(re.compile(r"[a-zA-Z0-9_-]{1,64}"), is_unique=True)
_METHODS = {"converse": False, "converse-stream": True}

# Amazon Bedrock API reference, Converse, Errors; 401 of the service's common errors.
_TYPES = {
    401: "UnrecognizedClientException",
    403: "AccessDeniedException",
    404: "ResourceNotFoundException",
    408: "ModelTimeoutException",
    424: "ModelErrorException",
    429: "ThrottlingException",
    503: "ServiceUnavailableException",
}


def _client_path(segments: list[str]) -> ClientPath | None:
    match segments:
        case ["model", model, method] if model and method in _METHODS:
            return ClientPath(model=model, is_streaming=_METHODS[method])
        case _:
            return None


def _upstream_path(base: str, model: str, is_streaming: bool) -> str:
    return f"{base}/model/{quote(model, safe='')}/converse{'-stream' if is_streaming else ''}"


def _write_error(error: ErrorReply) -> bytes:
    """Amazon names the error in a header; its SDKs look for `__type` where that is missing, JavaScript's for `code`
    before that: ours is the `reason`."""
    kind = word_for(_TYPES, error.status, client="ValidationException", server="InternalServerException")
    return encode({"__type": kind, "message": error.message} | ({"reason": error.code} if error.is_ours else {}))


WIRE = Wire(
    name="bedrock_converse",
    dialect=BEDROCK_CLAUDE,
    bodies=body_codec(bodies, bodies),
    stream_decoder=StreamDecoder,
    stream_encoder=StreamEncoder,
    stream_type=CONTENT_TYPE.encode(),
    stream_query="",
    list_member="messages",
    item_member="content",
    message=MessagePlace(("output", "message"), "assistant", "content"),
    system="blocks",
    telling_members=("inferenceConfig", "toolConfig"),
    telling_words=(),
    client_path=_client_path,
    upstream_path=_upstream_path,
    count_path=None,
    count_body=None,
    count_member="input_tokens",
    version="v1",
    headers=(),
    models=OPENAI_MODELS,
    errors=ErrorCodec(read_error, lambda error: {"message": error.message}, _write_error),
    options=options,
    has_openai_tools=False,
    built_in_tools=frozenset(),
    tool_shapes="functions",
    unasked=options.unasked,
    call_ids=_CALL_IDS,
    upstream_call_ids=_CALL_IDS,
    has_turns_of_blocks=True,
    has_object_arguments=True,
    encode_words=Text,
    texts=TEXTS,
    notes=NotePlace(decode=notes.decode_notes),
    response_prefix="",
    envelope_slot="none",
    held=None,
    quirks=frozenset(
        {
            "claude_finishes",
            "models_elsewhere",
            "no_off_switch",
            "signed_requests",
            "streamed_by_address",
            "tools_needed",
            "unsigned_refused",
        }
    ),
)
