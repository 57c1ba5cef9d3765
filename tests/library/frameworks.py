"""Agents of frameworks that make their clients themselves: each holds the ten turns, with nothing of ours in its code.

An agent is given the address of a provider and how to ask: `sync`, `async` or `streamed`. It returns the answer.
"""

from __future__ import annotations

import asyncio
import importlib
import inspect
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, TypeAlias

from tests.library.ten_turns import KEY, MODEL, OPENING, RESULT, TOOL, TURNS

Way: TypeAlias = str
Talk: TypeAlias = Callable[[str, Way], str]


def weather(city: str) -> str:
    """The weather in a city.

    Args:
        city: The name of the city.
    """
    return RESULT


async def aweather(city: str) -> str:
    """The weather in a city."""
    return RESULT


def _call(id: str, name: str, arguments: str) -> dict[str, Any]:
    return {"id": id, "type": "function", "function": {"name": name, "arguments": arguments}}


def haystack(url: str, way: Way) -> str:
    """Its generator makes clients as it is warmed up, or asked first."""
    generators = importlib.import_module("haystack.components.generators.chat")
    types = importlib.import_module("haystack.dataclasses")
    tools = importlib.import_module("haystack.tools")
    secret = importlib.import_module("haystack.utils").Secret.from_token(KEY)
    tool = tools.Tool("weather", "The weather.", TOOL["function"]["parameters"], weather)
    generator = generators.OpenAIChatGenerator(
        api_key=secret, model=MODEL, api_base_url=f"{url}/v1", tools=[tool], max_retries=0
    )
    history = [types.ChatMessage.from_user(OPENING)]

    async def say() -> Any:
        if way == "async":
            return await generator.run_async(history)
        return generator.run(history, streaming_callback=(lambda chunk: None) if way == "streamed" else None)

    async def run() -> str:
        for _ in range(TURNS):
            (reply,) = (await say())["replies"]
            history.append(types.ChatMessage.from_assistant(reply.text, tool_calls=reply.tool_calls))
            if not reply.tool_calls:
                return str(reply.text)
            history.extend(types.ChatMessage.from_tool(RESULT, origin=call) for call in reply.tool_calls)
        raise AssertionError("the model never answered")

    return asyncio.run(run())


def strands(url: str, way: Way) -> str:
    """It makes a client for each request."""
    models = importlib.import_module("strands.models.openai")
    agents = importlib.import_module("strands")
    model = models.OpenAIModel(client_args={"api_key": KEY, "base_url": f"{url}/v1", "max_retries": 0}, model_id=MODEL)
    agent = agents.Agent(model=model, tools=[agents.tool(weather)], callback_handler=None)

    async def run() -> str:
        if way == "async":
            return str(await agent.invoke_async(OPENING))
        said = [event["result"] async for event in agent.stream_async(OPENING) if "result" in event]
        return str(said[-1])

    return (str(agent(OPENING)) if way == "sync" else asyncio.run(run())).strip()


def autogen(url: str, way: Way) -> str:
    """Asynchronous only."""
    clients = importlib.import_module("autogen_ext.models.openai")
    core = importlib.import_module("autogen_core.models")
    tools = importlib.import_module("autogen_core.tools")
    info = {"vision": False, "function_calling": True, "json_output": False, "family": "unknown"}
    info["structured_output"] = False
    client = clients.OpenAIChatCompletionClient(
        model=MODEL, api_key=KEY, base_url=f"{url}/v1", model_info=info, max_retries=0
    )
    tool = tools.FunctionTool(weather, description="The weather.")
    history: list[Any] = [core.UserMessage(content=OPENING, source="user")]

    async def say() -> Any:
        if way != "streamed":
            return await client.create(history, tools=[tool])
        *_, last = [one async for one in client.create_stream(history, tools=[tool])]
        return last

    async def run() -> str:
        for _ in range(TURNS):
            content = (await say()).content
            if isinstance(content, str):
                return content
            history.append(core.AssistantMessage(content=content, source="model"))
            results = [
                core.FunctionExecutionResult(content=RESULT, call_id=call.id, name=call.name, is_error=False)
                for call in content
            ]
            history.append(core.FunctionExecutionResultMessage(content=results))
        raise AssertionError("the model never answered")

    return asyncio.run(run())


def dspy(url: str, way: Way) -> str:
    """Its language model, in an application that keeps what was said and called. It streams what a program asks."""
    module = importlib.import_module("dspy")
    options = {"api_base": f"{url}/v1", "api_key": KEY, "cache": False, "num_retries": 0}
    if "engine" in inspect.signature(module.LM).parameters:
        options["engine"] = "litellm"  # its own engine asks with urllib
    model = module.LM(f"openai/{MODEL}", **options)
    history: list[Any] = [{"role": "user", "content": OPENING}]

    async def say() -> Any:
        asked = {"messages": history, "tools": [TOOL]}
        if way == "streamed":
            return await _streamed_by_dspy(module, lambda: model.acall(**asked))
        return (await model.acall(**asked) if way == "async" else model(**asked))[0]

    async def run() -> str:
        for _ in range(TURNS):
            said = await say()
            if isinstance(said, str):
                return said
            if not said.get("tool_calls"):
                return str(said["text"])
            calls = [_call(call.id, call.function.name, call.function.arguments) for call in said["tool_calls"]]
            history.append({"role": "assistant", "content": said.get("text") or "", "tool_calls": calls})
            history.extend({"role": "tool", "tool_call_id": call["id"], "content": RESULT} for call in calls)
        raise AssertionError("the model never answered")

    return asyncio.run(run())


async def _streamed_by_dspy(module: Any, ask: Callable[[], Any]) -> Any:
    """What a program of one call returns at the end of its stream."""

    class Program(module.Module):  # type: ignore[misc]  # DSPy is loaded by name
        async def acall(self) -> Any:
            return module.Prediction(said=(await ask())[0])

    chunks = [chunk async for chunk in module.streamify(Program(), is_async_program=True)()]
    assert len(chunks) > 2
    return chunks[-1].said


def semantic_kernel(url: str, way: Way) -> str:
    """Asynchronous only; it calls the functions itself."""
    kernel_of = importlib.import_module("semantic_kernel").Kernel
    openai = importlib.import_module("semantic_kernel.connectors.ai.open_ai")
    choice = importlib.import_module("semantic_kernel.connectors.ai.function_choice_behavior").FunctionChoiceBehavior
    contents = importlib.import_module("semantic_kernel.contents")
    function = importlib.import_module("semantic_kernel.functions").kernel_function
    client = importlib.import_module("openai").AsyncOpenAI(api_key=KEY, base_url=f"{url}/v1", max_retries=0)
    service = openai.OpenAIChatCompletion(ai_model_id=MODEL, async_client=client)
    kernel = kernel_of()

    def of_plugin(self: object, city: str) -> str:
        return weather(city)

    kernel.add_plugin(type("Weather", (), {"weather": function(of_plugin, name="weather")})(), "w")
    settings = openai.OpenAIChatPromptExecutionSettings(function_choice_behavior=choice.Auto())
    settings.function_choice_behavior.maximum_auto_invoke_attempts = TURNS + 1
    history = contents.ChatHistory()
    history.add_user_message(OPENING)

    async def run() -> str:
        if way == "streamed":
            said = [
                str(chunk)
                async for chunks in service.get_streaming_chat_message_contents(history, settings, kernel=kernel)
                for chunk in chunks
            ]
            return "".join(said)
        return str(await service.get_chat_message_content(history, settings, kernel=kernel))

    return asyncio.run(run())


def crewai(url: str, way: Way) -> str:
    """Its own client for OpenAI's API, which it makes as its model is made."""
    model = importlib.import_module("crewai").LLM(
        model=MODEL, provider="openai", base_url=f"{url}/v1", api_key=KEY, stream=way == "streamed", max_retries=0
    )
    history: list[Any] = [{"role": "user", "content": OPENING}]

    async def say() -> Any:
        return await model.acall(history, tools=[TOOL]) if way == "async" else model.call(history, tools=[TOOL])

    async def run() -> str:
        for _ in range(TURNS):
            said = await say()
            if isinstance(said, str):
                return said
            calls = [call if isinstance(call, dict) else call.model_dump() for call in said]
            calls = [{member: call[member] for member in ("id", "type", "function")} for call in calls]
            history.append({"role": "assistant", "content": "", "tool_calls": calls})
            history.extend({"role": "tool", "tool_call_id": call["id"], "content": RESULT} for call in calls)
        raise AssertionError("the model never answered")

    return asyncio.run(run())


def llama_index(url: str, way: Way) -> str:
    """It makes its clients as it is asked first."""
    like = importlib.import_module("llama_index.llms.openai_like")
    types = importlib.import_module("llama_index.core.llms")
    tool = importlib.import_module("llama_index.core.tools").FunctionTool.from_defaults(weather)
    model = like.OpenAILike(
        model=MODEL,
        api_key=KEY,
        api_base=f"{url}/v1",
        is_chat_model=True,
        is_function_calling_model=True,
        max_retries=0,
    )
    history = [types.ChatMessage(role="user", content=OPENING)]

    async def say() -> Any:
        if way == "async":
            return await model.achat_with_tools([tool], chat_history=history)
        if way == "sync":
            return model.chat_with_tools([tool], chat_history=history)
        *_, last = model.stream_chat_with_tools([tool], chat_history=history)
        return last

    async def run() -> str:
        for _ in range(TURNS):
            answer = await say()
            calls = model.get_tool_calls_from_response(answer, error_on_no_tool_call=False)
            if not calls:
                return str(answer.message.content)
            history.append(answer.message)
            for call in calls:
                given = {"tool_call_id": call.tool_id}
                history.append(types.ChatMessage(role="tool", content=RESULT, additional_kwargs=given))
        raise AssertionError("the model never answered")

    return asyncio.run(run())


def magentic(url: str, way: Way) -> str:
    """A chat whose calls the application makes. It streams in any case; `streamed` shows it to the application."""
    module = importlib.import_module("magentic")
    model_of = importlib.import_module("magentic.chat_model.openai_chat_model").OpenaiChatModel
    model = model_of(MODEL, api_key=KEY, base_url=f"{url}/v1")
    text: Any = module.StreamedStr if way == "streamed" else str
    chat = module.Chat(
        [module.UserMessage(OPENING)], functions=[weather], output_types=[text, module.FunctionCall], model=model
    )

    async def run() -> str:
        said = chat
        for _ in range(TURNS):
            said = await said.asubmit() if way == "async" else said.submit()
            call = said.last_message.content
            if isinstance(call, (str, text)):
                return str(call)
            said = await said.aexec_function_call() if way == "async" else said.exec_function_call()
        raise AssertionError("the model never answered")

    return asyncio.run(run())


def mirascope(url: str, way: Way) -> str:
    """Its models ask with clients that it keeps by address."""
    llm = importlib.import_module("mirascope").llm
    llm.register_provider("openai:completions", scope="openai/", base_url=f"{url}/v1", api_key=KEY)
    model = llm.Model(f"openai/{MODEL}:completions")
    is_async = way == "async"
    tools = [llm.tool(aweather if is_async else weather)]

    def say() -> Any:
        asked = [llm.messages.user(OPENING)]
        if way == "streamed":
            return model.stream(asked, tools=tools)
        return model.call_async(asked, tools=tools) if is_async else model.call(asked, tools=tools)

    async def run() -> str:
        answer = await say() if is_async else say()
        for _ in range(TURNS - 1):
            if way == "streamed":
                answer.finish()
            results = await answer.execute_tools() if is_async else answer.execute_tools()
            answer = await answer.resume(results) if is_async else answer.resume(results)
        if way == "streamed":
            answer.finish()
        return str(answer.text())

    return asyncio.run(run())


def langchain_openrouter(url: str, way: Way) -> str:
    """It asks with OpenRouter's own SDK."""
    model_of = importlib.import_module("langchain_openrouter").ChatOpenRouter
    messages = importlib.import_module("langchain_core.messages")
    bound = model_of(model="deepseek/deepseek-v4-pro", api_key=KEY, base_url=f"{url}/api/v1", max_retries=0).bind_tools(
        [TOOL]
    )
    history: list[Any] = [messages.HumanMessage(OPENING)]

    async def say() -> Any:
        if way == "async":
            return await bound.ainvoke(history)
        if way == "sync":
            return bound.invoke(history)
        said = None
        for chunk in bound.stream(history):
            said = chunk if said is None else said + chunk
        return said

    async def run() -> str:
        for _ in range(TURNS):
            said = await say()
            if not said.tool_calls:
                return str(said.content)
            history.append(messages.AIMessage(said.content, tool_calls=said.tool_calls))
            history.extend(messages.ToolMessage(RESULT, tool_call_id=call["id"]) for call in said.tool_calls)
        raise AssertionError("the model never answered")

    return asyncio.run(run())


def _joined(deltas: list[Any]) -> Any:
    """The message that a stream amounts to: its text, and its calls, each under its index."""
    calls: dict[int, list[Any]] = {}
    for delta in deltas:
        for piece in delta.tool_calls or []:
            calls.setdefault(int(piece.index), []).append(piece)
    whole = []
    for pieces in calls.values():
        arguments = "".join(piece.function.arguments or "" for piece in pieces)
        function = SimpleNamespace(name=pieces[0].function.name, arguments=arguments)
        whole.append(SimpleNamespace(id=pieces[0].id, function=function))
    return SimpleNamespace(content="".join(delta.content or "" for delta in deltas), tool_calls=whole)


def openrouter(url: str, way: Way) -> str:
    """OpenRouter's own SDK, which makes its clients itself."""
    client = importlib.import_module("openrouter").OpenRouter(api_key=KEY, server_url=f"{url}/api/v1")
    history: list[Any] = [{"role": "user", "content": OPENING}]

    async def say() -> Any:
        asked: dict[str, Any] = {"model": "deepseek/deepseek-v4-pro", "messages": history, "tools": [TOOL]}
        if way == "async":
            return (await client.chat.send_async(**asked)).choices[0].message
        if way == "sync":
            return client.chat.send(**asked).choices[0].message
        with client.chat.send(**asked, stream=True) as stream:
            return _joined([chunk.choices[0].delta for chunk in stream if chunk.choices])

    async def run() -> str:
        for _ in range(TURNS):
            said = await say()
            if not said.tool_calls:
                return str(said.content)
            calls = [_call(call.id, call.function.name, call.function.arguments) for call in said.tool_calls]
            history.append({"role": "assistant", "content": said.content or "", "tool_calls": calls})
            history.extend({"role": "tool", "tool_call_id": call["id"], "content": RESULT} for call in calls)
        raise AssertionError("the model never answered")

    return asyncio.run(run())


def instructor(url: str, way: Way) -> str:
    """It has openai's client answer with an object; the application keeps what was called. A stream of partial objects
    has no ids of calls, so the application makes its own."""
    module, openai = importlib.import_module("instructor"), importlib.import_module("openai")
    kind = openai.AsyncOpenAI if way == "async" else openai.OpenAI
    client = module.from_openai(kind(api_key=KEY, base_url=f"{url}/v1", max_retries=0))
    history: list[Any] = [{"role": "user", "content": OPENING}]
    schema = importlib.import_module("pydantic").create_model("weather", city=(str, ...))

    async def say() -> list[Any]:
        """The calls of the next turn."""
        asked = {"model": MODEL, "messages": history, "response_model": schema, "max_retries": 0}
        if way == "streamed":
            *_, last = client.chat.completions.create_partial(**asked)
            return [_call(f"own_{len(history)}", "weather", last.model_dump_json())]
        answer = client.chat.completions.create_with_completion(**asked)
        said = (await answer if way == "async" else answer)[1].choices[0].message
        return [_call(call.id, call.function.name, call.function.arguments) for call in said.tool_calls]

    async def run() -> str:
        for _ in range(TURNS - 1):
            calls = await say()
            history.append({"role": "assistant", "content": "", "tool_calls": calls})
            history.extend({"role": "tool", "tool_call_id": call["id"], "content": RESULT} for call in calls)
        answer = client.chat.completions.create(model=MODEL, messages=history, response_model=None)
        return str((await answer if way == "async" else answer).choices[0].message.content)

    return asyncio.run(run())


def google_adk(url: str, way: Way) -> str:
    """Its model for Gemini makes a client as it is asked first."""
    agents = importlib.import_module("google.adk.agents")
    runners = importlib.import_module("google.adk.runners")
    gemini = importlib.import_module("google.adk.models").Gemini
    types = importlib.import_module("google.genai").types
    config = importlib.import_module("google.adk.agents.run_config")
    model = gemini(model="gemini-3-pro-preview", base_url=url)
    agent = agents.LlmAgent(name="a", model=model, tools=[weather])
    runner = runners.InMemoryRunner(agent, app_name="a")
    mode = config.StreamingMode.SSE if way == "streamed" else config.StreamingMode.NONE

    async def run() -> str:
        session = await runner.session_service.create_session(app_name="a", user_id="u")
        message = types.Content(role="user", parts=[types.Part(text=OPENING)])
        said = ""
        settings = config.RunConfig(streaming_mode=mode)
        async for event in runner.run_async(
            user_id="u", session_id=session.id, new_message=message, run_config=settings
        ):
            if event.is_final_response() and event.content:
                said = "".join(part.text or "" for part in event.content.parts if not part.thought)
        return said

    return asyncio.run(run())


def smolagents(url: str, way: Way) -> str:
    """It writes calls and their results as text."""
    module = importlib.import_module("smolagents")
    model = module.OpenAIModel(MODEL, api_base=f"{url}/v1", api_key=KEY)
    agent = module.ToolCallingAgent([module.tool(weather)], model, max_steps=TURNS + 2, verbosity_level=0)
    return str(agent.run(OPENING))
