"""The official SDKs, unmodified, in a tool conversation with the simulators."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import anthropic
import openai
import pytest
from google import genai
from google.genai import types

from tests.sim.faces import CASES, TOOLS, Case, Dialogue, verdicts_of
from tests.sim.served_simulators import served

OPENING = 'Weather, please. {mark}\nscript:\nthink: Two cities.\ncall: weather {{"city": "Paris"}}\n'
OPENING += (
    'call: weather {{"city": "Rome"}}\n---\nthink: One more.\nsay: And one more.\ncall: weather {{"city": "Oslo"}}\n'
)
OPENING += "---\nthink: Enough.\nsay: It is warm.\n"


def cases(format: str) -> pytest.MarkDecorator:
    found = [case for case in CASES if case.format == format]
    return pytest.mark.parametrize("case", found, ids=[case.id for case in found])


pytestmark = pytest.mark.filterwarnings("ignore:The model:DeprecationWarning")
both_ways = pytest.mark.parametrize("is_streaming", [False, True], ids=["whole", "streamed"])


def last_verdicts(case: Case) -> list[str]:
    return verdicts_of(Dialogue(case, ""))


def check(case: Case, text: str | None) -> None:
    """The SDK brought all of it home, unless the provider's chat has no place for it."""
    assert text == "It is warm."
    expected = "none" if (case.simulator, case.format) == ("openai", "openai_chat") else "whole"
    assert last_verdicts(case) == [expected, expected]


@both_ways
@cases("openai_chat")
def test_openai_chat(case: Case, is_streaming: bool) -> None:
    """`chat.completions.create`; the assistant message goes back as the SDK gives it."""
    client = openai.OpenAI(base_url=served(case.simulator, case.profile).url + "/v1", api_key="sdk", max_retries=0)
    opening = OPENING.format(mark=f"{case.id} {is_streaming}")
    messages: list[Any] = [{"role": "user", "content": opening}]
    tools: Any = [{"type": "function", "function": {"name": "weather", "parameters": TOOLS["weather"]}}]
    for _ in range(3):
        if is_streaming:
            stream = client.chat.completions.create(
                model=case.model, messages=messages, tools=tools, stream=True, extra_body=dict(case.extra)
            )
            message = joined(
                [chunk.choices[0].delta.model_dump(exclude_unset=True) for chunk in stream if chunk.choices]
            )
        else:
            answer = client.chat.completions.create(
                model=case.model, messages=messages, tools=tools, extra_body=dict(case.extra)
            )
            message = answer.choices[0].message.model_dump(exclude_unset=True)
        messages.append(message)
        calls = message.get("tool_calls") or []
        messages += [{"role": "tool", "tool_call_id": call["id"], "content": "21 degrees"} for call in calls]
    check(case, visible(message["content"]))


def joined(deltas: list[dict[str, Any]]) -> dict[str, Any]:
    """What careful client code makes of the deltas: strings grow, calls by index, details by place and kind."""
    message: dict[str, Any] = {"role": "assistant", "content": ""}
    calls: dict[int, dict[str, Any]] = {}
    for delta in deltas:
        for key, value in delta.items():
            if key == "tool_calls":
                for call in value:
                    _join_call(calls, dict(call))
            elif key == "reasoning_details":
                _join_details(message.setdefault(key, []), value)
            elif isinstance(value, list):
                _join_chunks(message, value)
            elif isinstance(value, str) and key not in ("role", "channel"):
                _join_text(message, key, value)
            elif value is not None:
                message[key] = value
    return {**message, "tool_calls": list(calls.values())} if calls else message


def _join_call(calls: dict[int, dict[str, Any]], call: dict[str, Any]) -> None:
    index = call.pop("index")
    if index not in calls:
        calls[index] = call
        return
    calls[index]["function"]["arguments"] += call["function"]["arguments"]


def _join_details(details: list[dict[str, Any]], news: list[dict[str, Any]]) -> None:
    for entry in news:
        same = [old for old in details if (old["type"], old.get("index")) == (entry["type"], entry.get("index"))]
        if not same or entry["type"] == "reasoning.encrypted":
            details.append(dict(entry))
            continue
        for key in ("text", "summary"):
            if key in entry:
                same[-1][key] += entry[key]
        if "signature" in entry:
            same[-1]["signature"] = entry["signature"]


def _join_chunks(message: dict[str, Any], chunks: list[dict[str, Any]]) -> None:
    if isinstance(message["content"], str):
        empty = {"type": "thinking", "thinking": [{"type": "text", "text": ""}], "closed": True}
        message["content"] = [empty] if not message["content"] else message["content"]
    for chunk in chunks:
        message["content"][0]["thinking"][0]["text"] += chunk["thinking"][0]["text"]


def _join_text(message: dict[str, Any], key: str, value: str) -> None:
    if isinstance(message.get(key), list):
        if value and message[key][-1]["type"] != "text":
            message[key].append({"type": "text", "text": ""})
        if value:
            message[key][-1]["text"] += value
        return
    message[key] = (message.get(key) or "") + value


def visible(content: Any) -> str:
    text = content if isinstance(content, str) else "".join(part.get("text") or "" for part in content)
    return text.partition("</think>")[2].strip() if text.startswith("<think>") else text


@both_ways
@cases("openai_responses")
def test_openai_responses(case: Case, is_streaming: bool) -> None:
    """`responses.create`; the output items go back as the SDK gives them."""
    client = openai.OpenAI(base_url=served(case.simulator).url + "/v1", api_key="sdk", max_retries=0)
    items: list[Any] = [{"role": "user", "content": OPENING.format(mark=f"{case.id} {is_streaming}")}]
    tools: Any = [{"type": "function", "name": "weather", "parameters": TOOLS["weather"], "strict": False}]
    for _ in range(3):
        if is_streaming:
            with client.responses.stream(model=case.model, input=items, tools=tools, **case.extra) as stream:
                answer: Any = stream.get_final_response()
        else:
            answer = client.responses.create(model=case.model, input=items, tools=tools, **case.extra)
        output = [item.model_dump(exclude_unset=True, exclude={"parsed_arguments"}) for item in answer.output]
        items += [_sendable(item) for item in output]
        calls = [item for item in output if item["type"] == "function_call"]
        items += [
            {"type": "function_call_output", "call_id": call["call_id"], "output": "21 degrees"} for call in calls
        ]
    check(case, answer.output_text)


def _sendable(item: dict[str, Any]) -> dict[str, Any]:
    """The stream helper adds what it parsed; that is not part of the item."""
    for part in item.get("content") or []:
        part.pop("parsed", None)
    return item


@both_ways
@cases("anthropic_messages")
def test_anthropic(case: Case, is_streaming: bool) -> None:
    """`messages.create` and `messages.stream`; content goes back as the SDK gives it."""
    base = served(case.simulator, case.profile).url + case.path.removesuffix("/v1/messages")
    client = anthropic.Anthropic(base_url=base, api_key="sdk", max_retries=0)
    opening = OPENING.format(mark=f"{case.id} {is_streaming}")
    messages: list[Any] = [{"role": "user", "content": opening}]
    tools: Any = [{"name": "weather", "input_schema": TOOLS["weather"]}]
    settings: dict[str, Any] = dict(case.extra)
    for _ in range(3):
        if is_streaming:
            with client.messages.stream(model=case.model, messages=messages, tools=tools, **settings) as stream:
                answer: Any = stream.get_final_message()
        else:
            answer = client.messages.create(model=case.model, messages=messages, tools=tools, **settings)
        content = [block.model_dump(exclude_unset=True) for block in answer.content]
        messages.append({"role": "assistant", "content": content})
        calls = [block for block in content if block["type"] == "tool_use"]
        results = [{"type": "tool_result", "tool_use_id": call["id"], "content": "21 degrees"} for call in calls]
        messages.append({"role": "user", "content": results})
    check(case, "".join(block.get("text", "") for block in content))


@both_ways
@cases("gemini_generate")
def test_google_genai(case: Case, is_streaming: bool) -> None:
    """`models.generate_content` and its stream; the content goes back as the SDK gives it."""
    options = types.HttpOptions(base_url=served(case.simulator).url)
    client = genai.Client(api_key="sdk", http_options=options)
    schema: Any = {"type": "OBJECT", "properties": {"city": {"type": "STRING"}}, "required": ["city"]}
    tool = types.Tool(function_declarations=[types.FunctionDeclaration(name="weather", parameters=schema)])
    config = types.GenerateContentConfig(tools=[tool], thinking_config=types.ThinkingConfig(include_thoughts=True))
    opening = OPENING.format(mark=f"{case.id} {is_streaming}")
    contents: list[Any] = [types.Content(role="user", parts=[types.Part(text=opening)])]
    text = ""
    for _ in range(3):
        parts: list[Any] = []
        if is_streaming:
            for chunk in client.models.generate_content_stream(model=case.model, contents=contents, config=config):
                parts += (chunk.candidates or [])[0].content.parts or []  # type: ignore[union-attr]  # content may be None, says its type
        else:
            answer = client.models.generate_content(model=case.model, contents=contents, config=config)
            parts += (answer.candidates or [])[0].content.parts or []  # type: ignore[union-attr]  # content may be None, says its type
        contents.append(types.Content(role="model", parts=parts))
        text = "".join(part.text or "" for part in parts if not part.thought)
        calls = [part.function_call for part in parts if part.function_call]
        results = [types.Part.from_function_response(name=call.name, response={"result": "21"}) for call in calls]
        contents.append(types.Content(role="user", parts=results or [types.Part(text="Thanks.")]))
    check(case, text)


def test_the_example_of_the_docs() -> None:
    """It runs as it stands, and ends as it says it does."""
    page = (Path(__file__).parents[2] / "docs" / "simulators.md").read_text()
    example = page.partition("```python\n")[2].partition("```")[0]
    code = example.replace("http://127.0.0.1:8700", served("deepseek").url)
    message = example.rstrip().splitlines()[-1].removeprefix("# openai.BadRequestError: ")
    with pytest.raises(openai.BadRequestError) as caught:
        exec(compile(code, "docs/simulators.md", "exec"), {})
    assert message in str(caught.value)


def test_errors_reach_the_caller_of_the_sdk() -> None:
    """The SDK's own exception has the provider's words."""
    client = anthropic.Anthropic(base_url=served("anthropic", "classic").url, api_key="sdk", max_retries=0)
    thinking: Any = {"type": "thinking", "thinking": "I made this up.", "signature": "EuYBCkQYAiJA"}
    messages: list[Any] = [
        {"role": "user", "content": "hi"},
        {"role": "assistant", "content": [thinking, {"type": "text", "text": "hello"}]},
        {"role": "user", "content": "and?"},
    ]
    settings: Any = {"thinking": {"type": "enabled", "budget_tokens": 1024}, "max_tokens": 4000}
    with pytest.raises(anthropic.BadRequestError, match="Invalid `signature` in `thinking` block"):
        client.messages.create(model="claude-sonnet-4-5", messages=messages, **settings)


@pytest.mark.parametrize("simulator", ["openai", "openrouter"])
def test_members_that_sdks_of_other_languages_require(simulator: str) -> None:
    """Generated SDKs (OpenRouter's, OpenAI's for Java and .NET) require members that say nothing."""
    case = next(case for case in CASES if (case.simulator, case.format) == (simulator, "openai_chat"))
    whole = Dialogue(case, f"members {simulator}").ask()
    assert {"id", "object", "created", "model", "choices", "usage", "system_fingerprint"} <= set(whole)
    assert {"index", "message", "finish_reason", "logprobs"} <= set(whole["choices"][0])
    assert {"prompt_tokens", "completion_tokens", "total_tokens"} <= set(whole["usage"])
