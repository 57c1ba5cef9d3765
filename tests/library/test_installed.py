"""`install` in one process with five SDKs at once: threads, event loops, a fork, and cleanly gone at the end."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import pytest

import thoughtline
from tests.clients.upstreams import start
from tests.library import test_sdks
from tests.library.ten_turns import KEY, MODEL, OPENING, RESULT, TOOL, TURNS, check_refused, check_whole, deepseek
from tests.library.test_langchain import converse
from tests.library.test_sdks import APPS, Door, Way
from thoughtline import Line

litellm = pytest.importorskip("litellm")
langchain = pytest.importorskip("langchain_deepseek")

CALLS: tuple[tuple[str, Way, bool], ...] = (
    *((name, way, False) for name in APPS for way in ("whole", "streamed")),
    *((name, way, True) for name in APPS if name != "google-genai" for way in ("whole", "streamed")),
)
"""google-genai makes asynchronous calls with aiohttp where that is installed."""


def of_an_sdk(name: str, way: Way, is_async: bool) -> None:
    _, simulator, profile = APPS[name]
    upstream = start(simulator, profile)
    check_whole(upstream, test_sdks.talk(name, upstream, Door(None), way=way, is_async=is_async))


def of_litellm() -> None:
    upstream, history = deepseek(), list[Any]([{"role": "user", "content": OPENING}])
    for _ in range(TURNS):
        answer = litellm.completion(
            model=f"deepseek/{MODEL}", api_base=f"{upstream.url}/v1", api_key=KEY, messages=history, tools=[TOOL]
        )
        said = answer.choices[0].message
        if not said.tool_calls:
            check_whole(upstream, said.content)
            return
        calls = [call.model_dump(include={"id", "type", "function"}) for call in said.tool_calls]
        history.append({"role": "assistant", "content": said.content or "", "tool_calls": calls})
        history += [{"role": "tool", "tool_call_id": call["id"], "content": RESULT} for call in calls]
    raise AssertionError("the model never answered")


async def of_langchain() -> None:
    upstream = deepseek()
    model = langchain.ChatDeepSeek(model=MODEL, api_key=KEY, api_base=f"{upstream.url}/v1", max_retries=0)
    check_whole(upstream, await converse(model, "ainvoke"))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning", "ignore:The model:DeprecationWarning")
def test_five_sdks_at_once(line: Line) -> None:
    """Each conversation is whole, in its own thread and its own loop; a fork goes on; then nothing is left of it."""

    with thoughtline.install(line), ThreadPoolExecutor(4) as pool:

        def as_user(number: int, work: Callable[[], None]) -> None:
            with line.conversation(user=f"u{number}"):  # all say the same, with the same key
                work()

        work: list[Callable[[], None]] = [partial(of_an_sdk, *call) for call in CALLS]
        work += [of_litellm, lambda: asyncio.run(of_langchain())]
        running = [pool.submit(as_user, *one) for one in enumerate(work)]
        for one in running:
            one.result()
        report = line.report
        assert (report.missing, report.blank, report.healed, report.store) == (0, 0, 0, "ok")
    with thoughtline.install(line):
        child = os.fork()
        if child == 0:
            try:
                of_an_sdk("openai-chat", "whole", False)
            except BaseException:
                os._exit(1)
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0
    bare = deepseek()
    with pytest.raises(Exception, match="must be passed back"):
        test_sdks.talk("openai-chat", bare, Door(None), way="whole", is_async=False)
    check_refused(bare)
