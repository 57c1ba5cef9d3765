"""Ollama's own API: `/api/chat`, and `/api/generate` as a conversation of one prompt.

Reasoning is the member `thinking` next to the content; a stream is one JSON object a line.
"""

import re

from thoughtline.formats.errors import read_error
from thoughtline.formats.json_text import encode
from thoughtline.formats.ollama_chat import chat, options
from thoughtline.formats.ollama_chat.stream import TEXTS, StreamDecoder, StreamEncoder
from thoughtline.formats.paths import by_tail, without_version
from thoughtline.formats.thinking import SettingPlace, without
from thoughtline.formats.vendor_shapes import OPENAI_MODELS
from thoughtline.formats.wire import ErrorCodec, IdRule, MessagePlace, NotePlace, Wire, body_codec
from thoughtline.providers import OLLAMA
from thoughtline.values.errors import ErrorReply
from thoughtline.values.items import Text

_CALL_IDS = IdRule(re.compile(r".{0,64}", re.DOTALL), is_required=False)


def _write_error(error: ErrorReply) -> bytes:
    return encode({"error": error.message} | ({"code": error.code} if error.is_ours else {}))


WIRE = Wire(
    name="ollama_chat",
    family="ollama",
    dialect=OLLAMA,
    bodies=body_codec(chat),
    stream_decoder=StreamDecoder,
    stream_encoder=StreamEncoder,
    stream_type=b"application/x-ndjson",
    stream_query="",
    inside="",
    list_member="messages",
    item_member="",
    message=MessagePlace(("message",), "assistant", "content"),
    system="messages",
    system_members=("system",),
    telling_members=("options", "keep_alive"),
    telling_words=(),
    telling_element=None,
    client_path=by_tail(("generate", "api/chat")),
    upstream_path=lambda base, model, is_streaming: f"{without_version(base)}/api/chat",
    published=None,
    count_path=None,
    count_body=None,
    count_member="input_tokens",
    count_beside={},
    count_inside="",
    version="v1",
    headers=(),
    models=OPENAI_MODELS,
    errors=ErrorCodec(read_error, lambda error: error.message, _write_error, failures={}),
    in_lists=None,
    options=options,
    has_openai_tools=False,
    built_in_tools=frozenset(),
    tool_shapes="functions",
    unasked=without("think"),
    switches=("think",),
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
    quirks=frozenset({"chat_templates", "one_text", "single_prompt", "thinks_unasked"}),
)
