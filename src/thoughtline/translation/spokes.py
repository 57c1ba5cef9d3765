"""The spokes of the hub: for each format, how its options, media and results become shared values and back."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, NamedTuple

from thoughtline.formats import FORMATS, BodyCodec
from thoughtline.formats.anthropic_messages import notes as messages_notes
from thoughtline.formats.anthropic_messages import options as anthropic_messages
from thoughtline.formats.bedrock_converse import notes as converse_notes
from thoughtline.formats.bedrock_converse import options as bedrock_converse
from thoughtline.formats.gemini_generate import options as gemini_generate
from thoughtline.formats.ollama_chat import options as ollama_chat
from thoughtline.formats.openai_chat import notes as chat_notes
from thoughtline.formats.openai_chat import options as openai_chat
from thoughtline.formats.openai_responses import notes as responses_notes
from thoughtline.formats.openai_responses import options as openai_responses
from thoughtline.providers import Dialect
from thoughtline.values.items import Text, ToolResult, Unknown
from thoughtline.values.notes import NO_NOTES, Notes
from thoughtline.values.options import Media, Options, ReadOptions, ResultContent, WrittenOptions, WrittenResult
from thoughtline.values.turns import FormatName


def _no_notes(item: Text) -> Notes:
    return NO_NOTES


def _no_wish(item: Unknown) -> bool:
    return False


def _no_places(body: bytes) -> tuple[str, ...]:
    return ()


class NotePlace(NamedTuple):
    """Where a format has notes on an answer. `decode` and `encode` are for those that stand on the words themselves;
    the others stand beside the answer, where its codec reads and writes them.

    `places` says whether a citation must name its words, may, or is about all that it stands on. `wants` tells a
    document of a request that asks for citations, `in_history` where a history has notes that no item shows.
    """

    has_citations: bool = False
    has_quotes: bool = False
    places: Literal["needed", "kept", "none"] = "kept"
    decode: Callable[[Text], Notes] = _no_notes
    encode: Callable[[str, Notes], Text] | None = None
    wants: Callable[[Unknown], bool] = _no_wish
    in_history: Callable[[bytes], tuple[str, ...]] = _no_places


class Spoke(NamedTuple):
    """A row of the table. `has_turns_of_blocks`: results and words of a user share a turn, neighbours are one, and no
    system message stands between them. `is_object`: arguments of a call are an object, not text. `mixes_tools`: tools
    that the provider runs stand beside functions. `needs_tools`: calls in the history want tools beside them, and
    nothing says that none of them is to be called."""

    decode_options: Callable[[bytes], ReadOptions]
    encode_options: Callable[[Options, Dialect], WrittenOptions]
    decode_media: Callable[[Unknown], Media | str | None]
    encode_media: Callable[[Media], Unknown | None]
    decode_result: Callable[[ToolResult], ResultContent]
    encode_result: Callable[[ResultContent, str | None, str | None], WrittenResult]
    has_turns_of_blocks: bool
    is_object: bool
    custom_tools: bool = False
    built_in: frozenset[str] = frozenset()
    mixes_tools: bool = True
    needs_tools: bool = False
    encode_words: Callable[[str], Text] = Text
    notes: NotePlace = NotePlace()


_SEARCH = frozenset({"web_search"})

SPOKES: dict[FormatName, Spoke] = {
    "openai_chat": Spoke(
        openai_chat.decode_options,
        openai_chat.encode_options,
        openai_chat.decode_media,
        openai_chat.encode_media,
        openai_chat.decode_result,
        openai_chat.encode_result,
        has_turns_of_blocks=False,
        is_object=False,
        custom_tools=True,
        notes=NotePlace(
            has_citations=True,
            has_quotes=True,
            places="needed",
            in_history=chat_notes.noted_places,
        ),
    ),
    "openai_responses": Spoke(
        openai_responses.decode_options,
        openai_responses.encode_options,
        openai_responses.decode_media,
        openai_responses.encode_media,
        openai_responses.decode_result,
        openai_responses.encode_result,
        has_turns_of_blocks=False,
        is_object=False,
        custom_tools=True,
        built_in=_SEARCH,
        encode_words=openai_responses.encode_words,
        notes=NotePlace(
            has_citations=True,
            places="needed",
            decode=responses_notes.decode_notes,
            encode=responses_notes.encode_noted,
        ),
    ),
    "anthropic_messages": Spoke(
        anthropic_messages.decode_options,
        anthropic_messages.encode_options,
        anthropic_messages.decode_media,
        anthropic_messages.encode_media,
        anthropic_messages.decode_result,
        anthropic_messages.encode_result,
        has_turns_of_blocks=True,
        is_object=True,
        built_in=_SEARCH,
        notes=NotePlace(
            has_citations=True,
            has_quotes=True,
            places="none",
            decode=messages_notes.decode_notes,
            encode=messages_notes.encode_noted,
            wants=messages_notes.wants_citations,
        ),
    ),
    "gemini_generate": Spoke(
        gemini_generate.decode_options,
        gemini_generate.encode_options,
        gemini_generate.decode_media,
        gemini_generate.encode_media,
        gemini_generate.decode_result,
        gemini_generate.encode_result,
        has_turns_of_blocks=True,
        is_object=True,
        built_in=_SEARCH,
        # Gemini 2.5: "Tool use with function calling is unsupported"; Gemini 3 wants all that its tools did back.
        mixes_tools=False,
        notes=NotePlace(has_citations=True),
    ),
    "ollama_chat": Spoke(
        ollama_chat.decode_options,
        ollama_chat.encode_options,
        ollama_chat.decode_media,
        ollama_chat.encode_media,
        ollama_chat.decode_result,
        ollama_chat.encode_result,
        has_turns_of_blocks=False,
        is_object=True,
    ),
    "bedrock_converse": Spoke(
        bedrock_converse.decode_options,
        bedrock_converse.encode_options,
        bedrock_converse.decode_media,
        bedrock_converse.encode_media,
        bedrock_converse.decode_result,
        bedrock_converse.encode_result,
        has_turns_of_blocks=True,
        is_object=True,
        needs_tools=True,
        notes=NotePlace(decode=converse_notes.decode_notes),
    ),
}


def bodies_of(format: FormatName) -> BodyCodec:
    """The codec for whole bodies; every format that is translated has one."""
    bodies = FORMATS[format].bodies
    if bodies is None:
        raise AssertionError(f"{format} has no whole bodies")
    return bodies
