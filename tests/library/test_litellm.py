"""LiteLLM with the callback: its SDK and its proxy, `openai/…` with an address and `deepseek/…`."""

from __future__ import annotations

import asyncio
from typing import Any, Literal

import pytest

from tests.library.ten_turns import KEY, MODEL, OPENING, RESULT, TOOL, TURNS, check_refused, check_whole, deepseek
from thoughtline import Line

litellm = pytest.importorskip("litellm")
thoughtline_litellm = pytest.importorskip("thoughtline.library.litellm")

CallKind = Literal["completion", "acompletion", "stream", "astream"]
CALL_KINDS: tuple[CallKind, ...] = ("completion", "acompletion", "stream", "astream")
both_names = pytest.mark.parametrize("prefix", ["openai", "deepseek"])


@pytest.fixture
def callback(line: Line) -> Any:
    made = thoughtline_litellm.Callback(line)
    litellm.callbacks = [made]
    return made


async def converse(prefix: str, url: str, kind: CallKind) -> str:
    """The answer, after as many calls as the model wants, through an application that forgets."""
    history: list[Any] = [{"role": "user", "content": OPENING}]
    for _ in range(TURNS):
        message = await ask(prefix, url, kind, history)
        calls = [call.model_dump(include={"id", "type", "function"}) for call in message.tool_calls or []]
        if not calls:
            return str(message.content)
        history.append({"role": "assistant", "content": message.content, "tool_calls": calls})
        history += [{"role": "tool", "tool_call_id": call["id"], "content": RESULT} for call in calls]
    raise AssertionError("the model never answered")


async def ask(prefix: str, url: str, kind: CallKind, history: list[Any], **more: Any) -> Any:
    settings: dict[str, Any] = {
        "model": f"{prefix}/{MODEL}",
        "api_base": f"{url}/v1",
        "api_key": KEY,
        "messages": history,
        "tools": [TOOL],
        "max_retries": 0,
        **more,
    }
    match kind:
        case "completion":
            return (await asyncio.to_thread(litellm.completion, **settings)).choices[0].message
        case "acompletion":
            return (await litellm.acompletion(**settings)).choices[0].message
        case "stream":
            chunks = await asyncio.to_thread(lambda: list(litellm.completion(**settings, stream=True)))
        case "astream":
            chunks = [chunk async for chunk in await litellm.acompletion(**settings, stream=True)]
    return litellm.stream_chunk_builder(chunks).choices[0].message


@both_names
@pytest.mark.parametrize("kind", CALL_KINDS)
async def test_the_sdk(prefix: str, kind: CallKind, callback: Any) -> None:
    """Whole with the callback, and no request more."""
    upstream = deepseek()
    check_whole(upstream, await converse(prefix, upstream.url, kind))


@both_names
@pytest.mark.parametrize("kind", CALL_KINDS)
async def test_the_sdk_without_the_callback(prefix: str, kind: CallKind) -> None:
    """What DeepSeek says to it."""
    upstream = deepseek()
    with pytest.raises(litellm.BadRequestError):
        await converse(prefix, upstream.url, kind)
    check_refused(upstream)


async def test_an_unknown_turn_is_blank_the_first_time(callback: Any) -> None:
    """A callback can't send again: a turn of another day gets what the provider takes."""
    upstream = deepseek()
    call = {"id": "call_x", "type": "function", "function": {"name": "weather", "arguments": "{}"}}
    history = [
        {"role": "user", "content": OPENING},
        {"role": "assistant", "content": "", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "call_x", "content": RESULT},
    ]
    await ask("openai", upstream.url, "acompletion", history)
    assert upstream.refusals() == []


async def test_a_stream_that_was_left_is_waited_for_once(callback: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody will ever log it; other conversations don't wait at all."""
    upstream, waits = deepseek(), list[int]()
    wait = asyncio.wait

    async def counted(some: Any, **more: Any) -> Any:
        some = list(some)
        waits.append(len(some))
        return await wait(some, timeout=0)

    async for _ in await stream(upstream.url, OPENING):
        break
    monkeypatch.setattr(thoughtline_litellm.asyncio, "wait", counted)
    call = {"id": "call_x", "type": "function", "function": {"name": "weather", "arguments": "{}"}}
    turn: list[Any] = [{"role": "assistant", "content": "", "tool_calls": [call]}]
    turn += [{"role": "tool", "tool_call_id": "call_x", "content": RESULT}]
    for opening in ("another question", OPENING, OPENING):
        await ask("openai", upstream.url, "acompletion", [{"role": "user", "content": opening}, *turn])
    assert waits == [1]


async def stream(url: str, opening: str) -> Any:
    messages = [{"role": "user", "content": opening}]
    settings = {"model": f"openai/{MODEL}", "api_base": f"{url}/v1", "api_key": KEY, "tools": [TOOL]}
    return await litellm.acompletion(**settings, messages=messages, stream=True)


@pytest.mark.parametrize("kind", ["completion", "acompletion"])
async def test_tenants_are_virtual_keys(callback: Any, kind: CallKind) -> None:
    """The proxy tells the hash of the key that a client has shown: nobody else's turns are found."""
    upstream, history = deepseek(), list[Any]([{"role": "user", "content": OPENING}])
    message = await ask("openai", upstream.url, kind, history, metadata={"user_api_key_hash": "ann"})
    calls = [call.model_dump(include={"id", "type", "function"}) for call in message.tool_calls]
    history.append({"role": "assistant", "content": message.content, "tool_calls": calls})
    history += [{"role": "tool", "tool_call_id": call["id"], "content": RESULT} for call in calls]
    found = []
    for who in ("bob", "ann"):
        await ask("openai", upstream.url, kind, history, metadata={"user_api_key_hash": who})
        found.append(callback.line.report.restored)
    assert found == [0, 1]
