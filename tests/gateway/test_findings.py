"""What a translated exchange lost is reported: in the header, in the log, and in the admin API."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from msgspec.structs import replace

from tests.gateway.gateways import moved
from tests.gateway.managed_gateways import Managed, managed
from tests.gateway.upstreams import Got, Out, upstream
from tests.translation.noted_answers import (
    ANNOTATION,
    CITED,
    CITED_BY,
    TITLE,
    URL,
    WORDS,
    Json,
    chat_body,
    chat_chunk,
    events_of,
)
from thoughtline.settings import Settings

LIKELY = {"content": [{"token": WORDS, "logprob": -0.5, "bytes": None, "top_logprobs": []}]}
BODY = chat_body({"annotations": [ANNOTATION]}, logprobs=LIKELY)
CHUNKS = [chat_chunk({"content": WORDS}, logprobs=LIKELY), chat_chunk({"annotations": [ANNOTATION]})]
STREAM = [b"data: %b\n\n" % json.dumps(one).encode() for one in (*CHUNKS, chat_chunk({}, "stop"))]
WAYS = [False, True]
IDS = ["whole", "stream"]


async def cite(got: Got, out: Out) -> None:
    """An answer with citations, in the requested form."""
    if json.loads(got.body).get("stream"):
        await out.stream()
        for piece in (*STREAM, b"data: [DONE]\n\n"):
            await out.chunk(piece)
        await out.end()
    else:
        await out.whole(200, json.dumps(BODY).encode())


@contextlib.contextmanager
def citing() -> Iterator[Managed]:
    """A gateway whose only provider speaks chat, and cites."""
    with upstream(cite) as up:
        row = replace(moved("vllm", up.url), formats=("openai_chat",))
        with managed(Settings(providers={"vllm": row}), simulators={}) as gateway:
            yield gateway


def ask(gateway: Managed, path: str, body: Json) -> httpx.Response:
    headers = {"authorization": "Bearer k", "x-thoughtline-session": "mine"}
    return gateway.anyone.post(f"/vllm{path}", json={"model": "a-model"} | body, headers=headers)


SAYS_HI: dict[str, Any] = {"max_tokens": 9, "messages": [{"role": "user", "content": "hi"}]}


@pytest.mark.parametrize("is_streaming", WAYS, ids=IDS)
def test_what_an_answer_lost(is_streaming: bool) -> None:
    """A Messages client gets the page; the loss of its place in the block is in the log, with the turn in the admin
    API, and in the header of an answer that was not sent yet."""
    with citing() as gateway:
        response = ask(gateway, "/v1/messages", SAYS_HI | {"stream": is_streaming})
        assert response.status_code == 200, response.text
        told = CITED_BY["anthropic_messages"](events_of("anthropic_messages", response.content))
        assert told == [(URL, TITLE, WORDS)]
        assert response.headers.get("x-thoughtline-findings") == (None if is_streaming else "untranslatable=1")
        lost = [["untranslatable", "answer/notes"]]
        assert gateway.gateway.lines[-1]["findings"] == lost
        (turn,) = gateway.get("/api/sessions/mine")["turns"]
        assert [[one["rule"], one["place"]] for one in turn["outcome"]["findings"]] == lost


@pytest.mark.parametrize("is_streaming", WAYS, ids=IDS)
def test_what_a_request_lost(is_streaming: bool) -> None:
    """It is known before the answer begins, and so in every header."""
    history = [*SAYS_HI["messages"], {"role": "assistant", "content": WORDS}, {"role": "user", "content": "and?"}]
    body = {"input": history, "stream": is_streaming, "truncation": "auto"}
    with citing() as gateway:
        response = ask(gateway, "/v1/responses", body)
        assert response.status_code == 200, response.text
        assert response.headers["x-thoughtline-findings"] == "untranslatable=1"
        assert gateway.gateway.lines[-1]["findings"] == [["untranslatable", "/truncation"]]
        told = CITED_BY["openai_responses"](events_of("openai_responses", response.content))
        assert told == [(URL, TITLE, CITED)]


@pytest.mark.parametrize("is_streaming", WAYS, ids=IDS)
def test_nothing_lost_nothing_reported(is_streaming: bool) -> None:
    """No header and no findings if both sides can express everything."""
    with citing() as gateway:
        for path, body in (("/v1/chat/completions", SAYS_HI), ("/v1/responses", {"input": "hi"})):
            response = ask(gateway, path, body | {"stream": is_streaming})
            assert response.status_code == 200, response.text
            assert "x-thoughtline-findings" not in response.headers
            assert gateway.gateway.lines[-1].get("findings", []) == []


@pytest.mark.parametrize("is_streaming", WAYS, ids=IDS)
def test_a_compacted_conversation_of_another_provider(is_streaming: bool) -> None:
    """It is removed with a finding; nothing of it is sent or logged."""
    body = {"input": [{"type": "compaction", "id": "cmp_1", "encrypted_content": "gAAASEALED"}], "stream": is_streaming}
    with citing() as gateway:
        response = ask(gateway, "/v1/responses", body)
        assert response.status_code == 200
        assert "untranslatable" in response.headers["x-thoughtline-findings"]
        assert "gAAASEALED" not in response.text + json.dumps(gateway.gateway.lines)
