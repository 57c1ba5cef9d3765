"""Two hundred MCP tools at every strict simulator: each is taken, and a call of it reaches the client as its own."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.translation.lanes import MORE_UPSTREAMS, UPSTREAMS, Lane, Upstream
from tests.translation.mcp_tools import McpTool, tools
from thoughtline.formats import FORMATS
from thoughtline.translation import TranslatedRequest, translate_reply
from thoughtline.values.items import ToolCall
from thoughtline.values.turns import Candidate, Finish, FormatName, Reply, Turn

Json = dict[str, Any]
TOOLS = tools()


def asked(client: FormatName, offered: list[McpTool]) -> bytes:
    """A request of this client that offers tools."""
    body: Json = {"model": "m", "messages": [{"role": "user", "content": "Hi.\nscript:\nsay: Hello."}]}
    if client == "anthropic_messages":
        listed: list[Json] = [{"name": one.name, "input_schema": one.schema} for one in offered]
        return json.dumps(body | {"max_tokens": 999, "tools": listed}).encode()
    functions = [{"name": one.name, "parameters": one.schema} for one in offered]
    return json.dumps(body | {"tools": [{"type": "function", "function": one} for one in functions]}).encode()


def names_of(lane: Lane, request: TranslatedRequest) -> list[str]:
    """What the upstream knows the tools by, in their order."""
    wire = FORMATS[lane.upstream.format]
    read = wire.options.decode_options(request.transcript.body).options.tools
    return [getattr(tool, "name", "") for tool in read]


def test_the_set_is_large_and_every_tool_has_a_name_of_its_own() -> None:
    """Two hundred, none twice."""
    assert len(TOOLS) >= 200
    assert len({tool.name for tool in TOOLS}) == len({tool.about for tool in TOOLS}) == len(TOOLS)


@pytest.mark.parametrize("client", ["openai_chat", "anthropic_messages"])
@pytest.mark.parametrize("upstream", [*UPSTREAMS, *MORE_UPSTREAMS], ids=lambda one: f"{one.id}-{one.model}")
def test_every_tool_is_taken_and_its_calls_come_back(upstream: Upstream, client: FormatName) -> None:
    """No simulator refuses a name or a schema; a call of each tool has the client's own name for it and the arguments
    that the model gave."""
    if upstream.format == client:
        return  # forwarded unchanged
    lane = Lane(upstream, client)
    answer = lane.exchange(asked(client, TOOLS), is_streaming=False)
    assert answer.status == 200, answer.body
    assert answer.request is not None
    upstreams = names_of(lane, answer.request)
    assert len(set(upstreams)) == len(TOOLS)
    pairs = zip(upstreams, TOOLS, strict=True)
    calls = tuple(ToolCall(name, json.dumps(tool.arguments), f"call_{at}") for at, (name, tool) in enumerate(pairs))
    wire, contract = FORMATS[upstream.format], upstream.contract
    candidate = Candidate(Turn("assistant", calls), 0, Finish("tool_calls", ""))
    body = wire.bodies.encode_response(Reply(upstream.format, (candidate,), b"", "r1", "m"), contract.dialect)
    reply = wire.bodies.decode_response(body, contract.dialect)
    down = translate_reply(reply, lane.way(answer.request)._replace(tools=answer.request.tools)).body
    spoken = FORMATS[client]
    back = spoken.bodies.decode_response(down, spoken.dialect).candidates[0].turn.items
    got = [(item.name, json.loads(item.arguments)) for item in back if isinstance(item, ToolCall)]
    assert got == [(tool.name, tool.arguments) for tool in TOOLS]
