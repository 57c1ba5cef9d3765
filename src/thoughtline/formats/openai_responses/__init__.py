"""The Responses API: OpenAI, Azure, xAI, and the compatible APIs of DeepSeek, OpenRouter and local servers.

A conversation is a flat list of elements. Reasoning is an element of its own, before the elements that follow
from it, and is paired with them by ids.
"""

import re

from thoughtline.formats.counting import only
from thoughtline.formats.openai_responses import bodies, notes, options
from thoughtline.formats.openai_responses.stream import TEXTS, StreamDecoder
from thoughtline.formats.openai_responses.stream_encoder import StreamEncoder
from thoughtline.formats.paths import below_openai, by_tail
from thoughtline.formats.thinking import SettingPlace, without
from thoughtline.formats.vendor_shapes import OPENAI_ERRORS, OPENAI_MODELS
from thoughtline.formats.wire import HeldConversation, IdRule, Inclusion, MessagePlace, NotePlace, Wire, body_codec
from thoughtline.providers import OPENAI_RESPONSES

_CALL_IDS = IdRule(re.compile(r".{1,64}", re.DOTALL), is_unique=True)

# OpenAI's API reference, Get input token counts, read 2026-11.
_COUNTED = only(
    (
        *("model", "input", "instructions", "tools", "tool_choice", "parallel_tool_calls"),
        *("reasoning", "text", "truncation", "previous_response_id", "conversation"),
    )
)

WIRE = Wire(
    name="openai_responses",
    family="openai-responses",
    dialect=OPENAI_RESPONSES,
    bodies=body_codec(bodies),
    stream_decoder=StreamDecoder,
    stream_encoder=StreamEncoder,
    stream_type=b"text/event-stream; charset=utf-8",
    stream_query="",
    inside="",
    list_member="input",
    item_member="",
    message=MessagePlace(("output",), "", ""),
    system="text",
    system_members=("instructions",),
    telling_members=("input",),
    telling_words=(),
    telling_element="type",
    client_path=by_tail(
        ("generate", "responses"), ("compact", "responses/compact"), ("count_tokens", "responses/input_tokens")
    ),
    upstream_path=lambda base, model, is_streaming: below_openai(base, "/responses"),
    published=None,
    count_path=lambda base, model: below_openai(base, "/responses/input_tokens"),
    count_body=_COUNTED,
    count_member="input_tokens",
    count_beside={"object": "response.input_tokens"},
    count_inside="",
    version="v1",
    headers=(),
    models=OPENAI_MODELS,
    errors=OPENAI_ERRORS,
    in_lists=None,
    options=options,
    has_openai_tools=True,
    built_in_tools=frozenset({"web_search"}),
    tool_shapes="namespaces",
    unasked=without("reasoning"),
    switches=("reasoning",),
    thinking=SettingPlace(stale=("max_tokens",)),
    thinking_modes=None,
    inclusion=Inclusion("include", "reasoning.encrypted_content"),
    call_ids=_CALL_IDS,
    upstream_call_ids=_CALL_IDS,
    has_turns_of_blocks=False,
    has_object_arguments=False,
    encode_words=options.encode_words,
    texts=TEXTS,
    notes=NotePlace(
        has_citations=True,
        places="needed",
        decode=notes.decode_notes,
        mark=notes.MARK,
        encode=notes.encode_noted,
    ),
    cache_marks=None,
    response_prefix="resp_",
    envelope_slot="element",
    held=HeldConversation(
        member="conversation",
        kept_as="conversations",
        is_usual=True,
        title="conversations",
        code="conversation_not_found",
        remedy="Send the whole conversation in `input`, or name the response before it in `previous_response_id`.",
    ),
    effort=("reasoning", "effort"),
    quirks=frozenset(
        {
            "any_path_is_a_version",
            "bearer_key",
            "items_are_elements",
            "not_last",
            "stored_responses",
            "thinks_unasked",
            "usual_tier",
            "websocket",
        }
    ),
)
