"""Command Code's `/alpha/generate`: messages of the AI SDK in an envelope, answered with its stream parts.

    {"config": …, "memory": …, "params": {"model": …, "messages": …}}      {"type": "reasoning-delta", "text": …}

Every answer is a stream of JSON lines. A seal is the `providerMetadata` of a part, and is sent back as its
`providerOptions`.
"""

import re

from thoughtline.formats.command_code_generate import bodies, options
from thoughtline.formats.command_code_generate.stream import TEXTS, StreamDecoder, StreamEncoder
from thoughtline.formats.errors import read_error, word_for
from thoughtline.formats.json_text import encode
from thoughtline.formats.paths import by_tail
from thoughtline.formats.thinking import SettingPlace, without
from thoughtline.formats.vendor_shapes import OPENAI_MODELS
from thoughtline.formats.wire import ErrorCodec, IdRule, MessagePlace, NotePlace, Wire, body_codec
from thoughtline.providers import COMMAND_CODE
from thoughtline.values.errors import ErrorReply
from thoughtline.values.items import Text

_CALL_IDS = IdRule(re.compile(r".{1,256}", re.DOTALL))
_CODES = {401: "UNAUTHORIZED", 403: "FORBIDDEN", 404: "NOT_FOUND", 429: "RATE_LIMITED"}


def _error(error: ErrorReply) -> dict[str, object]:
    code = error.code or word_for(_CODES, error.status, client="BAD_REQUEST", server="INTERNAL_SERVER_ERROR")
    return {"code": code, "status": error.status, "message": error.message}


WIRE = Wire(
    name="command_code_generate",
    family="command-code",
    dialect=COMMAND_CODE,
    bodies=body_codec(bodies),
    stream_decoder=StreamDecoder,
    stream_encoder=StreamEncoder,
    stream_type=b"application/x-ndjson",
    stream_query="",
    inside="params",
    list_member="messages",
    item_member="content",
    message=MessagePlace(("message",), "assistant", "content"),
    system="text",
    system_members=("system",),
    telling_members=("params",),
    telling_words=(b'"tool-call"', b'"tool-result"'),
    telling_element=None,
    client_path=by_tail(("generate", "alpha/generate")),
    upstream_path=lambda base, model, is_streaming: f"{base.removesuffix('/alpha')}/alpha/generate",
    published=None,
    count_path=None,
    count_body=None,
    count_member="input_tokens",
    count_beside={},
    count_inside="",
    version="alpha",
    headers=(),
    models=OPENAI_MODELS,
    errors=ErrorCodec(
        read_error, _error, lambda error: encode({"success": False, "error": _error(error)}), failures={}
    ),
    in_lists=None,
    options=options,
    has_openai_tools=False,
    built_in_tools=frozenset(),
    tool_shapes="functions",
    unasked=without("reasoning_effort"),
    switches=("reasoning_effort",),
    thinking=SettingPlace(),
    thinking_modes=None,
    inclusion=None,
    call_ids=_CALL_IDS,
    upstream_call_ids=_CALL_IDS,
    has_turns_of_blocks=False,
    has_object_arguments=True,
    encode_words=Text,
    texts=TEXTS,
    notes=NotePlace(),
    cache_marks=None,
    response_prefix="",
    envelope_slot="none",
    held=None,
    quirks=frozenset({"seals_on_items", "streams_only"}),
)
