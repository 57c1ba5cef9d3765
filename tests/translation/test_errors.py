"""Errors of every provider in every client's envelope: the status stays, the sentence is the provider's own."""

from __future__ import annotations

import json
from typing import Any

import anthropic
import httpx
import httpx2
import openai
import pytest
from google import genai
from google.genai import errors as google_errors

from tests.translation.lanes import EVERY_CLIENT
from thoughtline.translation import translate_error
from thoughtline.values.turns import FormatName

SENTENCE = "The `reasoning_content` in the thinking mode must be passed back to the API."
ENVELOPES: dict[str, Any] = {
    "openai": {"error": {"message": SENTENCE, "type": "invalid_request_error", "param": None, "code": None}},
    "anthropic": {
        "type": "error",
        "error": {"type": "invalid_request_error", "message": SENTENCE},
        "request_id": "req_1",
    },
    "google": {"error": {"code": 400, "message": SENTENCE, "status": "INVALID_ARGUMENT"}},
    "google in an array": [{"error": {"code": 400, "message": SENTENCE, "status": "INVALID_ARGUMENT"}}],
    "amazon": {"message": SENTENCE},
    "ollama": {"error": SENTENCE},
    "xai": {"code": "invalid-argument", "error": SENTENCE},
    "cerebras": {"message": SENTENCE, "type": "invalid_request_error", "param": "p", "code": "wrong_api_format"},
    "mimo": {"error": {"code": "400", "message": "Param Incorrect", "param": SENTENCE, "type": ""}},
    "openrouter": {
        "error": {
            "message": "Provider returned error",
            "code": 400,
            "metadata": {"raw": json.dumps({"error": {"message": SENTENCE}})},
        }
    },
    "amazon by name": {"validationException": {"message": SENTENCE}},
}


def message_of(format: FormatName, body: bytes) -> str:
    said = json.loads(body)
    match format:
        case "anthropic_messages":
            assert said["type"] == "error"
            return str(said["error"]["message"])
        case "ollama_chat":
            return str(said["error"])
        case _:
            return str(said["error"]["message"])


@pytest.mark.parametrize("to", EVERY_CLIENT)
@pytest.mark.parametrize("name", ENVELOPES)
def test_every_envelope_in_every_other(name: str, to: FormatName) -> None:
    """Whichever envelope an error came in, the client reads the provider's sentence in its own."""
    status, body = translate_error(400, json.dumps(ENVELOPES[name]).encode(), "openai_chat", to)
    assert status == 400
    assert SENTENCE in message_of(to, body)


@pytest.mark.parametrize("to", EVERY_CLIENT)
@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"<html>Bad Gateway</html>",
        b"data:" + json.dumps(ENVELOPES["mimo"]).encode(),
        b"[[[[[[[[1]]]]]]]]",
        b"null",
    ],
)
def test_what_is_no_envelope_at_all(body: bytes, to: FormatName) -> None:
    """A page of a proxy, an empty body, MiMo's stray prefix: still an error the client can read."""
    status, said = translate_error(502, body, "openai_chat", to)
    assert status == 502
    assert message_of(to, said)


@pytest.mark.parametrize(
    ("status", "raised"),
    [(400, openai.BadRequestError), (401, openai.AuthenticationError), (429, openai.RateLimitError)],
)
def test_the_openai_sdk_raises_its_own(status: int, raised: type[openai.APIStatusError]) -> None:
    """From Anthropic's envelope to an exception of the openai SDK with the provider's words."""
    code, body = translate_error(
        status, json.dumps(ENVELOPES["anthropic"]).encode(), "anthropic_messages", "openai_chat"
    )
    client = openai.OpenAI(api_key="k", max_retries=0, http_client=_answers2(code, body))
    with pytest.raises(raised) as caught:
        client.chat.completions.create(model="m", messages=[{"role": "user", "content": "hi"}])
    assert SENTENCE in caught.value.message


def test_the_anthropic_sdk_raises_its_own() -> None:
    """From OpenAI's envelope to an exception of the anthropic SDK."""
    code, body = translate_error(529, json.dumps(ENVELOPES["openai"]).encode(), "openai_chat", "anthropic_messages")
    client = anthropic.Anthropic(api_key="k", max_retries=0, http_client=_answers2(code, body))
    with pytest.raises(anthropic.APIStatusError) as caught:
        client.messages.create(model="m", max_tokens=9, messages=[{"role": "user", "content": "hi"}])
    assert caught.value.body == {
        "type": "error",
        "error": {"type": "overloaded_error", "message": SENTENCE},
        "request_id": None,
    }


def test_the_google_sdk_raises_its_own() -> None:
    """From OpenAI's envelope to an exception of the google-genai SDK."""
    code, body = translate_error(400, json.dumps(ENVELOPES["openai"]).encode(), "openai_chat", "gemini_generate")
    options = genai.types.HttpOptions(httpx_client=_answers(code, body))
    with pytest.raises(google_errors.ClientError) as caught:
        genai.Client(api_key="k", http_options=options).models.generate_content(model="m", contents="hi")
    assert (caught.value.status, caught.value.message) == ("INVALID_ARGUMENT", SENTENCE)


def _answers(status: int, body: bytes) -> httpx.Client:
    headers = {"content-type": "application/json"}
    return httpx.Client(transport=httpx.MockTransport(lambda _: httpx.Response(status, content=body, headers=headers)))


def _answers2(status: int, body: bytes) -> httpx2.Client:
    """The same for SDKs that are built on httpx2."""
    headers = {"content-type": "application/json"}
    return httpx2.Client(
        transport=httpx2.MockTransport(lambda _: httpx2.Response(status, content=body, headers=headers))
    )
