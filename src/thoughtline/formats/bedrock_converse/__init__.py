"""Bedrock's Converse and ConverseStream, for every model that Bedrock serves.

A content block is an object whose one member names its kind; reasoning is `reasoningContent`: text with a signature, or
a redacted blob.
"""

import re

from thoughtline.formats.aws_event_stream import CONTENT_TYPE
from thoughtline.formats.bedrock_converse import blocks, bodies, options
from thoughtline.formats.bedrock_converse.stream import TEXTS, StreamDecoder, StreamEncoder
from thoughtline.formats.cache_marks import CacheMarks
from thoughtline.formats.thinking import SettingPlace
from thoughtline.formats.vendor_shapes import AMAZON_ERRORS, OPENAI_MODELS, amazon_paths
from thoughtline.formats.wire import IdRule, MessagePlace, NotePlace, Wire, body_codec
from thoughtline.providers import BEDROCK_CLAUDE
from thoughtline.values.items import Text

_CALL_IDS = IdRule(re.compile(r"[a-zA-Z0-9_-]{1,64}"), is_unique=True)
_CLIENT_PATH, _UPSTREAM_PATH = amazon_paths("converse", "converse-stream")


WIRE = Wire(
    name="bedrock_converse",
    family="bedrock",
    dialect=BEDROCK_CLAUDE,
    bodies=body_codec(bodies),
    stream_decoder=StreamDecoder,
    stream_encoder=StreamEncoder,
    stream_type=CONTENT_TYPE.encode(),
    stream_query="",
    inside="",
    list_member="messages",
    item_member="content",
    message=MessagePlace(("output", "message"), "assistant", "content"),
    system="blocks",
    system_members=("system",),
    telling_members=("inferenceConfig", "toolConfig"),
    telling_words=(),
    telling_element=None,
    client_path=_CLIENT_PATH,
    upstream_path=_UPSTREAM_PATH,
    published=None,
    count_path=None,
    count_body=None,
    count_member="input_tokens",
    count_beside={},
    count_inside="",
    version="v1",
    headers=(),
    models=OPENAI_MODELS,
    errors=AMAZON_ERRORS,
    in_lists=None,
    options=options,
    has_openai_tools=False,
    built_in_tools=frozenset(),
    tool_shapes="functions",
    unasked=options.unasked,
    switches=("additionalModelRequestFields",),
    thinking=SettingPlace(),
    thinking_modes=None,
    inclusion=None,
    call_ids=_CALL_IDS,
    upstream_call_ids=_CALL_IDS,
    has_turns_of_blocks=True,
    has_object_arguments=True,
    encode_words=Text,
    texts=TEXTS,
    notes=NotePlace(decode=blocks.decode_notes, mark=re.compile(rb'"citationsContent"')),
    cache_marks=CacheMarks(b'"cachePoint"', blocks.mark_of, blocks.mark_block, stands_apart=True, is_needed=True),
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
