"""Notes on answers: where words came from, from every upstream to every client."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.translation.lanes import EVERY_CLIENT
from tests.translation.noted_answers import (
    ANNOTATION,
    CITED,
    CITED_BY,
    CITING,
    GROUNDING,
    LOCATION,
    PLACE,
    STREAMED,
    TITLE,
    URL,
    URL_CITATION,
    WHOLE,
    WORDS,
    Json,
    Source,
    chat_body,
    chat_chunk,
    converse_source,
    events_of,
    gathered,
    gemini_body,
    made_stream,
    messages_source,
    responses_body,
    responses_message,
    responses_stream,
    stream,
    whole,
)
from tests.translation.sdk_types import check_body, check_stream
from thoughtline.translation import Translated
from thoughtline.values.turns import FormatName

Write = Callable[[Source, FormatName], Translated]
writes = pytest.mark.parametrize("write", [*WHOLE, *STREAMED])
clients = pytest.mark.parametrize("to", EVERY_CLIENT)
UNCITED = ("ollama_chat", "command_code_generate")


def checked(to: FormatName, write: Write, source: Source) -> Translated:
    """A translated answer, which the client's SDK takes."""
    out = write(source, to)
    (check_body if write in WHOLE else check_stream)(to, out.body)
    return out


def lost(out: Translated) -> list[str]:
    assert {finding.rule for finding in out.findings} <= {"untranslatable"}
    return [finding.message.split(" has no place for ")[1] for finding in out.findings]


NO_CITATIONS = "citations: the words are kept, where they came from is not"
NO_PLACE = "the place of a citation inside a block"
NO_QUOTE = "what a cited page says"
NO_WORDS = "citations whose words are not told, or had gone out"


# --- citations --------------------------------------------------------------------------------------------------------


def expected_loss(source: FormatName, to: FormatName) -> list[str]:
    """The findings: only Anthropic (and OpenRouter) quotes pages, and a block is cited as a whole."""
    if source == to:
        return []
    if to in UNCITED:
        return [NO_CITATIONS]
    if to == "anthropic_messages":
        return [] if source == "bedrock_converse" else [NO_PLACE]
    is_quoted = source in ("anthropic_messages", "bedrock_converse")
    return [NO_QUOTE] if is_quoted and to != "openai_chat" else []


@clients
@writes
@pytest.mark.parametrize("source", CITING)
def test_a_page_is_cited_for_the_same_words(source: FormatName, write: Write, to: FormatName) -> None:
    """Address, title and place reach every client that has a word for them, in every way an answer can go; what it
    has none for is found, once."""
    if source == to and write in (whole, stream):
        return  # the provider's own bytes
    out = checked(to, write, CITING[source])
    if to in UNCITED:
        assert lost(out) == [NO_CITATIONS]
        return
    told = CITED_BY[to](events_of(to, out.body))
    if NO_PLACE in lost(out):
        assert told == [(URL, TITLE, WORDS)]
    else:
        assert told == [(URL, TITLE, CITED)]
    assert lost(out) == expected_loss(source, to)


@writes
def test_what_a_page_says_goes_where_it_has_a_place(write: Write) -> None:
    """Anthropic's cited text is the page's, as OpenRouter's `content` is; nothing is made up where it is unknown."""
    (choice,) = [
        note["url_citation"]
        for event in events_of("openai_chat", checked("openai_chat", write, CITING["anthropic_messages"]).body)
        for one in event["choices"]
        for note in (one.get("message") or one["delta"]).get("annotations", ())
    ]
    assert choice["content"] == LOCATION["cited_text"]
    # Literals of several types are objects to mypy.
    quoted = {"type": "url_citation", "url_citation": ANNOTATION["url_citation"] | {"content": "It is."}}  # type: ignore[operator]
    source = Source(
        "openai_chat",
        chat_body({"annotations": [quoted]}),
        [chat_chunk({"content": WORDS, "annotations": [quoted]}), chat_chunk({}, "stop")],
    )
    assert b'"cited_text":"It is."' in checked("anthropic_messages", write, source).body
    assert b'"cited_text":""' in checked("anthropic_messages", write, CITING["openai_responses"]).body


NOWHERE = {"type": "url_citation", "url_citation": {"url": URL, "title": TITLE}}
ZEROS = {"type": "url_citation", "url_citation": {"url": URL, "title": TITLE, "start_index": 0, "end_index": 0}}
BEYOND = {"type": "url_citation", "url_citation": {"url": URL, "title": TITLE, "start_index": 3, "end_index": 999}}


def annotated(*annotations: Json, **top: object) -> Source:
    chunks = [chat_chunk({"content": WORDS}) | top, *(chat_chunk({"annotations": [one]}) | top for one in annotations)]
    body = chat_body({"annotations": list(annotations)}) | top
    return Source("openai_chat", body, [*chunks, chat_chunk({}, "stop") | top])


def grounded(**grounding: object) -> Source:
    noted: Json = {"finishReason": "STOP", "groundingMetadata": GROUNDING | grounding}
    return Source("gemini_generate", gemini_body(**noted), [gemini_body(), gemini_body("", **noted)])


PLACELESS = {
    "no place": annotated(NOWHERE),
    "zeros": annotated(ZEROS),
    "beyond the words": annotated(BEYOND),
    "a list of addresses": annotated(citations=[URL]),
}


@writes
@pytest.mark.parametrize("case", PLACELESS)
@pytest.mark.parametrize("to", ["openai_responses", "anthropic_messages"])
def test_no_place_is_made_up(to: FormatName, case: str, write: Write) -> None:
    """A citation without a range gets none; a finding reports it."""
    out = checked(to, write, PLACELESS[case])
    assert CITED_BY[to](events_of(to, out.body)) == []
    assert lost(out) == [NO_WORDS]


@writes
def test_pages_without_a_place_go_to_gemini(write: Write) -> None:
    """Gemini lists pages that it grounds on, with or without the words that they are for."""
    out = checked("gemini_generate", write, PLACELESS["a list of addresses"])
    assert b'"groundingChunks":[{"web":{"uri":"https://a.example"}}],"groundingSupports":[]' in out.body
    assert lost(out) == []


SEGMENT = GROUNDING["groundingSupports"][0]["segment"]  # type: ignore[index]  # literals of several types
SUPPORTS = {
    "as told": (SEGMENT, [CITED]),
    "of another part, but the words are there once": (SEGMENT | {"startIndex": 1, "endIndex": 6}, [CITED]),
    "no words told, so the bytes count": ({k: v for k, v in SEGMENT.items() if k != "text"}, [CITED]),
    "in the middle of a character": ({"startIndex": 7, "endIndex": 9}, []),
    "words that are not there": ({"startIndex": 0, "endIndex": 3, "text": "cold"}, []),
    "beyond the words": ({"startIndex": 3, "endIndex": 999}, []),
}


@writes
@pytest.mark.parametrize("case", SUPPORTS)
def test_places_in_bytes_are_checked(case: str, write: Write) -> None:
    """Google counts bytes and quotes the text: a position with another text is ignored."""
    segment, words = SUPPORTS[case]
    source = grounded(groundingSupports=[{"segment": segment, "groundingChunkIndices": [0]}])
    out = checked("openai_chat", write, source)
    assert [one[2] for one in CITED_BY["openai_chat"](events_of("openai_chat", out.body))] == words
    assert lost(out) == ([] if words else [NO_WORDS])


@pytest.mark.parametrize("write", [stream, gathered])
def test_grounding_that_comes_in_pieces(write: Write) -> None:
    """Chunks that each have a part of it: pages of one are kept together with the queries of the other."""
    first, last = gemini_body(groundingMetadata=GROUNDING), {"groundingMetadata": {"webSearchQueries": ["q"]}}
    source = Source("gemini_generate", {}, [first, gemini_body("", finishReason="STOP", **last)])
    out = checked("openai_chat", write, source)
    assert CITED_BY["openai_chat"](events_of("openai_chat", out.body)) == [(URL, TITLE, CITED)]
    assert lost(out) == ["groundingMetadata.webSearchQueries"]


def test_places_are_those_of_a_part() -> None:
    """In a whole answer of several parts, thoughts among them, Gemini's places are within one part."""
    answer = Source("openai_chat", chat_body({"annotations": [ANNOTATION], "reasoning_content": "hm"}), [])
    body = events_of("gemini_generate", whole(answer, "gemini_generate").body)[0]
    (support,) = body["candidates"][0]["groundingMetadata"]["groundingSupports"]
    assert support["segment"] == SEGMENT | {"partIndex": 1}
    back = Source("gemini_generate", body, [])
    assert [one[2] for one in CITED_BY["openai_chat"](events_of("openai_chat", whole(back, "openai_chat").body))] == [
        CITED
    ]


FILE = {"type": "file_citation", "file_id": "f", "filename": "a.txt", "index": 3}
CHARACTERS = {
    "type": "char_location",
    "cited_text": "x",
    "document_index": 0,
    "document_title": None,
    "start_char_index": 0,
    "end_char_index": 1,
}
_filed = responses_message(annotations=[FILE, FILE, URL_CITATION])
OTHERS: dict[str, tuple[Source, str]] = {
    "a file of OpenAI's": (
        Source("openai_responses", responses_body(_filed), responses_stream(_filed, [{"delta": WORDS}])),
        "annotations of kind file_citation",
    ),
    "a document of the request": (
        messages_source({"text": WORDS, "citations": [CHARACTERS, CHARACTERS]}),
        "citations of kind char_location",
    ),
    "a document of Converse's": (
        converse_source({"title": "d", "location": {"documentPage": {"start": 1}}}),
        "citations of kind documentPage",
    ),
    "a parsed file of OpenRouter's": (
        annotated({"type": "file", "file": {"hash": "h"}}, {"type": "file", "file": {"hash": "i"}}),
        "annotations of kind file",
    ),
    "annotations of another shape": (
        annotated({"type": "url_citation", "url_citation": 7}),
        "annotations in a shape of their own",
    ),
    "citations of another shape": (annotated(citations=[{"doc": 1}]), "citations in a shape of their own"),
    "what Google must have shown": (
        grounded(searchEntryPoint={"renderedContent": "<p>"}),
        "groundingMetadata.searchEntryPoint",
    ),
    "what Google searched for": (grounded(webSearchQueries=["q"]), "groundingMetadata.webSearchQueries"),
    "a place on Google's maps": (
        grounded(groundingChunks=[{"maps": {"uri": URL}}], groundingSupports=[]),
        "groundingChunks of kind maps",
    ),
    "notes of another shape": (
        Source(
            "gemini_generate",
            gemini_body(finishReason="STOP", groundingMetadata={"groundingChunks": 7}),
            [gemini_body(WORDS), gemini_body("", finishReason="STOP", groundingMetadata={"groundingChunks": 7})],
        ),
        "notes in a shape of their own",
    ),
}


@clients
@writes
@pytest.mark.parametrize("case", OTHERS)
def test_notes_of_a_single_format_are_reported_once(case: str, write: Write, to: FormatName) -> None:
    """A kind of note that only its own format has: the words stay, and one finding names the kind."""
    source, kind = OTHERS[case]
    if source.format == to:
        return
    out = checked(to, write, source)
    assert lost(out).count(kind) == 1
    assert len(lost(out)) == len(set(lost(out)))


def test_cohere_cites_in_its_own_way() -> None:
    """Documents of the request, in events of their own: found, whole and streamed."""
    events: list[Json] = [
        {"type": "message-start", "id": "1"},
        {"type": "content-delta", "index": 0, "delta": {"message": {"content": {"text": WORDS}}}},
        {"type": "citation-start", "index": 0, "delta": {"message": {"citations": {"start": 0}}}},
        {"type": "citation-end", "index": 0},
        {"type": "message-end", "delta": {"finish_reason": "COMPLETE"}},
    ]
    message = {"role": "assistant", "content": [{"type": "text", "text": WORDS}], "citations": [{"start": 0}]}
    source = Source("openai_chat", {"id": "1", "message": message, "finish_reason": "COMPLETE"}, events)
    for write in (whole, stream, gathered, made_stream):
        assert lost(checked("anthropic_messages", write, source)) == ["citations in a shape of their own"]


def test_citations_that_come_when_their_words_have_gone_out() -> None:
    """In a stream whose words were followed by a call the block is closed: a finding says so; chat has them still."""
    call = {"index": 0, "id": "call_1", "type": "function", "function": {"name": "look", "arguments": "{}"}}
    chunks = [chat_chunk({"content": WORDS}), chat_chunk({"tool_calls": [call]})]
    chunks += [chat_chunk({"annotations": [ANNOTATION, ANNOTATION]}), chat_chunk({}, "tool_calls")]
    source = Source("openai_chat", {}, chunks)
    out = checked("anthropic_messages", stream, source)
    assert (CITED_BY["anthropic_messages"](events_of("anthropic_messages", out.body)), lost(out)) == ([], [NO_WORDS])
    out = checked("gemini_generate", stream, source)
    assert (CITED_BY["gemini_generate"](events_of("gemini_generate", out.body)), lost(out)) == (
        [(URL, TITLE, CITED)],
        [],
    )


@pytest.mark.parametrize("source", CITING)
def test_findings_are_one_for_each_kind(source: FormatName) -> None:
    """However often a stream tells of pages, a client that has no place for them gets one finding."""
    known = CITING[source]
    twice = [one for one in known.stream for _ in range(2 if "annotations" in str(one.get("choices")) else 1)]
    assert lost(checked("ollama_chat", stream, known._replace(stream=twice))) == [NO_CITATIONS]


def test_every_answer_has_its_own_notes() -> None:
    """Several answers of one response keep their notes apart."""
    first, second = chat_body({"annotations": [ANNOTATION]})["choices"][0], chat_body({})["choices"][0]
    body = chat_body({}) | {"choices": [first, second | {"index": 1}]}
    told = events_of("gemini_generate", whole(Source("openai_chat", body, []), "gemini_generate").body)[0]
    assert ["groundingMetadata" in one for one in told["candidates"]] == [True, False]


def test_an_answer_without_notes_says_nothing_of_them() -> None:
    """No empty members if there are no notes, except for those that a format always has."""
    source = annotated()
    for to in EVERY_CLIENT:
        for write in (gathered, made_stream):
            out = checked(to, write, source)
            body = out.body.replace(b'"annotations":[]', b"").replace(b'"logprobs":[]', b"")
            assert not any(word in body for word in (b"annotation", b"logprob", b"citation", b"grounding"))
            assert out.findings == ()


def test_place_is_a_place() -> None:
    """The answers of this table cite what they say they cite."""
    assert WORDS[PLACE["start_index"] : PLACE["end_index"]] == CITED
