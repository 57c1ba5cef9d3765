"""Codex, the real program, with models of OpenAI's that it knows, served by others through a route.

For those it offers patches as free text, hides its MCP tools behind a search, or moves all tools into the conversation.
"""

from __future__ import annotations

import sys

import pytest

from tests.clients.agents import CODEX
from tests.clients.programs import Place, Task, run
from tests.clients.upstreams import start
from tests.gateway.gateways import moved, running
from thoughtline.settings import RouteSettings, Settings

pytestmark = pytest.mark.programs

MCP_SERVER = """
import json, pathlib, sys
for line in sys.stdin:
    asked = json.loads(line)
    match asked.get("method"):
        case "initialize":
            told = {"capabilities": {"tools": {}}, "serverInfo": {"name": "hi", "version": "1"}}
            told["protocolVersion"] = asked["params"]["protocolVersion"]
        case "tools/list":
            schema = {"type": "object", "properties": {"who": {"type": "string"}}}
            told = {"tools": [{"name": "greet", "description": "Greets somebody.", "inputSchema": schema}]}
        case "tools/call":
            pathlib.Path(__file__).with_name("greeted.txt").write_text(asked["params"]["arguments"]["who"])
            told = {"content": [{"type": "text", "text": "Hello!"}]}
        case _:
            continue
    print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": told}), flush=True)
"""
SEARCHING = "|".join(
    (
        "think: I need a tool for that.",
        'call: tool_search {"query": "greet somebody"}',
        "---",
        "think: There it is.",
        'call: mcp__hi__greet {"who": "you"}',
        "---",
        "think: Done.",
        "say: You are greeted.",
    )
)
TARGETS = [("deepseek", None, "deepseek-v4-pro"), ("anthropic", "adaptive", "claude-opus-4-8")]


def with_mcp(place: Place, task: Task) -> dict[str, str]:
    environment = CODEX.settings(place, task)
    (place.home / "server.py").write_text(MCP_SERVER)
    config = place.home / ".codex" / "config.toml"
    server = f'\n[mcp_servers.hi]\ncommand = "{sys.executable}"\nargs = ["{place.home}/server.py"]\n'
    config.write_text(config.read_text() + server)
    return environment


@pytest.mark.parametrize(("simulator", "profile", "target"), TARGETS)
@pytest.mark.parametrize("model", ["gpt-5.5", "gpt-6-sol"])
def test_a_model_that_codex_knows(model: str, simulator: str, profile: str | None, target: str, place: Place) -> None:
    """Nothing is refused. A tool that is found by a search is called; reasoning of every turn is whole."""
    searches = model == "gpt-5.5"
    upstream = start(simulator, profile, SEARCHING if searches else "think: t|say: You are greeted.")
    routes = {model: RouteSettings(model, (f"{simulator}/{target}",))}
    program = CODEX._replace(settings=with_mcp)
    with running({}, Settings(providers={simulator: moved(simulator, upstream.url)}, routes=routes)) as gateway:
        done = run(program, program.begin("Greet me."), place, Task(gateway.url, model))
    assert (done.status, done.answer) == (0, "You are greeted."), done.remarks
    assert upstream.refusals() == []
    if searches:
        assert (place.home / "greeted.txt").read_text() == "you"
        assert upstream.verdicts()[-1] == ["whole", "whole"]
    else:
        assert b"functions__exec" in upstream.watched.bodies[-1]
