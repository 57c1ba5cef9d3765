"""A client's own search for tools, as a function of a server that has no such kind."""

from __future__ import annotations

import json

import pytest
from msgspec import Raw

from thoughtline.translation.searches import search_call, searched
from thoughtline.translation.tools import NO_NAMES, ClientTool, ToolNames
from thoughtline.values.items import ToolCall

NAMES = ToolNames({("mcp", "read"): "mcp__read"}, {"tool_search": ClientTool("tool_search", is_search=True)})
FUNCTION = {"type": "function", "name": "look", "parameters": {}}
FOUND = [FUNCTION, {"type": "namespace", "name": "mcp", "tools": [FUNCTION | {"name": "read"}]}, {"type": "web_search"}]


@pytest.mark.parametrize(
    ("arguments", "held"),
    [('{ "query": "files" }', {"query": "files"}), ("", {}), ('{"query": "fi', {}), ('"files"', {}), ("[]", {})],
)
def test_a_call_for_the_client(arguments: str, held: object) -> None:
    """An object, as the client reads it: it reports invalid arguments itself."""
    item = search_call("call_1", arguments)
    expected = {"type": "tool_search_call", "call_id": "call_1", "execution": "client"}
    assert json.loads(bytes(item.raw)) == expected | {"arguments": held, "status": "completed"}
    assert item.kind == "tool_search_call"


def raw(**more: object) -> Raw:
    return Raw(json.dumps({"call_id": "call_1", "execution": "client", **more}).encode())


def test_a_search_of_the_history() -> None:
    """A call of the function, and as its result the names of what was found, as the upstream knows them."""
    known = searched(raw(arguments={"query": "files"}, tools=FOUND), NAMES)
    assert known is not None
    assert known.call == ToolCall("tool_search", '{"query": "files"}', "call_1")
    assert json.loads(bytes(known.result.content)) == "Found, and offered from now on: look, mcp__read."
    assert (known.result.call_id, known.result.name) == ("call_1", "tool_search")


@pytest.mark.parametrize("tools", [[], [{"type": "function"}], [7]])
def test_a_search_that_found_nothing(tools: list[object]) -> None:
    """Or nothing that can be read."""
    known = searched(raw(tools=tools), NAMES)
    assert known is not None
    assert known.call.arguments == "{}"
    assert json.loads(bytes(known.result.content)) == "Found, and offered from now on: nothing."


@pytest.mark.parametrize(
    "item", [raw(execution="server"), raw(call_id=None), raw(call_id=""), Raw(b"[]"), Raw(b'"\xff"')]
)
def test_what_is_no_search_of_the_clients(item: Raw) -> None:
    """The provider ran it, or it is unknown which one did; or the server was offered no such function."""
    assert searched(item, NAMES) is None
    assert searched(raw(), NO_NAMES) is None
