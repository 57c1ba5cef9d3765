"""Small applications over the official SDKs: each holds a conversation with tools, at any base URL.

keeps    what the SDK gave goes back as it is
strips   only what a user sees goes back, and the calls: what frameworks over the SDKs make of a turn
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, NamedTuple, Protocol, TypeAlias, cast

import anthropic
import openai
from google import genai
from google.genai import types
from google.oauth2.credentials import Credentials

Habit: TypeAlias = Literal["keeps", "strips"]
Way: TypeAlias = Literal["whole", "streamed"]
Json: TypeAlias = dict[str, Any]

KEY = "key-of-an-app"
RESULT = "21 degrees"
SCHEMA: Json = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
OPENING = """Weather, please.
script:
think: Two cities, so two calls at once.
call: weather {"city": "Paris"}
call: weather {"city": "Rome"}
---
think: One more.
say: And one more.
call: weather {"city": "Oslo"}
---
think: Enough to answer.
say: It is warm.
---
think: The north is left.
call: weather {"city": "Tromsø"}
---
think: That was all.
say: It is cold there."""
SECOND = "And in the north?"
ANSWERS = ["It is warm.", "It is cold there."]


class App(Protocol):
    """An application between a person and a model."""

    def hear(self, text: str) -> None:
        """Take what the person says."""

    def step(self) -> str | None:
        """Ask the model once. Its answer, or nothing if it called tools, whose results are then in the history."""


def converse(app: App) -> list[str]:
    """Two questions, each with as many steps as the model wants; the answers."""
    return [_answer(app, OPENING), _answer(app, SECOND)]


def _answer(app: App, question: str) -> str:
    app.hear(question)
    for _ in range(10):
        answer = app.step()
        if answer is not None:
            return answer
    raise AssertionError("the model never answered")


class Setup(NamedTuple):
    """Where the application goes, what it asks for, and how it treats what it gets."""

    base_url: str
    model: str
    habit: Habit
    way: Way
    extra: Json


class ChatApp:
    """`openai`, chat completions."""

    def __init__(self, setup: Setup) -> None:
        self.setup = setup
        self.client = openai.OpenAI(base_url=f"{setup.base_url}/v1", api_key=KEY, max_retries=0)
        self.messages: list[Any] = []

    def hear(self, text: str) -> None:
        self.messages.append({"role": "user", "content": text})

    def step(self) -> str | None:
        message = self._ask()
        self.messages.append(message if self.setup.habit == "keeps" else _bare_message(message))
        calls = message.get("tool_calls") or []
        self.messages += [{"role": "tool", "tool_call_id": call["id"], "content": RESULT} for call in calls]
        return None if calls else str(message["content"])

    def _ask(self) -> Json:
        tool = {"type": "function", "function": {"name": "weather", "parameters": SCHEMA}}
        settings: Json = {
            "model": self.setup.model,
            "messages": self.messages,
            "tools": [tool],
            "extra_body": self.setup.extra,
        }
        if self.setup.way == "whole":
            answer: Any = self.client.chat.completions.create(**settings)
        else:
            with self.client.chat.completions.stream(**settings) as stream:
                answer = stream.get_final_completion()
        return _sendable_message(answer.choices[0].message.model_dump(exclude_unset=True))


def _sendable_message(message: Json) -> Json:
    """The stream helper adds what it parsed, and joins the role of all deltas if a provider repeats it, as GLM does."""
    message.pop("parsed", None)
    message["role"] = "assistant"
    for call in message.get("tool_calls") or []:
        call.pop("index", None)
        call["function"].pop("parsed_arguments", None)
    return message


def _bare_message(message: Json) -> Json:
    return {key: message[key] for key in ("role", "content", "tool_calls") if message.get(key) is not None}


class ResponsesApp:
    """`openai`, Responses."""

    def __init__(self, setup: Setup) -> None:
        self.setup = setup
        self.client = openai.OpenAI(base_url=f"{setup.base_url}/v1", api_key=KEY, max_retries=0)
        self.items: list[Any] = []

    def hear(self, text: str) -> None:
        self.items.append({"role": "user", "content": text})

    def step(self) -> str | None:
        answer = self._ask()
        output = [_sendable_item(item.model_dump(exclude_unset=True)) for item in answer.output]
        self.items += output if self.setup.habit == "keeps" else _bare_items(output)
        calls = [item for item in output if item["type"] == "function_call"]
        self.items += [{"type": "function_call_output", "call_id": call["call_id"], "output": RESULT} for call in calls]
        return None if calls else str(answer.output_text)

    def _ask(self) -> Any:
        tool = {"type": "function", "name": "weather", "parameters": SCHEMA, "strict": False}
        settings: Json = {"model": self.setup.model, "input": self.items, "tools": [tool], **self.setup.extra}
        if self.setup.way == "whole":
            return self.client.responses.create(**settings)
        with self.client.responses.stream(**settings) as stream:
            return stream.get_final_response()


def _sendable_item(item: Json) -> Json:
    item.pop("parsed_arguments", None)
    for part in item.get("content") or []:
        part.pop("parsed", None)
    return item


def _bare_items(output: list[Json]) -> list[Json]:
    """Calls by what they say and text as a message, both without ids: nothing then says that reasoning is missing."""
    bare: list[Json] = []
    for item in output:
        if item["type"] == "function_call":
            bare.append({key: item[key] for key in ("type", "call_id", "name", "arguments")})
        elif item["type"] == "message":
            bare.append({"role": "assistant", "content": "".join(part["text"] for part in item["content"])})
    return bare


class MessagesApp:
    """`anthropic`."""

    def __init__(self, setup: Setup) -> None:
        self.setup = setup
        self.client = anthropic.Anthropic(base_url=setup.base_url, api_key=KEY, max_retries=0)
        self.messages: list[Any] = []

    def hear(self, text: str) -> None:
        self.messages.append({"role": "user", "content": text})

    def step(self) -> str | None:
        content = [block.model_dump(exclude_unset=True) for block in self._ask().content]
        kept = [block for block in content if self.setup.habit == "keeps" or block["type"] in ("text", "tool_use")]
        self.messages.append({"role": "assistant", "content": kept})
        calls = [block for block in content if block["type"] == "tool_use"]
        if not calls:
            return "".join(block["text"] for block in content if block["type"] == "text")
        results = [{"type": "tool_result", "tool_use_id": call["id"], "content": RESULT} for call in calls]
        self.messages.append({"role": "user", "content": results})
        return None

    def _ask(self) -> Any:
        tool = {"name": "weather", "input_schema": SCHEMA}
        settings: Json = {"model": self.setup.model, "messages": self.messages, "tools": [tool], **self.setup.extra}
        if self.setup.way == "whole":
            return self.client.messages.create(**settings)
        with self.client.messages.stream(**settings) as stream:
            return stream.get_final_message()


class BedrockApp(MessagesApp):
    """`anthropic`, its client of Bedrock, which signs what it sends."""

    def __init__(self, setup: Setup) -> None:
        super().__init__(setup)
        keys: Json = {
            "aws_access_key": "AKIATHEAPPSOWNEXAMPL",
            "aws_secret_key": "the-apps-own",
            "aws_region": "eu-west-1",
        }
        self.client = cast(Any, anthropic.AnthropicBedrock(base_url=setup.base_url, max_retries=0, **keys))


class VertexApp(MessagesApp):
    """`anthropic`, its client of Vertex."""

    def __init__(self, setup: Setup) -> None:
        super().__init__(setup)
        where: Json = {"project_id": "a-project", "region": "us-east5", "access_token": KEY}
        self.client = cast(Any, anthropic.AnthropicVertex(base_url=f"{setup.base_url}/v1", max_retries=0, **where))


class GenerateApp:
    """`google-genai`."""

    def __init__(self, setup: Setup) -> None:
        self.setup = setup
        self.client = genai.Client(api_key=KEY, http_options=types.HttpOptions(base_url=setup.base_url))
        self.contents: list[Any] = []

    def hear(self, text: str) -> None:
        self.contents.append(types.Content(role="user", parts=[types.Part(text=text)]))

    def step(self) -> str | None:
        parts = self._ask()
        kept = parts if self.setup.habit == "keeps" else [_bare_part(part) for part in parts if not part.thought]
        self.contents.append(types.Content(role="model", parts=kept))
        calls = [part.function_call for part in parts if part.function_call]
        if not calls:
            return "".join(part.text or "" for part in parts if not part.thought)
        results = [
            types.Part(function_response=types.FunctionResponse(id=call.id, name=call.name, response={"r": RESULT}))
            for call in calls
        ]
        self.contents.append(types.Content(role="user", parts=results))
        return None

    def _ask(self) -> list[types.Part]:
        declared = types.FunctionDeclaration(name="weather", parameters_json_schema=SCHEMA)
        config = types.GenerateContentConfig(
            tools=[types.Tool(function_declarations=[declared])],
            thinking_config=types.ThinkingConfig(include_thoughts=True),
        )
        settings: Json = {"model": self.setup.model, "contents": self.contents, "config": config}
        if self.setup.way == "whole":
            return _parts(self.client.models.generate_content(**settings))
        return [part for chunk in self.client.models.generate_content_stream(**settings) for part in _parts(chunk)]


class VertexGenerateApp(GenerateApp):
    """`google-genai` in its Vertex mode."""

    def __init__(self, setup: Setup) -> None:
        super().__init__(setup)
        options = types.HttpOptions(base_url=setup.base_url)
        where: Json = {"project": "a-project", "location": "us-east5", "credentials": cast(Any, Credentials)(KEY)}
        self.client = genai.Client(vertexai=True, http_options=options, **where)


def _parts(answer: types.GenerateContentResponse) -> list[types.Part]:
    content = (answer.candidates or [])[0].content
    return list(content.parts or []) if content else []


def _bare_part(part: types.Part) -> types.Part:
    return types.Part(text=part.text, function_call=part.function_call)


APPS: dict[str, Callable[[Setup], App]] = {
    "openai-chat": ChatApp,
    "openai-responses": ResponsesApp,
    "anthropic": MessagesApp,
    "google-genai": GenerateApp,
}
