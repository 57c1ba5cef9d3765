"""openai's asynchronous client on a loop of trio, over a line."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests.library.ten_turns import KEY, MODEL, OPENING, RESULT, TOOL, TURNS, check_whole, deepseek
from tests.line.chats import Answer, Told, events
from thoughtline import Line
from thoughtline.engine import open_store
from thoughtline.stores import Filter

trio = pytest.importorskip("trio")
openai = pytest.importorskip("openai")


def client_of(line: Line, url: str) -> Any:
    return openai.AsyncOpenAI(base_url=f"{url}/v1", api_key=KEY, http_client=line.async_http_client(), max_retries=0)


async def say(client: Any, history: list[Any], *, is_streamed: bool) -> Any:
    asked = {"model": MODEL, "messages": history, "tools": [TOOL]}
    answer = await client.chat.completions.create(**asked, stream=is_streamed)
    if not is_streamed:
        return answer.choices[0].message.model_dump(include={"content", "tool_calls"})
    said: dict[str, Any] = {"content": "", "tool_calls": []}
    async for chunk in answer:
        delta = chunk.choices[0].delta if chunk.choices else None
        said["content"] += (delta and delta.content) or ""
        said["tool_calls"] += [call.model_dump(exclude={"index"}) for call in (delta and delta.tool_calls) or []]
    return joined(said)


def joined(said: dict[str, Any]) -> dict[str, Any]:
    """Calls in pieces: an id begins one, and what follows are more of its arguments."""
    calls: list[Any] = []
    for piece in said["tool_calls"]:
        if piece["id"]:
            calls.append(piece)
        else:
            calls[-1]["function"]["arguments"] += piece["function"]["arguments"]
    return {**said, "tool_calls": calls}


@pytest.mark.parametrize("is_streamed", [False, True])
def test_ten_turns(line: Line, is_streamed: bool) -> None:
    """Every thought comes back."""
    upstream = deepseek()

    async def run() -> str:
        client, history = client_of(line, upstream.url), list[Any]([{"role": "user", "content": OPENING}])
        for _ in range(TURNS):
            said = await say(client, history, is_streamed=is_streamed)
            if not said["tool_calls"]:
                await line.aclose()
                return str(said["content"])
            history.append({"role": "assistant", **said})
            history += [{"role": "tool", "tool_call_id": call["id"], "content": RESULT} for call in said["tool_calls"]]
        raise AssertionError("the model never answered")

    check_whole(upstream, trio.run(run))


def test_a_scope_that_is_cancelled(line: Line, tmp_path: Any) -> None:
    """In mid-stream: the turn is kept as cut, and the next call works."""
    server = Told(lambda body: Answer(b"".join(events()[:2]), kind="text/event-stream", stalls=True))

    async def run() -> None:
        client = client_of(line, server.url)
        history = [{"role": "user", "content": "Hello"}]
        with trio.CancelScope() as scope:
            async for _ in await client.chat.completions.create(model=MODEL, messages=history, stream=True):
                scope.cancel()
        assert scope.cancelled_caught
        await line.aclose()

    trio.run(run)

    async def kept() -> list[bool]:
        store = await open_store(f"sqlite:///{tmp_path / 'thoughts.db'}")
        entries = (await store.list_entries(Filter())).entries
        await store.close()
        return [entry.record.is_complete for entry in entries]

    assert asyncio.run(kept()) == [False]
