"""Gemini's Interactions API, as of its revision 2026-05-20: a conversation is a list of steps.

Reasoning is a step of its own, `thought`, whose signature is sent back before the call or text that follows from it.
With `previous_interaction_id` the conversation is stored at Google, and a request has only the new steps. It is
forwarded in its own format only: there is no translation to or from other formats.
"""

import re
from typing import NoReturn

from thoughtline.formats.gemini_interactions import bodies
from thoughtline.formats.gemini_interactions.stream import TEXTS, StreamDecoder, StreamEncoder
from thoughtline.formats.paths import by_tail, versioned
from thoughtline.formats.thinking import SettingPlace
from thoughtline.formats.vendor_shapes import GOOGLE_ERRORS, GOOGLE_MODELS, without_settings
from thoughtline.formats.wire import HeldConversation, IdRule, MessagePlace, NotePlace, Wire, body_codec
from thoughtline.providers import INTERACTIONS
from thoughtline.values.errors import Untranslatable
from thoughtline.values.items import Text

_CALL_IDS = IdRule(re.compile(r".{1,64}", re.DOTALL))


class _NoOptions:
    """The options of an interaction have no shared values."""

    @staticmethod
    def decode_options(*_: object) -> NoReturn:
        raise Untranslatable("interactions are not translated", "/input", "speak generateContent, or ask Gemini itself")

    encode_options = decode_media = encode_media = decode_result = encode_result = decode_options


WIRE = Wire(
    name="gemini_interactions",
    family="gemini-interactions",
    dialect=INTERACTIONS,
    bodies=body_codec(bodies),
    stream_decoder=StreamDecoder,
    stream_encoder=StreamEncoder,
    stream_type=b"text/event-stream; charset=utf-8",
    stream_query="",
    inside="",
    list_member="input",
    item_member="",
    message=MessagePlace(("steps",), "", ""),
    system="text",
    system_members=("system_instruction",),
    telling_members=("input", "previous_interaction_id", "generation_config", "agent"),
    telling_words=(b'"user_input"', b'"model_output"', b'"thought"'),
    telling_element="type",
    client_path=by_tail(("generate", "interactions")),
    upstream_path=lambda base, model, is_streaming: versioned(base, "v1beta", "/interactions"),
    published=None,
    count_path=None,
    count_body=None,
    count_member="totalTokens",
    count_beside={},
    count_inside="",
    version="v1beta",
    headers=(),
    models=GOOGLE_MODELS._replace(path="(?!)"),
    errors=GOOGLE_ERRORS,
    in_lists=None,
    options=_NoOptions,
    has_openai_tools=False,
    built_in_tools=frozenset({"web_search"}),
    tool_shapes="functions",
    unasked=without_settings(("generation_config",), ("thinking_level", "thinking_summaries")),
    switches=("generation_config",),
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
    held=HeldConversation(
        member="previous_interaction_id",
        kept_as="interactions",
        is_usual=True,
        title="interactions",
        code="interaction_not_found",
        remedy="Send all steps of the conversation in `input`, thoughts included.",
    ),
    quirks=frozenset({"items_are_elements", "key_in_query", "untranslated"}),
)
