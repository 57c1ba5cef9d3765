"""Translates a client's tools for the upstream, and maps calls of them back.

A namespace is flattened: its functions get names that combine both. A free-text tool becomes a function with one string
if the upstream has no such kind. A tool that the provider runs is passed on if the other provider has it; else it is
left out with a finding, or the request is rejected (`[translation] missing_tools`).
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from typing import NamedTuple, assert_never

import msgspec
from msgspec import Raw, Struct
from msgspec.structs import replace

from thoughtline.formats.json_text import encode, members
from thoughtline.formats.wire import Wire
from thoughtline.providers import Contract
from thoughtline.replay.findings import Finding
from thoughtline.translation.cache_marks import taken_marks
from thoughtline.translation.schemas import mended_schema
from thoughtline.values.errors import Untranslatable
from thoughtline.values.items import ToolCall, ToolResult
from thoughtline.values.options import (
    BuiltInTool,
    CustomTool,
    FunctionTool,
    MissingTools,
    Options,
    ReadOptions,
    Tool,
    ToolChoice,
)
from thoughtline.values.turns import Turn

_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
"""Tool names that OpenAI, Anthropic and Bedrock accept; Gemini and Ollama accept more."""

_TEXT = "input"
_FREE_TEXT = encode(
    {
        "type": "object",
        "properties": {_TEXT: {"type": "string", "description": "All of the tool's input, as plain text."}},
        "required": [_TEXT],
        "additionalProperties": False,
    }
)


class ClientTool(NamedTuple):
    """A tool as the client offered it."""

    name: str
    namespace: str | None = None
    is_custom: bool = False
    is_search: bool = False


class ToolNames(Struct, frozen=True):
    """Maps the client's tools to the upstream's. `client` lists only those that differ.

    `fitting` is a pattern of the names that the upstream accepts; empty: any.
    """

    upstream: dict[tuple[str | None, str], str] = {}
    client: dict[str, ClientTool] = {}
    fitting: str = ""

    def of_call(self, name: str, namespace: str | None) -> str:
        """The upstream's name of a tool that the client's history calls, even if it is no longer offered.

        OpenAI's tool search gives functions without a namespace one of their own.
        """
        known = self.upstream.get((namespace, name))
        if known is not None:
            return known
        return fitted(name, self.fitting) if not namespace or namespace == name else qualified(namespace, name)

    def called(self, call: ToolCall) -> ToolCall:
        """A call of the upstream as the client expects it."""
        tool = self.client.get(call.name)
        if tool is None:
            return call
        arguments = unwrapped_text(call.arguments) if tool.is_custom else call.arguments
        named = replace(call, name=tool.name, namespace=tool.namespace, arguments=arguments)
        return replace(named, is_custom=True) if tool.is_custom else named

    def is_read_whole(self, name: str | None) -> bool:
        """Whether this function replaces a free-text tool or a search: its calls are translated when complete."""
        tool = self.client.get(name or "")
        return tool is not None and (tool.is_custom or tool.is_search)

    def is_search(self, name: str | None) -> bool:
        """Whether this function replaces the client's own tool search."""
        tool = self.client.get(name or "")
        return tool is not None and tool.is_search

    @property
    def search(self) -> str | None:
        """The upstream's name of that search."""
        return next((name for name, tool in self.client.items() if tool.is_search), None)


NO_NAMES = ToolNames()


class ToolOffer(NamedTuple):
    """The tools offered to the upstream, and those that could not be."""

    options: Options
    names: ToolNames
    findings: tuple[Finding, ...] = ()


def offer(read: ReadOptions, options: Options, wire: Wire, contract: Contract, missing: MissingTools) -> ToolOffer:
    """The options with tools that the upstream accepts. Raises if one is missing and the settings reject that."""
    opens_custom = not (wire.has_openai_tools and contract.tools.takes("custom"))
    names = names_for(options.tools, opens_custom=opens_custom, fitting=contract.forms.names)
    tools: list[Tool] = []
    findings: list[Finding] = []
    has_functions = any(not isinstance(tool, BuiltInTool) for tool in options.tools)
    takes_marks = taken_marks(wire, contract) is not None
    for tool in options.tools:
        match tool:
            case FunctionTool():
                made, found = _function(tool, names, contract)
                tools.append(made if takes_marks else replace(made, cache_mark=None))
                findings += found
            case CustomTool():
                tools.append(_custom(tool, names))
            case BuiltInTool() if _is_built_in(tool, wire, contract, has_functions):
                tools.append(tool)
            case BuiltInTool():
                findings.append(left_out(tool.kind, tool.place, missing))
            case _:
                assert_never(tool)
    choice, problem = _chosen(options.tool_choice, tools, names, options.tools)
    if problem:
        findings.append(Finding("untranslatable", read.places.get("tool_choice", "/tool_choice"), problem, ""))
    return ToolOffer(replace(options, tools=tuple(tools), tool_choice=choice), names, tuple(findings))


def _function(tool: FunctionTool, names: ToolNames, contract: Contract) -> tuple[FunctionTool, list[Finding]]:
    """A function with a name and a schema that the upstream accepts; and the changes made for that."""
    name = names.of_call(tool.name, tool.namespace)
    findings = []
    if tool.namespace is None and name != tool.name:
        findings.append(Finding("untranslatable", "/tools", f"the tool {tool.name} is called {name} here", ""))
    parameters, changes = mended_schema(tool.parameters, contract.forms)
    if changes:
        message = f"the schema of {tool.name} is written otherwise: {', '.join(changes)}"
        findings.append(Finding("untranslatable", "/tools", message, ""))
    return replace(tool, name=name, namespace=None, parameters=parameters), findings


_PROVIDERS_SEARCH = "tool_search_tool_"


def without_deferred(offered: ToolOffer, options: Options, body: bytes) -> ToolOffer:
    """The offer without tools that the client's own search has not found yet. Without such a search, or if the provider
    runs it, nothing could find them, so they are offered.
    """
    kinds = [tool.kind for tool in options.tools if isinstance(tool, BuiltInTool)]
    functions = [(at, tool) for at, tool in enumerate(options.tools) if isinstance(tool, FunctionTool)]
    waiting = [(at, tool.name) for at, tool in functions if tool.is_deferred and not _is_found(tool.name, body)]
    has_search = any(kind.startswith(_PROVIDERS_SEARCH) for kind in kinds)
    if not waiting or has_search or all(tool.is_deferred for _, tool in functions):
        return offered
    names = {offered.names.of_call(name, None) for _, name in waiting}
    tools = tuple(tool for tool in offered.options.tools if _name_of(tool) not in names)
    message = "a deferred tool is offered when a search has found it"
    found = [Finding("untranslatable", f"/tools/{at}", message, "") for at, _ in waiting]
    return ToolOffer(replace(offered.options, tools=tools), offered.names, (*offered.findings, *found))


def _is_found(name: str, body: bytes) -> bool:
    """Whether a tool is named outside its own definition: in a search result, a call, a choice."""
    return body.count(encode(name)) > 1


_NO_TOOL = FunctionTool("no_tool", "No tool can be called now: answer in words.")


def without_tools(offered: ToolOffer, read: ReadOptions, turns: Sequence[Turn]) -> ToolOffer:
    """The offer if no tool may be called, for a format that can't say so and requires tools if the history has calls:
    nothing, or a single tool that says so.
    """
    options = offered.options
    choice = options.tool_choice
    is_forbidden = choice is not None and choice.mode == "none"
    if options.tools and not is_forbidden:
        return offered
    has_calls = any(isinstance(item, (ToolCall, ToolResult)) for turn in turns for item in turn.items)
    tools = (_NO_TOOL,) if has_calls else ()
    found: tuple[Finding, ...] = ()
    if has_calls:
        place = read.places.get("tool_choice", read.places.get("tools", ""))
        found = (Finding("untranslatable", place, "the history wants a tool: one that says there is none", ""),)
    return ToolOffer(replace(options, tools=tools, tool_choice=None), offered.names, (*offered.findings, *found))


def _is_built_in(tool: BuiltInTool, wire: Wire, contract: Contract, has_functions: bool) -> bool:
    """Whether the upstream has this tool and accepts it together with the others. A tool limited to cached results at
    the client's provider would search the live web here.
    """
    is_there = tool.kind in wire.built_in_tools and contract.tools.takes(tool.kind)
    return is_there and not tool.is_cached and not (has_functions and "tools_unmixed" in wire.quirks)


def left_out(kind: str, place: str, missing: MissingTools) -> Finding:
    """The finding for a tool that the upstream lacks."""
    what, remedy = f"the upstream has no tool of kind {kind}", "leave the tool out, or ask a provider that has it"
    match missing:
        case "refuse":
            raise Untranslatable(what, place, remedy)
        case "leave_out" | "pass_on":
            return Finding("untranslatable", place, f"{what}: it is left out", "")
        case _:
            assert_never(missing)


def _custom(tool: CustomTool, names: ToolNames) -> Tool:
    name = names.of_call(tool.name, tool.namespace)
    if name not in names.client or not names.client[name].is_custom:
        return replace(tool, name=name, namespace=None)
    return free_text_function(name, tool.description, tool.grammar)


def free_text_function(name: str, description: str | None, grammar: Raw | None) -> FunctionTool:
    """The function that replaces a free-text tool; the syntax of its text can only be described."""
    lines = [description] if description else []
    lines.append(f"Give all of its input as one text in `{_TEXT}`, not as JSON.")
    if grammar is not None and bytes(grammar)[:1] == b"{":
        known = members(grammar)
        text = known.get("definition") or members(known.get("grammar", Raw(b"{}"))).get("definition")
        if text is not None and bytes(text)[:1] == b'"':
            lines.append(f"The text follows this grammar:\n{msgspec.json.decode(text, type=str)}")
    return FunctionTool(name, "\n\n".join(lines), Raw(_FREE_TEXT))


def _chosen(
    choice: ToolChoice | None, tools: list[Tool], names: ToolNames, offered: tuple[Tool, ...]
) -> tuple[ToolChoice | None, str]:
    """The choice with the upstream's names; for a tool that is not offered it is dropped, with a message."""
    if choice is None or not (choice.name or choice.allowed):
        return choice, ""
    known = {_name_of(tool) for tool in tools}
    if choice.mode == "named":
        name = _found(choice.name or "", names, offered)
        if name in known:
            return replace(choice, name=name), ""
        return (
            ToolChoice("auto") if tools else None
        ), "the tool that is to be called is not offered: the model chooses"
    allowed = tuple(found for one in choice.allowed if (found := _found(one, names, offered)) in known)
    if allowed:
        return replace(choice, allowed=allowed), ""
    return ToolChoice("none"), "none of the tools that may be called is offered"


def _name_of(tool: Tool) -> str:
    return tool.kind if isinstance(tool, BuiltInTool) else tool.name


def _found(name: str, names: ToolNames, offered: tuple[Tool, ...]) -> str:
    """The upstream's name of a tool that the client names without its namespace."""
    named = [tool for tool in offered if not isinstance(tool, BuiltInTool) and tool.name == name]
    tool = next((one for one in named if one.namespace is None), named[0] if named else None)
    return names.of_call(name, tool.namespace) if tool is not None else name


# --- names ------------------------------------------------------------------------------------------------------------


def names_for(tools: tuple[Tool, ...], *, opens_custom: bool, fitting: str = "") -> ToolNames:
    """The names of these tools on both sides. Those that don't match the pattern are adapted."""
    named = [tool for tool in tools if not isinstance(tool, BuiltInTool)]
    taken = {tool.name for tool in named if tool.namespace is None}
    upstream: dict[tuple[str | None, str], str] = {}
    client: dict[str, ClientTool] = {}
    for tool in named:
        name = fitted(tool.name, fitting)
        if tool.namespace is not None:
            name = qualified(tool.namespace, tool.name)
            name = _hashed(tool.namespace, tool.name) if name in taken else name
            taken.add(name)
        upstream[tool.namespace, tool.name] = name
        is_text = opens_custom and isinstance(tool, CustomTool)
        is_search = isinstance(tool, FunctionTool) and tool.is_search
        if is_text or is_search or tool.namespace is not None or name != tool.name:
            client[name] = ClientTool(tool.name, tool.namespace, is_text, is_search)
    return ToolNames(upstream, client, fitting)


def fitted(name: str, fitting: str) -> str:
    """A name that matches the pattern: the same, or a digest that begins with a letter, as long as every server
    accepts.
    """
    if not fitting or re.fullmatch(fitting, name):
        return name
    made = _hashed("", name)
    return made if made[0].isalpha() else f"t{made[:63]}" if len(made) < 64 else f"t{made[1:]}"


def qualified(namespace: str, name: str) -> str:
    """The single name of a tool in a namespace, as Codex itself would write it."""
    joined = f"{namespace.removesuffix('__')}__{name}"
    return joined if _NAME.fullmatch(joined) else _hashed(namespace, name)


def _hashed(namespace: str, name: str) -> str:
    joined = f"{namespace.removesuffix('__')}__{name}" if namespace else name
    plain = re.sub(r"[^a-zA-Z0-9_-]", "_", joined)
    digest = hashlib.sha256(f"{len(namespace)}:{namespace}{name}".encode()).hexdigest()
    return f"{plain[:55]}_{digest[:8]}"


# --- free text --------------------------------------------------------------------------------------------------------


def wrapped_text(text: str) -> str:
    """Free text as the arguments of the function that replaces its tool."""
    return encode({_TEXT: text}).decode()


def unwrapped_text(arguments: str) -> str:
    """The free text of a call: a model may write it without its object, even if instructed not to."""
    try:
        value = msgspec.json.decode(arguments)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return arguments
    if isinstance(value, str):
        return value
    held = value.get(_TEXT) if isinstance(value, dict) else None
    if held is None and isinstance(value, dict) and len(value) == 1:
        held = next(iter(value.values()))
    return held if isinstance(held, str) else "" if value in ({}, None) else arguments
