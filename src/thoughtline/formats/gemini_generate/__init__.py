"""Gemini's `generateContent`, on the Gemini API and on Vertex.

Reasoning is a part with `thought: true`, or a signature next to the payload of any other part. Calls may lack ids.
"""

import re
from urllib.parse import quote

from thoughtline.formats.counting import ENCLOSED, enclosed
from thoughtline.formats.gemini_generate import bodies, options
from thoughtline.formats.gemini_generate.stream import TEXTS, StreamDecoder, StreamEncoder
from thoughtline.formats.paths import Action, ClientPath, PublishedMethods, is_lead, versioned
from thoughtline.formats.thinking import SettingPlace
from thoughtline.formats.vendor_shapes import GOOGLE_ERRORS, GOOGLE_MODELS, without_settings
from thoughtline.formats.wire import IdRule, MessagePlace, NotePlace, Wire, body_codec
from thoughtline.providers import GEMINI
from thoughtline.values.items import Text

_CALL_IDS = IdRule(re.compile(r".{0,64}", re.DOTALL), is_required=False)
_COLLECTIONS = ("models", "tunedModels")
METHODS: dict[str, tuple[Action, bool]] = {
    "generateContent": ("generate", False),
    "streamGenerateContent": ("generate", True),
    "countTokens": ("count_tokens", False),
}


_PUBLISHED = PublishedMethods(
    "google", generate="generateContent", stream="streamGenerateContent", counting="countTokens"
)


def _client_path(segments: list[str]) -> ClientPath | None:
    """`/models/MODEL:METHOD`; the name of a model may contain slashes and colons."""
    if "publishers" in segments:
        return _PUBLISHED.find(segments)
    at = next((at for at, segment in enumerate(segments) if segment in _COLLECTIONS), len(segments))
    name, colon, method = "/".join(segments[at + 1 :]).rpartition(":")
    if not colon or method not in METHODS or not all(name.split("/")) or not is_lead(segments[:at]):
        return None
    action, is_streaming = METHODS[method]
    return ClientPath(segments[:at], action, name, is_streaming, needs_provider=segments[at] == "tunedModels")


def _upstream_path(base: str, model: str, method: str) -> str:
    """Google's model names include their collection; clients leave out the default one."""
    collection, _, name = model.rpartition("/")
    if collection not in _COLLECTIONS:
        collection, name = "models", model
    return versioned(base, "v1beta", f"/{collection}/{quote(name, safe='')}:{method}")


WIRE = Wire(
    name="gemini_generate",
    family="gemini",
    dialect=GEMINI,
    bodies=body_codec(bodies),
    stream_decoder=StreamDecoder,
    stream_encoder=StreamEncoder,
    stream_type=b"text/event-stream; charset=utf-8",
    stream_query="alt=sse",
    inside="",
    list_member="contents",
    item_member="parts",
    message=MessagePlace(("candidates", 0, "content"), "model", "parts"),
    system="blocks",
    system_members=("systemInstruction", "system_instruction"),
    telling_members=("contents",),
    telling_words=(),
    telling_element="parts",
    client_path=_client_path,
    upstream_path=lambda base, model, is_streaming: _upstream_path(
        base, model, "streamGenerateContent" if is_streaming else "generateContent"
    ),
    published=_PUBLISHED,
    count_path=lambda base, model: _upstream_path(base, model, "countTokens"),
    count_body=enclosed,
    count_member="totalTokens",
    count_beside={},
    count_inside=ENCLOSED,
    version="v1beta",
    headers=(),
    models=GOOGLE_MODELS,
    errors=GOOGLE_ERRORS,
    in_lists=bodies.in_lists,
    options=options,
    has_openai_tools=False,
    built_in_tools=frozenset({"web_search"}),
    tool_shapes="functions",
    unasked=without_settings(options.CONFIGS, ("thinkingConfig", "thinking_config")),
    switches=options.CONFIGS,
    thinking=SettingPlace(spellings=options.CONFIGS, stale=("thinking_config",)),
    thinking_modes=None,
    inclusion=None,
    call_ids=_CALL_IDS,
    upstream_call_ids=_CALL_IDS,
    has_turns_of_blocks=True,
    has_object_arguments=True,
    encode_words=Text,
    texts=TEXTS,
    notes=NotePlace(has_citations=True),
    # https://ai.google.dev/gemini-api/docs/models, 2026-11; Gemini CLI sends them with every request.
    usual_sampling=(("temperature", 1), ("top_p", 0.95), ("top_k", 64)),
    cache_marks=None,
    response_prefix="",
    envelope_slot="call",
    held=None,
    # Gemini 2.5: "Tool use with function calling is unsupported"; Gemini 3 requires the output of its tools back.
    quirks=frozenset(
        {
            "answers_in_pieces",
            "choices",
            "goes_on_after_finish",
            "key_in_query",
            "seals_on_items",
            "streamed_by_address",
            "thinks_unasked",
            "thoughts_in_pieces",
            "tools_unmixed",
        }
    ),
)
