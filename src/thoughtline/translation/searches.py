"""Replaces a Responses client's own tool search (Codex's `tool_search`) by a function, for servers without that kind.

tool      {"type": "tool_search", "execution": "client", …}   ─▶  a function of that name
call      tool_search_call      ◀─▶  a call of the function
output    tool_search_output     ─▶  its result: the names of the tools it found, which are offered with the others
"""

from __future__ import annotations

from typing import NamedTuple

import msgspec
from msgspec import Raw, Struct

from thoughtline.formats.json_text import NULL, encode, is_given, object_of, read_or_none
from thoughtline.formats.openai_responses.options import decode_tools
from thoughtline.translation.tools import ToolNames
from thoughtline.values.errors import DecodeError
from thoughtline.values.items import ToolCall, ToolResult, Unknown
from thoughtline.values.options import BuiltInTool

CALL, OUTPUT = "tool_search_call", "tool_search_output"


class _Item(Struct, gc=False):
    call_id: str | None = None
    execution: str | None = None
    arguments: Raw = NULL
    tools: list[Raw] = []


_decoder = msgspec.json.Decoder(_Item)


class Searched(NamedTuple):
    """A search in the history, as the upstream knows it."""

    call: ToolCall
    result: ToolResult


def search_call(call_id: str | None, arguments: str) -> Unknown:
    """A call of the function, for the client."""
    try:
        held = encode(msgspec.json.decode(arguments or "{}", type=dict[str, object]))
    except msgspec.DecodeError:
        held = b"{}"  # the client reports the missing arguments
    known = [("type", encode(CALL)), ("call_id", encode(call_id or "")), ("execution", b'"client"')]
    return Unknown(CALL, Raw(object_of([*known, ("arguments", held), ("status", b'"completed"')])))


def searched(raw: Raw, names: ToolNames) -> Searched | None:
    """A call or its output; None if the server has no such function, or the provider ran the search."""
    name, item = names.search, read_or_none(_decoder, raw)
    if name is None or item is None or item.execution != "client" or not item.call_id:
        return None
    arguments = bytes(item.arguments).decode() if is_given(item.arguments) else "{}"
    words = encode(f"Found, and offered from now on: {', '.join(_found(item, names)) or 'nothing'}.")
    return Searched(ToolCall(name, arguments, item.call_id), ToolResult(Raw(words), item.call_id, name))


def _found(item: _Item, names: ToolNames) -> list[str]:
    try:
        tools = decode_tools((), tuple(("", one) for one in item.tools))
    except DecodeError:
        return []
    return [names.of_call(tool.name, tool.namespace) for tool in tools if not isinstance(tool, BuiltInTool)]
