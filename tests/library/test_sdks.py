"""openai, anthropic and google-genai in applications that forget: ten turns, sync and async, whole and streamed."""

from __future__ import annotations

import asyncio
import inspect
from contextlib import suppress
from typing import Any, Literal, NamedTuple

import pytest

from tests.clients.upstreams import Upstream, start
from tests.library.ten_turns import KEY, OPENING, RESULT, SCHEMA, TOOL, TURNS, check_refused, check_whole
from thoughtline import Line

openai = pytest.importorskip("openai")
anthropic = pytest.importorskip("anthropic")
genai: Any = None
with suppress(ImportError):  # it takes no older httpx
    from google import genai

Way = Literal["whole", "streamed"]
Json = dict[str, Any]


class Said(NamedTuple):
    """What an application keeps of a turn: what it shows again of it, and the calls, by id and name."""

    shown: list[Any]
    calls: list[tuple[str, str]]
    text: str


class Door(NamedTuple):
    """How a client comes to a line, if it does: given to it, or `remember`."""

    line: Line | None
    is_remembered: bool = False


class ChatApp:
    """`openai`, chat completions."""

    refusal = "must be passed back"

    def __init__(self, url: str, line: Line | None, *, is_async: bool) -> None:
        doors = {"http_client": line.async_http_client() if is_async else line.http_client()} if line else {}
        kind = openai.AsyncOpenAI if is_async else openai.OpenAI
        self.client = kind(base_url=f"{url}/v1", api_key=KEY, max_retries=0, **doors)
        self.history: list[Any] = [{"role": "user", "content": OPENING}]

    async def say(self, way: Way) -> Said:
        tool = {"type": "function", "function": {**TOOL["function"], "strict": True}}  # or no helper streams it
        asked: Json = {"model": "deepseek-v4-pro", "messages": self.history, "tools": [tool]}
        if way == "whole":
            answer = await got(self.client.chat.completions.create(**asked))
        else:
            answer = await final(self.client.chat.completions.stream(**asked), "get_final_completion")
        message = answer.choices[0].message.model_dump()
        calls = [{name: call[name] for name in ("id", "type", "function")} for call in message["tool_calls"] or []]
        for call in calls:
            call["function"].pop("parsed_arguments", None)
        shown = {"role": "assistant", "content": message["content"] or "", **({"tool_calls": calls} if calls else {})}
        return Said([shown], [(call["id"], "weather") for call in calls], message["content"])

    def results(self, calls: list[tuple[str, str]]) -> list[Any]:
        return [{"role": "tool", "tool_call_id": call, "content": RESULT} for call, _ in calls]


class ResponsesApp(ChatApp):
    """`openai`, Responses."""

    async def say(self, way: Way) -> Said:
        tool = {"type": "function", "name": "weather", "parameters": SCHEMA, "strict": False}
        asked: Json = {"model": "deepseek-v4-pro", "input": self.history, "tools": [tool]}
        if way == "whole":
            answer = await got(self.client.responses.create(**asked))
        else:
            answer = await final(self.client.responses.stream(**asked), "get_final_response")
        items = [item.model_dump() for item in answer.output if item.type == "function_call"]
        shown = [{name: item[name] for name in ("type", "call_id", "name", "arguments")} for item in items]
        return Said(shown, [(item["call_id"], "weather") for item in items], answer.output_text)

    def results(self, calls: list[tuple[str, str]]) -> list[Any]:
        return [{"type": "function_call_output", "call_id": call, "output": RESULT} for call, _ in calls]


class MessagesApp:
    """`anthropic`, by its middleware where it has that."""

    refusal = "Expected `thinking`"

    def __init__(self, url: str, line: Line | None, *, is_async: bool) -> None:
        doors: Json = {}
        if line is not None and hasattr(anthropic, "Middleware"):
            doors = {"middleware": [line.anthropic]}
        elif line is not None:
            doors = {"http_client": line.async_http_client() if is_async else line.http_client()}
        kind = anthropic.AsyncAnthropic if is_async else anthropic.Anthropic
        self.client = kind(base_url=url, api_key=KEY, max_retries=0, **doors)
        self.history: list[Any] = [{"role": "user", "content": OPENING}]

    async def say(self, way: Way) -> Said:
        thinking = {"type": "enabled", "budget_tokens": 2048}
        tool = {"name": "weather", "input_schema": SCHEMA}
        asked: Json = {"model": "claude-sonnet-4-5", "messages": self.history, "tools": [tool], "max_tokens": 8000}
        if way == "whole":
            answer = await got(self.client.messages.create(**asked, thinking=thinking))
        else:
            answer = await final(self.client.messages.stream(**asked, thinking=thinking), "get_final_message")
        blocks = [block.model_dump(exclude_unset=True) for block in answer.content]
        shown = [block for block in blocks if block["type"] in ("text", "tool_use")]
        calls = [(block["id"], "weather") for block in shown if block["type"] == "tool_use"]
        return Said([{"role": "assistant", "content": shown}], calls, "".join(block.get("text", "") for block in shown))

    def results(self, calls: list[tuple[str, str]]) -> list[Any]:
        blocks = [{"type": "tool_result", "tool_use_id": call, "content": RESULT} for call, _ in calls]
        return [{"role": "user", "content": blocks}]


class GenerateApp:
    """`google-genai`."""

    refusal = "thought_signature"

    def __init__(self, url: str, line: Line | None, *, is_async: bool) -> None:
        options = line.google(base_url=url) if line is not None else {"base_url": url}
        self.client = genai.Client(api_key=KEY, http_options=options)  # whoever lets go of it closes it
        self.models = self.client.aio.models if is_async else self.client.models
        self.is_async = is_async
        self.history: list[Any] = [genai.types.Content(role="user", parts=[genai.types.Part(text=OPENING)])]

    async def say(self, way: Way) -> Said:
        declared = genai.types.FunctionDeclaration(name="weather", parameters_json_schema=SCHEMA)
        config = genai.types.GenerateContentConfig(tools=[genai.types.Tool(function_declarations=[declared])])
        asked: Json = {"model": "gemini-3-pro-preview", "contents": self.history, "config": config}
        if way == "whole":
            chunks = [await got(self.models.generate_content(**asked))]
        elif self.is_async:
            chunks = [chunk async for chunk in await self.models.generate_content_stream(**asked)]
        else:
            chunks = list(self.models.generate_content_stream(**asked))
        parts = [part for chunk in chunks for part in chunk.candidates[0].content.parts or [] if not part.thought]
        shown = [genai.types.Part(text=part.text, function_call=part.function_call) for part in parts]
        calls = [(part.function_call.id, part.function_call.name) for part in parts if part.function_call]
        text = "".join(part.text or "" for part in parts)
        return Said([genai.types.Content(role="model", parts=shown)], calls, text)

    def results(self, calls: list[tuple[str, str]]) -> list[Any]:
        of = genai.types.FunctionResponse
        given = [of(id=call, name=name, response={"r": RESULT}) for call, name in calls]
        parts = [genai.types.Part(function_response=one) for one in given]
        return [genai.types.Content(role="user", parts=parts)]


async def got(answer: Any) -> Any:
    return await answer if inspect.isawaitable(answer) else answer


async def final(stream: Any, name: str) -> Any:
    """The whole of a stream, by the SDK's own helper."""
    if hasattr(stream, "__aenter__"):
        async with stream as events:
            return await getattr(events, name)()
    with stream as events:
        return getattr(events, name)()


APPS: dict[str, tuple[Any, str, str | None]] = {
    "openai-chat": (ChatApp, "deepseek", None),
    "openai-responses": (ResponsesApp, "deepseek", None),
    "anthropic": (MessagesApp, "anthropic", "classic"),
}
if genai is not None:
    APPS["google-genai"] = (GenerateApp, "gemini", None)


def talk(name: str, upstream: Upstream, door: Door, *, way: Way, is_async: bool) -> str:
    """The answer, after as many calls as the model wants."""
    line, is_remembered = door

    async def run() -> str:
        app = APPS[name][0](upstream.url, None if is_remembered else line, is_async=is_async)
        if is_remembered and line is not None:
            line.remember(app.client)
        for _ in range(TURNS):
            said: Said = await app.say(way)
            if not said.calls:
                return said.text
            app.history += [*said.shown, *app.results(said.calls)]
        raise AssertionError("the model never answered")

    return asyncio.run(run())


@pytest.mark.filterwarnings("ignore:The model:DeprecationWarning")
@pytest.mark.parametrize("name", APPS)
@pytest.mark.parametrize("way", ["whole", "streamed"])
@pytest.mark.parametrize("is_async", [False, True], ids=["sync", "async"])
def test_an_application_that_forgets(name: str, way: Way, is_async: bool, line: Line) -> None:
    """Refused without a line; whole with it, in ten requests, by the SDK's own door and by `remember`."""
    made, simulator, profile = APPS[name]
    bare, upstream = start(simulator, profile), start(simulator, profile)
    with pytest.raises(Exception, match=made.refusal):
        talk(name, bare, Door(None), way=way, is_async=is_async)
    check_refused(bare, made.refusal)
    check_whole(upstream, talk(name, upstream, Door(line), way=way, is_async=is_async))
    again = start(simulator, profile)
    check_whole(again, talk(name, again, Door(line, is_remembered=True), way=way, is_async=is_async))
