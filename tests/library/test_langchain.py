"""LangChain's classes and a LangGraph agent, which forget what DeepSeek thought."""

from __future__ import annotations

import asyncio
from typing import Any, Literal

import pytest

from tests.library.ten_turns import KEY, MODEL, OPENING, RESULT, TOOL, TURNS, check_refused, check_whole, deepseek
from thoughtline import Line

langchain_openai = pytest.importorskip("langchain_openai")
langchain_deepseek = pytest.importorskip("langchain_deepseek")
messages = pytest.importorskip("langchain_core.messages")
prebuilt = pytest.importorskip("langgraph.prebuilt")
openai = pytest.importorskip("openai")

Way = Literal["invoke", "ainvoke", "stream", "astream"]
WAYS: tuple[Way, ...] = ("invoke", "ainvoke", "stream", "astream")


def chat_openai(url: str, doors: dict[str, Any]) -> Any:
    return langchain_openai.ChatOpenAI(model=MODEL, api_key=KEY, base_url=f"{url}/v1", max_retries=0, **doors)


def chat_deepseek(url: str, doors: dict[str, Any]) -> Any:
    return langchain_deepseek.ChatDeepSeek(model=MODEL, api_key=KEY, api_base=f"{url}/v1", max_retries=0, **doors)


MODELS = {"ChatOpenAI": chat_openai, "ChatDeepSeek": chat_deepseek}


async def converse(model: Any, way: Way) -> str:
    """The answer, after as many calls as the model wants."""
    bound, history = model.bind_tools([TOOL]), [messages.HumanMessage(OPENING)]
    for _ in range(TURNS):
        said = await ask(bound, history, way)
        if not said.tool_calls:
            return str(said.content)
        results = [messages.ToolMessage(RESULT, tool_call_id=call["id"]) for call in said.tool_calls]
        history += [messages.AIMessage(said.content, tool_calls=said.tool_calls), *results]
    raise AssertionError("the model never answered")


async def ask(model: Any, history: list[Any], way: Way) -> Any:
    match way:
        case "invoke":
            return model.invoke(history)
        case "ainvoke":
            return await model.ainvoke(history)
        case "stream":
            chunks = list(model.stream(history))
        case "astream":
            chunks = [chunk async for chunk in model.astream(history)]
    whole = chunks[0]
    for chunk in chunks[1:]:
        whole = whole + chunk
    return whole


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("way", WAYS)
def test_a_chat_model(name: str, way: Way, line: Line) -> None:
    """Refused without a line, whole with it."""
    bare, upstream = deepseek(), deepseek()
    with pytest.raises(openai.BadRequestError):
        asyncio.run(converse(MODELS[name](bare.url, {}), way))
    check_refused(bare)
    check_whole(upstream, asyncio.run(converse(MODELS[name](upstream.url, line.langchain()), way)))


@pytest.mark.parametrize("name", MODELS)
def test_a_chat_model_that_is_made_already(name: str, line: Line) -> None:
    """`remember` finds the clients inside it."""
    upstream = deepseek()
    check_whole(upstream, asyncio.run(converse(line.remember(MODELS[name](upstream.url, {})), "invoke")))


async def run(agent: Any, way: Way) -> str:
    """The answer of an agent, whose loop over its tools is its own."""
    asked: Any = {"messages": [("user", OPENING)]}
    told: Any = None
    match way:
        case "invoke":
            told = agent.invoke(asked)
        case "ainvoke":
            told = await agent.ainvoke(asked)
        case "stream":
            for kind, part in agent.stream(asked, stream_mode=["messages", "values"]):
                told = part if kind == "values" else told
        case "astream":
            async for kind, part in agent.astream(asked, stream_mode=["messages", "values"]):
                told = part if kind == "values" else told
    return str(told["messages"][-1].content)


@pytest.mark.filterwarnings("ignore:create_react_agent")
@pytest.mark.parametrize("way", WAYS)
def test_a_langgraph_agent(way: Way, line: Line) -> None:
    """Refused without a line, whole with it."""

    def weather(city: str) -> str:
        """The weather."""
        return RESULT

    bare, upstream = deepseek(), deepseek()
    agents = [
        prebuilt.create_react_agent(chat_deepseek(url, doors), [weather])
        for url, doors in ((bare.url, {}), (upstream.url, line.langchain()))
    ]
    with pytest.raises(openai.BadRequestError):
        asyncio.run(run(agents[0], way))
    check_refused(bare)
    check_whole(upstream, asyncio.run(run(agents[1], way)))
