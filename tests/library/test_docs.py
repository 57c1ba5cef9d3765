"""The recipes for frameworks of `docs/library.md`, run as printed."""

from __future__ import annotations

import asyncio
import importlib
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.clients.upstreams import Upstream
from tests.examples import APPLICATIONS, blocks, example
from tests.library.ten_turns import ANSWER, KEY, MODEL, OPENING, RESULT, TOOL, TURNS, check_whole, deepseek
from tests.library.test_langchain import converse
from thoughtline import Line


def weather(city: str) -> str:
    """The weather."""
    return RESULT


@pytest.fixture
def upstream(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Upstream:
    """A strict DeepSeek that the environment names."""
    started = deepseek()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("THOUGHTLINE_STORE", f"sqlite:///{tmp_path / 'own.db'}")
    monkeypatch.setattr("thoughtline.library.door._default", [])
    for name in ("OPENAI", "DEEPSEEK"):
        monkeypatch.setenv(f"{name}_API_KEY", KEY)
    for name in ("OPENAI_BASE_URL", "OPENAI_API_BASE", "DEEPSEEK_API_BASE"):
        monkeypatch.setenv(name, f"{started.url}/v1")
    return started


def test_langchain(upstream: Upstream) -> None:
    check_whole(upstream, asyncio.run(converse(example("LangChain")["model"], "invoke")))


def test_langgraph(upstream: Upstream) -> None:
    told = example("LangGraph")["agent"].invoke({"messages": [("user", OPENING)]})
    check_whole(upstream, told["messages"][-1].content)


def test_pydantic_ai(upstream: Upstream) -> None:
    pytest.importorskip("pydantic_ai")
    agent = example("pydantic-ai")["agent"]
    agent.tool_plain(weather)
    check_whole(upstream, asyncio.run(agent.run(OPENING)).output)


def test_llama_index(upstream: Upstream) -> None:
    workflow = pytest.importorskip("llama_index.core.agent.workflow")
    agent = workflow.FunctionAgent(tools=[weather], llm=example("LlamaIndex")["model"], streaming=False)

    async def run() -> str:
        return str(await agent.run(OPENING, max_iterations=TURNS + 2))

    assert ANSWER in asyncio.run(run())
    check_whole(upstream, ANSWER)


def test_openai_agents(upstream: Upstream) -> None:
    agents = pytest.importorskip("agents")
    agents.set_tracing_disabled(True)
    agent = example("OpenAI Agents SDK")["agent"].clone(tools=[agents.function_tool(weather)])
    check_whole(upstream, asyncio.run(agents.Runner.run(agent, OPENING, max_turns=TURNS + 1)).final_output)


def test_litellm(upstream: Upstream, tmp_path: Path) -> None:
    """The SDK's lines, and the name that stands in the proxy's file."""
    litellm = pytest.importorskip("litellm")
    example("LiteLLM")
    assert "thoughtline.litellm.callback" in blocks(language="yaml")["LiteLLM"]
    (made,) = litellm.callbacks
    assert made is importlib.import_module("thoughtline.litellm").callback
    made._line = Line(f"sqlite:///{tmp_path / 'own.db'}")
    asked = {"role": "user", "content": OPENING}
    answer = litellm.completion(model=f"deepseek/{MODEL}", messages=[asked], tools=[TOOL])
    assert answer.choices[0].message.tool_calls
    assert made.line.report.saved == 1


async def test_a_server_with_many_users(upstream: Upstream) -> None:
    """Two users who say the same at the same time: each conversation is whole, and each has its own thoughts."""
    pytest.importorskip("fastapi")
    made = example("A server with many users", APPLICATIONS)
    transport = httpx.ASGITransport(app=made["app"])

    async def talk(user: str) -> str:
        history: list[Any] = [{"role": "user", "content": OPENING}]
        async with httpx.AsyncClient(transport=transport, base_url="http://app") as client:
            for _ in range(TURNS):
                asked = {"user": user, "chat": "1"}
                said = (await client.post("/ask", params=asked, json={"messages": history, "tools": [TOOL]})).json()
                if not said["tool_calls"]:
                    return str(said["content"])
                history.append({"role": "assistant", **said})
                history += [
                    {"role": "tool", "tool_call_id": call["id"], "content": RESULT} for call in said["tool_calls"]
                ]
        raise AssertionError("the model never answered")

    assert await asyncio.gather(*map(talk, ("u1", "u2"))) == [ANSWER] * 2
    assert upstream.refusals() == []
    assert made["line"].report.restored == 2 * sum(range(TURNS))
