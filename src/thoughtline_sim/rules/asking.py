"""What a request asks for beside its conversation: tools that a provider has, sampling that a model takes."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import NamedTuple

from thoughtline_sim.exchange import Rule, SimExchange
from thoughtline_sim.refusals import anthropic_error, bedrock_error, gemini_error, xai_error
from thoughtline_sim.values import Rejection
from thoughtline_sim.wire import JsonObject, as_object, objects, string

_UNSAMPLED = re.compile(r"(opus|sonnet|haiku)-(4-[7-9]|[5-9])|fable|mythos")
_BOTH = re.compile(r"claude-3|(opus|sonnet)-4-2025")
_THINKS = "when thinking is enabled or in adaptive mode."

_CLAUDE_TOOLS = (
    *("advisor_", "bash_", "code_execution_", "computer_", "custom", "mcp_toolset", "memory_", "text_editor_"),
    *("tool_search_tool_", "web_fetch_", "web_search_"),
)
_XAI_TOOLS = ("function", "web_search", "x_search", "collections_search", "file_search", "code_execution")
_XAI_MORE = ("code_interpreter", "mcp", "shell")


def claude_sampling(exchange: SimExchange) -> Rejection | None:
    """Opus 4.7 and later take no sampling; those before not while they think, and since 4.1 not both of two."""
    body = exchange.body
    temperature, top_p, top_k = body.get("temperature"), body.get("top_p"), body.get("top_k")
    if _UNSAMPLED.search(exchange.model):
        names = [name for name, value in (("temperature", temperature), ("top_p", top_p)) if value not in (None, 1)]
        names += ["top_k"] if top_k is not None else []
        return anthropic_error(f"`{names[0]}` is deprecated for this model.") if names else None
    if exchange.thinks and temperature not in (None, 1):
        return anthropic_error(f"`temperature` may only be set to 1 {_THINKS}")
    if exchange.thinks and top_k is not None:
        return anthropic_error(f"`top_k` must be unset {_THINKS}")
    if exchange.thinks and isinstance(top_p, (int, float)) and top_p < 0.95:
        return anthropic_error(f"`top_p` must be greater than or equal to 0.95 or unset {_THINKS}")
    if temperature is not None and top_p is not None and not _BOTH.search(exchange.model):
        return anthropic_error(
            "`temperature` and `top_p` cannot both be specified for this model. Please use only one."
        )
    return None


def claude_tool_kinds(exchange: SimExchange) -> Rejection | None:
    for index, tool in enumerate(objects(exchange.body.get("tools"))):
        kind = string(tool.get("type")) or "custom"
        if not kind.startswith(_CLAUDE_TOOLS):
            return anthropic_error(
                f"tools.{index}: Input tag '{kind}' found using 'type' does not match any of the expected tags: "
                "'bash_20250124', 'custom', 'text_editor_20250728', 'web_search_20250305'"
            )
        if kind == "custom" and "input_schema" not in tool:
            return anthropic_error(f"tools.{index}.custom.input_schema: Field required")
    return None


class Unpaired(NamedTuple):
    """A result that answers no call of the turn before it, or one that another has answered."""

    message: int
    id: str
    is_repeated: bool


def unpaired(exchange: SimExchange) -> Unpaired | None:
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
                return Unpaired(message.index, name, name in seen)
            seen.add(name)
    return None


def claude_results(exchange: SimExchange) -> Rejection | None:
    found = unpaired(exchange)
    if found is None:
        return None
    place = f"messages.{found.message}.content"
    if found.is_repeated:
        return anthropic_error(
            f"{place}: each tool_use must have a single result. Found multiple `tool_result` blocks with id: {found.id}"
        )
    return anthropic_error(
        f"{place}: unexpected `tool_use_id` found in `tool_result` blocks: {found.id}. Each `tool_result` block must "
        "have a corresponding `tool_use` block in the previous message."
    )


def chat_results(refuse: Callable[[str], Rejection]) -> Rule:
    """Chat: a tool message answers a call of the message before it, once."""

    def check(exchange: SimExchange) -> Rejection | None:
        if unpaired(exchange) is None:
            return None
        return refuse("Messages with role 'tool' must be a response to a preceding message with 'tool_calls'")

    return check


def converse_results(exchange: SimExchange) -> Rejection | None:
    found = unpaired(exchange)
    if found is None:
        return None
    return bedrock_error(
        f"The number of toolResult blocks at messages.{found.message}.content exceeds the number of toolUse blocks of "
        "previous turn."
    )


def _blocks(message: JsonObject) -> Iterator[JsonObject]:
    return iter(objects(message.get("content")))


def gemini_tools_together(exchange: SimExchange) -> Rejection | None:
    """Functions and Google's own tools: 2.5 has no word for it, 3 wants to be told so."""
    kinds = [name for tool in objects(exchange.body.get("tools")) for name, value in tool.items() if value is not None]
    functions = [name for name in kinds if name in ("functionDeclarations", "function_declarations")]
    if not functions or len(functions) == len(kinds):
        return None
    config = as_object(exchange.body.get("toolConfig") or exchange.body.get("tool_config"))
    if "2.5" in exchange.model:
        return gemini_error("Tool use with function calling is unsupported by the model.")
    if config.get("includeServerSideToolInvocations") is True:
        return None
    return gemini_error(
        "Please enable tool_config.include_server_side_tool_invocations to use Built-in tools with Function calling."
    )


def converse_tools_given(exchange: SimExchange) -> Rejection | None:
    """Calls and results in the history want tools beside them."""
    blocks = [block for message in objects(exchange.body.get("messages")) for block in _blocks(message)]
    config = as_object(exchange.body.get("toolConfig"))
    if any("toolUse" in block or "toolResult" in block for block in blocks) and not config:
        return bedrock_error("The toolConfig field must be defined when using toolUse and toolResult content blocks.")
    if "toolConfig" in exchange.body and not objects(config.get("tools")):
        return bedrock_error(
            "1 validation error detected: Value at 'toolConfig.tools' failed to satisfy constraint: Member must have "
            "length greater than or equal to 1"
        )
    return None


def xai_tool_kinds(exchange: SimExchange) -> Rejection | None:
    for index, tool in enumerate(objects(exchange.body.get("tools"))):
        kind = string(tool.get("type"))
        if kind not in (*_XAI_TOOLS, *_XAI_MORE):
            expected = ", ".join(f"`{name}`" for name in (*_XAI_TOOLS, *_XAI_MORE))
            return xai_error(
                "Failed to deserialize the JSON body into the target type: "
                f"tools[{index}]: unknown variant `{kind}`, expected one of {expected}"
            )
    return None
