"""Chat Completions and its compatible APIs: DeepSeek, Kimi, MiMo, GLM, Qwen, MiniMax, OpenRouter, Groq, Cerebras,
Mistral, Cohere, Copilot, xAI, local servers, and Gemini's compatible endpoint.

They differ in where they put reasoning: that is a `Dialect`.
"""

import re

from thoughtline.formats.cache_marks import CacheMarks, member_mark
from thoughtline.formats.openai_chat import bodies, notes, options
from thoughtline.formats.openai_chat.message_encoder import mark_part
from thoughtline.formats.openai_chat.stream import TEXTS, StreamDecoder
from thoughtline.formats.openai_chat.stream_encoder import StreamEncoder
from thoughtline.formats.paths import below_openai, by_tail
from thoughtline.formats.thinking import SettingPlace, without
from thoughtline.formats.vendor_shapes import OPENAI_ERRORS, OPENAI_MODELS
from thoughtline.formats.wire import IdRule, MessagePlace, NotePlace, Wire, body_codec
from thoughtline.providers import REASONING_CONTENT
from thoughtline.values.items import Text

_ASKING = ("reasoning_effort", "reasoning", "thinking", "enable_thinking", "thinking_budget", "think")

WIRE = Wire(
    name="openai_chat",
    family="openai-chat",
    dialect=REASONING_CONTENT,
    bodies=body_codec(bodies),
    stream_decoder=StreamDecoder,
    stream_encoder=StreamEncoder,
    stream_type=b"text/event-stream; charset=utf-8",
    stream_query="",
    inside="",
    list_member="messages",
    item_member="",
    message=MessagePlace(("choices", 0, "message"), "assistant", "content"),
    system="messages",
    system_members=(),
    telling_members=(),
    telling_words=(),
    telling_element=None,
    client_path=by_tail(("generate", "chat/completions")),
    upstream_path=lambda base, model, is_streaming: below_openai(base, "/chat/completions"),
    published=None,
    count_path=None,
    count_body=None,
    count_member="input_tokens",
    count_beside={},
    count_inside="",
    version="v1",
    headers=(),
    models=OPENAI_MODELS,
    errors=OPENAI_ERRORS,
    in_lists=None,
    options=options,
    has_openai_tools=True,
    built_in_tools=frozenset(),
    tool_shapes="functions",
    unasked=without(*_ASKING),
    switches=bodies.SWITCHES,
    thinking=SettingPlace(replaced=("thinking",)),
    thinking_modes=None,
    inclusion=None,
    call_ids=IdRule(re.compile(r".{1,40}", re.DOTALL)),
    # vLLM's have 46 characters; only OpenAI, and hosts that forward to it, are known to check the length.
    upstream_call_ids=IdRule(re.compile(r".{1,256}", re.DOTALL)),
    has_turns_of_blocks=False,
    has_object_arguments=False,
    encode_words=Text,
    texts=TEXTS,
    notes=NotePlace(has_citations=True, has_quotes=True, places="needed", in_history=notes.noted_places),
    cache_marks=CacheMarks(b'"cache_control"', member_mark, mark_part, on_messages=True),
    response_prefix="chatcmpl-",
    envelope_slot="none",
    held=None,
    effort=("reasoning_effort",),
    quirks=frozenset(
        {
            "any_path_is_a_version",
            "bearer_key",
            "choices",
            "content_in_parts",
            "chat_templates",
            "dialects",
            "no_failed_finish",
            "one_text",
            "thinks_unasked",
            "usage_last",
            "usual_tier",
        }
    ),
)
