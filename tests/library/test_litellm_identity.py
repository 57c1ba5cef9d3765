"""Whose thought it is, with LiteLLM's callback: the stories of `identity_stories.py`, and ids that clients choose."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator, Mapping
from typing import Any

import httpx
import pytest

from tests.gateway.upstreams import upstream
from tests.identity_stages import Post, Stage, Upstream
from tests.identity_stories import (
    Story,
    empty_turn_beside_a_retry,
    longer_system_prompt,
    no_system_prompt,
    other_end_user,
    other_indentation,
    other_line_ends,
    other_prompt_with_a_date,
    other_system_prompt,
    other_tools,
    prompt_that_changes_wholly,
    prompt_with_another_date,
    proven_chain_under_changing_prompts,
    record_with_a_call_for_a_turn_without,
    repeated_results,
    swapped_results,
    twins_in_any_order,
    twins_that_call_with_counted_ids,
    twins_that_interleave,
    twins_that_nothing_tells_apart,
    unique_ids_under_changing_prompts,
)
from tests.written_exchanges import CHAT, Asked, Frame, Json, Said, marks_in, thought
from thoughtline import Line

litellm = pytest.importorskip("litellm")
thoughtline_litellm = pytest.importorskip("thoughtline.library.litellm")

STORIES: tuple[Story, ...] = (
    other_system_prompt,
    no_system_prompt,
    longer_system_prompt,
    prompt_that_changes_wholly,
    prompt_with_another_date,
    other_prompt_with_a_date,
    other_end_user,
    other_tools,
    twins_that_interleave,
    twins_that_call_with_counted_ids,
    twins_that_nothing_tells_apart,
    twins_in_any_order,
    swapped_results,
    repeated_results,
    other_indentation,
    other_line_ends,
    record_with_a_call_for_a_turn_without,
    unique_ids_under_changing_prompts,
    proven_chain_under_changing_prompts,
    empty_turn_beside_a_retry,
)
MODEL = CHAT.models[0]
CALL_ID = "an-id-that-a-client-chose"


@pytest.fixture
def thinking() -> Upstream:
    return Upstream()


@pytest.fixture
def url(thinking: Upstream) -> Iterator[str]:
    with upstream(thinking) as up:
        yield up.url


@pytest.fixture
def callback(line: Line) -> Any:
    made = thoughtline_litellm.Callback(line)
    litellm.callbacks = [made]
    return made


def _settings(url: str, body: Json, key: str) -> Json:
    asked = {**body, "model": f"deepseek/{MODEL}", "api_base": f"{url}/v1", "api_key": key}
    return {**asked, "max_retries": 0, "allowed_openai_params": ["safety_identifier", "user"]}


async def _read(answer: Any) -> None:
    """All of an answer: of a stream, up to its last chunk."""
    if hasattr(answer, "__aiter__"):
        async for _ in answer:
            pass


def _posting(url: str, loop: asyncio.AbstractEventLoop) -> Post:
    def post(path: str, body: Json, headers: Mapping[str, str]) -> httpx.Response:
        async def ask() -> None:
            key = headers["authorization"].removeprefix("Bearer ")
            await _read(await litellm.acompletion(**_settings(url, body, key)))

        asyncio.run_coroutine_threadsafe(ask(), loop).result(60)
        return httpx.Response(200)

    return post


@pytest.mark.parametrize("is_streaming", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("story", STORIES, ids=lambda story: story.__name__)
async def test_a_story(callback: Any, thinking: Upstream, url: str, story: Story, is_streaming: bool) -> None:
    """No request carries another conversation's thought; what can be told apart is restored."""
    post = _posting(url, asyncio.get_running_loop())
    stage = Stage(post, thinking, CHAT, is_streaming=is_streaming, has_findings=False)
    await asyncio.to_thread(story, stage)


# --- ids that clients choose -----------------------------------------------------------------------------------------


class Tenant:
    """A holder of a virtual key. The proxy takes the id of a call from a header, so that clients can choose it."""

    def __init__(self, name: str, url: str, thinking: Upstream) -> None:
        self.name = name
        self._url = url
        self._thinking = thinking

    async def begin(self, *talk: Any, is_streaming: bool, call_id: str = CALL_ID) -> Any:
        """The answer to a request, or its stream. Every answer says the same and thinks its tenant's own."""
        whole = CHAT.answer(Said("Hello!"), thought(self.name, 1), 1)
        self._thinking.next_answer = CHAT, whole, is_streaming
        return await litellm.acompletion(**self.request(*talk, is_streaming=is_streaming, call_id=call_id))

    def request(self, *talk: Any, is_streaming: bool, call_id: str = CALL_ID) -> Json:
        body = CHAT.body(talk, Frame(), is_streaming=is_streaming)
        settings = _settings(self._url, body, "key-of-the-proxy")
        metadata = {"user_api_key_hash": self.name, "user_api_key": self.name}
        return {**settings, "metadata": metadata, "litellm_call_id": call_id}

    async def next_marks(self) -> list[str]:
        """The thoughts in its next request, which has an id of its own."""
        talk = (Asked("Hi"), Said("Hello!"), Asked("And?"))
        await _read(await self.begin(*talk, is_streaming=False, call_id=f"next of {self.name}"))
        return marks_in(self._thinking.bodies[-1])


@pytest.fixture
def tenants(url: str, thinking: Upstream, callback: Any) -> tuple[Tenant, Tenant]:
    return Tenant("Anna", url, thinking), Tenant("Bert", url, thinking)


@pytest.mark.parametrize("is_streaming", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("first_to_end", ["Anna", "Bert"])
async def test_the_id_of_a_stream_that_runs(
    tenants: tuple[Tenant, Tenant], is_streaming: bool, first_to_end: str
) -> None:
    """While Anna's stream runs, Bert asks with the same id: neither gets the other's thought."""
    anna, bert = tenants
    stream = await anna.begin(Asked("Hi"), is_streaming=True)
    await anext(aiter(stream))
    answer = await bert.begin(Asked("Hi"), is_streaming=is_streaming)
    for one in (stream, answer) if first_to_end == "Anna" else (answer, stream):
        await _read(one)
    assert await bert.next_marks() in ([], ["Bert01"])
    assert await anna.next_marks() in ([], ["Anna01"])


async def _chunks(name: str) -> AsyncIterator[Json]:
    head = {"id": "r", "object": "chat.completion.chunk", "created": 1, "model": MODEL}
    for delta, finish in (({"reasoning_content": thought(name, 1)}, None), ({"content": "Hello!"}, None), ({}, "stop")):
        yield {**head, "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}


async def test_the_id_of_a_stream_of_the_proxy(tenants: tuple[Tenant, Tenant], callback: Any) -> None:
    """The same through the proxy's hooks, which read a stream chunk by chunk: each is saved for its own tenant."""
    requests = [one.request(Asked("Hi"), is_streaming=True) for one in tenants]
    for request in requests:
        await callback.async_pre_call_deployment_hook(request, None)
    for one, request in zip(tenants, requests, strict=True):
        async for _ in callback.async_post_call_streaming_iterator_hook(None, _chunks(one.name), request):
            pass
    for one in tenants:
        assert await one.next_marks() == [f"{one.name}01"]


@pytest.mark.parametrize("is_streaming", [False, True], ids=["whole", "stream"])
async def test_one_id_for_calls_of_one_tenant(
    tenants: tuple[Tenant, Tenant], thinking: Upstream, is_streaming: bool
) -> None:
    """A client that gives all its calls one id, one after the other, gets its own thought back."""
    anna = tenants[0]
    for _ in range(2):
        await _read(await anna.begin(Asked("Hi"), is_streaming=is_streaming))
    await _read(await anna.begin(Asked("Hi"), Said("Hello!"), Asked("And?"), is_streaming=is_streaming))
    assert marks_in(thinking.bodies[-1]) == ["Anna01"]
