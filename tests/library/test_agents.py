"""Frameworks of agents over openai's SDK: pydantic-ai, OpenAI's Agents SDK, LlamaIndex."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests.library.talking import ANSWER, KEY, MODEL, OPENING, RESULT, TURNS, check_refused, check_whole, deepseek
from thoughtline import Line

openai = pytest.importorskip("openai")


def weather(city: str) -> str:
    """The weather."""
    return RESULT


@pytest.mark.parametrize("is_streamed", [False, True])
def test_pydantic_ai(line: Line, is_streamed: bool) -> None:
    """It keeps reasoning itself, and is not disturbed."""
    pydantic_ai = pytest.importorskip("pydantic_ai")
    models = pytest.importorskip("pydantic_ai.models.openai")
    providers = pytest.importorskip("pydantic_ai.providers.openai")
    upstream = deepseek()
    client = openai.AsyncOpenAI(api_key=KEY, base_url=f"{upstream.url}/v1", max_retries=0)
    provider = providers.OpenAIProvider(openai_client=line.remember(client))
    agent = pydantic_ai.Agent(models.OpenAIChatModel(MODEL, provider=provider), tools=[weather])

    async def run() -> str:
        if not is_streamed:
            return str((await agent.run(OPENING)).output)
        async with agent.run_stream(OPENING) as result:
            return str(await result.get_output())

    check_whole(upstream, asyncio.run(run()))


@pytest.mark.parametrize("is_streamed", [False, True])
def test_openai_agents(line: Line, is_streamed: bool) -> None:
    """Its chat model forgets; over a client that remembers it doesn't."""
    agents = pytest.importorskip("agents")
    agents.set_tracing_disabled(True)
    tool = agents.function_tool(weather)

    async def run(client: Any) -> str:
        model = agents.OpenAIChatCompletionsModel(model=MODEL, openai_client=client)
        agent = agents.Agent(name="a", model=model, tools=[tool])
        if not is_streamed:
            return str((await agents.Runner.run(agent, OPENING, max_turns=TURNS + 1)).final_output)
        result = agents.Runner.run_streamed(agent, OPENING, max_turns=TURNS + 1)
        async for _ in result.stream_events():
            pass
        return str(result.final_output)

    upstream = deepseek()
    client = openai.AsyncOpenAI(api_key=KEY, base_url=f"{upstream.url}/v1", max_retries=0)
    check_whole(upstream, asyncio.run(run(line.remember(client))))


@pytest.mark.parametrize("is_streamed", [False, True])
def test_llama_index(line: Line, is_streamed: bool) -> None:
    """Refused without a line, whole with it."""
    like = pytest.importorskip("llama_index.llms.openai_like")
    workflow = pytest.importorskip("llama_index.core.agent.workflow")

    def agent(url: str, **doors: Any) -> Any:
        model = like.OpenAILike(
            model=MODEL,
            api_key=KEY,
            api_base=f"{url}/v1",
            is_chat_model=True,
            is_function_calling_model=True,
            max_retries=0,
            **doors,
        )
        return workflow.FunctionAgent(tools=[weather], llm=model, streaming=is_streamed)

    async def run(made: Any) -> str:
        return str(await made.run(OPENING, max_iterations=TURNS + 2))

    bare, upstream = deepseek(), deepseek()
    with pytest.raises(Exception, match="must be passed back"):
        asyncio.run(run(agent(bare.url)))
    check_refused(bare)
    doors = {"http_client": line.http_client(), "async_http_client": line.async_http_client()}
    assert ANSWER in asyncio.run(run(agent(upstream.url, **doors)))
    check_whole(upstream, ANSWER)
