"""Frameworks of agents over openai's SDK: pydantic-ai, OpenAI's Agents SDK, LlamaIndex."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from tests.clients.upstreams import start
from tests.library.ten_turns import KEY, MODEL, OPENING, RESULT, TURNS, check_refused, check_whole, deepseek
from thoughtline import Line

openai = pytest.importorskip("openai")


def weather(city: str) -> str:
    """The weather."""
    return RESULT


def check(
    talk: Callable[[str, Line | None], str], line: Line, *, of: str = "deepseek", error: str = "must be passed back"
) -> None:
    """Refused without a line, whole with it, in ten requests."""
    bare, upstream = start(of), start(of)
    with pytest.raises(Exception, match=error):
        talk(bare.url, None)
    check_refused(bare)
    check_whole(upstream, talk(upstream.url, line))


def async_openai(url: str, line: Line | None) -> Any:
    client = openai.AsyncOpenAI(api_key=KEY, base_url=f"{url}/v1", max_retries=0)
    return client if line is None else line.remember(client)


def forget(history: list[Any]) -> list[Any]:
    """What an application has of its messages that kept only what users see."""
    for message in history:
        message.parts = [part for part in message.parts if part.part_kind != "thinking"]
    return history


def pydantic_agent(url: str, line: Line | None, **more: Any) -> Any:
    pydantic_ai = pytest.importorskip("pydantic_ai")
    models = pytest.importorskip("pydantic_ai.models.openai")
    providers = pytest.importorskip("pydantic_ai.providers.openai")
    provider = providers.OpenAIProvider(openai_client=async_openai(url, line))
    return pydantic_ai.Agent(models.OpenAIChatModel(MODEL, provider=provider), tools=[weather], **more)


def pydantic_answer(agent: Any, way: str) -> str:
    async def run() -> str:
        if way == "async":
            return str((await agent.run(OPENING)).output)
        async with agent.run_stream(OPENING) as result:
            return str(await result.get_output())

    return str(agent.run_sync(OPENING).output) if way == "sync" else asyncio.run(run())


every_way = pytest.mark.parametrize("way", ["sync", "async", "streamed"])


@every_way
def test_pydantic_ai(line: Line, way: str) -> None:
    """It keeps reasoning itself; where its messages lost that, a line puts it back."""
    capabilities = pytest.importorskip("pydantic_ai.capabilities")

    def talk(url: str, line: Line | None) -> str:
        return pydantic_answer(pydantic_agent(url, line, capabilities=[capabilities.ProcessHistory(forget)]), way)

    check(talk, line)


@every_way
def test_pydantic_ai_that_keeps_reasoning(line: Line, way: str) -> None:
    """It is not disturbed."""
    upstream = deepseek()
    check_whole(upstream, pydantic_answer(pydantic_agent(upstream.url, line), way))


@every_way
def test_openai_agents(line: Line, way: str) -> None:
    """Its chat model keeps what DeepSeek thought, and forgets what any other did."""
    agents = pytest.importorskip("agents")
    agents.set_tracing_disabled(True)

    def talk(url: str, line: Line | None, name: str = "mimo-v2.5-pro") -> str:
        model = agents.OpenAIChatCompletionsModel(model=name, openai_client=async_openai(url, line))
        agent = agents.Agent(name="a", model=model, tools=[agents.function_tool(weather)])

        async def run() -> str:
            if way == "async":
                return str((await agents.Runner.run(agent, OPENING, max_turns=TURNS + 1)).final_output)
            result = agents.Runner.run_streamed(agent, OPENING, max_turns=TURNS + 1)
            async for _ in result.stream_events():
                pass
            return str(result.final_output)

        if way == "sync":
            return str(agents.Runner.run_sync(agent, OPENING, max_turns=TURNS + 1).final_output)
        return asyncio.run(run())

    check(talk, line, of="mimo", error="400")
    upstream = deepseek()
    check_whole(upstream, talk(upstream.url, line, MODEL))


def llama(url: str, line: Line | None) -> Any:
    like = pytest.importorskip("llama_index.llms.openai_like")
    doors = {"http_client": line.http_client(), "async_http_client": line.async_http_client()} if line else {}
    return like.OpenAILike(
        model=MODEL,
        api_key=KEY,
        api_base=f"{url}/v1",
        is_chat_model=True,
        is_function_calling_model=True,
        max_retries=0,
        **doors,
    )


@pytest.mark.parametrize("is_streamed", [False, True])
def test_a_llama_index_agent(line: Line, is_streamed: bool) -> None:
    """Which is asynchronous."""
    workflow = pytest.importorskip("llama_index.core.agent.workflow")

    def talk(url: str, line: Line | None) -> str:
        agent = workflow.FunctionAgent(tools=[weather], llm=llama(url, line), streaming=is_streamed)

        async def run() -> str:
            return str(await agent.run(OPENING, max_iterations=TURNS + 2))

        return asyncio.run(run()).strip()

    check(talk, line)


@pytest.mark.parametrize("is_streamed", [False, True])
def test_a_llama_index_model(line: Line, is_streamed: bool) -> None:
    """Its calls without a loop, in an application that keeps what was said and called."""
    types = pytest.importorskip("llama_index.core.llms")
    tool = pytest.importorskip("llama_index.core.tools").FunctionTool.from_defaults(weather)

    def talk(url: str, line: Line | None) -> str:
        model, history = llama(url, line), [types.ChatMessage(role="user", content=OPENING)]
        for _ in range(TURNS):
            if is_streamed:
                *_, answer = model.stream_chat_with_tools([tool], chat_history=history)
            else:
                answer = model.chat_with_tools([tool], chat_history=history)
            calls = model.get_tool_calls_from_response(answer, error_on_no_tool_call=False)
            if not calls:
                return str(answer.message.content)
            history.append(answer.message)
            history += [
                types.ChatMessage(role="tool", content=RESULT, additional_kwargs={"tool_call_id": call.tool_id})
                for call in calls
            ]
        raise AssertionError("the model never answered")

    check(talk, line)
