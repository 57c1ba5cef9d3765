"""The examples of `docs/library.md`, run as they stand there, against strict providers.

Those of frameworks are run by `make test-library`: tests/library/test_docs.py.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, TypeAlias, cast

import httpx
import pytest

import thoughtline
from tests.clients.apps import APPS, KEY, Setup, converse
from tests.clients.test_sdks import Row, check_whole
from tests.clients.upstreams import start
from tests.examples import blocks, example
from tests.sim.served_simulators import served
from thoughtline import Line, audit

Json: TypeAlias = dict[str, Any]

TOOLS = [{"type": "function", "function": {"name": "weather", "parameters": {"type": "object"}}}]
USER = {"role": "user", "content": "How is the weather?"}
HERE = (
    *("In one line", "Every client of the process", "What it did", "A line", "Anthropic", "Google"),
    *("Handing a conversation over", "Your own HTTP client"),
)
CORE = ("Audit", "Without a store of ours")
FRAMEWORKS = ("LangChain", "LangGraph", "pydantic-ai", "LlamaIndex", "OpenAI Agents SDK", "LiteLLM")


@pytest.fixture(autouse=True)
def of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder and a store for one test."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("THOUGHTLINE_STORE", f"sqlite:///{tmp_path / 'own.db'}")
    monkeypatch.setattr("thoughtline.library.door._default", [])


def request(*messages: Json, **more: object) -> bytes:
    return json.dumps({"model": "deepseek-v4-pro", "tools": TOOLS, "messages": [USER, *messages], **more}).encode()


def forgetful(message: Json) -> tuple[Json, Json]:
    """The model's message without its reasoning, and the result of its call."""
    kept = {name: value for name, value in message.items() if name != "reasoning_content"}
    return kept, {"role": "tool", "tool_call_id": message["tool_calls"][0]["id"], "content": "sunny"}


def test_every_example_is_run() -> None:
    """Here, or with the frameworks."""
    assert set(blocks()) == {*HERE, *CORE, *FRAMEWORKS}


@pytest.mark.parametrize(
    ("title", "row", "environment"),
    [
        ("In one line", Row("openai-chat", "deepseek", "deepseek-v4-pro"), {"OPENAI_BASE_URL": "{url}/v1"}),
        ("A line", Row("openai-chat", "deepseek", "deepseek-v4-pro"), {"OPENAI_BASE_URL": "{url}/v1"}),
        (
            "Anthropic",
            Row("anthropic", "deepseek", "deepseek-v4-pro", None, {"max_tokens": 8000}),
            {"ANTHROPIC_BASE_URL": "{url}"},
        ),
        ("Google", Row("google-genai", "gemini", "gemini-3-pro-preview"), {"GOOGLE_GEMINI_BASE_URL": "{url}"}),
    ],
)
def test_a_client_of_an_example_remembers(
    title: str, row: Row, environment: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """An application that forgets holds a conversation with the client that the example makes."""
    upstream = start(row.simulator)
    for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GEMINI_API_KEY"):
        monkeypatch.setenv(name, KEY)
    for name, value in environment.items():
        monkeypatch.setenv(name, value.format(url=upstream.url))
    app: Any = APPS[row.app](Setup(upstream.url, row.model, "strips", "whole", row.extra))
    app.client = example(title)["client"]
    check_whole(upstream, converse(app))


def test_a_client_that_is_made_later(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """After the one line of the example, any client remembers."""
    row = Row("openai-chat", "deepseek", "deepseek-v4-pro")
    upstream = start(row.simulator)
    example("Every client of the process")
    try:
        check_whole(upstream, converse(APPS[row.app](Setup(upstream.url, row.model, "strips", "whole", row.extra))))
    finally:
        thoughtline.uninstall()


def test_what_it_did(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """The example prints it twice: as the call ends, and in words."""
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setenv("OPENAI_BASE_URL", f"{start('deepseek').url}/v1")
    example("What it did")
    first, second = capsys.readouterr().out.splitlines()
    assert first == "ok passed on"
    assert second.endswith("200 ok upstream/deepseek-v4-pro  passed on")


async def test_a_clients_own_requests(tmp_path: Path) -> None:
    """What a stream said stands in the next request; one that is refused is healed."""
    url = f"{served('deepseek', 'reseller').url}/v1/chat/completions"
    stream = example("Your own HTTP client")["stream"]
    async with Line(f"sqlite:///{tmp_path / 'thoughts.db'}") as line, httpx.AsyncClient() as client:

        async def ask(body: bytes, key: str = "k") -> bytes:
            headers = {"authorization": f"Bearer {key}"}
            return b"".join([piece async for piece in stream(line, client, url, headers, body)])

        whole = json.loads(await ask(request()))
        history = forgetful(whole["choices"][0]["message"])
        assert b"reasoning_content" in await ask(request(*history, stream=True))
        assert line.report.restored == 1
        elsewhere = request(*history).replace(b"deepseek-v4-pro", b"a-model")
        assert json.loads(await ask(elsewhere, "another"))["choices"]
        assert line.report.healed == 1


def test_a_history_is_handed_over() -> None:
    """What was thought goes along, quoted."""
    handed = example("Handing a conversation over")["request"]
    assert "The forecast says so." in json.dumps(handed["system"])
    assert [message["role"] for message in handed["messages"]] == ["user", "assistant", "user"]


def test_the_audit_names_what_would_be_refused(capsys: pytest.CaptureFixture[str]) -> None:
    """A turn without its reasoning, and where it stands."""
    call = {"id": "a", "type": "function", "function": {"name": "weather", "arguments": "{}"}}
    message = {"role": "assistant", "content": "", "tool_calls": [call]}
    example("Audit", body=request(*forgetful(message)))
    assert "missing /messages/1" in capsys.readouterr().out


def test_a_body_in_any_form() -> None:
    """Bytes, text or a dictionary; anything else is named."""
    call = {"id": "a", "type": "function", "function": {"name": "weather", "arguments": "{}"}}
    body = request(*forgetful({"role": "assistant", "content": "", "tool_calls": [call]}))
    found = audit(body, "deepseek")
    assert found
    assert audit(body.decode(), "deepseek") == audit(json.loads(body), "deepseek") == found
    with pytest.raises(TypeError, match="JSON is bytes, text, a dictionary or a list, not int"):
        audit(cast(bytes, 5), "deepseek")
    line = Line("memory://")
    url = "https://api.deepseek.com/v1/chat/completions"
    assert json.loads(line.begin_sync("POST", url, {}, json.loads(body)).body)["model"] == "deepseek-v4-pro"


def test_the_core_needs_no_store() -> None:
    """Nothing was lost and nothing found: the body goes out as it came."""
    assert example("Without a store of ours", body=request(), my_records={})["body"] == request()
