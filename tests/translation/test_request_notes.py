"""What a request asks to be noted on its answer, and notes in its history: sent where there is a member, else found."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.translation.noted import ANNOTATION, LOCATION, URL, URL_CITATION, openai_tokens
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
MODELS: dict[FormatName, tuple[str, str]] = {
    "openai_chat": ("vllm", "some-model"),
    "openai_responses": ("openai", "gpt-4.1"),
}
"""Models that take the option: those that think refuse it."""

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
    provider, model = MODELS.get(to, (None, None))
    request = translated(client, body, to, provider, model)
    check_request(to, request.transcript.body)
    return request


@pytest.mark.parametrize("to", BY_FORMAT)
@pytest.mark.parametrize("client", ASKING)
def test_tokens_are_asked_for_where_they_can_be(client: FormatName, to: FormatName) -> None:
    """Between chat, Responses, Gemini and Ollama, each in its own words; elsewhere both members are found."""
    if client == to:
        return
    request = asked(client, ASKING[client], to)
    found = [finding.place for finding in request.findings if "logprobs" in finding.message]
    if to in ("anthropic_messages", "bedrock_converse"):
        assert sent_logprobs(to, body_of(request)) == (None, None)
        assert found == PLACES[client]
    else:
        assert sent_logprobs(to, body_of(request)) == (True, 3)
        assert found == []


@pytest.mark.parametrize("to", [to for to in BY_FORMAT if to != "openai_chat"])
@pytest.mark.parametrize(
    ("members", "sent", "found"),
    [
        ({"logprobs": True}, (True, None), []),
        ({"logprobs": True, "top_logprobs": 0}, (True, None), []),
        ({"logprobs": False, "top_logprobs": 0}, (None, None), []),
        ({"logprobs": None}, (None, None), []),
        ({"top_logprobs": 2}, (None, None), ["/top_logprobs"]),
    ],
)
def test_the_likeliest_are_asked_for_only_with_the_chosen(
    members: Json, sent: tuple[Any, Any], found: list[str], to: FormatName
) -> None:
    """Upstreams refuse the one without the other; what asks for nothing is not sent and, if it is empty, not found."""
    request = asked("openai_chat", chat(user("hi"), **members), to)
    if to in ("anthropic_messages", "bedrock_converse"):
        sent, found = (None, None), found or (["/logprobs"] if sent[0] else [])
    assert sent_logprobs(to, body_of(request)) == sent
    assert [finding.place for finding in request.findings if "logprobs" in finding.message] == found


@pytest.mark.parametrize(
    ("provider", "model", "to"),
    [
        ("deepseek", "deepseek-v4-pro", "openai_chat"),
        ("openai", "gpt-5.1", "openai_chat"),
        ("mistral", "magistral-medium-2509", "openai_chat"),
        ("cohere", "command-a-reasoning-08-2025", "openai_chat"),
        ("openai", "gpt-5.1", "openai_responses"),
    ],
)
def test_models_that_refuse_the_question_are_not_asked(provider: str, model: str, to: FormatName) -> None:
    """DeepSeek's and OpenAI's while they think, Mistral's and Cohere's always: found, and no error of theirs."""
    request = translated("gemini_generate", ASKING["gemini_generate"], to, provider, model)
    assert sent_logprobs(to, body_of(request)) == (None, None)
    assert [one.place for one in request.findings if "logprobs" in one.message] == PLACES["gemini_generate"]


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
    "tokens of a part": ("openai_responses", _answered(_noted_message(logprobs=openai_tokens(0))), "/input/1"),
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
