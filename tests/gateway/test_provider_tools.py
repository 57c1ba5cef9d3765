"""A provider's own tools between a model's thinking, through the gateway, at simulators that check their order."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from itertools import groupby
from typing import Any, NamedTuple

import httpx
import msgspec
import pytest
from msgspec.structs import replace

from tests.gateway.gateways import Json, Running, running
from tests.replay.provider_turns import bare, is_plain
from tests.replay.test_provider_tools import puts_thoughts_first, puts_tools_last, unnamed
from tests.replay.turn_wires import Elements
from tests.sim.served_simulators import served
from thoughtline.destinations.catalogue import PROVIDERS
from thoughtline.formats import FORMATS
from thoughtline.settings import Settings
from thoughtline.values.events import ItemDone
from thoughtline.values.items import ToolCall
from thoughtline.values.turns import FormatName

TURN = """Look it up. {mark}
script:
think: First.
hosted: web_search {{"query": "files"}}
think: Then.
hosted: web_search {{"query": "files"}}
think: At last.
call: bash {{"command": "ls"}}
---
think: Good.
say: Done.
"""
KEY = {"authorization": "Bearer someone", "x-api-key": "someone", "x-goog-api-key": "someone", "x-sim-chunk": "9999"}
STREAM = "streamGenerateContent?alt=sse"
NOTHING = {"type": "object", "properties": {}}


class Face(NamedTuple):
    """A simulator's face: its address, its request, and the form of its turn in an answer and in a request."""

    provider: str
    format: FormatName
    path: Callable[[bool], str]
    body: Callable[[str], Json]
    listed: str
    elements: Callable[[Json], Elements]
    message: Callable[[Elements], list[Json]]
    result: Callable[[Json], Json]


def responses_body(opening: str) -> Json:
    tools = [{"type": "function", "name": "bash", "parameters": NOTHING}, {"type": "web_search"}]
    asked = {"include": ["reasoning.encrypted_content"], "store": False}
    return {"model": "gpt-5.5", "input": [{"role": "user", "content": opening}], "tools": tools, **asked}


def claude_body(opening: str) -> Json:
    thinks = {"max_tokens": 4096, "thinking": {"type": "enabled", "budget_tokens": 1024}}
    tools = [{"name": "bash", "input_schema": NOTHING}, {"type": "web_search_20250305", "name": "web_search"}]
    return {
        "model": "claude-sonnet-4-5",
        "messages": [{"role": "user", "content": opening}],
        "tools": tools,
        **thinks,
    }


def gemini_body(opening: str) -> Json:
    tools = [{"functionDeclarations": [{"name": "bash"}]}, {"codeExecution": {}}]
    config = {"includeServerSideToolInvocations": True}
    return {"contents": [{"role": "user", "parts": [{"text": opening}]}], "tools": tools, "toolConfig": config}


FACES = {
    "responses": Face(
        "openai",
        "openai_responses",
        lambda streams: "/v1/responses",
        responses_body,
        "input",
        lambda answer: answer["output"],
        lambda turn: turn,
        lambda call: {"type": "function_call_output", "call_id": call["call_id"], "output": "a"},
    ),
    "messages": Face(
        "anthropic",
        "anthropic_messages",
        lambda streams: "/v1/messages",
        claude_body,
        "messages",
        lambda answer: answer["content"],
        lambda turn: [{"role": "assistant", "content": turn}],
        lambda call: {
            "role": "user",
            "content": [{"type": "tool_result", "tool_use_id": call["id"], "content": "a"}],
        },
    ),
    "generate": Face(
        "gemini",
        "gemini_generate",
        lambda streams: (
            f"/v1beta/models/gemini-3-pro-preview:{'streamGenerateContent?alt=sse' if streams else 'generateContent'}"
        ),
        gemini_body,
        "contents",
        lambda answer: answer["candidates"][0]["content"]["parts"],
        lambda turn: [{"role": "model", "parts": turn}],
        lambda call: {
            "role": "user",
            "parts": [{"functionResponse": {"name": "bash", "response": {"result": "a"}}}],
        },
    ),
}
SERVED = ("openai", "anthropic", "gemini", "azure", "copilot")


def keeps_all(turn: Elements) -> Elements:
    return turn


def drops_tools_too(turn: Elements) -> Elements:
    return [element for element in bare(turn) if is_plain(element)]


HABITS: dict[str, Callable[[Elements], Elements]] = {
    "keeps all": keeps_all,
    "drops thoughts": bare,
    "puts tools last": puts_tools_last,
    "puts thoughts first": puts_thoughts_first,
    "drops tools too": drops_tools_too,
}


@pytest.fixture(scope="module")
def gateway() -> Iterator[Running]:
    with running({provider: served(provider).url for provider in SERVED}) as found:
        yield found


def ask(url: str, face: Face, body: Json, is_streaming: bool) -> Elements:
    """The turn that a provider answers with, as a client assembles it."""
    if not is_streaming:
        answer = httpx.post(f"{url}{face.path(False)}", json=body, headers=KEY)
        assert answer.status_code == 200, answer.text
        return face.elements(answer.json())
    streams = {} if face.provider == "gemini" else {"stream": True}
    answer = httpx.post(f"{url}{face.path(True)}", json={**body, **streams}, headers=KEY)
    assert answer.status_code == 200, answer.text
    done = FORMATS[face.format].stream_decoder(FORMATS[face.format].dialect).feed(answer.content)
    raws = groupby(bytes(event.item.raw) for event in done if isinstance(event, ItemDone))
    return [msgspec.json.decode(raw) for raw, _ in raws]


def go_on(face: Face, body: Json, turn: Elements, shown: Elements) -> Json:
    call = next(
        element for element in turn if element.get("type") in ("function_call", "tool_use") or "functionCall" in element
    )
    return {**body, face.listed: [*body[face.listed], *face.message(shown), face.result(call)]}


@pytest.mark.parametrize("is_streaming", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("habit", HABITS)
@pytest.mark.parametrize("name", FACES)
def test_the_provider_finds_each_thought_in_its_place(
    gateway: Running, name: str, habit: str, is_streaming: bool
) -> None:
    """A history without thinking, or with tools and thinking in another order, is accepted like the original; one that
    kept everything is not changed."""
    face = FACES[name]
    body = face.body(TURN.format(mark=f"{habit} {is_streaming}"))
    turn = ask(f"{gateway.url}/{face.provider}", face, body, is_streaming)
    later = go_on(face, body, turn, HABITS[habit](turn))
    answer = httpx.post(f"{gateway.url}/{face.provider}{face.path(False)}", json=later, headers=KEY)
    assert answer.status_code == 200, answer.text
    seen = served(face.provider).app.simulation.log[-1]
    assert seen["status"] == 200
    replay = answer.headers["x-thoughtline-replay"]
    assert "healed=0" in replay or "healed" not in replay
    if habit == "keeps all":
        assert replay.startswith("restored=0,")
    if not (name == "generate" and habit == "drops tools too"):  # there the tools carry the thoughts
        assert seen["verdicts"] == ["whole"]


@pytest.mark.parametrize("habit", ["drops thoughts", "puts tools last", "puts thoughts first"])
@pytest.mark.parametrize("name", FACES)
def test_the_provider_refuses_the_same_history(name: str, habit: str) -> None:
    """Without the gateway the simulators refuse these clients' requests, as the providers do."""
    face = FACES[name]
    if (name, habit) == ("generate", "puts thoughts first"):
        pytest.skip("Gemini's thoughts stand on the parts: there is nothing to move")
    url = served(face.provider).url
    body = face.body(TURN.format(mark=f"direct {habit}"))
    if name == "responses":
        body["store"] = True  # ids of items pair only where items are stored
    turn = ask(url, face, body, False)
    later = go_on(face, body, turn, HABITS[habit](turn))
    assert httpx.post(f"{url}{face.path(False)}", json=later, headers=KEY).status_code == 400


AT_ONCE = """Look it up. {mark}
script:
think: First.
hosted: {tool} {{"query": "files"}}
say: Three.
---
think: Good.
say: I look again.
hosted: {tool} {{"query": "files"}}
hosted: {tool} {{"query": "files"}}
say: Still three.
---
think: Done.
say: Good bye.
"""
BOUND = {"openai": "gpt-5.5", "azure": "gpt-5-mini", "copilot": "gpt-5.3-codex"}
TOOLS = ("web_search", "file_search", "code_interpreter", "image_generation", "mcp", "computer")
ROWS = [(provider, "web_search") for provider in BOUND] + [("openai", tool) for tool in TOOLS[1:]]


def drops_own_names(turn: Elements) -> Elements:
    return [unnamed(element) if element["type"] == "message" else element for element in bare(turn)]


def drops_all_names(turn: Elements) -> Elements:
    return [unnamed(element) for element in bare(turn)]


@pytest.mark.parametrize("is_streaming", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("habit", [bare, drops_own_names, drops_all_names, None])
@pytest.mark.parametrize(("provider", "tool"), ROWS)
def test_a_tool_that_goes_by_its_name_has_its_thought(
    gateway: Running, provider: str, tool: str, habit: Callable[[Elements], Elements] | None, is_streaming: bool
) -> None:
    """Text may belong to the same thinking as a provider's tool: a client that drops the thinking and sends the tool by
    id is not refused. Nor is one that names the previous response (no habit), where responses are kept."""
    if (provider, habit) == ("copilot", None):
        pytest.skip("Copilot keeps no responses")
    face = FACES["responses"]._replace(provider=provider)
    mark = f"{provider} {tool} {getattr(habit, '__name__', '')} {is_streaming}"
    body = {**face.body(AT_ONCE.format(mark=mark, tool=tool)), "model": BOUND[provider], "store": habit is None}
    for _ in range(2):
        turn, previous = ask_for_both(f"{gateway.url}/{provider}", face, body, is_streaming)
        again = {"role": "user", "content": "And?"}
        if habit is None:
            body |= {"input": [again], "previous_response_id": previous}
        else:
            body["input"] += [*habit(turn), again]
    answer = httpx.post(f"{gateway.url}/{provider}/v1/responses", json=body, headers=KEY)
    assert answer.status_code == 200, answer.text
    assert "healed=0" in answer.headers["x-thoughtline-replay"]
    if habit is not None:
        assert served(provider).app.simulation.log[-1]["verdicts"] == ["whole", "whole"]


def ask_for_both(url: str, face: Face, body: Json, is_streaming: bool) -> tuple[Elements, str]:
    """The turn that a provider answers with, and the id of its response."""
    answer = httpx.post(f"{url}{face.path(False)}", json={**body, "stream": is_streaming}, headers=KEY)
    assert answer.status_code == 200, answer.text
    if not is_streaming:
        return answer.json()["output"], answer.json()["id"]
    last = next(line for line in answer.text.splitlines() if line.startswith('data: {"type":"response.completed"'))
    response = json.loads(last.removeprefix("data: "))["response"]
    return response["output"], response["id"]


def test_a_dropped_result_is_refused() -> None:
    """Anthropic requires the result of each tool that it ran; OpenAI requires the id of each."""
    face = FACES["messages"]
    url = served("anthropic").url
    body = face.body(TURN.format(mark="half a pair"))
    turn = ask(url, face, body, False)
    half = [block for block in turn if not block["type"].endswith("_tool_result")]
    answer = httpx.post(f"{url}{face.path(False)}", json=go_on(face, body, turn, half), headers=KEY)
    assert "without a corresponding `web_search_tool_result` block" in answer.json()["error"]["message"]
    face = FACES["responses"]
    body = face.body(TURN.format(mark="no names"))
    turn = ask(served("openai").url, face, body, False)
    nameless: list[dict[str, Any]] = [{key: value for key, value in item.items() if key != "id"} for item in turn]
    refused = httpx.post(f"{served('openai').url}/v1/responses", json=go_on(face, body, turn, nameless), headers=KEY)
    assert refused.json()["error"]["message"] == "Missing required parameter: 'input[2].id'."


MODELS = {"responses": "gpt-5.5", "messages": "claude-sonnet-4-5", "generate": "gemini-3-pro-preview"}


@pytest.mark.parametrize("is_streaming", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("name", FACES)
def test_a_client_of_another_format_sees_no_tool_that_is_not_its_own(name: str, is_streaming: bool) -> None:
    """A chat client gets only its own calls; what it sends back is accepted, with thinking in order."""
    face = FACES[name]
    row = replace(PROVIDERS[face.provider], base_url=served(face.provider).url, bases={}, formats=(face.format,))
    settings = Settings(providers={**PROVIDERS, face.provider: replace(row, paths={})})
    tools = [{"type": "function", "function": {"name": "bash", "parameters": NOTHING}}]
    opening = {"role": "user", "content": TURN.format(mark=f"chat {is_streaming}")}
    body: Json = {"model": MODELS[name], "messages": [opening], "tools": tools, "reasoning_effort": "high"}
    with running({}, settings) as gateway:
        url = f"{gateway.url}/{face.provider}/v1/chat/completions"
        answer = httpx.post(url, json={**body, "stream": is_streaming}, headers=KEY)
        assert answer.status_code == 200, answer.text
        calls = chat_calls(answer, is_streaming)
        assert [call["function"]["name"] for call in calls] == ["bash"]
        said = {"role": "assistant", "content": None, "tool_calls": calls}
        results = [{"role": "tool", "tool_call_id": call["id"], "content": "a"} for call in calls]
        later = httpx.post(url, json={**body, "messages": [opening, said, *results]}, headers=KEY)
    assert later.status_code == 200, later.text
    seen = served(face.provider).app.simulation.log[-1]
    assert (seen["status"], seen["verdicts"]) == (200, ["altered" if name == "generate" else "whole"])


def chat_calls(answer: httpx.Response, is_streaming: bool) -> list[Json]:
    chat = FORMATS["openai_chat"]
    if is_streaming:
        items = [
            event.item
            for event in chat.stream_decoder(chat.dialect).feed(answer.content)
            if isinstance(event, ItemDone)
        ]
    else:
        items = [*chat.bodies.decode_response(answer.content, chat.dialect).candidates[0].turn.items]
    calls = [item for item in items if isinstance(item, ToolCall)]
    return [
        {"id": one.id, "type": "function", "function": {"name": one.name, "arguments": one.arguments}} for one in calls
    ]
