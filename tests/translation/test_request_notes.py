"""What a request asks to be noted on its answer, and notes in its history: found."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.translation.noted_answers import ANNOTATION, LOCATION, URL, URL_CITATION
from tests.translation.sdk_types import check_request
from tests.translation.test_requests import BY_FORMAT, body_of, chat, translated, user
from thoughtline.translation import TranslatedRequest
from thoughtline.values.turns import FormatName

Json = dict[str, Any]
LOGPROBS = "message.output_text.logprobs"

# --- probabilities of tokens ------------------------------------------------------------------------------------------

_SAYS_HI = {"contents": [{"role": "user", "parts": [{"text": "hi"}]}]}
ASKING: dict[FormatName, Json] = {
    "openai_chat": chat(user("hi"), logprobs=True, top_logprobs=3),
    "openai_responses": {"model": "m", "input": "hi", "include": [LOGPROBS], "top_logprobs": 3},
    "gemini_generate": _SAYS_HI | {"generationConfig": {"responseLogprobs": True, "logprobs": 3}},
    "ollama_chat": {"model": "m", "messages": [user("hi")], "logprobs": True, "top_logprobs": 3},
}
PLACES: dict[FormatName, list[str]] = {
    "openai_chat": ["/logprobs", "/top_logprobs"],
    "openai_responses": ["/include", "/top_logprobs"],
    "gemini_generate": ["/generationConfig/responseLogprobs", "/generationConfig/logprobs"],
    "ollama_chat": ["/logprobs", "/top_logprobs"],
}


def sent_logprobs(to: FormatName, body: Json) -> tuple[Any, Any]:
    """Whether tokens are asked for, and how many of the likeliest."""
    match to:
        case "openai_responses":
            return LOGPROBS in body.get("include", ()) or None, body.get("top_logprobs")
        case "gemini_generate":
            config = body.get("generationConfig", {})
            return config.get("responseLogprobs"), config.get("logprobs")
        case _:
            return body.get("logprobs"), body.get("top_logprobs")


def asked(client: FormatName, body: Json, to: FormatName) -> TranslatedRequest:
    request = translated(client, body, to)
    check_request(to, request.transcript.body)
    return request


@pytest.mark.parametrize("to", BY_FORMAT)
@pytest.mark.parametrize("client", ASKING)
def test_log_probabilities_are_not_converted(client: FormatName, to: FormatName) -> None:
    """No other format is asked for them: both members are found in their places."""
    if client == to:
        return
    request = asked(client, ASKING[client], to)
    assert sent_logprobs(to, body_of(request)) == (None, None)
    assert [one.place for one in request.findings if "log probabilities" in one.message] == PLACES[client]


@pytest.mark.parametrize("to", [to for to in BY_FORMAT if to != "openai_chat"])
@pytest.mark.parametrize("members", [{"logprobs": False, "top_logprobs": 0}, {"logprobs": None}])
def test_members_that_ask_for_no_log_probabilities_are_not_found(members: Json, to: FormatName) -> None:
    """What asks for nothing loses nothing."""
    request = asked("openai_chat", chat(user("hi"), **members), to)
    assert not any("log probabilities" in one.message for one in request.findings)


# --- notes in a history -----------------------------------------------------------------------------------------------


def _noted_message(**part: Any) -> Json:
    content = [{"type": "output_text", "text": "Warm.", "annotations": []} | part]
    return {"id": "msg_1", "type": "message", "role": "assistant", "status": "completed", "content": content}


def _answered(message: Json) -> Json:
    return {"model": "m", "input": [user("hi"), message, user("and?"), message, user("now?")]}


def _cited(*citations: Json) -> Json:
    block = {"type": "text", "text": "Warm.", "citations": list(citations)}
    said = {"role": "assistant", "content": [block]}
    return {"model": "m", "max_tokens": 9, "messages": [user("hi"), said, user("and?"), said, user("now?")]}


_annotated = {"role": "assistant", "content": "Warm.", "annotations": [ANNOTATION]}
DOCUMENT = {"type": "char_location", "cited_text": "x", "document_index": 0, "document_title": None}
DOCUMENT |= {"start_char_index": 0, "end_char_index": 1}
HISTORIES: dict[str, tuple[FormatName, Json, str]] = {
    "annotations of a message": (
        "openai_chat",
        chat(user("hi"), _annotated, user("and?"), _annotated, user("now?")),
        "/messages/1/annotations",
    ),
    "annotations of a part": ("openai_responses", _answered(_noted_message(annotations=[URL_CITATION])), "/input/1"),
    "citations of a block": ("anthropic_messages", _cited(LOCATION), "/messages/1/content/0"),
    "citations of a document": ("anthropic_messages", _cited(DOCUMENT), "/messages/1/content/0"),
}


@pytest.mark.parametrize("to", BY_FORMAT)
@pytest.mark.parametrize("case", HISTORIES)
def test_notes_in_a_history_stay_behind(case: str, to: FormatName) -> None:
    """The words go on; the notes, which another provider would refuse, don't; one finding says so at the first."""
    client, body, place = HISTORIES[case]
    if client == to:
        return
    request = asked(client, body, to)
    sent = json.dumps(body_of(request))
    assert sent.count("Warm.") == 2
    assert not any(word in sent for word in (URL, "citation", '"logprob'))
    assert [one.place for one in request.findings if "earlier words" in one.message] == [place]


@pytest.mark.parametrize(
    ("client", "body"),
    [
        ("openai_chat", chat(user("hi"), {"role": "assistant", "content": "Warm.", "annotations": []}, user("and?"))),
        (
            "openai_chat",
            chat(user('say "annotations"'), {"role": "assistant", "content": "Warm.", "annotations": None}),
        ),
        ("openai_responses", _answered(_noted_message(logprobs=[]))),
        ("anthropic_messages", _cited()),
    ],
)
def test_a_history_without_notes_is_not_found(client: FormatName, body: Json) -> None:
    """Empty members, which every SDK sends back, say nothing and lose nothing."""
    request = asked(client, body, "gemini_generate")
    assert not any("earlier words" in finding.message for finding in request.findings)


@pytest.mark.parametrize("to", [to for to in BY_FORMAT if to != "anthropic_messages"])
def test_a_document_that_asks_to_be_cited(to: FormatName) -> None:
    """No other format cites documents of the request: the document goes where it can, the wish is found."""
    source = {"type": "text", "media_type": "text/plain", "data": "It is warm."}
    document = {"type": "document", "source": source, "citations": {"enabled": True}}
    body = {"model": "m", "max_tokens": 9, "messages": [user([document, {"type": "text", "text": "hi"}])]}
    request = asked("anthropic_messages", body, to)
    assert "It is warm." in json.dumps(body_of(request))
    assert [one.place for one in request.findings if "cite" in one.message] == ["/messages/0/content/0"]
    document["citations"] = {"enabled": False}
    assert not any("cite" in one.message for one in asked("anthropic_messages", body, to).findings)
