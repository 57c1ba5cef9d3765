"""`translate_history`: a conversation handed to another model inside an application."""

from __future__ import annotations

import cProfile
import json
import time
from typing import Any

import httpx
import pytest

from tests.clients.upstreams import start
from tests.line.chats import CALL, HEADERS, MESSAGE, PATH, RESULT, THOUGHT, USER, request, whole
from thoughtline import Line
from thoughtline.destinations.catalogue import PROVIDERS
from thoughtline.engine.contracts import contract_book
from thoughtline.engine.learned import Lessons
from thoughtline.engine.replayer import Replayer
from thoughtline.formats import FORMATS
from thoughtline.library.history import body_of, destination_of, translated
from thoughtline.settings import Settings
from thoughtline.stores import open_store
from thoughtline.values.identity import Identity

HISTORY: list[Any] = [USER, {**MESSAGE, "reasoning_content": THOUGHT}, RESULT, {"role": "user", "content": "And now?"}]
SEALED: list[Any] = [
    {"role": "user", "content": "How is the weather?"},
    {
        "role": "assistant",
        "content": [
            {"type": "thinking", "thinking": THOUGHT, "signature": "c2VhbA=="},
            {"type": "tool_use", "id": "toolu_1", "name": "weather", "input": {}},
        ],
    },
    {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "toolu_1", "content": "sunny"}]},
]


def test_a_model_that_takes_text_gets_it_as_its_own(line: Line) -> None:
    """Between two Chat Completions models the text stays in place."""
    given = line.translate_history(HISTORY, to="kimi/kimi-k2.6")
    assert given["messages"][1]["reasoning_content"] == THOUGHT


@pytest.mark.parametrize(
    ("to", "members"),
    [
        ("anthropic/claude-opus-4-8", {"messages", "system"}),
        ("openai/gpt-5", {"input", "instructions"}),
        ("gemini/gemini-3-pro-preview", {"contents", "systemInstruction"}),
        ("code-assist/gemini-3-pro-preview", {"contents", "systemInstruction"}),
    ],
)
def test_a_model_that_takes_only_its_own_gets_a_checkpoint(line: Line, to: str, members: set[str]) -> None:
    """In the format of its provider, quoted in its system prompt."""
    given = line.translate_history(HISTORY, to=to)
    assert set(given) == members
    history, system = (json.dumps(given[name]) for name in sorted(members, key=_is_system))
    assert THOUGHT in system
    assert THOUGHT not in history


def _is_system(name: str) -> bool:
    return name in ("system", "instructions", "systemInstruction")


@pytest.mark.parametrize("to", ["deepseek/deepseek-v4-pro", "openai/gpt-5", "gemini/gemini-3-pro-preview"])
def test_no_seal_goes_to_another_maker(line: Line, to: str) -> None:
    """Text signed by Anthropic is plain text elsewhere, without its signature."""
    given = json.dumps(line.translate_history(SEALED, to=to))
    assert THOUGHT in given
    assert "c2VhbA" not in given


def test_a_seal_of_the_same_format_may_be_anothers(line: Line) -> None:
    """Other makers also use Anthropic's format, and a history does not name its maker: text is included, no seal."""
    given = line.translate_history(SEALED, to="anthropic/claude-opus-4-8")
    assert THOUGHT in json.dumps(given["system"])
    assert "thinking" not in json.dumps(given["messages"])
    assert "c2VhbA" not in json.dumps(given)


KIMIS = [{**CALL, "id": f"functions.weather:{number}"} for number in (0, 1)]
HISTORIES: dict[str, list[Any]] = {
    "chat": [
        USER,
        {"role": "assistant", "content": "", "reasoning_content": THOUGHT, "tool_calls": KIMIS},
        *({"role": "tool", "tool_call_id": call["id"], "content": "sunny"} for call in KIMIS),
    ],
    "Messages": SEALED,
    "Gemini": [
        {"role": "user", "parts": [{"text": "How is the weather?"}]},
        {
            "role": "model",
            "parts": [
                {"text": THOUGHT, "thought": True},
                {"functionCall": {"name": "weather", "args": {}}, "thoughtSignature": "c2VhbA=="},
                {"functionCall": {"name": "weather", "args": {"city": "Rome"}}},
            ],
        },
        {
            "role": "user",
            "parts": [{"functionResponse": {"name": "weather", "response": {"is": how}}} for how in ("sunny", "wet")],
        },
    ],
    "Responses": [
        {"type": "message", "role": "user", "content": "How is the weather?"},
        {
            "type": "reasoning",
            "id": "rs_1",
            "summary": [{"type": "summary_text", "text": THOUGHT}],
            "encrypted_content": "c2VhbA==",
        },
        {"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "weather", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "call_1", "output": "sunny"},
    ],
}
"""Two calls where the format supports them, with ids of their makers' forms: long ones, odd ones, none."""

CHAT_TOOL = {"type": "function", "function": {"name": "weather", "parameters": {"type": "object"}}}
STRICT: dict[str, tuple[str | None, str, dict[str, Any]]] = {
    "anthropic/claude-opus-4-8": (
        "adaptive",
        "/v1/messages",
        {"max_tokens": 99, "tools": [{"name": "weather", "input_schema": {"type": "object"}}]},
    ),
    "openai/gpt-5": (None, "/v1/responses", {"tools": [{"type": "function", "name": "weather"}]}),
    "gemini/gemini-3-pro-preview": (
        None,
        "/v1beta/models/gemini-3-pro-preview:generateContent",
        {"tools": [{"functionDeclarations": [{"name": "weather"}]}]},
    ),
    "deepseek/deepseek-v4-pro": (None, PATH, {"tools": [CHAT_TOOL]}),
    "kimi/kimi-k2.6": (None, PATH, {"tools": [CHAT_TOOL]}),
}


@pytest.mark.parametrize("to", STRICT)
async def test_a_strict_provider_accepts_it(line: Line, to: str) -> None:
    """In the middle of a tool loop: ids and results have the other format's form."""
    profile, path, more = STRICT[to]
    provider, model = to.split("/")
    upstream = start(provider, profile)
    headers = dict.fromkeys(("authorization", "x-api-key", "x-goog-api-key"), "Bearer k")
    async with httpx.AsyncClient(base_url=upstream.url, headers=headers) as client:
        for name, history in HISTORIES.items():
            given = await line.atranslate_history(history, to=to)
            assert THOUGHT in json.dumps(given), name
            answer = await client.post(path, json={"model": model, **more, **given})
            assert answer.status_code == 200, (name, answer.text)


def test_what_the_history_lost_comes_from_the_store(line: Line) -> None:
    """A turn in the line's store is quoted, too, for the owner of its key."""
    exchange = line.begin_sync("POST", f"https://api.deepseek.com{PATH}", HEADERS, request())
    exchange.read(whole())
    exchange.end()
    bare = [USER, {"role": "assistant", "content": "", "tool_calls": [CALL]}, RESULT]
    key = HEADERS["authorization"].removeprefix("Bearer ")
    assert THOUGHT in json.dumps(line.translate_history(bare, to="anthropic/claude-opus-4-8", key=key))
    assert THOUGHT not in json.dumps(line.translate_history(bare, to="anthropic/claude-opus-4-8"))


def test_a_name_that_nobody_knows_is_an_error(line: Line) -> None:
    """The error shows the name."""
    with pytest.raises(ValueError, match="provider/model"):
        line.translate_history(HISTORY, to="nobody/at-all")


def test_every_history_is_known_by_its_format(line: Line) -> None:
    """A history converted for one model can be converted for the next."""
    first = line.translate_history(HISTORY, to="gemini/gemini-3-pro-preview")
    again = line.translate_history(first["contents"], to="kimi/kimi-k2.6")
    assert [message["role"] for message in again["messages"]] == ["user", "assistant", "tool", "user"]
    assert FORMATS["gemini_generate"].list_member == "contents"


def _long(count: int) -> list[Any]:
    """A history of this many messages, half of them the model's with reasoning."""
    said = ({"type": "thinking", "thinking": THOUGHT, "signature": "c2VhbA=="}, {"type": "text", "text": "Sunny."})
    pair = ({"role": "user", "content": "And now?"}, {"role": "assistant", "content": said})
    return [*pair] * (count // 2)


async def _calls(history: list[Any], to: str) -> int:
    """The number of function calls of a conversion, all in this thread."""
    settings = Settings()
    store = await open_store("memory://", settings.store)
    lessons = Lessons(store, time.time)
    replayer = Replayer(store, lessons, contract_book(settings, lessons), time.time)
    destination, who = destination_of(to, PROVIDERS, None), Identity("somebody")
    with cProfile.Profile() as profile:
        await translated(replayer, store, settings, body=body_of(history), to=destination, who=who)
    await store.close()
    return sum(entry.callcount for entry in profile.getstats())


@pytest.mark.parametrize("to", ["anthropic/claude-opus-4-8", "deepseek/deepseek-v4-pro"])
async def test_a_message_of_a_long_history_costs_no_more(to: str) -> None:
    """Earlier messages are not processed again for each turn."""
    assert await _calls(_long(1000), to) <= 11 * await _calls(_long(100), to)


@pytest.mark.parametrize("to", ["anthropic/claude-opus-4-8", "deepseek/deepseek-v4-pro"])
async def test_nor_does_one_of_many_of_the_model_in_a_row(to: str) -> None:
    """Some clients write each piece of an answer as a separate message."""
    said = [{"role": "assistant", "content": f"{number}", "reasoning_content": THOUGHT} for number in range(400)]
    assert await _calls([USER, *said], to) <= 11 * await _calls([USER, *said[:40]], to)
