"""The options of a request: a provider's tools, a model's sampling settings."""

from __future__ import annotations

from collections.abc import Iterator

from thoughtline_sim.exchange import SimExchange
from thoughtline_sim.reading import as_object, objects, string

_CLAUDE_TOOLS = (
    *("advisor_", "bash_", "code_execution_", "computer_", "custom", "mcp_toolset", "memory_", "text_editor_"),
    *("tool_search_tool_", "web_fetch_", "web_search_"),
)
_XAI_TOOLS = (
    *("function", "web_search", "x_search", "collections_search", "file_search", "code_execution"),
    *("code_interpreter", "mcp", "shell"),
)


def claude_tool_kinds(exchange: SimExchange) -> Iterator[str]:
    for index, tool in enumerate(objects(exchange.body.get("tools"))):
        kind = string(tool.get("type")) or "custom"
        if not kind.startswith(_CLAUDE_TOOLS):
            yield (
                f"tools.{index}: Input tag '{kind}' found using 'type' does not match any of the expected tags: "
                "'bash_20250124', 'custom', 'text_editor_20250728', 'web_search_20250305'"
            )
        if kind == "custom" and "input_schema" not in tool:
            yield f"tools.{index}.custom.input_schema: Field required"


def unpaired(exchange: SimExchange) -> Iterator[tuple[int, str, bool]]:
    """Results that answer no call of the turn before them, or an already answered one: position, id, and whether it is
    the latter.
    """
    called: set[str] = set()
    seen: set[str] = set()
    was_model = False
    for message in exchange.history:
        if message.role == "assistant":
            if not was_model:
                called, seen = set(), set()
            called |= {call.id for call in message.calls if call.id}
        was_model = message.role == "assistant"
        for name in message.results:
            if name in seen or name not in called:
                yield message.index, name, name in seen
            seen.add(name)


def claude_results(exchange: SimExchange) -> Iterator[str]:
    for index, name, is_repeated in unpaired(exchange):
        place = f"messages.{index}.content"
        if is_repeated:
            yield (
                f"{place}: each tool_use must have a single result. Found multiple `tool_result` blocks with id: {name}"
            )
        yield (
            f"{place}: unexpected `tool_use_id` found in `tool_result` blocks: {name}. Each `tool_result` block "
            "must have a corresponding `tool_use` block in the previous message."
        )


def chat_results(exchange: SimExchange) -> Iterator[str]:
    """Chat: a tool message answers a call of the message before it, once."""
    for _ in unpaired(exchange):
        yield "Messages with role 'tool' must be a response to a preceding message with 'tool_calls'"


def converse_results(exchange: SimExchange) -> Iterator[str]:
    for index, _, _ in unpaired(exchange):
        yield (
            f"The number of toolResult blocks at messages.{index}.content exceeds the number of toolUse "
            "blocks of previous turn."
        )


def gemini_tools_together(exchange: SimExchange) -> Iterator[str]:
    """Functions together with Google's own tools: 2.5 does not support it, 3 requires an option for it, except on
    Vertex (recorded).
    """
    kinds = [name for tool in objects(exchange.body.get("tools")) for name, value in tool.items() if value is not None]
    functions = [name for name in kinds if name in ("functionDeclarations", "function_declarations")]
    if not functions or len(functions) == len(kinds):
        return
    config = as_object(exchange.body.get("toolConfig") or exchange.body.get("tool_config"))
    if "2.5" in exchange.model:
        yield "Tool use with function calling is unsupported by the model."
    is_vertex = "/projects/" in exchange.request.path or "/publishers/" in exchange.request.path
    if not is_vertex and config.get("includeServerSideToolInvocations") is not True:
        yield (
            "Please enable tool_config.include_server_side_tool_invocations to use Built-in tools with Function "
            "calling."
        )


def converse_tools_given(exchange: SimExchange) -> Iterator[str]:
    """Calls and results in the history require tools in the request."""
    blocks = [b for message in objects(exchange.body.get("messages")) for b in objects(message.get("content"))]
    config = as_object(exchange.body.get("toolConfig"))
    if any("toolUse" in block or "toolResult" in block for block in blocks) and not config:
        yield "The toolConfig field must be defined when using toolUse and toolResult content blocks."
    if "toolConfig" in exchange.body and not objects(config.get("tools")):
        yield (
            "1 validation error detected: Value at 'toolConfig.tools' failed to satisfy constraint: Member must have "
            "length greater than or equal to 1"
        )


def xai_tool_kinds(exchange: SimExchange) -> Iterator[str]:
    for index, tool in enumerate(objects(exchange.body.get("tools"))):
        kind = string(tool.get("type"))
        if kind not in _XAI_TOOLS:
            yield (
                f"Failed to deserialize the JSON body into the target type: tools[{index}]: unknown variant `{kind}`, "
                f"expected one of {', '.join(f'`{name}`' for name in _XAI_TOOLS)}"
            )
